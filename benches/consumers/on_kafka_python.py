"""A member on kafka-python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

from consumers.member import POLL_SECONDS, Member
from kafka_assignors.clients.kafka_python import KafkaConsumer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KafkaPythonMember"]

_OWN = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class KafkaPythonMember(Member):
    """With our class, or with the client's own."""

    client = "kafka-python"

    def run(self) -> None:
        settings = self.spec.python_settings()
        if self.contender.is_ours:
            consumer: Any = KafkaConsumer(**settings)
        else:
            own = [_OWN[self.contender.strategy]]
            consumer = kafka.KafkaConsumer(**settings | {"partition_assignment_strategy": own})
            if self.is_first:
                # The client's leader (3.0.12) does not wait for the metadata of its topics. A leader that plans without
                # metadata assigns nothing, and never rebalances again. No other member of the group leads.
                consumer.partitions_for_topic(self.spec.topic)
        consumer.subscribe([self.spec.topic], listener=_Listener(self))
        while not self.is_stopped:
            for partition in consumer.poll(timeout_ms=int(POLL_SECONDS * 1000)):
                self.reads(partition.partition)
        self.closes()
        consumer.close()


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Iterable[kafka.TopicPartition]) -> None:
        self._member.assigned(each.partition for each in assigned)

    def on_partitions_revoked(self, revoked: Iterable[kafka.TopicPartition]) -> None:
        self._member.revoked(each.partition for each in revoked)
