"""A member on aiokafka. Each has an event loop of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from consumers.member import POLL_SECONDS, Member
from kafka_assignors.clients.aiokafka import AIOKafkaConsumer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AiokafkaMember"]


class AiokafkaMember(Member):
    """With our class, or with the client's own."""

    client = "aiokafka"

    def run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        settings = self.spec.python_settings()
        if self.contender.is_ours:
            consumer: Any = AIOKafkaConsumer(**settings)
        else:
            own = (RoundRobinPartitionAssignor,)
            consumer = aiokafka.AIOKafkaConsumer(**settings | {"partition_assignment_strategy": own})
        consumer.subscribe([self.spec.topic], listener=_Listener(self))
        await consumer.start()
        while not self.is_stopped:
            for partition in await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000)):
                self.reads(partition.partition)
        self.closes()
        await consumer.stop()


class _Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Iterable[aiokafka.TopicPartition]) -> None:
        self._member.assigned(each.partition for each in assigned)

    def on_partitions_revoked(self, revoked: Iterable[aiokafka.TopicPartition]) -> None:
        self._member.revoked(each.partition for each in revoked)
