"""`RateSource` on a live cluster, with each client's source: records and bytes written between two readings."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer

from kafka_assignors import Group, Member, MemberState, RateSource, WeightedAssignor
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.lag import ConfluentLagSource
from support.broker import unique
from support.features import has
from support.lag import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_assignors.lag.reader import TopicEnds
    from support.broker import Kafka


def by_confluent(kafka: Kafka) -> Any:
    return ConfluentLagSource({"bootstrap.servers": kafka.bootstrap_servers})


def by_kafka_python(kafka: Kafka) -> Any:
    return kafka_python.AdminLagSource({"bootstrap_servers": kafka.bootstrap_servers})


def by_aiokafka(kafka: Kafka) -> Any:
    return aiokafka.AdminLagSource({"bootstrap_servers": kafka.bootstrap_servers})


CLUSTERS = {"confluent": by_confluent, "kafka-python": by_kafka_python, "aiokafka": by_aiokafka}


class Between:
    """A cluster to which records are written after each reading."""

    def __init__(self, cluster: Any, write: Callable[[], None]) -> None:
        self._cluster = cluster
        self._write = write

    def look(self, topics: Iterable[str], *, sizes: bool = False) -> TopicEnds:
        found: TopicEnds = self._cluster.look(topics, sizes=sizes)
        self._write()
        return found


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_rates_are_what_was_written(any_kafka: Kafka, cluster: str) -> None:
    topic = any_kafka.create_topic(unique("rates"), 4)
    fill(any_kafka, topic, [5, 0, 40, 0])
    between = Between(CLUSTERS[cluster](any_kafka), lambda: fill(any_kafka, topic, [30, 10, 0, 20]))
    source = RateSource(between, interval=0.01)
    rates = [rate or 0.0 for rate in source.weights([topic, "missing"])[topic]]
    assert rates[0] > 0
    assert [rate / rates[0] for rate in rates] == pytest.approx([1, 1 / 3, 0, 2 / 3])
    members = [Member("a", [topic]), Member("b", [topic])]
    plan = WeightedAssignor(source).assign(Group({topic: 4}, members))
    loads = list((plan.load_by_member or {}).values())
    assert loads == [pytest.approx(loads[0])] * 2


def write(kafka: Kafka, topic: str, sizes: list[int]) -> None:
    """Ten records of each of these sizes, one size for each partition."""
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=50)) as producer:
        sent = [
            producer.send(topic, b"x" * size, partition=partition)
            for partition, size in enumerate(sizes)
            for _ in range(10)
        ]
        for each in sent:
            each.get(timeout=10)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_bytes_are_records_times_the_size_of_the_log(any_kafka: Kafka, cluster: str) -> None:
    topic = any_kafka.create_topic(unique("bytes"), 3)
    between = Between(CLUSTERS[cluster](any_kafka), lambda: write(any_kafka, topic, [20_000, 2_000, 200]))
    assignor = WeightedAssignor(RateSource(between, unit="bytes", interval=0.01))
    members = [(name, assignor.metadata([topic], MemberState())) for name in ("a", "b")]
    _, plan = assignor.plan_assignment(members, {topic: 3})
    asks = cluster == "aiokafka" or (cluster == "kafka-python" and has("offsets by the admin client"))
    if any_kafka.version == "embedded" or not asks:
        # A warning names the reason, and the partitions are balanced by number.
        (warning,) = plan.warnings
        assert "the sizes of the logs are not to be had" in warning
        assert sorted((plan.load_by_member or {}).values()) == [1.0, 2.0]
        return
    assert plan.warnings == ()
    heaviest, rest = sorted((plan.load_by_member or {}).values(), reverse=True)
    # 20,000 to 2,200 bytes, apart from the bytes of batches and headers.
    assert heaviest / rest == pytest.approx(20_000 / 2_200, rel=0.2)
