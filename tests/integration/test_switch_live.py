"""Groups of the classic protocol on a real broker, converted by their first member of the new protocol (KIP-848)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import confluent_kafka

from kafka_assignors import (
    CooperativeStickyAssignor,
    MemberState,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.cluster import ConsumerMember, GroupSnapshot, read_snapshot
from kafka_assignors.errors import ClusterError
from kafka_assignors.member.user_data import without_generation
from kafka_assignors.planner.migrate import migrate
from support.broker import Kafka, unique
from support.raw_group import NONE, RawGroup
from support.server_side import Draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

GROUPS = 12
STRATEGIES = (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
_TIMEOUT = 60.0


class _Switched:
    """A classic group whose members sent JoinGroup and SyncGroup once."""

    def __init__(self, kafka: Kafka, number: int) -> None:
        self.draw, self.number = Draw(number), number
        self.kafka, self.group_id = kafka, unique(f"switch-{number}")
        self.topics = {kafka.create_topic(unique("t"), count): count for count in _counts(self.draw)}

    def begin(self, opened: ExitStack) -> None:
        """The members join, and are assigned their partitions."""
        kafka, draw, number = self.kafka, self.draw, self.number
        assignor: Any = STRATEGIES[number % len(STRATEGIES)]()
        clients = [f"c{each}" for each in range(draw.between(1, 6))]
        # In every third group the members subscribe to different topics.
        some = [draw.some(list(self.topics), draw.between(1, 3)) for _ in clients]
        names = [sorted(each if number % 3 == 2 else self.topics) for each in some]
        metadata = {client: assignor.metadata(each, MemberState()) for client, each in zip(clients, names, strict=True)}
        raw = opened.enter_context(_members(kafka, self.group_id, clients, assignor.name))
        leader = raw.join(metadata)
        planned, _ = assignor.plan_assignment(leader.members, self.topics, generation=leader.generation)
        answers = raw.sync({member: without_generation(each) for member, each in planned.items()})
        assert {error for error, _ in answers.values()} == {NONE}

    def taken(self) -> Any:
        return read_snapshot({"bootstrap.servers": self.kafka.bootstrap_servers}, [self.group_id])

    def predict(self) -> int:
        """The number of partitions that the first member of the new protocol moves, according to `migrate`."""
        taken = self.taken()
        (found,) = migrate(taken, self.group_id, assignor="uniform").groups
        assert found.change is not None
        members = taken.groups[self.group_id].members
        self.members, self.first = len(members), min(members, key=lambda member: member.id)
        self.before = {each: member.id for member in members for each in _flat(member.owned)}
        assert found.change.partitions == len(self.before)
        return found.change.moves

    def switch(self) -> int:
        """Converts the group. Returns how many partitions have another owner in the broker's plan."""
        consumer = _consumer(self.kafka, self.group_id)
        try:
            consumer.subscribe(list(self.first.topics))
            deadline = time.monotonic() + _TIMEOUT
            while True:
                consumer.poll(0.05)
                found = self.planned()
                if found is not None:
                    break
                assert time.monotonic() < deadline, f"{self.group_id} is not converted"
            owners = {each: member.id for member in found for each in _flat(member.target)}
            assert owners.keys() >= self.before.keys()
            return sum(owners[each] != owner for each, owner in self.before.items())
        finally:
            consumer.close()

    def planned(self) -> list[ConsumerMember] | None:
        """The members, if there is one more and the broker has planned; else None."""
        try:
            found: GroupSnapshot = self.taken().groups[self.group_id]
        except ClusterError:
            return None
        members = [each for each in found.members if isinstance(each, ConsumerMember)]
        return members if len(members) > self.members and found.state != "Assigning" else None


def _consumer(kafka: Kafka, group_id: str) -> confluent_kafka.Consumer:
    """A member of the new protocol."""
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group_id,
            "group.protocol": "consumer",
            "group.remote.assignor": "uniform",
            "log_level": 0,
        }
    )


def _wait_until_the_coordinator_knows(kafka: Kafka, topics: Mapping[str, int]) -> None:
    """A coordinator gets new metadata later than a client, and assigns no topic that it does not know yet."""
    consumer = _consumer(kafka, unique("all-topics"))
    try:
        consumer.subscribe(list(topics))
        deadline = time.monotonic() + _TIMEOUT
        while len(consumer.assignment()) < sum(topics.values()):
            consumer.poll(0.05)
            assert time.monotonic() < deadline, "the coordinator does not know all topics"
    finally:
        consumer.close()


def _counts(draw: Draw) -> Iterator[int]:
    for _ in range(draw.between(1, 3)):
        yield draw.between(1, 24)


def _members(kafka: Kafka, group_id: str, clients: list[str], strategy: str) -> AbstractContextManager[RawGroup]:
    return RawGroup(kafka.bootstrap_servers, group_id, clients, strategy)


def _flat(partitions: Any) -> list[tuple[str, int]]:
    return [(topic, number) for topic, numbers in partitions.items() for number in numbers]


def test_the_moves_at_the_switch_are_those_that_migrate_predicts(consumer_protocol_kafka: Kafka) -> None:
    told = []
    groups = [_Switched(consumer_protocol_kafka, number) for number in range(GROUPS)]
    topics = {topic: count for group in groups for topic, count in group.topics.items()}
    _wait_until_the_coordinator_knows(consumer_protocol_kafka, topics)
    for number, group in enumerate(groups):
        with ExitStack() as opened:
            group.begin(opened)
            told.append((number, group.predict(), group.switch()))
    assert [(number, predicted) for number, predicted, _ in told] == [(number, moved) for number, _, moved in told]
    # In most of the groups some partition must move.
    assert sum(moved > 0 for _, _, moved in told) > GROUPS // 2
    print("predicted and moved:", told)
