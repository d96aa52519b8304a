"""What a report says, as plain values. `Report.to_json` is the report in figures; the page shows the same.

All counts are of partitions, members, groups and rebalances; times are milliseconds since 1970 (UTC), lags records.
A strategy is known by its wire name, with its options where it has any; what really happened is `observed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = [
    "FORMAT",
    "OBSERVED",
    "Failure",
    "GroupFigures",
    "GroupReport",
    "LagByMember",
    "Ownership",
    "Period",
    "Quantiles",
    "Recommendation",
    "Report",
    "StrategyFigures",
    "StrategyTotals",
]

FORMAT = 2
"""The version of the JSON: it grows when a field changes its meaning or goes."""

OBSERVED = "observed"
"""The name, among strategies, of what really happened."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """How a figure is spread over all rebalances: the middle, what 95 % stay below, and the most."""

    p50: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True)
class StrategyTotals:
    """One strategy over the whole fleet.

    Attributes:
        strategy: its name.
        groups: the groups that it was replayed for.
        failed: how many of these it failed for; they count in nothing else.
        rebalances: all rebalances.
        assigned: the partitions handed out, summed over all rebalances.
        unassigned: the partitions that members subscribed to and nobody got, summed likewise: a strategy for joins
            leaves those without a partner.
        moved: the partitions that had an owner and changed it.
        moved_needed: of these, the least that a best balanced plan had to move too.
        spread: the most minus the fewest partitions of a member.
        balance_score: KIP-54's.
        lag_skew: the heaviest member's lag by the mean; 1 is even.
        copartition_violations: partition numbers whose topics have different owners.
        kernel_seconds: how long the assignor computed.
        recommended: for how many groups it is recommended.
    """

    strategy: str
    groups: int
    failed: int
    rebalances: int
    assigned: int
    unassigned: int
    moved: int
    moved_needed: int
    spread: Quantiles
    balance_score: Quantiles
    lag_skew: Quantiles
    copartition_violations: int
    kernel_seconds: float
    recommended: int = 0

    @property
    def moved_share(self) -> float:
        """The moved ones among all that were handed out."""
        return self.moved / self.assigned if self.assigned else 0.0

    @property
    def unassigned_share(self) -> float:
        """The partitions that nobody got among all."""
        partitions = self.assigned + self.unassigned
        return self.unassigned / partitions if partitions else 0.0


@dataclass(frozen=True, slots=True)
class StrategyFigures:
    """One strategy over the history of one group.

    Attributes:
        rebalances: how many.
        moved: the partitions that had an owner and changed it.
        moved_needed: of these, the least that a best balanced plan had to move too.
        spread: the most minus the fewest partitions of a member, in the mean.
        balance_score: KIP-54's, in the mean.
        lag_skew: the heaviest member's lag by the mean, in the mean of the rebalances.
        max_lag: the largest lag of a member at any rebalance.
        copartition_violations: partition numbers whose topics have different owners, summed.
        error: why the strategy failed; nothing else counts then.
        assigned: the partitions handed out, summed over the rebalances.
        unassigned: the partitions that members subscribed to and nobody got, summed likewise.
    """

    rebalances: int
    moved: int
    moved_needed: int
    spread: float
    balance_score: float
    lag_skew: float
    max_lag: int
    copartition_violations: int
    error: str | None = None
    assigned: int = 0
    unassigned: int = 0

    @property
    def unassigned_share(self) -> float:
        """The partitions that nobody got among all."""
        partitions = self.assigned + self.unassigned
        return self.unassigned / partitions if partitions else 0.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a group should use.

    Attributes:
        strategy: its name; `keep` for what it uses now; None if nothing can be said.
        rule: which of the rules of `kafka_assignors.report.recommend` decided.
        reason: why, in words and figures.
    """

    strategy: str | None
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One group: what each strategy would have meant for it.

    Attributes:
        cluster: where it is.
        group_id: its id.
        members: the most members it had at once.
        partitions: the most partitions it read at once.
        strategies: by name, `observed` too where it is known.
        joined: whether it joins its topics by partition number.
        running: the strategy that it runs, by its wire name, as its protocol was captured; in a KIP-848 group the
            broker's assignor that its members ask for. None where that is not known.
        by_broker: whether it is a KIP-848 group, which the broker assigns.
    """

    cluster: str
    group_id: str
    members: int
    partitions: int
    strategies: Mapping[str, StrategyFigures]
    joined: bool = False
    running: str | None = None
    by_broker: bool = False


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owned which partition after each rebalance of a group, under one strategy.

    Attributes:
        strategy: its name.
        times: of each rebalance.
        members: all members that ever were there, in the order they came.
        partitions: topic and number of all partitions that there ever were.
        owners: for each rebalance, by partition, the place of the owner in `members`; -1 for nobody.
        moved: for each rebalance, how many partitions had an owner and have another one, or none, since. A partition
            that is no longer there does not count.
    """

    strategy: str
    times: Sequence[int]
    members: Sequence[str]
    partitions: Sequence[tuple[str, int]]
    owners: Sequence[Sequence[int]]
    moved: Sequence[int]


