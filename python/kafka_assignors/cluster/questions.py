"""Questions to the brokers of a cluster, over connections of our own (`kafka_assignors.net`).

Why not a client's AdminClient: confluent-kafka's does not give the bytes that members joined with, which is what a plan
is made from, and with our own codecs a snapshot needs nothing but this package.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kafka_assignors import _core
from kafka_assignors.errors import ClusterError, NetworkError, SecurityError
from kafka_assignors.net import Address, ClientConfig, Closed, Connection, Poller, Ready, Received
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Question", "Questions", "RetriableError", "check", "named"]

T = TypeVar("T")

# What is known to pass: a coordinator or leader that moves, loads or is not known yet, a late answer.
_PASSING = {5, 6, 7, 14, 15, 16, 72, 74, 75, 88}
_AUTHORIZATION = {29, 30, 31}
# More would only fill the broker's queue: it serves one request of a connection at a time.
_WINDOW = 50
_PAUSE = 0.2

# Names of requests: of our functions, and of Kafka.
_FUNCTIONS = {
    "ConsumerGroupDescribe": "consumer_group_describe",
    "DescribeConfigs": "describe_topic_configs",
    "DescribeGroups": "describe_groups",
    "FindCoordinator": "find_coordinator",
    "ListGroups": "list_groups",
    "ListOffsets": "list_offsets",
    "Metadata": "metadata",
    "OffsetFetch": "offset_fetch",
}
# Nothing below has what is asked: names in topics' metadata that are never created, racks, all offsets of a group.
_LEAST = {"Metadata": 4, "OffsetFetch": 2}


class RetriableError(Exception):
    """Something that passes by itself; the message says what it was, should it not."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request to one broker.

    Attributes:
        address: where the broker listens; None asks any of them.
        request: Kafka's name of it.
        fields: what our codec of it takes.
    """

    address: Address | None
    request: str
    fields: tuple[Any, ...]


def named(error_code: int) -> str:
    """An error code as people know it."""
    return f"{_core.error_name(error_code) or 'an unknown error'} ({error_code})"


def check(error_code: int, what: str, message: str | None = None) -> None:
    """Does nothing if there is no error.

    Raises:
        RetriableError: one that passes.
        ClusterError: another one.
    """
    if error_code == 0:
        return
    text = f"{what}: {named(error_code)}{f', {printable(message)}' if message else ''}"
    if error_code in _PASSING:
        raise RetriableError(text)
    if error_code in _AUTHORIZATION:
        raise ClusterError(f"{text}; the user needs the right to DESCRIBE it")
    raise ClusterError(text)


class Questions:
    """Asks the brokers of one cluster. Belongs to one thread.

    Args:
        config: settings as for `confluent_kafka`; see `kafka_assignors.net`.
        timeout: how many seconds everything together may take.

    Raises:
        OptionError: a setting that cannot be used.
    """

    def __init__(self, config: Mapping[str, Any], timeout: float) -> None:
        # Of several bootstrap servers one that does not answer must not take all the time.
        setup = {"socket.connection.setup.timeout.ms": max(1_000, min(30_000, int(timeout * 1000 / 3)))}
        self._config = ClientConfig.from_confluent({"client.id": "kafka-assignors", **setup, **config})
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._poller = Poller(self._config)
        self._ready: dict[Address, Connection] = {}
        self._any: Address | None = None
        self._correlations = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._poller.close()

    def ask(self, request: str, *fields: Any, address: Address | None = None) -> Any:
        """One answer.

        Raises:
            ClusterError: the broker does not speak the request, or time is up.
            NetworkError: no broker can be reached.
        """
        return self.ask_all([Question(address, request, fields)])[0]

    def speaks(self, request: str, address: Address | None = None) -> bool:
        """Whether a broker speaks a request in a version that we speak."""
        return self._version(self._connection(address), request) is not None

    def ask_all(self, questions: Sequence[Question], progress: Callable[[int], object] | None = None) -> list[Any]:
        """All answers, in the order of the questions; brokers are asked side by side.

        Args:
            questions: any number.
            progress: called with the number of answers so far.

        Raises:
            ClusterError: a broker does not speak a request, or time is up.
            NetworkError: a broker cannot be reached, or goes away and does not come back in time.
        """
        return self.patiently(lambda: self._ask_all(questions, progress))

    def patiently(self, work: Callable[[], T]) -> T:
        """Does something again as long as it fails with what passes.

        Raises:
            ClusterError: it does not pass in time, or is something else.
            NetworkError: likewise, for connections.
        """
        while True:
            try:
                return work()
            except SecurityError:
                raise
            except (RetriableError, NetworkError) as error:
                # A cluster that never answered is more likely the wrong address than one that comes back.
                if self._any is None:
                    raise
                if time.monotonic() + _PAUSE >= self._deadline:
                    if isinstance(error, NetworkError):
                        raise
                    raise ClusterError(f"{error}; that did not pass within {self._timeout:g} s") from error
                time.sleep(_PAUSE)

    @property
    def left(self) -> float:
        """How many seconds are left."""
        return max(0.0, self._deadline - time.monotonic())

    def pause(self) -> bool:
        """Waits a little for something to change; False if there is no time for that."""
        if time.monotonic() + _PAUSE >= self._deadline:
            return False
        time.sleep(_PAUSE)
        return True

    # ---- one broker -------------------------------------------------------------------------------------------------

    def _connection(self, address: Address | None) -> Connection:
        if address is not None:
            return self._open([address])
        if self._any is not None and self._any in self._ready:
            return self._ready[self._any]
        connection = self._open(list(self._config.bootstrap))
        self._any = connection.address
        return connection

    def _open(self, addresses: list[Address]) -> Connection:
        """A connection to the first of the addresses that can be reached."""
        error: NetworkError | None = None
        for address in addresses:
            if address in self._ready:
                return self._ready[address]
            try:
                self._ready[address] = self._wait(self._poller.connect(address))
            except SecurityError:
                raise
            except NetworkError as failure:
                error = failure
            else:
                return self._ready[address]
        assert error is not None
        raise error

    def _wait(self, connection: Connection) -> Connection:
        """Until the connection is ready. Nothing is in flight on the others, so that no answer can be missed."""
        while True:
            for event in self._events():
                if isinstance(event, Ready) and event.connection is connection:
                    return connection
                if isinstance(event, Closed):
                    self._forget(event.connection)
                    if event.connection is connection:
                        raise event.error

    def _forget(self, connection: Connection) -> None:
        if self._ready.get(connection.address) is connection:
            del self._ready[connection.address]

    def _events(self) -> list[Ready | Received | Closed]:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ClusterError(
                f"the cluster has not answered within {self._timeout:g} s; check bootstrap.servers and "
                "security.protocol, or give a longer timeout"
            )
        return self._poller.poll(left)

    @staticmethod
    def _version(connection: Connection, request: str) -> int | None:
        key, least, most = _core.protocol_versions()[request]
        spoken = connection.api_versions.get(key)
        if spoken is None:
            return None
        version = min(most, spoken[1])
        return version if version >= max(least, spoken[0], _LEAST.get(request, 0)) else None

    # ---- many -------------------------------------------------------------------------------------------------------

    def _ask_all(self, questions: Sequence[Question], progress: Callable[[int], object] | None) -> list[Any]:
        answers: list[Any] = [None] * len(questions)
        lanes: dict[Connection, _Lane] = {}
        for position, question in enumerate(questions):
            connection = self._connection(question.address)
            lanes.setdefault(connection, _Lane()).waiting.append(position)
        left = len(questions)
        try:
            while left:
                for connection, lane in lanes.items():
                    while lane.waiting and len(lane.sent) < _WINDOW:
                        self._send(connection, lane, questions)
                for event in self._events():
                    if isinstance(event, Closed):
                        self._forget(event.connection)
                        if event.connection in lanes:
                            raise event.error
                    elif isinstance(event, Received) and event.connection in lanes:
                        lane = lanes[event.connection]
                        position, version, correlation = lane.sent.popleft()
                        decode = getattr(_core, f"decode_{_FUNCTIONS[questions[position].request]}")
                        answers[position] = decode(version, correlation, event.frame)
                        left -= 1
                        if progress is not None:
                            progress(len(questions) - left)
        except BaseException:
            # Answers that are still owed would be taken for those of the next questions.
            for connection, lane in lanes.items():
                if lane.sent:
                    self._forget(connection)
                    connection.close()
            raise
        return answers

    def _send(self, connection: Connection, lane: _Lane, questions: Sequence[Question]) -> None:
        position = lane.waiting.popleft()
        question = questions[position]
        version = self._version(connection, question.request)
        if version is None:
            raise ClusterError(
                f"the broker at {connection.address} does not speak {question.request} in a version that is spoken "
                "here; Kafka 1.0 and later do"
            )
        correlation = next(self._correlations)
        encode = getattr(_core, f"encode_{_FUNCTIONS[question.request]}")
        lane.sent.append((position, version, correlation))
        connection.send(encode(version, correlation, self._config.client_id, *question.fields))


class _Lane:
    """What one connection has still to send, and what it waits for: position, version and correlation id."""

    def __init__(self) -> None:
        self.waiting: deque[int] = deque()
        self.sent: deque[tuple[int, int, int]] = deque()
