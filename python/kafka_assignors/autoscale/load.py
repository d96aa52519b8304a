"""The records that a group had to read over time, from offsets at several moments."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.lag import partition_lag
from kafka_assignors.printable import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["COMMIT_S", "MICRO", "Offsets", "Partition", "Workload", "member_counts", "workload"]

Partition = tuple[str, int]
"""Topic and partition number."""

MICRO = 1_000_000
"""Records are counted in millionths: whole numbers, so that every machine gets the same figures."""


COMMIT_S = 5.0
"""How often clients commit by default, in seconds (`auto.commit.interval.ms`)."""


class Offsets(NamedTuple):
    """The offsets of one partition at one moment.

    Attributes:
        ts: the moment, in milliseconds since 1970.
        topic: its topic.
        partition: its number.
        begin: its first offset; None if it is not known.
        end: the offset that the next record gets; None if it is not known.
        committed: the group's commit; None without one.
    """

    ts: int
    topic: str
    partition: int
    begin: int | None
    end: int | None
    committed: int | None


@dataclass(frozen=True)
class Workload:
    """The records that a group has to read over time.

    Attributes:
        group_id: the group.
        times: the moments, ascending, at least two, in milliseconds since 1970.
        arrived: for each partition how many records had arrived at each moment, those that waited at the first one
            included. Between two moments they arrive at a steady rate.
        rate: how many records a second one member reads, of all of its partitions together.
        members: how many members it has at the first moment.
        notes: a sentence for each fact that is not known, and for each part that was left out.
    """

    group_id: str
    times: tuple[int, ...]
    arrived: Mapping[Partition, tuple[int, ...]]
    rate: float
    members: int
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        _check_times(self.group_id, self.times)
        if not self.arrived:
            raise GroupError(f"group {self.group_id!r} has no partition with known offsets, so that nothing arrives")
        if not (self.rate > 0 and self.rate <= 1e9):
            raise OptionError(f"the rate of a member is {self.rate!r}; give more than 0, at most 1e9 records a second")
        if self.members < 0:
            raise OptionError(f"members is {self.members}; give 0 or more")

    @classmethod
    def steady(
        cls,
        group_id: str,
        topics: Mapping[str, int],
        *,
        rate: float,
        arrivals: float,
        lag: int = 0,
        seconds: int = 3_600,
        members: int = 1,
    ) -> Workload:
        """A group whose partitions get equal shares of a lag and of a steady stream of records.

        Args:
            group_id: the group.
            topics: topic to its number of partitions.
            rate: see `Workload`.
            arrivals: how many records a second arrive, in all partitions together.
            lag: how many records wait at the beginning.
            seconds: how long it lasts.
            members: see `Workload`.
        """
        names = [(topic, number) for topic, count in sorted(topics.items()) for number in range(count)]
        count = max(1, len(names))
        of_each = round(arrivals * seconds / count)
        return cls(
            group_id,
            (0, 1000 * seconds),
            dict.fromkeys(names, (lag // count, lag // count + of_each)),
            rate,
            members,
        )

    @property
    def topics(self) -> dict[str, int]:
        """Topic to its number of partitions."""
        counts: dict[str, int] = {}
        for topic, number in self.arrived:
            counts[topic] = max(counts.get(topic, 0), number + 1)
        return dict(sorted(counts.items()))

    @property
    def records(self) -> int:
        """How many records have to be read in all."""
        return sum(counts[-1] for counts in self.arrived.values())

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions, by topic and number."""
        return tuple(sorted(self.arrived))

    @cached_property
    def _columns(self) -> list[list[int]]:
        """For each moment how many millionths of records had arrived, by partition."""
        return [
            [counts * MICRO for counts in column]
            for column in zip(*(self.arrived[each] for each in self.partitions), strict=True)
        ]

    def arrived_by(self, ts: int) -> list[int]:
        """For each of `partitions` how many millionths of records had arrived at a moment within the times."""
        times = self.times
        place = min(max(1, bisect_right(times, ts)), len(times) - 1)
        past, length = ts - times[place - 1], times[place] - times[place - 1]
        return [
            first + (last - first) * past // length
            for first, last in zip(self._columns[place - 1], self._columns[place], strict=True)
        ]

    def continued(self, seconds: float) -> Workload:
        """The same workload, but longer: in the further seconds records arrive as between the last two moments."""
        more = round(1000 * seconds)
        if more <= 0:
            return self
        last = self.times[-1] - self.times[-2]
        arrived = {
            each: (*counts, counts[-1] + (counts[-1] - counts[-2]) * more // last)
            for each, counts in self.arrived.items()
        }
        return replace(self, times=(*self.times, self.times[-1] + more), arrived=arrived)


def workload(
    group_id: str,
    offsets: Iterable[Offsets],
    *,
    rate: float | None = None,
    members: Sequence[tuple[int, int]] = (),
    reset: str = "latest",
) -> Workload:
    """The workload of a group, from its offsets. O(offsets log offsets).

    Order and duplicates do not matter. If the end offset of a partition goes back, its topic was deleted and created
    again: no record counts as arrived in that interval. For a moment without the end of a partition, its arrived
    records are interpolated.

    Args:
        group_id: the group.
        offsets: of its partitions, at two moments at least.
        rate: how many records a second one member reads. None measures it from the commits: it is the highest rate of
            a member between two moments at both of which lag was waiting.
        members: how many members there were from a time on, as (milliseconds since 1970, number), ascending. Without
            any there is one.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.

    Raises:
        GroupError: fewer than two moments or no known partition; or `rate` is None, and the commits do not advance.
        OptionError: a rate that is not positive.
    """
    seen: dict[Partition, dict[int, Offsets]] = {}
    for each in offsets:
        if each.end is not None and each.end >= 0 and each.partition >= 0:
            seen.setdefault((each.topic, each.partition), {})[each.ts] = each
    times = tuple(sorted({ts for of in seen.values() for ts in of}))
    _check_times(group_id, times)
    arrived: dict[Partition, tuple[int, ...]] = {}
    notes: list[str] = []
    remade: list[str] = []
    for partition in sorted(seen):
        arrived[partition], again = _arrived(times, seen[partition], reset)
        if again:
            remade.append(f"{partition[0]}-{partition[1]}")
    if remade:
        notes.append(
            f"the end of {listed(remade, 3)} went back, as of a topic that was made anew; nothing arrives meanwhile"
        )
    known = [count for ts, count in members if times and ts <= times[0]]
    present = known[-1] if known else members[0][1] if members else 1
    if rate is None:
        rate, sure = _measured(group_id, times, seen, members)
        if not sure:
            notes.append(
                f"no member had lag all the time, so that one reads {rate:,.1f} records a second at least, perhaps more"
            )
    return Workload(group_id, times, arrived, rate, present, tuple(notes))


def _check_times(group_id: str, times: Sequence[int]) -> None:
    if len(times) < 2 or any(before >= after for before, after in itertools.pairwise(times)):
        raise GroupError(f"the offsets of group {group_id!r} are of {len(times)} moment(s); rates need two at least")


def _arrived(times: Sequence[int], of: Mapping[int, Offsets], reset: str) -> tuple[tuple[int, ...], bool]:
    """How many records of a partition had arrived at each moment, and whether its end went back."""
    known = sorted(of)
    first = of[known[0]]
    assert first.end is not None
    total = partition_lag(first.begin, first.end, first.committed, reset)
    counts = {known[0]: total}
    again = False
    for before, after in itertools.pairwise(known):
        start, end = of[before].end, of[after].end
        assert start is not None
        assert end is not None
        again |= end < start
        total += max(0, end - start)
        counts[after] = total
    # For a moment without this partition's end, the count is interpolated between the moments around it.
    found: list[int] = []
    for ts in times:
        if ts in counts:
            found.append(counts[ts])
            continue
        place = bisect_right(known, ts)
        if place == 0:
            found.append(0)
        elif place == len(known):
            found.append(counts[known[-1]])
        else:
            a, b = known[place - 1], known[place]
            found.append(counts[a] + (counts[b] - counts[a]) * (ts - a) // (b - a))
    return tuple(found), again


def _measured(
    group_id: str,
    times: Sequence[int],
    seen: Mapping[Partition, Mapping[int, Offsets]],
    members: Sequence[tuple[int, int]],
) -> tuple[float, bool]:
    """The records that one member reads in a second, and whether lag was left: otherwise it might read more."""
    busy = idle = 0.0
    for before, after in itertools.pairwise(times):
        advance = lag_before = lag_after = 0
        for of in seen.values():
            first, last = of.get(before), of.get(after)
            if first is None or last is None or first.committed is None or last.committed is None:
                continue
            # A commit that goes back is a reset by hand: it counts as no progress.
            advance += max(0, last.committed - first.committed)
            lag_before += max(0, (first.end or 0) - first.committed)
            lag_after += max(0, (last.end or 0) - last.committed)
        speed = 1000 * advance / (after - before)
        present = [count for ts, count in members if ts <= before][-1:] or [count for _, count in members[:1]] or [1]
        of_one = speed / max(1, present[0])
        # Records that were read since the last commit still count as lag.
        if min(lag_before, lag_after) > COMMIT_S * speed:
            busy = max(busy, of_one)
        else:
            idle = max(idle, of_one)
    if not busy and not idle:
        raise GroupError(
            f"the commits of group {group_id!r} do not advance, so that they do not tell what a member reads; give "
            "--rate with its records a second"
        )
    return (busy, True) if busy else (idle, False)


def member_counts(events: Iterable[tuple[int, int, str, str]]) -> list[tuple[int, int]]:
    """How many members a group had from a time on, from its membership events.

    Args:
        events: time, place in the order, kind and member id of each, in any order; another kind than `leave` means that
            the member is there.

    >>> member_counts([(10, 1, "join", "a"), (10, 1, "join", "b"), (30, 2, "leave", "a")])
    [(10, 2), (30, 1)]
    """
    present: set[str] = set()
    found: dict[int, int] = {}
    for ts, _, kind, member_id in sorted(events, key=lambda each: (each[1], each[0], each[2] != "leave", each[3])):
        if kind == "leave":
            present.discard(member_id)
        else:
            present.add(member_id)
        found[ts] = len(present)
    return sorted(found.items())
