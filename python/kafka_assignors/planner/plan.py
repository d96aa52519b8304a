"""The plan of a change: the new assignment, the moves with their reasons, and the rules that are not met."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_assignors.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    LagBasedAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
    by_name,
)
from kafka_assignors.errors import OptionError
from kafka_assignors.group import balance_score
from kafka_assignors.planner import findings as rules
from kafka_assignors.planner import heaviest_lag
from kafka_assignors.planner.observed_group import Finding, Partition
from kafka_assignors.planner.positions import moves_by_position
from kafka_assignors.planner.rates import total_rate
from kafka_assignors.planner.reasons import PlannedMove, moves_of
from kafka_assignors.planner.solve import VerifiedPlan, solve
from kafka_assignors.server_side import ServerSideAssignor
from kafka_assignors.strategies import strategy_text
from kafka_assignors.weighted import WeightedAssignor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.group import Certificate
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.rates import Rates

__all__ = ["PlannedGroup", "PlannedMember", "VerifiedPlan", "default_strategy", "plan_change", "solve"]


@dataclass(frozen=True, slots=True)
class PlannedMember:
    """A member before and after the change.

    Attributes:
        id: its id; `new-1` and so on for those that join.
        name: its name for people.
        change: `joins`, `leaves` or `stays`.
        before: how many partitions it has.
        after: how many it gets.
        partitions: topic to the partitions that it gets, ascending.
        lag_before: the lag of its present partitions; None if it is not known.
        lag_after: the lag of its new partitions, likewise.
        rate_before: how many records a second are written to its present partitions; None if that is not known.
        rate_after: to its new partitions, likewise.
    """

    id: str
    name: str
    change: str
    before: int
    after: int
    partitions: Mapping[str, tuple[int, ...]]
    lag_before: int | None
    lag_after: int | None
    rate_before: float | None = None
    rate_after: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """A plan for people and scripts.

    Attributes:
        group_id: the group.
        strategy: the text of the strategy.
        observer: whether the broker assigns the group, which then asks no strategy of a client.
        changes: the change, a line for each part.
        members: all members, those that leave included, by id.
        moves: every change of owner, by topic and partition, each with its reason.
        kept: partitions that stay.
        forced: moves that the change alone makes: the owner leaves, the partition is new, and so on.
        moved: moves that the strategy chose: the owner could have kept the partition.
        moves_by_order: the least and the most moves over the places of the joining ids in the order of ids; None if no
            member joins, or if the strategy does not depend on that order.
        least_moved: the least possible value of `moved` for a plan with the least balance score; None for a stream
            join, which counts numbers.
        balance_score: the balance score of the plan (KIP-54).
        least_balance_score: the least possible one; None for a stream join, or if it is not known.
        spread: the fewest and the most partitions of a member.
        lag_spread: the least and the largest lag of a member; None if a lag is not known.
        heaviest_lag_before: the largest lag of a member before the change; None if a lag is not known.
        withheld: partitions that a cooperative rebalance hands out only in its second step.
        record_bytes: the size of the group's record on the broker.
        record_limit: the largest record that the broker accepts.
        record_limit_told: whether this limit was read from the cluster; else it is Kafka's default.
        findings: the rules that are not met, and notes.
        load: of a weighted plan, the load of the heaviest member relative to its capacity; None for other strategies.
        load_bound: a proven lower bound of it in any plan.
    """

    group_id: str
    strategy: str
    observer: bool
    changes: tuple[str, ...]
    members: tuple[PlannedMember, ...]
    moves: tuple[PlannedMove, ...]
    kept: int
    forced: int
    moved: int
    moves_by_order: tuple[int, int] | None
    least_moved: int | None
    balance_score: int
    least_balance_score: int | None
    spread: tuple[int, int]
    lag_spread: tuple[int, int] | None
    heaviest_lag_before: int | None
    withheld: int
    record_bytes: int
    record_limit: int
    record_limit_told: bool
    findings: tuple[Finding, ...]
    load: float | None = None
    load_bound: float | None = None

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The rules that are not met."""
        return tuple(finding for finding in self.findings if finding.warning)


def default_strategy(situation: Situation) -> Assignor:
    """The strategy of the group; `sticky` for a KIP-848 group, and for a group that never had members.

    Raises:
        OptionError: the group uses a strategy that this package does not have.
    """
    group = situation.observed.group
    if situation.observed.by_broker or not group.assignor:
        return StickyAssignor()
    try:
        return by_name(group.assignor)
    except OptionError as error:
        raise OptionError(
            f"group {situation.observed.group_id!r} uses the strategy {group.assignor!r}, which is not known here; say "
            "with --strategy what to plan with"
        ) from error


