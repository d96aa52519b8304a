"""kafka-python as the data path of a membership: a consumer without a group, which reads what it is assigned.

The client's `assign` is incremental: a partition that stays keeps its position, its pause and its fetched records. The
public API would be enough; `_internals.py` is faster in places, and exact where the client's own code is not.
"""

from __future__ import annotations

import inspect
import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import kafka
import kafka.errors
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python import _internals
from kafka_assignors.clients.kafka_python.commits import Outcomes
from kafka_assignors.clients.kafka_python.errors import client_error
from kafka_assignors.clients.kafka_python.listeners import TELLS_OF_LOSSES, call_listener
from kafka_assignors.clients.kafka_python.undelivered import Undelivered
from kafka_assignors.member.data_path import Failure, Position
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from kafka_assignors.clients.kafka_python.config import ConsumerConfig
    from kafka_assignors.clients.kafka_python.listeners import Rebalance
    from kafka_assignors.member.data_path import ClientAssignment, CommitOutcome, ListenerEvent, Partition

__all__ = ["BEGINNING", "END", "NO_COMMIT", "KafkaPythonPath", "without_group"]

logger = logging.getLogger("kafka_assignors")

_Native = kafka.KafkaConsumer

BEGINNING, END = -4, -3
"""Starts that the application has chosen with `seek_to_beginning` and `seek_to_end`."""
NO_COMMIT = -1
"""The offset of a partition without a commit."""
_TIMED = "timeout_ms" in inspect.signature(_Native.position).parameters
# Seconds after which a reset that the client has lost is requested again.
_RESET_AGAIN = 0.5


