"""A process with members of a group. One of them may be the leader, whose requests are timed."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import confluent_kafka

from consumers.wire import Watch, planning_times
from kafka_assignors.clients.confluent import Consumer

if TYPE_CHECKING:
    from multiprocessing.connection import Connection as Pipe
    from multiprocessing.queues import Queue

__all__ = ["CLOSES", "CONTENDERS", "COOPERATIVE", "EAGER", "LIBRDKAFKA", "Spec", "run"]

# Reported instead of a number of partitions: the member is about to call `close`.
CLOSES = -1
LIBRDKAFKA, EAGER, COOPERATIVE = "librdkafka's cooperative-sticky", "our sticky", "our cooperative-sticky"
# The class, and its strategy.
CONTENDERS: dict[str, tuple[type[confluent_kafka.Consumer], str]] = {
    EAGER: (Consumer, "sticky"),
    COOPERATIVE: (Consumer, "cooperative-sticky"),
    LIBRDKAFKA: (confluent_kafka.Consumer, "cooperative-sticky"),
}


@dataclass(frozen=True)
class Spec:
    """The settings of a group that all its processes share."""

    contender: str
    bootstrap: str
    group: str
    topic: str
    heartbeat_ms: int

    def settings(self) -> dict[str, Any]:
        """The settings of each consumer."""
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "partition.assignment.strategy": CONTENDERS[self.contender][1],
            "heartbeat.interval.ms": self.heartbeat_ms,
            "session.timeout.ms": 45_000,
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
        }


class _Member(threading.Thread):
    """A consumer that polls, and reports after each callback the number of its partitions."""

    def __init__(self, spec: Spec, name: str, told: Queue[tuple[str, float, int]], settings: dict[str, Any]) -> None:
        super().__init__(name=name, daemon=True)
        self._spec, self._told = spec, told
        self._settings = spec.settings() | settings
        self._owned: set[int] = set()
        self._stopped = threading.Event()

    def run(self) -> None:
        consumer_class, strategy = CONTENDERS[self._spec.contender]
        incremental = strategy.startswith("cooperative")

        def assigned(_: Any, partitions: list[confluent_kafka.TopicPartition]) -> None:
            numbers = {each.partition for each in partitions}
            self._owned = self._owned | numbers if incremental else numbers
            self._tell(len(self._owned))

        def revoked(_: Any, partitions: list[confluent_kafka.TopicPartition]) -> None:
            self._owned -= {each.partition for each in partitions}
            self._tell(len(self._owned))

        with consumer_class(self._settings) as consumer:
            consumer.subscribe([self._spec.topic], on_assign=assigned, on_revoke=revoked)
            while not self._stopped.is_set():
                consumer.poll(1.0)
            self._tell(CLOSES)

    def _tell(self, count: int) -> None:
        self._told.put((self.name, time.monotonic(), count))

    def stop(self) -> None:
        self._stopped.set()


def run(spec: Spec, process: int, leads: bool, commands: Pipe, told: Queue[tuple[str, float, int]]) -> None:
    """Executes `start N`, `stop N` (of the latest members) and `plans`, which it answers with the leader's times.

    It runs until it is terminated. If a member of this process leads, it is the first one that was started.
    """
    settings: dict[str, Any] = {"log_level": 0}
    watch = Watch()
    # An unnamed temporary file: most of these processes are terminated and could not delete one with a name.
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    if leads and spec.contender == LIBRDKAFKA:
        settings = {"debug": "protocol"}
        # librdkafka writes its log to standard error, with its own timestamps.
        os.dup2(log.fileno(), 2)
    elif leads:
        watch.install()
    members: list[_Member] = []
    started = 0
    while True:
        command, count = commands.recv()
        if command == "start":
            for _ in range(count):
                quietly = {"log_level": 0} if started else settings
                started += 1
                member = _Member(spec, f"{process}-{started}", told, quietly)
                members.append(member)
                member.start()
        elif command == "stop":
            for member in members[-count:]:
                member.stop()
            del members[-count:]
        elif spec.contender == LIBRDKAFKA:
            log.seek(0)
            commands.send(planning_times(log))
        else:
            commands.send(watch.spans)
