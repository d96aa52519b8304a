"""`poll` and `consume` of our consumer for confluent-kafka: when they are native, and how the group is served then."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from types import BuiltinMethodType
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from kafka_assignors.clients.confluent import Consumer, application_side
from support.broker import Kafka, unique
from support.confluent_group import SESSION_MS, Crowd, fill, topic_of
from support.features import release_has
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH_WAYS = ("sticky", "cooperative-sticky")


@pytest.fixture
def crowd(any_kafka: Kafka) -> Iterator[Crowd]:
    with Crowd(any_kafka, unique("confluent")) as crowd:
        yield crowd


def test_a_consumer_that_does_not_poll_loses_its_share(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 4, 10)
    slow = crowd.add(max_poll_interval_ms=SESSION_MS).follow(topic)
    quick = crowd.add()
    crowd.settle(partitions, slow)
    quick.follow(topic)
    crowd.settle(partitions)
    assert slow.held
    crowd.until(lambda: quick.held == partitions, "the other one has everything", of=[quick])
    crowd.until(lambda: "on_lost" in [kind for kind, _ in slow.events], "it is told")
    assert KafkaError._MAX_POLL_EXCEEDED in [error.code() for error in slow.errors]
    crowd.settle(partitions)
    assert len(slow.held) == len(quick.held) == 2


def test_polling_slowly_is_polling(crowd: Crowd) -> None:
    """A consumer that polls slowly stays a member, whichever method it calls."""
    topic, partitions = topic_of(crowd, 2, 3)
    consumer = crowd.add(max_poll_interval_ms=SESSION_MS, session_timeout_ms=SESSION_MS)
    consumer.follow(topic)
    crowd.settle(partitions)
    native = consumer.poll  # the application keeps this method, and so never gets the one that replaces it
    held = confluent_kafka.Consumer.poll.__get__(consumer)
    started = time.monotonic()
    while time.monotonic() - started < 1.5 * SESSION_MS / 1000:
        held(1.5)
    native(0)
    assert consumer.held == partitions
    assert [kind for kind, _ in consumer.events] == ["on_assign"]


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_a_new_topic_while_the_application_is_blocked(crowd: Crowd, strategy: str) -> None:
    """librdkafka requests the leaders of a new topic, a callback requests all topics, and more statistics follow."""
    (one, _), (other, _) = topic_of(crowd, 1), topic_of(crowd, 1)
    seen: list[set[str]] = []
    told: list[str] = []
    consumer = crowd.add(strategy, statistics_interval_ms=100, stats_cb=told.append)
    consumer.follow(one, other, on_assign=lambda each, _: seen.append(set(each.list_topics(timeout=TIMEOUT).topics)))
    neighbour = crowd.add(strategy).follow(one, other)
    crowd.settle({(one, 0), (other, 0)})
    seen.clear()
    leaving = threading.Thread(target=neighbour.close)
    leaving.start()

    def has_all() -> bool:
        # The native method, as in an application that looked the method up once. A busy machine may need more calls.
        assert confluent_kafka.Consumer.poll(consumer, 3.0) is None
        return consumer.held == {(one, 0), (other, 0)} and len(told) > 5

    wait_until(has_all, "it has the topics of both")
    leaving.join()
    assert seen
    assert all({one, other} <= topics for topics in seen)
    for topic in (one, other):
        fill(crowd.kafka, topic, 1, 2)
    crowd.until(lambda: len(consumer.read) == 4, "the records of both topics are read", of=[consumer])


def test_credentials_that_a_callback_sets_reach_librdkafka_later(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the callback for statistics, librdkafka must not be called: it gets the credentials after the callback."""
    given: list[tuple[str, bool]] = []
    within: list[bool] = []

    class Noting(confluent_kafka.Consumer):
        def set_sasl_credentials(self, username: str, password: str) -> None:
            given.append((username, bool(within)))
            confluent_kafka.Consumer.set_sasl_credentials(self, username, password)

    def rotate(_: str) -> None:
        if rotates:
            within.append(True)
            users.append(f"user {len(users)}")
            consumer.set_sasl_credentials(users[-1], "password")
            within.clear()

    rotates, users = [True], [""]
    monkeypatch.setattr(application_side, "_Native", Noting)
    topic, partitions = topic_of(crowd, 1)
    consumer = crowd.add(statistics_interval_ms=100, stats_cb=rotate).follow(topic)
    crowd.settle(partitions)
    given.clear()
    confluent_kafka.Consumer.poll(consumer, 1.0)
    assert given == []
    last = users[-1]
    crowd.until(lambda: given, "librdkafka has them")
    assert given[0][0] in users[users.index(last) :]
    assert not any(inside for _, inside in given)
    rotates.clear()
    consumer.set_sasl_credentials("another", "password")
    assert given[-1] == ("another", False)
    # Without a subscription no membership makes the polls attentive: the new credentials must do it.
    consumer = crowd.add(statistics_interval_ms=100, stats_cb=rotate, enable_auto_commit=False)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0)])
    given.clear()
    rotates.append(True)
    crowd.until(lambda: given, "librdkafka has them", of=[consumer])
    rotates.clear()
    assert not any(inside for _, inside in given)


