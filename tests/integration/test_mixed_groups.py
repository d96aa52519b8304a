"""Java's and librdkafka's consumers with their own sticky assignors, and ours in Python, in one group.

The invariants after every step of every scenario:

- Each partition has exactly one owner in the generation.
- No partition was ever held by two members at once.
- While all members have the same subscription, the fewest possible partitions move, under any leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.broker import Kafka, unique
from support.members import (
    AiokafkaDropInMember,
    AiokafkaMember,
    ConfluentMember,
    JavaMember,
    KafkaPythonDropInMember,
    KafkaPythonMember,
    LibrdkafkaMember,
    Member,
    Strategy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from support.fixtures import StartMember
    from support.trace import Settled, Trace

KINDS: dict[str, Callable[..., Member]] = {"java": JavaMember, "kafka": KafkaPythonMember, "aio": AiokafkaMember}
OURS = ("kafka", "aio", "confluent")
# Our consumers, with our member in place of the client's coordinator.
DROP_INS: dict[str, Callable[..., Member]] = {
    "confluent": ConfluentMember,
    "ourkafka": KafkaPythonDropInMember,
    "ouraio": AiokafkaDropInMember,
}
ALL = KINDS | DROP_INS | {"librdkafka": LibrdkafkaMember}


class MixedGroup:
    """A group whose membership changes one step at a time. The kind of a member is its name up to the hyphen."""

    def __init__(self, kafka: Kafka, start_member: StartMember, trace: Trace, strategy: Strategy) -> None:
        self.kafka, self.trace, self.strategy = kafka, trace, strategy
        self.name = unique(f"mixed-{strategy}")
        self.topics: dict[str, int] = {}
        self.processes: dict[str, Member] = {}
        self.present: set[str] = set()
        self.now: Settled | None = None
        self._start = start_member

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(topic, number) for topic, count in self.topics.items() for number in range(count)}

    @property
    def leader(self) -> str:
        assert self.now is not None
        return self.now.leader

    def topic(self, partitions: int) -> str:
        name = self.kafka.create_topic(unique("topic"), partitions)
        self.topics[name] = partitions
        return name

    def start(self, *names: str) -> None:
        """Start the processes. They join only with `join`."""
        for name in names:
            kind = ALL[name.partition("-")[0]]
            self.processes[name] = self._start(kind, name, self.kafka, self.name, strategy=self.strategy)

    def join(self, name: str) -> None:
        self.processes[name].subscribe(*sorted(self.topics))
        self.present.add(name)
        self.settle()

    def leave(self, name: str) -> None:
        self.processes[name].close()
        self.present.remove(name)
        self.settle()

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.present.remove(name)
        self.settle()

    def freeze_past_session(self, name: str) -> None:
        """Freeze a member until the group has expelled it and has rebalanced."""
        self.processes[name].freeze()
        self.present.remove(name)
        self.settle()

    def thaw(self, name: str) -> None:
        """Let a member join again, with its old claims."""
        self.processes[name].thaw()
        self.present.add(name)
        self.settle()

    def grow(self, topic: str, partitions: int) -> None:
        self.kafka.grow_topic(topic, partitions)
        self.topics[topic] = partitions
        self.settle()

    def settle(self) -> None:
        """Wait until the present members own all partitions, and check the invariants."""
        before, self.now = self.now, self.trace.settle(self.present, self.partitions)
        self.now.check_uniform(before)

    def led_by(self, kinds: Iterable[str]) -> bool:
        return self.leader.partition("-")[0] in kinds

    def come_back_with_old_claims(self, *names: str) -> None:
        """The first member leads. The second, a follower, misses a rebalance and joins again. Then the leader does the
        same, and joins again as a follower.
        """
        self.topic(9)
        self.topic(4)
        self.start(*names)
        for name in names:
            self.join(name)
        assert self.leader == names[0]
        for name in (names[1], names[0]):
            self.freeze_past_session(name)
            assert self.leader != name
            self.thaw(name)

    def lead_between_two_of_java(self, *names: str) -> None:
        """A Java member leads these members and is killed. When all of them have left, a second Java member leads."""
        kinds = {name.partition("-")[0] for name in names}
        orders, _ = self.topic(7), self.topic(5)
        self.start("java-1", *names, "java-2")
        self.join("java-1")
        for name in names:
            self.join(name)
        assert self.leader == "java-1"
        self.kill("java-1")
        assert self.led_by(kinds)
        self.join("java-2")
        self.grow(orders, 10)
        while self.led_by(kinds):
            self.leave(self.leader)
        assert self.leader == "java-2"


@pytest.fixture
def mixed(any_kafka: Kafka, start_member: StartMember, trace: Trace) -> Callable[[Strategy], MixedGroup]:
    return lambda strategy: MixedGroup(any_kafka, start_member, trace, strategy)


@pytest.mark.needs("java")
def test_leadership_goes_from_java_to_python_and_back(mixed: Callable[[Strategy], MixedGroup]) -> None:
    group = mixed("sticky")
    orders, _ = group.topic(7), group.topic(5)
    group.start("java-1", "kafka-1", "aio-1", "java-2", "kafka-2")
    group.join("java-1")
    group.join("kafka-1")
    group.join("aio-1")
    assert group.leader == "java-1"
    group.kill("java-1")
    assert group.led_by(OURS)
    group.join("java-2")
    group.grow(orders, 10)
    assert group.led_by(OURS)
    # Closes the leader as long as it is one of ours. Then Java leads.
    while group.led_by(OURS):
        group.leave(group.leader)
    assert group.leader == "java-2"
    group.join("kafka-2")
    assert group.leader == "java-2"
    group.leave("java-2")
    assert group.led_by(OURS)


@pytest.mark.needs("java")
@pytest.mark.parametrize("leader", ["java", "kafka", "aio"])
def test_members_that_missed_a_rebalance_come_back_with_old_claims(
    mixed: Callable[[Strategy], MixedGroup], leader: str
) -> None:
    group = mixed("sticky")
    others = [f"{kind}-2" for kind in KINDS if kind != leader]
    group.come_back_with_old_claims(f"{leader}-1", *others)


@pytest.mark.needs("java")
def test_members_with_different_subscriptions_move_the_least_where_ours_leads(
    mixed: Callable[[Strategy], MixedGroup], trace: Trace
) -> None:
    group = mixed("sticky")
    wide, narrow, odd = group.topic(8), group.topic(4), group.topic(3)
    group.start("kafka-1", "java-1", "aio-1", "java-2")
    subscriptions = {
        "kafka-1": [wide, narrow, odd],
        "java-1": [wide],
        "aio-1": [wide, narrow],
        "java-2": [narrow, odd],
    }
    before: Settled | None = None
    for name in ("kafka-1", "java-1", "aio-1", "java-2", "java-1"):
        if name in group.present:
            group.processes[name].kill()
            group.present.remove(name)
        else:
            group.processes[name].subscribe(*subscriptions[name])
            group.present.add(name)
        now = trace.settle(group.present, group.partitions)
        assert now.leader == "kafka-1"
        for (topic, _), owner in now.owners.items():
            assert topic in subscriptions[owner]
        report = group.processes["kafka-1"].wait_for("synced", generation=now.generation, leader=True)
        assert report.fields["moved"] == report.fields["least_moves"]
        assert report.fields["faults"] == {}
        if before is not None and now.generation == before.generation + 1:
            # A partition that had an owner either stayed or moved, and the plan's count of moves is that of the trace.
            # On a slow machine the group may have another generation in between; then the counts may differ.
            owned = sum(owner in now.member_ids for owner in before.owners.values())
            assert now.kept(before) + report.fields["moved"] == owned
        before = now


@pytest.mark.needs("java")
def test_cooperative_members_of_both_clients_share_a_group(mixed: Callable[[Strategy], MixedGroup]) -> None:
    group = mixed("cooperative-sticky")
    orders, _ = group.topic(7), group.topic(6)
    group.start("java-1", "kafka-1", "java-2", "kafka-2")
    group.join("java-1")
    group.join("kafka-1")
    assert group.leader == "java-1"
    group.join("java-2")
    group.kill("java-1")
    group.grow(orders, 10)
    group.join("kafka-2")
    while group.led_by(OURS):
        group.leave(group.leader)
    assert group.leader == "java-2"


@pytest.mark.needs("java")
@pytest.mark.parametrize("leader", ["java", "kafka"])
def test_cooperative_members_that_missed_a_rebalance_come_back_with_old_claims(
    mixed: Callable[[Strategy], MixedGroup], leader: str
) -> None:
    group = mixed("cooperative-sticky")
    group.come_back_with_old_claims(f"{leader}-1", f"{'kafka' if leader == 'java' else 'java'}-2", f"{leader}-3")
    group.leave(group.leader)


@pytest.mark.needs("java")
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_our_confluent_consumer_leads_java_and_is_led_by_it(
    mixed: Callable[[Strategy], MixedGroup], strategy: Strategy
) -> None:
    mixed(strategy).lead_between_two_of_java("confluent-1", "confluent-2")


@pytest.mark.needs("java")
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("leader", ["java", "confluent"])
def test_our_confluent_consumer_among_members_that_missed_a_rebalance(
    mixed: Callable[[Strategy], MixedGroup], strategy: Strategy, leader: str
) -> None:
    follower = "confluent" if leader == "java" else "java"
    mixed(strategy).come_back_with_old_claims(f"{leader}-1", f"{follower}-2", "confluent-3")


def test_our_assignors_in_three_clients_share_a_group(mixed: Callable[[Strategy], MixedGroup]) -> None:
    group = mixed("sticky")
    group.topic(8)
    group.start("confluent-1", "aio-1", "kafka-1")
    for name in ("confluent-1", "aio-1", "kafka-1"):
        group.join(name)
    assert group.leader == "confluent-1"
    group.kill("confluent-1")
    assert group.led_by(("aio", "kafka"))


# ---- librdkafka's own cooperative-sticky ----------------------------------------------------------------------------


def joins_in_two_phases(group: MixedGroup, trace: Trace, name: str) -> None:
    """A member joins: exactly the partitions that move to it are revoked, each in an earlier generation than it is
    assigned.

    If the next join comes before an owner revokes, that owner revokes one generation later than the others, and its
    partitions are assigned later, too.
    """
    before, since = group.now, len(trace.events)
    assert before is not None
    group.join(name)
    now = group.now
    assert now is not None
    moved = sorted((owner, each) for each, owner in before.owners.items() if now.owners[each] != owner)
    assert moved
    given_up = [event for event in trace.events[since:] if event.kind in ("revoked", "lost")]
    assert {event.kind for event in given_up} == {"revoked"}
    assert sorted((event.member, each) for event in given_up for each in event.partitions) == moved
    taken = [event for event in trace.events[since:] if event.kind == "assigned" and event.partitions]
    assert {event.member for event in taken} == {name}
    gone_in = {each: event.generation for event in given_up for each in event.partitions}
    for event in taken:
        for each in event.partitions:
            assert event.generation > gone_in[each], each


def test_librdkafkas_own_members_lead_ours_and_are_led_by_them(
    mixed: Callable[[Strategy], MixedGroup], trace: Trace
) -> None:
    group = mixed("cooperative-sticky")
    orders, _ = group.topic(7), group.topic(5)
    group.start("librdkafka-1", "confluent-1", "librdkafka-2", "confluent-2", "librdkafka-3")
    group.join("librdkafka-1")
    joins_in_two_phases(group, trace, "confluent-1")
    joins_in_two_phases(group, trace, "librdkafka-2")
    assert group.leader == "librdkafka-1"
    group.kill("librdkafka-1")
    # Closes the leader as long as it is one of librdkafka's. Then one of ours leads.
    while not group.led_by(("confluent",)):
        group.leave(group.leader)
    joins_in_two_phases(group, trace, "librdkafka-3")
    joins_in_two_phases(group, trace, "confluent-2")
    group.grow(orders, 10)
    assert group.leader == "confluent-1"
    while group.led_by(("confluent",)):
        group.leave(group.leader)
    assert group.led_by(("librdkafka",))


@pytest.mark.parametrize("leader", ["librdkafka", "confluent"])
def test_librdkafkas_own_members_that_missed_a_rebalance(mixed: Callable[[Strategy], MixedGroup], leader: str) -> None:
    follower = "confluent" if leader == "librdkafka" else "librdkafka"
    mixed("cooperative-sticky").come_back_with_old_claims(f"{leader}-1", f"{follower}-2", "confluent-3")


# ---- our consumers of all three clients -----------------------------------------------------------------------------


@pytest.mark.needs("java")
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_our_consumers_of_three_clients_lead_java_and_are_led_by_it(
    mixed: Callable[[Strategy], MixedGroup], strategy: Strategy
) -> None:
    mixed(strategy).lead_between_two_of_java(*(f"{kind}-1" for kind in DROP_INS))


@pytest.mark.needs("java")
@pytest.mark.parametrize(
    ("leader", "follower", "strategy"),
    [("ourkafka", "ouraio", "sticky"), ("ouraio", "ourkafka", "cooperative-sticky")],
)
def test_our_consumers_that_missed_a_rebalance_come_back_with_old_claims(
    mixed: Callable[[Strategy], MixedGroup], leader: str, follower: str, strategy: Strategy
) -> None:
    mixed(strategy).come_back_with_old_claims(f"{leader}-1", f"{follower}-2", "java-3")


def test_librdkafkas_own_members_among_our_consumers_of_three_clients(
    mixed: Callable[[Strategy], MixedGroup], trace: Trace
) -> None:
    group = mixed("cooperative-sticky")
    orders, _ = group.topic(7), group.topic(5)
    ours = [f"{kind}-1" for kind in DROP_INS]
    group.start("librdkafka-1", *ours, "librdkafka-2")
    group.join("librdkafka-1")
    for name in ours:
        joins_in_two_phases(group, trace, name)
    assert group.leader == "librdkafka-1"
    group.leave("librdkafka-1")
    assert group.led_by(DROP_INS)
    joins_in_two_phases(group, trace, "librdkafka-2")
    group.grow(orders, 10)
    while group.led_by(DROP_INS):
        group.leave(group.leader)
    assert group.leader == "librdkafka-2"
