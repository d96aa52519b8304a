"""How many members a group needs to work off its lag by a deadline, with each strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, gcd
from statistics import median
from typing import TYPE_CHECKING

from kafka_assignors.autoscale.load import COMMIT_S
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.planner.change import Change, Join, Situation
from kafka_assignors.planner.observed_group import Finding
from kafka_assignors.planner.rates import rate_of, rates_between
from kafka_assignors.planner.solve import solve
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.printable import listed
from kafka_assignors.strategies import strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.planner.observed_group import ObservedGroup, Partition

__all__ = ["LargestPartition", "SizedGroup", "SizedStrategy", "measured_rate", "size"]

# Numbers of members that are tried with each strategy, each with a plan.
_MOST_TRIED = 300
# A record of a group has no room for more members.
_MOST_MEMBERS = 10_000


@dataclass(frozen=True, slots=True)
class LargestPartition:
    """The partition that needs the fastest member. More members do not help: only one member reads a partition.

    Attributes:
        topic: its topic.
        partition: its number.
        lag: its lag.
        arrivals: how many records a second arrive in it.
        needed_rate: how many records a second its member has to read to have no lag at the deadline.
    """

    topic: str
    partition: int
    lag: int
    arrivals: float
    needed_rate: float


@dataclass(frozen=True, slots=True)
class SizedStrategy:
    """The members that the group needs with one strategy.

    Attributes:
        strategy: its name with its options.
        members: the fewest members with which no member has lag at the deadline; null if no number is enough.
        seconds: the seconds from the last reading until the slowest member has no lag then.
        fewest: the fewest partitions of a member then.
        most: the most partitions of a member.
        heaviest: how many records the member with the most has to read until the deadline.
        error: why no number is enough, or why the strategy cannot plan.
        in_use: whether it is the group's own strategy, with the options that it has by default.
    """

    strategy: str
    members: int | None = None
    seconds: float | None = None
    fewest: int | None = None
    most: int | None = None
    heaviest: int | None = None
    error: str | None = None
    in_use: bool = False


@dataclass(frozen=True, slots=True)
class SizedGroup:
    """How many members a group needs.

    Attributes:
        group_id: the group.
        taken_ms: the time of the last reading, in milliseconds since 1970.
        deadline_ms: the deadline, likewise.
        startup: how many seconds members need that are started now.
        rate: how many records a second one member reads.
        rate_source: `given`; `measured` from members that had lag all the time; `at least` if no member had.
        members: how many it has.
        now_seconds: the seconds from the last reading until the slowest member has no lag if the group stays as it is;
            null if that is never.
        partitions: how many it reads.
        lag: the records that wait.
        arrivals: how many records a second arrive.
        least: the fewest members that could be enough if all of them had equally much to read.
        largest: the partition that needs the fastest member; null if no record waits or arrives.
        possible: whether one member is fast enough for `largest`, so that some number of members is enough.
        even: the numbers of members that divide all partitions evenly.
        even_by_topic: those that divide the partitions of each topic, as `range` does.
        strategies: one row each, in the order asked.
        findings: notes about what is not known.
    """

    group_id: str
    taken_ms: int
    deadline_ms: int
    startup: float
    rate: float
    rate_source: str
    members: int
    now_seconds: float | None
    partitions: int
    lag: int
    arrivals: float
    least: int
    largest: LargestPartition | None
    possible: bool
    even: tuple[int, ...]
    even_by_topic: tuple[int, ...]
    strategies: tuple[SizedStrategy, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Demand:
    """The work until the deadline: lag and arrivals of each partition, and the rate of a member."""

    lags: Mapping[Partition, int]
    arrivals: Mapping[Partition, float]
    rate: float
    seconds: float
    startup: float

    def finish(self, partitions: Sequence[Partition], startup: float) -> float | None:
        """The seconds from the last reading until a member's partitions have no lag; None if that is never.

        The member begins after the startup. Records that arrive meanwhile wait as well.
        """
        arrivals = sum(self.arrivals[each] for each in partitions)
        lag = sum(self.lags[each] for each in partitions) + arrivals * startup
        if lag <= 0 and arrivals <= self.rate:
            return startup
        return startup + lag / (self.rate - arrivals) if self.rate > arrivals else None

    def slowest(self, of_members: Sequence[Sequence[Partition]], startup: float) -> float | None:
        """The seconds until the slowest member has no lag; None if that is never."""
        times = [self.finish(each, startup) for each in of_members if each]
        known = [each for each in times if each is not None]
        return max(known, default=0.0) if len(known) == len(times) else None


def size(
    observed: ObservedGroup,
    earlier: ObservedGroup | None,
    deadline: int,
    assignors: Sequence[Assignor] = STANDARD,
    *,
    rates: Mapping[str, Sequence[float | None]] | None = None,
    rate: float | None = None,
    startup: float = 0.0,
    reset: str = "latest",
    progress: Callable[[int, int], object] | None = None,
) -> SizedGroup:
    """The fewest members that work off the lag in time, with each strategy. O(strategies x numbers tried) plans.

    A member reads at its rate, of all of its partitions together, as long as one of them has a record.

    Args:
        observed: the group now.
        earlier: the same group before; None if it was not there, for which `rate` is needed.
        deadline: in milliseconds since 1970.
        assignors: the strategies.
        rates: how many records a second arrive in each partition; None compares both readings.
        rate: how many records a second one member reads; None measures it from the commits of both readings.
        startup: how many seconds members need that are started now. If the number of members stays, none is started.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
        progress: is called with the number of strategies that were tried, and of all.

    Raises:
        GroupError: the group cannot be planned; or `rate` is None, and its commits do not advance.
        OptionError: a deadline that is past, or a rate or a time that is not positive.
    """
    seconds = (deadline - observed.snapshot.taken_ms) / 1000
    if seconds <= startup:
        raise OptionError(
            f"the deadline is {seconds:,.0f} s after the reading, and members start within {startup:,.0f} s; give a "
            "later one"
        )
    if rate is not None and not 0 < rate <= 1e9:
        raise OptionError(f"--rate is {rate!r}; give more than 0 and at most 1e9 records a second")
    observed.check_plannable()
    findings: list[Finding] = []
    source = "given"
    if rate is None:
        rate, source = measured_rate(observed, earlier)
    if rates is None:
        if earlier is None:
            raise OptionError("arrivals need two readings; give an earlier one")
        rates = rates_between(earlier.snapshot, observed.snapshot)
    situation = Situation(observed) if observed.members else Situation(observed, Change(join=(Join(1),)))
    demand = _demand(situation, rates, rate, seconds, startup, reset, findings)
    if source == "at least":
        findings.append(
            Finding(
                "rate",
                f"no member had lag all the time: one reads {rate:,.1f} records a second at least; --rate knows better",
                warning=False,
            )
        )
    partitions = list(demand.lags)
    lag, arrivals = sum(demand.lags.values()), sum(demand.arrivals.values())
    largest = _largest(demand)
    possible = largest is None or largest.needed_rate <= rate
    least = max(1, ceil((lag / seconds + arrivals) / rate - 1e-9))
    rows = []
    for done, assignor in enumerate(assignors, 1):
        row = _sized(observed, assignor, demand, least, reset) if possible else _forbidden(assignor, largest, rate)
        rows.append(row)
        if progress is not None:
            progress(done, len(assignors))
    counts = [topic.partitions for topic in situation.topics.values() if topic.partitions]
    in_use = observed.strategy_in_use
    return SizedGroup(
        observed.group_id,
        observed.snapshot.taken_ms,
        deadline,
        startup,
        rate,
        source,
        len(observed.members),
        _now(observed, demand) if observed.members else None,
        len(partitions),
        lag,
        arrivals,
        least,
        largest,
        possible,
        _divisors(sum(counts)),
        _divisors(gcd(*counts)) if counts else (),
        tuple(_marked(row, in_use) for row in rows),
        tuple(findings + observed.notes()),
    )


def measured_rate(observed: ObservedGroup, earlier: ObservedGroup | None) -> tuple[float, str]:
    """The records that one member reads in a second: the median of the members that had lag all the time.

    Only partitions count that the member had in both readings, and whose commits did not go back.

    Raises:
        GroupError: the commits did not advance.
        OptionError: there is no earlier reading of the group, or it is not earlier.
    """
    if earlier is None:
        raise OptionError(f"group {observed.group_id!r} is not in the earlier reading; give --rate, or another reading")
    seconds = (observed.snapshot.taken_ms - earlier.snapshot.taken_ms) / 1000
    if seconds <= 0:
        raise OptionError("the earlier reading is not older than this one; give one that was taken before, or --rate")
    speeds: dict[str, float] = {}
    lags: dict[str, list[int]] = {}
    for (topic, number), owners in observed.owners.items():
        now, before = (_offsets(each, topic, number) for each in (observed, earlier))
        if len(owners) != 1 or now is None or before is None or now[0] < before[0] or now[1] < before[1]:
            continue
        if not set(earlier.owners.get((topic, number), owners)) & set(owners):
            continue
        speeds[owners[0]] = speeds.get(owners[0], 0.0) + (now[0] - before[0]) / seconds
        lag = lags.setdefault(owners[0], [0, 0])
        lag[0] += max(0, before[1] - before[0])
        lag[1] += max(0, now[1] - now[0])
    # Records that were read since the last commit still count as lag.
    busy = [speed for member, speed in speeds.items() if speed and min(lags[member]) > COMMIT_S * speed]
    if busy:
        return median(busy), "measured"
    most = max(speeds.values(), default=0.0)
    if not most:
        raise GroupError(
            f"the commits of group {observed.group_id!r} did not advance within {seconds:,.0f} s, so that no rate of a "
            "member is known; give --rate with its records a second, or readings that are further apart"
        )
    return most, "at least"


def _offsets(observed: ObservedGroup, topic: str, number: int) -> tuple[int, int] | None:
    """Commit and end of a partition; None if one is not known."""
    commits = observed.group.committed.get(topic, ())
    found = observed.snapshot.topics.get(topic)
    ends = () if found is None or found.end is None else found.end
    if number >= len(commits) or number >= len(ends):
        return None
    commit, end = commits[number], ends[number]
    return None if commit is None or end is None else (commit, end)


def _demand(
    situation: Situation,
    rates: Mapping[str, Sequence[float | None]],
    rate: float,
    seconds: float,
    startup: float,
    reset: str,
    findings: list[Finding],
) -> _Demand:
    lags: dict[Partition, int] = {}
    arrivals: dict[Partition, float] = {}
    dark: list[str] = []
    still: list[str] = []
    for name, of_topic in situation.lags(reset).items():
        for number, lag in enumerate(of_topic):
            arriving = rate_of({name: list(rates.get(name, ()))}, name, number)
            lags[name, number] = lag or 0
            arrivals[name, number] = arriving or 0.0
            if lag is None:
                dark.append(f"{name}-{number}")
            if arriving is None:
                still.append(f"{name}-{number}")
    for rule, what, partitions in (("known-lags", "lag", dark), ("arrivals", "rate", still)):
        if partitions:
            text = f"the {what} of {listed(partitions, 3)} is not known, and counts as 0"
            findings.append(Finding(rule, text, warning=False))
    return _Demand(lags, arrivals, rate, seconds, startup)


def _largest(demand: _Demand) -> LargestPartition | None:
    left = demand.seconds - demand.startup
    found = None
    for (topic, number), lag in demand.lags.items():
        arrivals = demand.arrivals[topic, number]
        needed = (lag + arrivals * demand.startup) / left + arrivals
        if needed > (0 if found is None else found.needed_rate):
            found = LargestPartition(topic, number, lag, arrivals, needed)
    return found


def _forbidden(assignor: Assignor, largest: LargestPartition | None, rate: float) -> SizedStrategy:
    assert largest is not None
    return SizedStrategy(
        strategy_text(assignor),
        error=f"{largest.topic}-{largest.partition} alone needs {largest.needed_rate:,.1f} records a second, and a "
        f"member reads {rate:,.1f}",
    )


def _now(observed: ObservedGroup, demand: _Demand) -> float | None:
    """The seconds until the slowest member has no lag if the group stays as it is; None if that is never."""
    of_members: dict[str, list[Partition]] = {}
    for partition, owners in observed.owners.items():
        if partition in demand.lags:
            of_members.setdefault(owners[0], []).append(partition)
    unread = [
        each for each in demand.lags if each not in observed.owners and (demand.lags[each] or demand.arrivals[each])
    ]
    return None if unread else demand.slowest(list(of_members.values()), 0.0)


def _sized(observed: ObservedGroup, assignor: Assignor, demand: _Demand, least: int, reset: str) -> SizedStrategy:
    name = strategy_text(assignor)
    last = min(max(len(demand.lags), 1), _MOST_MEMBERS, least + _MOST_TRIED - 1)
    for count in range(least, last + 1):
        situation = _with(observed, count)
        try:
            found = solve(situation, assignor, situation.lags(reset))
        except GroupError as error:
            return SizedStrategy(name, error=str(error))
        of_members: dict[str, list[Partition]] = {member: [] for member in found.plan.assignment}
        for partition, member in found.after.items():
            of_members[member].append(partition)
        if any(demand.lags[each] or demand.arrivals[each] for each in demand.lags if each not in found.after):
            continue
        startup = demand.startup if count != len(observed.members) else 0.0
        done = demand.slowest(list(of_members.values()), startup)
        if done is not None and done <= demand.seconds:
            heaviest = max(
                sum(demand.lags[each] + demand.arrivals[each] * demand.seconds for each in of)
                for of in of_members.values()
            )
            sizes = [len(of) for of in of_members.values()]
            return SizedStrategy(name, count, done, min(sizes), max(sizes), round(heaviest))
    return SizedStrategy(name, error=f"with {least:,} to {last:,} members the lag is not gone in time")


def _with(observed: ObservedGroup, count: int) -> Situation:
    """The group with so many members: new ones join, or the last ones by id leave."""
    members = sorted(observed.subscriptions)
    if count < len(members):
        return Situation(observed, Change(leave=tuple(members[count:])))
    more = count - len(members)
    return Situation(observed, Change(join=(Join(more),)) if more else None)


def _divisors(number: int) -> tuple[int, ...]:
    low = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return tuple(sorted({*low, *(number // each for each in low)}))


def _marked(row: SizedStrategy, in_use: str | None) -> SizedStrategy:
    return replace(row, in_use=row.strategy == in_use)
