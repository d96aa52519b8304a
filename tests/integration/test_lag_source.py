"""Lags of a live cluster, and a group that shares them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from kafka_assignors import LagBasedAssignor, LagError, MemberState, MissingDependencyError, OptionError
from kafka_assignors.lag import ConfluentLagSource, LagSource
from support.broker import Kafka, unique

if TYPE_CHECKING:
    from kafka_assignors.embedded import EmbeddedKafka


def fill(kafka: Kafka, topic: str, counts: list[int]) -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        sent = [
            producer.send(topic, b"x", partition=partition)
            for partition, count in enumerate(counts)
            for _ in range(count)
        ]
        for each in sent:
            each.get(timeout=10)


def commit(kafka: Kafka, group: str, offsets: dict[tuple[str, int], int]) -> None:
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(*key) for key in offsets])
        consumer.commit({TopicPartition(*key): OffsetAndMetadata(offset, "", -1) for key, offset in offsets.items()})


def source(kafka: Kafka, reset: str = "latest") -> ConfluentLagSource:
    return ConfluentLagSource({"bootstrap.servers": kafka.bootstrap_servers}, reset=reset, timeout=30)


def test_lags_of_all_topics(any_kafka: Kafka) -> None:
    one, two = any_kafka.create_topic(unique("one"), 4), any_kafka.create_topic(unique("two"), 1)
    fill(any_kafka, one, [9, 5, 7, 0])
    fill(any_kafka, two, [3])
    group = unique("readers")
    commit(any_kafka, group, {(one, 0): 2, (one, 1): 50, (two, 0): 3})
    topics = [one, two, "missing"]
    assert isinstance(source(any_kafka), LagSource)
    assert source(any_kafka).lags(topics, group) == {one: [7, 0, 0, 0], two: [0]}
    assert source(any_kafka, "earliest").lags(topics, group) == {one: [7, 0, 7, 0], two: [0]}
    assert source(any_kafka, "earliest").lags(topics, unique("strangers")) == {one: [9, 5, 7, 0], two: [3]}
    assert source(any_kafka).lags(["missing"], group) == {}


def test_a_leader_with_a_live_source(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    fill(any_kafka, topic, [10, 5, 6])
    assignor = LagBasedAssignor(lags=source(any_kafka, "earliest"), group_id=unique("g"), deadline=30)
    members = [(member, assignor.metadata([topic], MemberState())) for member in ("m0", "m1")]
    _, plan = assignor.plan_assignment(members, {topic: 3})
    assert plan.assignment == {"m0": {topic: [0]}, "m1": {topic: [1, 2]}}
    assert plan.lag_by_member == {"m0": 10, "m1": 11}


def test_deleted_records(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 2)
    fill(any_kafka, topic, [9, 9])
    group = unique("readers")
    commit(any_kafka, group, {(topic, 0): 2})
    admin = AdminClient({"bootstrap.servers": any_kafka.bootstrap_servers})
    cut = [confluent_kafka.TopicPartition(topic, partition, 6) for partition in range(2)]
    for future in admin.delete_records(cut).values():
        future.result(10)
    assert source(any_kafka, "earliest").lags([topic], group) == {topic: [7, 3]}


def test_what_cannot_be_told(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("t", 1)
    config = {"bootstrap.servers": embedded_kafka.bootstrap_servers}
    with pytest.raises(LagError, match="no group is named; give LagBasedAssignor the group_id"):
        ConfluentLagSource(config).lags(["t"], "")
    with pytest.raises(OptionError, match="timeout is 0; give a positive number of seconds"):
        ConfluentLagSource(config, timeout=0)
    embedded_kafka.close()
    with pytest.raises(LagError, match="the offsets of group 'g' could not be read"):
        ConfluentLagSource(config | {"log_level": 0}, timeout=0.2).lags(["t"], "g")


def test_without_confluent_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "confluent_kafka"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[confluent\]"):
        ConfluentLagSource({})
