"""Commits and committed offsets in confluent-kafka's types: arguments, outcomes and errors."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, TopicPartition

from kafka_assignors.clients.confluent import times
from kafka_assignors.member.data_path import CommitOutcome, Partition, Position, by_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import confluent_kafka

    from kafka_assignors.member.commits import CommittedOffsets

__all__ = [
    "Outcomes",
    "as_partitions",
    "commit_failed",
    "committed_as_the_client",
    "of_message",
    "of_offsets",
    "positions_of",
]

_NO_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION)
# librdkafka's offset of a partition that is to start at its commit; explicit ones are greater.
_STORED = OFFSET_INVALID + 1


@functools.total_ordering
class _Outcome(TopicPartition):
    """A partition with an error of its own. `TopicPartition` takes none, and its comparisons accept no subclass."""

    error: KafkaError | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicPartition) and (self.topic, self.partition) == (other.topic, other.partition)

    def __lt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) < (other.topic, other.partition)

    __hash__ = TopicPartition.__hash__

    def __str__(self) -> str:
        return super().__str__().replace("error=None", f"error={self.error}")

    __repr__ = __str__


class Outcomes:
    """The outcomes of commits as librdkafka reports them.

    Args:
        consumer: the consumer, which is asked for the partitions of a topic.
        on_commit: the user's callback.
    """

    def __init__(self, consumer: confluent_kafka.Consumer, on_commit: Callable[..., object] | None) -> None:
        self._consumer = consumer
        self._on_commit = on_commit

    def tell(self, outcome: CommitOutcome) -> None:
        """Calls `on_commit`."""
        if self._on_commit is not None:
            self._on_commit(*self._of(outcome))

    def tell_of_nothing(self, partitions: Iterable[Partition]) -> None:
        """Calls `on_commit` for partitions that have no offset to commit."""
        if self._on_commit is not None:
            self._on_commit(KafkaError(KafkaError._NO_OFFSET), [TopicPartition(*each) for each in sorted(partitions)])

    def returned(self, outcome: CommitOutcome | None) -> list[TopicPartition]:
        """The outcome of a synchronous commit: each partition with its own error, if it has one.

        Raises:
            KafkaException: nothing was committed.
        """
        if outcome is None:
            raise commit_failed(KafkaError._TIMED_OUT, "the membership did not answer")
        error, partitions = self._of(outcome)
        if error is not None:
            raise commit_failed(error.code(), error.str())
        return partitions

    def _of(self, outcome: CommitOutcome) -> tuple[KafkaError | None, list[TopicPartition]]:
        asked = outcome.asked
        if outcome.error_code != 0:
            found = [_result(each, position, 0) for each, position in sorted(asked.items())]
            return KafkaError(outcome.error_code), found
        codes = dict(outcome.refused) | self._not_owned(outcome.dropped)
        found = [_result(each, position, codes.get(each, 0)) for each, position in sorted(asked.items())]
        refused = [code for partition, code in codes.items() if partition in asked]
        if KafkaError.UNKNOWN_TOPIC_OR_PART in refused:
            # As in librdkafka, one partition that does not exist is an error of the whole commit.
            return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), found
        error = KafkaError(refused[-1]) if refused and len(refused) == len(asked) else None
        return error, found

    def _not_owned(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The errors of partitions that were not sent: they do not exist, or may belong to another member."""
        found: dict[Partition, int] = {}
        for topic, numbers in by_topic(partitions).items():
            there = self._partitions(topic)
            for number in numbers:
                missing = there is not None and number not in there
                code = KafkaError.UNKNOWN_TOPIC_OR_PART if missing else KafkaError._ASSIGNMENT_LOST
                found[topic, number] = code
        return found

    def _partitions(self, topic: str) -> frozenset[int] | None:
        """The partitions of a topic; None if no broker answers in time."""
        try:
            said = self._consumer.list_topics(topic, timeout=times.COMMIT_CHECK).topics[topic]
        except (KafkaException, KeyError):
            return None
        if said.error is None:
            return frozenset(said.partitions)
        return frozenset() if said.error.code() in _NO_TOPIC else None