class KafkaPythonPath:
    """The data path of one consumer.

    Args:
        consumer: the consumer. Its base class is the client's.
        config: its settings.
        group: returns the rebalance for which a listener is called.

    Attributes:
        undelivered: the records that iteration has taken out of the client.
        news: errors that the next `poll` raises.
        fatal: the error that every `poll` raises from now on.
        polled: when the application last asked for records; None while it is asking.
        muted: whether the listener is not called, as after `unsubscribe`.
        commits: whether positions are committed. False once the consumer closes with `autocommit=False`.
        outcomes: the outcomes of commits, as the client reports them.
        sought: the positions that a listener of an assignment has chosen.
    """

    def __init__(self, consumer: kafka.KafkaConsumer, config: ConsumerConfig, group: Callable[[], Rebalance]) -> None:
        self._consumer = consumer
        self._config = config
        self._group = group
        self.undelivered = Undelivered()
        self.news: list[Exception] = []
        self.fatal: Exception | None = None
        self.polled: float | None = time.monotonic()
        self.muted = False
        self.commits = True
        self.outcomes = Outcomes(config)
        self.sought: dict[Partition, Position] = {}
        self._read: frozenset[Partition] = frozenset()
        self._reset_again = float("inf")

    # The methods that the membership calls.

    def assign(self, assignment: ClientAssignment) -> None:
        """As `DataPath`."""
        gone = self._read - assignment.partitions
        if any(_internals.position_of(self._consumer, TopicPartition(*each)) is None for each in gone):
            # If the broker answers their reset with an error that passes, kafka-python 2.2 to 3.0.12 fails at the first
            # partition that is gone. The other partitions of that broker stay without a position until
            # `request_timeout_ms`.
            self._reset_again = time.monotonic() + _RESET_AGAIN
        self.undelivered.keep(assignment.partitions)
        self.undelivered.drop(assignment.starts)
        if assignment.partitions != self._read:
            if assignment.partitions:
                _Native.assign(self._consumer, _partitions(assignment.partitions))
            else:
                # `assign([])` would call the `unsubscribe` of the subclass.
                _Native.unsubscribe(self._consumer)
        new, self._read = assignment.partitions - self._read, assignment.partitions
        for partition, position in assignment.starts.items():
            if position is not None:
                self.seek(partition, position)
        paused = new & assignment.paused
        if paused:
            _Native.pause(self._consumer, *_partitions(paused))

    def hold(self, partitions: frozenset[Partition]) -> None:
        """As `DataPath`. No `poll` of the client runs in a turn, so no record can be handed out."""

    def positions(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """As `DataPath`."""
        found: dict[Partition, Position] = {}
        if not self.commits:
            return found
        for partition in partitions:
            position = self.position(partition)
            if position is not None:
                found[partition] = position
        return found

    def call(self, listener: Any, event: ListenerEvent, partitions: frozenset[Partition]) -> None:
        """As `DataPath`. In a cooperative rebalance a listener is called only with partitions that are gained or lost.

        Raises:
            KafkaError: as the client from version 3 on: the listener has failed. Before, its errors are only logged.
        """
        self.sought.clear()
        rebalance = self._group()
        is_cooperative, _ = rebalance
        if listener is None or self.muted or (is_cooperative and not partitions):
            return
        given = {TopicPartition(*each) for each in partitions}
        try:
            call_listener(self._consumer, listener, event, given, rebalance)
        except Exception as error:
            logger.exception("the listener of group %r failed when partitions were %s", self._config.group_id, event)
            if TELLS_OF_LOSSES:
                raise kafka.errors.KafkaError("User rebalance callback throws an error") from error

    def commit_done(self, outcome: CommitOutcome) -> None:
        """As `DataPath`: the callback or the future of `commit_async`."""
        self.outcomes.tell(outcome)

    def fail(self, error: Failure | Exception) -> None:
        """As `DataPath`: an exception of the next `poll`.

        As by the client, errors that pass and missing topics are only logged. So is the end of the membership after
        `max_poll_interval_ms` without a poll, for which the listener is called.
        """
        if isinstance(error, Exception):
            self.news.append(error)
            return
        text = printable(error.message, SENTENCE)
        if error.error_code is None:
            logger.warning("group %r: %s", self._config.group_id, text)
            return
        made = client_error(error.error_code, error.message)
        if error.is_fatal:
            self.fatal = made
        elif error.is_missing or error.error_code < 0 or getattr(made, "retriable", False):
            logger.warning("group %r: %s", self._config.group_id, text)
        else:
            self.news.append(made)

    def wake(self) -> float | None:
        """As `DataPath`. There is nothing to wake: the application waits for the mailbox, or shortly for records."""
        return time.monotonic() if self.polled is None else self.polled

    # The methods that the consumer calls.

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Notes that the application asks for records, until the end of the block."""
        self.polled = None
        try:
            yield
        finally:
            self.polled = time.monotonic()

    def reads(self, partition: Partition) -> bool:
        """Whether the client is assigned this partition."""
        return partition in self._read

    def position(self, partition: Partition) -> Position | None:
        """The offset after the last record that the application has received; None if it is not known yet."""
        record = self.undelivered.next_of(partition)
        if record is not None:
            epoch = getattr(record, "leader_epoch", None)
            return Position(record.offset, -1 if epoch is None else epoch)
        at = _internals.position_of(self._consumer, TopicPartition(*partition))
        return None if at is None else Position(*at)

    def seek(self, partition: Partition, position: Position) -> None:
        """Goes on at the position. The client must be assigned the partition."""
        self.undelivered.drop((partition,))
        assigned = TopicPartition(*partition)
        if position.offset == BEGINNING:
            _Native.seek_to_beginning(self._consumer, assigned)
        elif position.offset == END:
            _Native.seek_to_end(self._consumer, assigned)
        else:
            _internals.start_at(self._consumer, assigned, position.offset, position.leader_epoch)

    def reset(self, partition: Partition, seconds: float) -> None:
        """Lets the client find the start of a partition without a commit. Before version 2.1 the wait has no limit."""
        timed = {"timeout_ms": seconds * 1000} if _TIMED else {}
        with without_group(self._consumer):
            _Native.position(self._consumer, TopicPartition(*partition), **timed)

    def looked_up(self, partition: Partition, logical: int | None) -> int | None:
        """The offset of the beginning or the end. If `logical` is None, the reset rule decides.

        Returns:
            None if the rule is neither of them.
        """
        asked = TopicPartition(*partition)
        if logical == BEGINNING or (logical is None and self._config.reset == "earliest"):
            return int(_Native.beginning_offsets(self._consumer, [asked])[asked])
        if logical == END or (logical is None and self._config.reset == "latest"):
            return int(_Native.end_offsets(self._consumer, [asked])[asked])
        return None

    def look_after_resets(self) -> None:
        """Asks again for resets that the client has lost."""
        now = time.monotonic()
        if now < self._reset_again:
            return
        missing = [each for each in _partitions(self._read) if _internals.position_of(self._consumer, each) is None]
        self._reset_again = now + _RESET_AGAIN if missing else float("inf")
        if missing and self._config.reset == "earliest":
            _Native.seek_to_beginning(self._consumer, *missing)
        elif missing and self._config.reset == "latest":
            _Native.seek_to_end(self._consumer, *missing)


@contextmanager
def without_group(consumer: kafka.KafkaConsumer) -> Iterator[None]:
    """Hides the group in `config` from the client, which would look for the coordinator of the group."""
    shown, consumer.config["group_id"] = consumer.config["group_id"], None
    try:
        yield
    finally:
        consumer.config["group_id"] = shown


def _partitions(partitions: Iterable[Partition]) -> list[TopicPartition]:
    return [TopicPartition(*partition) for partition in sorted(partitions)]
