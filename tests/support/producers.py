"""Our producers for kafka-python and aiokafka at work, and their queues."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.structs import TopicPartition

from kafka_assignors.clients.aiokafka import AIOKafkaProducer
from kafka_assignors.clients.kafka_python import KafkaProducer
from support.features import has

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.broker import Kafka

# A linger that is longer than any test. A record that is sent in a test is therefore sent for another reason.
FOREVER_MS = 60_000
# Room for about ten records of 80 bytes: the overhead of a batch is 61 bytes, that of a record about 8.
BATCH_BYTES = 1_024
VALUE = b"v" * 80


def queued(producer: Any, topic: str = "t") -> dict[int, list[int]]:
    """The number of records in each waiting batch, for each partition with such batches."""
    accumulator = getattr(producer, "_accumulator", None) or producer._message_accumulator
    return {
        tp.partition: [batch.record_count for batch in batches]
        for tp, batches in sorted(accumulator._batches.items())
        if tp.topic == topic and batches
    }


def destination(future: Any) -> int:
    """The partition of a record that kafka-python's producer took."""
    partition: int = future._produce_future.topic_partition.partition
    return partition


def queue(producer: Any, partition: int, topic: str = "t") -> Sequence[Any]:
    """The batches of kafka-python's producer that wait for a partition to be sent."""
    batches: Sequence[Any] = producer._accumulator._batches[TopicPartition(topic, partition)]
    return batches


@dataclass(frozen=True)
class Record:
    """A record to send, with at most one header."""

    topic: str
    value: bytes | None = VALUE
    key: bytes | None = None
    partition: int | None = None
    header: tuple[str, bytes] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        headers = [] if self.header is None else [self.header]
        return {"value": self.value, "key": self.key, "partition": self.partition, "headers": headers}


@dataclass
class Sent:
    """The result of each record: its partition, or the error with which `send` refused it."""

    outcomes: list[int | Exception] = field(default_factory=list)

    @property
    def partitions(self) -> list[int]:
        """The partitions. Fails if `send` refused a record."""
        for outcome in self.outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return [outcome for outcome in self.outcomes if isinstance(outcome, int)]


def send_kafka_python(kafka: Kafka, records: Sequence[Record], transactional: bool = False, **config: Any) -> Sent:
    """Send records with our producer for kafka-python, and wait until all are delivered."""
    if transactional:
        config["transactional_id"] = "of the test"
    # kafka-python 2 has no `with`.
    with closing(
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=FOREVER_MS, batch_size=BATCH_BYTES, **config)
    ) as producer:
        if transactional:
            producer.init_transactions()
            producer.begin_transaction()
        taken: list[Any] = []
        for record in records:
            try:
                taken.append(producer.send(record.topic, **record.arguments))
            except Exception as error:
                taken.append(error)
        if transactional:
            producer.commit_transaction()
        producer.flush(timeout=60)
        return Sent([each if isinstance(each, Exception) else each.get(timeout=60).partition for each in taken])


def send_aiokafka(kafka: Kafka, records: Sequence[Record], transactional: bool = False, **config: Any) -> Sent:
    """Send records with our producer for aiokafka, and wait until all are delivered."""
    if transactional:
        config["transactional_id"] = "of the other test"
    return asyncio.run(_send_aiokafka(kafka, records, transactional, config))


async def _send_aiokafka(kafka: Kafka, records: Sequence[Record], transactional: bool, config: dict[str, Any]) -> Sent:
    # Before 0.14 batches do not linger: after each request the sender pauses for `linger_ms`.
    linger = FOREVER_MS if has("batches that linger") else 0
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, linger_ms=linger, max_batch_size=BATCH_BYTES, **config
    )
    async with producer:
        if transactional:
            await producer.begin_transaction()
        taken: list[Any] = []
        for record in records:
            try:
                taken.append(await producer.send(record.topic, **record.arguments))
            except Exception as error:
                taken.append(error)
        if transactional:
            await producer.commit_transaction()
        else:
            # aiokafka's `flush` would wait for the end of the batches' linger.
            await producer._message_accumulator.flush_for_commit()
        return Sent([each if isinstance(each, Exception) else (await each).partition for each in taken])
