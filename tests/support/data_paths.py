"""The data paths that the member's test-suite runs on, one row each: consumers with the same few methods.

A test's thread polls the consumers of a group in turn. A further client needs a subclass of `Reader`, and an entry
in `DATA_PATHS`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from support.broker import unique
from support.readers.in_memory import FakeLoopReader, FakeReader
from support.readers.on_aiokafka import AiokafkaReader
from support.readers.on_confluent import ConfluentReader
from support.readers.on_kafka_python import KafkaPythonReader
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from kafka_assignors import Assignor
    from kafka_assignors.member.data_path import Partition
    from support.broker import Kafka
    from support.readers.reader import Reader

Kind: TypeAlias = type[ConfluentReader] | type[KafkaPythonReader] | type[AiokafkaReader] | type[FakeReader]

DATA_PATHS: dict[str, Kind] = {
    "confluent": ConfluentReader,
    "kafka-python": KafkaPythonReader,
    "aiokafka": AiokafkaReader,
    "in memory": FakeReader,
    "in memory, on a loop": FakeLoopReader,
}

Strategy: TypeAlias = "str | Assignor | list[str | Assignor]"


class Readers:
    """Several consumers of one group on one Kafka. They are closed at the end."""

    def __init__(self, kafka: Kafka, kind: Kind, strategy: Strategy) -> None:
        self.kafka = kafka
        self.kind = kind
        self.strategy = strategy
        self.group = unique("member")
        self.all: list[Reader] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for reader in self.all:
            reader.during.clear()
            reader.close()

    @property
    def is_cooperative(self) -> bool:
        return isinstance(self.strategy, str) and self.strategy.startswith("cooperative")

    def add(self, **settings: Any) -> Reader:
        """A consumer without a subscription."""
        self.all.append(self.kind(self.kafka, self.group, self.strategy, **settings))
        return self.all[-1]

    def topic(self, partitions: int, records: int = 0) -> tuple[str, set[Partition]]:
        """A new topic with `records` records in each partition; returns its name and its partitions."""
        name = self.kafka.create_topic(unique("topic"), partitions)
        self.fill(name, partitions, records)
        return name, {(name, number) for number in range(partitions)}

    def fill(self, topic: str, partitions: int, records: int) -> None:
        """Adds records to each partition."""
        if records:
            self.kind.fill(self.kafka, topic, partitions, records)

    def until(self, true: Callable[[], object], what: str, *readers: Reader, within: float = TIMEOUT) -> None:
        """Polls the readers in turn until `true()` holds."""
        deadline = time.monotonic() + within
        while not true():
            if time.monotonic() > deadline:
                state = [(each.events[-4:], each.errors[-4:], len(each.read)) for each in self.all]
                raise AssertionError(f"not within {within} s: {what}; events, errors and numbers read: {state}")
            for reader in readers or self.all:
                reader.turn()

    def for_a_while(self, seconds: float, *readers: Reader) -> None:
        """Polls the readers in turn for `seconds`."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end, "time passes", *readers)

    def settle(self, partitions: set[Partition], *readers: Reader) -> None:
        """Polls these consumers in turn until they hold the partitions, each partition once, in one generation."""
        members = readers or tuple(self.all)

        def settled() -> bool:
            if len({each.side.latest[1] for each in members}) > 1:
                return False
            held = [each.held for each in members]
            return all(held) and sum(map(len, held)) == len(partitions) and set().union(*held) == partitions

        self.until(settled, f"{len(members)} members hold {len(partitions)} partitions", *members)
