"""A group of many members. One more joins and leaves again, timed until all members have their assignments."""

from __future__ import annotations

import multiprocessing
import queue
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from consumers.member import CLOSES, HOLDS, READS, MemberEvent, Spec, run
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection as Pipe
    from types import TracebackType

    from support.broker import Kafka

__all__ = ["Group", "Times", "compare", "waited"]

PATIENCE = 120.0
_FEW_PROCESSES = 4

Phases = list[tuple[float, float]]
"""Fractions of the heartbeat interval: the moment at which a member joins, and the one at which it leaves."""

_WARM_UP: Phases = [(0.0, 0.0)] * 2


@dataclass
class Times:
    """Seconds: of a rebalance for a joining member, of one for a leaving member, and of the leader's work."""

    joins: list[float] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)

    def median(self, what: str) -> float:
        """The median of `joins`, `leaves` or `plans`."""
        return float(median(getattr(self, what)))


def waited(change: str, heartbeat_ms: int, processes: int) -> float:
    """The mean seconds of a rebalance in which a member waits for the heartbeat from which it learns of the rebalance.

    The heartbeats of a generation begin together, and a member leaves at any moment between two of them: the mean wait
    is half an interval. Members of one process signal each other, so with few processes hardly any member waits. For
    joins nothing is subtracted.

    Args:
        change: `joins` or `leaves`.
        heartbeat_ms: the interval.
        processes: of the group.
    """
    return heartbeat_ms / 2_000 if change == "leaves" and processes > _FEW_PROCESSES else 0.0


class Group:
    """The processes of a group, and the number of partitions that each member reports.

    The members are spread evenly over the processes. The member that joins and leaves has its own process.
    """

    def __init__(self, spec: Spec, members: int, partitions: int, processes: int) -> None:
        self._spec, self._members, self._partitions = spec, members, partitions
        self._count = processes
        self._context = multiprocessing.get_context("spawn")
        self._events: Any = self._context.Queue()
        self._counts: dict[str, int] = {}
        self._reads: list[float] = []
        # When the latest join or departure began.
        self._changed_at: float = 0.0
        self._pipes: list[Pipe] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []

    def __enter__(self) -> Self:
        for number in range(self._count + 1):
            ours, theirs = self._context.Pipe()
            process = self._context.Process(
                target=run, args=(self._spec, number, number == 0, theirs, self._events), daemon=True
            )
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        # The first member of a group leads it.
        self._command(0, "start", 1)
        self._settle(1)
        if self._members == 1:
            return self
        for number in range(self._count):
            share = self._members // self._count + (number < self._members % self._count)
            self._command(number, "start", share - (number == 0))
        self._settle(self._members)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(PATIENCE)

    def join(self) -> float:
        """Starts one more member; returns the seconds from the creation of its consumer until all have assignments."""
        self._changed_at = time.monotonic()
        self._command(self._count, "start", 1)
        return self._settle(self._members + 1) - self._changed_at

    def leave(self) -> float:
        """Stops that member; returns the seconds from the call of its `close` until the others have assignments."""
        self._command(self._count, "stop", 1)
        return self._settle(self._members) - self._changed_at

    def first_records(self, gained: int) -> list[float]:
        """Waits until the first record of `gained` partitions was read, which the latest change has moved.

        Returns:
            For each of these partitions the seconds since the change began.
        """
        late = time.monotonic() + PATIENCE
        while len(self._reads) < gained:
            try:
                self._take(late)
            except queue.Empty:
                raise TimeoutError(f"records of {len(self._reads)} of {gained} partitions, {PATIENCE} s on") from None
        found = [at - self._changed_at for at in self._reads]
        self._reads.clear()
        return found

    def plans(self) -> Sequence[tuple[float, float]]:
        """The times of the leader's JoinGroup responses and SyncGroup requests, in seconds since 1970."""
        self._command(0, "plans", 0)
        if not self._pipes[0].poll(PATIENCE):
            raise TimeoutError(f"the leader did not answer within {PATIENCE} s")
        spans: Sequence[tuple[float, float]] = self._pipes[0].recv()
        return spans

    def _command(self, process: int, command: str, count: int) -> None:
        self._pipes[process].send((command, count))

    def _settle(self, members: int) -> float:
        """Waits until this number of members have all partitions, evenly; returns the time of the last assignment."""
        late = time.monotonic() + PATIENCE
        latest = 0.0
        while True:
            try:
                event = self._take(late)
            except queue.Empty:
                held = sorted(self._counts.values())
                raise TimeoutError(f"not {members} members with a share each after {PATIENCE} s: {held}") from None
            if event.what != HOLDS:
                continue
            latest = max(latest, event.at)
            held = [each for each in self._counts.values() if each]
            if len(held) == members and sum(held) == self._partitions and max(held) - min(held) <= 1:
                return latest

    def _take(self, late: float) -> MemberEvent:
        """The next event."""
        event: MemberEvent = self._events.get(timeout=max(0.01, late - time.monotonic()))
        if event.what == HOLDS:
            self._counts[event.member] = event.number
        elif event.what == READS:
            self._reads.append(event.at)
        else:
            assert event.what == CLOSES
            # aiokafka calls no listener when a consumer closes.
            self._counts[event.member] = 0
            self._changed_at = event.at
        return event


