"""Topics that a leader cannot plan, since its client does not know them yet: who has their partitions keeps them.

kafka-python lets its leader plan without waiting for the metadata of topics that only others subscribe to. Left out of
the plan, they would be taken from their owners, and come back to anybody a moment later, when the client knows them and
rebalances again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors.errors import KafkaAssignorsError
from kafka_assignors.userdata import Assignment, StickyUserData, Subscription

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_assignors import _core
    from kafka_assignors.assignors import JoinedMember
    from kafka_assignors.group import Plan

__all__ = ["left_with_owners", "merged"]

Partitions = dict[str, list[int]]


def left_with_owners(
    members: Sequence[JoinedMember],
    topics: Collection[str],
    generation: int | None,
    handed_out: tuple[list[tuple[int | None, _core.Plan]], bool] | None,
    *,
    cooperative: bool,
) -> tuple[dict[str, Partitions], Plan | None]:
    """What the members own of these topics, by the rules by which claims count, and the plan that says so.

    Args:
        members: as the assignor gets them.
        topics: those that are not known.
        generation: the one being formed.
        handed_out: what the leader remembers.
        cooperative: whether claims are the owned partitions of the subscription, and not in the user data.

    Returns:
        Member id to what stays with it, members with nothing left out. Without any claim, no plan.
    """
    counts = _counts(members, topics, cooperative=cooperative)
    if not counts:
        return {}, None
    # Nothing that is validly owned moves; what nobody owns is dealt out, and taken out again below.
    keeping = (CooperativeStickyAssignor if cooperative else StickyAssignor)(mode="sticky-yet-fair")
    _, plan = keeping._plan_assignment(members, counts, generation, handed_out)
    orphans = {(move.topic, move.partition) for move in plan.moves}
    kept: dict[str, Partitions] = {}
    for member_id, share in plan.items():
        owned = {
            topic: [number for number in numbers if (topic, number) not in orphans] for topic, numbers in share.items()
        }
        owned = {topic: numbers for topic, numbers in owned.items() if numbers}
        if owned:
            kept[member_id] = owned
    return kept, plan


def _counts(members: Sequence[JoinedMember], topics: Collection[str], *, cooperative: bool) -> dict[str, int]:
    """How many partitions the topics have at least, as far as claims tell.

    Partitions are numbered without gaps and healthy groups hold nearly all: numbers far beyond their count are false,
    and would cost memory.
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
    """The assignments with what stays with its owners, and how many bytes longer they are."""
    result, longer = dict(assignments), 0
    for member_id, owned in kept.items():
        planned = Assignment.decode(assignments[member_id])
        whole = Assignment({**planned.partitions, **owned}, planned.user_data)
        result[member_id] = whole.encode()
        longer += len(result[member_id]) - len(assignments[member_id])
    return result, longer
