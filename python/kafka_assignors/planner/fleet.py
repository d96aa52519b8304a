"""All groups of a cluster, the worst first: broken rules, the growth of lag, and the cost of rebalances."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_assignors.assignors import LagBasedAssignor, StickyAssignor, by_name
from kafka_assignors.errors import GroupError, OptionError, RecordSizeWarning, SnapshotError
from kafka_assignors.group import Group
from kafka_assignors.planner.change import Change, Join, Situation
from kafka_assignors.planner.describe import describe
from kafka_assignors.planner.fleet_looks import PATIENCE_S, Movement, movement
from kafka_assignors.planner.kip848 import readiness
from kafka_assignors.planner.observed_group import Finding, ObservedGroup
from kafka_assignors.planner.positions import goes_by_ids, in_order
from kafka_assignors.planner.solve import final_owners, known_lags
from kafka_assignors.printable import listed
from kafka_assignors.server_side import ServerSideGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.cluster import Look, Missing, Snapshot
    from kafka_assignors.group import Plan
    from kafka_assignors.planner.describe import DescribedGroup

__all__ = ["FLEET_RULES", "VERDICTS", "Fleet", "FleetGroup", "Limits", "fleet"]

FLEET_RULES: dict[str, str] = {
    "commits-advance": "committed offsets advance while records wait",
    "commits-stay": "no committed offset goes back",
    "keeps-up": "lag does not grow",
    "within-limits": "the lag is within the limits that were given",
}
"""The rules that only `fleet` checks, since they need two readings or limits; the others are those of `describe`."""

VERDICTS: dict[str, str] = {
    "dead": "records wait, and the group has no member",
    "stuck": "commits stand still while records wait",
    "unread": "partitions of a subscribed topic have no owner",
    "late": "the lag is above a limit that was given",
    "behind": "the lag grows",
    "rewound": "a committed offset went back",
    "rebalancing": "the group is not Stable",
    "faulty": "another rule is not met",
    "idle": "members have no partition",
    "uneven": "a better balance is possible",
    "empty": "no member, and nothing waits",
    "ok": "nothing is wrong",
}
"""The verdicts, the worst first. The verdict of a group is that of its worst finding."""

_OF_RULE = {
    "somebody-reads": "dead",
    "commits-advance": "stuck",
    "every-partition-read": "unread",
    "within-limits": "late",
    "keeps-up": "behind",
    "commits-stay": "rewound",
    "stable": "rebalancing",
    "every-member-works": "idle",
    "even-shares": "uneven",
    "least-balance-score": "uneven",
}
_RANK = {verdict: place for place, verdict in enumerate(VERDICTS)}
# A lag of at most this many seconds of arrivals does not count: clients commit only every five seconds.
_BEHIND_S = 10.0
# A lag counts as growing only if it grows by more than this part of the arrivals: consumers read in batches.
_BEHIND_PART = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """The lag that a group may have.

    Attributes:
        records: the most records; None for any number.
        seconds: the longest time that a record may have waited; None for any time.
    """

    records: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class FleetGroup:
    """A group of the fleet.

    Attributes:
        group_id: its id.
        verdict: that of its worst finding, such as `stuck`; docs/fleet.md lists them.
        state: Kafka's name of its state.
        protocol: `classic`, if a member assigns, or `consumer`, if the broker does (KIP-848).
        strategy: the strategy, or the broker's assignor.
        members: how many it has.
        idle: members without a partition.
        topics: how many it reads.
        partitions: those of its topics.
        unowned: partitions of subscribed topics without an owner.
        fewest: the fewest partitions of a member; None without members.
        most: the most.
        balance_score: the balance score (KIP-54).
        least_balance_score: the least possible one; None if it is not known.
        lag: its lag in records; None if it is not known, or if no partition has a commit.
        lag_seconds: how many seconds the oldest unread record has waited; None if that is not known.
        growth: by how many records a second the lag grows; None with one reading.
        arrivals: how many records a second arrive; None with one reading.
        commits: by how many records a second the commits advance; None with one reading.
        uncommitted: partitions without a commit.
        stuck: partitions whose commits stand still while records wait; None with one reading.
        rebalances: how often it rebalanced between two readings, at least; None with one reading.
        moves: partitions that change their owner when the next member joins; None if that is not known.
        least_moves: the same under `sticky`, the fewest of any plan with the least balance score.
        kip848: `moved`, `moving`, `ready`, `blocked` or `unknown`: whether it can be moved to KIP-848 while it works.
        kip848_reasons: the obstacles, a sentence each.
        findings: the rules that are not met, and notes.
    """

    group_id: str
    verdict: str
    state: str
    protocol: str
    strategy: str
    members: int
    idle: int
    topics: int
    partitions: int
    unowned: int
    fewest: int | None
    most: int | None
    balance_score: int
    least_balance_score: int | None
    lag: int | None
    lag_seconds: float | None
    growth: float | None
    arrivals: float | None
    commits: float | None
    uncommitted: int
    stuck: int | None
    rebalances: int | None
    moves: int | None
    least_moves: int | None
    kip848: str
    kip848_reasons: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The rules that are not met."""
        return tuple(finding for finding in self.findings if finding.warning)

    @property
    def rank(self) -> tuple[int, float, int, str]:
        """The place of the group in the order of the fleet: the verdict, then the age and the number of records."""
        return _RANK[self.verdict], -(self.lag_seconds or 0.0), -(self.lag or 0), self.group_id


