"""The sockets of the embedded Kafka: one thread that moves frames between connections and the broker in the core."""

import contextlib
import heapq
import itertools
import logging
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from kafka_assignors import _core

__all__ = ["Server"]

log = logging.getLogger("kafka_assignors.embedded")

MAX_FRAME = 100 << 20
"""The largest request in bytes, as `socket.request.max.bytes` of a broker."""

MAX_UNFINISHED = 256 << 20
"""The most bytes of unfinished requests of all connections together. Above it, the connection with the most bytes is
closed. Without this limit a client could take all memory with a large unfinished request on each of many connections.
"""

_READ = 256 << 10
_READ_AHEAD = 1 << 20
"""The most bytes that are read from a connection whose last request is not answered yet."""

_NOTHING = memoryview(b"")
_LENGTH = struct.Struct(">i")
_API_KEY = struct.Struct(">h")

_ACCEPT_PAUSE = 0.1
"""How long no connection is accepted after the system has refused a socket, in seconds."""

API_KEYS = dict(_core.EmbeddedBroker.apis())
"""The keys of the requests that are served, by Kafka's name."""


@dataclass
class Fault:
    """A fault for the next requests of one kind."""

    delay: float
    close: Literal["before", "after"] | None
    times: int


@dataclass(eq=False)
class ClientConnection:
    """One client's connection. Requests are served one at a time, so answers go out in the order of the requests."""

    number: int
    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    sending: memoryview = _NOTHING
    busy: bool = False
    """Whether a request is unanswered, or its answer not yet sent in full."""
    close_instead: bool = False
    """Close the connection when the answer is due."""
    open: bool = True
    events: int = selectors.EVENT_READ


