"""Groups whose members report each partition that they get and give up, and how long partitions were without an owner.

The members only poll. They run in processes of their own, or as threads of this one.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka
from kafka import ConsumerRebalanceListener

from kafka_assignors.clients.kafka_python import KafkaConsumer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence
    from multiprocessing.connection import Connection as Pipe
    from types import TracebackType

__all__ = ["CONSUMER", "COOPERATIVE", "EAGER", "OURS", "Group", "Handover", "Spec"]

PATIENCE = 120.0
_POLL = 0.2
CONSUMER, COOPERATIVE, EAGER = "librdkafka, consumer protocol", "librdkafka, cooperative", "librdkafka, eager"
OURS = "ours, consumer protocol"
LIBRDKAFKA: dict[str, dict[str, Any]] = {
    CONSUMER: {"group.protocol": "consumer"},
    COOPERATIVE: {"partition.assignment.strategy": "cooperative-sticky"},
    EAGER: {"partition.assignment.strategy": "range"},
}

Report = tuple[str, float, tuple[int, ...], tuple[int, ...]]
"""A member, the time, the partitions that it has gained, and those that it has given up."""


@dataclass(frozen=True)
class Spec:
    """The settings of all members of a group. `heartbeat_ms` is of the classic protocol; 0 leaves the default."""

    contender: str
    bootstrap: str
    group: str
    topic: str
    partitions: int
    heartbeat_ms: int = 0


@dataclass
class Handover:
    """The measured times of one event, in seconds.

    Attributes:
        seconds: from its beginning until every member had its share.
        gaps: for each partition that was without an owner, how long it was without one.
        moved: the same for the partitions that moved to another member.
    """

    seconds: float = 0.0
    gaps: list[float] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)


class _Member(threading.Thread):
    """A consumer that polls until it is stopped."""

    def __init__(self, spec: Spec, name: str, report: Callable[[Report], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._spec, self._report = spec, report
        self._owned: set[int] = set()
        self._ends = threading.Event()

    def run(self) -> None:
        if self._spec.contender == OURS:
            self._run_ours()
        else:
            self._run_librdkafka()

    def _run_librdkafka(self) -> None:
        spec = self._spec
        settings: dict[str, Any] = {
            "bootstrap.servers": spec.bootstrap,
            "group.id": spec.group,
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
            # These members only wait for partitions, and so they read nothing.
            "fetch.wait.max.ms": 5_000,
            "log_level": 0,
            **LIBRDKAFKA[spec.contender],
        }
        if spec.contender != CONSUMER and spec.heartbeat_ms:
            settings["heartbeat.interval.ms"] = spec.heartbeat_ms
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe([spec.topic], on_assign=self._assigned, on_revoke=self._revoked)
        while not self._ends.is_set():
            consumer.poll(_POLL)
        self._leaves()
        consumer.close()

    def _run_ours(self) -> None:
        spec, member = self._spec, self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                member._assigned(None, assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                member._revoked(None, revoked)

        consumer = KafkaConsumer(
            bootstrap_servers=spec.bootstrap,
            group_id=spec.group,
            group_protocol="consumer",
            enable_auto_commit=False,
            fetch_max_wait_ms=5_000,
        )
        consumer.subscribe([spec.topic], listener=Listener())
        while not self._ends.is_set():
            consumer.poll(1_000 * _POLL)
        self._leaves()
        consumer.close()

    def _assigned(self, _: Any, partitions: Iterable[Any]) -> None:
        new = {each.partition for each in partitions} - self._owned
        self._owned |= new
        self._tell(new, set())

    def _revoked(self, _: Any, partitions: Iterable[Any]) -> None:
        gone = {each.partition for each in partitions} & self._owned
        self._owned -= gone
        self._tell(set(), gone)

    def _leaves(self) -> None:
        """Reports all partitions as given up, since the member does not poll any more."""
        self._tell(set(), set(self._owned))
        self._owned = set()

    def _tell(self, gained: set[int], lost: set[int]) -> None:
        self._report((self.name, time.monotonic(), tuple(gained), tuple(lost)))

    def stop(self) -> None:
        self._ends.set()


class _Members:
    """The members of one process."""

    def __init__(self, spec: Spec, report: Callable[[Report], None]) -> None:
        self._spec, self._report = spec, report
        self._members: dict[str, _Member] = {}

    def send(self, command: tuple[str, str]) -> None:
        """Executes `start NAME` or `stop NAME`."""
        what, name = command
        if what == "start":
            self._members[name] = _Member(self._spec, name, self._report)
            self._members[name].start()
        else:
            self._members.pop(name).stop()


def _run(spec: Spec, commands: Pipe, events: Any) -> None:
    """Executes commands until it is terminated."""
    members = _Members(spec, events.put)
    events.put(("", 0.0, (), ()))
    while True:
        members.send(commands.recv())


class Group:
    """A group, its processes, and the reports of its members.

    Args:
        spec: the settings of its members.
        processes: how many processes it has, in which members start in turn; 0 for threads of this process.
    """

    def __init__(self, spec: Spec, processes: int = 0) -> None:
        self._spec = spec
        self._events: Any
        self._places: list[Pipe | _Members] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []
        if processes == 0:
            self._events = queue.Queue()
            self._places.append(_Members(spec, self._events.put))
        else:
            context = multiprocessing.get_context("spawn")
            self._events = context.Queue()
        for _ in range(processes):
            ours, theirs = context.Pipe()
            self._places.append(ours)
            self._processes.append(context.Process(target=_run, args=(spec, theirs, self._events), daemon=True))
        self._started = 0
        self._place_of: dict[str, Pipe | _Members] = {}
        self._shares: defaultdict[str, set[int]] = defaultdict(set)

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        # Each process reports when its interpreter has started, since that time is no part of a join.
        for _ in self._processes:
            self._events.get(timeout=PATIENCE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(PATIENCE)
        if not self._processes:
            self.tell(self.members, 0)

    def scatter(self, seconds: float, chance: random.Random) -> None:
        """Spreads the heartbeats of librdkafka's members over their interval of `seconds`, as they are after hours.

        All processes are stopped until their heartbeats are overdue. Then each process continues at a random moment,
        and its member sends the heartbeat at once.
        """
        pids = [process.pid for process in self._processes if process.pid is not None]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.6 * seconds)
        moments = sorted((seconds * chance.random(), pid) for pid in pids)
        start = time.monotonic()
        for moment, pid in moments:
            time.sleep(max(0.0, start + moment - time.monotonic()))
            os.kill(pid, signal.SIGCONT)
        time.sleep(seconds)

    def tell(self, stops: Sequence[str], starts: int) -> float:
        """Stops these members and starts this number of new ones; returns the time when it began."""
        start = time.monotonic()
        for name in stops:
            self._place_of.pop(name).send(("stop", name))
        for _ in range(starts):
            self._start()
        return start

    def settle(self, start: float) -> Handover:
        """Waits until each member has its share; returns how long partitions were without an owner since `start`."""
        late = time.monotonic() + PATIENCE
        found = Handover()
        free: dict[int, tuple[float, str]] = {}
        latest = start
        while not self._settled():
            try:
                name, at, gained, lost = self._events.get(timeout=max(0.01, late - time.monotonic()))
            except queue.Empty:
                sizes = sorted(len(share) for share in self._shares.values())
                raise TimeoutError(f"{self._spec.contender}: no share for each after {PATIENCE} s: {sizes}") from None
            latest = max(latest, at)
            if name not in self._place_of:
                # A stopped member leaves only when its poll has returned: the event begins then.
                start = max(start, at)
            for number in lost:
                self._shares[name].discard(number)
                free[number] = (at, name)
            for number in gained:
                self._shares[name].add(number)
                if number in free:
                    since, before = free.pop(number)
                    # Reports of two processes may arrive in the other order.
                    gap = max(0.0, at - since)
                    found.gaps.append(gap)
                    if before != name:
                        found.moved.append(gap)
        found.seconds = latest - start
        return found

    @property
    def members(self) -> list[str]:
        """The members that were started and not stopped, in order."""
        return list(self._place_of)

    def _start(self) -> None:
        place = self._places[self._started % len(self._places)]
        self._started += 1
        name = f"member-{self._started}"
        self._place_of[name] = place
        place.send(("start", name))

    def _settled(self) -> bool:
        """Whether every partition has one owner, and every member about as many as the others."""
        shares = [self._shares[name] for name in self._place_of]
        sizes = [len(share) for share in shares]
        gone = any(share for name, share in self._shares.items() if name not in self._place_of)
        whole = sum(sizes) == self._spec.partitions == len(set().union(*shares))
        return not gone and whole and max(sizes) - min(sizes) <= 1
