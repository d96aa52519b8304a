"""The pattern of a subscription as kafka-python and aiokafka match it: Python's `re.match`, each topic once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TopicPattern"]

_INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class TopicPattern:
    """A regular expression over the names of topics, as a `kafka_assignors.member.subscription.Filter`.

    Args:
        pattern: matched from the beginning of a name on.
        with_internal: whether it may match Kafka's internal topics (`exclude_internal_topics=False`).

    Raises:
        re.error: it is no expression.
    """

    def __init__(self, pattern: str, *, with_internal: bool) -> None:
        self._match = re.compile(pattern).match
        self._excluded = frozenset() if with_internal else _INTERNAL
        # A name is matched once, however often the topics are looked up: the expression may take long.
        self._known: dict[str, bool] = {}

    def matches(self, names: Sequence[str]) -> list[bool]:
        """For each name, whether it matches."""
        found = {name: self._known[name] if name in self._known else self._matches(name) for name in names}
        self._known = found
        return [found[name] for name in names]

    def _matches(self, name: str) -> bool:
        return name not in self._excluded and self._match(name) is not None
