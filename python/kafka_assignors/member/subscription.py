"""The subscription of a consumer: names and expressions, the topics that they stand for, and those that are missing."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import _core
from kafka_assignors.errors import OptionError
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Subscription", "expression", "unsubscribable"]

_UNAVAILABLE = "Subscribed topic not available: "


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
        raise unsubscribable(f": the expression {text[:300]!r} cannot be used: {printable(error)}") from error


class Subscription:
    """The topics that one consumer subscribes to, and errors for those that do not exist.

    As in the client, a name or an expression has one error until there is a topic. Not locked: its owner does that.

    Attributes:
        expressions: by their text.
    """

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self.expressions: Mapping[str, _core.Expression] = {}
        # All topics of the cluster, Kafka's own as well, as far as expressions made the core look.
        self._topics: list[str] = []
        # Names of topics and texts of expressions.
        self._missing: frozenset[str] = frozenset()

    def replace(self, names: Iterable[str], expressions: Mapping[str, _core.Expression]) -> None:
        """Replaces the subscription."""
        self._names, self.expressions = frozenset(names), dict(expressions)
        self._missing &= self._names | self.expressions.keys()

    def matched(self) -> frozenset[str]:
        """The topics by name, and those of the cluster that an expression matches."""
        return self._names.union(*(self._matches(each) for each in self.expressions.values()))

    def _matches(self, expression: _core.Expression) -> Iterable[str]:
        return itertools.compress(self._topics, expression.matches(self._topics))

    def seen(self, topics: list[str]) -> list[dict[str, Any]]:
        """Takes the names of all topics of the cluster.

        Returns:
            An error for each name and each expression that has no topic any more.
        """
        before, there = self.matched() | self._missing, set(topics)
        self._topics = topics
        if not self.expressions:
            return []
        vanished = {name for name in before if name not in self.expressions} - there
        unmatched = {text for text, each in self.expressions.items() if not any(self._matches(each))}
        missing = vanished | unmatched
        news, self._missing = missing - self._missing, frozenset(missing)
        return [_error(name, f"{name}: it will be read once it exists") for name in sorted(vanished & news)] + [
            _error(text, f"{text}: no topic matches it yet") for text in sorted(unmatched & news)
        ]

    def refused(self, error: Mapping[str, Any]) -> Mapping[str, Any]:
        """An error of the core, as the client words it if it is about a topic that is subscribed to by name."""
        topic = error["topic"]
        if topic not in self._names:
            return error
        self._missing |= {topic}
        code = error["error_code"]
        if code == KafkaError.TOPIC_EXCEPTION:
            # For librdkafka a name that no topic can have is that of one that is not there.
            code = KafkaError.UNKNOWN_TOPIC_OR_PART
        return _error(topic, error["message"], code)

    def mark(self, notice: dict[str, Any]) -> None:
        """Adds two entries to a notice of the core.

        `gone` are the topics of revoked partitions that no longer exist; `nowhere` is whether no topic of the
        subscription exists.
        """
        self._missing -= {topic for topic, _ in notice["added"]}
        notice["gone"] = self._missing.intersection(topic for topic, _ in notice["revoked"])
        notice["nowhere"] = self._missing >= self._names | self.expressions.keys()


def _error(topic: str, message: str, code: int = KafkaError.UNKNOWN_TOPIC_OR_PART) -> dict[str, Any]:
    return {"action": "error", "error_code": code, "message": _UNAVAILABLE + message, "topic": topic}
