"""What a restart, a step of an autoscaler or a deployment costs in moved and stopped partitions, per strategy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.errors import GroupError, OptionError, RecordSizeWarning
from kafka_assignors.group import Group, Member
from kafka_assignors.planner.plan import _known
from kafka_assignors.planner.positions import goes_by_ids, in_order, places
from kafka_assignors.planner.strategies import STANDARD, strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.group import Topic
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.standing import Partition

__all__ = ["Cost", "Event", "StepCost", "StrategyCost", "deployment", "rebalance_cost", "rolling_restart", "scaling"]


# Members that join in as many rebalances, each of which is planned with each strategy; and in one.
_MOST_STEPS, _MOST_AT_ONCE = 1_000, 10_000
# Places of joining ids that are tried, and plans that may take.
_MOST_PLACES, _PLANS = 33, 300


@dataclass(frozen=True, slots=True)
class Event:
    """What makes a group rebalance once.

    Attributes:
        text: for people.
        leave: ids of members that go.
        join: new ids, each with the id of the member whose subscription and rack it takes over.
    """

    text: str
    leave: tuple[str, ...] = ()
    join: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one event costs.

    Attributes:
        text: the event.
        rebalances: 1; 2 where a cooperative rebalance needs its second step.
        moves: partitions that get another owner, or one where they had none.
        forced: those of them whose owner left, or that had none.
        stopped: partitions whose owner stays and gives them up meanwhile: in an eager rebalance all of them, in a
            cooperative one only those that move. Summed over the rebalances.
    """

    text: str
    rebalances: int
    moves: int
    forced: int
    stopped: int


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """What everything costs with one strategy.

    Attributes:
        strategy: its name with its options.
        rebalances: how many.
        moves: summed over the steps.
        least_moves: the least of these sums over places where the ids of joiners could sort; `moves`, where the
            strategy does not go by the order of ids.
        most_moves_in_all: the most, likewise.
        forced: likewise.
        stopped: likewise.
        most_moves: of one step.
        fewest: the fewest partitions of a member in the end.
        most: the most.
        steps: one by one.
        error: why the strategy cannot plan this; then the figures are 0.
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


@dataclass(frozen=True, slots=True)
class Cost:
    """The same events with each strategy.

    Attributes:
        group_id: the group.
        scenario: what happens, in words.
        events: how many times the group has to rebalance for it.
        static: members that are static, whose restart within their session needs no rebalance.
        observer: whether the broker assigns the group, so that no client-side strategy is asked.
        strategies: one row each, in the order asked.
    """

    group_id: str
    scenario: str
    events: int
    static: int
    observer: bool
    strategies: tuple[StrategyCost, ...]


def rolling_restart(situation: Situation) -> list[Event]:
    """Every member leaves and comes back under a new id, one after the other; a static one does so unnoticed."""
    static = {member.id for member in situation.group.members if member.instance_id is not None}
    events = []
    for member_id in sorted(situation.subscriptions):
        if member_id in static:
            continue
        name, back = situation.names[member_id], ((f"{member_id}+", member_id),)
        if len(situation.subscriptions) == 1:
            # There is nobody to rebalance in between.
            return [Event(f"{name} stops and is back", leave=(member_id,), join=back)]
        events += [Event(f"{name} stops", leave=(member_id,)), Event(f"{name} is back", join=back)]
    return events


def scaling(situation: Situation, by: int, *, at_once: bool = False) -> list[Event]:
    """So many members more, or fewer: the last by id go.

    Raises:
        OptionError: by nothing, or by all members there are.
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
            return [Event(f"{by} members join", join=tuple(joins))]
        return [Event(f"{name} joins", join=((name, model),)) for name, _ in joins]
    leaving = members[by:][::-1]
    if at_once:
        return [Event(f"{-by} members leave", leave=tuple(leaving))]
    return [Event(f"{situation.names[member_id]} leaves", leave=(member_id,)) for member_id in leaving]


def deployment(
    situation: Situation, count: int, *, order: Literal["new-first", "old-first"] = "new-first"
) -> list[Event]:
    """So many members are replaced by new ones, one after the other: the first by id.

    Raises:
        OptionError: no member, or more than there are; or old ones first in a group of one.
    """
    members = sorted(situation.subscriptions)
    if not 1 <= count <= len(members):
        raise OptionError(f"--deploy is {count}, and the group has {len(members)} members; give 1 to {len(members)}")
    if order == "old-first" and len(members) == 1:
        raise OptionError("--old-first would leave the group of one member empty; leave it out")
    events = []
    for member_id in members[:count]:
        name = situation.names[member_id]
        stop = Event(f"{name} stops", leave=(member_id,))
        start = Event(f"the new {name} joins", join=((f"{member_id}+", member_id),))
        events += [start, stop] if order == "new-first" else [stop, start]
    return events


def _model(situation: Situation) -> str:
    """A member that subscribes as most do."""
    counts: dict[tuple[str, ...], list[str]] = {}
    for member_id, topics in situation.subscriptions.items():
        counts.setdefault(topics, []).append(member_id)
    most: list[str] = max(counts.values(), key=lambda each: (len(each), each))
    return min(most)


