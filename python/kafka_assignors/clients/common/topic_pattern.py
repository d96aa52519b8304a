"""A subscription by pattern as kafka-python and aiokafka have it: Python's syntax, matched at a topic's beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

__all__ = ["INTERNAL_TOPICS", "TopicPattern"]

INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
"""The topics that brokers keep for themselves."""


class TopicPattern:
    """A compiled pattern, in the form that a membership takes. It is evaluated once for each topic.

    Args:
        pattern: what the client matches with.
        exclude_internal: whether it matches none of Kafka's internal topics.

    >>> import re
    >>> TopicPattern(re.compile("a|__"), exclude_internal=True).matches(["ab", "ba", "__consumer_offsets", "__mine"])
    [True, False, False, True]
    """

    def __init__(self, pattern: re.Pattern[str], *, exclude_internal: bool) -> None:
        self._pattern = pattern
        self._known: dict[str, bool] = dict.fromkeys(INTERNAL_TOPICS, False) if exclude_internal else {}

    def matches(self, names: list[str], /) -> list[bool]:
        """Whether it matches each of the names."""
        for name in names:
            if name not in self._known:
                self._known[name] = self._pattern.match(name) is not None
        return [self._known[name] for name in names]
