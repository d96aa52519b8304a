"""Timelines of one group on one axis: the same rebalances from left to right, the same partitions from top to bottom.

A strategy may lack rebalances that another one has: the observed timeline has none for a change of partition counts.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kafka_assignors.report.model import Ownership

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COLUMNS_SHOWN", "PARTITIONS_SHOWN", "aligned", "codes", "most_moved"]

COLUMNS_SHOWN = 60
"""The most rebalances in a picture: the last ones."""

PARTITIONS_SHOWN = 40
"""The most partitions in a picture; of more partitions, those with the most moves are shown."""


def aligned(timelines: Sequence[Ownership]) -> list[Ownership]:
    """The timelines with the same times and the same partitions, each with its own members.

    At a time at which a timeline has no rebalance, its owners stay the same, and nothing moves. O(cells).
    """
    moments = [_moments(each.times) for each in timelines]
    columns = sorted(set(itertools.chain.from_iterable(moments)))[-COLUMNS_SHOWN:]
    partitions = sorted({partition for each in timelines for partition in each.partitions})
    return [_on(each, own, columns, partitions) for each, own in zip(timelines, moments, strict=True)]


def _moments(times: Sequence[int]) -> list[tuple[int, int]]:
    """Each time with its place among equal times: 0 for the last, -1 for the one before it, and so on.

    Of two rebalances at one time, that for a change of counts comes first, and a timeline may lack it. Therefore the
    places are counted from the last one.
    """
    found: list[tuple[int, int]] = []
    for at, ts in enumerate(reversed(times)):
        after = found[-1] if at else None
        found.append((ts, after[1] - 1 if after is not None and after[0] == ts else 0))
    return found[::-1]


def _on(
    timeline: Ownership,
    moments: Sequence[tuple[int, int]],
    columns: Sequence[tuple[int, int]],
    partitions: Sequence[tuple[str, int]],
) -> Ownership:
    places = {partition: place for place, partition in enumerate(timeline.partitions)}
    order = [places.get(partition, -1) for partition in partitions]
    owners: list[Sequence[int]] = []
    moved: list[int] = []
    own = -1
    for column in columns:
        before = own
        while own + 1 < len(moments) and moments[own + 1] <= column:
            own += 1
        step = timeline.owners[own] if own >= 0 else ()
        owners.append([step[place] if place >= 0 and step else -1 for place in order])
        moved.append(timeline.moved[own] if own > before and moments[own] == column else 0)
    return Ownership(timeline.strategy, [ts for ts, _ in columns], timeline.members, partitions, owners, moved)


def most_moved(timelines: Sequence[Ownership]) -> list[int]:
    """The places of the partitions that are shown, of aligned timelines: those that change owner most often."""
    changes = [0] * len(timelines[0].partitions) if timelines else []
    for timeline in timelines:
        for place, owned in enumerate(zip(*timeline.owners, strict=True)):
            changes[place] += sum(before != after for before, after in itertools.pairwise(owned))
    return sorted(sorted(range(len(changes)), key=lambda place: (-changes[place], place))[:PARTITIONS_SHOWN])


def codes(timelines: Sequence[Ownership]) -> dict[str, str]:
    """Letters for the members of all timelines: A, B, … Z, AA, AB, …"""
    members = dict.fromkeys(member for each in timelines for member in each.members)
    found = {}
    for number, member in enumerate(members, 1):
        code = ""
        while number:
            number, digit = divmod(number - 1, 26)
            code = chr(65 + digit) + code
        found[member] = code
    return found
