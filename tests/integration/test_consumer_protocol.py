"""Our consumers on kafka-python and aiokafka in groups that the broker plans (KIP-848), on a real broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import confluent_kafka
import kafka
import pytest
from kafka import TopicPartition

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from support.broker import Kafka, unique
from support.threads import wait_until

if TYPE_CHECKING:
    from kafka_assignors.clients.kafka_python import RebalanceReport


def consumer(kafka: Kafka, group: str, **further: Any) -> KafkaConsumer:
    settings = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 500, "group_protocol": "consumer"}
    return KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group, **settings | further)


def shares(*consumers: KafkaConsumer) -> list[set[tuple[str, int]]]:
    """What each holds after a poll of all."""
    for each in consumers:
        each.poll(20)
    return [{tuple(partition) for partition in each.assignment()} for each in consumers]


def divided(partitions: int, *consumers: KafkaConsumer) -> bool:
    """Whether all have a part of so many partitions, and none has a partition of another."""
    found = shares(*consumers)
    return all(found) and sum(map(len, found)) == partitions == len(set().union(*found))


def write(kafka_broker: Kafka, topic: str, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    producer.flush(30)


def test_members_come_and_go_and_no_record_is_read_twice(kafka_broker: Kafka) -> None:
    topic, group = unique("t"), unique("g")
    kafka_broker.create_topic(topic, 6)
    reports: list[RebalanceReport] = []
    first = consumer(kafka_broker, group, on_rebalance=reports.append)
    first.subscribe([topic])
    wait_until(lambda: divided(6, first), "the first has everything")
    write(kafka_broker, topic, 60)
    read: list[bytes] = []

    def read_by(*consumers: KafkaConsumer) -> int:
        for each in consumers:
            for records in each.poll(50).values():
                read.extend(record.value for record in records)
        return len(read)

    wait_until(lambda: read_by(first) >= 60, "the records are read")
    first.commit()
    second = consumer(kafka_broker, group)
    second.subscribe([topic])
    wait_until(lambda: divided(6, first, second), "both have a share")
    write(kafka_broker, topic, 60)
    wait_until(lambda: read_by(first, second) >= 120, "the records are read by both")
    assert sorted(map(int, read)) == sorted([*range(60)] * 2)
    first.commit()
    second.commit()
    second.close()
    wait_until(lambda: divided(6, first), "the first has everything again")
    write(kafka_broker, topic, 6)
    wait_until(lambda: read_by(first) >= 126, "and reads it from the commits of the second on")
    assert len(read) == 126
    kafka_broker.grow_topic(topic, 8)
    wait_until(lambda: divided(8, first), "new partitions are taken")
    described = kafka_broker.admin.describe_consumer_groups([group])[group].result()
    assert described.type.name == "CONSUMER"
    assert all(report.plan is None and not report.leader for report in reports)
    gained = [report.gained for report in reports if report.gained]
    assert (gained[0], gained[-1]) == ({topic: (0, 1, 2, 3, 4, 5)}, {topic: (6, 7)})
    # The broker's first answer may have no partition yet, and the share comes with a later one.
    founded, grown = reports[0], reports[-1]
    assert (founded.causes, grown.cause) == (("member-joined",), "unknown")
    assert founded.seconds is not None
    assert founded.without_partitions == pytest.approx(founded.seconds, abs=1e-3)
    # It read on, and what it gained had no owner from the broker's answer on, at least.
    assert (grown.without_partitions, grown.retries) == (0.0, 0)
    assert {grown.without_owner[topic][number] for number in range(6)} == {0.0}
    assert grown.without_owner[topic][7] >= 0.0
    first.close()


def test_a_commit_and_a_start_at_it(kafka_broker: Kafka) -> None:
    topic, group = unique("t"), unique("g")
    kafka_broker.create_topic(topic, 1)
    write(kafka_broker, topic, 5)
    first = consumer(kafka_broker, group, group_instance_id="one", group_remote_assignor="range")
    first.subscribe([topic])
    wait_until(lambda: sum(map(len, first.poll(50).values())) or first.position(TopicPartition(topic, 0)) == 5, "read")
    first.commit()
    assert first.committed(TopicPartition(topic, 0)) == 5
    assert first.group_metadata().generation_id > 0
    first.close()
    # The static member's place is kept for another process.
    second = consumer(kafka_broker, group, group_instance_id="one", group_remote_assignor="range")
    second.subscribe([topic])
    wait_until(lambda: divided(1, second), "the place is taken")
    assert second.position(TopicPartition(topic, 0)) == 5
    second.close()


def test_a_pattern_is_matched_by_the_broker(kafka_broker: Kafka) -> None:
    prefix, group = unique("p"), unique("g")
    kafka_broker.create_topic(f"{prefix}-a", 2)
    first = consumer(kafka_broker, group)
    first.subscribe(pattern=f"{prefix}-")
    wait_until(lambda: divided(2, first), "the topic is matched")
    assert first.subscription() == {f"{prefix}-a"}
    first.close()
    refused = consumer(kafka_broker, unique("g"))
    refused.subscribe(pattern=r"(?=lookahead)")
    with pytest.raises(kafka.errors.KafkaError, match="RE2/J"):
        wait_until(lambda: shares(refused) is None, "it is refused")
    refused.close()


@pytest.mark.parametrize("other", ["librdkafka", "aiokafka"])
def test_a_group_with_other_clients(kafka_broker: Kafka, other: str) -> None:
    topic, group = unique("t"), unique("g")
    kafka_broker.create_topic(topic, 4)
    ours = consumer(kafka_broker, group)
    ours.subscribe([topic])
    wait_until(lambda: divided(4, ours), "ours has everything")
    if other == "librdkafka":
        theirs = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": group, "group.protocol": "consumer"}
        )
        theirs.subscribe([topic])

        def both() -> bool:
            theirs.poll(0.02)
            (held,) = shares(ours)
            return {(each.topic, each.partition) for each in theirs.assignment()} | held == {
                (topic, number) for number in range(4)
            } and len(held) == 2

        wait_until(both, "each has half")
        theirs.close()
    else:

        async def half() -> set[Any]:
            theirs = AIOKafkaConsumer(
                topic, bootstrap_servers=kafka_broker.bootstrap_servers, group_id=group, group_protocol="consumer"
            )
            starting = asyncio.create_task(theirs.start())
            held: set[Any] = set()
            for _ in range(600):
                (held,) = shares(ours)
                if len(held) == 2 and starting.done() and len(theirs.assignment()) == 2:
                    break
                await asyncio.sleep(0.02)
            await starting
            found = {tuple(each) for each in theirs.assignment()} | held
            await theirs.stop()
            return found

        assert asyncio.run(half()) == {(topic, number) for number in range(4)}
    wait_until(lambda: divided(4, ours), "ours has everything again")
    ours.close()
