"""What lag is, and where it comes from.

The lag of a partition is the number of records that a group has still to read. Here is the formula
([`partition_lag`][kafka_assignors.lag.partition_lag]), the interface of whatever knows the offsets
([`LagSource`][kafka_assignors.lag.LagSource]; a live one is
[`ConfluentLagSource`][kafka_assignors.lag.ConfluentLagSource]), and what a plan means in terms of lag
([`lag_by_member`][kafka_assignors.lag.lag_by_member]).

>>> partition_lag(begin=1_000, end=9_000, committed=6_500, reset="latest")
2500
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Protocol, TypeAlias, runtime_checkable

from kafka_assignors.errors import GroupError, GroupTypeError, LagError, MissingDependencyError, OptionError
from kafka_assignors.group import Plan

__all__ = [
    "ConfluentLagSource",
    "Inquiry",
    "LagFunction",
    "LagSource",
    "Lags",
    "check_reading",
    "check_source",
    "gather",
    "lag_by_member",
    "lags_of",
    "partition_lag",
]

Lags: TypeAlias = Mapping[str, Sequence[int]]
"""Topic to the lag of each partition, by number."""


@runtime_checkable
class LagSource(Protocol):
    """Whatever can tell the lags of a group."""

    def lags(self, topics: Iterable[str], group_id: str) -> Lags:
        """The lag of every partition of these topics, by topic and partition number.

        Args:
            topics: names of topics that exist.
            group_id: the group; empty if it is not known.

        Any exception means that the lags cannot be told. A leader calls this on a thread of its own, never on that of
        its client.
        """
        ...


LagFunction: TypeAlias = Callable[[Iterable[str], str], Lags]
"""A function with the arguments of `LagSource.lags`."""


_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")


def _offset(value: object, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise GroupTypeError(f"{what} is of type {type(value).__name__}; give an offset, or None")
    return operator.index(value)


def partition_lag(begin: int | None, end: int | None, committed: int | None, reset: str = "latest") -> int:
    """The lag of one partition (KAFKA-5337).

    Args:
        begin: the offset of the first record that is still there; None, if unknown, counts as 0.
        end: the offset that the next record will get; None, if unknown, counts as 0: no lag.
        committed: the group's committed offset; None, or a negative number, if there is none.
        reset: the consumer's `auto_offset_reset`, in any letter case. It counts only without a commit: with
            `"latest"` the group would start at the end, with everything else at the beginning.

    Returns:
        The number of offsets between; never negative. Offsets whose records have been deleted, below the beginning or
        by compaction, count where the group has not passed them, as they do in other tools.

    Raises:
        GroupTypeError: an offset that is not an integer.

    >>> partition_lag(1_000, 9_000, 9_500)
    0
    >>> partition_lag(1_000, 9_000, None, "latest"), partition_lag(1_000, 9_000, None, "earliest")
    (0, 8000)
    """
    first = 0 if begin is None else _offset(begin, "begin")
    last = 0 if end is None else _offset(end, "end")
    position = -1 if committed is None else _offset(committed, "committed")
    if position < 0:
        if not isinstance(reset, str):
            raise GroupTypeError(f"reset is of type {type(reset).__name__}; give the consumer's auto_offset_reset")
        position = last if reset.lower() == "latest" else first
    return max(0, last - position)


def lag_by_member(plan: Mapping[str, Mapping[str, Iterable[int]]], lags: Lags) -> dict[str, int]:
    """Each member's total lag in any plan, of any strategy. O(partitions).

    Args:
        plan: a `Plan`, or any mapping of member to topic to partition numbers.
        lags: topic to the lag of each partition, by number.

    Raises:
        GroupError: a partition that the plan has and `lags` lacks.

    >>> from kafka_assignors import Group, Member, RangeAssignor
    >>> group = Group({"t0": 3}, [Member("C0", ["t0"]), Member("C1", ["t0"])])
    >>> lag_by_member(RangeAssignor().assign(group), {"t0": [100_000, 50_000, 60_000]})
    {'C0': 150000, 'C1': 60000}
    """
    shares = plan.assignment if isinstance(plan, Plan) else plan
    totals: dict[str, int] = {}
    for member_id, topics in shares.items():
        total = 0
        for topic, partitions in topics.items():
            if topic not in lags:
                raise GroupError(
                    f"lags has no topic {topic!r}, of which member {member_id!r} has partitions; give them"
                )
            of_topic = lags[topic]
            for partition in partitions:
                if not 0 <= partition < len(of_topic):
                    raise GroupError(
                        f"lags[{topic!r}] has {len(of_topic)} lags, but member {member_id!r} has partition "
                        f"{partition}; give one lag per partition"
                    )
                total += of_topic[partition]
        totals[member_id] = total
    return totals


class Inquiry:
    """A question to a source of lags, asked at once on a thread of its own.

    The thread is left behind if nobody waits for it any longer: its answer is no longer of use then.

    Args:
        source: a `LagSource`, or a function with the arguments of its method.
        topics: what is asked for.
        group_id: empty if it is not known.

    Attributes:
        topics: what was asked for.
        future: done when the source has answered or failed. It cannot be cancelled.
    """

    def __init__(self, source: LagSource | LagFunction, topics: Iterable[str], group_id: str) -> None:
        self.topics = tuple(topics)
        self.future: Future[Lags] = Future()
        self.future.set_running_or_notify_cancel()
        self._started = time.monotonic()
        ask = source.lags if isinstance(source, LagSource) else source
        threading.Thread(target=self._run, args=(ask, group_id), name="kafka-assignors-lag", daemon=True).start()

    def _run(self, ask: LagFunction, group_id: str) -> None:
        try:
            self.future.set_result(ask(self.topics, group_id))
        except BaseException as error:  # whatever it is, it is for those who wait
            self.future.set_exception(error)

    def left(self, deadline: float) -> float:
        """How many seconds are left of a deadline that began with the question; 0 at least."""
        return max(0.0, self._started + deadline - time.monotonic())

    def answer(self, deadline: float) -> dict[str, Sequence[int]]:
        """The lags of the topics, at the latest when the deadline, which began with the question, is over.

        Args:
            deadline: in seconds.

        Raises:
            LagError: the source failed, was late, or answered with something else than lags; the message says which.
        """
        wait([self.future], min(self.left(deadline), threading.TIMEOUT_MAX))
        if not self.future.done():
            raise LagError(f"the lag source did not answer within {deadline:g} s")
        error = self.future.exception()
        if error is not None:
            reason = str(error) if isinstance(error, LagError) else repr(error)
            raise LagError(f"the lag source failed: {reason}") from error
        lags = self.future.result()
        if not isinstance(lags, Mapping):
            raise LagError(f"the lag source answered with a {type(lags).__name__}; it must give topic to lags")
        return {topic: lags[topic] for topic in self.topics if topic in lags}


def gather(
    source: Lags | LagSource | LagFunction, topics: Sequence[str], group_id: str, deadline: float
) -> dict[str, Sequence[int]]:
    """The lags of these topics from a source of any kind, at the latest when the deadline is over.

    A mapping is looked up at once; anything else is asked with an `Inquiry`.

    Args:
        source: a mapping, a `LagSource`, or a function with the arguments of its method.
        topics: what is asked for.
        group_id: empty if it is not known.
        deadline: in seconds.

    Raises:
        LagError: the source failed, was late, or answered with something else than lags; the message says which.
    """
    if isinstance(source, Mapping):
        return {topic: source[topic] for topic in topics if topic in source}
    return Inquiry(source, topics, group_id).answer(deadline)


Offsets: TypeAlias = Mapping[tuple[str, int], int]
"""Topic and partition number to an offset; what is not known is missing."""


def lags_of(
    counts: Mapping[str, int], *, begin: Offsets, end: Offsets, committed: Offsets, reset: str
) -> dict[str, list[int]]:
    """The lags of whole topics, from what a cluster says. O(partitions).

    Args:
        counts: topic to its number of partitions.
        begin: the first offsets; needed only where there is no commit and `reset` is not `"latest"`.
        end: the offsets that the next records will get.
        committed: the group's commits; a negative offset is none.
        reset: the consumers' `auto_offset_reset`.

    Raises:
        LagError: an offset that is needed is missing.
    """
    lags: dict[str, list[int]] = {}
    latest = reset.lower() == "latest"
    for topic, count in counts.items():
        of_topic = lags[topic] = []
        for number in range(count):
            key = topic, number
            commit = committed.get(key, -1)
            if key not in end or (commit < 0 and not latest and key not in begin):
                raise LagError(f"partition {number} of {topic!r} has no leader that tells its offsets")
            of_topic.append(partition_lag(begin.get(key), end[key], commit, reset))
    return lags


def check_source(source: object) -> None:
    """Refuses what cannot be a source of lags.

    Raises:
        OptionError: it is neither a mapping, nor a `LagSource`, nor callable, nor None.
    """
    if source is None or isinstance(source, Mapping | LagSource) or callable(source):
        return
    raise OptionError(
        f"lags is of type {type(source).__name__}; give a mapping of topic to lags, a LagSource, or a function"
    )


def check_reading(isolation_level: object, timeout: float) -> None:
    """Refuses what no source can read a cluster with.

    Raises:
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """
    if not timeout > 0:
        raise OptionError(f"timeout is {timeout!r}; give a positive number of seconds")
    if isolation_level not in _ISOLATION_LEVELS:
        known = ", ".join(map(repr, _ISOLATION_LEVELS))
        raise OptionError(f"isolation_level is {isolation_level!r}; give one of {known}")


class ConfluentLagSource:
    """The lags of a live cluster, through the admin client of confluent-kafka: a `LagSource`.

    Each time it is asked it makes a client of its own, which joins no group, and sends one request for each kind
    of question, whatever the number of topics: the partitions, and then, side by side, the committed offsets, the ends
    and, unless `reset` is `"latest"`, the beginnings. The client splits the last two by the brokers that lead.

    Args:
        config: settings of librdkafka, such as `{"bootstrap.servers": "localhost:9092"}`.
        reset: the consumers' `auto_offset_reset`, which counts for partitions without a commit.
        isolation_level: the consumers' own: `"read_committed"` ends where the first open transaction begins.
        timeout: how many seconds all requests together may take.

    Raises:
        MissingDependencyError: confluent-kafka is not installed.
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        reset: str = "latest",
        isolation_level: str = "read_uncommitted",
        timeout: float = 5.0,
    ) -> None:
        try:
            import confluent_kafka.admin
        except ImportError as error:
            raise MissingDependencyError(
                "kafka_assignors.lag.ConfluentLagSource needs confluent-kafka 2: pip install kafka-assignors[confluent]"
            ) from error
        check_reading(isolation_level, timeout)
        self._kafka: Any = confluent_kafka
        self._isolation = getattr(confluent_kafka.IsolationLevel, isolation_level.upper())
        self._config = dict(config)
        self._reset = reset
        self._timeout = timeout

    def lags(self, topics: Iterable[str], group_id: str) -> dict[str, list[int]]:
        """The lag of every partition of those of the topics that exist.

        Raises:
            LagError: no group is named, or a request failed or was late.
        """
        if not group_id:
            raise LagError("no group is named; give LagBasedAssignor the group_id whose commits count")
        late = time.monotonic() + self._timeout
        try:
            return self._lags(list(topics), group_id, lambda: max(0.001, late - time.monotonic()))
        except (self._kafka.KafkaException, TimeoutError) as error:
            raise LagError(f"the offsets of group {group_id!r} could not be read: {error!r}") from error

    def _lags(self, topics: list[str], group_id: str, left: Callable[[], float]) -> dict[str, list[int]]:
        admin = self._kafka.admin.AdminClient(self._config)
        known = admin.list_topics(timeout=left()).topics
        counts = {topic: len(known[topic].partitions) for topic in topics if topic in known}
        if not any(counts.values()):
            return {topic: [] for topic in counts}
        commits = admin.list_consumer_group_offsets(
            [self._kafka.ConsumerGroupTopicPartitions(group_id)], request_timeout=left()
        )
        latest = self._reset.lower() == "latest"
        ends = self._ask(admin, counts, self._kafka.admin.OffsetSpec.latest(), left())
        # Where the group starts at the end, nothing depends on the beginning.
        begins = {} if latest else self._ask(admin, counts, self._kafka.admin.OffsetSpec.earliest(), left())
        committed: dict[tuple[str, int], int] = {}
        for each in commits[group_id].result(left()).topic_partitions:
            if each.error is not None:
                raise self._kafka.KafkaException(each.error)
            committed[each.topic, each.partition] = each.offset
        end = {key: future.result(left()).offset for key, future in ends.items()}
        begin = {key: future.result(left()).offset for key, future in begins.items()}
        return lags_of(counts, begin=begin, end=end, committed=committed, reset=self._reset)

    def _ask(self, admin: Any, counts: Mapping[str, int], spec: Any, timeout: float) -> dict[tuple[str, int], Any]:
        asked = {
            self._kafka.TopicPartition(topic, number): spec
            for topic, count in counts.items()
            for number in range(count)
        }
        futures = admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=timeout)
        return {(each.topic, each.partition): future for each, future in futures.items()}
