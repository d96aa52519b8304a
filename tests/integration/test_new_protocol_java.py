"""Java's consumer of the new group protocol (KIP-848) on the embedded Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.broker import Kafka
from support.members import JavaMember
from support.threads import produce, wait_until

if TYPE_CHECKING:
    from kafka_assignors.embedded import EmbeddedKafka
    from support.fixtures import StartMember
    from support.members import Member
    from support.trace import Trace

pytestmark = pytest.mark.needs("java")
GROUP = "readers"


def held(trace: Trace, member: Member) -> set[tuple[str, int]]:
    """The partitions that a member holds after all calls of its callbacks."""
    partitions: set[tuple[str, int]] = set()
    for event in trace.events:
        if event.member != member.name or event.kind not in {"assigned", "revoked", "lost"}:
            continue
        changed = {(topic, number) for topic, number in event.fields["partitions"]}
        if event.kind == "assigned":
            assert not changed & partitions
            partitions |= changed
        else:
            partitions -= changed
    return partitions


def wait_to_share(trace: Trace, members: list[Member], partitions: set[tuple[str, int]]) -> None:
    def shared() -> bool:
        each = [held(trace, member) for member in members]
        sizes = [len(one) for one in each]
        return sum(sizes) == len(partitions) and set().union(*each) == partitions and max(sizes) - min(sizes) <= 1

    wait_until(shared, "the members to share the partitions")


def consumed(trace: Trace) -> set[tuple[str, int, int]]:
    return {
        (topic, number, offset)
        for event in trace.events
        if event.kind == "consumed"
        for topic, number, first, last in event.fields["offsets"]
        for offset in range(first, last + 1)
    }


def test_java_members_join_read_commit_and_leave(
    embedded_kafka: EmbeddedKafka, start_member: StartMember, trace: Trace
) -> None:
    embedded_kafka.create_topic("orders", 6)
    kafka = Kafka(embedded_kafka.bootstrap_servers, "embedded")
    produce("confluent", kafka.bootstrap_servers, "orders", [b"%d" % number for number in range(60)])
    members: list[Member] = []
    for name in ("java-1", "java-2"):
        members.append(start_member(JavaMember, name, kafka, GROUP, protocol="consumer"))
        members[-1].subscribe("orders")
    every = {("orders", number) for number in range(6)}
    wait_to_share(trace, members, every)
    wait_until(lambda: len(consumed(trace)) == 60, "every record")
    for member in members:
        member.commit()
    group = embedded_kafka.consumer_groups()[GROUP]
    assert group.state == "Stable"
    assert {member.epoch for member in group.members.values()} == {group.epoch}
    embedded_kafka.grow_topic("orders", 8)
    every |= {("orders", 6), ("orders", 7)}
    wait_to_share(trace, members, every)
    members[0].close()
    wait_to_share(trace, members[1:], every)
    # A fenced member joins again with the same member id.
    before = embedded_kafka.consumer_groups()[GROUP]
    embedded_kafka.inject_fault("ConsumerGroupHeartbeat", error="FENCED_MEMBER_EPOCH")
    members[1].wait_for("lost")
    wait_to_share(trace, members[1:], every)
    assert set(embedded_kafka.consumer_groups()[GROUP].members) == set(before.members)
    members[1].close()
    assert embedded_kafka.consumer_groups()[GROUP].state == "Empty"


def test_a_static_java_member_returns_to_its_partitions(
    embedded_kafka: EmbeddedKafka, start_member: StartMember, trace: Trace
) -> None:
    embedded_kafka.create_topic("orders", 4)
    kafka = Kafka(embedded_kafka.bootstrap_servers, "embedded")

    def start(name: str, instance: str) -> Member:
        settings = {"group_instance_id": instance, "group_remote_assignor": "range"}
        member = start_member(JavaMember, name, kafka, GROUP, protocol="consumer", **settings)
        member.subscribe("orders")
        return member

    one, two = start("one", "i1"), start("two", "i2")
    every = {("orders", number) for number in range(4)}
    wait_to_share(trace, [one, two], every)
    epoch = embedded_kafka.consumer_groups()[GROUP].epoch
    one.close()
    again = start("again", "i1")
    wait_to_share(trace, [again, two], every)
    group = embedded_kafka.consumer_groups()[GROUP]
    # `range` gives the first run to the first instance id.
    assert held(trace, again) == {("orders", 0), ("orders", 1)}
    assert (group.epoch, group.assignor) == (epoch, "range")
    for member in (again, two):
        member.close()
