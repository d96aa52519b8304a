"""The clients' metadata is registered: partitioners read it without a call for each record."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import aiokafka.cluster
import kafka.cluster
import pytest

import kafka_assignors.clients.aiokafka
import kafka_assignors.clients.kafka_python  # noqa: F401
from kafka_assignors import DefaultPartitioner
from kafka_assignors.clients.confluent import topic_metadata
from support.partitioning import ask


def of_confluent() -> Any:
    cluster = topic_metadata.KnownTopics()
    cluster.put("t", dict.fromkeys(range(4), 1))
    return cluster


def of_python(kind: Any) -> Any:
    cluster = kind()
    cluster._partitions = {"t": {number: SimpleNamespace(leader_id=1, leader=1) for number in range(4)}}
    return cluster


CLUSTERS = {
    "kafka-python": lambda: of_python(kafka.cluster.ClusterMetadata),
    "aiokafka": lambda: of_python(aiokafka.cluster.ClusterMetadata),
    "ours for confluent-kafka": of_confluent,
}


@pytest.mark.parametrize("client", CLUSTERS)
def test_the_methods_of_a_clients_cluster_are_called_when_its_metadata_is_replaced(
    client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, partitioner, calls = CLUSTERS[client](), DefaultPartitioner(seed=1), Counter[str]()

    def counted(name: str) -> None:
        method = getattr(type(cluster), name)

        def count(self: Any, topic: str) -> Any:
            calls[name] += 1
            return method(self, topic)

        monkeypatch.setattr(type(cluster), name, count)

    counted("partitions_for_topic")
    counted("available_partitions_for_topic")
    assert len({ask(partitioner, cluster) for _ in range(20)}) == 1
    assert calls == {"partitions_for_topic": 1, "available_partitions_for_topic": 1}
    partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
    assert calls == {"partitions_for_topic": 1, "available_partitions_for_topic": 2}
