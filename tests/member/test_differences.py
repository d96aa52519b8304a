"""KIP-54's `RebalanceDiffListener` as the listener of each of our consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.clients import aiokafka, confluent, kafka_python
from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka
from support.data_paths import Readers
from support.raw_group import expel
from support.readers.on_aiokafka import AiokafkaReader
from support.readers.on_confluent import ConfluentReader
from support.readers.on_kafka_python import KafkaPythonReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.member.data_path import Partition
    from support.readers.reader import Reader

Heard = list[tuple[str, set["Partition"]]]


class Noting:
    """Notes the calls. A base class of each client's listener."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: Heard = []

    def on_partitions_gained(self, partitions: list[Any]) -> None:
        self.heard.append(("gained", {(each.topic, each.partition) for each in partitions}))

    def on_partitions_given_up(self, partitions: list[Any]) -> None:
        self.heard.append(("given up", {(each.topic, each.partition) for each in partitions}))


class OfConfluent(Noting, confluent.RebalanceDiffListener):
    pass


class OfKafkaPython(Noting, kafka_python.RebalanceDiffListener):
    pass


class OfAiokafka(Noting, aiokafka.RebalanceDiffListener):
    pass


def listen(reader: Reader, topic: str) -> Any:
    """Subscribes with a listener of the client's kind, and returns it."""
    if isinstance(reader, ConfluentReader):
        on_confluent = OfConfluent()
        reader.consumer.subscribe([topic], **on_confluent.callbacks)
        return on_confluent
    if isinstance(reader, KafkaPythonReader):
        on_kafka_python = OfKafkaPython()
        reader.consumer.subscribe([topic], listener=on_kafka_python)
        return on_kafka_python
    assert isinstance(reader, AiokafkaReader)
    on_aiokafka = OfAiokafka()
    reader.loop.call(reader.consumer.subscribe, [topic], None, on_aiokafka)
    return on_aiokafka


def close(reader: Reader, listener: Any) -> None:
    """Closes both. Only aiokafka's listener is closed by a coroutine."""
    reader.close()
    if isinstance(reader, AiokafkaReader):
        reader.loop.run(listener.close())
    else:
        listener.close()


@pytest.fixture
def own() -> Iterator[EmbeddedKafka]:
    """An embedded Kafka for this test alone, so that the injected faults affect no other test."""
    with EmbeddedKafka() as kafka:
        yield kafka


@pytest.fixture(
    params=[ConfluentReader, KafkaPythonReader, AiokafkaReader], ids=["confluent", "kafka-python", "aiokafka"]
)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["sticky", "cooperative-sticky"])
def watched(request: pytest.FixtureRequest, own: EmbeddedKafka, kind: Any) -> Iterator[Readers]:
    with Readers(Kafka(own.bootstrap_servers, "embedded"), kind, request.param) as readers:
        yield readers


def test_it_hears_what_really_came_or_went(watched: Readers) -> None:
    topic, partitions = watched.topic(4)
    first, second = watched.add(), watched.add()
    mine = listen(first, topic)
    watched.settle(partitions, first)
    theirs = listen(second, topic)
    watched.settle(partitions)
    moved = set(second.held)
    assert (len(moved), mine.heard, theirs.heard) == (
        2,
        [("gained", partitions), ("given up", moved)],
        [("gained", moved)],
    )
    close(second, theirs)
    assert theirs.heard[1:] == [("given up", moved)]
    watched.until(lambda: len(mine.held) == 4, "the first has all again", first)
    assert mine.heard[2:] == [("gained", moved)]
    close(first, mine)
    assert mine.heard[3:] == [("given up", partitions)]
    assert mine.held == theirs.held == []


def test_what_is_lost_is_given_up_at_once(watched: Readers, own: EmbeddedKafka) -> None:
    """No lost partition counts as kept: another member may have owned it meanwhile."""
    topic, partitions = watched.topic(2)
    reader = watched.add()
    listener = listen(reader, topic)
    watched.settle(partitions)
    expel(own, watched.group)
    watched.until(
        lambda: listener.heard[1:] and listener.heard[-1][0] == "gained" and len(listener.held) == 2,
        "it has them again",
    )
    assert listener.heard == [("gained", partitions), ("given up", partitions), ("gained", partitions)]


def test_a_missed_generation_keeps_nothing(watched: Readers, own: EmbeddedKafka) -> None:
    """The group formed a generation without this member. The member then joins with a new member id."""
    topic, partitions = watched.topic(2)
    away, other = watched.add(session_timeout_ms=2000, max_poll_interval_ms=2000), watched.add()
    listener = listen(away, topic)
    watched.settle(partitions, away)
    other.follow(topic)
    # Only the other consumer is polled, so that `away` exceeds its `max_poll_interval_ms` and leaves.
    watched.until(lambda: other.held == partitions, "the other one has everything", other)
    watched.settle(partitions)
    ups = [event for event in listener.heard if event[0] == "given up"]
    assert set().union(*(gone for _, gone in ups)) == partitions
    assert listener.heard[-1] == ("gained", away.held)
