"""Encodes metadata and assignments that a client has decoded before it calls the assignor.

kafka-python and aiokafka parse these and keep no bytes. The writers make one `struct` call for each topic, so no object
is built for each partition. The layouts are ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to
3.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SubscriptionWriter", "encode_assignment"]

TopicPartitions = tuple[str, "Sequence[int]"]
"""A topic and its partition numbers, in the order in which they are to be written."""

_NEWEST = 3


class _Strings(dict[str, bytes]):
    """Texts as STRING of the protocol, each encoded once."""

    def __missing__(self, text: str) -> bytes:
        data = text.encode()
        self[text] = data = struct.pack(">h", len(data)) + data
        return data


def _nullable_bytes(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def _topic_partitions(topics: Sequence[TopicPartitions], strings: _Strings) -> list[bytes]:
    parts = [struct.pack(">i", len(topics))]
    for topic, partitions in topics:
        count = len(partitions)
        parts.append(strings[topic])
        parts.append(struct.pack(f">{count + 1}i", count, *partitions))
    return parts


class SubscriptionWriter:
    """Writes the subscriptions of a group's members.

    Most members of a group subscribe to the same topics, so the topics of the previous member are not encoded again.

    Attributes:
        topics: all topics written so far.
    """

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._strings = _Strings()
        self._latest: Sequence[str] | None = None
        self._written = b""

    def write(
        self,
        version: int,
        topics: Sequence[str],
        user_data: bytes | None,
        owned: Sequence[TopicPartitions] = (),
        generation: int = -1,
        rack: str | None = None,
    ) -> bytes:
        """The bytes of one subscription; fields newer than `version` are left out. O(topics + owned partitions).

        Args:
            version: as decoded; versions above 3 are written as 3, which is how they were read.
            topics: in any order.
            user_data: as received.
            owned: since version 1.
            generation: since version 2; -1 if absent.
            rack: since version 3.
        """
        if topics != self._latest:
            self._written = struct.pack(">i", len(topics)) + b"".join(map(self._strings.__getitem__, topics))
            self._latest = topics
            self.topics.update(topics)
        version = min(version, _NEWEST)
        parts = [struct.pack(">h", version), self._written, _nullable_bytes(user_data)]
        if version >= 1:
            parts += _topic_partitions(owned, self._strings)
        if version >= 2:
            parts.append(struct.pack(">i", generation))
        if version >= 3:
            parts.append(b"\xff\xff" if rack is None else self._strings[rack])
        return b"".join(parts)


def encode_assignment(version: int, assigned: Sequence[TopicPartitions], user_data: bytes | None) -> bytes:
    """The bytes of one member's assignment. O(topics + partitions)."""
    parts = [struct.pack(">h", min(version, _NEWEST)), *_topic_partitions(assigned, _Strings())]
    return b"".join([*parts, _nullable_bytes(user_data)])