@dataclass(frozen=True, slots=True)
class LagByMember:
    """Each member's lag after one rebalance, by strategy.

    Attributes:
        ts: when.
        strategies: name of the strategy to the lags of its members, by member id.
    """

    ts: int
    strategies: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group that the page shows.

    Attributes:
        figures: of its strategies.
        recommendation: for it.
        saved: the partitions that the recommended strategy would not have moved, of those that `observed` moved (or,
            where that is not known, the strategy that the group runs); negative if it moves more. 0 where neither is
            known.
        ownership: timelines, the present strategy's first.
        lag: who carries it.
    """

    figures: GroupFigures
    recommendation: Recommendation
    saved: int
    ownership: Sequence[Ownership] = ()
    lag: LagByMember | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """What was moved in a stretch of time.

    Attributes:
        ts: when it begins.
        rebalances: how many there were, of any one strategy the most.
        moved: partitions moved, by strategy.
    """

    ts: int
    rebalances: int
    moved: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """A group that a strategy could not be replayed for, and why."""

    cluster: str
    group_id: str
    strategy: str
    error: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says.

    Attributes:
        title: of the page.
        clusters: how many.
        groups: how many.
        rebalances: how many, of the strategy that has the most.
        since: the first rebalance; None if there is none.
        until: the last one.
        strategies: over the whole fleet.
        periods: the same over time, each as long as `period_ms`.
        period_ms: the length of a period.
        moved_today: partitions that were really moved, over the groups where that was observed: as much as `observed`
            has among the strategies.
        moved_recommended: partitions that the same groups would have moved with what is recommended for each.
        observed_groups: how many these groups are.
        recommendations: for how many groups each strategy is recommended; `keep`, and `none` where nothing can be said.
        worst: the groups that gain the most, the first one most.
        failures: some of the groups that failed.
        failed_groups: how many failed for some strategy.
        notes: what else there is to know, a sentence each.
    """

    title: str
    clusters: int
    groups: int
    rebalances: int
    since: int | None
    until: int | None
    strategies: Sequence[StrategyTotals]
    periods: Sequence[Period]
    period_ms: int
    moved_today: int
    moved_recommended: int
    recommendations: Mapping[str, int]
    worst: Sequence[GroupReport]
    failures: Sequence[Failure] = ()
    failed_groups: int = 0
    observed_groups: int = 0
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """The report as JSON has it: numbers, strings, lists and dictionaries; what is not a number is null."""
        values = {"format": FORMAT, **_plain(asdict(self))}
        for entry, totals in zip(values["strategies"], self.strategies, strict=True):
            entry |= {"moved_share": totals.moved_share, "unassigned_share": totals.unassigned_share}
        for entry, group in zip(values["worst"], self.worst, strict=True):
            for name, figures in group.figures.strategies.items():
                entry["figures"]["strategies"][name]["unassigned_share"] = figures.unassigned_share
        return values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
