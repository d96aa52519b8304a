"""The replay of one group with one policy and one strategy.

Time goes in steps, of the greatest common divisor of the policy's two periods. At the beginning of a step KEDA and the
HPA read the lag and decide if they are due, replicas join and leave, and the group rebalances. In the step itself
records arrive, and each member reads at most its rate, divided equally among its partitions; the part that a partition
does not need goes to the others. All sums are of whole millionths of records and whole milliseconds: a replay has the
same figures on every machine.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from kafka_assignors.autoscale.autoscaler import Autoscaler
from kafka_assignors.autoscale.load import MICRO
from kafka_assignors.autoscale.members import Members
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.strategies import strategy_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.autoscale.load import Partition, Workload
    from kafka_assignors.autoscale.policy import Policy

__all__ = ["MOST_CELLS", "Replayed", "Timing", "replay"]

MOST_CELLS = 50_000_000
"""The most steps times partitions of one replay: about a minute of computing."""

# The most points of a line that is drawn.
_POINTS = 240


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations in a replay, in seconds.

    Attributes:
        rebalance: how long a partition has no owner in a rebalance: 3, the interval of heartbeats, within which the
            members of a classic group learn of it. In an eager rebalance this holds for all partitions, otherwise for
            those that move.
        startup: how long a replica takes from the decision until it joins.
        session: the session timeout, after which the partitions of a static member that left get another owner: 45
            (KIP-735).
        commit: how often members commit; records that were read since the last commit are lag for the scaler.
        deadline: within which time after its arrival a record has to be read; one that waits at the beginning counts as
            just arrived.
    """

    rebalance: float = 3.0
    startup: float = 20.0
    session: float = 45.0
    commit: float = 5.0
    deadline: float = 300.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0 <= value <= 7 * 86_400:
                raise OptionError(f"{name} is {value!r} seconds; give 0 to {7 * 86_400:,}")

    def ms(self, name: str) -> int:
        """One of the durations, in milliseconds."""
        return round(1000 * float(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Replayed:
    """The figures of a replay.

    Attributes:
        policy: its name.
        strategy: the text of the strategy.
        membership: `dynamic` or `static`.
        rebalances: how often the group rebalanced; a cooperative rebalance with a second step counts twice.
        scalings: how often the number of replicas changed.
        least_replicas: the fewest replicas.
        most_replicas: the most replicas.
        member_hours: the replicas, summed over time, in hours.
        moves: partitions that got a new owner, summed over the rebalances.
        unowned_s: partition-seconds without an owner while the group had a member: in rebalances, and until the session
            of a static member expired.
        empty_s: partition-seconds in which the group had no member.
        late: records that were not read within the deadline.
        records: records that there were to read.
        unread: of these, those that still wait at the end.
        most_lag: the largest lag of a moment.
        replicas: the number of replicas from a moment on, as milliseconds since 1970 and number.
        lag: the largest lag of each part of the time, in the same form.
        error: why the strategy could not plan; the other figures are 0 then.
    """

    policy: str
    strategy: str
    membership: str
    rebalances: int = 0
    scalings: int = 0
    least_replicas: int = 0
    most_replicas: int = 0
    member_hours: float = 0.0
    moves: int = 0
    unowned_s: float = 0.0
    empty_s: float = 0.0
    late: int = 0
    records: int = 0
    unread: int = 0
    most_lag: int = 0
    replicas: tuple[tuple[int, int], ...] = ()
    lag: tuple[tuple[int, int], ...] = ()
    error: str | None = None


def replay(
    load: Workload, policy: Policy, assignor: Assignor, *, static: bool = False, timing: Timing | None = None
) -> Replayed:
    """Replays a group. O(steps x partitions), and a plan for each rebalance.

    Args:
        load: the records that it has to read.
        policy: the policy that decides about its replicas.
        assignor: its strategy. Every member subscribes to every topic.
        static: whether its members are static.
        timing: the durations; the defaults if None.

    Returns:
        The figures; with `error` if the strategy cannot plan.

    Raises:
        OptionError: the history has more than `MOST_CELLS` steps times partitions.
    """
    run = _Simulation(load, policy, assignor, static, timing or Timing())
    try:
        return run.through()
    except GroupError as error:
        return Replayed(policy.name, strategy_text(assignor), _membership(static), error=str(error))


def _membership(static: bool) -> str:
    return "static" if static else "dynamic"


class _Simulation:
    def __init__(self, load: Workload, policy: Policy, assignor: Assignor, static: bool, timing: Timing) -> None:
        self._load = load
        self._policy = policy
        self._assignor = assignor
        self._static = static
        self._timing = timing
        self._partitions: tuple[Partition, ...] = load.partitions
        self._start, self._end = load.times[0], load.times[-1]
        self._step = policy.sync_ms if policy.kind != "keda" else gcd(policy.sync_ms, policy.polling_ms)
        steps = -(-(self._end - self._start) // self._step)
        if steps * len(self._partitions) > MOST_CELLS:
            raise OptionError(
                f"policy {policy.name!r}: {steps:,} steps of {self._step / 1000:g} s with {len(self._partitions):,} "
                f"partitions are more than {MOST_CELLS:,} together; give a shorter history, or a syncPeriod and a "
                "pollingInterval with a larger common divisor"
            )
        self._rate = round(load.rate * MICRO)
        count = len(self._partitions)
        self._arrived = load.arrived_by(self._start)
        self._lag = list(self._arrived)
        # The records that were read in the last step and are not committed yet: they are lag for the scaler.
        self._uncommitted = [0] * count
        self._until = [0] * count
        # The time from which every partition has an owner again.
        self._all_back = 0
        self._late = self._unowned_ms = self._empty_ms = self._most = 0
        deadline = -(-timing.ms("deadline") // self._step)
        self._due: deque[list[int]] = deque([[0] * count] * deadline)
        self._due.append(list(self._arrived))

    def _seen(self) -> list[int]:
        """The lag of each partition as a scaler sees it, in records."""
        return [-(-(lag + more) // MICRO) for lag, more in zip(self._lag, self._uncommitted, strict=True)]

    def _lags(self) -> dict[str, list[int]]:
        found = {topic: [0] * count for topic, count in self._load.topics.items()}
        for (topic, number), lag in zip(self._partitions, self._seen(), strict=True):
            found[topic][number] = lag
        return found

    def through(self) -> Replayed:
        policy, timing = self._policy, self._timing
        first = min(max(self._load.members, 0 if policy.to_zero else max(1, policy.least)), policy.most)
        autoscaler = Autoscaler(policy, self._start)
        members = Members(
            self._load.topics,
            self._assignor,
            first,
            static=self._static,
            rebalance_ms=timing.ms("rebalance"),
            startup_ms=timing.ms("startup"),
            session_ms=timing.ms("session"),
            lags=self._lags,
        )
        replicas, line = first, [(self._start, first)]
        places: list[list[int]] | None = None
        lag: list[tuple[int, int]] = []
        rebalances = moves = member_ms = 0
        for now in range(self._start, self._end, self._step):
            if policy.kind != "fixed":
                seen = self._seen()
                wanted = replicas
                if policy.kind == "keda" and (now - self._start) % policy.polling_ms == 0:
                    wanted = autoscaler.poll(now, wanted, seen)
                if (now - self._start) % policy.sync_ms == 0:
                    wanted = autoscaler.decide(now, wanted, seen)
                if wanted != replicas:
                    replicas = wanted
                    line.append((now, replicas))
                    members.scale(now, replicas)
            found = members.advance(now)
            if found is not None:
                rebalances += found.rebalances
                moves += found.moves
                for place, partition in enumerate(self._partitions):
                    self._until[place] = max(self._until[place], found.until.get(partition, 0))
                self._all_back = max(self._until)
            if members.changed or places is None:
                places = self._places_by_member(members)
            until = min(now + self._step, self._end)
            lag.append((now, -(-sum(self._lag) // MICRO)))
            self._work(places, now, until, empty=members.empty)
            member_ms += replicas * (until - now)
        lag.append((self._end, -(-sum(self._lag) // MICRO)))
        return Replayed(
            policy.name,
            strategy_text(self._assignor),
            _membership(self._static),
            rebalances,
            len(line) - 1,
            min(count for _, count in line),
            max(count for _, count in line),
            member_ms / 3_600_000,
            moves,
            self._unowned_ms / 1000,
            self._empty_ms / 1000,
            -(-self._late // MICRO),
            self._load.records,
            -(-sum(self._lag) // MICRO),
            max(count for _, count in lag),
            tuple(line),
            _thinned(lag),
        )

    def _places_by_member(self, members: Members) -> list[list[int]]:
        """The places of the partitions of each reading member, and in the last list those without a reading member."""
        places: dict[str, list[int]] = {member_id: [] for member_id in sorted(members.present)}
        nobody: list[int] = []
        for place, partition in enumerate(self._partitions):
            places.get(members.owners.get(partition, ""), nobody).append(place)
        return [*places.values(), nobody]

    def _work(self, by_member: Sequence[Sequence[int]], now: int, until: int, *, empty: bool) -> None:
        """One step: the records that arrive, and those that the members read."""
        length = until - now
        arrived = self._load.arrived_by(until)
        lag = self._lag = [
            waiting + count - before for waiting, count, before in zip(self._lag, arrived, self._arrived, strict=True)
        ]
        self._arrived = arrived
        *read, nobody = by_member
        commit = min(self._timing.ms("commit"), length)
        every = self._rate * length // 1000
        for places in read:
            own = [lag[place] for place in places]
            if self._all_back <= now:
                # The member has all of its partitions for the whole step.
                done = own if sum(own) <= every else _shared([min(count, every) for count in own], every)
            else:
                done = self._stopped(places, own, now, length)
            for place, count in zip(places, done, strict=True):
                lag[place] -= count
                self._uncommitted[place] = count * commit // length
        for place in nobody:
            self._uncommitted[place] = 0
        if empty:
            self._empty_ms += length * len(nobody)
        else:
            self._unowned_ms += length * len(nobody)
        self._count_late(arrived)

    def _stopped(self, places: Sequence[int], own: Sequence[int], now: int, length: int) -> Sequence[int]:
        """The records that a member reads of its partitions, some of which have no owner for a part of the step."""
        present = [max(0, length - max(0, self._until[place] - now)) for place in places]
        self._unowned_ms += length * len(places) - sum(present)
        wanted = [min(count, self._rate * time // 1000) for count, time in zip(own, present, strict=True)]
        return _shared(wanted, self._rate * max(present, default=0) // 1000)

    def _count_late(self, arrived: list[int]) -> None:
        """Counts the records whose deadline is in this step, and that are not read at its end."""
        before = self._due.popleft()
        self._due.append(arrived)
        if not any(self._lag):
            return
        for had, due, all_, lag in zip(before, self._due[0], arrived, self._lag, strict=True):
            self._late += max(0, due - max(all_ - lag, had))


def _shared(wanted: Sequence[int], budget: int) -> Sequence[int]:
    """The budget of a member, divided equally among its partitions; unneeded parts go to the other partitions."""
    if sum(wanted) <= budget:
        return wanted
    found = [0] * len(wanted)
    left = len(wanted)
    for want, place in sorted(zip(wanted, range(len(wanted)), strict=True)):
        found[place] = min(want, budget // left)
        budget -= found[place]
        left -= 1
    return found


def _thinned(lag: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """At most `_POINTS` points, each with the largest lag of its part of the time."""
    points = list(lag)
    size = -(-len(points) // _POINTS)
    parts = [points[at : at + size] for at in range(0, len(points), size)]
    return tuple((part[0][0], max(count for _, count in part)) for part in parts)
