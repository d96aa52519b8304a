"""librdkafka as the data path of a membership: a consumer that never subscribes, and reads the partitions it is given.

Its assignment is changed incrementally. `assign` would throw away the fetched records of partitions that stay.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from kafka_assignors.clients.confluent import times
from kafka_assignors.clients.confluent._internals import error_message
from kafka_assignors.clients.confluent.commits import Outcomes, topic_partition
from kafka_assignors.clients.confluent.errors import client_error
from kafka_assignors.member.data_path import (
    ClientAssignment,
    CommitOutcome,
    Failure,
    ListenerEvent,
    Partition,
    Position,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Set

    from kafka_assignors.clients.confluent.config import ConsumerConfig, Reset

__all__ = ["Callbacks", "LibrdkafkaPath"]

_Native = confluent_kafka.Consumer

# The start of a partition without a committed offset. With "error", librdkafka asks for the commit by itself, finds
# none, and reports its usual error.
_STARTS: Mapping[Reset, int] = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END, "error": OFFSET_INVALID}
_MISSING = "Subscribed topic not available: "


class Callbacks:
    """The callbacks of a subscription."""

    def __init__(self, on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        for name, function in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} expects a callable")
        # As in the client, without `on_lost` a loss calls `on_revoke`.
        self.of: Mapping[ListenerEvent, Any] = {
            "assigned": on_assign,
            "revoked": on_revoke,
            "lost": on_lost or on_revoke,
        }


class LibrdkafkaPath:
    """The data path of one consumer.

    Args:
        consumer: the consumer. Its base class is librdkafka's.
        config: its settings.
        summon: `DataPath.wake`.

    Attributes:
        is_inside: whether the turn runs in a callback of librdkafka. After the callback, librdkafka would deliver
            records of held partitions.
        news: errors and messages that the next `poll` raises and returns.
        fatal: the error that every `poll` raises from now on.
        paused: the partitions that the application has paused.
        outcomes: the outcomes of commits, as the client reports them.
    """

    def __init__(
        self, consumer: confluent_kafka.Consumer, config: ConsumerConfig, summon: Callable[[], float | None]
    ) -> None:
        self._consumer = consumer
        self._config = config
        self._summon = summon
        self.is_inside = False
        self.news: list[Exception | Message] = []
        self.fatal: KafkaError | None = None
        self.paused: Set[Partition] = frozenset()
        self.outcomes = Outcomes(consumer, config.on_commit)
        # librdkafka's assignment. Its own method `assignment` would wait while another thread is in `poll`.
        self._fetched: frozenset[Partition] = frozenset()
        # The partitions that `hold` has paused until the next assignment.
        self._held: frozenset[Partition] = frozenset()
        # The partitions that `hold_up` has paused until `go_on`.
        self._stopped: frozenset[Partition] = frozenset()
        self._introduced: set[str] = set()
        # The latest start or seek of each partition, with librdkafka's position then.
        self._begun: dict[Partition, tuple[TopicPartition, int]] = {}
        # The last positions of an earlier consumer of librdkafka, until the present one has a position.
        self._before: dict[Partition, Position] = {}

    # The methods that the membership calls.

    def assign(self, assignment: ClientAssignment) -> None:
        """As `DataPath`."""
        unwanted = self._fetched - assignment.partitions
        if unwanted:
            self._let_go(unwanted)
        resumed, self._held = (self._held & assignment.partitions) - assignment.paused, frozenset()
        if resumed:
            _Native.resume(self._consumer, _partitions(resumed))
        begin: list[TopicPartition] = []
        for partition, position in sorted(assignment.starts.items()):
            start = self._start(partition, position)
            if partition in self._fetched:
                self.sought(start)
                _Native.seek(self._consumer, start)
            else:
                begin.append(start)
        self._read(begin, assignment.paused)
        if assignment.is_assigned:
            self._tell_ends(assignment.partitions - assignment.starts.keys() - assignment.paused)

    def hold(self, partitions: frozenset[Partition]) -> None:
        """As `DataPath`. While the turn runs outside of librdkafka, no record can be handed out."""
        self._held |= partitions & self._stopped
        self._stopped -= partitions
        further = partitions - self._held - self.paused
        if self.is_inside and further:
            self._held |= further
            _Native.pause(self._consumer, _partitions(further))

    def positions(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """As `DataPath`: the positions of this consumer of librdkafka, or of the previous one."""
        if not partitions:
            return {}
        reached = {}
        for each in _Native.position(self._consumer, _partitions(partitions)):
            if each.offset >= 0:
                epoch = each.leader_epoch
                reached[each.topic, each.partition] = Position(each.offset, -1 if epoch is None else epoch)
        if self._before:
            for partition in reached:
                self._before.pop(partition, None)
            reached |= {each: at for each, at in self._before.items() if each in partitions}
        return reached

    def call(self, listener: Callbacks | None, event: ListenerEvent, partitions: frozenset[Partition]) -> None:
        """As `DataPath`."""
        callback = None if listener is None else listener.of[event]
        if callback is not None:
            callback(self._consumer, _partitions(partitions))

    def commit_done(self, outcome: CommitOutcome) -> None:
        """As `DataPath`: `on_commit`."""
        self.outcomes.tell(outcome)

    def fail(self, error: Failure | Exception) -> None:
        """As `DataPath`: a message of the next `poll`, or an exception."""
        if isinstance(error, Exception):
            self.news.append(error)
        elif error.is_fatal:
            self.fatal = client_error(_code(error), error.message, fatal=True)
        else:
            reason = _MISSING + error.message if error.is_missing else error.message
            self.news.append(error_message(client_error(_code(error), reason), error.topic))

    def wake(self) -> float | None:
        """As `DataPath`."""
        return self._summon()

    # Starts.

    def _start(self, partition: Partition, position: Position | None) -> TopicPartition:
        if position is None:
            return TopicPartition(*partition, _STARTS[self._config.reset])
        return topic_partition(partition, position)

    def _read(self, begin: list[TopicPartition], paused: Collection[Partition]) -> None:
        if not begin:
            return
        self._introduce({each.topic for each in begin})
        begin = self._with_offsets(begin)
        _Native.incremental_assign(self._consumer, begin)
        started = {(each.topic, each.partition): (each, OFFSET_INVALID) for each in begin}
        self._fetched |= started.keys()
        self._begun |= started
        paused = started.keys() & paused
        if paused:
            _Native.pause(self._consumer, _partitions(paused))

    def _introduce(self, topics: set[str]) -> None:
        """Makes librdkafka find the leaders of new topics now. By itself it does so up to a second later."""
        new = topics - self._introduced
        if not new:
            return
        self._introduced |= new
        with contextlib.suppress(KafkaException):
            if self.is_inside:
                # Within a callback the process would be aborted by `list_topics` (`own_client.py`). The lookup of an
                # offset finds the leader first.
                ends = [TopicPartition(topic, 0, OFFSET_END) for topic in new]
                _Native.offsets_for_times(self._consumer, ends, timeout=times.LEADER_LOOKUP)
            else:
                topic = next(iter(new)) if len(new) == 1 else None
                _Native.list_topics(self._consumer, topic, timeout=times.LEADER_LOOKUP)

    def _with_offsets(self, begin: list[TopicPartition]) -> list[TopicPartition]:
        """Looks up the offsets of the beginnings and ends among the starts, with one request for each leader.

        librdkafka would look up each start by itself, and lose a seek meanwhile (librdkafka #2256): it drops the
        answer, which the seek has outdated, and then looks up the start again. librdkafka only looks up the starts
        whose lookup fails here.
        """
        logical = [each for each in begin if each.offset in (OFFSET_BEGINNING, OFFSET_END)]
        if not logical:
            return begin
        try:
            found = _Native.offsets_for_times(self._consumer, logical, timeout=times.START_LOOKUP)
        except KafkaException:
            return begin
        known = {(each.topic, each.partition): each.offset for each in found if each.error is None}
        starts = {(each.topic, each.partition): each for each in begin}
        starts |= {partition: TopicPartition(*partition, offset) for partition, offset in known.items()}
        return list(starts.values())

    def _let_go(self, partitions: frozenset[Partition]) -> None:
        for partition in partitions:
            self._begun.pop(partition, None)
            self._before.pop(partition, None)
        ours = (self._held | self._stopped) & partitions
        if ours:
            # librdkafka remembers a pause. It would deliver no record of the partition when that is assigned again.
            self._held, self._stopped = self._held - ours, self._stopped - ours
            _Native.resume(self._consumer, _partitions(ours))
        _Native.incremental_unassign(self._consumer, _partitions(partitions))
        self._fetched -= partitions

    def _tell_ends(self, stays: Collection[Partition]) -> None:
        """Makes librdkafka report the ends of kept partitions once more (`enable.partition.eof`).

        The client does so after each rebalance, since it starts all partitions again. No record is fetched twice by
        that, since a partition at its end has none in the queue.
        """
        if not self._config.tells_end:
            return
        ends = []
        for each in _Native.position(self._consumer, _partitions(stays)):
            _, end = _Native.get_watermark_offsets(self._consumer, each, cached=True)
            if 0 <= end <= each.offset:
                ends.append(each)
        if ends:
            _Native.pause(self._consumer, ends)
            _Native.resume(self._consumer, ends)

    def sought(self, start: TopicPartition) -> None:
        """Notes a seek. librdkafka's positions show it only after the first record."""
        partition = start.topic, start.partition
        if partition in self._begun:
            (at,) = _Native.position(self._consumer, [TopicPartition(*partition)])
            self._begun[partition] = start, at.offset

    # A session that may end while the application is blocked inside librdkafka.

    @property
    def is_held_up(self) -> bool:
        """Whether `hold_up` was called, and `go_on` was not."""
        return bool(self._stopped)

    def hold_up(self, reading: Collection[Partition]) -> None:
        """Pauses these partitions, none of which the application has paused, until `go_on`."""
        further = self._fetched.intersection(reading) - self._stopped - self._held
        if further:
            self._stopped |= further
            _Native.pause(self._consumer, _partitions(further))

    def go_on(self, paused: Collection[Partition]) -> None:
        """Resumes the partitions that `hold_up` has paused, but not those that the application has paused since."""
        if self._stopped:
            stopped, self._stopped = self._stopped, frozenset()
            _Native.resume(self._consumer, _partitions(stopped.difference(paused)))

    # A consumer of librdkafka that has stalled.

    def next_starts(self, partitions: Collection[Partition]) -> dict[Partition, TopicPartition]:
        """The position at which each partition is read on. Before the first record it may be a logical offset."""
        found = {}
        if partitions:
            for each in _Native.position(self._consumer, _partitions(partitions)):
                start, then = self._begun.get((each.topic, each.partition), (each, OFFSET_INVALID))
                # If no record came since the start or the seek, the partition still has to start there.
                found[each.topic, each.partition] = start if each.offset == then else each
        return found

    def renew(
        self,
        renew: Callable[[], None],
        resolved: Mapping[Partition, int],
        *,
        held: Collection[Partition],
        paused: Collection[Partition],
    ) -> None:
        """Replaces librdkafka's consumer by a new one at the same positions. Fetched records that were not delivered
        are fetched again.

        Args:
            renew: replaces it.
            resolved: the known offsets of partitions that start at the beginning or the end.
            held: the partitions whose positions are committed.
            paused: those that the application has paused.
        """
        starts = self.next_starts(self._fetched)
        for partition, start in starts.items():
            if start.offset < 0 and partition in resolved:
                starts[partition] = TopicPartition(*partition, resolved[partition])
        before = self.positions(held)
        renew()
        self._before |= before
        self._introduced.clear()
        _Native.incremental_assign(self._consumer, [starts[each] for each in sorted(starts)])
        still = starts.keys() & (self._held | self._stopped).union(paused)
        if still:
            _Native.pause(self._consumer, _partitions(still))
        self._begun = {partition: (start, OFFSET_INVALID) for partition, start in starts.items()}


def _code(failure: Failure) -> int:
    if failure.error_code is None:
        return int(KafkaError._MAX_POLL_EXCEEDED)
    if failure.is_missing and failure.error_code == KafkaError.TOPIC_EXCEPTION:
        # librdkafka treats an invalid name as that of a topic that does not exist.
        return int(KafkaError.UNKNOWN_TOPIC_OR_PART)
    return failure.error_code


def _partitions(partitions: Iterable[Partition]) -> list[TopicPartition]:
    return [TopicPartition(*partition) for partition in sorted(partitions)]
