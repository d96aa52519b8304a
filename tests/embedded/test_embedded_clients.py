"""The three Python clients, as installed, on the embedded Kafka."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CommitFailedError
from kafka.structs import OffsetAndMetadata

from support.threads import CLIENTS, CONSUMERS, Client, Consumer, produce, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_assignors.embedded import EmbeddedKafka

TESTS = Path(__file__).parents[1]

every_client = pytest.mark.parametrize("client", CLIENTS)


def all_of(topic: str, count: int) -> frozenset[tuple[str, int]]:
    return frozenset((topic, partition) for partition in range(count))


def share(members: Sequence[Consumer], partitions: frozenset[tuple[str, int]]) -> bool:
    """Whether the members hold these partitions, each held by one of them, and every member holds at least one."""
    held = [partition for member in members for partition in member.held]
    return len(held) == len(partitions) and set(held) == partitions and all(member.held for member in members)


def wait_to_share(members: Sequence[Consumer], partitions: frozenset[tuple[str, int]]) -> None:
    def what() -> str:
        return f"{[(sorted(member.held), member.failure) for member in members]}"

    with contextlib.suppress(AssertionError):
        wait_until(lambda: share(members, partitions), "")
    assert share(members, partitions), what()


@every_client
def test_what_is_sent_is_read_once_and_the_next_reader_goes_on_from_there(
    embedded_kafka: EmbeddedKafka, client: Client
) -> None:
    embedded_kafka.create_topic("orders", 3)
    servers = embedded_kafka.bootstrap_servers
    first = [b"%d" % number for number in range(200)]
    produce(client, servers, "orders", first)
    with CONSUMERS[client](servers, "readers", "orders") as consumer:
        wait_until(lambda: consumer.read.total() >= len(first), "the first values")
        consumer.close()
    assert consumer.read == dict.fromkeys(first, 1)
    second = [b"later %d" % number for number in range(50)]
    produce(client, servers, "orders", second)
    with CONSUMERS[client](servers, "readers", "orders") as consumer:
        wait_until(lambda: consumer.read.total() >= len(second), "the later values")
        consumer.close()
    assert consumer.read == dict.fromkeys(second, 1)
    assert sum(end for _, end in embedded_kafka.offsets("orders")) == 250


@every_client
def test_members_join_and_leave(embedded_kafka: EmbeddedKafka, client: Client) -> None:
    embedded_kafka.create_topic("orders", 7)
    partitions = all_of("orders", 7)

    def member() -> Consumer:
        return CONSUMERS[client](embedded_kafka.bootstrap_servers, "readers", "orders")

    with member() as one:
        wait_to_share([one], partitions)
        with member() as two, member() as three:
            wait_to_share([one, two, three], partitions)
            group = embedded_kafka.groups()["readers"]
            assert (group.state, len(group.members)) == ("Stable", 3)
            one.close()
            wait_to_share([two, three], partitions)
            later = embedded_kafka.groups()["readers"]
            assert later.generation > group.generation
            assert len(later.members) == 2
            two.close()
            three.close()
    wait_until(lambda: embedded_kafka.groups()["readers"].state == "Empty", "the group is empty")


PROGRAM = """
import sys
from support.threads import CONSUMERS
consumer = CONSUMERS[sys.argv[1]](*sys.argv[2:4], "orders", session_timeout_ms=6000)
while not consumer.held:
    assert consumer.failure is None, consumer.failure
