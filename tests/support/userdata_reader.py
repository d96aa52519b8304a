"""A second reader of user data, subscriptions and assignments, in plain Python. Tests compare the core with it."""

from __future__ import annotations

import struct

from kafka_assignors.errors import UserDataError
from kafka_assignors.userdata import (
    NO_GENERATION,
    Assignment,
    CooperativeStickyUserData,
    StickyUserData,
    StreamJoinUserData,
    Subscription,
)


def sticky(data: bytes) -> StickyUserData:
    if not data:
        return StickyUserData()
    bare = _bare_sticky(data)
    if bare is not None and bare[2] == 0:
        return StickyUserData(*bare[:2])
    found = _prefixed_sticky(data) or (bare and bare[:2])
    if not found:
        raise UserDataError("no known form")
    return StickyUserData(*found)


def cooperative(data: bytes) -> CooperativeStickyUserData:
    if not data:
        return CooperativeStickyUserData()
    if len(data) == 4:
        return CooperativeStickyUserData(int.from_bytes(data, signed=True))
    bare = _bare_sticky(data)
    if bare is not None and bare[2] == 0:
        return CooperativeStickyUserData(bare[1])
    prefixed = _prefixed_sticky(data)
    if not prefixed:
        raise UserDataError("no known form")
    return CooperativeStickyUserData(prefixed[1])


def stream_join(data: bytes) -> StreamJoinUserData:
    if not data:
        return StreamJoinUserData()
    reader = _Reader(data)
    try:
        return StreamJoinUserData(reader.numbers("numbers"), reader.int32("epoch"))
    except UserDataError:
        raise UserDataError("no known form") from None


def subscription(metadata: bytes, *, strict: bool = False) -> Subscription:
    reader = _Reader(metadata)
    version = reader.version()
    topics = [reader.string("topics") for _ in range(reader.count("topics", 2))]
    user_data: bytes | None = None
    owned: dict[str, list[int]] = {}
    generation, rack = NO_GENERATION, None
    try:
        user_data = reader.nullable_bytes("user_data")
        if version >= 1 and reader.left():
            owned = reader.partitions("owned_partitions")
        if version >= 2 and reader.left():
            generation = reader.int32("generation_id")
        if version >= 3 and reader.left():
            rack = reader.nullable_string("rack_id")
    except UserDataError:
        if strict:
            raise
    return Subscription(topics, user_data, owned, generation, rack, version)


def assignment(data: bytes, *, strict: bool = False) -> Assignment:
    reader = _Reader(data)
    version = reader.version()
    partitions = reader.partitions("assigned_partitions")
    user_data: bytes | None = None
    try:
        user_data = reader.nullable_bytes("user_data")
    except UserDataError:
        if strict:
            raise
    return Assignment(partitions, user_data, version)


def _bare_sticky(data: bytes) -> tuple[dict[str, list[int]], int, int] | None:
    """Version 1, or version 0 if the bytes end before the generation; and the number of bytes that follow."""
    reader = _Reader(data)
    try:
        partitions = reader.partitions("user_data")
    except UserDataError:
        return None
    generation = reader.int32("generation") if reader.left() >= 4 else NO_GENERATION
    return partitions, generation, reader.left()


def _prefixed_sticky(data: bytes) -> tuple[dict[str, list[int]], int] | None:
    """The data behind a schema version, if no bytes follow it."""
    reader = _Reader(data)
    try:
        version = reader.version()
        if version > 1:
            return None
        partitions = reader.partitions("user_data")
        generation = reader.int32("generation") if version == 1 else NO_GENERATION
    except UserDataError:
        return None
    return None if reader.left() else (partitions, generation)


class _Reader:
    """A cursor over bytes. Every length and count is checked against the remaining bytes before it is used."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = bytes(data)
        self._at = 0

    def left(self) -> int:
        return len(self._data) - self._at

    def _take(self, length: int, what: str) -> bytes:
        if length > self.left():
            raise _error(what, self._at, "the input ends too early")
        self._at += length
        return self._data[self._at - length : self._at]

    def _int16(self, what: str) -> int:
        return int.from_bytes(self._take(2, what), signed=True)

    def int32(self, what: str) -> int:
        return int.from_bytes(self._take(4, what), signed=True)

    def version(self) -> int:
        version = self._int16("version")
        if version < 0:
            raise _error("version", self._at - 2, f"version {version} does not exist")
        return version

    def count(self, what: str, least: int) -> int:
        """The count of an array whose elements need at least `least` bytes each."""
        count = self.int32(what)
        if not 0 <= count <= self.left() // least:
            raise _error(what, self._at - 4, f"length {count} is impossible here")
        return count

    def string(self, what: str) -> str:
        length = self._int16(what)
        if length < 0:
            raise _error(what, self._at - 2, f"length {length} is impossible here")
        return self._take(length, what).decode("utf-8", "replace")

    def nullable_string(self, what: str) -> str | None:
        length = self._int16(what)
        return None if length < 0 else self._take(length, what).decode("utf-8", "replace")

    def nullable_bytes(self, what: str) -> bytes | None:
        length = self.int32(what)
        return None if length < 0 else self._take(length, what)

    def numbers(self, what: str) -> tuple[int, ...]:
        count = self.count(what, 4)
        return struct.unpack(f">{count}i", self._take(4 * count, what))

    def partitions(self, what: str) -> dict[str, list[int]]:
        """Topics with their partition numbers. A topic may occur several times."""
        found: dict[str, list[int]] = {}
        for _ in range(self.count(what, 6)):
            found.setdefault(self.string(what), []).extend(self.numbers(what))
        return found


def _error(what: str, at: int, problem: str) -> UserDataError:
    return UserDataError(f"cannot read {what} at byte {at}: {problem}")