def test_poll_is_the_native_one_while_records_flow(crowd: Crowd) -> None:
    topic, _ = topic_of(crowd, 1, 2000)
    consumer = crowd.add().follow(topic)
    crowd.until(lambda: len(consumer.read) >= 10, "some are read")
    native = 0
    while len(consumer.read) < 2000:
        native += "poll" not in consumer.__dict__
        consumer.turn()
    assert native > 1900
    fill(crowd.kafka, topic, 1, 2000, start=2000)
    batches = [consumer.consume(100, 1.0) for _ in range(5)]
    while "consume" in consumer.__dict__:
        batches.append(consumer.consume(1, 1.0))
    while sum(map(len, batches)) < 2000:
        batches.append(consumer.consume(100, 1.0))
    read = [message.offset() for batch in batches for message in batch]
    assert read == list(range(2000, 4000))
    # Without records our method replaces the native one again, since it must serve the group.
    wait_until(lambda: "poll" in consumer.__dict__, "the membership has put its own in")


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_a_method_that_is_kept_reads_and_takes_part(crowd: Crowd, method: str) -> None:
    """A tight loop looks the method up once, before the assignment; only a later look-up gives the native method."""
    topic, partitions = topic_of(crowd, 2, 1000)
    settings = {"bootstrap.servers": crowd.kafka.bootstrap_servers, "group.id": crowd.group, "log_level": 0}
    with Consumer({**settings, "auto.offset.reset": "earliest", "partition.assignment.strategy": "sticky"}) as consumer:
        consumer.subscribe([topic])
        kept = getattr(consumer, method)
        assert not isinstance(kept, BuiltinMethodType)

        def read() -> int:
            found = kept(100, 1.0) if method == "consume" else [kept(1.0)]
            return sum(message is not None and message.error() is None for message in found)

        records = native = 0
        while records < 2000:
            native += isinstance(getattr(consumer, method), BuiltinMethodType)
            records += read()
        assert native > 0
        other = crowd.add("sticky").follow(topic)
        late = time.monotonic() + TIMEOUT
        while len(other.held) != 1 or len(consumer.assignment()) != 1:
            read()
            other.turn()
            assert time.monotonic() < late
        assert {(each.topic, each.partition) for each in consumer.assignment()} | other.held == partitions
        fill(crowd.kafka, topic, 2, 10, start=1000)
        while records < 2010:
            records += read()


