"""Consumers of ours on aiokafka in one group, for tests that run on an event loop of their own."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

from aiokafka import ConsumerRebalanceListener, TopicPartition

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from support.broker import unique
from support.confluent_group import fill
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from support.broker import Kafka

SESSION_MS = 6000


class Noting(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes the calls of the listener. Each call runs ``during``, and awaits its result if it is a coroutine."""

    def __init__(self, during: Callable[[str, set[TopicPartition]], Any] | None = None) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []
        self.during = during

    async def _note(self, event: str, partitions: set[TopicPartition]) -> None:
        self.calls.append((event, set(partitions)))
        result = None if self.during is None else self.during(event, partitions)
        if asyncio.iscoroutine(result):
            await result

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await self._note("revoked", revoked)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        await self._note("assigned", assigned)


class Members:
    """The consumers of one group. They are stopped at the end."""

    def __init__(self, kafka: Kafka, strategy: Any = "sticky") -> None:
        self.kafka = kafka
        self.group = unique("aio")
        self.strategy = strategy
        self.all: list[AIOKafkaConsumer] = []
        self.read: dict[AIOKafkaConsumer, list[tuple[str, int, int]]] = defaultdict(list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in self.all:
            await each.stop()

    def topic(self, partitions: int, records: int = 0) -> tuple[str, set[TopicPartition]]:
        """A new topic with `records` records in each partition; returns its name and its partitions."""
        name = self.kafka.create_topic(unique("topic"), partitions)
        self.fill(name, partitions, records)
        return name, {TopicPartition(name, each) for each in range(partitions)}

    def fill(self, topic: str, partitions: int, records: int) -> None:
        """Adds records to each partition."""
        if records:
            fill(self.kafka, topic, partitions, records)

    def make(self, *topics: str, **settings: Any) -> AIOKafkaConsumer:
        """A consumer that has not started."""
        given = {
            "bootstrap_servers": self.kafka.bootstrap_servers,
            "group_id": self.group,
            "partition_assignment_strategy": self.strategy,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 200,
            "metadata_max_age_ms": 500,
            "fetch_max_wait_ms": 50,
            "enable_auto_commit": False,
        }
        self.all.append(AIOKafkaConsumer(*topics, **given | settings))
        return self.all[-1]

    async def start(self, *topics: str, **settings: Any) -> AIOKafkaConsumer:
        """A consumer that has started."""
        made = self.make(*topics, **settings)
        await made.start()
        return made

    async def take(self, *consumers: AIOKafkaConsumer) -> None:
        """Reads for a moment."""
        for each in consumers:
            for records in (await each.getmany(timeout_ms=20)).values():
                self.read[each] += [(record.topic, record.partition, record.offset) for record in records]

    async def until(self, true: Callable[[], object], what: str, *readers: AIOKafkaConsumer) -> None:
        """Lets the loop run, and these consumers read, until `true()` holds."""
        deadline = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < deadline, f"not within {TIMEOUT} s: {what}; {dict(self.read)}"
            await self.take(*readers)
            await asyncio.sleep(0.005)

    async def settled(self, partitions: set[TopicPartition], *members: AIOKafkaConsumer) -> None:
        """Waits until these consumers have the partitions, each once, in one generation."""

        def settled() -> bool:
            shares = [each.assignment() for each in members]
            generations = {each._group_side.latest[1] for each in members}
            return (
                len(generations) == 1
                and not any(each._group_side.assigned.waiting for each in members)
                and sum(map(len, shares)) == len(partitions)
                and set().union(*shares) == partitions
            )

        await self.until(settled, f"{len(members)} members have {len(partitions)} partitions")


def run(kafka: Kafka, test: Callable[[Members], Coroutine[Any, Any, None]], strategy: Any = "sticky") -> None:
    """Runs a test with a group."""

    async def running() -> None:
        async with Members(kafka, strategy) as members:
            await test(members)

    asyncio.run(running())
