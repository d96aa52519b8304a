"""Our consumer on kafka-python, for the member's test-suite."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

import kafka
import kafka.errors
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.clients.kafka_python.commits import offsets_of
from kafka_assignors.member.data_path import Position
from support.confluent_group import fill
from support.readers.reader import HEARTBEAT_MS, SESSION_MS, Reader

if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import Partition
    from support.broker import Kafka

TELLS_OF_LOSSES = hasattr(kafka.ConsumerRebalanceListener, "on_partitions_lost")


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes the calls. The client calls its listener in each eager rebalance, also if there is nothing to revoke."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(self, revoked: set[Any]) -> None:
        if revoked:
            self._reader.note("revoked", {tuple(each) for each in revoked})

    def on_partitions_assigned(self, assigned: set[Any]) -> None:
        self._reader.note("assigned", {tuple(each) for each in assigned})

    def on_partitions_lost(self, lost: set[Any]) -> None:
        self._reader.note("lost", {tuple(each) for each in lost})


class KafkaPythonReader(Reader):
    """Our consumer on kafka-python."""

    tells_of_idleness = False
    hears_of_all = True

    def __init__(self, kafka: Kafka, group: str, strategy: Any, **settings: Any) -> None:
        super().__init__()
        self.consumer = KafkaConsumer(
            **{
                "bootstrap_servers": kafka.bootstrap_servers,
                "group_id": group,
                "partition_assignment_strategy": strategy,
                "auto_offset_reset": "earliest",
                "session_timeout_ms": settings.get("session_timeout_ms", SESSION_MS),
                "heartbeat_interval_ms": HEARTBEAT_MS,
                "max_poll_interval_ms": settings.get("max_poll_interval_ms", 300_000),
                "metadata_max_age_ms": 500,
                "enable_auto_commit": settings.get("auto_commit", False),
                "auto_commit_interval_ms": int(settings.get("auto_commit_interval", 5.0) * 1000),
                "request_timeout_ms": 15_000,
                "group_instance_id": settings.get("instance"),
                "on_rebalance": settings.get("on_rebalance"),
                **settings.get("further", {}),
            }
        )

    @property
    def side(self) -> ApplicationSide:
        side = self.consumer._group
        assert side is not None
        return side

    def follow(self, *topics: str) -> Self:
        self.consumer.subscribe(list(topics), listener=_Listener(self))
        return self

    def unsubscribe(self) -> None:
        held = self.held
        self.consumer.unsubscribe()
        # The client does not call its listener here.
        self.note("revoked", held)

    def turn(self, timeout: float = 0.02) -> None:
        try:
            found = self.consumer.poll(timeout * 1000)
        except Exception as error:
            # The client wraps the error of a listener.
            self.errors.append(error.__cause__ or error)
            return
        self.read += [(each.topic, each.partition, each.offset) for records in found.values() for each in records]

    def pause(self, partition: Partition) -> None:
        self.consumer.pause(kafka.TopicPartition(*partition))

    def resume(self, partition: Partition) -> None:
        self.consumer.resume(kafka.TopicPartition(*partition))

    def seek(self, partition: Partition, offset: int) -> None:
        self.consumer.seek(kafka.TopicPartition(*partition), offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = None
        if offsets is not None:
            given = offsets_of({each: Position(at) for each, at in offsets.items()})
        try:
            self.consumer.commit(given)
        except kafka.errors.KafkaError as error:
            self.errors.append(error)
            return self.committed_at(offsets or {})
        return set(offsets or self.held)

    def committed_at(self, offsets: dict[Partition, int]) -> set[Partition]:
        """The partitions whose committed offset is the given one: the client's error is that of the whole commit."""
        with contextlib.suppress(kafka.errors.KafkaError):
            return {
                each
                for each, at in offsets.items()
                if self.consumer.committed(kafka.TopicPartition(*each), timeout_ms=2000) == at
            }
        return set()

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found = {each: self.consumer.committed(kafka.TopicPartition(*each)) for each in partitions}
        return {each: -1 if at is None else at for each, at in found.items()}

    def close(self) -> None:
        self.consumer.close()

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        fill(kafka, topic, partitions, each)


def consumer_of(reader: Any) -> KafkaConsumer:
    consumer: KafkaConsumer = reader.consumer
    return consumer


def tps(partitions: Any) -> list[TopicPartition]:
    return [TopicPartition(*each) for each in sorted(partitions)]