def plan_change(
    situation: Situation, assignor: Assignor | None = None, *, reset: str = "latest", rates: Rates | None = None
) -> PlannedGroup:
    """Plans a change. O(partitions), and the time of the strategy and of its verification.

    Args:
        situation: the group and the change.
        assignor: the strategy; None takes the group's own.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
        rates: of the partitions, from `rates_between`; the weighted strategy takes them as weights if it has none.

    Raises:
        GroupError: a strategy by lag, and a lag that is not known.
        OptionError: no strategy is given, and this package does not have the group's own.
    """
    assignor = default_strategy(situation) if assignor is None else assignor
    if isinstance(assignor, WeightedAssignor) and assignor.weights is None and rates is not None:
        assignor = replace(assignor, weights=rates)
    observed = situation.observed
    lags = situation.lags(reset)
    verified = solve(situation, assignor, lags)
    plan, certificate = verified.plan, verified.certificate
    moves = moves_of(situation, verified.after, assignor, lags, joins=plan.joins, unassigned=verified.unassigned)
    members = _members(situation, verified.after, lags, rates)
    present = [member for member in members if member.change != "leaves"]
    loads = {member.id: member.after for member in present}
    forced = sum(move.forced for move in moves)
    by_order = moves_by_position(situation, assignor)
    known_lags = [member.lag_after for member in present if member.lag_after is not None]
    lags_before = [member.lag_before for member in members if member.lag_before is not None]
    heaviest = max(lags_before) if lags_before and len(lags_before) == len(members) else None
    found = _findings(situation, assignor, verified, loads, lags, reset)
    if by_order is not None and by_order[0] < by_order[1]:
        found.append(_of_order(assignor, by_order))
    if heaviest is not None and len(known_lags) == len(present) and heaviest_lag.rises(heaviest, max(known_lags)):
        found += heaviest_lag.of_plan(situation, assignor, lags, heaviest, max(known_lags))
    return PlannedGroup(
        group_id=observed.group_id,
        strategy=strategy_text(assignor),
        observer=observed.by_broker,
        changes=tuple(situation.texts()),
        members=members,
        moves=tuple(moves),
        kept=sum(situation.before.get(partition) == (member,) for partition, member in verified.after.items()),
        forced=forced,
        moved=len(moves) - forced,
        moves_by_order=by_order,
        least_moved=None if plan.joins else certificate.moved_bound,
        balance_score=balance_score(loads),
        least_balance_score=None if plan.joins else certificate.balance_score_bound,
        spread=(min(loads.values()), max(loads.values())),
        lag_spread=(min(known_lags), max(known_lags)) if len(known_lags) == len(present) else None,
        heaviest_lag_before=heaviest,
        withheld=verified.withheld,
        record_bytes=plan.record_bytes,
        record_limit=observed.record_limit,
        record_limit_told=observed.snapshot.record_limit is not None,
        findings=tuple(found),
        load=plan.worst_load,
        load_bound=plan.load_bound,
    )


def _members(
    situation: Situation, after: Mapping[Partition, str], lags: Mapping[str, list[int | None]], rates: Rates | None
) -> tuple[PlannedMember, ...]:
    gets: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in situation.subscriptions}
    for (topic, number), member_id in sorted(after.items()):
        gets[member_id].setdefault(topic, []).append(number)
    had: dict[str, list[Partition]] = {member.id: [] for member in situation.observed.members}
    for partition, owners in situation.before.items():
        for owner in owners:
            had[owner].append(partition)

    def lag(partitions: list[Partition]) -> int | None:
        total = 0
        for topic, number in partitions:
            of = lags[topic][number]
            if of is None:
                return None
            total += of
        return total

    found = []
    for member_id in sorted({*had, *gets}):
        partitions = gets.get(member_id, {})
        holds: dict[str, list[int]] = {}
        for topic, number in had.get(member_id, ()):
            holds.setdefault(topic, []).append(number)
        found.append(
            PlannedMember(
                id=member_id,
                name=situation.names[member_id],
                change="joins"
                if member_id in situation.joined
                else "leaves"
                if member_id in situation.left
                else "stays",
                before=len(had.get(member_id, ())),
                after=sum(map(len, partitions.values())),
                partitions={topic: tuple(numbers) for topic, numbers in partitions.items()},
                lag_before=lag(had.get(member_id, [])),
                lag_after=lag([(topic, number) for topic, numbers in partitions.items() for number in numbers]),
                rate_before=total_rate(rates, holds),
                rate_after=total_rate(rates, partitions),
            )
        )
    return tuple(found)


