"""Requests to the brokers of a cluster, over connections of our own (`kafka_assignors.net`).

The AdminClient of confluent-kafka does not show the bytes with which members joined, and a plan is made from these.
With our own codecs a snapshot needs no client at all.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kafka_assignors import _core
from kafka_assignors.errors import ClusterError, KafkaAssignorsError, NetworkError, ProtocolError, SecurityError
from kafka_assignors.net import Address, ClientConfig, Closed, Connection, Poller, Ready, Received
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["PASSING", "Question", "Questions", "RetriableError", "check", "named"]

T = TypeVar("T")

# Errors that pass by themselves: a coordinator or leader that moves, loads or is not known yet, and a late answer.
PASSING = {5, 6, 7, 14, 15, 16, 72, 74, 75, 88}
_AUTHORIZATION = {29, 30, 31}
# The most requests on one connection at once. A broker serves them one at a time, so more would only wait there.
_WINDOW = 50
_PAUSE = 0.2

# Kafka's name of each request, and that of our codec.
_FUNCTIONS = {
    "ApiVersions": "api_versions",
    "ConsumerGroupDescribe": "consumer_group_describe",
    "DescribeConfigs": "describe_configs",
    "DescribeGroups": "describe_groups",
    "FindCoordinator": "find_coordinator",
    "ListGroups": "list_groups",
    "ListOffsets": "list_offsets",
    "Metadata": "metadata",
    "OffsetFetch": "offset_fetch",
}
# Lower versions lack a feature: Metadata that creates no topic, and OffsetFetch for all topics of a group.
_LEAST = {"Metadata": 4, "OffsetFetch": 2}
# The next version has topic ids instead of names.
_MOST = {"OffsetFetch": 9}
# The first version of OffsetFetch for several groups, and how many are asked for at once: the answer for fifty groups
# of a hundred partitions is some hundred kilobytes.
_SEVERAL_GROUPS = 8
_GROUPS_AT_ONCE = 50


class RetriableError(Exception):
    """An error that passes by itself. Its message is shown if it does not."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request to one broker.

    Attributes:
        address: of the broker; None is any broker.
        request: Kafka's name of it.
        fields: the arguments of our codec.
    """

    address: Address | None
    request: str
    fields: tuple[Any, ...]


def named(error_code: int) -> str:
    """An error code with Kafka's name."""
    return f"{_core.error_name(error_code) or 'an unknown error'} ({error_code})"


def check(error_code: int, what: str, message: str | None = None) -> None:
    """Raises an error for an error code; `what` is the beginning of its message.

    Raises:
        RetriableError: the error passes by itself.
        ClusterError: another error.
    """
    if error_code == 0:
        return
    text = f"{what}: {named(error_code)}{f', {printable(message)}' if message else ''}"
    if error_code in PASSING:
        raise RetriableError(text)
    if error_code in _AUTHORIZATION:
        raise ClusterError(f"{text}; the user needs the right to DESCRIBE it")
    raise ClusterError(text)


