"""Several connections on one thread: waits until one of them has something to tell, or until it is woken."""

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

__all__ = ["Closed", "Event", "Poller", "Ready", "Received"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A connection is ready: `Connection.send` and `Connection.api_versions` can be used. Comes once."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class Received:
    """An answer has arrived; answers come in the order of the requests.

    Attributes:
        connection: where it came from.
        frame: header and body, without the length. Its correlation id is the request's.
    """

    connection: Connection
    frame: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection has failed or was closed by the broker: nothing more comes from it.

    Attributes:
        connection: which one.
        error: why. A `SecurityError` will not go away by trying again.
    """

    connection: Connection
    error: NetworkError


Event: TypeAlias = Ready | Received | Closed


class Poller:
    """Drives the connections of one client.

    All methods but `wake` belong to one thread. Names are looked up, and tokens fetched by `oauth_cb`, on threads of
    their own, so that one slow of them does not hold up the other connections.

    Args:
        config: how to connect.

    Raises:
        OptionError: the files that TLS needs cannot be used.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._tls = None if config.tls is None else context_of(config.tls)
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
        """Begins a connection, which a later `poll` reports as `Ready` or `Closed`.

        Raises:
            StateError: the poller is closed.
        """
        if self._is_closed:
            raise StateError("the poller is closed; make another one")
        connection = Connection(address, self.config, self._tls, self._authenticator, self._start_job, time.monotonic())
        self._connections[connection] = _Watched()
        return connection

    def wake(self) -> None:
        """Makes the current `poll`, or the next one, return. From any thread; also harmless after `close`."""
        with self._wake_lock:
            if not self._is_closed:
                # A full pipe has woken it already.
                with contextlib.suppress(BlockingIOError):
                    self._waking.send(b"\0")

    def poll(self, timeout: float | None = None) -> list[Event]:
        """Waits until something happened; returns all of it, in order, or nothing after `timeout` or a `wake`.

        Args:
            timeout: the longest wait in seconds; None waits for ever.

        Raises:
            StateError: the poller is closed.
        """
        if self._is_closed:
            raise StateError("the poller is closed; make another one")
        events: list[Event] = []
        self._settle(events)
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
        self._settle(events)
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
        """In the child of a fork: closes its copies of the descriptors, which the parent does not notice.

        Takes no lock, since the thread that holds it may not be here; and takes nothing out of the selector, which the
        two processes share.
        """
        self._is_closed = True
        for connection in list(self._connections):
            # Whatever the parent's thread was in the middle of.
            with contextlib.suppress(Exception):
                connection.close()
        self._selector.close()
        self._waking.close()
        self._woken.close()

    def _start_job(self, connection: Connection, run: Callable[[], Any]) -> None:
        def work() -> None:
            try:
                result, failure = run(), None
            except BaseException as error:  # whatever it is, it is for the poller's thread
                result, failure = None, error
            self._jobs.put((connection, result, failure))
            self.wake()

        threading.Thread(target=work, name=f"kafka-assignors-{connection.address}", daemon=True).start()

    def _handle(self, connection: Connection, readable: bool, writable: bool, events: list[Event]) -> None:
        frames = connection.handle(readable=readable, writable=writable, now=time.monotonic())
        self._tell_ready(connection, events)
        events += [Received(connection, frame) for frame in frames]

    def _tell_ready(self, connection: Connection, events: list[Event]) -> None:
        watched = self._connections[connection]
        if connection.phase is Phase.READY and not watched.told:
            watched.told = True
            events.append(Ready(connection))

    def _settle(self, events: list[Event]) -> None:
        """Lets time pass, sends what can be sent, tells what has become ready or closed, watches the rest."""
        now = time.monotonic()
        changed: list[tuple[Connection, _Watched]] = []
        for connection, watched in list(self._connections.items()):
            connection.tick(now)
            connection.flush()
            self._tell_ready(connection, events)
            if watched.forget_if_changed(connection, self._selector):
                changed.append((connection, watched))
            if connection.is_closed:
                del self._connections[connection]
                if connection.error is not None:
                    events.append(Closed(connection, connection.error))
        # Only now: a new socket may have the descriptor of one that was still being watched.
        for connection, watched in changed:
            watched.watch(connection, self._selector)

    def _patience(self, timeout: float | None, events: list[Event]) -> float | None:
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
    """What the selector knows of a connection, and whether its owner knows that it is ready."""

    socket_number: int = 0
    handle: int = -1
    mask: int = 0
    told: bool = False

    def forget_if_changed(self, connection: Connection, selector: selectors.BaseSelector) -> bool:
        """Whether the selector has to be told again; what it was told before is taken back."""
        if (connection.socket_number, _mask(connection)) == (self.socket_number, self.mask):
            return False
        if self.mask:
            selector.unregister(self.handle)
            self.mask = 0
        return True

    def watch(self, connection: Connection, selector: selectors.BaseSelector) -> None:
        """Tells the selector."""
        self.socket_number, self.handle, self.mask = connection.socket_number, connection.fileno(), _mask(connection)
        if self.mask:
            selector.register(self.handle, self.mask, connection)


def _mask(connection: Connection) -> int:
    reads, writes = connection.wants
    return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)
