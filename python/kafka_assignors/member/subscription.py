"""The subscription of a consumer: topics by name and by regular expression, and the errors for missing ones."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Filter", "SubscribedTopics"]

_UNKNOWN_TOPIC_OR_PARTITION = 3


class Filter(Protocol):
    """An expression over the names of topics, such as `_core.Expression`. The membership's thread calls it."""

    def matches(self, names: list[str]) -> list[bool]:
        """For each name, whether it matches."""


class SubscribedTopics:
    """The topics that one consumer subscribes to, and errors for those that do not exist.

    A missing name, or an expression without a topic, gets one error, and no further error until a topic has appeared.
    Not thread-safe: the owner locks.

    Attributes:
        expressions: by their text.
    """

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self.expressions: Mapping[str, Filter] = {}
        # All topics of the cluster, Kafka's internal ones as well. Empty if no expression needs them.
        self._topics: list[str] = []
        # Names of missing topics, and texts of expressions without a topic. Their error was made already.
        self._missing: frozenset[str] = frozenset()

    def replace(self, names: Iterable[str], expressions: Mapping[str, Filter]) -> None:
        """Replaces the subscription."""
        self._names, self.expressions = frozenset(names), dict(expressions)
        self._missing &= self._names | self.expressions.keys()

    def matched(self) -> frozenset[str]:
        """The topics by name, and the topics of the cluster that match an expression."""
        return self._names.union(*(self._matches(each) for each in self.expressions.values()))

    def _matches(self, expression: Filter) -> Iterable[str]:
        return itertools.compress(self._topics, expression.matches(self._topics))

    def seen(self, topics: list[str]) -> list[dict[str, Any]]:
        """Takes the names of all topics of the cluster.

        Returns:
            An error for each name and each expression that has lost its last topic.
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
        """An error of the core, marked if it is about a topic that is subscribed to by name."""
        topic = error["topic"]
        if topic not in self._names:
            return error
        self._missing |= {topic}
        return {**error, "is_missing": True}

    def mark(self, notice: dict[str, Any]) -> None:
        """Adds two entries to a notice of the core.

        `gone` are the topics of revoked partitions that no longer exist; `nowhere` is whether no topic of the
        subscription exists.
        """
        self._missing -= {topic for topic, _ in notice["added"]}
        notice["gone"] = self._missing.intersection(topic for topic, _ in notice["revoked"])
        notice["nowhere"] = self._missing >= self._names | self.expressions.keys()


def _error(topic: str, message: str) -> dict[str, Any]:
    code = _UNKNOWN_TOPIC_OR_PARTITION
    return {"action": "error", "error_code": code, "message": message, "topic": topic, "is_missing": True}
