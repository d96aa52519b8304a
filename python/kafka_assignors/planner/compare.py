"""All strategies side by side, on the same group and the same change."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import GroupError
from kafka_assignors.group import balance_score
from kafka_assignors.planner.plan import plan_change
from kafka_assignors.planner.strategies import STANDARD, strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.plan import PlannedGroup
    from kafka_assignors.planner.standing import Partition

__all__ = ["ComparedStrategy", "Comparison", "compare"]

NOW = "now"


@dataclass(frozen=True, slots=True)
class ComparedStrategy:
    """What one strategy would make of the change.

    Attributes:
        strategy: its name with its options; `now` is the group as it is, without the change.
        moves: all changes of owner.
        forced: those of them that the change alone makes.
        moved: the others, which the strategy chose.
        least_moved: the least possible number of these, for a plan with the least balance score.
        kept: partitions that stay.
        fewest: the fewest partitions of a member.
        most: the most.
        balance_score: KIP-54's.
        idle: members with nothing.
        least_lag: the least that a member has to read; None where lags are not known.
        most_lag: the most.
        lag_skew: the most divided by the mean; 1 is even.
        split_numbers: partition numbers, of those that all topics of the group have, that different members have of
            different topics: co-location is whole where it is 0. None for a group of one topic.
        numbers: how many such numbers there are.
        unassigned: partitions that nobody gets.
        warnings: the names of the rules that could not be met.
        error: why the strategy cannot plan this; then the figures are 0.
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
        reset: the consumers' `auto_offset_reset`, which counts for lags where there is no commit.
        progress: told how many strategies are done.
    """
    rows = []
    for done, assignor in enumerate(assignors, 1):
        name = strategy_text(assignor)
        try:
            rows.append(_row(situation, name, plan_change(situation, assignor, reset=reset)))
        except GroupError as error:
            rows.append(ComparedStrategy(name, error=str(error)))
        if progress is not None:
            progress(done)
    standing = situation.standing
    now = _now(situation, reset)
    return Comparison(standing.group_id, tuple(situation.texts()), standing.by_broker, now, tuple(rows))


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
    )


def _now(situation: Situation, reset: str) -> ComparedStrategy:
    standing = situation.standing
    loads = standing.loads()
    lags = standing.lags(reset)
    totals: dict[str, int | None] = dict.fromkeys(loads, 0)
    for (topic, number), owners in standing.owners.items():
        lag = lags[topic][number]
        for owner in owners:
            before = totals[owner]
            totals[owner] = None if lag is None or before is None else before + lag
    sole = {partition: members[0] for partition, members in standing.owners.items()}
    split, numbers = split_numbers(sole, {name: topic.partitions for name, topic in standing.topics.items()})
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
        unassigned=sum(topic.partitions for topic in standing.topics.values()) - len(sole),
    )


def _of_lags(lags: Sequence[int | None]) -> dict[str, Any]:
    known = [lag for lag in lags if lag is not None]
    if not known or len(known) < len(lags):
        return {}
    mean = math.fsum(known) / len(known)
    skew = 1.0 if max(known) == 0 else max(known) / mean
    return {"least_lag": min(known), "most_lag": max(known), "lag_skew": round(skew, 3)}


def split_numbers(owners: Mapping[Partition, str], counts: Mapping[str, int]) -> tuple[int | None, int]:
    """How many numbers of all topics are with different members, and how many numbers there are; see the replay.

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
