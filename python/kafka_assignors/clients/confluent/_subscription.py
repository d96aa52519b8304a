"""What `subscribe` takes: names of topics, and expressions over them."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import _core
from kafka_assignors.errors import OptionError

__all__ = ["expression", "unsubscribable"]


def unsubscribable(why: str = "") -> KafkaException:
    """The client's error for a subscription that cannot be."""
    reason = "Failed to set subscription: Local: Invalid argument or configuration"
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, reason + why))


def expression(text: str) -> _core.Expression:
    """A topic that begins with `^`, as librdkafka reads it.

    Raises:
        KafkaException: it is no expression, or cannot be matched in linear time.
    """
    try:
        return _core.Expression.posix(text)
    except OptionError as error:
        raise unsubscribable(f": the expression {text[:300]!r} cannot be used: {error}") from error
