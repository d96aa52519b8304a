"""Topics without metadata: the leader cannot plan them, so their owners keep their partitions.

kafka-python lets its leader plan before it has the metadata of topics that only other members subscribe to. If such a
topic were left out of the plan, its owners would lose its partitions. When the client has the metadata it rebalances
again, and then any member could get them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors.errors import KafkaAssignorsError
from kafka_assignors.userdata import Assignment, StickyUserData, Subscription

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_assignors.assignor import EarlierPlans, JoinedMember
    from kafka_assignors.group import Plan

__all__ = ["left_with_owners", "merged"]

Partitions = dict[str, list[int]]


def left_with_owners(
    members: Sequence[JoinedMember],
    topics: Collection[str],
    generation: int | None,
    earlier: EarlierPlans | None,
    *,
    cooperative: bool,
) -> tuple[dict[str, Partitions], Plan | None]:
    """The partitions of these topics that each member owns, by the rules for claims.

    Args:
        members: as for the assignor.
        topics: the topics without metadata.
        generation: the generation being formed.
        earlier: the leader's earlier plans.
        cooperative: whether claims are in the subscription's owned partitions; else they are in its user data.

    Returns:
        Member id to the partitions that the member keeps, without members that own none; and the plan from which they
        are taken, None if there is no claim.
    """
    counts = _counts(members, topics, cooperative=cooperative)
    if not counts:
        return {}, None
    # This mode moves no partition that has an owner. It also assigns those without one, which are left out below.
    keeping = (CooperativeStickyAssignor if cooperative else StickyAssignor)(mode="sticky-yet-fair")
    _, plan = keeping._plan_assignment(members, counts, generation, earlier)
    orphans = {(move.topic, move.partition) for move in plan.moves}
    kept: dict[str, Partitions] = {}
    for member_id, assigned in plan.items():
        owned = {
            topic: [number for number in numbers if (topic, number) not in orphans]
            for topic, numbers in assigned.items()
        }
        owned = {topic: numbers for topic, numbers in owned.items() if numbers}
        if owned:
            kept[member_id] = owned
    return kept, plan


def _counts(members: Sequence[JoinedMember], topics: Collection[str], *, cooperative: bool) -> dict[str, int]:
    """The least partition counts of the topics that the claims allow.

    Partition numbers have no gaps, and a healthy group owns nearly all partitions. So a number far above the number of
    claims is false. If it counted, one claim could make the leader plan two billion partitions.
    """
    wanted = set(topics)
    claims: dict[str, set[int]] = {}
    for member in members:
        try:
            subscription = Subscription.decode(member[-1])
            owned = subscription.owned if cooperative else StickyUserData.decode(subscription.user_data).assignments
        except KafkaAssignorsError:
            continue
        for topic in wanted.intersection(subscription.topics, owned):
            claims.setdefault(topic, set()).update(number for number in owned[topic] if number >= 0)
    counts: dict[str, int] = {}
    for topic, numbers in claims.items():
        credible = [number for number in numbers if number < 2 * len(numbers) + 16]
        if credible:
            counts[topic] = max(credible) + 1
    return counts


def merged(assignments: dict[str, bytes], kept: Mapping[str, Partitions]) -> tuple[dict[str, bytes], int]:
    """The assignments with the partitions that stay with their owners, and how many bytes longer they are."""
    result, longer = dict(assignments), 0
    for member_id, owned in kept.items():
        planned = Assignment.decode(assignments[member_id])
        whole = Assignment({**planned.partitions, **owned}, planned.user_data)
        result[member_id] = whole.encode()
        longer += len(result[member_id]) - len(assignments[member_id])
    return result, longer
