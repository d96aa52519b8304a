"""The changes of a group between two readings: the growth of lag, commits that stand still, and rebalances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.cluster import ClassicMember

if TYPE_CHECKING:
    from kafka_assignors.cluster import Ages, GroupSnapshot
    from kafka_assignors.planner.observed_group import ObservedGroup

__all__ = ["PATIENCE_S", "Movement", "movement", "rebalances_between"]

PATIENCE_S = 10.0
"""The shortest time after which a commit that did not advance stands still: clients commit every five seconds."""


@dataclass(frozen=True, slots=True)
class Movement:
    """The changes of one group between two readings. With one reading, the figures that need two are None.

    Attributes:
        growth: by how many records a second the lag grew; negative if it shrank.
        arrivals: how many records a second were written to partitions with a commit.
        commits: by how many records a second the commits advanced.
        lag_seconds: how many seconds the oldest unread record has waited; None if that is not known.
        stuck: partitions whose commit stands still although records wait in both readings: more than one record, or
            the end moves as well. None if the readings are less than `PATIENCE_S` apart.
        rewound: partitions whose commit went back.
        remade: partitions whose end went back: their topic was deleted and made anew. No rate counts them.
        rebalances: how often it rebalanced, at least; None if that is not known.
    """

    growth: float | None = None
    arrivals: float | None = None
    commits: float | None = None
    lag_seconds: float | None = None
    stuck: int | None = None
    rewound: int = 0
    remade: int = 0
    rebalances: int | None = None


class _Sums:
    def __init__(self) -> None:
        self.counted = self.growth = self.arrivals = self.commits = 0
        self.stuck = self.rewound = self.remade = 0
        self.oldest: float | None = None
        self.ages_known = True

    def wait(self, seconds: float | None) -> None:
        """Counts the time that the oldest unread record of a partition has waited."""
        if seconds is None:
            self.ages_known = False
        else:
            self.oldest = seconds if self.oldest is None else max(self.oldest, seconds)


def movement(
    observed: ObservedGroup,
    earlier: ObservedGroup | None = None,
    seconds: float | None = None,
    ages: Ages | None = None,
) -> Movement:
    """Compares two readings of a group. O(partitions).

    Args:
        observed: the group now.
        earlier: the same group before; None if it was not there, or was not read.
        seconds: the time between both; None if it is not known.
        ages: when the records were written; without it the seconds of lag follow from the arrivals between both.
    """
    apart = None if earlier is None or seconds is None or seconds <= 0 else seconds
    sums = _Sums()
    for name, topic in observed.topics.items():
        if topic.end is None:
            sums.ages_known = False
            continue
        before = None if earlier is None else earlier.snapshot.topics.get(name)
        ends_before = () if before is None or before.end is None else before.end
        commits_before = () if earlier is None else earlier.group.committed.get(name, ())
        for number, (end, commit) in enumerate(
            zip(topic.end, observed.group.committed.get(name, ())[: topic.partitions], strict=False)
        ):
            if commit is None:
                continue
            if end is None:
                sums.ages_known = False
                continue
            end_before = ends_before[number] if number < len(ends_before) else None
            commit_before = commits_before[number] if number < len(commits_before) else None
            rate = _compare(sums, end, commit, end_before, commit_before)
            if commit >= end:
                sums.wait(0.0)
            elif ages is not None:
                sums.wait(ages.of(name, number, commit, end))
            else:
                sums.wait(None if apart is None or not rate else apart * (end - commit) / rate)
    measured = apart is not None and sums.counted > 0
    return Movement(
        growth=sums.growth / apart if measured and apart else None,
        arrivals=sums.arrivals / apart if measured and apart else None,
        commits=sums.commits / apart if measured and apart else None,
        lag_seconds=sums.oldest if sums.ages_known else None,
        stuck=sums.stuck if apart is not None and apart >= PATIENCE_S else None,
        rewound=sums.rewound,
        remade=sums.remade,
        rebalances=None if earlier is None else rebalances_between(earlier.group, observed.group),
    )


def _compare(sums: _Sums, end: int, commit: int, end_before: int | None, commit_before: int | None) -> int | None:
    """Adds the changes of one partition to `sums`; returns how many records arrived, None if that is not known."""
    if end_before is None:
        return None
    if end < end_before:
        sums.remade += 1
        return None
    arrived = end - end_before
    if commit_before is None:
        return arrived
    lag, lag_before = max(0, end - commit), max(0, end_before - commit_before)
    sums.counted += 1
    sums.arrivals += arrived
    sums.commits += commit - commit_before
    sums.growth += lag - lag_before
    sums.rewound += commit < commit_before
    sums.stuck += commit == commit_before and lag_before > 0 and (arrived > 0 or lag > 1)
    return arrived


def rebalances_between(before: GroupSnapshot, now: GroupSnapshot) -> int | None:
    """How often a group rebalanced, at least: the difference of its epochs or generations, if both readings have them;
    otherwise once if its assignment or its members differ. None if that is not known."""
    if before.protocol != now.protocol:
        return 1
    if before.epoch is not None and now.epoch is not None:
        # A group that was deleted and made anew begins again at a small epoch.
        return now.epoch - before.epoch if now.epoch >= before.epoch else 1
    old, new = _generation(before), _generation(now)
    if old is not None and new is not None:
        return new - old if new >= old else 1
    if {before.state, now.state} - {"Stable", "Empty"}:
        return 1 if _ids(before) != _ids(now) else None
    return int(_owned(before) != _owned(now))


def _generation(group: GroupSnapshot) -> int | None:
    """The generation that a leader of this package wrote into the assignments; other packages write none there."""
    found = {member.generation for member in group.members if isinstance(member, ClassicMember) and member.assignment}
    return found.pop() if len(found) == 1 else None


def _ids(group: GroupSnapshot) -> set[str]:
    return {member.id for member in group.members}


def _owned(group: GroupSnapshot) -> dict[str, object]:
    return {member.id: dict(member.owned) for member in group.members}
