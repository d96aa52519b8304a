"""A member's commits and committed offsets: asked for in the application's thread, answered by the membership."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, TopicPartition

from kafka_assignors.clients.confluent._share import Position
from kafka_assignors.clients.confluent._strategies import by_topic
from kafka_assignors.clients.confluent.membership import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import confluent_kafka

    from kafka_assignors.clients.confluent._conf import ConsumerConfig
    from kafka_assignors.clients.confluent._share import Share
    from kafka_assignors.clients.confluent._strategies import Partition
    from kafka_assignors.clients.confluent.membership import Mailbox, Member

__all__ = ["Commits"]

# Beyond what the membership itself takes for an answer.
_GRACE = 5.0
# Stands for no limit, in seconds: a lock can wait that long, and the core can count it.
_ENDLESS = 2_000_000.0
# How long to ask whether a partition exists whose commit was not sent.
_PATIENCE = 1.0
_NO_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION)


@functools.total_ordering
class _Outcome(TopicPartition):
    """A partition with an error of its own. confluent-kafka's takes none, and its comparisons take no subclass."""

    error: KafkaError | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicPartition) and (self.topic, self.partition) == (other.topic, other.partition)

    def __lt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) < (other.topic, other.partition)

    __hash__ = TopicPartition.__hash__

    def __str__(self) -> str:
        return super().__str__().replace("error=None", f"error={self.error}")

    __repr__ = __str__


