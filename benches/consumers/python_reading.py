"""The time of reading with kafka-python and aiokafka: ours in a group, and the client's own with manual assignment."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import aiokafka
import kafka

from consumers.reading import PARTITIONS
from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.broker import Kafka

__all__ = ["WAYS", "Cost", "compare"]

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Cost:
    """Seconds from the first records to the last."""

    cpu: float
    """CPU time of the process: the client may have threads, and the membership has one."""
    wall: float


class _Count:
    """Counts the records down. The clocks start with the first of them, so that connecting and joining do not count."""

    def __init__(self, records: int) -> None:
        self.left = records
        self._cpu = self._wall = 0.0
        self._late = time.perf_counter() + PATIENCE_S

    def take(self, records: int) -> bool:
        """Whether more records are to come."""
        if records and not self._cpu:
            self._cpu, self._wall = time.process_time(), time.perf_counter()
        elif not records and time.perf_counter() > self._late:
            raise TimeoutError(f"{self.left} records were not read within {PATIENCE_S} s")
        self.left -= records
        return self.left > 0

    @property
    def cost(self) -> Cost:
        return Cost(time.process_time() - self._cpu, time.perf_counter() - self._wall)


def _kafka_python(kafka_: Kafka, topic: str, *, ours: bool) -> kafka.KafkaConsumer:
    # The checksums in Python would be five sixths of the time.
    settings = _settings(kafka_) | {"check_crcs": False}
    if ours:
        return KafkaConsumer(topic, group_id=unique("bench"), **settings)
    consumer = kafka.KafkaConsumer(**settings)
    numbers = consumer.partitions_for_topic(topic) or ()
    consumer.assign([kafka.TopicPartition(topic, number) for number in numbers])
    return consumer


def read_by_poll(kafka_: Kafka, topic: str, records: int, *, ours: bool) -> Cost:
    """kafka-python, `poll`."""
    count = _Count(records)
    consumer = _kafka_python(kafka_, topic, ours=ours)
    try:
        while count.take(sum(map(len, consumer.poll(timeout_ms=1000).values()))):
            pass
        return count.cost
    finally:
        consumer.close()


def read_by_iteration(kafka_: Kafka, topic: str, records: int, *, ours: bool) -> Cost:
    """kafka-python, `for record in consumer`."""
    count = _Count(records)
    consumer = _kafka_python(kafka_, topic, ours=ours)
    try:
        for _ in consumer:
            if not count.take(1):
                break
        return count.cost
    finally:
        consumer.close()


async def _by_getmany(consumer: Any, count: _Count) -> None:
    while count.take(sum(map(len, (await consumer.getmany(timeout_ms=1000, max_records=500)).values()))):
        pass


async def _by_getone(consumer: Any, count: _Count) -> None:
    while True:
        await consumer.getone()
        if not count.take(1):
            break


async def _by_iteration(consumer: Any, count: _Count) -> None:
    async for _ in consumer:
        if not count.take(1):
            break


def _on_a_loop(read: Callable[[Any, _Count], Awaitable[None]]) -> Way:
    async def run(kafka_: Kafka, topic: str, records: int, ours: bool) -> Cost:
        count = _Count(records)
        if ours:
            consumer: Any = AIOKafkaConsumer(topic, group_id=unique("bench"), **_settings(kafka_))
        else:
            consumer = aiokafka.AIOKafkaConsumer(**_settings(kafka_))
        await consumer.start()
        try:
            if not ours:
                # The client has no metadata of the topic before a partition of it is assigned.
                consumer.assign([aiokafka.TopicPartition(topic, number) for number in range(PARTITIONS)])
            await read(consumer, count)
            return count.cost
        finally:
            await consumer.stop()

    def timed(kafka_: Kafka, topic: str, records: int, *, ours: bool) -> Cost:
        return asyncio.run(run(kafka_, topic, records, ours))

    return timed


Way: TypeAlias = "Callable[..., Cost]"

WAYS: dict[str, Way] = {
    "kafka-python: poll()": read_by_poll,
    "kafka-python: iteration": read_by_iteration,
    "aiokafka: getmany()": _on_a_loop(_by_getmany),
    "aiokafka: getone()": _on_a_loop(_by_getone),
    "aiokafka: async for": _on_a_loop(_by_iteration),
}
"""How an application reads, by client."""


def compare(kafka_: Kafka, topic: str, records: int, way: str, rounds: int) -> tuple[Cost, Cost]:
    """The medians of ours and of the client's own, in turns; each is first in half of the rounds.

    The first round does not count.
    """
    costs: dict[bool, list[Cost]] = {True: [], False: []}
    for number in range(rounds + 1):
        for ours in (True, False) if number % 2 == 0 else (False, True):
            cost = WAYS[way](kafka_, topic, records, ours=ours)
            if number:
                costs[ours].append(cost)
    mine, theirs = (
        Cost(median(each.cpu for each in found), median(each.wall for each in found)) for found in costs.values()
    )
    return mine, theirs


def _settings(kafka_: Kafka) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka_.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
