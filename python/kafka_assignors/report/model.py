"""The contents of a report as plain values. `Report.to_json` has its figures; the page shows the same.

All counts are of partitions, members, groups and rebalances; times are milliseconds since 1970 (UTC), lags are records.
A strategy has its text as its name, such as `sticky(mode=fair)`; the real assignments are `observed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

__all__ = [
    "FORMAT",
    "KEEP",
    "OBSERVED",
    "FailedReplay",
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
"""The version of the JSON: it grows when a field changes its meaning or is removed."""

OBSERVED = "observed"
"""The name, among strategies, of the real assignments."""

KEEP = "keep"
"""The recommendation to change nothing."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The distribution of a figure over all rebalances: median, 95th percentile and maximum."""

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
        unassigned: the subscribed partitions without an owner, summed likewise: a strategy for joins leaves those
            without a partner.
        moved: the partitions that had an owner and changed it.
        moved_needed: of these, the least that a best balanced plan had to move too.
        spread: the most minus the fewest partitions of a member.
        balance_score: KIP-54's.
        lag_skew: the heaviest member's lag divided by the mean; 1 is even.
        copartition_violations: partition numbers whose topics have different owners.
        kernel_seconds: the computing time of the assignor.
        recommended: for how many groups it is recommended.
        load_ratio_mean: of a weighted strategy, the load of the heaviest member (`Plan.worst_load`) divided by a lower
            bound of it (`Plan.load_bound`), averaged over the rebalances; 1 is the least possible. None for others.
        load_ratio_max: the largest of these.
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
    load_ratio_mean: float | None = None
    load_ratio_max: float | None = None

    @property
    def moved_share(self) -> float:
        """The moved part of all assigned partitions."""
        return self.moved / self.assigned if self.assigned else 0.0

    @property
    def unassigned_share(self) -> float:
        """The part of all partitions without an owner."""
        partitions = self.assigned + self.unassigned
        return self.unassigned / partitions if partitions else 0.0