class Commits:
    """The commits of one consumer.

    Attributes:
        member: who commits; None before the first subscription.
    """

    def __init__(
        self, consumer: confluent_kafka.Consumer, share: Share, mailbox: Mailbox, config: ConsumerConfig
    ) -> None:
        self._consumer = consumer
        self._share = share
        self._mailbox = mailbox
        self._config = config
        self.member: Member | None = None
        self._asked: dict[int, dict[Partition, Position]] = {}
        self._wanted: dict[int, set[Partition]] = {}

    def send(self, offsets: Mapping[Partition, Position]) -> None:
        """Commits without waiting; `on_commit` gets the result."""
        if offsets and self.member is not None:
            ident = self.member.commit(_wire(offsets), self._config.client.request_timeout, None)
            self._asked[ident] = dict(offsets)

    def nothing(self, partitions: Iterable[Partition]) -> None:
        """Reports to `on_commit` that there was nothing to commit."""
        self._mailbox.put(
            {"action": "commit-done", "id": 0, "error_code": KafkaError._NO_OFFSET, "partitions": sorted(partitions)}
        )

    def send_and_wait(self, offsets: Mapping[Partition, Position]) -> list[TopicPartition]:
        """Commits; returns each partition with its own outcome.

        Raises:
            KafkaException: nothing was committed.
        """
        assert self.member is not None
        timeout = self._config.client.request_timeout
        reply = Reply()
        self.member.commit(_wire(offsets), timeout, reply)
        answer = reply.wait(timeout + _GRACE)
        if answer is None:
            raise _failed(KafkaError._TIMED_OUT, "the membership did not answer")
        error, outcome = self._outcome(offsets, answer)
        if error is not None:
            raise _failed(error.code(), error.str())
        return outcome

    def done(self, answer: Mapping[str, Any]) -> None:
        """An answer to `send`: it counts, and `on_commit` is told."""
        if answer["id"] == 0:
            error: KafkaError | None = KafkaError(answer["error_code"])
            outcome = [TopicPartition(*each) for each in answer["partitions"]]
        else:
            error, outcome = self._outcome(self._asked.pop(answer["id"], {}), answer)
        if self._config.on_commit is not None:
            self._config.on_commit(error, outcome)

    def _outcome(
        self, asked: Mapping[Partition, Position], answer: Mapping[str, Any]
    ) -> tuple[KafkaError | None, list[TopicPartition]]:
        if answer["error_code"] != 0:
            return KafkaError(answer["error_code"]), [
                _result(each, position, 0) for each, position in sorted(asked.items())
            ]
        codes = {(topic, partition): code for topic, partition, code in answer["partitions"]}
        codes |= self._not_owned(answer["dropped"])
        for partition, position in asked.items():
            if codes.get(partition, 0) == 0:
                self._share.committed(partition, position.offset)
        outcome = [_result(each, position, codes.get(each, 0)) for each, position in sorted(asked.items())]
        refused = [code for partition, code in codes.items() if code != 0 and partition in asked]
        if KafkaError.UNKNOWN_TOPIC_OR_PART in refused:
            # As librdkafka: one partition that does not exist is an error of the whole commit.
            return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), outcome
        error = KafkaError(refused[-1]) if refused and len(refused) == len(asked) else None
        return error, outcome

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
            said = self._consumer.list_topics(topic, timeout=_PATIENCE).topics[topic]
        except (KafkaException, KeyError):
            return None
        if said.error is None:
            return frozenset(said.partitions)
        return frozenset() if said.error.code() in _NO_TOPIC else None

    # Committed offsets.

    def committed(self, member: Member, partitions: Any, timeout: float | None) -> list[TopicPartition]:
        """The group's committed offsets with their metadata, in the order in which they were asked for.

        Args:
            member: who asks; it need not be in its group.
            partitions: whose.
            timeout: in seconds; None or less than 0 for as long as it takes.

        Raises:
            KafkaException: nobody answered in time, or the answer is an error.
        """
        if not isinstance(partitions, list) or not all(isinstance(each, TopicPartition) for each in partitions):
            raise TypeError("requires list of TopicPartition")
        patience = _ENDLESS if timeout is None or timeout < 0 else min(float(timeout), _ENDLESS)
        reply = Reply()
        wanted = {(each.topic, each.partition) for each in partitions}
        member.fetch(by_topic(wanted), patience, reply)
        answer = reply.wait(patience + _GRACE)
        code = KafkaError._TIMED_OUT if answer is None else answer["error_code"]
        if code == KafkaError.REQUEST_TIMED_OUT:
            code = KafkaError._TIMED_OUT
        if answer is None or code != 0:
            raise KafkaException(KafkaError(code, f"Failed to get committed offsets: {KafkaError(code).str()}"))
        found: dict[Partition, TopicPartition] = {}
        for topic, number, offset, epoch, metadata, refused in answer["offsets"]:
            known = OFFSET_INVALID if offset < 0 else offset
            found[topic, number] = _result((topic, number), Position(known, epoch, _text(metadata)), refused)
        return [found[each.topic, each.partition] for each in partitions]

    def fetch(self, partitions: Iterable[Partition]) -> None:
        """Asks from where to read; the answer comes through the mailbox."""
        assert self.member is not None
        wanted = set(partitions)
        for earlier in self._wanted.values():
            # Asked before the partition went and came again: others may have committed since that answer was given.
            earlier -= wanted
        ident = self.member.fetch(by_topic(wanted), self._config.client.request_timeout)
        self._wanted[ident] = wanted

    def fetched(self, ident: int) -> set[Partition]:
        """What was asked for."""
        return self._wanted.pop(ident, set())

    # What the application gives.

    def of_message(self, message: Any) -> dict[Partition, Position]:
        """The offset behind a message."""
        if not isinstance(message, Message):
            raise TypeError("expected confluent_kafka.cimpl.Message")
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if message.error() is not None or topic is None or partition is None or offset is None:
            raise _failed(KafkaError._INVALID_ARG, "the message is an error")
        epoch = message.leader_epoch()
        return {(topic, partition): Position(offset + 1, -1 if epoch is None else epoch)}

    def of_offsets(self, offsets: Any) -> dict[Partition, Position]:
        """Those of a list that have an offset."""
        if not isinstance(offsets, list) or not all(isinstance(each, TopicPartition) for each in offsets):
            raise TypeError("requires list of TopicPartition")
        return {
            (each.topic, each.partition): Position(
                each.offset, -1 if each.leader_epoch is None else each.leader_epoch, each.metadata
            )
            for each in offsets
            if each.offset >= 0
        }


def _wire(offsets: Mapping[Partition, Position]) -> list[tuple[str, int, int, int, str | None]]:
    return [(*partition, *position) for partition, position in sorted(offsets.items())]


def _text(metadata: str | None) -> str | None:
    """Metadata as it was committed: an empty text stands for none, and confluent-kafka adds a NUL to every text."""
    return metadata.partition("\0")[0] if metadata else None


def _result(partition: Partition, position: Position, code: int) -> TopicPartition:
    further: dict[str, Any] = {}
    if position.leader_epoch >= 0:
        further["leader_epoch"] = position.leader_epoch
    if position.metadata is not None:
        further["metadata"] = position.metadata
    topic, number = partition
    if code == 0:
        return TopicPartition(topic=topic, partition=number, offset=position.offset, **further)
    outcome = _Outcome(topic=topic, partition=number, offset=position.offset, **further)
    outcome.error = KafkaError(code)
    return outcome


def _failed(code: int, reason: str) -> KafkaException:
    return KafkaException(KafkaError(code, f"Commit failed: {reason}"))