def test_a_consumer_has_no_dictionary_that_each_lookup_of_poll_would_go_through(crowd: Crowd) -> None:
    """A `Consumer` has no `__dict__`, unlike a subclass: its class is replaced instead. Programs see no difference."""
    topic, _ = topic_of(crowd, 1, 2000)
    settings = {"bootstrap.servers": crowd.kafka.bootstrap_servers, "group.id": crowd.group, "log_level": 0}
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        assert not hasattr(consumer, "__dict__")
        shown = repr(type(consumer))
        consumer.subscribe([topic])
        native = read = 0
        while read < 2000:
            native += isinstance(consumer.poll, BuiltinMethodType)
            read += consumer.poll(1.0) is not None
        assert native > 1900
        wait_until(lambda: not isinstance(consumer.poll, BuiltinMethodType), "the membership has put its own in")
        assert not isinstance(consumer.consume, BuiltinMethodType)
        assert isinstance(consumer, Consumer)
        assert repr(type(consumer)) == shown
        fill(crowd.kafka, topic, 1, 10)
        while read < 2010:
            read += len(consumer.consume(1, 1.0))
    assert type(consumer) is Consumer
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_a_consumer_that_is_blocked_in_librdkafka_takes_part(crowd: Crowd, strategy: str) -> None:
    """A rebalance does not wait until `poll(-1)` returns, even if the application keeps the bound method."""
    topic, partitions = topic_of(crowd, 4)
    blocked, other = crowd.add(strategy).follow(topic), crowd.add(strategy)
    crowd.settle(partitions, blocked)
    messages: list[Any] = []
    hold = confluent_kafka.Consumer.poll.__get__(blocked)

    def run() -> None:
        while len(messages) < 2:
            messages.append(hold(-1))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    other.follow(topic)
    crowd.until(lambda: len(other.held) == 2, "the other one has its share", of=[other])
    assert thread.is_alive()
    crowd.until(lambda: len(blocked.held) == 2, "and so has the blocked one", of=[other])
    assert blocked.held | other.held == partitions
    for _, number in blocked.held:
        fill(crowd.kafka, topic, number + 1, 1)
    crowd.until(lambda: not thread.is_alive(), "it reads what comes", of=[other])
    assert {(each.topic(), each.partition()) for each in messages} <= blocked.held


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_consume_hands_out_what_it_has_before_the_partitions_go(crowd: Crowd, strategy: str) -> None:
    """`consume` waits in several native calls. In the second call, statistics arrive after news of a rebalance.

    consume(10_000, 1.0)    native: 3 records  |  native: statistics ........ statistics  |  returns the 3 records
    the other member                              joins, and a heartbeat says so ^      ^ no rebalance here
    """
    topic, partitions = topic_of(crowd, 4)
    joining = threading.Event()

    def late(_: str) -> None:
        """Waits for the news of the rebalance, and then for the next statistics."""
        if joining.is_set():
            wait_until(lambda: reader._group.is_due, "a heartbeat names the rebalance")
            joining.clear()
            time.sleep(0.3)

    reader = crowd.add(strategy, statistics_interval_ms=100, stats_cb=late).follow(topic)
    other = crowd.add(strategy)
    crowd.settle(partitions, reader)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.02):
            fill(crowd.kafka, topic, 4, 1, start=number)
            number += 1

    def join() -> None:
        time.sleep(0.5)
        joining.set()
        other.follow(topic)
        while not stop.is_set():
            other.turn()

    threads = [threading.Thread(target=each) for each in (write, join)]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + TIMEOUT
        revoked = 0
        while len(reader.held) != 2 or len(other.held) != 2:
            before = len(reader.events)
            messages = reader.consume(10_000, 1.0)
            revoked += any(kind == "on_revoke" and gone for kind, gone in reader.events[before:])
            found = {(message.topic(), message.partition()) for message in messages if message.error() is None}
            assert found <= (reader.held if len(reader.events) > before else partitions)
            assert time.monotonic() < deadline
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert revoked == 1
    assert reader.held | other.held == partitions


@release_has("Producer.close")  # Before 2.13 a signal does not end the client's own poll either.
def test_an_interrupt_ends_a_poll_that_has_no_end() -> None:
    """Statistics between the signal and its handler do not suppress the interrupt."""
    program = """
import signal
from kafka_assignors.clients.confluent import Consumer, application_side
signal.signal(signal.SIGINT, signal.default_int_handler)
settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "statistics.interval.ms": 20, "log_level": 0}
consumer = Consumer(settings)
try:
    print("polling", flush=True)
    consumer.poll()
except KeyboardInterrupt:
    print("interrupted")
consumer.close()
"""
    command = [sys.executable, "-P", "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "polling\n"
        # By now the poll is in librdkafka. An earlier signal would end it as well, but this test is about a later one.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            said, complaints = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()
    assert (process.returncode, said) == (0, "interrupted\n"), complaints