class Server:
    """Serves a broker on a TCP port from a thread of its own, from construction until `close`."""

    def __init__(self, broker: _core.EmbeddedBroker, host: str, port: int) -> None:
        self._broker = broker
        self._connections: dict[int, ClientConnection] = {}
        self._numbers = itertools.count(1)
        self._ready: deque[ClientConnection] = deque()
        self._delayed: list[tuple[float, int, ClientConnection, bytes, bool]] = []
        self._faults: dict[int, deque[Fault]] = {}
        self._closing = False
        self._accept_again: float | None = None
        self._unfinished = 0
        self._lock = threading.Lock()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=1024)
        self._listener.setblocking(False)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        broker.listen(host, self.port)
        self._wake_sender, self._wake_receiver = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, self._drain_wake)
        self._thread = threading.Thread(target=self._run, name=f"embedded-kafka-{self.port}", daemon=True)
        self._thread.start()

    def add_fault(self, api: str, fault: Fault) -> None:
        """Adds a fault for the next requests of this kind. Faults are used in the order in which they were added."""
        with self._lock:
            self._faults.setdefault(API_KEYS[api], deque()).append(fault)

    def drop_connections(self) -> None:
        """Closes every connection, as a restart of a broker does. Clients may connect again at once."""
        for connection in list(self._connections.values()):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes every connection and the port. A second call does nothing."""
        if self._closing:
            return
        self._closing = True
        # The thread may be ending already. Both ends of the socket pair stay open until the thread has ended.
        self._wake_sender.send(b"\0")
        self._thread.join()
        self._wake_sender.close()
        self._wake_receiver.close()

    # ---- the thread ----

    def _run(self) -> None:
        try:
            while not self._closing:
                for key, events in self._selector.select(self._patience()):
                    if isinstance(key.data, ClientConnection):
                        self._serve(key.data, events)
                    else:
                        key.data()
                self._let_time_pass()
                self._work()
        except Exception:
            log.exception("the embedded Kafka stops serving: this is a defect of it")
        finally:
            for connection in list(self._connections.values()):
                connection.socket.close()
            self._connections.clear()
            self._selector.close()
            self._listener.close()

    def _patience(self) -> float | None:
        if self._ready:
            return 0
        due = [self._delayed[0][0]] if self._delayed else []
        if self._accept_again is not None:
            due.append(self._accept_again)
        deadline = self._broker.next_deadline()
        if deadline is not None:
            due.append(deadline / 1000)
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _let_time_pass(self) -> None:
        now = time.monotonic()
        if self._accept_again is not None and self._accept_again <= now:
            self._accept_again = None
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while self._delayed and self._delayed[0][0] <= now:
            _, _, connection, frame, close = heapq.heappop(self._delayed)
            if connection.open:
                self._handle(connection, frame, close)
        deadline = self._broker.next_deadline()
        if deadline is not None and deadline <= _milliseconds():
            self._deliver(self._broker.tick(_milliseconds()))

    def _drain_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_receiver.recv(1024)

    def _accept(self) -> None:
        # At most 256 connections in one turn, so that the open connections are served meanwhile.
        for _ in range(256):
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # The process may have too many open files. The waiting client keeps the listener ready: without a pause
                # the thread would spin.
                log.warning("a connection could not be accepted: %s", error)
                self._selector.unregister(self._listener)
                self._accept_again = time.monotonic() + _ACCEPT_PAUSE
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = ClientConnection(next(self._numbers), accepted)
            self._connections[connection.number] = connection
            self._selector.register(accepted, connection.events, connection)

    def _serve(self, connection: ClientConnection, events: int) -> None:
        if events & selectors.EVENT_WRITE and connection.open:
            self._send(connection)
        if events & selectors.EVENT_READ and connection.open:
            try:
                data = connection.socket.recv(_READ)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._hang_up(connection, None)
                return
            connection.received += data
            self._unfinished += len(data)
            if self._unfinished > MAX_UNFINISHED:
                largest = max(self._connections.values(), key=lambda each: len(each.received))
                held = f"of {self._unfinished} bytes of unfinished requests it has {len(largest.received)}"
                self._hang_up(largest, f"{held}; all connections together may have {MAX_UNFINISHED}")
            if connection.busy:
                self._watch(connection)
            else:
                self._ready.append(connection)

    def _work(self) -> None:
        """Serves complete requests, one of each connection in turn."""
        while self._ready:
            connection = self._ready.popleft()
            if connection.busy or not connection.open:
                continue
            frame = self._next_frame(connection)
            if frame is None:
                continue
            fault = self._next_fault(frame)
            if fault is None:
                self._handle(connection, frame, False)
            elif fault.close == "before":
                self._hang_up(connection, "an injected fault closes it")
            elif fault.delay:
                connection.busy = True
                due = time.monotonic() + fault.delay
                heapq.heappush(self._delayed, (due, next(self._numbers), connection, frame, fault.close == "after"))
            else:
                self._handle(connection, frame, True)

    def _next_frame(self, connection: ClientConnection) -> bytes | None:
        received = connection.received
        if len(received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(received)
        if not 0 <= length <= MAX_FRAME:
            self._hang_up(connection, f"a frame of {length} bytes: at most {MAX_FRAME} are taken")
            return None
        end = _LENGTH.size + length
        if len(received) < end:
            return None
        with memoryview(received) as view:
            frame = bytes(view[_LENGTH.size : end])
        del received[:end]
        self._unfinished -= end
        self._watch(connection)
        return frame

    def _next_fault(self, frame: bytes) -> Fault | None:
        if not self._faults or len(frame) < _API_KEY.size:
            return None
        with self._lock:
            queue = self._faults.get(_API_KEY.unpack_from(frame)[0])
            if not queue:
                return None
            fault = queue[0]
            fault.times -= 1
            if fault.times <= 0:
                queue.popleft()
            return fault

    def _handle(self, connection: ClientConnection, frame: bytes, close_instead: bool) -> None:
        connection.busy = False
        connection.close_instead = close_instead
        try:
            parked, replies = self._broker.handle(_milliseconds(), connection.number, frame)
        except ValueError as error:
            self._hang_up(connection, str(error))
            return
        connection.busy = parked
        self._deliver(replies)
        if not connection.busy and connection.open and connection.received:
            self._ready.append(connection)

    def _deliver(self, replies: Iterable[tuple[int, bytes]]) -> None:
        for number, frame in replies:
            connection = self._connections.get(number)
            if connection is None:
                continue
            if connection.close_instead:
                self._hang_up(connection, "an injected fault closes it instead of the answer")
                continue
            connection.busy = True
            connection.sending = memoryview(frame)
            self._send(connection)

    def _send(self, connection: ClientConnection) -> None:
        try:
            while connection.sending:
                sent = connection.socket.send(connection.sending)
                connection.sending = connection.sending[sent:]
        except BlockingIOError:
            self._watch(connection)
            return
        except OSError:
            self._hang_up(connection, None)
            return
        connection.busy = False
        self._watch(connection)
        if connection.received:
            self._ready.append(connection)

    def _watch(self, connection: ClientConnection) -> None:
        """Updates the selector. A connection with unanswered requests is not read beyond a limit."""
        if not connection.open:
            return
        reading = not connection.busy or len(connection.received) < _READ_AHEAD
        events = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if connection.sending else 0)
        if events == connection.events:
            return
        if not events:
            self._selector.unregister(connection.socket)
        elif not connection.events:
            self._selector.register(connection.socket, events, connection)
        else:
            self._selector.modify(connection.socket, events, connection)
        connection.events = events

    def _hang_up(self, connection: ClientConnection, reason: str | None) -> None:
        if not connection.open:
            return
        if reason is not None:
            log.info("connection %d is closed: %s", connection.number, reason)
        connection.open = False
        self._unfinished -= len(connection.received)
        connection.received.clear()
        if connection.events:
            self._selector.unregister(connection.socket)
        connection.socket.close()
        del self._connections[connection.number]
        self._deliver(self._broker.disconnect(_milliseconds(), connection.number))


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000
