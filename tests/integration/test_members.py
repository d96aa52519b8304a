"""The consumers of the group tests follow their commands and write the expected events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

from support.broker import unique
from support.members import (
    AiokafkaDropInMember,
    AiokafkaMember,
    JavaMember,
    KafkaPythonDropInMember,
    KafkaPythonMember,
    Member,
)
from support.trace import Settled, Trace, holdings

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.broker import Kafka
    from support.fixtures import StartMember

KINDS = [JavaMember, KafkaPythonMember, AiokafkaMember, KafkaPythonDropInMember, AiokafkaDropInMember]
# aiokafka calls no listener when a consumer stops.
SILENT = (AiokafkaMember, AiokafkaDropInMember)


@pytest.mark.parametrize("kind", KINDS)
def test_members_join_read_commit_and_leave(
    kafka_broker: Kafka, start_member: StartMember, trace: Trace, kind: Callable[..., Member]
) -> None:
    topic, group = kafka_broker.create_topic(unique("orders"), 4), unique("readers")
    partitions = {(topic, partition) for partition in range(4)}
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        for partition in range(4):
            producer.send(topic, b"x", partition=partition).get(timeout=60)
    one = start_member(kind, "one", kafka_broker, group)
    two = start_member(kind, "two", kafka_broker, group)
    one.subscribe(topic)
    alone = trace.settle(["one"], partitions)
    assert alone.leader == "one"
    two.subscribe(topic)
    both = trace.settle(["one", "two"], partitions)
    both.check_uniform(alone)
    assert both.generation > alone.generation
    assert both.kept(alone) == both.most_kept(alone) == 2
    described = kafka_broker.describe_group(group)
    assert (described.state, described.assignor) == ("STABLE", "sticky")
    assert set(described.assignment) == set(both.member_ids.values())

    read: set[tuple[str, int]] = set()
    for event in trace.events:
        if event.kind == "consumed":
            read |= {(name, partition) for name, partition, _, _ in event.fields["offsets"]}
    assert read == partitions
    one.commit()
    one.close()
    assert not one.alive
    left = trace.settle(["two"], partitions)
    left.check_uniform(both)
    assert left.kept(both) == 2
    kinds = [event.kind for event in trace.events if event.member == "one"]
    assert kinds.index("commit-done") < kinds.index("close-done")
    assert kinds[-3:] == ["closing" if kind in SILENT else "revoked", "close-done", "ended"]


@pytest.mark.parametrize("kind", [JavaMember, KafkaPythonMember, AiokafkaMember])
def test_a_member_that_stops_polling_loses_its_partitions_and_comes_back(
    kafka_broker: Kafka, start_member: StartMember, trace: Trace, kind: Callable[..., Member]
) -> None:
    topic, group = kafka_broker.create_topic(unique("orders"), 5), unique("readers")
    partitions = {(topic, partition) for partition in range(5)}
    member = start_member(kind, "one", kafka_broker, group, max_poll_interval_ms=2500)
    other = start_member(JavaMember, "two", kafka_broker, group)
    member.subscribe(topic)
    trace.settle(["one"], partitions)
    other.subscribe(topic)
    before = trace.settle(["one", "two"], partitions)
    member.stall(6000)
    alone = trace.settle(["two"], partitions)
    alone.check_uniform(before)
    after = trace.settle(["one", "two"], partitions)
    after.check_uniform(alone)
    assert after.member_ids["one"] != before.member_ids["one"]


def test_a_frozen_member_is_expelled_and_a_killed_one_says_nothing(
    kafka_broker: Kafka, start_member: StartMember, trace: Trace
) -> None:
    topic, group = kafka_broker.create_topic(unique("orders"), 4), unique("readers")
    partitions = {(topic, partition) for partition in range(4)}
    names = ["one", "two"]
    one, two = (start_member(JavaMember, name, kafka_broker, group, session_timeout_ms=2000) for name in names)
    one.subscribe(topic)
    trace.settle(["one"], partitions)
    two.subscribe(topic)
    both = trace.settle(names, partitions)
    two.freeze()
    alone = trace.settle(["one"], partitions)
    alone.check_uniform(both)
    two.thaw()
    two.wait_for("lost")
    again = trace.settle(names, partitions)
    again.check_uniform(alone)
    assert again.member_ids["two"] != both.member_ids["two"]
    one.kill()
    last = trace.settle(["two"], partitions)
    last.check_uniform(again)
    assert [event.kind for event in trace.events if event.member == "one"][-2:] == ["killed", "ended"]


def test_a_member_that_fails_shows_its_log_in_the_error(
    kafka_broker: Kafka, start_member: StartMember, trace: Trace
) -> None:
    member = start_member(JavaMember, "broken", kafka_broker, unique("readers"), assignor="no.such.Assignor")
    with pytest.raises(RuntimeError, match=r"(?s)broken ended without started.*broken\.log.*no\.such\.Assignor"):
        member.wait_for("started")
    with pytest.raises(RuntimeError, match="broken ended while waiting"):
        trace.settle(["broken"], [("orders", 0)])


def synced(member: str, generation: int, *partitions: int, leader: bool = False) -> dict[str, object]:
    return {
        "event": "synced",
        "at": time.time_ns() // 1000,
        "generation": generation,
        "member": member,
        "leader": leader,
        "partitions": [("t", number) for number in partitions],
    }


def listener(event: str, *partitions: int, generation: int = -1) -> dict[str, object]:
    numbers = [("t", number) for number in partitions]
    return {"event": event, "at": time.time_ns() // 1000, "generation": generation, "partitions": numbers}


def test_the_trace_sees_a_partition_held_by_two_members() -> None:
    trace = Trace()
    trace.record("a", listener("assigned", 0, 1))
    trace.record("a", listener("revoked", 1))
    trace.record("b", listener("assigned", 1))
    trace.check()
    assert holdings(trace.events) == {"a": {("t", 0)}, "b": {("t", 1)}}
    trace.record("b", listener("assigned", 0))
    with pytest.raises(AssertionError, match="is held by a and given to b"):
        trace.check()


# By the event of a signal, the event that ends the absence.
_ENDS = {"frozen": "thawed", "killed": "started"}


@pytest.mark.parametrize("absence", ["frozen", "stall", "killed", "closing"])
def test_an_absent_member_holds_nothing_until_it_is_assigned_again(absence: str) -> None:
    trace = Trace()
    trace.record("a", listener("assigned", 0))
    trace.record("a", listener(absence))
    trace.record("b", listener("assigned", 0))
    if absence in _ENDS:
        # Events that the member writes before the signal reaches it do not count.
        trace.record("a", listener("assigned"))
        trace.record("a", listener("assigned", 0))
        trace.check()
        trace.record("a", listener(_ENDS[absence]))
    trace.record("a", listener("lost", 0))
    trace.check()
    trace.record("a", listener("assigned", 0))
    with pytest.raises(AssertionError, match="is held by b and given to a"):
        trace.check()


def test_what_reaches_an_absent_member_too_late_does_not_count() -> None:
    trace = Trace()
    trace.record("a", listener("assigned", 0, generation=1))
    trace.record("a", listener("frozen"))
    trace.record("b", listener("assigned", 0, 1, generation=3))
    trace.record("a", listener("thawed"))
    trace.record("a", listener("assigned", 1, generation=2))
    trace.check()
    assert holdings(trace.events) == {"a": {("t", 0), ("t", 1)}, "b": {("t", 0), ("t", 1)}}
    trace.record("a", listener("assigned", generation=3))
    with pytest.raises(AssertionError, match="is held by b and given to a"):
        trace.check()


def test_the_trace_sees_a_partition_given_twice_in_a_generation() -> None:
    trace = Trace()
    trace.record("a", synced("a", 1, 0, 1))
    trace.record("b", synced("b", 2, 1))
    trace.check()
    trace.record("b", synced("b", 1, 1))
    with pytest.raises(AssertionError, match="was given to a and b in generation 1"):
        trace.check()


def test_a_group_has_settled_only_when_all_is_owned_in_one_generation() -> None:
    trace = Trace()
    trace.record("a", synced("a", 1, 0, leader=True))
    trace.record("a", listener("assigned", 0))
    whole = [("t", 0), ("t", 1)]
    for reason in (synced("b", 1), synced("b", 2, 1), synced("b", 1, 1)):
        trace.record("b", reason)
        with pytest.raises(TimeoutError, match="still waiting for"):
            trace.settle(["a", "b"], whole, timeout=0.01)
    trace.record("b", listener("assigned", 1))
    settled = trace.settle(["a", "b"], whole, timeout=0.01)
    assert settled == Settled(1, "a", {("t", 0): "a", ("t", 1): "b"}, {"a": "a", "b": "b"})


def test_a_plan_that_moves_too_much_or_is_unbalanced_is_seen() -> None:
    def settled(*owners: str, ids: dict[str, str] | None = None) -> Settled:
        names = ids or {name: name for name in owners}
        return Settled(1, "a", {("t", number): name for number, name in enumerate(owners)}, names)

    before = settled("a", "a", "b", "b")
    settled("a", "c", "b", "b", ids={name: name for name in "abc"}).check_uniform(before)
    with pytest.raises(AssertionError, match="1 partitions kept, 3 possible"):
        settled("b", "c", "a", "b").check_uniform(before)
    with pytest.raises(AssertionError, match="unbalanced"):
        settled("a", "a", "a", "b").check_uniform()
    # A member with a new id starts without partitions.
    settled("b", "b", "a", "a", ids={"a": "new", "b": "newer"}).check_uniform(before)
