"""A member's commits and committed offsets: asked for in the application's thread, answered by the membership."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kafka_assignors.clients.confluent._share import Position
from kafka_assignors.clients.confluent._strategies import by_topic
from kafka_assignors.clients.confluent.membership import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.clients.confluent._conf import ConsumerConfig
    from kafka_assignors.clients.confluent._share import Share
    from kafka_assignors.clients.confluent._strategies import Partition
    from kafka_assignors.clients.confluent.membership import Mailbox, Member

__all__ = ["Commits"]

# Beyond what the membership itself takes for an answer.
_GRACE = 5.0


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

    def __init__(self, share: Share, mailbox: Mailbox, config: ConsumerConfig) -> None:
        self._share = share
        self._mailbox = mailbox
        self._config = config
        self.member: Member | None = None
        self._asked: dict[int, dict[Partition, Position]] = {}
        self._wanted: dict[int, set[Partition]] = {}

    def send(self, offsets: Mapping[Partition, Position]) -> None:
        """Commits without waiting; `on_commit` hears of it."""
        if offsets and self.member is not None:
            ident = self.member.commit(_wire(offsets), self._config.client.request_timeout, None)
            self._asked[ident] = dict(offsets)

    def nothing(self, partitions: Iterable[Partition]) -> None:
        """There was nothing to commit, which `on_commit` hears of as well."""
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
                _told(each, position, 0) for each, position in sorted(asked.items())
            ]
        codes = {(topic, partition): code for topic, partition, code in answer["partitions"]}
        codes |= dict.fromkeys(answer["dropped"], KafkaError._ASSIGNMENT_LOST)
        for partition, position in asked.items():
            if codes.get(partition, 0) == 0:
                self._share.committed(partition, position.offset)
        outcome = [_told(each, position, codes.get(each, 0)) for each, position in sorted(asked.items())]
        refused = [code for partition, code in codes.items() if code != 0 and partition in asked]
        error = KafkaError(refused[-1]) if refused and len(refused) == len(asked) else None
        return error, outcome

    # Committed offsets.

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


def _told(partition: Partition, position: Position, code: int) -> TopicPartition:
    epoch: dict[str, Any] = {} if position.leader_epoch < 0 else {"leader_epoch": position.leader_epoch}
    if code == 0:
        return TopicPartition(*partition, position.offset, **epoch)
    outcome = _Outcome(*partition, position.offset, **epoch)
    outcome.error = KafkaError(code)
    return outcome


def _failed(code: int, reason: str) -> KafkaException:
    return KafkaException(KafkaError(code, f"Commit failed: {reason}"))
