"""`RebalanceReport`: one rebalance as one member saw it, and its line in the log."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignor import record_size_problem
from kafka_assignors.member.causes import causes_of
from kafka_assignors.printable import LINE, SENTENCE, listed, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.group import Plan
    from kafka_assignors.member.causes import Cause

__all__ = ["PLANNING_SHARE", "Course", "Planned", "RebalanceReport", "RebalanceReporter", "publish"]

logger = logging.getLogger("kafka_assignors")

# The part of its session timeout for which a leader may search for the best plan. Some clients send no heartbeats
# meanwhile, and the rest of the session must last for reading the lags and for the requests.
PLANNING_SHARE = 0.25

# Planning that takes more than this part of the session timeout gets a warning, also in the user's own assignor.
LONG_SHARE = 1 / 3

Partitions = MappingProxyType[str, tuple[int, ...]]
"""Topic to ascending partition numbers; topics without any are left out."""


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """One rebalance as one member saw it. Read-only.

    Attributes:
        assignor: the strategy's name on the wire.
        generation: the group's generation that began; None if the client does not show it. Of a stream join, the epoch.
        gained: topic to the partitions that this member did not hold before.
        lost: topic to the partitions that it held before and no longer holds.
        kept: topic to the partitions that it held before and still holds.
        expelled: whether the member had lost its membership since the last rebalance. Then no partition counts as kept,
            since another member may have had it in between: one that came back is in both `lost` and `gained`.
        rewound: topic to the partitions in `kept` whose position the client throws away. It starts again at the group's
            commit, and reads records again that were read and not committed. aiokafka does so with all of them,
            kafka-python after a generation without the member, confluent-kafka's consumer never.
        leader: whether this member planned the rebalance. If not, the attributes from here to `plan` are None or empty.
        planning_seconds: wall time of the client's call of `assign`. The leader's session timeout must be longer.
        record_bytes: the size of the group's record on the broker, as far as the leader can know it. The default limit
            of brokers is 1,048,588 bytes.
        faults: member id to the part of its metadata that could not be read.
        limited: the search for a better plan that ended early, and why, as a sentence; None if none did. It may take a
            quarter of the session timeout, and a number of steps. The plan is valid all the same.
        error: why a `CustomAssignor` failed and its fallback planned, as a sentence; None if nothing failed.
        warnings: further problems, as sentences: partitions that a `CustomAssignor` left out, a plan of it that changes
            from call to call, planning that took more than a third of the session timeout.
        plan: the whole plan, without topics that the leader's client did not know yet. Their partitions stay with their
            owners, and are not counted in `moved` and `least_moves`.
        group_id: the group; empty if the client does not show it.
        began: when this member began to join, in seconds since 1970: the member learnt that the group rebalances,
            subscribed, or lost its membership. In a plug-in, when the client asked for the metadata. None if the time
            is not known.
        ended: when this member received its assignment, before any listener was called, in seconds since 1970. The
            difference to `began` is measured with a monotonic clock.
        without_partitions: for how many seconds of the rebalance this member had no partition; None if it is not known.
        without_owner: topic to partition to the seconds in which no member read it, for the assigned partitions. For a
            partition in `kept` the time is exact: since the member stopped reading, 0 if the member read on. For a
            partition in `gained` it is a lower bound: since the answer to JoinGroup, when the previous owner had given
            the partition up already. Without an entry if the client does not show that answer.
        causes: why the group rebalanced, as docs/metrics.md names it: what this member did, and what the leader finds
            different from the generation before. Empty if neither is known.
        retries: how often this member asked again for an assignment, since others joined meanwhile or the broker could
            not answer.
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
    error: str | None = None
    warnings: tuple[str, ...] = ()
    plan: Plan | None = field(default=None, repr=False, compare=False)
    group_id: str = ""
    began: float | None = None
    ended: float | None = None
    without_partitions: float | None = None
    without_owner: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    causes: tuple[Cause, ...] = ()
    retries: int = 0

    @property
    def seconds(self) -> float | None:
        """How many seconds the rebalance took this member; None if that is not known."""
        return None if self.began is None or self.ended is None else self.ended - self.began

    @property
    def cause(self) -> str:
        """The first of `causes`; `unknown` without one."""
        return self.causes[0] if self.causes else "unknown"

    @property
    def moved(self) -> int | None:
        """Leader: how many partitions had an owner and change it, in the whole group."""
        return None if self.plan is None else self.plan.moved

    @property
    def least_moves(self) -> int | None:
        """Leader: the least possible `moved` of any plan that is as fair. The independent verifier computes it now.

        This takes longer than planning did. In a large group read it on a thread of yours, not within `on_rebalance`.
        """
        return None if self.plan is None else self.plan.verify().moved_bound

    @property
    def balance_score(self) -> int | None:
        """Leader: KIP-54's balance score of the assignment; 0 is perfect. In cooperative rebalancing, partitions that
        are withheld until they are revoked do not count yet."""
        return None if self.plan is None else self.plan.balance_score

    @property
    def worst_load(self) -> float | None:
        """Leader of a weighted plan: the load of the most loaded member, relative to its capacity; else None."""
        return None if self.plan is None else self.plan.worst_load

    @property
    def load_bound(self) -> float | None:
        """Leader of a weighted plan: a proven lower bound of `worst_load` in any plan; else None."""
        return None if self.plan is None else self.plan.load_bound


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan of this member as the group's leader.

    Attributes:
        plan: the plan.
        record_bytes: the size of the group's record with it.
        seconds: how long planning took.
        session: the member's session timeout in seconds; None if it is not known.
    """

    plan: Plan
    record_bytes: int
    seconds: float
    session: float | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the plan, and one if planning took too long."""
        if self.session is None or self.seconds <= self.session * LONG_SHARE:
            return self.plan.warnings
        slow = (
            f"planning took {self.seconds:.1f} s of a session timeout of {self.session:g} s: a leader whose client "
            "sends no heartbeats meanwhile is expelled; raise the timeout, or plan faster"
        )
        return (*self.plan.warnings, slow)


