"""What a member can tell about a rebalance: `RebalanceReport`, and its line in the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kafka_assignors.assignor import record_size_problem
from kafka_assignors.printable import LINE, SENTENCE, listed, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.group import Plan

__all__ = ["PLANNING_SHARE", "Planned", "RebalanceReport", "publish", "report_of"]

logger = logging.getLogger("kafka_assignors")

# The share of its session timeout that a leader may search for the best plan. Some clients send no heartbeats
# meanwhile, and the rest of the session must last for reading the lags and for the requests.
PLANNING_SHARE = 0.25

Partitions = MappingProxyType[str, tuple[int, ...]]
"""Topic to ascending partition numbers; topics without any are left out."""


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """One rebalance as one member saw it. Read-only.

    Attributes:
        assignor: the strategy's name on the wire.
        generation: the group's generation that began; None where the client does not tell. Of a stream join, the epoch.
        gained: topic to the partitions that this member did not hold before.
        lost: topic to the partitions that it held before and no longer holds.
        kept: topic to the partitions that it holds on to.
        expelled: whether the member had lost its membership since the last rebalance. Nothing counts as kept then,
            since another member may have held it in between: what came back is in both `lost` and `gained`.
        rewound: topic to those of the partitions in `kept` whose position the client throws away, so that it reads on
            from the group's commit, and reads again what was read and not committed. aiokafka does so with all of them;
            kafka-python where a generation passed without the member; confluent-kafka's consumer never.
        leader: whether this member planned the rebalance. What follows is None, or empty, elsewhere.
        planning_seconds: wall time of the client's call of `assign`: what the leader's session timeout must cover.
        record_bytes: the size of the group's record on the broker, as far as the leader can know it; the broker's
            limit is 1,048,588 bytes unless it is told otherwise.
        faults: member id to what could not be read in its metadata.
        limited: which search for a better plan ended early, and why, as a sentence; None if none did. The leader gives
            it a quarter of its session timeout at most, and a number of steps. The plan is valid all the same.
        plan: the whole plan, but for topics that the leader's client did not know yet: these stay with their owners,
            and `moved` and `least_moves` count none of them.
    """

    assignor: str
    generation: int | None
    gained: Mapping[str, tuple[int, ...]]
    lost: Mapping[str, tuple[int, ...]]
    kept: Mapping[str, tuple[int, ...]]
    expelled: bool = False
    rewound: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    leader: bool = False
    planning_seconds: float | None = None
    record_bytes: int | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    limited: str | None = None
    plan: Plan | None = field(default=None, repr=False, compare=False)

    @property
    def moved(self) -> int | None:
        """Leader: how many partitions had an owner and change it, in the whole group."""
        return None if self.plan is None else self.plan.moved

    @property
    def least_moves(self) -> int | None:
        """Leader: the least possible `moved` of any plan as fair, found by the independent verifier when asked for.

        That takes longer than planning did: ask on a thread of yours, not within `on_rebalance`, where groups are
        large.
        """
        return None if self.plan is None else self.plan.verify().moved_bound

    @property
    def balance_score(self) -> int | None:
        """Leader: KIP-54's balance score of what was handed out; 0 is perfect. Partitions withheld until they are
        revoked, in cooperative rebalancing, are not in it yet."""
        return None if self.plan is None else self.plan.balance_score


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan of this member as the group's leader.

    Attributes:
        plan: the plan.
        record_bytes: the size of the group's record with it.
        seconds: how long planning took.
    """

    plan: Plan
    record_bytes: int
    seconds: float


