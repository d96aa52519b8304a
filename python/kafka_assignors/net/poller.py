"""Drives several connections on one thread."""

from __future__ import annotations

import contextlib
import queue
import selectors
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from kafka_assignors.errors import NetworkError, StateError
from kafka_assignors.net.connection import Connection, Phase
from kafka_assignors.net.sasl import Authenticator
from kafka_assignors.net.tls import context_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.net.config import Address, ClientConfig

__all__ = ["Closed", "ConnectionEvent", "Poller", "Ready", "Received"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A connection is ready for `Connection.send` and `Connection.api_versions`. There is one such event for each."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class Received:
    """An answer. Answers come in the order of the requests.

    Attributes:
        connection: its connection.
        frame: header and body, without the length. Its correlation id is the request's.
    """

    connection: Connection
    frame: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection has failed, or the broker has closed it. It has no further events.

    Attributes:
        connection: the connection.
        error: the reason. After a `SecurityError` another attempt would fail as well.
    """

    connection: Connection
    error: NetworkError


ConnectionEvent: TypeAlias = Ready | Received | Closed


class Poller:
    """Drives the connections of one client.

    All methods but `wake` belong to one thread. Name lookups and `oauth_cb` run on threads of their own, since a slow
    one would hold up all connections.

    Args:
        config: the settings of the connections.

    Raises:
        OptionError: the files that TLS needs cannot be used.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._tls = config.ssl_context
        if self._tls is None and config.tls is not None:
            self._tls = context_of(config.tls)
        self._authenticator = None if config.sasl is None else Authenticator(config.sasl)
        self._connections: dict[Connection, _Watched] = {}
        self._jobs: queue.SimpleQueue[tuple[Connection, Any, BaseException | None]] = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._waking, self._woken = socket.socketpair()
        for end in (self._waking, self._woken):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._wake_lock = threading.Lock()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self, address: Address) -> Connection:
        """Begins a connection. A later `poll` returns its `Ready` or `Closed`.

        Raises:
            StateError: the poller is closed.
        """
        if self._is_closed:
            raise StateError("the poller is closed; make another one")
        connection = Connection(address, self.config, self._tls, self._authenticator, self._start_job, time.monotonic())
        self._connections[connection] = _Watched()
        return connection

    def wake(self) -> None:
        """Makes the current `poll`, or the next one, return. Any thread may call it, also after `close`."""
        with self._wake_lock:
            if not self._is_closed:
                # If the socket is full, `poll` will return anyway.
                with contextlib.suppress(BlockingIOError):
                    self._waking.send(b"\0")

    def poll(self, timeout: float | None = None) -> list[ConnectionEvent]:
        """Waits for events, and returns them in order. After `timeout` or a `wake` there may be none.

        Args:
            timeout: the longest wait in seconds; None waits for ever.

        Raises:
            StateError: the poller is closed.
        """
        if self._is_closed:
            raise StateError("the poller is closed; make another one")
        events: list[ConnectionEvent] = []
        self._advance(events)
        for key, mask in self._selector.select(self._patience(timeout, events)):
            if key.data is None:
                self._drain()
            else:
                readable, writable = bool(mask & selectors.EVENT_READ), bool(mask & selectors.EVENT_WRITE)
                self._handle(key.data, readable, writable, events)
        for connection in [each for each in self._connections if each.unread]:
            self._handle(connection, readable=True, writable=False, events=events)
        while not self._jobs.empty():
            connection, result, failure = self._jobs.get_nowait()
            connection.job_done(result, failure, time.monotonic())
        self._advance(events)
        return events

    def close(self) -> None:
        """Closes every connection, without events. May be called twice."""
        with self._wake_lock:
            if self._is_closed:
                return
            self._is_closed = True
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._selector.close()
        self._waking.close()
        self._woken.close()

    def abandon(self) -> None:
        """In the child of a fork: closes its copies of the descriptors. Those of the parent stay open.

        This takes no lock, since the thread that holds the lock may not exist in the child. It unregisters no
        connection, since the two processes share the selector.
        """
        self._is_closed = True
        for connection in list(self._connections):
            # The parent's thread may have been in the middle of a change of this connection.
            with contextlib.suppress(Exception):
                connection.close()
        self._selector.close()
        self._waking.close()
        self._woken.close()

    def _start_job(self, connection: Connection, run: Callable[[], Any]) -> None:
        def work() -> None:
            try:
                result, failure = run(), None
            except BaseException as error:  # `job_done` gets it, on the poller's thread
                result, failure = None, error
            self._jobs.put((connection, result, failure))
            self.wake()

        threading.Thread(target=work, name=f"kafka-assignors-{connection.address}", daemon=True).start()

    def _handle(self, connection: Connection, readable: bool, writable: bool, events: list[ConnectionEvent]) -> None:
        frames = connection.handle(readable=readable, writable=writable, now=time.monotonic())
        self._add_ready(connection, events)
        events += [Received(connection, frame) for frame in frames]

    def _add_ready(self, connection: Connection, events: list[ConnectionEvent]) -> None:
        watched = self._connections[connection]
        if connection.phase is Phase.READY and not watched.was_ready:
            watched.was_ready = True
            events.append(Ready(connection))

    def _advance(self, events: list[ConnectionEvent]) -> None:
        """Ticks and flushes all connections, adds `Ready` and `Closed` events, and updates the selector."""
        now = time.monotonic()
        changed: list[tuple[Connection, _Watched]] = []
        for connection, watched in list(self._connections.items()):
            connection.tick(now)
            connection.flush()
            self._add_ready(connection, events)
            if watched.forget_if_changed(connection, self._selector):
                changed.append((connection, watched))
            if connection.is_closed:
                del self._connections[connection]
                if connection.error is not None:
                    events.append(Closed(connection, connection.error))
        # After the loop, since a new socket may have the descriptor of one that was still registered.
        for connection, watched in changed:
            watched.watch(connection, self._selector)

    def _patience(self, timeout: float | None, events: list[ConnectionEvent]) -> float | None:
        if events or not self._jobs.empty() or any(each.unread for each in self._connections):
            return 0.0
        deadlines = [each.deadline for each in self._connections if each.deadline is not None]
        if not deadlines:
            return timeout
        left = max(0.0, min(deadlines) - time.monotonic())
        return left if timeout is None else min(left, timeout)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass


@dataclass(slots=True)
class _Watched:
    """The registration of a connection in the selector, and whether its `Ready` event was returned."""

    socket_number: int = 0
    handle: int = -1
    mask: int = 0
    was_ready: bool = False

    def forget_if_changed(self, connection: Connection, selector: selectors.BaseSelector) -> bool:
        """Whether the registration has to change. If so, the old one is removed."""
        if (connection.socket_number, _mask(connection)) == (self.socket_number, self.mask):
            return False
        if self.mask:
            selector.unregister(self.handle)
            self.mask = 0
        return True

    def watch(self, connection: Connection, selector: selectors.BaseSelector) -> None:
        """Registers the connection."""
        self.socket_number, self.handle, self.mask = connection.socket_number, connection.fileno(), _mask(connection)
        if self.mask:
            selector.register(self.handle, self.mask, connection)


def _mask(connection: Connection) -> int:
    reads, writes = connection.wants
    return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)
