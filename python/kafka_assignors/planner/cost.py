"""The cost of a restart, a step of an autoscaler or a deployment: moved and stopped partitions, per strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.group import Group, Member
from kafka_assignors.intervals import Changes, Intervals
from kafka_assignors.planner.positions import goes_by_ids, in_order, places
from kafka_assignors.planner.solve import final_owners, known_lags, plan_of
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.server_side import ServerSideAssignor
from kafka_assignors.strategies import strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.group import Topic
    from kafka_assignors.intervals import Handover
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.observed_group import Partition

__all__ = ["Cause", "Cost", "StepCost", "StrategyCost", "deployment", "rebalance_cost", "rolling_restart", "scaling"]


# How many members may join, one in each rebalance, or all in one. Every rebalance is planned with every strategy.
_MOST_STEPS, _MOST_AT_ONCE = 1_000, 10_000
# How many places of joining ids are tried, and how many plans all of them may take.
_MOST_PLACES, _PLANS = 33, 300
_DEFAULT = Intervals()


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a rebalance.

    Attributes:
        text: a sentence for people.
        leave: ids of members that leave.
        join: new ids, each with the id of the member whose subscription, rack and data it takes over.
    """

    text: str
    leave: tuple[str, ...] = ()
    join: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of one event.

    Attributes:
        text: the event.
        rebalances: 1; 2 if a cooperative rebalance needs its second step.
        moves: partitions that get a new owner.
        forced: moved partitions whose owner left, or that had no owner.
        stopped: partitions that stop being read during the rebalance although their owner stays: in an eager one all of
            its partitions, in a cooperative one and in the new protocol only those that move. Summed over the
            rebalances.
        ownerless_seconds: the expected time without an owner, summed over the partitions: partitions x seconds. In an
            eager rebalance partitions that return to their owner count, too.
    """

    text: str
    rebalances: int
    moves: int
    forced: int
    stopped: int
    ownerless_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """The cost of all events with one strategy.

    Attributes:
        strategy: its name with its options.
        rebalances: how many.
        moves: summed over the steps.
        least_moves: the least of these sums over the places of the joining ids in the order of ids; the same as
            `moves` if the strategy does not depend on that order.
        most_moves_in_all: the largest of these sums.
        forced: summed over the steps.
        stopped: summed over the steps.
        most_moves: the most moves of one step.
        fewest: the fewest partitions of a member after the last step.
        most: the most partitions of a member then.
        steps: the cost of each event.
        error: why the strategy cannot plan this; then the figures are 0.
        in_use: whether it is the group's own strategy, with the options that it has by default.
        ownerless_seconds: partitions x seconds without an owner, summed over the steps.
    """

    strategy: str
    rebalances: int = 0
    moves: int = 0
    least_moves: int = 0
    most_moves_in_all: int = 0
    forced: int = 0
    stopped: int = 0
    most_moves: int = 0
    fewest: int = 0
    most: int = 0
    steps: tuple[StepCost, ...] = ()
    error: str | None = None
    in_use: bool = False
    ownerless_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the same events with each strategy.

    Attributes:
        group_id: the group.
        scenario: the events in words.
        events: how many rebalances they cause.
        static: members that are static, whose restart within their session needs no rebalance.
        observer: whether the broker assigns the group, so that no client-side strategy is asked.
        strategies: one row each, in the order asked.
        intervals: the heartbeat intervals, on which the times without an owner depend.
    """

    group_id: str
    scenario: str
    events: int
    static: int
    observer: bool
    strategies: tuple[StrategyCost, ...]
    intervals: Intervals = _DEFAULT


def rolling_restart(situation: Situation) -> list[Cause]:
    """Every member leaves and comes back under a new id, one after the other; static members cause no rebalance."""
    static = {member.id for member in situation.group.members if member.instance_id is not None}
    events = []
    for member_id in sorted(situation.subscriptions):
        if member_id in static:
            continue
        name, back = situation.names[member_id], ((f"{member_id}+", member_id),)
        if len(situation.subscriptions) == 1:
            # An empty group does not rebalance.
            return [Cause(f"{name} stops and is back", leave=(member_id,), join=back)]
        events += [Cause(f"{name} stops", leave=(member_id,)), Cause(f"{name} is back", join=back)]
    return events