def measure(spec: Spec, members: int, partitions: int, processes: int, phases: Phases) -> Times:
    """Measures one group, in which a member joins and leaves once for each pair of phases."""
    times = Times()
    interval = spec.heartbeat_ms / 1000
    windows = []
    with Group(spec, members, partitions, processes) as group:
        for pair in phases:
            for change, phase, found in zip((group.join, group.leave), pair, (times.joins, times.leaves), strict=True):
                # Within one interval the heartbeats of the generation have begun.
                time.sleep(interval * (1 + phase))
                start = time.time()
                found.append(change())
                windows.append((start, time.time()))
        times.plans = [
            sent - replied for replied, sent in group.plans() if any(start <= replied <= end for start, end in windows)
        ]
    return times


def spread(rounds: int, events: int, seed: int) -> list[Phases]:
    """For each round and event, the phases of the heartbeat interval at which a member joins and leaves.

    They are spread evenly over the interval, in random order. A rebalance waits for the next heartbeat, so with a few
    random phases the result would depend on chance.

    >>> spread(1, 2, 1)
    [[(0.75, 0.75), (0.25, 0.25)]]
    """
    order = random.Random(seed)
    moments = [[(number + 0.5) / (rounds * events) for number in range(rounds * events)] for _ in range(2)]
    for each in moments:
        order.shuffle(each)
    pairs = list(zip(*moments, strict=True))
    return [pairs[number * events : (number + 1) * events] for number in range(rounds)]


def compare(
    kafka: Kafka,
    contenders: Sequence[str],
    heartbeat_ms: int,
    *,
    members: int,
    partitions: int,
    processes: int,
    rounds: int,
    events: int,
) -> dict[str, Times]:
    """The contenders in turns, in another order in each round, all with the same phases.

    A first group of each contender is not measured.
    """
    topic = kafka.create_topic(unique("bench"), partitions)
    times: defaultdict[str, Times] = defaultdict(Times)

    def group(name: str, phases: Phases) -> Times:
        spec = Spec(name, kafka.bootstrap_servers, unique("bench"), topic, heartbeat_ms)
        return measure(spec, members, partitions, processes, phases)

    # A broker that has just created thousands of partitions, and has not compiled its code for groups yet, takes 100 ms
    # for an answer that later takes 1 ms. This would count against the first contender.
    for name in contenders:
        group(name, _WARM_UP)
    for number, phases in enumerate(spread(rounds, events, seed=heartbeat_ms)):
        for name in contenders if number % 2 == 0 else reversed(contenders):
            found = group(name, phases)
            times[name].joins += found.joins
            times[name].leaves += found.leaves
            times[name].plans += found.plans
    kafka.delete_topic(topic)
    return dict(times)
