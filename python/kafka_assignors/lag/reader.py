"""The reader of lags: which offsets of a live cluster are read, in which order and how often.

A client only answers the questions, as an `OffsetReader`. One attempt is:

    partition_counts ──► committed ──► next_offsets ──► first_offsets
                                                        of the partitions without a commit,
                                                        unless `reset` is "latest"

If a partition has no leader for now, or an error passes by itself, there is another attempt, until the deadline.

`kafka_assignors.cluster.topics` is the other reader of offsets, over connections of this package. The two stay apart
for two reasons. A consumer's lags are read with a client of the consumer's own kind, since its settings, such as
Kerberos, a TLS context or a token provider, cannot be handed to other connections. And a lag needs all of its offsets,
or another attempt, while a snapshot of topics leaves out offsets that no leader returns.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from kafka_assignors.errors import LagError, OptionError
from kafka_assignors.lag.values import KnownOffsets, lags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

__all__ = [
    "FIRST_OFFSET",
    "ISOLATION_LEVELS",
    "NEXT_OFFSET",
    "ClusterLagSource",
    "Deadline",
    "OffsetReader",
    "Partition",
    "TopicEnds",
    "check_reading",
]

Partition: TypeAlias = tuple[str, int]
"""Topic and partition number."""

ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
"""The number of each isolation level in ListOffsets."""

NEXT_OFFSET, FIRST_OFFSET = -1, -2
"""The timestamps with which ListOffsets asks for the offset of the next record, and of the first one."""

# Partitions that one question names. A broker's answer has some 50 bytes for each of them.
_PARTITIONS_AT_ONCE = 10_000
# The wait before another attempt, in seconds.
_PAUSE = 0.1


def check_reading(isolation_level: object, timeout: float) -> None:
    """Refuses options with which no cluster can be read.

    Raises:
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """
    if not timeout > 0:
        raise OptionError(f"timeout is {timeout!r}; give a positive number of seconds")
    if isolation_level not in tuple(ISOLATION_LEVELS):
        known = ", ".join(map(repr, ISOLATION_LEVELS))
        raise OptionError(f"isolation_level is {isolation_level!r}; give one of {known}")


class Deadline:
    """The end of a number of seconds that begin now."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, at least 0.001: clients read 0 as no limit."""
        return max(0.001, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._end


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """The ends of topics at one time.

    Attributes:
        at: the time, by `time.monotonic`.
        counts: topic to its number of partitions, of the topics that exist.
        ends: the offset that the next record will get, of the partitions that have a leader.
        sizes: the mean size of the records in each partition's log, in bytes, of the logs that have any; None if the
            sizes could not be read, or were not asked for.
        refusal: why the sizes could not be read; None if they were, or were not asked for.
    """

    at: float
    counts: Mapping[str, int]
    ends: KnownOffsets
    sizes: Mapping[Partition, float] | None = None
    refusal: str | None = None


class OffsetReader(Protocol):
    """One client's connections to a cluster, for one reading. Every method may raise the client's errors."""

    def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """The partition counts of the topics that exist. Each call asks the cluster for its metadata."""
        ...

    def committed(self, group_id: str, partitions: Sequence[Partition]) -> KnownOffsets:
        """The commits of the group; a partition without one is left out, or has a negative offset."""
        ...

    def next_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        """The offsets that the next records of the partitions will get."""
        ...

    def first_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        """The offsets of the first records that are still there."""
        ...


class ClusterLagSource(ABC):
    """A `LagSource` that reads a live cluster with one of the clients; the client's own class documents the arguments.

    Raises:
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """

    # The errors of the client, which become a `LagError`. Any other error is a defect of this package, and is raised
    # unchanged.
    _errors: tuple[type[Exception], ...]

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        reset: str = "latest",
        isolation_level: str = "read_uncommitted",
        timeout: float = 5.0,
    ) -> None:
        check_reading(isolation_level, timeout)
        self._config = dict(config)
        self._reset = reset
        self._isolation_level = isolation_level
        self._timeout = timeout

    @abstractmethod
    def _connect(self, deadline: Deadline) -> AbstractContextManager[OffsetReader]:
        """Makes a client, which is closed at the end."""

    @abstractmethod
    def _is_passing(self, error: Any) -> bool:
        """Whether an error of the client may pass by itself, so that another attempt is of use."""

    def lags(self, topics: Iterable[str], group_id: str) -> dict[str, list[int]]:
        """The lag of every partition of the topics that exist.

        Raises:
            LagError: no group is named, or a request failed or was late.
        """
        if not group_id:
            raise LagError("no group is named; give LagBasedAssignor the group_id whose commits count")
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        deadline = Deadline(self._timeout)
        try:
            with self._connect(deadline) as reader:
                return self._read(reader, wanted, group_id, deadline)
        except self._errors as error:
            raise LagError(f"the offsets of group {group_id!r} could not be read: {error!r}") from error

    def look(self, topics: Iterable[str], *, sizes: bool = False) -> TopicEnds:
        """The end offsets of the topics that exist.

        This takes one request for the partitions and, for each 10,000 partitions, one request to each of their leaders.

        Args:
            topics: their names.
            sizes: whether to ask for the sizes of the logs and the first offsets, too.

        Raises:
            LagError: a request failed or was late.
        """
        wanted = sorted(set(topics))
        deadline = Deadline(self._timeout)
        if not wanted:
            return TopicEnds(time.monotonic(), {}, {})
        try:
            with self._connect(deadline) as reader:
                return self._look(reader, wanted, sizes, deadline)
        except self._errors as error:
            raise LagError(f"the end offsets could not be read: {error!r}") from error

    def _look(self, reader: OffsetReader, topics: list[str], sizes: bool, deadline: Deadline) -> TopicEnds:
        what = "the end offsets"
        while True:
            try:
                counts = {topic: count for topic, count in reader.partition_counts(topics).items() if count}
                partitions = [(topic, number) for topic, count in counts.items() for number in range(count)]
                ends, at = self._in_batches(reader.next_offsets, partitions, deadline, what), time.monotonic()
                break
            except self._errors as error:
                if not self._is_passing(error) or deadline.left <= _PAUSE:
                    raise
            time.sleep(_PAUSE)
        if not sizes:
            return TopicEnds(at, counts, ends)
        log_bytes = getattr(reader, "log_bytes", None)
        if log_bytes is None:
            return TopicEnds(at, counts, ends, None, "this client does not ask for them (DescribeLogDirs)")
        try:
            logs = log_bytes(counts)
        except self._errors as error:
            return TopicEnds(at, counts, ends, None, repr(error))
        if not logs and ends:
            # To a user without this ACL, brokers return an empty answer and no error.
            why = "no broker says the size of any log; asking takes the ACL Describe on the cluster"
            return TopicEnds(at, counts, ends, None, why)
        begins = self._in_batches(reader.first_offsets, partitions, deadline, what)
        known = {
            each: logs[each] / (ends[each] - begins[each])
            for each in logs
            if each in ends and each in begins and ends[each] > begins[each]
        }
        return TopicEnds(at, counts, ends, known)

    def _read(self, reader: OffsetReader, topics: list[str], group_id: str, deadline: Deadline) -> dict[str, list[int]]:
        reason: Exception | None = None
        expected: tuple[type[Exception], ...] = (LagError, *self._errors)
        while True:
            try:
                return self._attempt(reader, topics, group_id, deadline)
            except expected as error:
                # The error of an earlier attempt explains more than this timeout.
                if isinstance(error, TimeoutError) and reason is not None:
                    raise reason from None
                # A LagError: an offset is missing, since a partition has no leader for now.
                if not (isinstance(error, LagError) or self._is_passing(error)) or deadline.left <= _PAUSE:
                    raise
                reason = error
            time.sleep(_PAUSE)

    def _attempt(
        self, reader: OffsetReader, topics: list[str], group_id: str, deadline: Deadline
    ) -> dict[str, list[int]]:
        what = f"the offsets of group {group_id!r}"
        counts = {topic: count for topic, count in reader.partition_counts(topics).items() if count}
        partitions = [(topic, number) for topic, count in counts.items() for number in range(count)]
        committed = self._in_batches(lambda some: reader.committed(group_id, some), partitions, deadline, what)
        end = self._in_batches(reader.next_offsets, partitions, deadline, what)
        begin: KnownOffsets = {}
        # With "latest" a group without a commit starts at the end, so that no lag depends on the first offset.
        if self._reset.lower() != "latest":
            uncommitted = [each for each in partitions if each not in committed]
            begin = self._in_batches(reader.first_offsets, uncommitted, deadline, what)
        return lags_of(counts, begin=begin, end=end, committed=committed, reset=self._reset)

    def _in_batches(
        self,
        question: Callable[[Sequence[Partition]], KnownOffsets],
        partitions: Sequence[Partition],
        deadline: Deadline,
        what: str,
    ) -> dict[Partition, int]:
        """The offsets that the answers to one question have, asked in batches. `what` is their name in the error.

        Raises:
            LagError: the deadline is over before the last batch.
        """
        found: dict[Partition, int] = {}
        for start in range(0, len(partitions), _PARTITIONS_AT_ONCE):
            if deadline.is_over:
                raise LagError(f"{what} could not be read within {self._timeout:g} s")
            answer = question(partitions[start : start + _PARTITIONS_AT_ONCE])
            # A negative offset means none. At its timeout librdkafka returns one, too, instead of an error.
            found |= {partition: offset for partition, offset in answer.items() if offset >= 0}
        return found
