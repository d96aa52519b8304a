"""Listeners of our consumer on kafka-python: their calls, and the methods that they may call."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import kafka
import kafka.errors
import pytest

from kafka_assignors.clients.kafka_python import RebalanceDiffListener
from kafka_assignors.clients.kafka_python.commits import offset_and_metadata
from kafka_assignors.member.data_path import Position
from support.data_paths import Readers
from support.readers.on_kafka_python import TELLS_OF_LOSSES, KafkaPythonReader, consumer_of, tps
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.broker import Kafka


@pytest.fixture
def sticky(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        yield readers


@pytest.fixture
def cooperative(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "cooperative-sticky") as readers:
        yield readers


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_what_a_listener_of_an_assignment_may_do(embedded: Kafka, strategy: str) -> None:
    with Readers(embedded, KafkaPythonReader, strategy) as readers:
        topic, partitions = readers.topic(5, 10)
        reader = readers.add()
        consumer = consumer_of(reader)
        sought, first, last, paused, plain = tps(partitions)
        consumer.commit({plain: offset_and_metadata(Position(4))})
        seen: list[Any] = []

        def assigned(_: Any) -> None:
            seen.append(consumer.assignment())
            seen.append([consumer.position(each) for each in (plain, sought)])
            consumer.seek(sought, 7)
            consumer.seek_to_beginning(first)
            consumer.seek_to_end(last)
            consumer.pause(paused)
            seen.append([consumer.position(each) for each in (sought, first, last)])
            seen.append(consumer.poll(1000))

        reader.during["assigned"] = assigned
        reader.follow(topic)
        readers.until(lambda: len(reader.read) == 3 + 10 + 6, "it reads from there")
        assert seen == [set(tps(partitions)), [4, 0], [7, 0, 10], {}]
        readers.for_a_while(0.2)
        assert len(reader.read) == 19
        assert min(offset for _, number, offset in reader.read if number == plain.partition) == 4
        consumer.resume(paused)
        readers.until(lambda: len(reader.read) == 29, "the paused one is read")


def test_what_a_listener_of_a_revocation_may_do(cooperative: Readers) -> None:
    topic, partitions = cooperative.topic(2, 10)
    first = cooperative.add().follow(topic)
    consumer = consumer_of(first)
    cooperative.settle(partitions)
    cooperative.until(lambda: len(first.read) == 20, "all is read")
    seen: list[Any] = []
    assert first.errors == []

    def revoked(given: Any) -> None:
        seen.append(consumer.assignment())
        offsets = {each: offset_and_metadata(Position(consumer.position(each) or 0)) for each in tps(given)}
        consumer.commit(offsets)
        seen.append(consumer.poll(100))

    first.during["revoked"] = revoked
    second = cooperative.add().follow(topic)
    cooperative.settle(partitions)
    assert first.errors == []
    assert seen[:2] == [set(tps(partitions)), {}]
    cooperative.fill(topic, 2, 1)
    cooperative.until(lambda: second.read, "the next owner goes on")
    assert [offset for *_, offset in second.read] == [10]


def test_errors_of_a_listener_are_the_clients(sticky: Readers, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            raise LookupError("no such cache")

    topic, partitions = sticky.topic(1)
    consumer = consumer_of(sticky.add())
    consumer.subscribe([topic], listener=Failing())
    raised: list[BaseException] = []

    def poll() -> set[Any]:
        try:
            consumer.poll(20)
        except kafka.errors.KafkaError as error:
            raised.append(error)
        return consumer.assignment()

    wait_until(poll, "it is assigned")
    poll()
    assert [type(error.__cause__) for error in raised] == [LookupError] * TELLS_OF_LOSSES
    assert "no such cache" in caplog.text
    assert consumer.assignment() == set(tps(partitions))


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_the_diff_listener_hears_of_what_really_came_or_went(embedded: Kafka, strategy: str) -> None:
    heard: list[tuple[str, int]] = []

    class Caches(RebalanceDiffListener):
        def on_partitions_gained(self, partitions: list[Any]) -> None:
            heard.append(("gained", len(partitions)))

        def on_partitions_given_up(self, partitions: list[Any]) -> None:
            heard.append(("given up", len(partitions)))

    with Readers(embedded, KafkaPythonReader, strategy) as readers:
        topic, partitions = readers.topic(4)
        first = readers.add()
        listener = Caches()
        consumer_of(first).subscribe([topic], listener=listener)
        readers.settle(partitions)
        second = readers.add().follow(topic)
        readers.settle(partitions)
        second.close()
        readers.until(lambda: first.held == partitions, "it has all again", first)
        assert heard == [("gained", 4), ("given up", 2), ("gained", 2)]
        assert listener.held == tps(partitions)


def coroutines_run_on_the_clients_loop(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2)
    consumer = consumer_of(sticky.add())
    heard: list[Any] = []

    class Listener(kafka.AsyncConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            heard.append(("revoked", revoked))

        async def on_partitions_assigned(self, assigned: Any) -> None:
            await consumer._net.sleep(0.01)
            heard.append(("assigned", assigned, threading.current_thread() is not threading.main_thread()))

    consumer.subscribe([topic], listener=Listener())
    wait_until(lambda: (consumer.poll(20), consumer.assignment())[1], "it is assigned")
    assert heard == [("revoked", set()), ("assigned", set(tps(partitions)), True)]


# kafka-python 2 has no such listeners.
if TELLS_OF_LOSSES:
    test_coroutines_run_on_the_clients_loop = coroutines_run_on_the_clients_loop
