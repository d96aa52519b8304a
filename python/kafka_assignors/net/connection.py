"""One connection to one broker: from the name lookup to frames in both directions, without ever blocking.

A connection does nothing by itself. A [`Poller`][kafka_assignors.net.poller.Poller] calls it when its socket is ready
or its `deadline` has passed.
"""

from __future__ import annotations

import enum
import errno
import os
import socket
import ssl
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_assignors.errors import NetworkError, ProtocolError, SecurityError, StateError
from kafka_assignors.net.sasl import Job
from kafka_assignors.net.session import Opening, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.net.config import Address, ClientConfig
    from kafka_assignors.net.sasl import Authenticator
    from kafka_assignors.net.session import ApiVersions, SessionScript

__all__ = ["Connection", "Phase"]

_PENDING_CONNECT = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN, getattr(errno, "WSAEWOULDBLOCK", -1)}
_CHUNK = 1 << 18
# How many chunks one connection may read before the others have their turn.
_CHUNKS_AT_ONCE = 16
# The part of an authentication's lifetime (KIP-368) after which it is renewed.
_RENEW = 0.85
# A broker refuses a renewal within a second of the previous authentication.
_SOONEST_RENEWAL = 1.1
# A frame that is sent: its length, and in its header the API key, the version, and the correlation id.
_LENGTH, _API_KEY, _CORRELATION = slice(0, 4), slice(4, 6), slice(8, 12)
_LEAST_FRAME = 4
# The first bytes of a TLS record and of an HTTP answer, in the place of a frame's length.
_TLS_ALERT, _HTTP = b"\x15\x03", b"HTTP"
# The largest answer to each request, by API key, in bytes; `receive.message.max.bytes` counts if it is smaller. Without
# these limits a hostile broker could make a client hold 100 MB for one heartbeat.
_SMALL, _OF_A_GROUP, _OF_A_CLUSTER = 1 << 16, 1 << 25, 1 << 26
_LIMITS = {
    2: _OF_A_CLUSTER,  # ListOffsets
    3: _OF_A_CLUSTER,  # Metadata
    8: _OF_A_GROUP,  # OffsetCommit
    9: _OF_A_GROUP,  # OffsetFetch
    10: _SMALL,  # FindCoordinator
    11: _OF_A_GROUP,  # JoinGroup
    12: _SMALL,  # Heartbeat
    13: _SMALL,  # LeaveGroup
    14: _OF_A_GROUP,  # SyncGroup
    15: _OF_A_CLUSTER,  # DescribeGroups
    16: _OF_A_GROUP,  # ListGroups
    17: _SMALL,  # SaslHandshake
    18: _SMALL,  # ApiVersions
    32: 1 << 20,  # DescribeConfigs
    36: _SMALL,  # SaslAuthenticate
    68: _OF_A_GROUP,  # ConsumerGroupHeartbeat
    69: _OF_A_CLUSTER,  # ConsumerGroupDescribe
}
_PORTS = range(1, 1 << 16)


class Phase(enum.Enum):
    """The phases of a connection."""

    RESOLVING = "name lookup"
    CONNECTING = "TCP connection"
    TLS = "TLS handshake"
    OPENING = "API versions and authentication"
    READY = "ready"
    CLOSED = "closed"


def _is_name(host: str) -> bool:
    """Whether the system and TLS accept this as the name of a host.

    The name comes from another broker, so it may be anything. The system would cut it at the first NUL. TLS raises for
    a NUL, for an empty first label, and for a name that IDNA cannot encode.
    """
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return bool(host) and host.isprintable() and " " not in host and not host.startswith(".")


class _Owed(NamedTuple):
    """An answer that is still to come.

    Attributes:
        correlation: of the request.
        by_script: whether the answer is for the script that opens the connection, not for the owner.
        limit: its largest length, in bytes.
    """

    correlation: bytes
    by_script: bool
    limit: int


