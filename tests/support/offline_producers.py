"""Producers of kafka-python 3 and aiokafka without a broker, whose accumulators a test reads.

They know their topics and take records, but drain none. kafka-python's sender waits for a producer id that never comes;
aiokafka's sender is not started.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import kafka
from aiokafka.structs import PartitionMetadata as AioPartition
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import MetadataResponse

from kafka_assignors.clients.aiokafka import AIOKafkaProducer
from kafka_assignors.clients.kafka_python import KafkaProducer
from support.producers import BATCH_BYTES, FOREVER_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping


class OfflineKafkaClient(KafkaNetClient):  # type: ignore[misc]
    """kafka-python's client, without any connection to a broker."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self._manager.cluster.start_refresh_loop = lambda: None


@contextlib.contextmanager
def offline_kafka_python(
    topics: Mapping[str, int],
    kind: Callable[..., Any] = KafkaProducer,
    leaders: Callable[[int], int] = lambda number: 0,
    **config: Any,
) -> Iterator[Any]:
    """A producer of kafka-python without a broker. `leaders` gives the broker of each partition, -1 for none."""
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
    """A producer of aiokafka without a broker."""
    producer = AIOKafkaProducer(**{"linger_ms": FOREVER_MS, "max_batch_size": BATCH_BYTES, **config})
    producer._metadata._partitions = {
        name: {number: AioPartition(name, number, leaders(number), [0], [0], 0) for number in range(count)}
        for name, count in topics.items()
    }
    try:
        yield producer
    finally:
        await producer.stop()
