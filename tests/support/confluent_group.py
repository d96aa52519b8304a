"""Consumers of `kafka_assignors.clients.confluent`. The test's thread polls them in turn."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka

from kafka_assignors.clients.confluent import Consumer
from support.broker import unique
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from support.broker import Kafka

Partition = tuple[str, int]

SESSION_MS = 6000
_FUNCTIONS = {"on_commit", "on_rebalance", "on_broker_assignor", "stats_cb", "error_cb", "oauth_cb"}


def generation_in(metadata: Any) -> int:
    """The generation in the group metadata of a consumer."""
    # The generation follows a magic of seven bytes.
    return int.from_bytes(metadata[7:11], sys.byteorder, signed=True)


class Observed(Consumer):
    """A consumer that keeps the calls of its callbacks and the records that it read.

    ``events`` are the calls in order, each with its name and its partitions. ``assigned_in`` is the generation of the
    last call of `on_assign`.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.events: list[tuple[str, list[Partition]]] = []
        self.reports: list[Any] = []
        self.read: list[tuple[Any, Any, Any]] = []
        self.errors: list[confluent_kafka.KafkaError] = []
        self.assigned_in = -1
        super().__init__({"on_rebalance": self.reports.append} | settings)

    def follow(self, *topics: str, **callbacks: Callable[..., object]) -> Self:
        """Subscribes. The callbacks write their arguments into `events`, and then call the test's."""

        def noting(name: str) -> Callable[[Any, list[Any]], None]:
            def note(consumer: Any, partitions: list[Any]) -> None:
                self.events.append((name, sorted((each.topic, each.partition) for each in partitions)))
                if name == "on_assign":
                    self.assigned_in = generation_in(consumer.consumer_group_metadata())
                if name in callbacks:
                    callbacks[name](consumer, partitions)

            return note

        self.subscribe(list(topics), **{name: noting(name) for name in ("on_assign", "on_revoke", "on_lost")})
        return self

    def was_told(self, event: str) -> bool:
        """Whether a callback of this name was called."""
        return event in [kind for kind, _ in self.events]

    def turn(self, timeout: float = 0.02) -> None:
        """Polls once."""
        message = self.poll(timeout)
        if message is None:
            return
        error = message.error()
        if error is not None:
            self.errors.append(error)
        else:
            self.read.append((message.topic(), message.partition(), message.offset()))

    @property
    def held(self) -> set[Partition]:
        return {(each.topic, each.partition) for each in self.assignment()}


class Crowd:
    """Several consumers of one group on one Kafka. They are closed at the end."""

    def __init__(self, kafka: Kafka, group: str) -> None:
        self.kafka = kafka
        self.group = group
        self.consumers: list[Observed] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for consumer in self.consumers:
            consumer.close()

    def add(self, strategy: Any = "sticky", **settings: Any) -> Observed:
        """A consumer without a subscription. The names in ``settings`` have underscores for dots."""
        dotted = {name.replace("_", "."): value for name, value in settings.items() if name not in _FUNCTIONS}
        functions = {name: value for name, value in settings.items() if name in _FUNCTIONS}
        consumer = Observed(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": self.group,
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 200,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
            }
            | dotted
            | functions
        )
        self.consumers.append(consumer)
        return consumer

    def until(
        self, true: Callable[[], object], what: str, *, of: Iterable[Observed] | None = None, within: float = TIMEOUT
    ) -> None:
        """Polls until `true()` holds."""
        deadline = time.monotonic() + within
        while not true():
            if time.monotonic() > deadline:
                state = [(each.events[-4:], each.errors, len(each.read)) for each in self.consumers]
                raise AssertionError(f"not within {within} s: {what}; events, errors and numbers read: {state}")
            for consumer in self.consumers if of is None else of:
                consumer.turn()

    def settle(self, partitions: set[Partition], *consumers: Observed) -> None:
        """Polls until the consumers own the partitions, each partition once, and `on_assign` of all was called in one
        generation.

        A cooperative member whose partitions all stay gets `on_assign` without partitions, which counts here.
        """
        members = consumers or tuple(self.consumers)

        def settled() -> bool:
            if len({each.assigned_in for each in members}) > 1:
                return False
            held = [each.held for each in members]
            return all(held) and sum(map(len, held)) == len(partitions) and set().union(*held) == partitions

        self.until(settled, f"{len(members)} members own {len(partitions)} partitions", of=members)

    def leave(self, consumer: Observed) -> None:
        """Closes one consumer."""
        consumer.close()
        self.consumers.remove(consumer)


def topic_of(crowd: Crowd, partitions: int, records: int = 0) -> tuple[str, set[Partition]]:
    """A new topic with `records` records in each partition; returns its name and its partitions."""
    topic = crowd.kafka.create_topic(unique("topic"), partitions)
    if records:
        fill(crowd.kafka, topic, partitions, records)
    return topic, {(topic, number) for number in range(partitions)}


def fill(kafka: Kafka, topic: str, partitions: int, each: int, start: int = 0, within: float = TIMEOUT) -> None:
    """Writes `each` records to every partition, within `within` seconds. The values are the records' numbers."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for number in range(start, start + each):
        for partition in range(partitions):
            producer.produce(topic, str(number).encode(), partition=partition)
        producer.poll(0)
    left = producer.flush(within)
    assert left == 0, f"{left} records of {partitions * each} were not taken within {within} s"


def offsets(consumer: confluent_kafka.Consumer, topic: str, partitions: int) -> list[int]:
    """The group's committed offsets, by partition."""
    asked = [confluent_kafka.TopicPartition(topic, number) for number in range(partitions)]
    return [each.offset for each in consumer.committed(asked, timeout=TIMEOUT)]