def _findings(
    situation: Situation,
    assignor: Assignor,
    verified: VerifiedPlan,
    loads: Mapping[str, int],
    lags: Mapping[str, list[int | None]],
    reset: str,
) -> list[Finding]:
    observed, plan, certificate = situation.observed, verified.plan, verified.certificate
    found = rules.of_members(observed.members, situation.names)
    found += rules.of_missing(situation.missing, situation.names)
    found += _shared(situation)
    by_topic: dict[str, list[int]] = {}
    reasons: dict[str, str] = {}
    for (topic, number), reason in verified.unassigned.items():
        if any(topic in topics for topics in situation.subscriptions.values()) or (topic, number) in situation.before:
            by_topic.setdefault(topic, []).append(number)
            reasons.setdefault(topic, f": {reason}")
    found += rules.of_unassigned(by_topic, reasons)
    found += [
        Finding("every-partition-read", f"nobody subscribes to {topic}: its {count:,} partitions have no reader")
        for topic, count in situation.change.partitions.items()
        if topic not in situation.topics
    ]
    counts = {name: topic.partitions for name, topic in situation.topics.items()}
    found += rules.of_loads(loads, situation.subscriptions, counts, situation.names, wanted=_why(assignor))
    found += _not_optimal(assignor, certificate)
    if isinstance(assignor, WeightedAssignor):
        # Warnings of other own assignors are about partitions that are left out: `of_unassigned` names them already.
        found += [Finding("known-weights", each, warning=False) for each in plan.warnings]
    if certificate.rack_misses:
        least = "the least possible is not known"
        if certificate.rack_misses_bound is not None:
            least = f"{certificate.rack_misses_bound} is the least possible"
        found.append(Finding("own-rack", f"{certificate.rack_misses} partitions are read from another rack; {least}"))
    if plan.limited is not None:
        found.append(Finding("work-limit", f"the plan is valid, but a better one may exist: {plan.limited}"))
    if certificate.limited is not None:
        text = f"the least possible figures are not all known: {certificate.limited}"
        found.append(Finding("work-limit", text, warning=False))
    found += [
        Finding("same-partition-counts", f"{notice.topic} ({notice.partitions} partitions): {notice.text}")
        for notice in plan.notices
    ]
    if any(lag is None for of_topic in lags.values() for lag in of_topic) and situation.observed.members:
        found.append(Finding("known-lags", "the lags of some partitions are not known", warning=False))
    found += rules.of_record(plan.record_bytes, observed.record_limit, observed.snapshot.record_limit is not None)
    uncommitted = observed.uncommitted(name for name in situation.topics if name in observed.snapshot.topics)
    found += rules.of_uncommitted(uncommitted, observed.records(uncommitted), reset)
    found += observed.notes()
    if verified.withheld:
        found.append(
            Finding(
                "two-phases",
                f"{verified.withheld} partitions are handed out in a second rebalance, once their members have revoked "
                "them",
                warning=False,
            )
        )
    for topic in situation.change.partitions:
        if topic in observed.snapshot.topics:
            found.append(
                Finding(
                    "keys-stay",
                    f"with more partitions of {topic} most keys go to another one from then on: what depends on the "
                    "order of one key, or joins on it, has to be ready for that",
                    warning=False,
                )
            )
    return found


def _of_order(assignor: Assignor, by_order: tuple[int, int]) -> Finding:
    return Finding(
        "known-order",
        f"the plan of {assignor.name} depends on the order of member ids, and those of joiners are not known yet: "
        f"{by_order[0]} to {by_order[1]} partitions move",
        warning=False,
    )


def _shared(situation: Situation) -> list[Finding]:
    shared = {partition: owners for partition, owners in situation.before.items() if len(owners) > 1}
    if not shared:
        return []
    (topic, number), owners = next(iter(sorted(shared.items())))
    return [
        Finding(
            "one-owner",
            f"{len(shared)} partitions have several owners now, such as {topic}-{number} "
            f"({rules.some(owners, situation.names)}): none of these claims counts",
        )
    ]


def _why(assignor: Assignor) -> str:
    """Why the strategy gives members different numbers of partitions on purpose; empty if it does not."""
    if isinstance(assignor, StickyAssignor | CooperativeStickyAssignor):
        return "the mode sticky-yet-fair moves nothing" if assignor.mode == "sticky-yet-fair" else ""
    if isinstance(assignor, LagBasedAssignor):
        return (
            "lag comes before numbers" if assignor.max_skew != 0 or assignor.keep == "owners" else "lag goes by topic"
        )
    if isinstance(assignor, WeightedAssignor):
        return "weights and capacities come before numbers"
    return "numbers are shared out, not partitions" if isinstance(assignor, StickyStreamJoinAssignor) else ""


def _not_optimal(assignor: Assignor, certificate: Certificate) -> list[Finding]:
    """How far range, roundrobin and the broker's assignors are from the best plan."""
    if not isinstance(assignor, RangeAssignor | RoundRobinAssignor | ServerSideAssignor):
        return []
    found = []
    if certificate.balance_score_bound is not None and certificate.balance_score > certificate.balance_score_bound:
        found.append(
            Finding(
                "least-balance-score",
                f"{assignor.name} has a balance score of {certificate.balance_score}; "
                f"{certificate.balance_score_bound} is possible, with sticky",
            )
        )
    if certificate.moved_bound is not None and certificate.moved > certificate.moved_bound:
        found.append(
            Finding(
                "fewest-moves",
                f"{assignor.name} moves {certificate.moved} partitions whose owners could keep them; "
                f"{certificate.moved_bound} is enough, with sticky",
            )
        )
    return found