@dataclass(frozen=True, slots=True)
class StrategyFigures:
    """One strategy over the history of one group.

    Attributes:
        rebalances: how many.
        moved: the partitions that had an owner and changed it.
        moved_needed: of these, the least that a best balanced plan had to move too.
        spread: the most minus the fewest partitions of a member, on average over the rebalances.
        balance_score: KIP-54's, on average.
        lag_skew: the heaviest member's lag divided by the mean of the members, on average.
        max_lag: the largest lag of a member at any rebalance.
        copartition_violations: partition numbers whose topics have different owners, summed.
        error: why the strategy failed; the other figures do not count then.
        assigned: the partitions handed out, summed over the rebalances.
        unassigned: the subscribed partitions without an owner, summed likewise.
        load_ratio_mean: of a weighted strategy, the load of the heaviest member (`Plan.worst_load`) divided by a lower
            bound of it (`Plan.load_bound`), averaged over the rebalances; 1 is the least possible. None for others.
        load_ratio_max: the largest of these.
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
    load_ratio_mean: float | None = None
    load_ratio_max: float | None = None

    @property
    def unassigned_share(self) -> float:
        """The part of all partitions without an owner."""
        partitions = self.assigned + self.unassigned
        return self.unassigned / partitions if partitions else 0.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommendation for a group.

    Attributes:
        strategy: its name; `keep` for the present one; None without a recommendation.
        rule: the rule of `kafka_assignors.report.recommend` that decided.
        reason: the reason, in words and figures.
    """

    strategy: str | None
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One group, with the figures of each strategy.

    Attributes:
        cluster: its cluster.
        group_id: its id.
        members: the most members it had at once.
        partitions: the most partitions it read at once.
        strategies: by name, `observed` too where it is known.
        joined: whether it joins its topics by partition number.
        running: the strategy that it runs, by its wire name in the captured protocol; for a KIP-848 group the broker's
            assignor that its members ask for. None if it is not known.
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
    """The owners of partitions after each rebalance of a group, under one strategy.

    Attributes:
        strategy: its name.
        times: the time of each rebalance.
        members: all members of the history, in the order in which they joined.
        partitions: topic and number of all partitions of the history.
        owners: for each rebalance, by partition, the index of the owner in `members`; -1 without an owner.
        moved: for each rebalance, how many partitions lost their former owner. A deleted partition does not count.
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
        ts: the time of the rebalance.
        strategies: name of the strategy to the lags of its members, by member id.
    """

    ts: int
    strategies: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group that the page shows.

    Attributes:
        figures: the figures of its strategies.
        recommendation: its recommendation.
        saved: how many fewer partitions the recommended strategy moves than `observed` (or, if that is not known, than
            the strategy that the group runs); negative if it moves more. 0 if neither is known.
        ownership: timelines, the present strategy's first.
        lag: the lag of each member.
    """

    figures: GroupFigures
    recommendation: Recommendation
    saved: int
    ownership: Sequence[Ownership] = ()
    lag: LagByMember | None = None

    @property
    def changes(self) -> bool:
        """Whether a strategy is recommended that is not the present one."""
        return self.recommendation.strategy not in (None, KEEP)


@dataclass(frozen=True, slots=True)
class Period:
    """The moves of a period.

    Attributes:
        ts: its start.
        rebalances: the number of rebalances, of the strategy with the most.
        moved: moved partitions, by strategy.
    """

    ts: int
    rebalances: int
    moved: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FailedReplay:
    """A group that a strategy could not be replayed for, and why."""

    cluster: str
    group_id: str
    strategy: str
    error: str


@dataclass(frozen=True, slots=True)
class Report:
    """The contents of a report.

    Attributes:
        title: of the page.
        clusters: how many.
        groups: how many.
        rebalances: how many, of the strategy with the most.
        since: the first rebalance; None if there is none.
        until: the last one.
        strategies: over the whole fleet.
        periods: the moves over time, each period as long as `period_ms`.
        period_ms: the length of a period.
        moved_today: the observed moves of all groups with observed assignments, as in the strategy `observed`.
        moved_recommended: the moves of the same groups with the recommended strategy of each.
        observed_groups: the number of these groups.
        recommendations: for how many groups each strategy is recommended; also `keep`, and `none` without a
            recommendation.
        worst: the groups that gain the most, the first one most; the page shows them with pictures.
        changes: the groups that should change and gain the most after those of `worst`, the first one most; the page
            has a folded section for each.
        failures: some of the groups that failed.
        failed_groups: how many failed for some strategy.
        notes: further notes, a sentence each.
        pages: further pages in the same folder: heading to address.
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
    changes: Sequence[GroupReport] = ()
    failures: Sequence[FailedReplay] = ()
    failed_groups: int = 0
    observed_groups: int = 0
    notes: Sequence[str] = ()
    pages: Mapping[str, str] = field(default_factory=dict)

    @property
    def changing(self) -> int:
        """For how many groups a strategy is recommended that is not their present one."""
        return sum(count for name, count in self.recommendations.items() if name not in (KEEP, "none"))

    def to_json(self) -> dict[str, Any]:
        """The report as values of JSON; a figure that is NaN or infinite is null.

        `changes` have their figures, and no timelines.
        """
        changes = [replace(each, ownership=(), lag=None) for each in self.changes]
        values = {"format": FORMAT, **_plain(asdict(replace(self, changes=changes)))}
        for entry, totals in zip(values["strategies"], self.strategies, strict=True):
            entry |= {"moved_share": totals.moved_share, "unassigned_share": totals.unassigned_share}
        shown = [*zip(values["worst"], self.worst, strict=True), *zip(values["changes"], self.changes, strict=True)]
        for entry, group in shown:
            for name, figures in group.figures.strategies.items():
                entry["figures"]["strategies"][name]["unassigned_share"] = figures.unassigned_share
        return values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