@dataclass(frozen=True, slots=True)
class Course:
    """How a rebalance went for one member. Times are those of `time.monotonic`.

    Attributes:
        began: when the member began to join.
        joined: when JoinGroup was answered; None if the client does not show it.
        attempts: how often the member asked for an assignment.
        trigger: what made the member join, as the core names it.
    """

    began: float
    joined: float | None = None
    attempts: int = 1
    trigger: str = "group"

    @classmethod
    def of(cls, notice: Mapping[str, Any]) -> Course | None:
        """The course in a notice of the core; None if the notice does not contain the beginning."""
        if notice["began_ms"] is None:
            return None
        joined = None if notice["joined_ms"] is None else notice["joined_ms"] / 1000
        return cls(notice["began_ms"] / 1000, joined, notice["attempts"], notice["trigger"])


class RebalanceReporter:
    """The state of one member between two rebalances, for its reports. Not thread-safe.

    Args:
        group_id: the group; empty if it is not known.

    Attributes:
        planned: the member's plan for the current rebalance; None if it does not lead, or has not planned.
    """

    def __init__(self, group_id: str = "") -> None:
        self.planned: Planned | None = None
        self._group_id = group_id
        self._held: Mapping[str, Iterable[int]] = {}
        self._expelled = False
        # For each partition that the member gave up: when it stopped reading.
        self._given_up: dict[tuple[str, int], float] = {}
        self._compared: set[Cause] | None = None

    def expel(self) -> None:
        """Takes note that the membership was lost."""
        self._expelled = True

    def give_up(self, partitions: Iterable[tuple[str, int]] | None = None) -> None:
        """Takes note that these partitions are no longer read; all by default."""
        now = time.monotonic()
        if partitions is None:
            partitions = [(topic, number) for topic, numbers in self._held.items() for number in numbers]
        for each in partitions:
            self._given_up.setdefault(each, now)

    def compared(self, causes: set[Cause] | None) -> None:
        """Adds the differences that this member found as the leader. The group may rebalance twice for one report."""
        if causes is not None:
            self._compared = causes if self._compared is None else self._compared | causes

    def report(
        self,
        assignor: str,
        generation: int | None,
        after: Mapping[str, Iterable[int]],
        rewound: Callable[[Mapping[str, tuple[int, ...]]], Mapping[str, tuple[int, ...]]] | None = None,
        *,
        course: Course | None = None,
        group_id: str | None = None,
    ) -> RebalanceReport:
        """The report of a rebalance that is over.

        Args:
            assignor: the strategy's name on the wire.
            generation: of the group.
            after: the partitions of the member now.
            rewound: gives the kept partitions whose position the client throws away; None if there are none.
            course: how it went; None if that is not known.
            group_id: as for the class, for a reporter that was made before the group was known.
        """
        report = _report_of(assignor, generation, self._held, after, self.planned, expelled=self._expelled)
        report = replace(
            report,
            rewound={} if rewound is None else rewound(report.kept),
            group_id=self._group_id if group_id is None else group_id,
            causes=causes_of("group" if course is None else course.trigger, self._compared),
        )
        if course is not None:
            report = self._timed(report, course)
        self._held = {topic: tuple(numbers) for topic, numbers in after.items()}
        self._expelled, self.planned, self._compared = False, None, None
        self._given_up.clear()
        return report

    def _timed(self, report: RebalanceReport, course: Course) -> RebalanceReport:
        now, ended = time.monotonic(), time.time()
        took = max(0.0, now - course.began)
        # After a member has left and subscribed again, it does not know the owners of its partitions in between.
        left = course.trigger == "joined"
        without_owner: dict[str, dict[int, float]] = {}
        for topic, numbers in () if left else report.kept.items():
            since = {number: self._given_up.get((topic, number), now) for number in numbers}
            without_owner[topic] = {number: now - at for number, at in since.items()}
        if course.joined is not None:
            at_least = max(0.0, now - course.joined)
            for gained in (report.gained, report.kept) if left else (report.gained,):
                for topic, numbers in gained.items():
                    without_owner.setdefault(topic, {}).update(dict.fromkeys(numbers, at_least))
        held = sum(map(len, report.kept.values())) + sum(map(len, report.lost.values()))
        if report.expelled or left or not held:
            empty = took
        elif len(self._given_up) < held:
            empty = 0.0
        else:
            empty = now - max(self._given_up.values())
        return replace(
            report,
            began=ended - took,
            ended=ended,
            without_partitions=min(max(0.0, empty), took),
            without_owner=MappingProxyType(without_owner),
            retries=max(0, course.attempts - 1),
        )


