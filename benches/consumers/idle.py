"""The CPU time of a consumer that is given no records: ours in a group, and the client's own without one."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiokafka
import kafka

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.broker import Kafka

__all__ = ["CLIENTS", "Idle"]


class Idle(NamedTuple):
    """Seconds.

    Attributes:
        thread: CPU time of the membership's thread; 0.0 without a membership.
        process: CPU time of the process.
        elapsed: by the clock.
    """

    thread: float
    process: float
    elapsed: float


class _Clock:
    """Measures from now on. CPU time of another thread is in /proc, so it needs Linux."""

    def __init__(self, group: str | None) -> None:
        self._status: Path | None = None
        if group is not None:
            name = f"kafka-assignors-member-{group}"
            (thread,) = (each for each in threading.enumerate() if each.name == name)
            self._status = Path(f"/proc/self/task/{thread.native_id}/schedstat")
        self._began = self._now()

    def _now(self) -> Idle:
        thread = 0 if self._status is None else int(self._status.read_text().split()[0])
        return Idle(thread / 1e9, time.process_time(), time.perf_counter())

    def left(self, seconds: float) -> float:
        """The rest of this number of seconds since the beginning."""
        return max(0.0, self._began.elapsed + seconds - time.perf_counter())

    def found(self) -> Idle:
        now = self._now()
        return Idle(*(after - before for after, before in zip(now, self._began, strict=True)))


def _settings(kafka_: Kafka) -> dict[str, Any]:
    return {"bootstrap_servers": kafka_.bootstrap_servers, "auto_offset_reset": "latest"}


def _kafka_python(kafka_: Kafka, topic: str, partitions: int, seconds: float, *, ours: bool) -> Idle:
    group = unique("bench") if ours else None
    if ours:
        consumer: Any = KafkaConsumer(topic, group_id=group, **_settings(kafka_))
    else:
        consumer = kafka.KafkaConsumer(**_settings(kafka_))
        consumer.assign([kafka.TopicPartition(topic, number) for number in range(partitions)])
    try:
        while len(consumer.assignment()) < partitions:
            consumer.poll(timeout_ms=100)
        consumer.poll(timeout_ms=2000)
        clock = _Clock(group)
        while left := clock.left(seconds):
            consumer.poll(timeout_ms=min(60_000, int(left * 1000) + 1))
        return clock.found()
    finally:
        consumer.close()


def _aiokafka(kafka_: Kafka, topic: str, partitions: int, seconds: float, *, ours: bool) -> Idle:
    async def run() -> Idle:
        group = unique("bench") if ours else None
        if ours:
            consumer: Any = AIOKafkaConsumer(topic, group_id=group, **_settings(kafka_))
        else:
            consumer = aiokafka.AIOKafkaConsumer(**_settings(kafka_))
        await consumer.start()
        try:
            if not ours:
                consumer.assign([aiokafka.TopicPartition(topic, number) for number in range(partitions)])
            await consumer.getmany(timeout_ms=2000)
            clock = _Clock(group)
            while left := clock.left(seconds):
                await consumer.getmany(timeout_ms=min(60_000, int(left * 1000) + 1))
            return clock.found()
        finally:
            await consumer.stop()

    return asyncio.run(run())


CLIENTS: dict[str, Callable[..., Idle]] = {"kafka-python": _kafka_python, "aiokafka": _aiokafka}
"""How to measure, by client."""