def committed_as_the_client(partitions: list[TopicPartition], answer: CommittedOffsets | None) -> list[TopicPartition]:
    """Committed offsets with their metadata, in the order in which they were asked for.

    Raises:
        KafkaException: no answer came in time, or it is an error.
    """
    code = KafkaError._TIMED_OUT if answer is None else answer.error_code
    if code == KafkaError.REQUEST_TIMED_OUT:
        code = KafkaError._TIMED_OUT
    if answer is None or code != 0:
        raise KafkaException(KafkaError(code, f"Failed to get committed offsets: {KafkaError(code).str()}"))
    found: dict[Partition, TopicPartition] = {}
    for partition, (offset, epoch, metadata) in answer.positions.items():
        known = OFFSET_INVALID if offset < 0 else offset
        found[partition] = _result(partition, Position(known, epoch, _text(metadata)), answer.refused.get(partition, 0))
    return [found[each] for each in as_partitions(partitions)]


# The arguments of the client's methods.


def checked(partitions: Any) -> list[TopicPartition]:
    """The argument, if it is a list of partitions.

    Raises:
        TypeError: the argument is no such list.
    """
    if not isinstance(partitions, list) or not all(isinstance(each, TopicPartition) for each in partitions):
        raise TypeError("requires list of TopicPartition")
    return partitions


def as_partitions(partitions: Iterable[TopicPartition]) -> list[Partition]:
    """Topics and numbers, in the same order."""
    return [(each.topic, each.partition) for each in partitions]


def positions_of(partitions: Iterable[TopicPartition]) -> dict[Partition, Position | None]:
    """The positions at which the application wants to start; None for the group's commit. Logical offsets are kept."""
    return {(each.topic, each.partition): position_of(each) if each.offset > _STORED else None for each in partitions}


def position_of(each: TopicPartition) -> Position:
    """The offset, with its leader epoch and metadata."""
    return Position(each.offset, -1 if each.leader_epoch is None else each.leader_epoch, each.metadata)


def of_message(message: Any) -> dict[Partition, Position]:
    """The offset after a message, to be committed."""
    if not isinstance(message, Message):
        raise TypeError("expected confluent_kafka.cimpl.Message")
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if message.error() is not None or topic is None or partition is None or offset is None:
        raise commit_failed(KafkaError._INVALID_ARG, "the message is an error")
    epoch = message.leader_epoch()
    return {(topic, partition): Position(offset + 1, -1 if epoch is None else epoch)}


def of_offsets(offsets: Any) -> dict[Partition, Position]:
    """The partitions of a list that have an offset, to be committed."""
    return {(each.topic, each.partition): position_of(each) for each in checked(offsets) if each.offset >= 0}


def _text(metadata: str | None) -> str | None:
    """Metadata as it was committed. confluent-kafka adds a NUL to every text; an empty text is none."""
    return metadata.partition("\0")[0] if metadata else None


def topic_partition(partition: Partition, position: Position) -> TopicPartition:
    """The client's object. A part that is not known is left out, since the constructor takes no None for it."""
    return TopicPartition(*partition, position.offset, **_further(position))


def _further(position: Position) -> dict[str, Any]:
    further: dict[str, Any] = {}
    if position.leader_epoch >= 0:
        further["leader_epoch"] = position.leader_epoch
    if position.metadata is not None:
        further["metadata"] = position.metadata
    return further


def _result(partition: Partition, position: Position, code: int) -> TopicPartition:
    if code == 0:
        return topic_partition(partition, position)
    topic, number = partition
    outcome = _Outcome(topic=topic, partition=number, offset=position.offset, **_further(position))
    outcome.error = KafkaError(code)
    return outcome


def commit_failed(code: int, reason: str) -> KafkaException:
    """The client's error of a commit."""
    return KafkaException(KafkaError(code, f"Commit failed: {reason}"))