print("joined", flush=True)
sys.stdin.read()
"""


@every_client
def test_a_member_that_dies_is_missed_when_its_session_ends(embedded_kafka: EmbeddedKafka, client: Client) -> None:
    embedded_kafka.create_topic("orders", 4)
    servers = embedded_kafka.bootstrap_servers
    command = [sys.executable, "-c", PROGRAM, client, servers, "readers"]
    path = {"PYTHONPATH": str(TESTS)}
    with CONSUMERS[client](servers, "readers", "orders") as survivor:
        wait_to_share([survivor], all_of("orders", 4))
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ) | path, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "joined\n"
            wait_until(lambda: len(survivor.held) == 2, "the partitions are shared")
            other.kill()
        assert len(embedded_kafka.groups()["readers"].members) == 2
        wait_to_share([survivor], all_of("orders", 4))
        assert len(embedded_kafka.groups()["readers"].members) == 1
        survivor.close()


@every_client
def test_members_see_a_topic_grow(embedded_kafka: EmbeddedKafka, client: Client) -> None:
    embedded_kafka.create_topic("orders", 2)
    servers = embedded_kafka.bootstrap_servers
    with (
        CONSUMERS[client](servers, "readers", "orders") as one,
        CONSUMERS[client](servers, "readers", "orders") as two,
    ):
        wait_to_share([one, two], all_of("orders", 2))
        embedded_kafka.grow_topic("orders", 5)
        wait_to_share([one, two], all_of("orders", 5))
        one.close()
        two.close()


@pytest.mark.parametrize(
    ("client", "config"),
    [("kafka-python", {}), ("aiokafka", {"enable_idempotence": True}), ("confluent", {"enable_idempotence": True})],
)
def test_a_batch_whose_answer_was_lost_is_not_appended_twice(
    embedded_kafka: EmbeddedKafka, client: Client, config: dict[str, object]
) -> None:
    embedded_kafka.create_topic("orders", 1)
    values = [b"%d" % number for number in range(300)]
    embedded_kafka.inject_fault("Produce", close="after")
    produce(client, embedded_kafka.bootstrap_servers, "orders", values, **config)
    assert embedded_kafka.offsets("orders") == [(0, 300)]
    with CONSUMERS[client](embedded_kafka.bootstrap_servers, "readers", "orders") as consumer:
        wait_until(lambda: consumer.read.total() >= 300, "all values")
        consumer.close()
    assert consumer.read == dict.fromkeys(values, 1)


def test_without_idempotence_the_lost_answer_doubles_the_batch(embedded_kafka: EmbeddedKafka) -> None:
    """The test above would therefore fail if a batch were appended twice."""
    embedded_kafka.create_topic("orders", 1)
    embedded_kafka.inject_fault("Produce", close="after")
    with KafkaProducer(bootstrap_servers=embedded_kafka.bootstrap_servers, enable_idempotence=False) as producer:
        producer.send("orders", b"x").get(timeout=60)
    assert embedded_kafka.offsets("orders") == [(0, 2)]


@every_client
def test_a_static_member_comes_back_without_a_rebalance(embedded_kafka: EmbeddedKafka, client: Client) -> None:
    embedded_kafka.create_topic("orders", 4)
    servers = embedded_kafka.bootstrap_servers

    def member(name: str) -> Consumer:
        return CONSUMERS[client](servers, "readers", "orders", group_instance_id=name)

    with member("one") as one, member("two") as two:
        wait_to_share([one, two], all_of("orders", 4))
        before = embedded_kafka.groups()["readers"]
        assert sorted(view.instance_id or "" for view in before.members.values()) == ["one", "two"]
        one_held, two_held = one.held, two.held
        # The member that joined first leads. The follower restarts here, since a restarted leader is another case.
        follower, held = (two, two_held) if _leads(embedded_kafka, "one") else (one, one_held)
        name = "two" if follower is two else "one"
        follower.close()
        with member(name) as again:
            wait_until(lambda: again.held, "the share is back")
            after = embedded_kafka.groups()["readers"]
            assert again.held == held
            assert after.generation == before.generation
            assert after.state == "Stable"
            again.close()


def _leads(kafka: EmbeddedKafka, instance_id: str) -> bool:
    group = kafka.groups()["readers"]
    return group.leader is not None and group.members[group.leader].instance_id == instance_id


def test_all_clients_share_one_group(embedded_kafka: EmbeddedKafka) -> None:
    """All support `range`; aiokafka's own default is `roundrobin`."""
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    embedded_kafka.create_topic("orders", 9)
    servers = embedded_kafka.bootstrap_servers
    values = [b"%d" % number for number in range(500)]
    with contextlib.ExitStack() as running:
        members = [
            running.enter_context(CONSUMERS["kafka-python"](servers, "readers", "orders")),
            running.enter_context(
                CONSUMERS["aiokafka"](
                    servers, "readers", "orders", partition_assignment_strategy=[RangePartitionAssignor]
                )
            ),
            running.enter_context(CONSUMERS["confluent"](servers, "readers", "orders")),
        ]
        wait_to_share(members, all_of("orders", 9))
        assert embedded_kafka.groups()["readers"].protocol == "range"
        produce("confluent", servers, "orders", values)
        wait_until(lambda: sum(member.read.total() for member in members) >= len(values), "all values")
        for member in members:
            member.close()
    assert sum((member.read for member in members), start=type(members[0].read)()) == dict.fromkeys(values, 1)


def test_many_members_in_one_process(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 40)
    servers = embedded_kafka.bootstrap_servers
    with contextlib.ExitStack() as running:
        pair: tuple[Client, Client] = ("confluent", "kafka-python")
        clients = itertools.islice(itertools.cycle(pair), 12)
        members = [running.enter_context(CONSUMERS[client](servers, "readers", "orders")) for client in clients]
        wait_to_share(members, all_of("orders", 40))
        for member in members:
            member._stop.set()


def test_a_commit_from_outside_the_group_is_refused(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 1)
    servers = embedded_kafka.bootstrap_servers
    stranger = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "readers", "log_level": 0})
    offset = confluent_kafka.TopicPartition("orders", 0, 7)
    try:
        with CONSUMERS["kafka-python"](servers, "readers", "orders") as member:
            wait_to_share([member], all_of("orders", 1))
            with pytest.raises(confluent_kafka.KafkaException) as refused:
                stranger.commit(offsets=[offset], asynchronous=False)
            assert refused.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID
            member.close()
        # An empty group accepts a commit, as on a real broker.
        assert stranger.commit(offsets=[offset], asynchronous=False)[0].offset == 7
        assert stranger.committed([confluent_kafka.TopicPartition("orders", 0)])[0].offset == 7
    finally:
        stranger.close()


def test_a_member_that_overslept_its_session_cannot_commit(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 1)
    produce("kafka-python", embedded_kafka.bootstrap_servers, "orders", [b"x"])
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=embedded_kafka.bootstrap_servers,
        group_id="readers",
        auto_offset_reset="earliest",
        # A busy machine needs some seconds to join. A member that is expelled before it has joined never gets
        # partitions.
        session_timeout_ms=4000,
        heartbeat_interval_ms=300,
        max_poll_interval_ms=4200,
        enable_auto_commit=False,
    )
    try:
        # One call: if a join outlasts a call, kafka-python 3.0.12 can miss the end of the join.
        assert consumer.poll(timeout_ms=20_000)
        embedded_kafka.inject_fault("Heartbeat", error="UNKNOWN_MEMBER_ID")
        wait_until(lambda: not embedded_kafka.groups()["readers"].members, "the member is expelled")
        with pytest.raises(CommitFailedError):
            consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(3, "", -1)})
    finally:
        consumer.close()
    assert embedded_kafka.groups()["readers"].state == "Empty"
