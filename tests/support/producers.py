"""Producers of kafka-python and aiokafka: without a network, to look into their accumulators, and at work.

An offline producer knows its topics, takes records, and drains none: kafka-python's sender waits for a producer id that
nobody gives it, aiokafka's was never started.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import kafka
from aiokafka.structs import PartitionMetadata as AioPartition
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import TopicPartition

from kafka_assignors.clients.aiokafka import AIOKafkaProducer
from kafka_assignors.clients.kafka_python import KafkaProducer
from support.offline import OfflineKafkaClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from support.broker import Kafka

# Nothing that a test waits for takes so long: what is sent before was not kept for it.
FOREVER_MS = 60_000
# With room for some ten records of 80 bytes, since the overhead of a batch is 61 bytes and that of a record about 8.
BATCH_BYTES = 1_024
VALUE = b"v" * 80


@contextlib.contextmanager
def offline_kafka_python(
    topics: Mapping[str, int],
    kind: Callable[..., Any] = KafkaProducer,
    leaders: Callable[[int], int] = lambda number: 0,
    **config: Any,
) -> Iterator[Any]:
    """A producer of kafka-python that never meets a broker; `leaders` gives the broker of a partition, -1 for none."""
    producer = kind(
        **{
            "bootstrap_servers": "127.0.0.1:1",
            "api_version": (3, 0),
            "kafka_client": OfflineKafkaClient,
            "linger_ms": FOREVER_MS,
            "batch_size": BATCH_BYTES,
            **config,
        }
    )
    partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
    producer._metadata._partitions = {
        name: {
            number: partition(
                error_code=0,
                partition_index=number,
                leader_id=leaders(number),
                leader_epoch=0,
                replica_nodes=[0],
                isr_nodes=[],
                offline_replicas=[],
            )
            for number in range(count)
        }
        for name, count in topics.items()
    }
    try:
        yield producer
    finally:
        producer._accumulator.abort_batches(kafka.errors.KafkaError("the test is over"))
        producer.close(timeout=0)
        producer._sender.join()


@contextlib.asynccontextmanager
async def offline_aiokafka(
    topics: Mapping[str, int], leaders: Callable[[int], int] = lambda number: 0, **config: Any
) -> AsyncIterator[Any]:
    """A producer of aiokafka that never meets a broker."""
    producer = AIOKafkaProducer(**{"linger_ms": FOREVER_MS, "max_batch_size": BATCH_BYTES, **config})
    producer._metadata._partitions = {
        name: {number: AioPartition(name, number, leaders(number), [0], [0], 0) for number in range(count)}
        for name, count in topics.items()
    }
    try:
        yield producer
    finally:
        await producer.stop()


def queued(producer: Any, topic: str = "t") -> dict[int, list[int]]:
    """Records in each waiting batch of each partition that has any."""
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
    """The batches of kafka-python's producer that wait for a partition."""
    batches: Sequence[Any] = producer._accumulator._batches[TopicPartition(topic, partition)]
    return batches


@dataclass(frozen=True)
class Record:
    """A record to send; its headers, if any, are one."""

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
    """What became of records: the partition of each, or the error with which `send` refused it."""

    outcomes: list[int | Exception] = field(default_factory=list)

    @property
    def partitions(self) -> list[int]:
        """The partitions, where all records were to be taken."""
        for outcome in self.outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return [outcome for outcome in self.outcomes if isinstance(outcome, int)]


def send_kafka_python(kafka: Kafka, records: Sequence[Record], transactional: bool = False, **config: Any) -> Sent:
    """Send records with our producer for kafka-python, and have them all delivered."""
    if transactional:
        config["transactional_id"] = "of the test"
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, linger_ms=FOREVER_MS, batch_size=BATCH_BYTES, **config
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
    """Send records with our producer for aiokafka, and have them all delivered."""
    if transactional:
        config["transactional_id"] = "of the other test"
    return asyncio.run(_send_aiokafka(kafka, records, transactional, config))


async def _send_aiokafka(kafka: Kafka, records: Sequence[Record], transactional: bool, config: dict[str, Any]) -> Sent:
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, linger_ms=FOREVER_MS, max_batch_size=BATCH_BYTES, **config
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
            # aiokafka's `flush` waits for the batches to have lingered.
            await producer._message_accumulator.flush_for_commit()
        return Sent([each if isinstance(each, Exception) else (await each).partition for each in taken])
