"""Our consumers on kafka-python and aiokafka in groups that the broker plans (KIP-848), on a real broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import confluent_kafka
import kafka
import pytest
from kafka import TopicPartition

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from support.broker import ApacheKafka, Kafka, unique
from support.cluster import SIZE, Cluster
from support.jars import consumer_protocol_version
from support.members import JavaMember
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_assignors.clients.kafka_python import RebalanceReport
    from support.fixtures import StartMember
    from support.trace import Trace


def consumer(kafka: Kafka, group: str, **further: Any) -> KafkaConsumer:
    settings = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 500, "group_protocol": "consumer"}
    return KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group, **settings | further)


def librdkafkas(kafka: Kafka, group: str) -> confluent_kafka.Consumer:
    """confluent-kafka's own consumer, which our class makes for the new protocol."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "group.protocol": "consumer"}
    return Consumer(settings)


def shares(*consumers: KafkaConsumer) -> list[set[tuple[str, int]]]:
    """The partitions of each consumer, after a poll of each."""
    for each in consumers:
        each.poll(20)
    return [{tuple(partition) for partition in each.assignment()} for each in consumers]


def divided(partitions: int, *consumers: KafkaConsumer) -> bool:
    """Whether the consumers hold so many partitions in all, each consumer at least one, and no two the same one."""
    found = shares(*consumers)
    return all(found) and sum(map(len, found)) == partitions == len(set().union(*found))


