"""The session of our consumer for confluent-kafka, by its own clock: it returns no records past the session's end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from kafka_assignors.clients.confluent import times
from kafka_assignors.member.data_path import ClientAssignment, Position
from support.broker import Kafka, unique
from support.confluent_group import Crowd, Observed, fill, topic_of
from support.silence import member_of, silence
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.member.membership import MemberThread

SESSION_MS = 4000
BOTH_WAYS = ("sticky", "cooperative-sticky")


@pytest.fixture
def crowd(any_kafka: Kafka) -> Iterator[Crowd]:
    with Crowd(any_kafka, unique("confluent")) as crowd:
        yield crowd


def records_of(consumer: Observed, method: str) -> list[Any]:
    """The records that one call returns. Errors go to `consumer.errors`."""
    if method == "consume":
        found = consumer.consume(5, 0.05)
    else:
        message = consumer.poll(0.05)
        found = [] if message is None else [message]
    consumer.errors += [error for error in (message.error() for message in found) if error is not None]
    return [message for message in found if message.error() is None]


def silent_member(consumer: Observed, monkeypatch: pytest.MonkeyPatch) -> MemberThread:
    """The consumer's member, whose requests are lost from now on. Those that were in flight have their answers."""
    silence(consumer, monkeypatch)
    member = member_of(consumer)
    wait_until(lambda: not any(each.in_flight for each in list(member._connections.values())), "all are answered")
    return member


@pytest.mark.parametrize("strategy", BOTH_WAYS)
@pytest.mark.parametrize("method", ["poll", "consume"])
def test_nothing_is_handed_out_past_the_session(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, strategy: str, method: str
) -> None:
    """librdkafka has fetched more records than are read, and its connections work. Only the member gets no answers.

    `wait_until` pauses between two calls: the topic is not read to its end before the session expires.
    """
    topic, partitions = topic_of(crowd, 2, 20_000)
    consumer = crowd.add(strategy, session_timeout_ms=SESSION_MS, socket_timeout_ms=2000).follow(topic)
    crowd.settle(partitions)
    crowd.until(lambda: len(consumer.read) > 10, "records flow")
    member = silent_member(consumer, monkeypatch)

    def is_attentive() -> bool:
        records_of(consumer, method)
        return member.is_in_doubt and consumer._poll_methods.is_on

    wait_until(is_attentive, "the session is in doubt, and the member's thread has replaced the native methods")
    in_doubt: list[bool] = []

    def is_told() -> bool:
        is_over = member.session_left <= 0
        found = bool(records_of(consumer, method))
        assert not (is_over and found), "the call began after the end of the session"
        if member.session_left > 0:
            in_doubt.append(found)
        return consumer.was_told("on_lost")

    wait_until(is_told, "it is told")
    # Up to the end there are records. On a busy machine the last half of the session may have few calls.
    assert any(in_doubt) or len(in_doubt) < 10
    assert not consumer.held
    assert records_of(consumer, method) == []
    # When the requests of the consumer arrive again, it becomes a member again.
    monkeypatch.undo()
    assigned = len(consumer.events)
    crowd.until(lambda: consumer.held == partitions and len(consumer.events) > assigned, "it is back")
    before = len(consumer.read)
    crowd.until(lambda: len(consumer.read) > before, "records flow again")