def rebalance_cost(
    situation: Situation,
    events: Sequence[Event],
    assignors: Sequence[Assignor] = STANDARD,
    *,
    scenario: str = "",
    reset: str = "latest",
    progress: Callable[[int, int], object] | None = None,
) -> Cost:
    """Takes the group through events, with each strategy from the assignment that it has now.

    Before the first event each strategy plans the group as it is, which costs nothing here: what is compared is how the
    strategies go on, not how the group was assigned before.

    Args:
        situation: the group, changed already if that is wanted.
        events: what happens, one rebalance each.
        assignors: the strategies.
        scenario: in words.
        reset: the consumers' `auto_offset_reset`, which counts for lags where there is no commit.
        progress: told how many plans are made, and how many there are.

    O(events x strategies x what a plan takes).
    """
    lags = situation.lags(reset)
    total = len(assignors) * len(events)
    rows: list[StrategyCost] = []

    def tell(done: int) -> None:
        if progress is not None:
            progress(len(rows) * len(events) + done, total)

    for assignor in assignors:
        try:
            row = _Run(situation, assignor, lags).through(events, tell)
            if goes_by_ids(assignor) and any(event.join for event in events):
                sums = [row.moves, *_over_places(situation, assignor, lags, events)]
                row = replace(row, least_moves=min(sums), most_moves_in_all=max(sums))
            rows.append(row)
        except GroupError as error:
            rows.append(StrategyCost(strategy_text(assignor), error=str(error)))
        tell(0)
    static = sum(member.instance_id is not None for member in situation.group.members)
    standing = situation.standing
    return Cost(standing.group_id, scenario, len(events), static, standing.by_broker, tuple(rows))


def _over_places(
    situation: Situation, assignor: Assignor, lags: Mapping[str, list[int | None]], events: Sequence[Event]
) -> list[int]:
    """The moves of the same events, for each of several places where all ids that join sort."""
    others = sum(member.instance_id is None for member in situation.group.members)
    most = max(3, min(_MOST_PLACES, _PLANS // max(1, len(events))))
    return [
        _Run(situation, assignor, lags, place / max(1, others)).through(events, lambda _: None).moves
        for place in places(others, most)
    ]


class _Run:
    """One strategy on its way through the events.

    Args:
        situation: the group.
        assignor: the strategy.
        lags: by topic and number.
        place: where ids that join sort among the others, from 0, before all, to 1, behind all; None takes the ids as
            the events have them.
    """

    def __init__(
        self,
        situation: Situation,
        assignor: Assignor,
        lags: Mapping[str, list[int | None]],
        place: float | None = None,
    ) -> None:
        self._place = place
        # Static members come first whatever their ids, and nobody who joins here is static.
        by_id = sorted(situation.group.members, key=lambda each: each.id.encode())
        self._static = [member.id for member in by_id if member.instance_id is not None]
        self._order = [member.id for member in by_id if member.instance_id is None]
        self._assignor = assignor
        self._lags = _known(lags) if isinstance(assignor, LagBasedAssignor) else None
        self._topics: Mapping[str, int | Topic] = situation.group.topics
        self._members = {member.id: member for member in situation.group.members}
        # Also those that have left: who comes back takes over what they subscribed to.
        self._models = dict(self._members)
        self._generation = 1
        self._owners = self._final(situation.group.members)[0]

    def through(self, events: Sequence[Event], tell: Callable[[int], object]) -> StrategyCost:
        steps = []
        for done, event in enumerate(events, 1):
            steps.append(self._step(event))
            tell(done)
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
        )

    def _step(self, event: Event) -> StepCost:
        for member_id in event.leave:
            del self._members[member_id]
            order = self._static if member_id in self._static else self._order
            order.remove(member_id)
        place = round((self._place or 0.0) * len(self._order))
        self._order[place:place] = [member_id for member_id, _ in event.join]
        for member_id, model in event.join:
            like = self._models[model]
            self._members[member_id] = self._models[member_id] = Member(member_id, like.topics, rack=like.rack)
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
            )
            for member in self._members.values()
        ]
        self._owners, withheld = self._final(members)
        changed = [partition for partition, member in self._owners.items() if before.get(partition) != member]
        forced = sum(before.get(partition) not in self._members for partition in changed)
        staying = sum(member in self._members for member in before.values())
        cooperative = self._assignor.cooperative
        return StepCost(
            text=event.text,
            rebalances=2 if cooperative and withheld else 1,
            moves=len(changed),
            forced=forced,
            stopped=len(changed) - forced if cooperative else staying,
        )

    def _final(self, members: Sequence[Member]) -> tuple[dict[Partition, str], int]:
        """Who has what once the rebalance is over, and how much of it needed a second step."""
        names = None
        if self._place is not None:
            members, names = in_order(members, [*self._static, *self._order])
        group = Group(self._topics, members)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordSizeWarning)
            if isinstance(self._assignor, LagBasedAssignor):
                plan = self._assignor.assign(group, lags=self._lags)
            else:
                plan = self._assignor.assign(group)
        owners = {
            (topic, number): member
            for member, topics in plan.assignment.items()
            for topic, numbers in topics.items()
            for number in numbers
        }
        withheld = 0
        for move in plan.moves:
            if move.target is not None and (move.topic, move.partition) not in owners:
                owners[move.topic, move.partition] = move.target
                withheld += 1
        if names is not None:
            owners = {partition: names[member] for partition, member in owners.items()}
        return owners, withheld