def write(kafka: Kafka, topic: str, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    producer.flush(30)


def test_members_come_and_go_and_no_record_is_read_twice(consumer_protocol_kafka: Kafka) -> None:
    topic, group = unique("t"), unique("g")
    consumer_protocol_kafka.create_topic(topic, 6)
    reports: list[RebalanceReport] = []
    first = consumer(consumer_protocol_kafka, group, on_rebalance=reports.append)
    first.subscribe([topic])
    wait_until(lambda: divided(6, first), "the first has everything")
    write(consumer_protocol_kafka, topic, 60)
    read: list[bytes] = []

    def read_by(*consumers: KafkaConsumer) -> int:
        for each in consumers:
            for records in each.poll(50).values():
                read.extend(record.value for record in records)
        return len(read)

    wait_until(lambda: read_by(first) >= 60, "the records are read")
    first.commit()
    second = consumer(consumer_protocol_kafka, group)
    second.subscribe([topic])
    wait_until(lambda: divided(6, first, second), "both have a share")
    write(consumer_protocol_kafka, topic, 60)
    wait_until(lambda: read_by(first, second) >= 120, "the records are read by both")
    assert sorted(map(int, read)) == sorted([*range(60)] * 2)
    first.commit()
    second.commit()
    second.close()
    wait_until(lambda: divided(6, first), "the first has everything again")
    write(consumer_protocol_kafka, topic, 6)
    wait_until(lambda: read_by(first) >= 126, "and reads it from the commits of the second on")
    assert len(read) == 126
    consumer_protocol_kafka.grow_topic(topic, 8)
    wait_until(lambda: divided(8, first), "new partitions are taken")
    described = consumer_protocol_kafka.admin.describe_consumer_groups([group])[group].result()
    assert described.type.name == "CONSUMER"
    assert all(report.plan is None and not report.leader for report in reports)
    gained = [report.gained for report in reports if report.gained]
    assert (gained[0], gained[-1]) == ({topic: (0, 1, 2, 3, 4, 5)}, {topic: (6, 7)})
    # The broker's first answer may contain no partition yet. A later answer then contains the share.
    founded, grown = reports[0], reports[-1]
    assert (founded.causes, grown.cause) == (("member-joined",), "unknown")
    assert founded.seconds is not None
    assert founded.without_partitions == pytest.approx(founded.seconds, abs=1e-3)
    # The member read on. The gained partitions had no owner at least from the broker's answer on.
    assert (grown.without_partitions, grown.retries) == (0.0, 0)
    assert {grown.without_owner[topic][number] for number in range(6)} == {0.0}
    assert grown.without_owner[topic][7] >= 0.0
    first.close()


def test_a_commit_and_a_start_at_it(consumer_protocol_kafka: Kafka) -> None:
    topic, group = unique("t"), unique("g")
    consumer_protocol_kafka.create_topic(topic, 1)
    write(consumer_protocol_kafka, topic, 5)
    first = consumer(consumer_protocol_kafka, group, group_instance_id="one", group_remote_assignor="range")
    first.subscribe([topic])
    read: list[Any] = []

    def all_is_read() -> bool:
        read.extend(record for records in first.poll(50).values() for record in records)
        return len(read) == 5

    wait_until(all_is_read, "read")
    first.commit()
    assert first.committed(TopicPartition(topic, 0)) == 5
    assert first.group_metadata().generation_id > 0
    first.close()
    # The broker keeps the partitions of a static member for its next process.
    second = consumer(consumer_protocol_kafka, group, group_instance_id="one", group_remote_assignor="range")
    second.subscribe([topic])
    wait_until(lambda: divided(1, second), "the place is taken")
    assert second.position(TopicPartition(topic, 0)) == 5
    second.close()


def test_a_pattern_is_matched_by_the_broker(consumer_protocol_kafka: Kafka) -> None:
    prefix, group = unique("p"), unique("g")
    consumer_protocol_kafka.create_topic(f"{prefix}-a", 2)
    first = consumer(consumer_protocol_kafka, group)
    first.subscribe(pattern=f"{prefix}-")
    wait_until(lambda: divided(2, first), "the topic is matched")
    assert first.subscription() == {f"{prefix}-a"}
    first.close()
    refused = consumer(consumer_protocol_kafka, unique("g"))
    refused.subscribe(pattern=r"(?=lookahead)")
    with pytest.raises(kafka.errors.KafkaError, match="RE2/J"):
        wait_until(lambda: shares(refused) is None, "it is refused")
    refused.close()


@pytest.mark.parametrize("other", ["librdkafka", "aiokafka"])
def test_a_group_with_other_clients(consumer_protocol_kafka: Kafka, other: str) -> None:
    topic, group = unique("t"), unique("g")
    consumer_protocol_kafka.create_topic(topic, 4)
    ours = consumer(consumer_protocol_kafka, group)
    ours.subscribe([topic])
    wait_until(lambda: divided(4, ours), "ours has everything")
    if other == "librdkafka":
        theirs = librdkafkas(consumer_protocol_kafka, group)
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
            servers = consumer_protocol_kafka.bootstrap_servers
            theirs = AIOKafkaConsumer(topic, bootstrap_servers=servers, group_id=group, group_protocol="consumer")
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


def test_one_group_of_java_librdkafka_and_ours(
    consumer_protocol_kafka: Kafka, start_member: StartMember, trace: Trace
) -> None:
    topic, group = unique("t"), unique("g")
    consumer_protocol_kafka.create_topic(topic, 9)
    every = {(topic, number) for number in range(9)}
    ours = consumer(consumer_protocol_kafka, group)
    ours.subscribe([topic])
    java = start_member(JavaMember, "java", consumer_protocol_kafka, group, protocol="consumer")
    java.subscribe(topic)
    librdkafka = librdkafkas(consumer_protocol_kafka, group)
    librdkafka.subscribe([topic])

    def held_by_java() -> set[tuple[str, int]]:
        held: set[tuple[str, int]] = set()
        for event in list(trace.events):
            if event.kind == "assigned":
                held |= event.partitions
            elif event.kind in {"revoked", "lost"}:
                held -= event.partitions
        return held

    def each_has(*sizes: int) -> Callable[[], bool]:
        """Whether our, librdkafka's and Java's member have so many partitions, and each partition has one owner."""

        def true() -> bool:
            (mine,) = shares(ours)
            librdkafka.poll(0.02)
            theirs = {(each.topic, each.partition) for each in librdkafka.assignment()} if sizes[1] else set()
            found = [mine, theirs, held_by_java()]
            return [len(share) for share in found] == list(sizes) and set().union(*found) == every

        return true

    wait_until(each_has(3, 3, 3), "each has a third", 60)
    java.kill()
    librdkafka.close()
    ours.close()


def test_a_broker_restarts(start_kafka: Callable[..., ApacheKafka]) -> None:
    broker = start_kafka(consumer_protocol_version())
    topic, group = unique("t"), unique("g")
    broker.create_topic(topic, 4)
    members = [consumer(broker, group, reconnect_backoff_max_ms=1_000) for _ in range(2)]
    for each in members:
        each.subscribe([topic])
    wait_until(lambda: divided(4, *members), "both have a share")
    before = shares(*members)
    read: list[bytes] = []

    def read_all(count: int) -> Callable[[], bool]:
        def true() -> bool:
            for each in members:
                for records in each.poll(50).values():
                    read.extend(record.value for record in records)
            return len(read) >= count

        return true

    write(broker, topic, 20)
    wait_until(read_all(20), "all is read")
    for each in members:
        each.commit()
    broker.restart()
    write(broker, topic, 20)
    wait_until(read_all(40), "the rest is read", 60)
    assert sorted(map(int, read)) == sorted([*range(20)] * 2)
    # No member was expelled: the sessions begin again when the broker loads the group.
    assert shares(*members) == before
    for each in members:
        each.commit()
        each.close()


@pytest.mark.needs("broker")
@pytest.mark.timeout(300)
def test_the_coordinator_dies(tmp_path: Path) -> None:
    topic, group = unique("t"), unique("g")
    with Cluster(tmp_path / "cluster", consumer_protocol_version()) as cluster:
        cluster.create_topic(topic, 6)
        members = [consumer(cluster, group, reconnect_backoff_max_ms=1_000) for _ in range(2)]
        for each in members:
            each.subscribe([topic])
        wait_until(lambda: divided(6, *members), "both have a share")
        read: set[tuple[int, int]] = set()

        def read_all(count: int) -> Callable[[], bool]:
            def true() -> bool:
                for each in members:
                    for records in each.poll(50).values():
                        read.update((record.partition, record.offset) for record in records)
                return len(read) >= count

            return true

        write(cluster, topic, 60)
        wait_until(read_all(60), "all is read")
        for each in members:
            each.commit()
        dying = cluster.coordinator(group)
        dying.kill()
        write(cluster, topic, 60)
        wait_until(read_all(120), "the rest is read", 90)
        for each in members:
            each.commit()
        assert cluster.coordinator(group) is not dying
        dying.start()
        cluster.wait_for(SIZE)
        assert divided(6, *members)
        members.pop().close()
        wait_until(lambda: divided(6, *members), "the other one has everything")
        # The last member starts at the commits of both, and so reads no record again.
        assert members[0].poll(500) == {}
        assert len(read) == 120
        members[0].close()


def test_an_application_whose_listener_raises(consumer_protocol_kafka: Kafka) -> None:
    """`poll` raises the error, as in the classic protocol. The member gives up the revoked partitions all the same."""
    topic, group = unique("t"), unique("g")
    consumer_protocol_kafka.create_topic(topic, 2)

    class Raises(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            pass

        def on_partitions_revoked(self, revoked: Any) -> None:
            raise ValueError("what the application does")

    first, second = consumer(consumer_protocol_kafka, group), consumer(consumer_protocol_kafka, group)
    first.subscribe([topic], listener=Raises())
    wait_until(lambda: divided(2, first), "the first has everything")
    second.subscribe([topic])
    raised: list[str] = []

    def handed_over() -> bool:
        try:
            first.poll(20)
        except kafka.errors.KafkaError as error:
            raised.append(str(error.__cause__))
        second.poll(20)
        return len(first.assignment()) == len(second.assignment()) == 1

    wait_until(handed_over, "each has one")
    second.close()
    first.unsubscribe()
    first.close()
    assert raised[:1] == ["what the application does"]


def test_a_mixed_group_is_upgraded_and_downgraded(consumer_protocol_kafka: Kafka) -> None:
    """A classic member of kafka-python itself stays in its group while a member of the new protocol comes and goes."""
    topic, group = unique("t"), unique("g")
    consumer_protocol_kafka.create_topic(topic, 4)
    classic = kafka.KafkaConsumer(
        bootstrap_servers=consumer_protocol_kafka.bootstrap_servers, group_id=group, heartbeat_interval_ms=300
    )
    classic.subscribe([topic])

    def kind() -> str:
        found = consumer_protocol_kafka.admin.list_consumer_groups().result()
        return next((each.type.name for each in found.valid if each.group_id == group), "")

    # Shorter polls can lose a join that is under way.
    def classic_has(count: int) -> bool:
        classic.poll(1_000)
        return len(classic.assignment()) == count

    wait_until(lambda: classic_has(4), "the classic member has everything", 60)
    assert kind() == "CLASSIC"
    ours = consumer(consumer_protocol_kafka, group)
    ours.subscribe([topic])

    def each_has_half() -> bool:
        (held,) = shares(ours)
        return classic_has(2) and held | {tuple(each) for each in classic.assignment()} == {
            (topic, number) for number in range(4)
        }

    wait_until(each_has_half, "each has half", 60)
    assert kind() == "CONSUMER"
    ours.close()
    wait_until(lambda: classic_has(4), "the classic member has everything again", 60)
    assert kind() == "CLASSIC"
    classic.close()


def test_an_assignor_that_the_broker_lacks(consumer_protocol_kafka: Kafka) -> None:
    topic = consumer_protocol_kafka.create_topic(unique("t"), 1)
    refused = consumer(consumer_protocol_kafka, unique("g"), group_remote_assignor="least")
    refused.subscribe([topic])
    with pytest.raises(kafka.errors.KafkaError, match=r"group\.consumer\.assignors does not have 'least'"):
        wait_until(lambda: shares(refused) is None, "it is refused")
    refused.close()
