"""Producers of kafka-python 3 and aiokafka without a broker, whose accumulators a test reads.

They have the metadata of their topics, as after a broker's answer. They accept records and send none: kafka-python's
sender waits for a producer id that never arrives, and aiokafka's sender is not started.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import kafka
from aiokafka.protocol.metadata import MetadataResponse_v1 as AiokafkaMetadata
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import MetadataResponse as KafkaPythonMetadata

from kafka_assignors.clients.aiokafka import AIOKafkaProducer
from kafka_assignors.clients.kafka_python import KafkaProducer
from support.producers import BATCH_BYTES, FOREVER_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping


class OfflineKafkaClient(KafkaNetClient):  # type: ignore[misc]
    """kafka-python's client, without any connection to a broker."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self.cluster.start_refresh_loop = lambda: None


@contextlib.contextmanager
def offline_kafka_python(
    topics: Mapping[str, int],
    kind: Callable[..., Any] = KafkaProducer,
    leaders: Callable[[int], int] = lambda number: 0,
    **config: Any,
) -> Iterator[Any]:
    """A producer of kafka-python without a broker. `leaders` gives the broker of each partition."""
    response = KafkaPythonMetadata
    topic = response.MetadataResponseTopic
    answer = response(
        throttle_time_ms=0,
        brokers=[
            response.MetadataResponseBroker(node, "127.0.0.1", 1, None, version=8) for node in brokers(topics, leaders)
        ],
        cluster_id=None,
        controller_id=0,
        topics=[
            topic(
                error_code=0,
                name=name,
                is_internal=False,
                partitions=[
                    topic.MetadataResponsePartition(
                        error_code=0,
                        partition_index=number,
                        leader_id=leaders(number),
                        leader_epoch=0,
                        replica_nodes=[0],
                        isr_nodes=[],
                        offline_replicas=[],
                    )
                    for number in range(count)
                ],
            )
            for name, count in topics.items()
        ],
        version=8,
    )

    class Client(OfflineKafkaClient):
        def __init__(self, **config: Any) -> None:
            super().__init__(**config)
            self.cluster.update_metadata(answer)

    producer = kind(
        **{
            "bootstrap_servers": "127.0.0.1:1",
            "api_version": (3, 0),
            "kafka_client": Client,
            "linger_ms": FOREVER_MS,
            "batch_size": BATCH_BYTES,
            **config,
        }
    )
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
    producer.client.cluster.update_metadata(
        AiokafkaMetadata(
            brokers=[(node, "127.0.0.1", 1, None) for node in brokers(topics, leaders)],
            controller_id=0,
            topics=[
                (0, name, False, [(0, number, leaders(number), [0], [0]) for number in range(count)])
                for name, count in topics.items()
            ],
        )
    )
    try:
        yield producer
    finally:
        await producer.stop()


def brokers(topics: Mapping[str, int], leaders: Callable[[int], int]) -> list[int]:
    return sorted({leaders(number) for count in topics.values() for number in range(count)})