def _report_of(
    assignor: str,
    generation: int | None,
    before: Mapping[str, Iterable[int]],
    after: Mapping[str, Iterable[int]],
    planned: Planned | None,
    *,
    expelled: bool,
) -> RebalanceReport:
    """As `RebalanceReporter.report`, without `rewound`, `group_id`, `causes` and the times."""
    gained, lost, kept = compare(before, after)
    if expelled:
        # Another member may have read the partitions in between, so all of them count as lost, and as gained again.
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
        error=None if planned is None else planned.plan.error,
        warnings=() if planned is None else planned.warnings,
        plan=None if planned is None else planned.plan,
    )


def compare(
    before: Mapping[str, Iterable[int]], after: Mapping[str, Iterable[int]]
) -> tuple[Partitions, Partitions, Partitions]:
    """The partitions that were gained, lost and kept between two assignments."""
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


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _warn_of_leftovers(plan: Plan | None) -> None:
    """One warning for all partitions that a stream join leaves unassigned, and for topics with notices."""
    if plan is None or not plan.joins:
        return
    leftovers: dict[tuple[str, str], list[int]] = {}
    for topic, partition, reason in plan.unassigned:
        leftovers.setdefault((topic, reason), []).append(partition)
    lines = [f"{printable(topic)} ({count} partitions): {text}" for topic, count, text in plan.notices]
    lines += [f"{printable(topic)} {_ranges(numbers)}: {reason}" for (topic, reason), numbers in leftovers.items()]
    if lines:
        logger.warning("unassigned=%s: %s", len(plan.unassigned), listed(lines, most=SENTENCE, separator="; "))


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
    """Writes one line to the log, with its figures as fields of the record, and calls the user's callback.

    Errors of the callback are logged.
    """
    fields: dict[str, object] = {
        "assignor": report.assignor,
        "generation": report.generation,
        "gained": _count(report.gained),
        "lost": _count(report.lost),
        "kept": _count(report.kept),
        "expelled": report.expelled,
        "rewound": _count(report.rewound),
        "cause": ",".join(report.causes) or "unknown",
        "seconds": _rounded(report.seconds),
        "without_partitions": _rounded(report.without_partitions),
        "retries": report.retries,
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
        if report.worst_load is not None and report.load_bound is not None:
            # The load of the most loaded member, and its lower bound.
            fields |= {"worst_load": float(f"{report.worst_load:.6g}"), "load_bound": float(f"{report.load_bound:.6g}")}
        _warn_of_leftovers(report.plan)
    shown = " ".join(f"{name}={value}" for name, value in fields.items() if name != "limited")
    problems = [] if report.plan is None else [record_size_problem(report.plan), *report.warnings]
    if report.limited is not None:
        problems.append(f"the plan is valid, but a better one may exist: {report.limited}")
    warnings = [problem for problem in problems if problem is not None]
    logger.log(
        logging.WARNING if report.faults or warnings else logging.INFO,
        "rebalanced: %s",
        "; ".join([printable(shown, LINE), *warnings]),
        extra=fields,
    )
    if on_rebalance is None:
        return
    try:
        on_rebalance(report)
    except Exception:
        logger.exception("on_rebalance=%r failed; the rebalance is not affected", on_rebalance)
