"""A member's commits and committed offsets. The turn asks, and the membership answers."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kafka_assignors.member import times
from kafka_assignors.member.data_path import CommitOutcome, Partition, Position, by_topic
from kafka_assignors.member.membership import Reply
from kafka_assignors.member.turn import LoopReply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.member.assigned_partitions import AssignedPartitions
    from kafka_assignors.member.config import MemberConfig
    from kafka_assignors.member.data_path import DataPath
    from kafka_assignors.member.membership import Answered, MemberThread

__all__ = ["Commits", "CommittedOffsets"]


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The group's committed offsets.

    Attributes:
        error_code: of the whole request; then there are no offsets.
        positions: of every partition that was asked for, with its metadata. An offset of -1 is none.
        refused: error codes of single partitions.
    """

    error_code: int
    positions: Mapping[Partition, Position]
    refused: Mapping[Partition, int]


class Commits:
    """The commits of one consumer.

    Every method that waits for an answer exists twice: for a thread, and as a coroutine that does not block the loop.

    Attributes:
        member: the member that commits; None before the first subscription.
    """

    def __init__(self, path: DataPath, assigned: AssignedPartitions, config: MemberConfig) -> None:
        self._path = path
        self._assigned = assigned
        self._config = config
        self.member: MemberThread | None = None
        self._asked: dict[int, tuple[dict[Partition, Position], Any]] = {}
        self._wanted: dict[int, set[Partition]] = {}

    def send(self, offsets: Mapping[Partition, Position], context: Any = None, timeout: float | None = None) -> None:
        """Commits without waiting; `DataPath.commit_done` gets the outcome, with this context.

        Args:
            offsets: the offsets to commit; nothing happens if there are none.
            context: any object of the client.
            timeout: how many seconds to try; the timeout of requests by default.
        """
        if offsets and self.member is not None:
            ident = self.member.commit(_wire(offsets), self._timeout if timeout is None else timeout, None)
            self._asked[ident] = dict(offsets), context

    def send_and_wait(
        self, offsets: Mapping[Partition, Position], timeout: float | None = None
    ) -> CommitOutcome | None:
        """Commits, and waits for the outcome on this thread.

        Args:
            offsets: the offsets to commit.
            timeout: how many seconds to try; the timeout of requests by default.

        Returns:
            None if the membership did not answer.
        """
        reply, patience = Reply(), self._timeout if timeout is None else timeout
        self._commit(offsets, patience, reply)
        return self._outcome(offsets, reply.wait(patience + times.REPLY_GRACE))

    async def send_and_wait_on_loop(
        self, offsets: Mapping[Partition, Position], timeout: float | None = None
    ) -> CommitOutcome | None:
        """As `send_and_wait`, without blocking the loop."""
        reply, patience = LoopReply(), self._timeout if timeout is None else timeout
        self._commit(offsets, patience, reply)
        return self._outcome(offsets, await reply.wait(patience + times.REPLY_GRACE))

    def _commit(self, offsets: Mapping[Partition, Position], timeout: float, reply: Answered) -> None:
        assert self.member is not None
        self.member.commit(_wire(offsets), timeout, reply)

    def done(self, answer: Mapping[str, Any]) -> None:
        """Takes an answer to `send`."""
        asked, context = self._asked.pop(answer["id"], ({}, None))
        outcome = self._outcome(asked, answer, context)
        assert outcome is not None
        self._path.commit_done(outcome)

    def _outcome(
        self, asked: Mapping[Partition, Position], answer: Mapping[str, Any] | None, context: Any = None
    ) -> CommitOutcome | None:
        if answer is None:
            return None
        if answer["error_code"] != 0:
            return CommitOutcome(MappingProxyType(dict(asked)), answer["error_code"], context=context)
        refused = {(topic, number): code for topic, number, code in answer["partitions"] if code != 0}
        dropped = frozenset(answer["dropped"])
        for partition, position in asked.items():
            if partition not in refused and partition not in dropped:
                self._assigned.committed(partition, position.offset)
        return CommitOutcome(MappingProxyType(dict(asked)), 0, MappingProxyType(refused), dropped, context)

    @property
    def _timeout(self) -> float:
        return self._config.client.request_timeout

    # Committed offsets.

    def committed(
        self, member: MemberThread, partitions: Iterable[Partition], timeout: float | None
    ) -> CommittedOffsets | None:
        """The group's committed offsets, asked for and waited for on this thread.

        Args:
            member: the member that asks. It need not be in its group.
            partitions: the partitions.
            timeout: in seconds; no limit if it is None or negative.

        Returns:
            None if the membership did not answer.
        """
        reply, patience = Reply(), _patience(timeout)
        member.fetch(by_topic(set(partitions)), patience, reply)
        return _committed(reply.wait(patience + times.REPLY_GRACE))

    async def committed_on_loop(
        self, member: MemberThread, partitions: Iterable[Partition], timeout: float | None
    ) -> CommittedOffsets | None:
        """As `committed`, without blocking the loop."""
        reply, patience = LoopReply(), _patience(timeout)
        member.fetch(by_topic(set(partitions)), patience, reply)
        return _committed(await reply.wait(patience + times.REPLY_GRACE))

    def fetch(self, partitions: Iterable[Partition]) -> None:
        """Asks for the committed offsets at which to start. The answer comes through the mailbox."""
        assert self.member is not None
        wanted = set(partitions)
        for earlier in self._wanted.values():
            # The earlier answer may be too old: the partition was revoked and assigned again, and its owner in between
            # may have committed.
            earlier -= wanted
        ident = self.member.fetch(by_topic(wanted), self._timeout)
        self._wanted[ident] = wanted

    def fetched(self, ident: int) -> set[Partition]:
        """The partitions that a request asked for."""
        return self._wanted.pop(ident, set())


def _wire(offsets: Mapping[Partition, Position]) -> list[tuple[str, int, int, int, str | None]]:
    return [(*partition, *position) for partition, position in sorted(offsets.items())]


def _patience(timeout: float | None) -> float:
    return times.NO_LIMIT if timeout is None or timeout < 0 else min(float(timeout), times.NO_LIMIT)


def _committed(answer: Mapping[str, Any] | None) -> CommittedOffsets | None:
    if answer is None:
        return None
    positions: dict[Partition, Position] = {}
    refused: dict[Partition, int] = {}
    for topic, number, offset, epoch, metadata, code in answer["offsets"]:
        positions[topic, number] = Position(offset, epoch, metadata)
        if code != 0:
            refused[topic, number] = code
    return CommittedOffsets(answer["error_code"], positions, refused)