def scaling(situation: Situation, by: int, *, at_once: bool = False) -> list[Cause]:
    """The causes of scaling: `by` members join, or the last `-by` members by id leave.

    Raises:
        OptionError: `by` is 0, too large, or leaves no member.
    """
    members = sorted(situation.subscriptions)
    if by == 0 or -by >= len(members):
        raise OptionError(
            f"--scale is {by:+d}, and the group has {len(members)} members; give +N, or -N that leaves some"
        )
    most = _MOST_AT_ONCE if at_once else _MOST_STEPS
    if by > most:
        raise OptionError(f"--scale is {by:+d}; give up to +{most}{'' if at_once else ', or --at-once'}")
    model = _model(situation)
    if by > 0:
        joins = [(f"scaled-{number}", model) for number in range(1, by + 1)]
        if at_once:
            return [Cause(f"{by} members join", join=tuple(joins))]
        return [Cause(f"{name} joins", join=((name, model),)) for name, _ in joins]
    leaving = members[by:][::-1]
    if at_once:
        return [Cause(f"{-by} members leave", leave=tuple(leaving))]
    return [Cause(f"{situation.names[member_id]} leaves", leave=(member_id,)) for member_id in leaving]


def deployment(
    situation: Situation, count: int, *, order: Literal["new-first", "old-first"] = "new-first"
) -> list[Cause]:
    """New members replace the first `count` members by id, one after the other.

    Raises:
        OptionError: `count` is 0 or above the number of members; or old members first in a group of one.
    """
    members = sorted(situation.subscriptions)
    if not 1 <= count <= len(members):
        raise OptionError(f"--deploy is {count}, and the group has {len(members)} members; give 1 to {len(members)}")
    if order == "old-first" and len(members) == 1:
        raise OptionError("--old-first would leave the group of one member empty; leave it out")
    events = []
    for member_id in members[:count]:
        name = situation.names[member_id]
        stop = Cause(f"{name} stops", leave=(member_id,))
        start = Cause(f"the new {name} joins", join=((f"{member_id}+", member_id),))
        events += [start, stop] if order == "new-first" else [stop, start]
    return events


def _model(situation: Situation) -> str:
    """A member with the most frequent subscription."""
    counts: dict[tuple[str, ...], list[str]] = {}
    for member_id, topics in situation.subscriptions.items():
        counts.setdefault(topics, []).append(member_id)
    most: list[str] = max(counts.values(), key=lambda each: (len(each), each))
    return min(most)


def rebalance_cost(
    situation: Situation,
    events: Sequence[Cause],
    assignors: Sequence[Assignor] = STANDARD,
    *,
    scenario: str = "",
    reset: str = "latest",
    intervals: Intervals = _DEFAULT,
    progress: Callable[[int, int], object] | None = None,
) -> Cost:
    """Takes the group through events with each strategy.

    Before the first event each strategy plans the present group. That plan is not counted: otherwise a strategy would
    pay for the assignment that another one left.

    Args:
        situation: the group, changed already if that is wanted.
        events: the events, one rebalance each.
        assignors: the strategies.
        scenario: the events in words.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
        intervals: of the members' heartbeats, on which the time without an owner depends.
        progress: is called with the number of plans made, and of all plans.

    O(events x strategies) plans.
    """
    lags = situation.lags(reset)
    total = len(assignors) * len(events)
    rows: list[StrategyCost] = []

    def report_plans(done: int) -> None:
        if progress is not None:
            progress(len(rows) * len(events) + done, total)

    for assignor in assignors:
        try:
            row = _Run(situation, assignor, lags, intervals).through(events, report_plans)
            if goes_by_ids(assignor) and any(event.join for event in events):
                sums = [row.moves, *_over_places(situation, assignor, lags, events, intervals)]
                row = replace(row, least_moves=min(sums), most_moves_in_all=max(sums))
            rows.append(row)
        except GroupError as error:
            rows.append(StrategyCost(strategy_text(assignor), error=str(error)))
        report_plans(0)
    static = sum(member.instance_id is not None for member in situation.group.members)
    observed = situation.observed
    rows = [replace(row, in_use=row.strategy == observed.strategy_in_use) for row in rows]
    return Cost(observed.group_id, scenario, len(events), static, observed.by_broker, tuple(rows), intervals)