class Questions:
    """Sends requests to the brokers of one cluster. Belongs to one thread.

    Args:
        config: settings as for `confluent_kafka`; see `kafka_assignors.net`.
        timeout: how many seconds everything together may take.

    Raises:
        OptionError: a setting that cannot be used.
    """

    def __init__(self, config: Mapping[str, Any], timeout: float) -> None:
        # One bootstrap server that does not answer must leave time for the others.
        setup = {"socket.connection.setup.timeout.ms": max(1_000, min(30_000, int(timeout * 1000 / 3)))}
        self._config = ClientConfig.from_confluent({"client.id": "kafka-assignors", **setup, **config})
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._poller = Poller(self._config)
        self._ready: dict[Address, Connection] = {}
        self._any: Address | None = None
        # The brokers that `ask_each` does not try again.
        self._unreachable: dict[Address | None, KafkaAssignorsError] = {}
        self._correlations = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._poller.close()

    def ask(self, request: str, *fields: Any, address: Address | None = None) -> Any:
        """One answer.

        Raises:
            ClusterError: the broker does not have the request, or the time is up.
            NetworkError: no broker can be reached.
        """
        return self.ask_all([Question(address, request, fields)])[0]

    def speaks(self, request: str, address: Address | None = None) -> bool:
        """Whether a broker and our codec have a version of a request in common."""
        return self._version(self._connection(address), request) is not None

    def offset_fetches(self, groups: Mapping[str, Address]) -> list[Question]:
        """Questions for all commits of groups, for `ask_each` or `ask_all`: several groups in each, of one broker.

        Since Kafka 3.0 (version 8) a broker answers for several groups at once. An older one is asked for each group.
        For a broker that cannot be reached there are questions too; they fail when they are asked.

        Args:
            groups: group id to the address of its coordinator.
        """
        of_address: dict[Address, list[str]] = {}
        for group_id, address in groups.items():
            of_address.setdefault(address, []).append(group_id)
        in_turn: list[tuple[int, Question]] = []
        for address, names in of_address.items():
            at_once = _GROUPS_AT_ONCE if self._takes_groups(address) else 1
            for at in range(0, len(names), at_once):
                asked = [(each, None) for each in names[at : at + at_once]]
                in_turn.append((at, Question(address, "OffsetFetch", (asked, False))))
        # The first of every broker, then the second of every broker: all of them work at the same time.
        return [question for _, question in sorted(in_turn, key=lambda each: each[0])]

    def _takes_groups(self, address: Address) -> bool:
        if address in self._unreachable:
            return False
        try:
            version = self._version(self._connection(address), "OffsetFetch")
        except SecurityError:
            raise
        except (NetworkError, ClusterError):
            return False
        return version is not None and version >= _SEVERAL_GROUPS

    def ask_all(self, questions: Sequence[Question], progress: Callable[[int], object] | None = None) -> list[Any]:
        """All answers, in the order of the questions. All brokers are asked at the same time.

        Args:
            questions: any number.
            progress: called with the number of answers so far.

        Raises:
            ClusterError: a broker does not have a request, or the time is up.
            NetworkError: a broker cannot be reached, or is not back in time.
        """
        return self.patiently(lambda: self._ask_all(questions, progress))

    def ask_each(self, questions: Sequence[Question], patience: float) -> list[Any | KafkaAssignorsError]:
        """All answers that come, in the order of the questions; an error in the place of each that does not come.

        If a broker cannot be reached, or does not answer, only its own answers are lost, and it is not tried again.

        Args:
            questions: any number.
            patience: how many seconds to wait for the answers, at most those that are left.

        Raises:
            SecurityError: the credentials or certificates are not accepted; no broker would accept them.
        """
        found: list[Any | KafkaAssignorsError] = [None] * len(questions)
        lanes: dict[Connection, _Lane] = {}
        for position, question in enumerate(questions):
            known = self._unreachable.get(question.address)
            if known is not None:
                found[position] = known
                continue
            try:
                connection = self._connection(question.address)
            except SecurityError:
                raise
            except (NetworkError, ClusterError) as error:
                found[position] = self._unreachable[question.address] = error
                continue
            lanes.setdefault(connection, _Lane()).waiting.append(position)
        self._gather(questions, lanes, found, time.monotonic() + min(patience, self.left))
        return found

    def _gather(
        self, questions: Sequence[Question], lanes: dict[Connection, _Lane], found: list[Any], until: float
    ) -> None:
        while lanes:
            for connection, lane in list(lanes.items()):
                while lane.waiting and len(lane.sent) < _WINDOW:
                    position = lane.waiting[0]
                    try:
                        self._send(connection, lane, questions)
                    except ClusterError as error:
                        found[position] = error
                if not lane.waiting and not lane.sent:
                    del lanes[connection]
            left = until - time.monotonic()
            if lanes and left <= 0:
                for connection in list(lanes):
                    late = ClusterError(f"the broker at {connection.address} has not answered in time")
                    self._give_up(connection, lanes.pop(connection), found, late)
                    self._unreachable[connection.address] = late
                return
            for event in self._poller.poll(left) if lanes else ():
                if event.connection not in lanes:
                    continue
                lane = lanes[event.connection]
                if isinstance(event, Closed):
                    self._give_up(event.connection, lanes.pop(event.connection), found, event.error)
                elif isinstance(event, Received):
                    position, version, correlation = lane.sent.popleft()
                    decode = getattr(_core, f"decode_{_FUNCTIONS[questions[position].request]}")
                    try:
                        found[position] = decode(version, correlation, event.frame)
                    except ProtocolError as error:
                        # The bytes behind such a frame have no known boundaries.
                        found[position] = error
                        self._give_up(event.connection, lanes.pop(event.connection), found, error)

    def _give_up(self, connection: Connection, lane: _Lane, found: list[Any], error: KafkaAssignorsError) -> None:
        """Puts the error in the place of the answers that are still to come, and closes their connection."""
        for position in [*lane.waiting, *(position for position, _, _ in lane.sent)]:
            found[position] = error
        self._forget(connection)
        connection.close()

    def patiently(self, work: Callable[[], T]) -> T:
        """Calls a function again while it fails with an error that passes by itself.

        Raises:
            ClusterError: the error does not pass in time, or is another one.
            NetworkError: likewise, for connections.
        """
        while True:
            try:
                return work()
            except SecurityError:
                raise
            except (RetriableError, NetworkError) as error:
                # No broker has ever answered: the address is probably wrong, and a wait would not help.
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
        """Waits a little. Returns False, without waiting, if there is no time for that."""
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
        """Waits until the connection is ready. No request is in flight on the others, so no answer can be lost."""
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
        version = min(most, spoken[1], _MOST.get(request, most))
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
            # Answers on these connections are still to come: they would be taken for those of the next questions.
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
    """The questions of one connection: those to send, and those sent, with position, version and correlation id."""

    def __init__(self) -> None:
        self.waiting: deque[int] = deque()
        self.sent: deque[tuple[int, int, int]] = deque()
