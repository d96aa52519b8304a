"""The clients' admin interfaces on the embedded Kafka."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AiokafkaPartitions
from aiokafka.admin import NewTopic as AiokafkaTopic
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from kafka_assignors.embedded import EmbeddedKafka
from support.threads import CONSUMERS, Client, produce, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS = {"one": 1, "seven": 7, "many": 30_000}


@pytest.fixture
def kafka_python(embedded_kafka: EmbeddedKafka) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=embedded_kafka.bootstrap_servers)
    yield admin
    admin.close()


@pytest.fixture
def confluent(embedded_kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": embedded_kafka.bootstrap_servers, "log_level": 0})


def done(futures: dict[Any, Any]) -> dict[Any, Any]:
    return {key: future.result(10) for key, future in futures.items()}


def test_confluent_makes_grows_and_deletes_topics(embedded_kafka: EmbeddedKafka, confluent: AdminClient) -> None:
    done(confluent.create_topics([NewTopic(name, count, 1) for name, count in COUNTS.items()]))
    assert embedded_kafka.topics() == dict(sorted(COUNTS.items()))
    listed = confluent.list_topics(timeout=10).topics
    assert {name: len(topic.partitions) for name, topic in listed.items()} == COUNTS
    with pytest.raises(confluent_kafka.KafkaException, match="exists already"):
        done(confluent.create_topics([NewTopic("one", 1, 1)]))
    done(confluent.create_partitions([NewPartitions("one", 4)]))
    with pytest.raises(confluent_kafka.KafkaException, match="topics only grow"):
        done(confluent.create_partitions([NewPartitions("seven", 3)]))
    done(confluent.delete_topics(["seven", "many"]))
    assert embedded_kafka.topics() == {"one": 4}


def test_kafka_python_makes_grows_and_deletes_topics(
    embedded_kafka: EmbeddedKafka, kafka_python: KafkaAdminClient
) -> None:
    counts = {name: {"num_partitions": count, "replication_factor": 1} for name, count in COUNTS.items()}
    kafka_python.create_topics(counts)
    assert embedded_kafka.topics() == dict(sorted(COUNTS.items()))
    assert sorted(kafka_python.list_topics()) == sorted(COUNTS)
    kafka_python.create_partitions({"one": 4})
    kafka_python.delete_topics(["seven", "many"])
    assert embedded_kafka.topics() == {"one": 4}
    with pytest.raises(KafkaError):
        kafka_python.create_topics({"one": {"num_partitions": 1, "replication_factor": 1}})


def test_aiokafka_makes_grows_and_deletes_topics(embedded_kafka: EmbeddedKafka) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=embedded_kafka.bootstrap_servers)
        await admin.start()
        try:
            await admin.create_topics([AiokafkaTopic(name, count, 1) for name, count in COUNTS.items()])
            assert sorted(await admin.list_topics()) == sorted(COUNTS)
            await admin.create_partitions({"one": AiokafkaPartitions(4)})
            await admin.delete_topics(["seven", "many"])
        finally:
            await admin.close()

    asyncio.run(run())
    assert embedded_kafka.topics() == {"one": 4}


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
def test_groups_are_listed_described_and_deleted(
    embedded_kafka: EmbeddedKafka, kafka_python: KafkaAdminClient, confluent: AdminClient, client: Client
) -> None:
    embedded_kafka.create_topic("orders", 3)
    with CONSUMERS[client](embedded_kafka.bootstrap_servers, "readers", "orders", client_id="one") as member:
        wait_until(lambda: len(member.held) == 3, "the member holds all")
        (view,) = embedded_kafka.groups()["readers"].members.values()

        described = kafka_python.describe_groups(["readers"])["readers"]
        assert described["group_state"] == "Stable"
        assert described["protocol_type"] == "consumer"
        assert [one["member_id"] for one in described["members"]] == [view.member_id]
        assert [one["client_id"] for one in described["members"]] == ["one"]
        assert [one["group_id"] for one in kafka_python.list_groups()] == ["readers"]

        found = done(confluent.describe_consumer_groups(["readers"]))["readers"]
        assert found.state == confluent_kafka.ConsumerGroupState.STABLE
        (seen,) = found.members
        assert seen.member_id == view.member_id
        held = {(one.topic, one.partition) for one in seen.assignment.topic_partitions}
        assert held == member.held
        listed = confluent.list_consumer_groups().result(10)
        assert [(one.group_id, one.state.name) for one in listed.valid] == [("readers", "STABLE")]
        assert listed.errors == []

        with pytest.raises(confluent_kafka.KafkaException) as refused:
            done(confluent.delete_consumer_groups(["readers"]))
        assert refused.value.args[0].code() == confluent_kafka.KafkaError.NON_EMPTY_GROUP
        member.close()
    wait_until(lambda: embedded_kafka.groups()["readers"].state == "Empty", "the group is empty")
    done(confluent.delete_consumer_groups(["readers"]))
    assert embedded_kafka.groups() == {}


def test_aiokafka_lists_and_describes_groups(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 3)

    async def run() -> tuple[Any, Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=embedded_kafka.bootstrap_servers)
        await admin.start()
        try:
            return await admin.list_consumer_groups(), await admin.describe_consumer_groups(["readers"])
        finally:
            await admin.close()

    with CONSUMERS["aiokafka"](embedded_kafka.bootstrap_servers, "readers", "orders") as member:
        wait_until(lambda: len(member.held) == 3, "the member holds all")
        listed, described = asyncio.run(run())
        member.close()
    assert listed == [("readers", "consumer")]
    ((_, group, state, protocol_type, protocol, members, *_),) = described[0].groups
    assert (group, state, protocol_type, protocol, len(members)) == ("readers", "Stable", "consumer", "roundrobin", 1)


def test_settings_of_topics(embedded_kafka: EmbeddedKafka, confluent: AdminClient) -> None:
    embedded_kafka.create_topic("orders", 1, config={"retention.ms": "1000"})

    def settings() -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, "orders")
        return {name: one.value for name, one in done(confluent.describe_configs([resource]))[resource].items()}

    def alter(name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
        done(confluent.incremental_alter_configs([resource]))

    assert settings()["retention.ms"] == "1000"
    assert settings()["max.message.bytes"] == "1048588"
    alter("max.message.bytes", "200")
    assert settings()["max.message.bytes"] == "200"
    with pytest.raises(confluent_kafka.KafkaException, match="MSG_SIZE_TOO_LARGE"):
        produce("confluent", embedded_kafka.bootstrap_servers, "orders", [b"x" * 300])
    with pytest.raises(confluent_kafka.KafkaException, match=r"no setting 'max\.bytes'"):
        alter("max.bytes", "1")


def test_a_group_that_does_not_fit_its_record_gets_stable_when_the_limit_is_raised() -> None:
    with (
        EmbeddedKafka(topics={"wide": 3000}, max_record_bytes=5000) as kafka,
        CONSUMERS["confluent"](kafka.bootstrap_servers, "readers", "wide") as member,
    ):
        wait_until(lambda: kafka.groups().get("readers"), "the member joins")
        wait_until(lambda: kafka.groups()["readers"].generation > 1, "joins again in vain")
        assert member.held == frozenset()
        assert kafka.groups()["readers"].state != "Stable"
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        entry = ConfigEntry("max.message.bytes", "1048588", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "__consumer_offsets", incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
        wait_until(lambda: len(member.held) == 3000, "the member holds all")
        member.close()


def test_offsets_by_time_and_after_a_deletion(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 1)
    servers = embedded_kafka.bootstrap_servers
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 0, "linger.ms": 0})
    for number in range(10):
        producer.produce("orders", b"%d" % number, timestamp=1000 + 10 * number)
    assert producer.flush(10) == 0
    partition = TopicPartition("orders", 0)
    consumer = KafkaConsumer(bootstrap_servers=servers)
    with contextlib.closing(consumer):
        assert consumer.beginning_offsets([partition])[partition] == 0
        assert consumer.end_offsets([partition])[partition] == 10
        found = consumer.offsets_for_times({partition: 1035})[partition]
        assert (found.offset, found.timestamp) == (4, 1040)
        assert consumer.offsets_for_times({partition: 2000})[partition] is None
    embedded_kafka.delete_topic("orders")
    embedded_kafka.create_topic("orders", 2)
    assert embedded_kafka.offsets("orders") == [(0, 0), (0, 0)]
