"""Errors of the group in kafka-python's classes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import CommitFailedError, KafkaConfigurationError, KafkaTimeoutError, RebalanceInProgressError

from kafka_assignors import errors
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.member.commits import CommittedOffsets
    from kafka_assignors.member.data_path import CommitOutcome

__all__ = [
    "CHECKS_BY_ASSERTION",
    "OptionError",
    "as_the_client",
    "client_error",
    "commit_error",
    "committed_error",
    "rebalance_error",
]

_REQUEST_TIMED_OUT = 7
_ILLEGAL_GENERATION = 22
_UNKNOWN_MEMBER_ID = 25
_REBALANCE_IN_PROGRESS = 27


def _checks_by_assertion() -> bool:
    """Whether the client refuses bad arguments with AssertionError, as up to version 2."""
    try:
        SubscriptionState().subscribe()
    except AssertionError:
        return True
    except Exception:
        return False
    return False


CHECKS_BY_ASSERTION = _checks_by_assertion()


class OptionError(errors.OptionError, KafkaConfigurationError):  # type: ignore[misc]
    """A setting with a value that cannot be used. It is a `KafkaConfigurationError` as well."""

    def __str__(self) -> str:
        return str(self.args[0])


# Tracebacks name the module from which programs import the class, and pickle looks the class up there.
OptionError.__module__ = "kafka_assignors.clients.kafka_python"


@contextlib.contextmanager
def as_the_client() -> Iterator[None]:
    """Turns an `OptionError` of the package into one that is also the client's exception."""
    try:
        yield
    except errors.OptionError as error:
        if isinstance(error, KafkaConfigurationError):
            raise
        raise OptionError(str(error)) from None


def client_error(code: int, message: str) -> Exception:
    """The client's exception for an error of Kafka's protocol, with a text that may come from a broker."""
    return _made(kafka.errors.for_code(code)(printable(message, SENTENCE)))


def commit_error(outcome: CommitOutcome | None) -> Exception | None:
    """The exception with which the client's `commit` would end; None for a commit that succeeded."""
    if outcome is None or outcome.error_code == _REQUEST_TIMED_OUT:
        return _made(KafkaTimeoutError("the commit was not answered in time"))
    code = outcome.error_code or next(iter(sorted(outcome.refused.values())), 0)
    if code in (_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID):
        return _made(CommitFailedError())
    if code == _REBALANCE_IN_PROGRESS:
        # Our own member returns this code: the commit would wait for the rebalance, and the rebalance for the listener
        # that waits for the commit.
        return rebalance_error()
    if code:
        return client_error(code, "the commit was refused")
    # Nothing was sent for partitions that may belong to another member already.
    return _made(CommitFailedError()) if outcome.dropped else None


def rebalance_error() -> Exception:
    """The exception of a commit while the group rebalances."""
    return _made(RebalanceInProgressError("the group is rebalancing; poll, and commit after it"))


def committed_error(found: CommittedOffsets | None) -> Exception | None:
    """The exception with which the client's `committed` would end; None if there is an answer."""
    if found is None or found.error_code == _REQUEST_TIMED_OUT:
        return _made(KafkaTimeoutError("the committed offset was not answered in time"))
    code = found.error_code or next(iter(found.refused.values()), 0)
    return client_error(code, "the committed offset was refused") if code else None


def _made(error: Any) -> Exception:
    made: Exception = error
    return made
