"""An embedded Kafka whose group coordinator does what a test commands, step by step.

The embedded Kafka serves all requests except those of the group. JoinGroup and SyncGroup wait until the test answers
them; the test sets the error in the answers to heartbeats. A test can therefore read the requests of a client's own
coordinator, in any release of the client. The test decides which member leads, which members the leader receives, and
when.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.userdata import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
# The first version of each request with compact lengths and tagged fields.
_FLEXIBLE = {JOIN_GROUP: 6, HEARTBEAT: 4, LEAVE_GROUP: 4, SYNC_GROUP: 4}
NOT_COORDINATOR, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 16, 25, 27
LAST_GENERATION = 1_000
TIMEOUT = 120.0

Joined = list[tuple[str, str | None, bytes]]
"""The members in the leader's answer to JoinGroup: id, instance id and metadata."""


@dataclass
class Request:
    """A request of the group that waits for its answer.

    Attributes:
        api: the API key.
        version: the version of the request.
        connection: the number of the connection on which it came.
        correlation: the correlation id.
        client: the client's id, which is the name of the member.
        member_id: as the client gave it; empty in the first JoinGroup of a membership.
        instance_id: of a static member.
        generation: of a SyncGroup or a heartbeat.
        protocols: of a JoinGroup, the metadata by strategy.
        assignments: of the leader's SyncGroup, by member.
    """

    api: int
    version: int
    connection: int
    correlation: int
    client: str
    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1
    protocols: dict[str, bytes] = field(default_factory=dict)
    assignments: dict[str, bytes] = field(default_factory=dict)


class CommandedBroker:
    """The broker of the embedded server. It answers the group's requests by commands, and passes all others on."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._lock = threading.Lock()
        self._waiting: dict[str, Request] = {}
        self._replies: list[tuple[int, bytes]] = []
        self._errors: defaultdict[str, int] = defaultdict(int)
        self._dismissed: set[str] = set()
        # The strategy that each client has offered last.
        self._strategies: dict[str, str] = {}
        self.wake: Callable[[], object] = bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    # Called by the server's thread.

    def handle(self, now_ms: int, connection: int, frame: bytes) -> tuple[bool, list[tuple[int, bytes]]]:
        api, version = struct.unpack_from(">hh", frame)
        if api not in _FLEXIBLE:
            answer: tuple[bool, list[tuple[int, bytes]]] = self._broker.handle(now_ms, connection, frame)
            return answer
        request = _read(api, version, connection, frame)
        with self._lock:
            if api == LEAVE_GROUP:
                return False, [(connection, _leave_answer(request))]
            if api == HEARTBEAT:
                return False, [(connection, _heartbeat_answer(request, self._errors[request.client]))]
            if request.protocols:
                self._strategies[request.client] = next(iter(request.protocols))
            if request.client in self._dismissed:
                return False, [(connection, self._dismissal(request))]
            self._waiting[request.client] = request
        return True, []

    def tick(self, now_ms: int) -> list[tuple[int, bytes]]:
        with self._lock:
            replies, self._replies = self._replies, []
        return replies + list(self._broker.tick(now_ms))

    def next_deadline(self) -> int | None:
        if self._replies:
            return 0
        deadline: int | None = self._broker.next_deadline()
        return deadline

    # Called by a test.

    def waiting(self, client: str, api: int) -> Request | None:
        """The client's request of this kind, if one waits for its answer."""
        with self._lock:
            request = self._waiting.get(client)
        return request if request is not None and request.api == api else None

    def heartbeats(self, client: str, error: int) -> None:
        """From now on the client's heartbeats are answered with this error; 0 is none."""
        with self._lock:
            self._errors[client] = error

    def dismiss(self, client: str) -> None:
        """Answers the waiting request of a client that is closing, and every further request as soon as it arrives."""
        with self._lock:
            self._dismissed.add(client)
            request = self._waiting.pop(client, None)
            if request is not None:
                self._replies.append((request.connection, self._dismissal(request)))
        self.wake()

    def _dismissal(self, request: Request) -> bytes:
        # In kafka-python 2.0 `poll` returns only to a member. Therefore the client becomes one, without partitions.
        strategy = self._strategies.get(request.client, "")
        if request.api == JOIN_GROUP:
            return _join_answer(request, 0, LAST_GENERATION, strategy, "me", "another", ())
        return _sync_answer(request, 0, strategy, Assignment().encode())

    def answer_join(
        self,
        request: Request,
        *,
        error: int = 0,
        generation: int = -1,
        member_id: str = "",
        leader: str = "",
        members: Joined = (),  # type: ignore[assignment]
    ) -> None:
        """Answers a JoinGroup. The client that gets `members` is the leader."""
        protocol = next(iter(request.protocols), "")
        self._answer(request, _join_answer(request, error, generation, protocol, member_id, leader, members))

    def answer_sync(self, request: Request, assignment: bytes = b"", *, error: int = 0, protocol: str = "") -> None:
        """Answers a SyncGroup."""
        self._answer(request, _sync_answer(request, error, protocol, assignment))

    def _answer(self, request: Request, frame: bytes) -> None:
        with self._lock:
            assert self._waiting.pop(request.client) is request
            self._replies.append((request.connection, frame))
        self.wake()


