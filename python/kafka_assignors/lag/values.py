"""Lag as a number: of one partition, of whole topics, and of each member of a plan."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from kafka_assignors.errors import GroupError, GroupTypeError, LagError
from kafka_assignors.group import Plan

__all__ = ["KnownOffsets", "Lags", "lag_by_member", "lags_of", "partition_lag"]

Lags: TypeAlias = Mapping[str, Sequence[int]]
"""Topic to the lag of each partition, by number."""

KnownOffsets: TypeAlias = Mapping[tuple[str, int], int]
"""Topic and partition number to an offset; unknown ones are left out."""


def _offset(value: object, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise GroupTypeError(f"{what} is of type {type(value).__name__}; give an offset, or None")
    return operator.index(value)


def partition_lag(begin: int | None, end: int | None, committed: int | None, reset: str = "latest") -> int:
    """The lag of one partition (KAFKA-5337).

    Args:
        begin: the offset of the first record that is still there; None, if unknown, counts as 0.
        end: the offset that the next record will get; None, if unknown, counts as 0: no lag.
        committed: the group's committed offset; None, or a negative number, if there is none.
        reset: the consumer's `auto_offset_reset`, in any letter case. It counts only without a commit: with
            `"latest"` the group would start at the end, with any other value at the beginning.

    Returns:
        The number of offsets in between, at least 0. Offsets of deleted records count if the group has not passed them,
        as in other tools. They may be below the beginning, or removed by compaction.

    Raises:
        GroupTypeError: an offset that is not an integer.

    >>> partition_lag(1_000, 9_000, 9_500)
    0
    >>> partition_lag(1_000, 9_000, None, "latest"), partition_lag(1_000, 9_000, None, "earliest")
    (0, 8000)
    """
    first = 0 if begin is None else _offset(begin, "begin")
    last = 0 if end is None else _offset(end, "end")
    position = -1 if committed is None else _offset(committed, "committed")
    if position < 0:
        if not isinstance(reset, str):
            raise GroupTypeError(f"reset is of type {type(reset).__name__}; give the consumer's auto_offset_reset")
        position = last if reset.lower() == "latest" else first
    return max(0, last - position)


def lag_by_member(plan: Mapping[str, Mapping[str, Iterable[int]]], lags: Lags) -> dict[str, int]:
    """Each member's total lag in any plan, of any strategy. O(partitions).

    Args:
        plan: a `Plan`, or any mapping of member to topic to partition numbers.
        lags: topic to the lag of each partition, by number.

    Raises:
        GroupError: a partition that the plan has and `lags` lacks.

    >>> from kafka_assignors import Group, Member, RangeAssignor
    >>> group = Group({"t0": 3}, [Member("C0", ["t0"]), Member("C1", ["t0"])])
    >>> lag_by_member(RangeAssignor().assign(group), {"t0": [100_000, 50_000, 60_000]})
    {'C0': 150000, 'C1': 60000}
    """
    assigned = plan.assignment if isinstance(plan, Plan) else plan
    totals: dict[str, int] = {}
    for member_id, topics in assigned.items():
        total = 0
        for topic, partitions in topics.items():
            if topic not in lags:
                raise GroupError(
                    f"lags has no topic {topic!r}, of which member {member_id!r} has partitions; give them"
                )
            of_topic = lags[topic]
            for partition in partitions:
                if not 0 <= partition < len(of_topic):
                    raise GroupError(
                        f"lags[{topic!r}] has {len(of_topic)} lags, but member {member_id!r} has partition "
                        f"{partition}; give one lag per partition"
                    )
                total += of_topic[partition]
        totals[member_id] = total
    return totals


def lags_of(
    counts: Mapping[str, int], *, begin: KnownOffsets, end: KnownOffsets, committed: KnownOffsets, reset: str
) -> dict[str, list[int]]:
    """The lags of whole topics, from the offsets of a cluster. O(partitions).

    Args:
        counts: topic to its number of partitions.
        begin: the first offsets; only needed without a commit, unless `reset` is `"latest"`.
        end: the offsets that the next records will get.
        committed: the group's commits; a negative offset is none.
        reset: the consumers' `auto_offset_reset`.

    Raises:
        LagError: an offset that is needed is missing.
    """
    lags: dict[str, list[int]] = {}
    latest = reset.lower() == "latest"
    for topic, count in counts.items():
        of_topic = lags[topic] = []
        for number in range(count):
            key = topic, number
            commit = committed.get(key, -1)
            if key not in end or (commit < 0 and not latest and key not in begin):
                raise LagError(f"partition {number} of {topic!r} has no leader that returns its offsets")
            of_topic.append(partition_lag(begin.get(key), end[key], commit, reset))
    return lags
