"""The client's own errors for the error codes that the membership receives from brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokafka import errors

if TYPE_CHECKING:
    from aiokafka.errors import KafkaError

__all__ = ["commit_failure", "error_of", "is_passing"]

# UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS: the consumer is no longer the member that it was.
_EXPELLED = frozenset((22, 25, 27))


def is_passing(code: int) -> bool:
    """Whether the client tries again after this code of Kafka's."""
    return bool(errors.for_code(code).retriable)


def error_of(code: int, message: str, topic: str | None = None, group_id: str | None = None) -> KafkaError:
    """The error that the client raises for a code of Kafka's.

    Args:
        code: as Kafka numbers errors.
        message: what was wrong, for errors that take a text.
        topic: the topic that it is about.
        group_id: the group.
    """
    kind = errors.for_code(code)
    if kind is errors.TopicAuthorizationFailedError:
        return kind(topic or message)
    if kind is errors.GroupAuthorizationFailedError:
        return kind(group_id or message)
    return kind(message)


def commit_failure(code: int, message: str, group_id: str) -> KafkaError:
    """The error that the client's `commit` raises for a code of Kafka's."""
    if code in _EXPELLED:
        return errors.CommitFailedError(f"the consumer was not a member of the generation any more: {message}")
    return error_of(code, message, None, group_id)
