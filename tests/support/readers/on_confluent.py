"""Our consumer on confluent-kafka, for the member's test-suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import confluent_kafka
from confluent_kafka import TopicPartition

from support.confluent_group import Observed, fill
from support.readers.reader import HEARTBEAT_MS, SESSION_MS, Reader
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import ListenerEvent, Partition
    from support.broker import Kafka


class ConfluentReader(Reader):
    """Our consumer on confluent-kafka."""

    def __init__(self, kafka: Kafka, group: str, strategy: Any, **settings: Any) -> None:
        super().__init__()
        self.consumer = Observed(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": settings.get("session_timeout_ms", SESSION_MS),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "max.poll.interval.ms": settings.get("max_poll_interval_ms", 300_000),
                "topic.metadata.refresh.interval.ms": 500,
                "enable.auto.commit": settings.get("auto_commit", False),
                "auto.commit.interval.ms": int(settings.get("auto_commit_interval", 5.0) * 1000),
                "socket.timeout.ms": 2000,
                "log_level": 0,
                **({"group.instance.id": settings["instance"]} if "instance" in settings else {}),
                **({"on_rebalance": settings["on_rebalance"]} if "on_rebalance" in settings else {}),
            }
        )

    @property
    def side(self) -> ApplicationSide:
        return self.consumer._group

    def follow(self, *topics: str) -> Self:
        def noting(event: ListenerEvent) -> Callable[[Any, list[Any]], None]:
            return lambda _, partitions: self.note(event, [(each.topic, each.partition) for each in partitions])

        callbacks = {"on_assign": noting("assigned"), "on_revoke": noting("revoked"), "on_lost": noting("lost")}
        self.consumer.subscribe(list(topics), **callbacks)
        return self

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    def turn(self, timeout: float = 0.02) -> None:
        try:
            message = self.consumer.poll(timeout)
        except Exception as error:
            self.errors.append(error)
            return
        if message is not None and message.error() is not None:
            self.errors.append(confluent_kafka.KafkaException(message.error()))
        elif message is not None:
            self.read.append((message.topic() or "", message.partition() or 0, message.offset() or 0))

    def pause(self, partition: Partition) -> None:
        self.consumer.pause([TopicPartition(*partition)])

    def resume(self, partition: Partition) -> None:
        self.consumer.resume([TopicPartition(*partition)])

    def seek(self, partition: Partition, offset: int) -> None:
        self.consumer.seek(TopicPartition(*partition, offset))

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = {} if offsets is None else {"offsets": [TopicPartition(*each, at) for each, at in offsets.items()]}
        try:
            done = self.consumer.commit(asynchronous=False, **given)
        except confluent_kafka.KafkaException as error:
            self.errors.append(error)
            return set()
        return {(each.topic, each.partition) for each in done or () if each.error is None and each.offset >= 0}

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found = self.consumer.committed([TopicPartition(*each) for each in partitions], timeout=TIMEOUT)
        return {(each.topic, each.partition): max(-1, each.offset) for each in found}

    def close(self) -> None:
        self.consumer.close()

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        fill(kafka, topic, partitions, each)
