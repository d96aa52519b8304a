"""The regular expressions of a subscription, and the errors for invalid ones, as in librdkafka."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import _core
from kafka_assignors.errors import OptionError
from kafka_assignors.printable import printable

__all__ = ["expression", "unsubscribable"]


def unsubscribable(why: str = "") -> KafkaException:
    """The client's error for an invalid subscription."""
    reason = "Failed to set subscription: Local: Invalid argument or configuration"
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, reason + why))


def expression(text: str) -> _core.Expression:
    """The regular expression of a topic that begins with `^`, in librdkafka's syntax.

    Raises:
        KafkaException: it is no expression, or matching it would not take linear time.
    """
    try:
        return _core.Expression.posix(text)
    except OptionError as error:
        raise unsubscribable(f": the expression {text[:300]!r} cannot be used: {printable(error)}") from error
