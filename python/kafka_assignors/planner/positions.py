"""The place of a joining member's id in the order of ids, on which the plans of range and roundrobin depend.

The broker chooses the id of a dynamic member when it joins, so its place is not known before. The figures of such a
strategy for one invented id hold for one place only; therefore they are counted for other places too.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_assignors.assignors import RangeAssignor, RoundRobinAssignor, ServerSideRangeAssignor
from kafka_assignors.errors import RecordSizeWarning
from kafka_assignors.group import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.group import Member
    from kafka_assignors.planner.change import Situation

__all__ = ["goes_by_ids", "in_order", "moves_by_position", "places"]

_MOST_PLACES = 33
# The partitions of all plans for different places together, which limits the time.
_BUDGET = 2_000_000


def goes_by_ids(assignor: Assignor) -> bool:
    """Whether the plan depends on the order of the member ids."""
    return isinstance(assignor, RangeAssignor | RoundRobinAssignor | ServerSideRangeAssignor)


def places(others: int, most: int = _MOST_PLACES) -> list[int]:
    """Places of an id among `others` ids, from 0 (first) to `others` (last): all of them, or `most`, evenly spread.

    >>> places(3), places(100, 3)
    ([0, 1, 2, 3], [0, 50, 100])
    """
    if others < most:
        return list(range(others + 1))
    return [round(step * others / (most - 1)) for step in range(most)]


def in_order(members: Iterable[Member], order: Sequence[str]) -> tuple[list[Member], dict[str, str]]:
    """The members under new ids that sort in this order, and the real id of each new one.

    Args:
        members: of a group.
        order: the ids of all of them.
    """
    ids = {member_id: f"{number:08}" for number, member_id in enumerate(order)}
    return [replace(member, id=ids[member.id]) for member in members], {new: old for old, new in ids.items()}


def moves_by_position(situation: Situation, assignor: Assignor) -> tuple[int, int] | None:
    """The least and the most moves over the places of the joining ids, which are kept beside each other.

    None if no member joins, or if the plan does not depend on the order of ids.
    """
    if not situation.joined or not goes_by_ids(assignor):
        return None
    topics = situation.topics
    partitions = sum(topic.partitions for topic in topics.values())
    others = sorted(set(situation.subscriptions) - set(situation.joined), key=str.encode)
    most = max(3, min(_MOST_PLACES, _BUDGET // max(1, partitions)))
    found = []
    for place in places(len(others), most):
        members, names = in_order(
            situation.group.members, [*others[:place], *sorted(situation.joined), *others[place:]]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordSizeWarning)
            plan = assignor.assign(Group(situation.group.topics, members))
        after = {
            (topic, number): names[member]
            for member, of_member in plan.assignment.items()
            for topic, numbers in of_member.items()
            for number in numbers
        }
        kept = sum(situation.before.get(partition) == (member,) for partition, member in after.items())
        nobody = sum(
            (name, number) not in after and (name, number) not in situation.before
            for name, topic in topics.items()
            for number in range(topic.partitions)
        )
        found.append(partitions - kept - nobody)
    return min(found), max(found)
