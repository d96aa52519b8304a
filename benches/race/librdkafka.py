"""`python -m race.librdkafka`: a librdkafka consumer that leads a group on the embedded Kafka, timed by the broker.

The consumer runs in its own process and is alone in its group. The broker answers its JoinGroup with all members of the
point, the consumer as the first of them. The measured time runs from this answer to the consumer's SyncGroup, without
the time that the broker takes for Metadata in between. The broker answers SyncGroup with REBALANCE_IN_PROGRESS, so that
the consumer joins again.
"""

from __future__ import annotations

import contextlib
import queue
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from kafka_assignors.embedded import EmbeddedKafka
from race.measure import Timed, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_assignors.embedded.server import ClientConnection
    from race.measure import Loaded

__all__ = ["CONSUMER", "Leader"]

_METADATA, _JOIN_GROUP, _SYNC_GROUP = 3, 11, 14
_REBALANCE_IN_PROGRESS = 27
# The first version with compact strings, which librdkafka does not use yet.
_FLEXIBLE = {_JOIN_GROUP: 6, _SYNC_GROUP: 4}
_STRATEGY = "cooperative-sticky"

CONSUMER = f"""
import sys
import confluent_kafka
consumer = confluent_kafka.Consumer({{
    "bootstrap.servers": sys.argv[1], "group.id": "race", "log_level": 0,
    "partition.assignment.strategy": "{_STRATEGY}",
    "receive.message.max.bytes": 2000000000, "session.timeout.ms": 600000, "max.poll.interval.ms": 900000,
    "topic.metadata.refresh.interval.ms": -1, "enable.auto.commit": False, "client.rack": sys.argv[3],
}})
consumer.subscribe([sys.argv[2]])
while True:
    consumer.poll(1.0)
"""


class Leader:
    """The consumer and its broker, for one point; a context manager."""

    def __init__(self, point: Loaded) -> None:
        self._point = point
        self._spans: queue.SimpleQueue[Timed] = queue.SimpleQueue()
        self._joining: ClientConnection | None = None
        self._start = self._start_cpu = self._served = 0
        self._members = b"".join(
            _string(member) + _string(None) + struct.pack(">i", len(metadata)) + metadata
            for member, metadata in point.members
        )

    def __enter__(self) -> Leader:
        point = self._point
        self._kafka = EmbeddedKafka(racks=point.racks)
        for name, count in point.topics.items():
            self._kafka.create_topic(name, count, replication_factor=2 if point.racks else 1)
        server = self._kafka._server
        self._broker_handle, self._broker_send = server._handle, server._send
        server._handle, server._send = self._handle, self._send  # type: ignore[method-assign]
        _, first = point.members[0]
        topic = first[8 : 8 + int.from_bytes(first[6:8], "big")].decode()
        arguments = [self._kafka.bootstrap_servers, topic, point.racks[0] if point.racks else ""]
        self._consumer = subprocess.Popen([sys.executable, "-P", "-c", CONSUMER, *arguments])
        # The clock that counts the processor time of another process, as clock_getcpuclockid(3) computes it.
        self._cpu_clock = ~self._consumer.pid << 3 | 2
        return self

    def __exit__(self, *_: Any) -> None:
        self._consumer.kill()
        self._consumer.wait()
        self._kafka.close()

    def call(self) -> Timed:
        """Waits for one plan: nanoseconds of wall and of processor time, and the assignments."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self._spans.get(timeout=1.0)
            if self._consumer.poll() is not None:
                raise RuntimeError(f"the consumer ended with exit code {self._consumer.returncode}")

    # ---- in the broker's thread ----

    def _handle(self, connection: ClientConnection, frame: bytes, close_instead: bool) -> None:
        arrived = time.perf_counter_ns()
        key, version, correlation = struct.unpack_from(">hhi", frame)
        if version >= _FLEXIBLE.get(key, version + 1):
            raise ValueError(f"request {key} came in version {version}, which has compact strings")
        if key == _JOIN_GROUP:
            self._joining = connection
            connection.busy = False
            self._server._deliver([(connection.number, self._join_reply(version, correlation))])
        elif key == _SYNC_GROUP:
            cpu = time.clock_gettime_ns(self._cpu_clock)
            wall = arrived - self._start - self._served
            self._spans.put((wall, cpu - self._start_cpu, _assignments(frame, version)))
            connection.busy = False
            throttle = bytes(4) if version >= 1 else b""
            reply = struct.pack(">i", correlation) + throttle + struct.pack(">hi", _REBALANCE_IN_PROGRESS, 0)
            self._server._deliver([(connection.number, _framed(reply))])
        else:
            self._broker_handle(connection, frame, close_instead)
            if key == _METADATA:
                self._served += time.perf_counter_ns() - arrived

    def _send(self, connection: ClientConnection) -> None:
        self._broker_send(connection)
        if connection is self._joining and not connection.sending:
            self._joining = None
            self._start_cpu = time.clock_gettime_ns(self._cpu_clock)
            self._start, self._served = time.perf_counter_ns(), 0

    @property
    def _server(self) -> Any:
        return self._kafka._server

    def _join_reply(self, version: int, correlation: int) -> bytes:
        leader = self._point.members[0][0]
        members = self._members
        if version < 5:
            raise ValueError(f"JoinGroup of version {version}; this broker answers version 5")
        head = struct.pack(">iihi", correlation, 0, 0, 1) + _string(_STRATEGY) + _string(leader) + _string(leader)
        return _framed(head + struct.pack(">i", len(self._point.members)) + members)


def _framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    return struct.pack(">h", len(text.encode())) + text.encode()


def _assignments(frame: bytes, version: int) -> dict[str, bytes]:
    """The plan in a SyncGroup request."""
    at = 8

    def string() -> str | None:
        nonlocal at
        (size,) = struct.unpack_from(">h", frame, at)
        at += 2
        if size < 0:
            return None
        at += size
        return frame[at - size : at].decode()

    def number() -> int:
        nonlocal at
        at += 4
        return int.from_bytes(frame[at - 4 : at], "big", signed=True)

    for read in (string, string, number, string):
        read()
    if version >= 3:
        string()
    plan = {}
    for _ in range(number()):
        member = string()
        size = number()
        assert member is not None
        plan[member] = frame[at : at + size]
        at += size
    return plan


@contextlib.contextmanager
def _prepare(point: Loaded, call: str) -> Iterator[Callable[[], Timed]]:
    if call != _STRATEGY:
        raise KeyError(call)
    with Leader(point) as leader:
        yield leader.call


if __name__ == "__main__":
    answer(_prepare)