@dataclass(frozen=True, slots=True)
class Fleet:
    """All groups of a cluster.

    Attributes:
        cluster: the cluster's id; empty where it has none.
        taken_ms: the time of the reading, in milliseconds since 1970.
        seconds: the time between the earlier reading and this one; None with one reading.
        groups: the worst first.
        missing: the parts of the cluster that could not be read.
        notes: remarks about the readings.
    """

    cluster: str
    taken_ms: int
    seconds: float | None
    groups: tuple[FleetGroup, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]

    @property
    def wrong(self) -> bool:
        """Whether a rule is not met, or something could not be read."""
        return any(group.warnings for group in self.groups) or any(each.kind != "gone" for each in self.missing)

    def first(self, count: int | None) -> Fleet:
        """The fleet with only its first groups; with all if `count` is None."""
        return replace(self, groups=self.groups[:count])

    @property
    def verdicts(self) -> dict[str, int]:
        """How many groups have each verdict, the worst first; a verdict that no group has is left out."""
        counts = Counter(group.verdict for group in self.groups)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def fleet(
    look: Look,
    earlier: Snapshot | None = None,
    *,
    seconds: float | None = None,
    reset: str = "latest",
    limits: Limits | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Fleet:
    """Describes all groups of a reading. O(partitions), and the time of four plans for each group.

    Args:
        look: the present reading.
        earlier: another snapshot of the same cluster, for the changes since.
        seconds: the time between both; None computes it from the times in the snapshots.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
        limits: the lag that a group may have.
        progress: called with the number of groups that are done, and of all.

    Raises:
        SnapshotError: both snapshots are of different clusters.
    """
    snapshot = look.snapshot
    if earlier is not None and earlier.cluster != snapshot.cluster:
        raise SnapshotError(
            f"the earlier snapshot is of cluster {earlier.cluster!r}, this one of {snapshot.cluster!r}; give two of one"
        )
    if earlier is not None and seconds is None:
        seconds = (snapshot.taken_ms - earlier.taken_ms) / 1000
    notes = _notes(earlier, seconds)
    if seconds is not None and seconds <= 0:
        seconds = None
    found = []
    for done, group_id in enumerate(snapshot.groups):
        observed = ObservedGroup(snapshot, group_id)
        before = None if earlier is None or group_id not in earlier.groups else ObservedGroup(earlier, group_id)
        try:
            described = describe(observed, reset=reset)
            changed = movement(observed, before, seconds, look.ages)
        except GroupError as error:
            # A group that no broker can have must not prevent the answer about the others.
            found.append(_unreadable(observed, error))
        else:
            found.append(_group(observed, described, changed, reset, limits or Limits()))
        if progress is not None:
            progress(done + 1, len(snapshot.groups))
    if earlier is not None:
        notes += _differences(earlier, snapshot, look.missing)
    groups = tuple(sorted(found, key=lambda group: group.rank))
    return Fleet(snapshot.cluster, snapshot.taken_ms, seconds, groups, look.missing, tuple(notes))


def _notes(earlier: Snapshot | None, seconds: float | None) -> list[str]:
    if earlier is None:
        return []
    if seconds is None or seconds <= 0:
        return ["the earlier reading is not earlier: the clocks differ, or the files are exchanged; no rate is known"]
    if seconds < PATIENCE_S:
        return [f"the readings are {seconds:g} s apart: commits that stand still are shown from {PATIENCE_S:g} s on"]
    return []


def _differences(earlier: Snapshot, snapshot: Snapshot, missing: Iterable[Missing]) -> list[str]:
    unread = {each.name for each in missing}
    gone = [name for name in earlier.groups if name not in snapshot.groups and name not in unread]
    new = [name for name in snapshot.groups if name not in earlier.groups]
    notes = []
    if gone:
        notes.append(f"{len(gone)} {'group is' if len(gone) == 1 else 'groups are'} gone since: {listed(gone, 5)}")
    if new:
        notes.append(f"{len(new)} {'group is' if len(new) == 1 else 'groups are'} new since: {listed(new, 5)}")
    return notes


def _group(observed: ObservedGroup, found: DescribedGroup, changed: Movement, reset: str, limits: Limits) -> FleetGroup:
    ready = readiness(observed)
    findings = (*found.findings, *_of_movement(observed, changed, found.lag, limits))
    moves, least = _moves_on_join(observed, reset)
    # While a group of the classic protocol rebalances, a broker does not return the assignments.
    assigned = observed.by_broker or found.state == "Stable"
    fewest, most = found.spread if assigned and found.spread else (None, None)
    return FleetGroup(
        group_id=observed.group_id,
        verdict=_verdict(observed, findings),
        state=found.state,
        protocol=found.protocol,
        strategy=found.strategy,
        members=len(found.members),
        idle=len(found.idle) if assigned else 0,
        topics=len(found.topics),
        partitions=sum(topic.partitions for topic in found.topics),
        unowned=sum(owner is None for topic in found.topics if topic.subscribers for owner in topic.owners),
        fewest=fewest,
        most=most,
        balance_score=found.balance_score,
        least_balance_score=found.least_balance_score,
        lag=found.lag,
        lag_seconds=None if changed.lag_seconds is None else round(changed.lag_seconds, 1),
        growth=_rate(changed.growth),
        arrivals=_rate(changed.arrivals),
        commits=_rate(changed.commits),
        uncommitted=found.uncommitted,
        stuck=changed.stuck,
        rebalances=changed.rebalances,
        moves=moves,
        least_moves=least,
        kip848=ready.state,
        kip848_reasons=ready.reasons,
        findings=findings,
    )


def _unreadable(observed: ObservedGroup, error: GroupError) -> FleetGroup:
    """A group that cannot be described, with the reason; nothing else is known of it."""
    return FleetGroup(
        group_id=observed.group_id,
        verdict="faulty",
        state=observed.group.state,
        protocol=observed.group.protocol,
        strategy=observed.group.assignor,
        members=len(observed.members),
        idle=0,
        topics=0,
        partitions=0,
        unowned=0,
        fewest=None,
        most=None,
        balance_score=0,
        least_balance_score=None,
        lag=None,
        lag_seconds=None,
        growth=None,
        arrivals=None,
        commits=None,
        uncommitted=0,
        stuck=None,
        rebalances=None,
        moves=None,
        least_moves=None,
        kip848="unknown",
        kip848_reasons=(),
        findings=(Finding("readable-bytes", str(error)),),
    )


def _rate(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _verdict(observed: ObservedGroup, findings: Iterable[Finding]) -> str:
    wrong = [_OF_RULE.get(finding.rule, "faulty") for finding in findings if finding.warning]
    if wrong:
        return min(wrong, key=_RANK.__getitem__)
    return "ok" if observed.members else "empty"


def _of_movement(observed: ObservedGroup, changed: Movement, lag: int | None, limits: Limits) -> list[Finding]:
    """The findings of the rules that need two readings, or limits."""
    found = []
    if changed.stuck and observed.members:
        what = "1 partition" if changed.stuck == 1 else f"{changed.stuck:,} partitions"
        found.append(Finding("commits-advance", f"the commits of {what} stand still, and records wait there"))
    if changed.rewound:
        what = "1 partition" if changed.rewound == 1 else f"{changed.rewound:,} partitions"
        found.append(Finding("commits-stay", f"the commits of {what} went back: records are read again"))
    if changed.remade:
        text = f"the ends of {changed.remade:,} partitions went back: their topics were made anew; no rate counts them"
        found.append(Finding("commits-stay", text, warning=False))
    if observed.members and not changed.rewound and _is_behind(changed, lag):
        text = f"the lag grows by {changed.growth:,.1f} records a second; {changed.arrivals:,.1f} arrive"
        found.append(Finding("keeps-up", text))
    if limits.records is not None and lag is not None and lag > limits.records:
        found.append(Finding("within-limits", f"the lag is {lag:,} records; the limit is {limits.records:,}"))
    if limits.seconds is not None and changed.lag_seconds is not None and changed.lag_seconds > limits.seconds:
        text = f"a record has waited {changed.lag_seconds:,.0f} s; the limit is {limits.seconds:,g} s"
        found.append(Finding("within-limits", text))
    return found


def _is_behind(changed: Movement, lag: int | None) -> bool:
    if changed.growth is None or changed.arrivals is None or not lag:
        return False
    return changed.growth > _BEHIND_PART * changed.arrivals and lag > _BEHIND_S * changed.arrivals


def _moves_on_join(observed: ObservedGroup, reset: str) -> tuple[int | None, int | None]:
    """The moves when one member joins: with the group's strategy, and with `sticky`. None if they are not known."""
    if not observed.members:
        return None, None
    try:
        situation = Situation(observed, Change(join=(Join(1),)))
    except (GroupError, OptionError):
        return None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordSizeWarning)
        least = _moved(situation, StickyAssignor().assign(situation.group))
        if observed.by_broker:
            return _moves_by_broker(situation), least
        try:
            assignor = by_name(observed.group.assignor)
        except OptionError:
            return None, least
        if isinstance(assignor, StickyAssignor) and assignor == StickyAssignor():
            return least, least
        return _moves(situation, assignor, reset), least


def _moves(situation: Situation, assignor: Assignor, reset: str) -> int | None:
    """The moves of a strategy. If its plan depends on the order of ids, the new id is in the middle of this order."""
    group = situation.group_for(assignor)
    names: Mapping[str, str] | None = None
    if goes_by_ids(assignor):
        others = sorted(set(situation.subscriptions) - set(situation.joined), key=str.encode)
        half = len(others) // 2
        members, names = in_order(group.members, [*others[:half], *situation.joined, *others[half:]])
        group = Group(group.topics, members)
    if isinstance(assignor, LagBasedAssignor):
        try:
            return _moved(situation, assignor.assign(group, lags=known_lags(situation.lags(reset))))
        except GroupError:
            return None
    return _moved(situation, assignor.assign(group), names)


def _moves_by_broker(situation: Situation) -> int | None:
    """The moves of the broker's assignor. None if no known release has it, or no broker can have such a group."""
    observed = situation.observed
    alone = replace(observed.snapshot, groups={observed.group_id: observed.group}, topics=situation.topics)
    try:
        group = ServerSideGroup.of(alone)
        for member_id, topics in situation.joined.items():
            group.join(member_id, topics)
    except (GroupError, OptionError):
        return None
    after = {
        (topic, number): member_id
        for member_id, target in group.target.items()
        for topic, numbers in target.items()
        for number in numbers
    }
    return sum(len(owners) == 1 and after.get(each) != owners[0] for each, owners in situation.before.items())


def _moved(situation: Situation, plan: Plan, names: Mapping[str, str] | None = None) -> int:
    """How many partitions with an owner lose it, once the rebalance is over.

    Args:
        situation: the group.
        plan: of it.
        names: the real id of each member of the plan, if the plan has other ids.
    """
    after, _ = final_owners(plan)
    real = names or {}
    return sum(
        len(owners) == 1 and real.get(after.get(partition, ""), after.get(partition)) != owners[0]
        for partition, owners in situation.before.items()
    )
