"""The session of our consumer for confluent-kafka, by its own clock: it returns no records past the session's end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from kafka_assignors.member.data_path import ClientAssignment, Position
from support.broker import Kafka, unique
from support.confluent_group import Crowd, Observed, fill, topic_of
from support.silence import member_of, silence
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION_MS = 4000
BOTH_WAYS = ("sticky", "cooperative-sticky")
# The most time between the consumer's last reading of the clock and the test's own.
MOMENT = 0.25


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


def end_of_session(consumer: Observed) -> float:
    """The end of the session, once no request of the member is answered any more."""
    member = member_of(consumer)
    # By now the requests that were in flight have their answers.
    time.sleep(0.5)
    return time.monotonic() + member.session_left


@pytest.mark.parametrize("strategy", BOTH_WAYS)
@pytest.mark.parametrize("method", ["poll", "consume"])
def test_nothing_is_handed_out_past_the_session(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, strategy: str, method: str
) -> None:
    """librdkafka has fetched more records than are read, and its connections work. Only the member gets no answers."""
    topic, partitions = topic_of(crowd, 2, 20_000)
    consumer = crowd.add(strategy, session_timeout_ms=SESSION_MS, socket_timeout_ms=2000).follow(topic)
    crowd.settle(partitions)
    crowd.until(lambda: len(consumer.read) > 10, "records flow")
    silence(consumer, monkeypatch)
    end = end_of_session(consumer)
    handed_out = 0.0
    while not consumer.was_told("on_lost"):
        called = time.monotonic()
        if records_of(consumer, method):
            handed_out = called
        # Without this pause the topic would be read to its end before the session expires.
        time.sleep(0.005)
        assert time.monotonic() < end + SESSION_MS / 1000, "it is not told"
    # On a busy machine this thread may not run for up to half of a session.
    assert end - SESSION_MS / 2000 < handed_out < end + MOMENT
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
    topic, partitions = topic_of(crowd, 1, 1)
    consumer = crowd.add(session_timeout_ms=SESSION_MS, socket_timeout_ms=2000, statistics_interval_ms=300)
    consumer.follow(topic)
    crowd.settle(partitions)
    crowd.until(lambda: consumer.read, "the record is read")
    silence(consumer, monkeypatch)
    end = end_of_session(consumer)
    late = end + SESSION_MS / 1000

    def produce() -> None:
        wait_until(lambda: time.monotonic() >= end, "the session is over")
        number = 1
        while not consumer.was_told("on_lost") and time.monotonic() < late:
            fill(crowd.kafka, topic, 1, 1, start=number)
            number += 1

    producing = threading.Thread(target=produce)
    producing.start()
    native = confluent_kafka.Consumer.poll.__get__(consumer)
    message = native(late - time.monotonic())
    producing.join()
    assert message is None
    assert consumer.was_told("on_lost")


def test_an_answer_in_time_goes_on_with_what_was_held_up(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, partitions = topic_of(crowd, 1, 1)
    consumer = crowd.add(session_timeout_ms=SESSION_MS, socket_timeout_ms=1000, statistics_interval_ms=300)
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