def _over_places(
    situation: Situation,
    assignor: Assignor,
    lags: Mapping[str, list[int | None]],
    events: Sequence[Cause],
    intervals: Intervals,
) -> list[int]:
    """The moves of the same events, for several places of all joining ids in the order of ids."""
    others = sum(member.instance_id is None for member in situation.group.members)
    most = max(3, min(_MOST_PLACES, _PLANS // max(1, len(events))))
    return [
        _Run(situation, assignor, lags, intervals, place / max(1, others)).through(events, lambda _: None).moves
        for place in places(others, most)
    ]


class _Run:
    """The events with one strategy.

    Args:
        situation: the group.
        assignor: the strategy.
        lags: by topic and number.
        intervals: of the members' heartbeats.
        place: the place of joining ids in the order of ids, from 0, before all others, to 1, behind them; None keeps
            the ids of the events.
    """

    def __init__(
        self,
        situation: Situation,
        assignor: Assignor,
        lags: Mapping[str, list[int | None]],
        intervals: Intervals,
        place: float | None = None,
    ) -> None:
        self._place = place
        self._intervals = intervals
        # Static members sort before the others, and no joining member is static.
        by_id = sorted(situation.group.members, key=lambda each: each.id.encode())
        self._static = [member.id for member in by_id if member.instance_id is not None]
        self._order = [member.id for member in by_id if member.instance_id is None]
        self._assignor = assignor
        self._by_broker = isinstance(assignor, ServerSideAssignor)
        self._lags = known_lags(lags) if isinstance(assignor, LagBasedAssignor) else None
        self._topics: Mapping[str, int | Topic] = situation.group.topics
        members = situation.group_for(assignor).members
        self._members = {member.id: member for member in members}
        # Members that have left stay here: a member that comes back takes over a subscription.
        self._models = dict(self._members)
        self._generation = 1
        self._owners = self._final(members)[0]

    def through(self, events: Sequence[Cause], done_with: Callable[[int], object]) -> StrategyCost:
        steps = []
        for done, event in enumerate(events, 1):
            steps.append(self._step(event))
            done_with(done)
        loads = dict.fromkeys(self._members, 0)
        for member in self._owners.values():
            loads[member] += 1
        return StrategyCost(
            strategy=strategy_text(self._assignor),
            rebalances=sum(step.rebalances for step in steps),
            moves=sum(step.moves for step in steps),
            least_moves=sum(step.moves for step in steps),
            most_moves_in_all=sum(step.moves for step in steps),
            forced=sum(step.forced for step in steps),
            stopped=sum(step.stopped for step in steps),
            most_moves=max((step.moves for step in steps), default=0),
            fewest=min(loads.values()),
            most=max(loads.values()),
            steps=tuple(steps),
            ownerless_seconds=sum(step.ownerless_seconds for step in steps),
        )

    def _step(self, event: Cause) -> StepCost:
        staying = self._members.keys() - set(event.leave)
        for member_id in event.leave:
            del self._members[member_id]
            order = self._static if member_id in self._static else self._order
            order.remove(member_id)
        place = round((self._place or 0.0) * len(self._order))
        self._order[place:place] = [member_id for member_id, _ in event.join]
        for member_id, model in event.join:
            like = self._models[model]
            self._members[member_id] = self._models[member_id] = Member(
                member_id, like.topics, rack=like.rack, data=like.data
            )
        before = self._owners
        held: dict[str, dict[str, list[int]]] = {}
        for (topic, number), member in before.items():
            held.setdefault(member, {}).setdefault(topic, []).append(number)
        self._generation += 1
        members = [
            Member(
                member.id,
                member.topics,
                owned=held.get(member.id),
                generation=self._generation if member.id in held else None,
                instance_id=member.instance_id,
                rack=member.rack,
                data=member.data,
            )
            for member in self._members.values()
        ]
        self._owners, withheld = self._final(members)
        changed = [partition for partition, member in self._owners.items() if before.get(partition) != member]
        forced = sum(before.get(partition) not in self._members for partition in changed)
        kept = sum(member in self._members for member in before.values())
        cooperative = self._assignor.cooperative
        return StepCost(
            text=event.text,
            rebalances=2 if cooperative and withheld else 1,
            moves=len(changed),
            forced=forced,
            stopped=len(changed) - forced if cooperative or self._by_broker else kept,
            ownerless_seconds=self._ownerless(before, staying),
        )

    def _ownerless(self, before: Mapping[Partition, str], staying: Set[str]) -> float:
        """The time without an owner from the owners before to those after."""
        held = given_up = taken = taken_by_joining = 0
        losing = set()
        for partition, member in self._owners.items():
            source = before.get(partition)
            if source in staying:
                held += 1
                if source != member:
                    given_up += 1
                    losing.add(source)
            elif member in staying:
                taken += 1
            else:
                taken_by_joining += 1
        changes = Changes(
            len(staying), len(losing), len(self._members) - len(staying), held, given_up, taken, taken_by_joining
        )
        handover: Handover = "eager"
        if self._by_broker:
            handover = "consumer"
        elif self._assignor.cooperative:
            handover = "cooperative"
        return self._intervals.ownerless(handover, changes)

    def _final(self, members: Sequence[Member]) -> tuple[dict[Partition, str], int]:
        """The owners once the rebalance is over, and how many partitions needed a second step."""
        names = None
        if self._place is not None:
            members, names = in_order(members, [*self._static, *self._order])
        group = Group(self._topics, members)
        owners, withheld = final_owners(plan_of(self._assignor, group, self._lags))
        if names is not None:
            owners = {partition: names[member] for partition, member in owners.items()}
        return owners, withheld