def report_of(
    assignor: str,
    generation: int | None,
    before: Mapping[str, Iterable[int]],
    after: Mapping[str, Iterable[int]],
    planned: Planned | None,
    *,
    expelled: bool,
) -> RebalanceReport:
    """The report of a rebalance.

    Args:
        assignor: the strategy's name on the wire.
        generation: of the group.
        before: what the member had.
        after: what it has now.
        planned: the plan of this generation, if the member made it.
        expelled: whether the membership was lost since `before`.
    """
    gained, lost, kept = compare(before, after)
    if expelled:
        # Other members may have read on in between, so everything counts as gone, and what came back as new.
        (gained, _, _), (_, lost, _), kept = compare({}, after), compare(before, {}), MappingProxyType({})
    return RebalanceReport(
        assignor=assignor,
        generation=generation,
        gained=gained,
        lost=lost,
        kept=kept,
        expelled=expelled,
        leader=planned is not None,
        planning_seconds=None if planned is None else planned.seconds,
        record_bytes=None if planned is None else planned.record_bytes,
        faults={} if planned is None else planned.plan.faults,
        limited=None if planned is None else planned.plan.limited,
        plan=None if planned is None else planned.plan,
    )


def compare(
    before: Mapping[str, Iterable[int]], after: Mapping[str, Iterable[int]]
) -> tuple[Partitions, Partitions, Partitions]:
    """What was gained, lost and kept between two holdings."""
    gained: dict[str, tuple[int, ...]] = {}
    lost: dict[str, tuple[int, ...]] = {}
    kept: dict[str, tuple[int, ...]] = {}
    for topic in sorted(before.keys() | after.keys()):
        old, new = set(before.get(topic, ())), set(after.get(topic, ()))
        for into, partitions in ((gained, new - old), (lost, old - new), (kept, new & old)):
            if partitions:
                into[topic] = tuple(sorted(partitions))
    return MappingProxyType(gained), MappingProxyType(lost), MappingProxyType(kept)


def _count(partitions: Mapping[str, tuple[int, ...]]) -> int:
    return sum(map(len, partitions.values()))


def _warn_of_leftovers(plan: Plan | None) -> None:
    """One warning for everything that a stream join leaves unassigned, and for topics that are odd."""
    if plan is None or not plan.joins:
        return
    leftovers: dict[tuple[str, str], list[int]] = {}
    for topic, partition, reason in plan.unassigned:
        leftovers.setdefault((topic, reason), []).append(partition)
    lines = [f"{printable(topic)} ({count} partitions): {text}" for topic, count, text in plan.notices]
    lines += [f"{printable(topic)} {_ranges(numbers)}: {reason}" for (topic, reason), numbers in leftovers.items()]
    if lines:
        told = listed(lines, most=SENTENCE, separator="; ")
        logger.warning("unassigned=%s: %s", len(plan.unassigned), told)


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers, neighbours as runs.

    >>> _ranges([0, 1, 2, 5])
    '0-2,5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def publish(report: RebalanceReport, on_rebalance: Callable[[RebalanceReport], object] | None) -> None:
    """One line in the log, its figures as fields of the record; then the user's callback, whose errors end here."""
    fields: dict[str, object] = {
        "assignor": report.assignor,
        "generation": report.generation,
        "gained": _count(report.gained),
        "lost": _count(report.lost),
        "kept": _count(report.kept),
        "expelled": report.expelled,
        "rewound": _count(report.rewound),
        "leader": report.leader,
    }
    if report.leader:
        fields |= {
            "members": None if report.plan is None else len(report.plan),
            "moved": report.moved,
            "balance_score": report.balance_score,
            "planning_seconds": report.planning_seconds,
            "record_bytes": report.record_bytes,
            "faults": dict(report.faults),
            "limited": report.limited,
        }
        _warn_of_leftovers(report.plan)
    shown = " ".join(f"{name}={value}" for name, value in fields.items() if name != "limited")
    problems = [] if report.plan is None else [record_size_problem(report.plan)]
    if report.limited is not None:
        problems.append(f"the plan is valid, but a better one may exist: {report.limited}")
    told = [problem for problem in problems if problem is not None]
    logger.log(
        logging.WARNING if report.faults or told else logging.INFO,
        "rebalanced: %s",
        "; ".join([printable(shown, LINE), *told]),
        extra=fields,
    )
    if on_rebalance is None:
        return
    try:
        on_rebalance(report)
    except Exception:
        logger.exception("on_rebalance=%r failed; the rebalance is not affected", on_rebalance)
