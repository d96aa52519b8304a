"""A broker that follows a script. Tests of connections use it for faults that a real broker does not show."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from types import TracebackType

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, HEARTBEAT = 18, 17, 36, 12
# Key, lowest and highest version.
VERSIONS = {API_VERSIONS: (0, 3), SASL_HANDSHAKE: (0, 1), SASL_AUTHENTICATE: (0, 1), HEARTBEAT: (0, 4)}

_TIMEOUT = 20.0


class HungUpError(Exception):
    """The client closed the connection."""


@dataclass(frozen=True)
class Request:
    """A request. ``body`` begins behind the client id of header version 1."""

    api: int
    version: int
    correlation: int
    client_id: str
    body: bytes


class Peer:
    """One connection of a client, on the broker's side. Every call blocks, with a time limit."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.settimeout(_TIMEOUT)

    def receive(self) -> Request:
        """The next request; `HungUpError` if there is none."""
        (length,) = struct.unpack(">i", self._exactly(4))
        frame = self._exactly(length)
        api, version, correlation, size = struct.unpack_from(">hhih", frame)
        return Request(api, version, correlation, frame[10 : 10 + size].decode(), frame[10 + size :])

    def answer(self, request: Request, body: bytes) -> None:
        """Sends a response. ``body`` begins behind the correlation id."""
        self.send(frame(request.correlation, body))

    def send(self, data: bytes) -> None:
        """Sends any bytes."""
        try:
            self.socket.sendall(data)
        except OSError:
            raise HungUpError from None

    def open(self) -> None:
        """Answers ApiVersions, the first request on every connection."""
        request = self.receive()
        assert request.api == API_VERSIONS
        self.answer(request, api_versions())

    def wait_for_close(self) -> None:
        """Reads and drops the client's bytes until the client closes the connection."""
        with contextlib.suppress(HungUpError):
            while True:
                self._exactly(1)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except TimeoutError:
                raise
            except OSError:
                part = b""
            if not part:
                raise HungUpError
            data += part
        return bytes(data)


class FakeBroker:
    """Listens, and runs ``script`` for each connection, one connection after the other.

    An error of the script is raised at the end of the context. A client that closes the connection ends the script
    without an error.
    """

    def __init__(self, script: Callable[[Peer], None], tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopping = False
        self._failure: BaseException | None = None
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stopping = True
        # This connection ends the thread's wait for a client.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        self._thread.join(_TIMEOUT)
        self._listener.close()
        if self._failure is not None and kind is None:
            raise self._failure
        assert not self._thread.is_alive(), "the script of the fake broker does not end"

    def _run(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._stopping:
                    return
                self.connections += 1
                try:
                    self._serve(connection)
                except BaseException as error:
                    self._failure = error
                    return

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is None:
            with contextlib.suppress(HungUpError):
                self._script(Peer(connection))
            return
        try:
            encrypted = self._tls.wrap_socket(connection, server_side=True)
        except OSError:
            return  # refused by the client
        with encrypted, contextlib.suppress(HungUpError):
            self._script(Peer(encrypted))


def frame(correlation: int, body: bytes) -> bytes:
    """A response with its length."""
    return struct.pack(">ii", len(body) + 4, correlation) + body


def api_versions(error: int = 0) -> bytes:
    """The body of ApiVersions 3."""
    rows = b"".join(struct.pack(">hhh", key, *span) + b"\0" for key, span in VERSIONS.items())
    return struct.pack(">h", error) + bytes([len(VERSIONS) + 1]) + rows + bytes(4) + b"\0"


def api_versions_0(error: int, most: int) -> bytes:
    """The body of ApiVersions 0, with which a broker refuses a newer version."""
    return struct.pack(">hihhh", error, 1, API_VERSIONS, 0, most)


def sasl_handshake(error: int = 0, *mechanisms: str) -> bytes:
    """The body of SaslHandshake 1."""
    names = b"".join(struct.pack(">h", len(each)) + each.encode() for each in mechanisms)
    return struct.pack(">hi", error, len(mechanisms)) + names


def sasl_authenticate(data: bytes = b"", error: int = 0, message: str | None = None, lifetime: int = 0) -> bytes:
    """The body of SaslAuthenticate 1."""
    text = b"\xff\xff" if message is None else struct.pack(">h", len(message)) + message.encode()
    return struct.pack(">h", error) + text + struct.pack(">i", len(data)) + data + struct.pack(">q", lifetime)


def auth_bytes(request: Request) -> bytes:
    """The mechanism's message in SaslAuthenticate 0 or 1."""
    assert request.api == SASL_AUTHENTICATE
    (size,) = struct.unpack_from(">i", request.body)
    assert len(request.body) == 4 + size
    return request.body[4:]
