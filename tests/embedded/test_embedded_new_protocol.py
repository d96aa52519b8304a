"""librdkafka's consumer of the new group protocol (KIP-848) on the embedded Kafka."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import EmbeddedKafkaError
from support.threads import produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATIENCE = 60.0


class Member:
    """A consumer that keeps the partitions from its callbacks, its records and its errors."""

    def __init__(self, kafka: EmbeddedKafka, subscription: Sequence[str] = ("orders",), **settings: Any) -> None:
        self.held: set[tuple[str, int]] = set()
        self.read: list[bytes] = []
        self.errors: list[KafkaError] = []
        self.times_lost = 0
        self.client = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "readers",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.client.subscribe(list(subscription), on_assign=self.gain, on_revoke=self.lose, on_lost=self.drop)

    def gain(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        gained = {(one.topic, one.partition) for one in partitions}
        assert not gained & self.held
        self.held |= gained
        client.incremental_assign(partitions)

    def lose(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        lost = {(one.topic, one.partition) for one in partitions}
        assert lost <= self.held
        self.held -= lost
        client.incremental_unassign(partitions)

    def drop(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        self.times_lost += 1
        self.lose(client, partitions)

    def poll(self) -> None:
        message = self.client.poll(0.02)
        if message is None:
            return
        error = message.error()
        if error is None:
            value = message.value()
            assert value is not None
            self.read.append(value)
        else:
            self.errors.append(error)


@contextlib.contextmanager
def closing(*members: Member) -> Iterator[None]:
    try:
        yield
    finally:
        for member in members:
            member.client.close()


def poll_until(members: Sequence[Member], condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what}: {[(sorted(one.held), one.errors) for one in members]}"
        for member in members:
            member.poll()
            held = [one for other in members for one in other.held]
            assert len(held) == len(set(held)), "two members have a partition"


def shared(members: Sequence[Member], *topics: tuple[str, int]) -> bool:
    wanted = {(topic, number) for topic, count in topics for number in range(count)}
    sizes = [len(member.held) for member in members]
    return set().union(*(member.held for member in members)) == wanted and max(sizes) - min(sizes) <= 1


def test_members_join_leave_and_read_everything_once(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 6)
    values = [b"%d" % number for number in range(300)]
    one, two = Member(embedded_kafka), Member(embedded_kafka)
    with closing(two):
        with closing(one):
            poll_until([one, two], lambda: shared([one, two], ("orders", 6)), "two share")
            produce("confluent", embedded_kafka.bootstrap_servers, "orders", values)
            poll_until([one, two], lambda: len(one.read) + len(two.read) >= 300, "all is read")
            assert sorted(one.read + two.read) == sorted(values)
            for member in (one, two):
                member.client.commit(asynchronous=False)
            group = embedded_kafka.consumer_groups()["readers"]
            assert group.assignor == "uniform"
            assert group.state == "Stable"
            assert [member.assigned for member in group.members.values()] == [
                member.target for member in group.members.values()
            ]
            assert embedded_kafka.groups() == {}
        poll_until([two], lambda: shared([two], ("orders", 6)), "the other has all")
        committed = two.client.committed([TopicPartition("orders", number) for number in range(6)])
        # A partition without a record has no commit: the producer chooses partitions by chance.
        assert sum(one.offset for one in committed if one.offset != OFFSET_INVALID) == 300
        assert not two.errors
    assert embedded_kafka.consumer_groups()["readers"].state == "Empty"


def test_topics_grow_appear_and_match_an_expression(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders-eu", 2)
    member = Member(embedded_kafka, ["^orders-.*"], topic_metadata_refresh_interval_ms=200)
    with closing(member):
        poll_until([member], lambda: shared([member], ("orders-eu", 2)), "the first topic")
        embedded_kafka.grow_topic("orders-eu", 3)
        embedded_kafka.create_topic("orders-us", 1)
        poll_until([member], lambda: shared([member], ("orders-eu", 3), ("orders-us", 1)), "growth and a new topic")
        embedded_kafka.delete_topic("orders-eu")
        poll_until([member], lambda: shared([member], ("orders-us", 1)), "a topic goes")


def test_a_static_member_returns_to_its_partitions(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 4)
    one, two = (Member(embedded_kafka, group_instance_id=name) for name in ("one", "two"))
    with closing(two):
        with closing(one):
            poll_until([one, two], lambda: shared([one, two], ("orders", 4)), "both share")
            held = set(one.held)
            epoch = embedded_kafka.consumer_groups()["readers"].epoch
        again = Member(embedded_kafka, group_instance_id="one")
        with closing(again):
            poll_until([again, two], lambda: again.held == held, "the same partitions")
            assert embedded_kafka.consumer_groups()["readers"].epoch == epoch


@pytest.mark.parametrize(("assignor", "first"), [("range", [0, 1]), ("uniform", None)])
def test_members_vote_for_an_assignor(embedded_kafka: EmbeddedKafka, assignor: str, first: list[int] | None) -> None:
    for topic in ("orders", "refunds"):
        embedded_kafka.create_topic(topic, 4)
    members = [Member(embedded_kafka, ["orders", "refunds"], group_remote_assignor=assignor) for _ in range(2)]
    with closing(*members):
        poll_until(members, lambda: shared(members, ("orders", 4), ("refunds", 4)), "both share")
        group = embedded_kafka.consumer_groups()["readers"]
        assert group.assignor == assignor
        if first is not None:
            for view in group.members.values():
                assert view.target["orders"] == view.target["refunds"]


def test_a_member_is_fenced_and_returns(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 4)
    members = [Member(embedded_kafka), Member(embedded_kafka)]

    def were_lost(times: int) -> bool:
        return sum(one.times_lost for one in members) == times

    with closing(*members):
        poll_until(members, lambda: shared(members, ("orders", 4)), "both share")
        for times, error in enumerate(("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"), 1):
            embedded_kafka.inject_fault("ConsumerGroupHeartbeat", error=error)
            poll_until(members, partial(were_lost, times), error)
            poll_until(members, lambda: shared(members, ("orders", 4)), "both share again")
        for error in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"):
            embedded_kafka.inject_fault("ConsumerGroupHeartbeat", error=error)
        embedded_kafka.drop_connections()
        epoch = embedded_kafka.consumer_groups()["readers"].epoch
        late = Member(embedded_kafka)
        with closing(late):
            poll_until([*members, late], lambda: shared([*members, late], ("orders", 4)), "three share")
            assert embedded_kafka.consumer_groups()["readers"].epoch > epoch


def test_admins_describe_and_delete(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 2)
    admin = AdminClient({"bootstrap.servers": embedded_kafka.bootstrap_servers})
    member = Member(embedded_kafka)
    with closing(member):
        poll_until([member], lambda: shared([member], ("orders", 2)), "it has both")
        (listed,) = admin.list_consumer_groups().result().valid
        assert (listed.group_id, listed.type) == ("readers", confluent_kafka.ConsumerGroupType.CONSUMER)
        described = admin.describe_consumer_groups(["readers"])["readers"].result()
        assert described.state == confluent_kafka.ConsumerGroupState.STABLE
        (only,) = described.members
        assert {(one.topic, one.partition) for one in only.assignment.topic_partitions} == member.held
    admin.delete_consumer_groups(["readers"])["readers"].result()
    assert embedded_kafka.consumer_groups() == {}


def test_an_unknown_assignor_is_fatal(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 2)
    member = Member(embedded_kafka, group_remote_assignor="sticky")
    with closing(member):
        poll_until([member], lambda: bool(member.errors), "it hears of it")
        assert member.errors[0].code() == KafkaError._FATAL
        assert "assignor" in member.errors[0].str()
    assert embedded_kafka.consumer_groups() == {}


def test_settings_of_the_new_protocol_are_checked() -> None:
    with pytest.raises(EmbeddedKafkaError, match="'uniform', 'range'"):
        EmbeddedKafka(consumer_assignors=["sticky"])
    with pytest.raises(EmbeddedKafkaError, match="consumer_assignors is empty"):
        EmbeddedKafka(consumer_assignors=[])
    with pytest.raises(EmbeddedKafkaError, match="consumer_heartbeat_interval_ms is 0"):
        EmbeddedKafka(consumer_heartbeat_interval_ms=0)
    with (
        EmbeddedKafka({"orders": 4}, consumer_assignors=["range"], consumer_heartbeat_interval_ms=100) as kafka,
        closing(member := Member(kafka)),
    ):
        poll_until([member], lambda: shared([member], ("orders", 4)), "it has all")
        assert kafka.consumer_groups()["readers"].assignor == "range"
