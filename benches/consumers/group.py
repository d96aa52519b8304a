"""A group of many members that one more joins and leaves again, timed until everyone has its share."""

from __future__ import annotations

import multiprocessing
import queue
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Self

from consumers.member import CLOSES, Spec, run
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection as Pipe
    from types import TracebackType

    from support.broker import Kafka

__all__ = ["Group", "Times", "compare"]

PATIENCE = 120.0

Phases = list[tuple[float, float]]
"""Parts of a heartbeat's interval: when one joins, when one leaves."""

_WARM_UP: Phases = [(0.0, 0.0)] * 2


@dataclass
class Times:
    """Seconds: from one more member to its share, from its departure to the others', and what the leader took."""

    joins: list[float] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)

    def median(self, what: str) -> float:
        """Of `joins`, `leaves` or `plans`."""
        return float(median(getattr(self, what)))


class Group:
    """The processes of a group, and how many partitions each member has by its own account.

    The members are spread over the processes evenly; the one that comes and goes has one more to itself.
    """

    def __init__(self, spec: Spec, members: int, partitions: int, processes: int) -> None:
        self._spec, self._members, self._partitions = spec, members, partitions
        self._count = processes
        self._context = multiprocessing.get_context("spawn")
        self._told = self._context.Queue()
        self._counts: dict[str, int] = {}
        self._left_at: float = 0.0
        self._pipes: list[Pipe] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []

    def __enter__(self) -> Self:
        for number in range(self._count + 1):
            ours, theirs = self._context.Pipe()
            process = self._context.Process(
                target=run, args=(self._spec, number, number == 0, theirs, self._told), daemon=True
            )
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        # The first one in a group leads it.
        self._tell(0, "start", 1)
        self._settle(1)
        for number in range(self._count):
            share = self._members // self._count + (number < self._members % self._count)
            self._tell(number, "start", share - (number == 0))
        self._settle(self._members)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(PATIENCE)

    def join(self) -> float:
        """One more member; seconds from the making of its consumer until all have their shares."""
        start = time.monotonic()
        self._tell(self._count, "start", 1)
        return self._settle(self._members + 1) - start

    def leave(self) -> float:
        """It goes; seconds from the call of its `close` until the others have their shares."""
        self._tell(self._count, "stop", 1)
        return self._settle(self._members) - self._left_at

    def plans(self) -> Sequence[tuple[float, float]]:
        """When the leader got which JoinGroup reply and sent SyncGroup, in seconds since 1970."""
        self._tell(0, "plans", 0)
        if not self._pipes[0].poll(PATIENCE):
            raise TimeoutError(f"the leader did not answer within {PATIENCE} s")
        spans: Sequence[tuple[float, float]] = self._pipes[0].recv()
        return spans

    def _tell(self, process: int, command: str, count: int) -> None:
        self._pipes[process].send((command, count))

    def _settle(self, members: int) -> float:
        """Waits until so many members have all partitions among them, evenly; when that was."""
        late = time.monotonic() + PATIENCE
        latest = 0.0
        while True:
            try:
                told: tuple[str, float, int] = self._told.get(timeout=max(0.01, late - time.monotonic()))
            except queue.Empty:
                held = sorted(self._counts.values())
                raise TimeoutError(f"not {members} members with a share each after {PATIENCE} s: {held}") from None
            name, at, count = told
            if count == CLOSES:
                self._left_at = at
                continue
            self._counts[name] = count
            latest = max(latest, at)
            held = [each for each in self._counts.values() if each]
            if len(held) == members and sum(held) == self._partitions and max(held) - min(held) <= 1:
                return latest


def measure(spec: Spec, members: int, partitions: int, processes: int, phases: Phases) -> Times:
    """One group, in which one joins and leaves once for each pair of phases."""
    times = Times()
    interval = spec.heartbeat_ms / 1000
    windows = []
    with Group(spec, members, partitions, processes) as group:
        for pair in phases:
            for change, phase, found in zip((group.join, group.leave), pair, (times.joins, times.leaves), strict=True):
                # Once all have settled into the generation.
                time.sleep(interval * (1 + phase))
                start = time.time()
                found.append(change())
                windows.append((start, time.time()))
        times.plans = [
            sent - replied for replied, sent in group.plans() if any(start <= replied <= end for start, end in windows)
        ]
    return times


def spread(rounds: int, events: int, seed: int) -> list[Phases]:
    """For each round and event, when within a beat one joins and when one leaves: evenly over the beat, in any order.

    What a rebalance waits for is the next heartbeat, so a handful of random moments would measure luck.

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
    """The contenders in turn, in another order in each round, all of them disturbed at the same phases of the beat.

    A group of each goes before, unmeasured.
    """
    topic = kafka.create_topic(unique("bench"), partitions)
    times: defaultdict[str, Times] = defaultdict(Times)

    def group(name: str, phases: Phases) -> Times:
        spec = Spec(name, kafka.bootstrap_servers, unique("bench"), topic, heartbeat_ms)
        return measure(spec, members, partitions, processes, phases)

    # A broker that has just made thousands of partitions, and has not compiled what it does for a group, takes 100 ms
    # for an answer that is a matter of 1 ms later. Whoever came first would be measured by that.
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
