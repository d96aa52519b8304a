"""Commits in kafka-python's types: arguments and outcomes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka import TopicPartition
from kafka.future import Future
from kafka.structs import OffsetAndMetadata

from kafka_assignors.clients.kafka_python.errors import CHECKS_BY_ASSERTION, commit_error
from kafka_assignors.member.data_path import CommitOutcome, Partition, Position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.clients.kafka_python.config import ConsumerConfig

__all__ = ["Asked", "Outcomes", "offset_and_metadata", "offsets_of", "positions_of"]

logger = logging.getLogger("kafka_assignors")


@dataclass(frozen=True, slots=True)
class Asked:
    """A commit that the application has asked for.

    Attributes:
        offsets: in the client's types.
        callback: the application's, or None.
        future: the future that the application has received.
        outcome: empty until the commit ends; then its outcome alone.
    """

    offsets: Mapping[Any, Any]
    callback: Callable[..., object] | None = None
    future: Any = field(default_factory=Future)
    outcome: list[CommitOutcome] = field(default_factory=list)


class Outcomes:
    """The outcomes of commits as the client reports them."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._callback = config.default_offset_commit_callback
        self._group_id = config.group_id

    def tell(self, outcome: CommitOutcome) -> None:
        """Ends the future, and calls the callback. A commit on the interval has the default callback."""
        asked, error = outcome.context, commit_error(outcome)
        if not isinstance(asked, Asked):
            asked = Asked(offsets_of(outcome.asked))
            if error is not None:
                logger.warning("group %r: automatic commit of offsets failed: %s", self._group_id, error)
        asked.outcome.append(outcome)
        self.end(asked, error)

    def end(self, asked: Asked, error: Exception | None) -> None:
        """Ends a commit, which need not have been sent."""
        if error is None:
            asked.future.success(None)
        else:
            asked.future.failure(error)
        (self._callback if asked.callback is None else asked.callback)(asked.offsets, error)


def offset_and_metadata(position: Position) -> Any:
    """The client's object. It has a leader epoch from version 2.1 on."""
    epoch = (position.leader_epoch,) if hasattr(OffsetAndMetadata, "leader_epoch") else ()
    return OffsetAndMetadata(position.offset, position.metadata or "", *epoch)


def offsets_of(positions: Mapping[Partition, Position]) -> dict[TopicPartition, Any]:
    """The argument of a commit, as the client would make it."""
    return {TopicPartition(*partition): offset_and_metadata(at) for partition, at in positions.items()}


def positions_of(offsets: Any) -> dict[Partition, Position]:
    """The argument of a commit.

    Raises:
        TypeError: it is no dictionary of the client's types. In version 2 an AssertionError, as of the client.
    """
    if not all(isinstance(each, TopicPartition) for each in offsets) or not all(
        isinstance(each, OffsetAndMetadata) for each in offsets.values()
    ):
        reason = "offsets must be dict[TopicPartition, OffsetAndMetadata]"
        raise AssertionError(reason) if CHECKS_BY_ASSERTION else TypeError(reason)
    return {tuple(each): _position(at) for each, at in offsets.items()}


def _position(given: Any) -> Position:
    epoch = getattr(given, "leader_epoch", -1)
    return Position(given.offset, -1 if epoch is None else epoch, given.metadata)
