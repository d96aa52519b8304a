"""The reason of each move, derived from the group before and after it.

Each kind of reason is a statement about the group before and after, and can be checked. If several kinds hold for a
move, the first one that `_Reasons` checks is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.assignors import CooperativeStickyAssignor, LagBasedAssignor, StickyAssignor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.observed_group import Partition

__all__ = ["KINDS", "PlannedMove", "moves_of"]

KINDS: dict[str, str] = {
    "new-partition": "the partition did not exist before",
    "owner-left": "its owner leaves the group",
    "owner-unsubscribed": "its owner no longer subscribes to the topic",
    "no-subscriber": "nobody subscribes to the topic any more",
    "not-assigned": "the strategy gives it no owner",
    "claims-conflict": "several members owned it at the same time, so that no claim counts",
    "no-owner": "it had no owner before",
    "join": "its number goes to one member for all joined topics",
    "owner-over-share": "its owner had more partitions than the plan gives it",
    "lag": "its owner had more lag than the plan gives it",
    "rack": "the new owner is in a rack that has a replica, the old one is not",
    "exchange": "its owner keeps its number of partitions: it gives this one up, and gets another one",
    "strategy": "the strategy does not keep owners",
}
"""Every kind of reason, with its statement."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A partition that changes its owner.

    Attributes:
        topic: its topic.
        partition: its number.
        source: its present owner; None if it has none, or several.
        target: its new owner; None if it has none.
        kind: the kind of its reason; docs/planner.md lists them.
        reason: the kind with names and numbers, for people.
        forced: whether every strategy must move it: its owner cannot keep it, or there is none.
        lag: its lag; None if it is not known.
    """

    topic: str
    partition: int
    source: str | None
    target: str | None
    kind: str
    reason: str
    forced: bool
    lag: int | None


_FORCED = frozenset(
    (
        "new-partition",
        "owner-left",
        "owner-unsubscribed",
        "no-subscriber",
        "not-assigned",
        "claims-conflict",
        "no-owner",
    )
)


def moves_of(
    situation: Situation,
    after: Mapping[Partition, str],
    assignor: Assignor,
    lags: Mapping[str, list[int | None]],
    *,
    joins: bool,
    unassigned: Mapping[Partition, str],
) -> list[PlannedMove]:
    """Every change of owner with its reason, by topic and partition. O(partitions).

    Args:
        situation: the group before.
        after: the owner of each partition once the rebalance is over.
        assignor: the strategy.
        lags: by topic and number.
        joins: whether the plan is that of a stream join.
        unassigned: the reason of each partition that gets no owner.
    """
    return _Reasons(situation, after, assignor, lags, joins, unassigned).moves()


class _Reasons:
    def __init__(
        self,
        situation: Situation,
        after: Mapping[Partition, str],
        assignor: Assignor,
        lags: Mapping[str, list[int | None]],
        joins: bool,
        unassigned: Mapping[Partition, str],
    ) -> None:
        self._situation = situation
        self._after = after
        self._assignor = assignor
        self._lags = lags
        self._joins = joins
        self._unassigned = unassigned
        self._names = situation.names
        self._subscribed = {member: frozenset(topics) for member, topics in situation.subscriptions.items()}
        self._subscribers = {topic for topics in situation.subscriptions.values() for topic in topics}
        self._racks = {member.id: member.rack for member in situation.group.members}
        self._kept = self._keepable()
        self._loads = dict.fromkeys(situation.subscriptions, 0)
        for member in after.values():
            self._loads[member] += 1
        self._gained = self._first_gains()
        sole = [(partition, owners[0]) for partition, owners in situation.before.items() if len(owners) == 1]
        self._numbers_before, self._numbers_after = self._numbers(sole), self._numbers(after.items())
        # None if a lag is not known: then no reason is about lags.
        self._lag_before: dict[str, int] | None = None
        if not any(lag is None for of_topic in lags.values() for lag in of_topic):
            self._lag_before, self._lag_after = self._lag_of(sole), self._lag_of(after.items())

    def moves(self) -> list[PlannedMove]:
        before = self._situation.before
        found = []
        for name, topic in self._situation.topics.items():
            for number in range(topic.partitions):
                owners = before.get((name, number), ())
                target = self._after.get((name, number))
                if owners == ((target,) if target is not None else ()):
                    continue
                source = owners[0] if len(owners) == 1 else None
                kind, reason = self._reason((name, number), owners, target)
                lags = self._lags.get(name, ())
                lag = lags[number] if number < len(lags) else None
                found.append(PlannedMove(name, number, source, target, kind, reason, kind in _FORCED, lag))
        return found

    # ---- reasons -------------------------------------------------------------------------------------------------

    def _reason(self, partition: Partition, owners: tuple[str, ...], target: str | None) -> tuple[str, str]:
        topic, number = partition
        old = self._situation.observed.snapshot.topics.get(topic)
        if old is None or number >= old.partitions:
            count = self._situation.topics[topic].partitions
            was = f"{topic} grows from {old.partitions} to {count}" if old else f"{topic} is new"
            return "new-partition", f"new partition: {was}" + (
                "" if target is not None else f", and {self._no_owner(partition)}"
            )
        if target is None and topic not in self._subscribers:
            return "no-subscriber", f"nobody subscribes to {topic} any more"
        if len(owners) == 1:
            lost = self._lost(topic, owners[0])
            if lost is not None:
                return lost[0], lost[1] + ("" if target is not None else f", and {self._no_owner(partition)}")
        if target is None:
            return "not-assigned", self._no_owner(partition)
        if len(owners) > 1:
            names = " and ".join(self._names[owner] for owner in owners)
            return "claims-conflict", f"{names} owned it at the same time, so no claim counts"
        if not owners:
            return "no-owner", "it had no owner"
        return self._chosen(partition, owners[0], target)

    def _no_owner(self, partition: Partition) -> str:
        why = self._unassigned.get(partition)
        return f"the plan gives it no owner: {why}" if why else "the plan gives it no owner"

    def _lost(self, topic: str, owner: str) -> tuple[str, str] | None:
        if owner not in self._subscribed:
            return "owner-left", f"its owner {self._names[owner]} leaves"
        if topic not in self._subscribed[owner]:
            return "owner-unsubscribed", f"its owner {self._names[owner]} no longer subscribes to {topic}"
        return None

    def _chosen(self, partition: Partition, owner: str, target: str) -> tuple[str, str]:
        """The reason of a move that the strategy chose: the owner could have kept the partition."""
        topic, number = partition
        if self._joins:
            return self._joined(number, owner, target)
        sticky = (
            isinstance(self._assignor, StickyAssignor | CooperativeStickyAssignor) and self._assignor.mode != "fair"
        )
        if isinstance(self._assignor, LagBasedAssignor) and (by_lag := self._by_lag(owner, partition)):
            return by_lag
        if self._kept[owner] > self._loads[owner]:
            return (
                "owner-over-share",
                f"its owner {self._names[owner]} had {self._kept[owner]} partitions, and the plan gives it "
                f"{self._loads[owner]}",
            )
        nearer = self._nearer(topic, number, owner, target)
        if nearer:
            return nearer
        if sticky:
            got = self._gained.get(owner)
            instead = f", and gets {got[0]}-{got[1]} instead" if got is not None else ""
            name, had, has = self._names[target], self._kept[target], self._loads[target]
            gains = f" ({name} had {had} partitions, and the plan gives it {has})" if had < has else ""
            return "exchange", f"{self._names[owner]} passes it on to {name}{gains}{instead}"
        return "strategy", f"{self._assignor.name} does not keep owners; {self._names[owner]} could have kept it"

    def _nearer(self, topic: str, number: int, owner: str, target: str) -> tuple[str, str] | None:
        racks = self._situation.topics[topic].racks
        here = racks[number] if racks is not None else frozenset()
        if not here or self._racks[owner] in here or self._racks[target] not in here:
            return None
        return (
            "rack",
            f"rack {self._racks[target]} of {self._names[target]} has a replica, "
            f"{self._racks[owner] or 'none'} of {self._names[owner]} has not",
        )

    def _by_lag(self, owner: str, partition: Partition) -> tuple[str, str] | None:
        topic, number = partition
        if self._lag_before is None:
            return None
        before, after = self._lag_before[owner], self._lag_after[owner]
        if before <= after:
            return None
        lag = self._lags[topic][number] or 0
        return (
            "lag",
            f"{self._names[owner]} had a lag of {before:,} records, {after:,} in the plan; this partition has {lag:,}",
        )

    def _joined(self, number: int, owner: str, target: str) -> tuple[str, str]:
        holders = self._numbers_before.get(number, frozenset())
        if len(holders) > 1:
            names = " and ".join(sorted(self._names[holder] for holder in holders))
            text = f"number {number} goes to {self._names[target]} for all joined topics; {names} had a part each"
            return "join", text
        had = sum(holders == {owner} for holders in self._numbers_before.values())
        has = sum(owner in holders for holders in self._numbers_after.values())
        if had > has:
            return "owner-over-share", f"{self._names[owner]} had {had} numbers, and the plan gives it {has}"
        return "join", f"number {number} goes to {self._names[target]} for all joined topics"

    # ---- figures before and after --------------------------------------------------------------------------------

    def _keepable(self) -> dict[str, int]:
        """How many of its present partitions each member could keep."""
        counts = dict.fromkeys(self._subscribed, 0)
        for (topic, _), owners in self._situation.before.items():
            if len(owners) == 1 and topic in self._subscribed.get(owners[0], ()):
                counts[owners[0]] += 1
        return counts

    def _first_gains(self) -> dict[str, Partition]:
        found: dict[str, Partition] = {}
        for partition, member in sorted(self._after.items()):
            if self._situation.before.get(partition) != (member,):
                found.setdefault(member, partition)
        return found

    def _lag_of(self, owners: Iterable[tuple[Partition, str]]) -> dict[str, int]:
        totals = dict.fromkeys(self._subscribed, 0)
        for (topic, number), member in owners:
            if topic in self._subscribed.get(member, ()):
                totals[member] += self._lags[topic][number] or 0
        return totals

    @staticmethod
    def _numbers(owners: Iterable[tuple[Partition, str]]) -> dict[int, frozenset[str]]:
        found: dict[int, set[str]] = {}
        for (_, number), member in owners:
            found.setdefault(number, set()).add(member)
        return {number: frozenset(members) for number, members in found.items()}