class Connection:
    """A connection to a broker.

    Attributes:
        address: where the broker listens.
        phase: its phase.
        error: why it is closed; None while it is open, and after `close`.
    """

    def __init__(
        self,
        address: Address,
        config: ClientConfig,
        tls: ssl.SSLContext | None,
        authenticator: Authenticator | None,
        start_job: Callable[[Connection, Callable[[], Any]], None],
        now: float,
    ) -> None:
        """`start_job` runs a function on another thread. Then the poller calls `job_done`, on the poller's thread."""
        self.address = address
        self.phase = Phase.RESOLVING
        self.error: NetworkError | None = None
        self._config = config
        self._tls = tls
        self._start_job = start_job
        self._opening = Opening(config.client_id, authenticator)
        self._session: Session | None = None
        self._script: SessionScript | None = None
        self._socket: socket.socket | None = None
        self._endpoints: deque[tuple[int, int, int, Any]] = deque()
        self._deadline: float | None = now + config.setup_timeout
        self._renew_at: float | None = None
        self._is_due = False
        self._received = bytearray()
        self._sending = bytearray()
        # Frames that wait until the authentication is renewed.
        self._held: deque[bytes] = deque()
        self._owed: deque[_Owed] = deque()
        self._has_answered = False
        self._frames: list[bytes] = []
        # TLS may have to write before it can go on reading, and to read before it can go on writing.
        self._read_needs_write = self._write_needs_read = False
        self.unread = False
        """Whether TLS has bytes that it has read from the socket already, so that the selector does not see them."""
        self.socket_number = 0
        """Identifies the socket, since a new socket may have the file descriptor of the previous one."""
        self._resolve()

    @property
    def api_versions(self) -> ApiVersions:
        """The API versions of the broker.

        Raises:
            StateError: the connection is not ready yet.
        """
        if self._session is None:
            raise StateError(f"the connection to {self.address} is not ready; wait for its Ready event")
        return self._session.api_versions

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed, by either side or by an error."""
        return self.phase is Phase.CLOSED

    @property
    def in_flight(self) -> int:
        """The number of frames that were given to `send` and are not answered yet."""
        return len(self._held) + sum(not owed.by_script for owed in self._owed)

    def __repr__(self) -> str:
        return f"<Connection to {self.address}: {self.phase.value}>"

    def send(self, frame: bytes) -> None:
        """Sends a request, which has exactly one frame as its answer. The next `Poller.poll` writes it to the socket.

        On a closed connection it does nothing: the `Closed` event says so.

        Args:
            frame: length, header and body.

        Raises:
            StateError: the connection is not ready yet.
            ProtocolError: these bytes are not one frame.
        """
        if self.is_closed:
            return
        if self._session is None:
            raise StateError(f"the connection to {self.address} is not ready; wait for its Ready event")
        if len(frame) < _CORRELATION.stop or int.from_bytes(frame[_LENGTH], "big") != len(frame) - 4:
            raise ProtocolError(f"a request of {len(frame)} bytes is not one frame; give it with its length in front")
        self._held.append(frame)

    def close(self) -> None:
        """Closes the connection without an event. Answers that are still to come are lost."""
        self._end(None)

    # For the poller.

    def fileno(self) -> int:
        """The file descriptor of the socket; -1 without one."""
        return -1 if self._socket is None else self._socket.fileno()

    @property
    def wants(self) -> tuple[bool, bool]:
        """Whether to wait until the socket can be read, and until it can be written."""
        if self._socket is None:
            return False, False
        if self.phase is Phase.CONNECTING:
            return False, True
        if self.phase is Phase.TLS:
            return not self._read_needs_write, self._read_needs_write
        return True, self._read_needs_write or (bool(self._sending) and not self._write_needs_read)

    @property
    def deadline(self) -> float | None:
        """The latest time for the next `tick`."""
        if self._deadline is not None or self._owed:
            return self._deadline
        return self._renew_at

    def tick(self, now: float) -> None:
        """Does the work that depends on the time: timeouts, and the renewal of the authentication."""
        if self._deadline is not None and now >= self._deadline:
            late = "renewal of the authentication" if self.phase is Phase.READY else self.phase.value
            self._end(NetworkError(f"{self.address}: the {late} was not done within {self._config.setup_timeout:g} s"))
            return
        if self._renew_at is not None and now >= self._renew_at:
            self._is_due, self._renew_at = True, None
        if self._is_due and not self._owed and self._script is None:
            assert self._session is not None
            self._is_due = False
            self._deadline = now + self._config.setup_timeout
            self._begin(self._opening.again(self._session), now)
        # Held frames are sent only after a renewal that is due.
        self._release()

    def handle(self, *, readable: bool, writable: bool, now: float) -> list[bytes]:
        """Reads and writes the socket. Returns the frames for the owner, without their lengths."""
        try:
            if self.phase is Phase.CONNECTING:
                self._connected(now)
            elif self.phase is Phase.TLS:
                self._shake_hands(now)
            else:
                reads = readable or self.unread or (writable and self._read_needs_write)
                if writable:
                    self.flush()
                if reads and not self.is_closed:
                    self._receive(now)
        except OSError as error:
            self._failed(error)
        frames, self._frames = self._frames, []
        return frames

    def flush(self) -> None:
        """Sends as many bytes as the socket takes now."""
        if self._socket is None or self.phase not in (Phase.OPENING, Phase.READY):
            return
        try:
            while self._sending and not self._write_needs_read:
                sent = self._socket.send(self._sending[:_CHUNK])
                del self._sending[:sent]
        except (BlockingIOError, ssl.SSLWantWriteError):
            pass
        except ssl.SSLWantReadError:
            self._write_needs_read = True
        except OSError as error:
            self._failed(error)

    def job_done(self, result: Any, error: BaseException | None, now: float) -> None:
        """Takes the result or the error of a function that `start_job` has run."""
        if self.is_closed:
            return
        if self.phase is Phase.RESOLVING:
            if error is not None:
                reason = error.strerror if isinstance(error, OSError) else type(error).__name__
                self._end(NetworkError(f"the name {self.address.host!r} could not be looked up: {reason}"))
                return
            self._endpoints.extend(result)
            self._try_next("no address")
            return
        self._advance(result, error, now)

    # From the lookup to the first frame.

    def _resolve(self) -> None:
        host, port, family = self.address.host, self.address.port, self._config.family
        if not _is_name(host) or port not in _PORTS:
            self._end(NetworkError(f"{host[:300]!r} with port {port} is no address of a broker; check its listeners"))
            return

        def look_up(flags: int = 0) -> list[tuple[int, int, int, Any]]:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=flags)
            return [(each[0], each[1], each[2], each[4]) for each in found]

        try:
            self._endpoints.extend(look_up(socket.AI_NUMERICHOST))
        except (OSError, UnicodeError):
            self._start_job(self, look_up)
        else:
            self._try_next("no address")

    def _try_next(self, reason: str) -> None:
        """Tries the next of the host's addresses; `reason` is the failure of the previous address."""
        while self._endpoints:
            family, kind, protocol, endpoint = self._endpoints.popleft()
            try:
                self._drop_socket()
                self._socket = socket.socket(family, kind, protocol)
                self.socket_number += 1
                self._prepare(self._socket)
                code = self._socket.connect_ex(endpoint)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                continue
            if code == 0 or code in _PENDING_CONNECT:
                self.phase = Phase.CONNECTING
                return
            reason = os.strerror(code)
        self._end(NetworkError(f"{self.address} could not be reached: {reason}"))

    def _prepare(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        config = self._config
        for wanted, level, option, value in (
            (config.no_delay, socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (config.keepalive, socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (config.send_buffer > 0, socket.SOL_SOCKET, socket.SO_SNDBUF, config.send_buffer),
            (config.receive_buffer > 0, socket.SOL_SOCKET, socket.SO_RCVBUF, config.receive_buffer),
        ):
            if wanted:
                connection.setsockopt(level, option, value)

    def _connected(self, now: float) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            self._try_next(os.strerror(code))
            return
        self._endpoints.clear()
        if self._tls is None:
            self._start(now)
            return
        self._socket = self._tls.wrap_socket(
            self._socket, server_hostname=self.address.host, do_handshake_on_connect=False
        )
        self.phase = Phase.TLS
        self._shake_hands(now)

    def _shake_hands(self, now: float) -> None:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._read_needs_write = False
        except ssl.SSLWantWriteError:
            self._read_needs_write = True
        else:
            self._read_needs_write = False
            self._start(now)

    def _start(self, now: float) -> None:
        self.phase = Phase.OPENING
        self._begin(self._opening.first(), now)

    # The script at the beginning, and at each renewal.

    def _begin(self, script: SessionScript, now: float) -> None:
        self._script = script
        self._advance(None, None, now)

    def _advance(self, answer: Any, failure: BaseException | None, now: float) -> None:
        assert self._script is not None
        try:
            step = self._script.send(answer) if failure is None else self._script.throw(failure)
        except StopIteration as done:
            self._opened(done.value, now)
        except NetworkError as error:
            named = type(error)(f"{self.address}: {error}")
            named.__cause__ = error.__cause__
            self._end(named)
        except ProtocolError as error:
            self._end(NetworkError(f"{self.address} sent an answer that cannot be read: {error}"))
        else:
            if isinstance(step, Job):
                self._start_job(self, step.run)
            else:
                self._put(step, by_script=True)

    def _opened(self, session: Session, now: float) -> None:
        self._script, self._deadline = None, None
        self._session = session
        if session.lifetime is not None:
            self._renew_at = now + max(_SOONEST_RENEWAL, _RENEW * session.lifetime)
        self.phase = Phase.READY
        self._release()

    # Frames.

    def _release(self) -> None:
        """Sends the frames that may be sent now.

        If the authentication has an end (KIP-368), only one request is sent at a time. A broker serves the requests of
        a connection one by one. If it reaches a request only after the end of the authentication, it closes the
        connection, even if the request was sent in time.
        """
        if self._script is not None or self._is_due or self._session is None:
            return
        one_by_one = self._session.lifetime is not None
        while self._held and not (one_by_one and self._owed):
            self._put(self._held.popleft(), by_script=False)

    def _put(self, frame: bytes, *, by_script: bool) -> None:
        limit = _LIMITS.get(int.from_bytes(frame[_API_KEY], "big"), self._config.frame_limit)
        self._owed.append(_Owed(bytes(frame[_CORRELATION]), by_script, min(limit, self._config.frame_limit)))
        self._sending += frame

    def _receive(self, now: float) -> None:
        assert self._socket is not None
        encrypted = isinstance(self._socket, ssl.SSLSocket)
        self.unread = self._read_needs_write = self._write_needs_read = False
        for _ in range(_CHUNKS_AT_ONCE):
            try:
                data = self._socket.recv(_CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            except ssl.SSLWantWriteError:
                self._read_needs_write = True
                return
            if not data:
                self._end(self._hung_up())
                return
            self._received += data
            self._take_frames(now)
            if self.is_closed or (not encrypted and len(data) < _CHUNK):
                return
        self.unread = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _take_frames(self, now: float) -> None:
        start = 0
        received = self._received
        while len(received) - start >= 4 and not self.is_closed:
            length = int.from_bytes(received[start : start + 4], "big", signed=True)
            limit = self._owed[0].limit if self._owed else _SMALL
            if not _LEAST_FRAME <= length <= limit:
                self._end(self._not_a_frame(bytes(received[start : start + 4]), length, limit))
                return
            if len(received) - start - 4 < length:
                break
            frame = bytes(received[start + 4 : start + 4 + length])
            start += 4 + length
            self._dispatch(frame, now)
        if start:
            del received[:start]

    def _dispatch(self, frame: bytes, now: float) -> None:
        self._has_answered = True
        owed = self._owed.popleft() if self._owed else None
        if owed is None or frame[:4] != owed.correlation:
            got = int.from_bytes(frame[:4], "big", signed=True)
            expected = "none is owed" if owed is None else str(int.from_bytes(owed.correlation, "big", signed=True))
            self._end(NetworkError(f"{self.address} answered with correlation id {got}, but {expected} was expected"))
        elif owed.by_script:
            self._advance(frame, None, now)
        else:
            self._frames.append(frame)
            self.tick(now)

    # The end.

    def _not_a_frame(self, head: bytes, length: int, limit: int) -> NetworkError:
        # Only the first answer can show that the listener speaks another protocol. Later the same bytes are garbage. A
        # security error for them would end the consumer for good.
        if head.startswith(_TLS_ALERT) and self._tls is None and not self._has_answered:
            return SecurityError(f"{self.address} speaks TLS; set security.protocol to ssl or sasl_ssl")
        if head == _HTTP:
            return NetworkError(f"{self.address} speaks HTTP and is no Kafka broker; check the port")
        return NetworkError(
            f"{self.address} announced an answer of {length:,} bytes; from {_LEAST_FRAME} to {limit:,} are accepted "
            + ("(receive.message.max.bytes)" if limit == self._config.frame_limit else "for this request")
        )

    def _hung_up(self) -> NetworkError:
        return NetworkError(f"{self.address} closed the connection{self._hint()}")

    def _hint(self) -> str:
        if self.phase not in (Phase.TLS, Phase.OPENING):
            return ""
        return f" during the {self.phase.value}; does security.protocol fit this listener?"

    def _failed(self, error: OSError) -> None:
        before_ready = self._session is None
        if before_ready and isinstance(error, ssl.SSLCertVerificationError):
            self._end(
                SecurityError(
                    f"the certificate of {self.address} is not accepted: {error.verify_message}; see "
                    "ssl.ca.location and ssl.endpoint.identification.algorithm"
                )
            )
        elif isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            kind = SecurityError if before_ready else NetworkError
            self._end(kind(f"TLS with {self.address} failed: {getattr(error, 'reason', None) or error}"))
        elif self.phase is Phase.CONNECTING and self._endpoints:
            self._try_next(error.strerror or type(error).__name__)
        elif isinstance(error, ssl.SSLError | ConnectionError):
            self._end(self._hung_up())
        else:
            self._end(NetworkError(f"the connection to {self.address} failed: {error.strerror or error}"))

    def _end(self, error: NetworkError | None) -> None:
        if self.is_closed:
            return
        self.phase = Phase.CLOSED
        self.error = error
        if self._script is not None:
            self._script.close()
            self._script = None
        self._deadline = self._renew_at = None
        self._held.clear()
        self._owed.clear()
        self._sending.clear()
        self._endpoints.clear()
        self.unread = False
        self._drop_socket()

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
