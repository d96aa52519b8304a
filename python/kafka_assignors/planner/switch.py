"""The effect of moving a group to the protocol in which the broker assigns, planned with the broker's assignor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_assignors.group import balance_score
from kafka_assignors.planner.compare import split_numbers
from kafka_assignors.server_side import ServerSideGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.planner.observed_group import ObservedGroup, Partition
    from kafka_assignors.server_side import ServerSideName

__all__ = ["Switch", "switch"]

# The most partitions that all plans of the whole move may have together.
_BUDGET = 3_000_000


@dataclass(frozen=True, slots=True)
class Switch:
    """A group before it is moved, and after.

    Attributes:
        assignor: the broker's assignor.
        exact: whether not only the number of moved partitions is certain, but also which partitions move.
        partitions: how many have an owner now.
        moves: partitions that change their owner when the first member of the new protocol joins beside all others.
        all_moves: changes of owner until every classic member is replaced, one after the other, each new one before
            the old one stops; None if that is too much to compute.
        fewest_now: the fewest partitions of a member now.
        most_now: the most.
        fewest: the fewest partitions of a member after.
        most: the most.
        balance_score_now: the balance score now (KIP-54).
        balance_score: the balance score after.
        split_numbers_now: how many partition numbers that every topic has belong to different members in different
            topics; None for a group of one topic.
        split_numbers: the same after.
        numbers: how many partition numbers every topic has.
        own_rack_now: partitions whose owner is in the rack of a replica; None without racks.
        own_rack: the same after.
    """

    assignor: str
    exact: bool
    partitions: int
    moves: int
    all_moves: int | None
    fewest_now: int
    most_now: int
    fewest: int
    most: int
    balance_score_now: int
    balance_score: int
    split_numbers_now: int | None
    split_numbers: int | None
    numbers: int
    own_rack_now: int | None
    own_rack: int | None


def switch(observed: ObservedGroup, assignor: ServerSideName, broker: str) -> Switch:
    """Replaces the classic members one by one. O(members × partitions), within a budget.

    Args:
        observed: the group; one of the classic protocol, or one that is being moved.
        assignor: the broker's assignor.
        broker: the release of the broker.

    Raises:
        GroupError: the group cannot be on a broker, such as with a partition that does not exist.
        OptionError: the assignor or the release is not known.
    """
    alone = replace(observed.snapshot, groups={observed.group_id: observed.group}, topics=observed.topics)
    group = ServerSideGroup.of(alone, assignor=assignor, broker=broker)
    exact = group.exact
    before = {partition: owners[0] for partition, owners in observed.owners.items()}
    members = sorted(observed.members, key=lambda member: (member.instance_id is None, member.id))
    if observed.by_broker:
        members = [member for member in members if getattr(member, "classic", None)]
    # The successor of a static member takes over its target, so `labels` makes it the same owner. The successor of a
    # dynamic member is another owner; only `final` gives it the seat of the member that it replaces.
    labels: dict[str, str] = {}
    seats = {member.id: member.id for member in observed.members}
    owners: Mapping[Partition, str] = before
    made: list[int] = []
    whole = len(before) * 2 * len(members) <= _BUDGET
    for member in members if whole else members[:1]:
        new = f"{member.id}+"
        while new in seats:
            new += "+"
        seats[new] = member.id
        if member.instance_id is not None:
            labels[new] = member.id
            group.leave(member.id, returning=True)
        group.join(new, member.topics, instance_id=member.instance_id)
        owners = _moved(owners, group, labels, made)
        if member.instance_id is None:
            group.leave(member.id)
            owners = _moved(owners, group, labels, made)
    final = {partition: seats[owner] for partition, owner in owners.items()}
    now_loads = observed.loads()
    loads = dict.fromkeys(now_loads, 0)
    for owner in final.values():
        loads[owner] += 1
    racks = {member.id: member.rack for member in observed.members}
    counts = {name: topic.partitions for name, topic in observed.topics.items()}
    split_now, numbers = split_numbers(before, counts)
    split, _ = split_numbers(final, counts)
    return Switch(
        assignor=assignor,
        exact=exact,
        partitions=len(before),
        moves=made[0] if made else 0,
        all_moves=sum(made) if whole else None,
        fewest_now=min(now_loads.values(), default=0),
        most_now=max(now_loads.values(), default=0),
        fewest=min(loads.values(), default=0),
        most=max(loads.values(), default=0),
        balance_score_now=balance_score(now_loads),
        balance_score=balance_score(loads),
        split_numbers_now=split_now,
        split_numbers=split,
        numbers=numbers,
        own_rack_now=_own_rack(observed, before, racks),
        own_rack=_own_rack(observed, final, racks),
    )


def _moved(
    before: Mapping[Partition, str], group: ServerSideGroup, labels: Mapping[str, str], made: list[int]
) -> dict[Partition, str]:
    """The owners in the target of `group`; appends to `made` the number of partitions whose owner changed."""
    after = {
        (topic, number): labels.get(member, member)
        for member, topics in group.target.items()
        for topic, numbers in topics.items()
        for number in numbers
    }
    made.append(sum(after.get(partition) != owner for partition, owner in before.items()))
    return after


def _own_rack(observed: ObservedGroup, owners: Mapping[Partition, str], racks: Mapping[str, str | None]) -> int | None:
    topics = observed.topics
    if not any(racks.values()) or all(topic.racks is None for topic in topics.values()):
        return None
    found = 0
    for (name, number), owner in owners.items():
        replicas = topics[name].racks if name in topics else None
        found += replicas is not None and racks.get(owner) in replicas[number]
    return found
