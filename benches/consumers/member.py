"""A process with members of a group. One of them may be the leader, whose requests are timed."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from consumers.wire import Watch, planning_times

if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.connection import Connection as Pipe
    from multiprocessing.queues import Queue

__all__ = [
    "CLOSES",
    "CONTENDERS",
    "HOLDS",
    "LIBRDKAFKA",
    "POLL_SECONDS",
    "READS",
    "Contender",
    "Member",
    "MemberEvent",
    "Spec",
    "run",
]

HOLDS, READS, CLOSES = "holds", "reads", "closes"

POLL_SECONDS = 0.1
"""How long a poll waits. A member closes between two polls: with waits as long as several heartbeat intervals, the
moment of a departure would follow from the last assignment, and no longer from its phase.
"""

LIBRDKAFKA = "librdkafka's cooperative-sticky"


class Contender(NamedTuple):
    """The class of a group's consumers, and its strategy.

    Attributes:
        client: `confluent`, `kafka-python` or `aiokafka`.
        is_ours: whether the class is ours, and not the client's own.
        strategy: its name.
    """

    client: str
    is_ours: bool
    strategy: str


CONTENDERS: dict[str, Contender] = {
    "our sticky": Contender("confluent", True, "sticky"),
    "our cooperative-sticky": Contender("confluent", True, "cooperative-sticky"),
    LIBRDKAFKA: Contender("confluent", False, "cooperative-sticky"),
    "kafka-python: our sticky": Contender("kafka-python", True, "sticky"),
    "kafka-python: our cooperative-sticky": Contender("kafka-python", True, "cooperative-sticky"),
    "kafka-python: our range": Contender("kafka-python", True, "range"),
    "kafka-python: its range": Contender("kafka-python", False, "range"),
    "kafka-python: its cooperative-sticky": Contender("kafka-python", False, "cooperative-sticky"),
    "aiokafka: our sticky": Contender("aiokafka", True, "sticky"),
    "aiokafka: our cooperative-sticky": Contender("aiokafka", True, "cooperative-sticky"),
    "aiokafka: our roundrobin": Contender("aiokafka", True, "roundrobin"),
    "aiokafka: its roundrobin": Contender("aiokafka", False, "roundrobin"),
}


class MemberEvent(NamedTuple):
    """An event of a member.

    Attributes:
        member: its name.
        at: the time, in seconds (`time.monotonic`, which all processes share).
        what: `HOLDS` a number of partitions, `READS` the first record of a partition since it was gained, or `CLOSES`:
            the member is about to call `close`.
        number: of partitions, or of the partition; 0 if it closes.
    """

    member: str
    at: float
    what: str
    number: int


@dataclass(frozen=True)
class Spec:
    """The settings of a group that all its processes share.

    Attributes:
        contender: a key of `CONTENDERS`.
        bootstrap: the broker's address.
        group: its id.
        topic: the topic that its members read.
        heartbeat_ms: between two heartbeats.
        commits: whether positions are committed before partitions are given up.
    """

    contender: str
    bootstrap: str
    group: str
    topic: str
    heartbeat_ms: int
    commits: bool = False

    def settings(self) -> dict[str, Any]:
        """The settings of each consumer, in the form of confluent-kafka."""
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "partition.assignment.strategy": CONTENDERS[self.contender].strategy,
            "heartbeat.interval.ms": self.heartbeat_ms,
            "session.timeout.ms": 45_000,
            "auto.offset.reset": "latest",
            "enable.auto.commit": self.commits,
        }

    def python_settings(self) -> dict[str, Any]:
        """The same as the arguments of the clients in Python."""
        return {name.replace(".", "_"): value for name, value in self.settings().items()}


class Member(threading.Thread):
    """A consumer that polls, and reports after each callback the number of its partitions."""

    client: ClassVar[str]

    def __init__(
        self, spec: Spec, name: str, events: Queue[MemberEvent], settings: dict[str, Any], *, is_first: bool = False
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.spec, self.settings = spec, settings
        # Whether this is the first member of its group.
        self.is_first = is_first
        self.contender = CONTENDERS[spec.contender]
        self._events = events
        self._is_eager = not self.contender.strategy.startswith("cooperative")
        self._owned: set[int] = set()
        # The partitions of the last assignment. An eager revocation removes all of them, and most are assigned again.
        self._had: set[int] = set()
        # Partitions that were gained, and of which no record has been read.
        self._unread: set[int] = set()
        self._stopped = threading.Event()

    def assigned(self, partitions: Iterable[int]) -> None:
        """Called by the listener: an eager assignment names all partitions, a cooperative one the gained partitions."""
        named = set(partitions)
        self._owned = named if self._is_eager else self._owned | named
        self._unread = (self._unread | (named - self._had)) & self._owned
        self._had = set(self._owned)
        self._report(HOLDS, len(self._owned))

    def revoked(self, partitions: Iterable[int]) -> None:
        """Called by the listener."""
        self._owned -= set(partitions)
        if not self._is_eager:
            self._had = set(self._owned)
        self._report(HOLDS, len(self._owned))

    def reads(self, partition: int) -> None:
        """Called when the client has returned a record of the partition."""
        if partition in self._unread:
            self._unread.discard(partition)
            self._report(READS, partition)

    def closes(self) -> None:
        """Called before the member calls `close`."""
        self._report(CLOSES, 0)

    def _report(self, what: str, number: int) -> None:
        self._events.put(MemberEvent(self.name, time.monotonic(), what, number))

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()


def member_of(client: str) -> type[Member]:
    """The class of the members. A process imports one client only."""
    if client == "confluent":
        from consumers.on_confluent import ConfluentMember

        return ConfluentMember
    if client == "kafka-python":
        from consumers.on_kafka_python import KafkaPythonMember

        return KafkaPythonMember
    from consumers.on_aiokafka import AiokafkaMember

    return AiokafkaMember


def run(spec: Spec, process: int, leads: bool, commands: Pipe, events: Queue[MemberEvent]) -> None:
    """Executes `start N`, `stop N` (of the latest members) and `plans`, which it answers with the leader's times.

    It runs until it is terminated. If a member of this process leads, it is the first one that was started.
    """
    is_librdkafkas = spec.contender == LIBRDKAFKA
    make = member_of(CONTENDERS[spec.contender].client)
    settings: dict[str, Any] = {}
    watch = Watch()
    # An unnamed temporary file: most of these processes are terminated and could not delete one with a name.
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    if leads and is_librdkafkas:
        settings = {"debug": "protocol", "log_level": 7}
        # librdkafka writes its log to standard error, with its own timestamps.
        os.dup2(log.fileno(), 2)
    elif leads:
        watch.install()
    members: list[Member] = []
    started = 0
    while True:
        command, count = commands.recv()
        if command == "start":
            for _ in range(count):
                is_first = leads and not started
                name = f"{process}-{started + 1}"
                member = make(spec, name, events, settings if is_first else {}, is_first=is_first)
                started += 1
                members.append(member)
                member.start()
        elif command == "stop":
            for member in members[-count:]:
                member.stop()
            del members[-count:]
        elif is_librdkafkas:
            log.seek(0)
            commands.send(planning_times(log))
        else:
            commands.send(watch.spans)
