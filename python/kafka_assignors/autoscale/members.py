"""The members of a replayed group: pods that start, leave and come back, and the owners after each rebalance."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.autoscale.owners import final_owners
from kafka_assignors.errors import RecordSizeWarning
from kafka_assignors.group import Group, Member
from kafka_assignors.server_side import ServerSideAssignor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.autoscale.load import Partition

__all__ = ["Interruption", "Members"]


@dataclass(slots=True)
class _Pod:
    """A replica.

    Attributes:
        number: its place among the replicas; a StatefulSet names it so.
        id: its member id.
        joins: when it joins the group; None once it has.
        expires: when its session expires, if it is static and gone; None while it is there.
    """

    number: int
    id: str
    joins: int | None
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class Interruption:
    """The effect of a rebalance on the partitions.

    Attributes:
        rebalances: 1; 2 if a cooperative one needs its second step.
        moves: partitions that get a new owner.
        until: the time until which a partition has no owner, for each partition that loses its owner for a time.
    """

    rebalances: int
    moves: int
    until: Mapping[Partition, int]


class Members:
    """The replicas of a group, as members with one strategy.

    Scaling down ends the newest replica first, as for a Deployment and a StatefulSet. A dynamic member then leaves the
    group. A static one (KIP-345) stays a member until its session expires, and gets its partitions back if it returns
    before; until then they have no owner. A rebalance for another cause waits until the session expires, as in Kafka.

    Attributes:
        owners: the owner of each partition; an owner that has ended is not in `present`.
        changed: whether the members or their partitions may have changed in the last `advance`, or a `scale` before it.

    Args:
        topics: topic to its number of partitions; every member subscribes to all of them.
        assignor: the strategy.
        count: how many members there are at the beginning.
        static: whether they are static.
        rebalance_ms: how long a partition is without an owner in a rebalance.
        startup_ms: how long a replica takes before it joins.
        session_ms: the session timeout of static members.
        lags: the lag of each partition now, by topic and number, for strategies by lag.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        assignor: Assignor,
        count: int,
        *,
        static: bool,
        rebalance_ms: int,
        startup_ms: int,
        session_ms: int,
        lags: Callable[[], Mapping[str, list[int]]],
    ) -> None:
        self._topics = dict(topics)
        self._assignor = assignor
        self._static = static
        self._rebalance_ms = rebalance_ms
        self._startup_ms = startup_ms
        self._session_ms = session_ms
        self._lags = lags
        self._started = 0
        self._generation = 0
        self._changed = False
        self.changed = self._scaled = False
        self._pods: list[_Pod] = []
        self._gone: dict[int, _Pod] = {}
        self.owners: dict[Partition, str] = {}
        for number in range(count):
            self._pods.append(_Pod(number, self._new_id(), None))
        if count:
            self.owners = self._plan()[0]

    @property
    def present(self) -> set[str]:
        """The ids of the members that read."""
        return {pod.id for pod in self._pods if pod.joins is None}

    @property
    def empty(self) -> bool:
        """Whether the group has no member."""
        return not self._gone and all(pod.joins is not None for pod in self._pods)

    def scale(self, now: int, count: int) -> None:
        """Starts replicas, or ends the newest ones."""
        self._scaled = True
        while len(self._pods) > count:
            pod = self._pods.pop()
            if pod.joins is not None:
                # This pod has not joined. If it is static, `_gone` may have its predecessor, with the partitions.
                continue
            if self._static:
                pod.expires = now + self._session_ms
                self._gone[pod.number] = pod
            else:
                self._changed = True
        while len(self._pods) < count:
            self._pods.append(_Pod(len(self._pods), self._new_id(), now + self._startup_ms))

    def advance(self, now: int) -> Interruption | None:
        """Lets due replicas join and due sessions expire. Returns the effect of the rebalance that follows, if any."""
        self.changed, self._scaled = self._scaled, False
        for number, pod in list(self._gone.items()):
            assert pod.expires is not None
            if pod.expires <= now:
                del self._gone[number]
                self._changed = True
        for pod in self._pods:
            if pod.joins is not None and pod.joins <= now:
                pod.joins = None
                self.changed = True
                before = self._gone.pop(pod.number, None)
                if before is None:
                    self._changed = True
                else:
                    # Its instance id is still in the group: the broker assigns it the same partitions, without a
                    # rebalance.
                    pod.id = before.id
        if not self._changed:
            return None
        self._changed = False
        self.changed = True
        return self._rebalance(now)

    def _rebalance(self, now: int) -> Interruption | None:
        waits = max([now, *(pod.expires for pod in self._gone.values() if pod.expires is not None)])
        self._gone.clear()
        before, self.owners = self.owners, {}
        if not self.present:
            return None
        after, withheld = self._plan(before)
        self.owners = after
        changed = [partition for partition, member in after.items() if before.get(partition) != member]
        calm = self._assignor.cooperative or isinstance(self._assignor, ServerSideAssignor)
        stopped = changed if calm else list(after)
        until = dict.fromkeys(stopped, waits + self._rebalance_ms)
        return Interruption(2 if self._assignor.cooperative and withheld else 1, len(changed), until)

    def _plan(self, before: Mapping[Partition, str] | None = None) -> tuple[dict[Partition, str], int]:
        held: dict[str, dict[str, list[int]]] = {}
        for (topic, number), member_id in (before or {}).items():
            held.setdefault(member_id, {}).setdefault(topic, []).append(number)
        self._generation += 1
        topics = list(self._topics)
        members = [
            Member(
                pod.id,
                topics,
                owned=held.get(pod.id),
                generation=self._generation if pod.id in held else None,
                instance_id=f"pod-{pod.number}" if self._static else None,
            )
            for pod in self._pods
            if pod.joins is None
        ]
        group = Group(self._topics, members)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordSizeWarning)
            if isinstance(self._assignor, LagBasedAssignor):
                plan = self._assignor.assign(group, lags=self._lags())
            else:
                plan = self._assignor.assign(group)
        return final_owners(plan)

    def _new_id(self) -> str:
        """An id at an arbitrary place in the order, like the ids that brokers give; the same in every run."""
        self._started += 1
        return f"pod-{sha256(str(self._started).encode()).hexdigest()[:16]}"