class CommandedKafka(EmbeddedKafka):
    """An embedded Kafka with a `CommandedBroker`."""

    def __init__(self, topics: Mapping[str, int] | None = None, **settings: Any) -> None:
        super().__init__(topics, **settings)
        self.group = CommandedBroker(self._broker)
        self.group.wake = lambda: self._server._wake_sender.send(b"\0")
        self._server._broker = self.group  # type: ignore[assignment]


def until(true: Callable[[], Any], what: str, failed: Callable[[], BaseException | None] = lambda: None) -> Any:
    """Waits until `true()` is true, and returns its result. Raises the error that `failed()` returns."""
    deadline = time.monotonic() + TIMEOUT
    while not (found := true()):
        error = failed()
        if error is not None:
            raise error
        assert time.monotonic() < deadline, f"not within {TIMEOUT} s: {what}"
        time.sleep(0.002)
    return found


# ---- bytes ----------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, data: bytes, at: int, flexible: bool) -> None:
        self._data, self._at, self._flexible = data, at, flexible

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(">" + layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _length(self, layout: str) -> int:
        return self.varint() - 1 if self._flexible else self.number(layout)

    def blob(self, layout: str = "i") -> bytes | None:
        length = self._length(layout)
        if length < 0:
            return None
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str | None:
        data = self.blob("h")
        return None if data is None else data.decode()

    def count(self) -> int:
        return self._length("i")

    def tags(self) -> None:
        if self._flexible:
            for _ in range(self.varint()):
                self.varint()
                self._at += self.varint()


def _read(api: int, version: int, connection: int, frame: bytes) -> Request:
    flexible = version >= _FLEXIBLE[api]
    head = _Reader(frame, 4, flexible=False)
    correlation = head.number("i")
    client = head.text() or ""
    reader = _Reader(frame, head._at, flexible)
    reader.tags()
    request = Request(api, version, connection, correlation, client)
    reader.text()
    if api == JOIN_GROUP:
        reader.number("i")
        if version >= 1:
            reader.number("i")
        request.member_id = reader.text() or ""
        request.instance_id = reader.text() if version >= 5 else None
        reader.text()
        for _ in range(reader.count()):
            name = reader.text() or ""
            request.protocols[name] = reader.blob() or b""
            reader.tags()
    elif api in (SYNC_GROUP, HEARTBEAT):
        request.generation = reader.number("i")
        request.member_id = reader.text() or ""
        request.instance_id = reader.text() if version >= 3 else None
        if api == SYNC_GROUP:
            if version >= 5:
                reader.text()
                reader.text()
            for _ in range(reader.count()):
                name = reader.text() or ""
                request.assignments[name] = reader.blob() or b""
                reader.tags()
    return request


class _Writer:
    def __init__(self, request: Request, throttled: int) -> None:
        self._flexible = request.version >= _FLEXIBLE[request.api]
        self._parts = [struct.pack(">i", request.correlation)]
        self.tags()
        if request.version >= throttled:
            self.number("i", 0)

    def number(self, layout: str, value: int) -> None:
        self._parts.append(struct.pack(">" + layout, value))

    def _length(self, layout: str, length: int) -> None:
        if not self._flexible:
            self.number(layout, length)
            return
        value = length + 1
        while value >= 0x80:
            self.number("B", value & 0x7F | 0x80)
            value >>= 7
        self.number("B", value)

    def blob(self, data: bytes | None, layout: str = "i") -> None:
        self._length(layout, -1 if data is None else len(data))
        self._parts.append(data or b"")

    def text(self, text: str | None) -> None:
        self.blob(None if text is None else text.encode(), "h")

    def count(self, count: int) -> None:
        self._length("i", count)

    def tags(self) -> None:
        if self._flexible:
            self.number("B", 0)

    def frame(self) -> bytes:
        self.tags()
        body = b"".join(self._parts)
        return struct.pack(">i", len(body)) + body


def _join_answer(
    request: Request, error: int, generation: int, protocol: str, member_id: str, leader: str, members: Iterable[Any]
) -> bytes:
    writer = _Writer(request, throttled=2)
    writer.number("h", error)
    writer.number("i", generation)
    if request.version >= 7:
        writer.text("consumer")
    writer.text(protocol)
    writer.text(leader)
    if request.version >= 9:
        writer.number("B", 0)
    writer.text(member_id)
    listed = list(members)
    writer.count(len(listed))
    for member_id, instance_id, metadata in listed:
        writer.text(member_id)
        if request.version >= 5:
            writer.text(instance_id)
        writer.blob(metadata)
        writer.tags()
    return writer.frame()


def _sync_answer(request: Request, error: int, protocol: str, assignment: bytes) -> bytes:
    writer = _Writer(request, throttled=1)
    writer.number("h", error)
    if request.version >= 5:
        writer.text("consumer")
        writer.text(protocol)
    writer.blob(assignment)
    return writer.frame()


def _heartbeat_answer(request: Request, error: int) -> bytes:
    writer = _Writer(request, throttled=1)
    writer.number("h", error)
    return writer.frame()


def _leave_answer(request: Request) -> bytes:
    writer = _Writer(request, throttled=1)
    writer.number("h", 0)
    if request.version >= 3:
        writer.count(0)
    return writer.frame()
