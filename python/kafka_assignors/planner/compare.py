"""All strategies side by side, on the same group and the same change."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.errors import GroupError
from kafka_assignors.group import balance_score
from kafka_assignors.planner.heaviest_lag import avoiding, rises
from kafka_assignors.planner.plan import plan_change
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.strategies import strategy_name, strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.observed_group import Partition
    from kafka_assignors.planner.plan import PlannedGroup

__all__ = ["ComparedStrategy", "Comparison", "compare"]

NOW = "now"


@dataclass(frozen=True, slots=True)
class ComparedStrategy:
    """The figures of one strategy for the change.

    Attributes:
        strategy: its name with its options; `now` is the group as it is, without the change.
        moves: all changes of owner.
        forced: the moves that the change alone makes.
        moved: the other moves, which the strategy chose.
        least_moved: the least possible value of `moved`, for a plan with the least balance score.
        kept: partitions that stay.
        fewest: the fewest partitions of a member.
        most: the most.
        balance_score: the balance score (KIP-54).
        idle: members without a partition.
        least_lag: the least lag of a member; None if lags are not known.
        most_lag: the largest lag of a member.
        lag_skew: the largest lag divided by the mean; 1 is even.
        split_numbers: how many partition numbers that every topic has belong to different members in different
            topics; 0 is full co-location. None for a group of one topic.
        numbers: how many partition numbers every topic has.
        unassigned: partitions without an owner.
        warnings: the names of the rules that are not met.
        error: why the strategy cannot plan this; then the figures are 0.
        in_use: whether it is the group's own strategy, with the options that it has by default.
        load: of a weighted strategy, the load of the heaviest member relative to its capacity; None for others.
        load_bound: a proven lower bound of it in any plan.
    """

    strategy: str
    moves: int = 0
    forced: int = 0
    moved: int = 0
    least_moved: int | None = None
    kept: int = 0
    fewest: int = 0
    most: int = 0
    balance_score: int = 0
    idle: int = 0
    least_lag: int | None = None
    most_lag: int | None = None
    lag_skew: float | None = None
    split_numbers: int | None = None
    numbers: int = 0
    unassigned: int = 0
    warnings: tuple[str, ...] = ()
    error: str | None = None
    in_use: bool = False
    load: float | None = None
    load_bound: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Strategies side by side.

    Attributes:
        group_id: the group.
        changes: the change, a line for each part.
        observer: whether the broker assigns the group, so that no client-side strategy is asked.
        now: the group as it is.
        strategies: one row each, in the order asked.
    """

    group_id: str
    changes: tuple[str, ...]
    observer: bool
    now: ComparedStrategy
    strategies: tuple[ComparedStrategy, ...]

    @property
    def raised(self) -> tuple[ComparedStrategy, ...]:
        """The strategies by lag that give a member more to read than any has now."""
        return tuple(row for row in self._by_lag() if rises(self.now.most_lag, row.most_lag))

    def heaviest_lag(self) -> list[str]:
        """A sentence for each strategy of `raised`, with the compared strategies by lag that are not in it."""
        calm = [row.strategy for row in self._by_lag() if not rises(self.now.most_lag, row.most_lag)]
        instead = f"; {avoiding(calm)}" if calm else ""
        return [
            f"{row.strategy} gives the heaviest member more to read than anybody has now{instead}"
            for row in self.raised
        ]

    def _by_lag(self) -> list[ComparedStrategy]:
        lag = LagBasedAssignor.name
        return [row for row in self.strategies if strategy_name(row.strategy) == lag and row.most_lag is not None]


def compare(
    situation: Situation,
    assignors: Sequence[Assignor] = STANDARD,
    *,
    reset: str = "latest",
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Plans a change with each strategy.

    Args:
        situation: the group and the change.
        assignors: the strategies.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
        progress: is called with the number of strategies that are done.
    """
    rows = []
    for done, assignor in enumerate(assignors, 1):
        name = strategy_text(assignor)
        try:
            row = _row(situation, name, plan_change(situation, assignor, reset=reset))
        except GroupError as error:
            row = ComparedStrategy(name, error=str(error))
        rows.append(replace(row, in_use=name == situation.observed.strategy_in_use))
        if progress is not None:
            progress(done)
    observed = situation.observed
    now = _now(situation, reset)
    return Comparison(observed.group_id, tuple(situation.texts()), observed.by_broker, now, tuple(rows))


def _row(situation: Situation, name: str, plan: PlannedGroup) -> ComparedStrategy:
    present = [member for member in plan.members if member.change != "leaves"]
    after = {
        (topic, number): member.id
        for member in present
        for topic, numbers in member.partitions.items()
        for number in numbers
    }
    split, numbers = split_numbers(after, {name: topic.partitions for name, topic in situation.topics.items()})
    lags = [member.lag_after for member in present]
    return ComparedStrategy(
        strategy=name,
        moves=len(plan.moves),
        forced=plan.forced,
        moved=plan.moved,
        least_moved=plan.least_moved,
        kept=plan.kept,
        fewest=plan.spread[0],
        most=plan.spread[1],
        balance_score=plan.balance_score,
        idle=sum(member.after == 0 for member in present),
        **_of_lags(lags),
        split_numbers=split,
        numbers=numbers,
        unassigned=sum(topic.partitions for topic in situation.topics.values()) - len(after),
        warnings=tuple(dict.fromkeys(finding.rule for finding in plan.warnings)),
        load=plan.load,
        load_bound=plan.load_bound,
    )


def _now(situation: Situation, reset: str) -> ComparedStrategy:
    observed = situation.observed
    loads = observed.loads()
    lags = observed.lags(reset)
    totals: dict[str, int | None] = dict.fromkeys(loads, 0)
    for (topic, number), owners in observed.owners.items():
        lag = lags[topic][number]
        for owner in owners:
            before = totals[owner]
            totals[owner] = None if lag is None or before is None else before + lag
    sole = {partition: members[0] for partition, members in observed.owners.items()}
    split, numbers = split_numbers(sole, {name: topic.partitions for name, topic in observed.topics.items()})
    return ComparedStrategy(
        strategy=NOW,
        kept=len(sole),
        fewest=min(loads.values(), default=0),
        most=max(loads.values(), default=0),
        balance_score=balance_score(loads),
        idle=sum(load == 0 for load in loads.values()),
        **_of_lags(list(totals.values())),
        split_numbers=split,
        numbers=numbers,
        unassigned=sum(topic.partitions for topic in observed.topics.values()) - len(sole),
    )


def _of_lags(lags: Sequence[int | None]) -> dict[str, Any]:
    known = [lag for lag in lags if lag is not None]
    if not known or len(known) < len(lags):
        return {}
    mean = math.fsum(known) / len(known)
    skew = 1.0 if max(known) == 0 else max(known) / mean
    return {"least_lag": min(known), "most_lag": max(known), "lag_skew": round(skew, 3)}


def split_numbers(owners: Mapping[Partition, str], counts: Mapping[str, int]) -> tuple[int | None, int]:
    """How many numbers that every topic has belong to several members, and how many such numbers there are.

    >>> split_numbers({("a", 0): "x", ("b", 0): "x", ("a", 1): "x", ("b", 1): "y"}, {"a": 2, "b": 3})
    (1, 2)
    """
    counts = {topic: count for topic, count in counts.items() if count}
    if len(counts) < 2:
        return None, 0
    common = min(counts.values())
    holders: Counter[int] = Counter()
    for number, _ in {(number, member) for (_, number), member in owners.items() if number < common}:
        holders[number] += 1
    return sum(count > 1 for count in holders.values()), common