@pytest.mark.first
def test_a_poll_that_waits_is_given_nothing_past_the_session(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that waits in librdkafka returns any record that is fetched. After the session none may be fetched."""
    # On a busy machine statistics are late. One of the last six before the end of the session pauses the partition.
    monkeypatch.setattr(times, "STATISTICS_LATE", 6)
    topic, partitions = topic_of(crowd, 1, 1)
    consumer = crowd.add(session_timeout_ms=SESSION_MS, socket_timeout_ms=2000, statistics_interval_ms=300)
    consumer.follow(topic)
    crowd.settle(partitions)
    crowd.until(lambda: consumer.read, "the record is read")
    member = silent_member(consumer, monkeypatch)
    ended = threading.Event()

    def produce() -> None:
        wait_until(lambda: member.session_left <= 0, "the session is over")
        number = 1
        while not (consumer.was_told("on_lost") or ended.is_set()):
            fill(crowd.kafka, topic, 1, 1, start=number)
            number += 1

    producing = threading.Thread(target=produce)
    producing.start()
    native = confluent_kafka.Consumer.poll.__get__(consumer)
    messages: list[Any] = []
    try:
        # One call, which goes on after the session. A busy machine may need another one.
        while not consumer.was_told("on_lost"):
            messages.append(native(2 * SESSION_MS / 1000))
    finally:
        ended.set()
        producing.join()
    assert set(messages) == {None}


def test_an_answer_in_time_goes_on_with_what_was_held_up(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, partitions = topic_of(crowd, 1, 1)
    consumer = crowd.add(socket_timeout_ms=1000, statistics_interval_ms=300)
    consumer.follow(topic)
    crowd.settle(partitions)
    crowd.until(lambda: consumer.read, "the record is read")
    consumer._group.path.hold_up(consumer._group.assigned.reading)
    fill(crowd.kafka, topic, 1, 5, start=1)
    crowd.until(lambda: len(consumer.read) == 6, "all are read")
    assert [offset for _, _, offset in consumer.read] == list(range(6))
    # A partition that the application has paused stays paused.
    consumer.pause(consumer.assignment())
    consumer._group.path.hold_up(consumer._group.assigned.reading)
    fill(crowd.kafka, topic, 1, 5, start=6)
    until = time.monotonic() + 1
    crowd.until(lambda: time.monotonic() > until, "time passes")
    assert len(consumer.read) == 6
    consumer.resume(consumer.assignment())
    crowd.until(lambda: len(consumer.read) == 11, "all are read")


@pytest.mark.parametrize("strategy", BOTH_WAYS)
@pytest.mark.parametrize("method", ["poll", "consume"])
def test_polling_too_late_is_told_in_one_order(crowd: Crowd, strategy: str, method: str) -> None:
    topic, partitions = topic_of(crowd, 2, 5_000)
    consumer = crowd.add(strategy, session_timeout_ms=SESSION_MS, max_poll_interval_ms=SESSION_MS)
    order: list[Any] = []
    consumer.follow(topic, on_lost=lambda *_: order.append("on_lost"), on_assign=lambda *_: order.append("on_assign"))
    crowd.settle(partitions)
    crowd.until(lambda: len(consumer.read) > 10, "records flow")
    order.clear()
    wait_until(lambda: member_of(consumer).is_lost, "it has not polled for too long")
    while "record" not in order:
        told = len(consumer.errors)
        found = records_of(consumer, method)
        order += [error.code() for error in consumer.errors[told:]]
        order += ["record" for _ in found]
    assert order[:4] == [KafkaError._MAX_POLL_EXCEEDED, "on_lost", "on_assign", "record"]


@pytest.mark.parametrize("held_up", [False, True])
def test_what_went_while_it_was_held_is_read_when_it_comes_back(crowd: Crowd, held_up: bool) -> None:
    """librdkafka keeps the pause of a partition that is no longer assigned: our consumer must resume it."""
    _, partitions = topic_of(crowd, 1, 5)
    consumer = crowd.add()
    path, (partition,) = consumer._group.path, partitions

    def read() -> list[Any]:
        path.assign(ClientAssignment(frozenset(partitions), {partition: Position(0)}))
        crowd.until(lambda: len(consumer.read) == 5, "all is read")
        return consumer.read

    assert len(read()) == 5
    consumer.read.clear()
    path.is_inside = True
    if held_up:
        path.hold_up(partitions)
    path.hold(frozenset(partitions))
    path.assign(ClientAssignment(frozenset()))
    assert len(read()) == 5
