"""A broker's answers, of any size that a test needs. They are written row by row, without an object for each row."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CORRELATION = 7


def varint(value: int) -> bytes:
    """UNSIGNED_VARINT."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def compact(text: str | None) -> bytes:
    """COMPACT_NULLABLE_STRING."""
    return b"\0" if text is None else varint(len(text.encode()) + 1) + text.encode()


def rows(parts: list[bytes]) -> bytes:
    """COMPACT_ARRAY."""
    return varint(len(parts) + 1) + b"".join(parts)


def classic_rows(parts: list[bytes]) -> bytes:
    """ARRAY."""
    return struct.pack(">i", len(parts)) + b"".join(parts)


def text(value: str) -> bytes:
    """STRING."""
    return struct.pack(">h", len(value)) + value.encode()


def metadata(
    topics: Mapping[str, int],
    *,
    repeat: int = 1,
    racks: int = 3,
    brokers: int = 6,
    host: str = "b",
    correlation: int = CORRELATION,
) -> bytes:
    """Metadata 9: each partition has one replica, each broker a rack. The list of topics is repeated `repeat` times."""
    nodes = [
        struct.pack(">i", node) + compact(host) + struct.pack(">i", 9092) + compact(f"rack-{node % racks}") + b"\0"
        for node in range(brokers)
    ]

    def partition(number: int) -> bytes:
        node = struct.pack(">i", number % brokers)
        one = b"\2" + node
        return struct.pack(">hi", 0, number) + node + struct.pack(">i", 0) + one + one + b"\1" + b"\0"

    described = [
        struct.pack(">h", 0) + compact(name) + b"\0" + rows([partition(n) for n in range(count)]) + b"\0\0\0\0" + b"\0"
        for name, count in topics.items()
    ]
    head = struct.pack(">i", correlation) + b"\0" + struct.pack(">i", 0)
    return head + rows(nodes) + compact("c") + struct.pack(">i", 0) + rows(described * repeat) + b"\0\0\0\0" + b"\0"


def list_offsets(topic: str, numbers: range, *, correlation: int = CORRELATION) -> bytes:
    """ListOffsets 4: the offset of partition n is 10**10 + n."""
    each = [struct.pack(">ihqqi", number, 0, -1, 10**10 + number, 0) for number in numbers]
    return struct.pack(">ii", correlation, 0) + classic_rows([text(topic) + classic_rows(each)])


def offset_fetch(topic: str, count: int, *, correlation: int = CORRELATION) -> bytes:
    """OffsetFetch 5: the committed offset of partition n is 10**10 + n."""
    each = [struct.pack(">iqihh", number, 10**10 + number, 0, -1, 0) for number in range(count)]
    return struct.pack(">ii", correlation, 0) + classic_rows([text(topic) + classic_rows(each)]) + b"\0\0"


def list_groups(count: int) -> bytes:
    """ListGroups 5."""
    each = [
        compact(f"group-{number}") + compact("consumer") + compact("Stable") + compact("classic") + b"\0"
        for number in range(count)
    ]
    return struct.pack(">i", CORRELATION) + b"\0" + struct.pack(">ih", 0, 0) + rows(each) + b"\0"


def describe_groups(members: int) -> bytes:
    """DescribeGroups 0, of one group."""
    each = [
        text(f"member-{number}") + text("client") + text("/host") + struct.pack(">i", 40) + bytes(40) + b"\0\0\0\0"
        for number in range(members)
    ]
    group = b"\0\0" + text("g") + text("Stable") + text("consumer") + text("range") + classic_rows(each)
    return struct.pack(">i", CORRELATION) + classic_rows([group])


def consumer_group_describe(shares: list[int]) -> bytes:
    """ConsumerGroupDescribe 0: one member for each number in `shares`. The number is that of the partitions in the
    member's assignment, and in its target assignment.
    """

    def share(count: int) -> bytes:
        numbers = struct.pack(f">{count}i", *range(count))
        return rows([bytes(16) + compact("t") + varint(count + 1) + numbers + b"\0"]) + b"\0"

    members = [
        compact(f"m{at}") + b"\0\0" + struct.pack(">i", 1) + compact("c") + compact("/h") + rows([compact("t")]) + b"\0"
        + share(count) * 2 + b"\0"
        for at, count in enumerate(shares)
    ]  # fmt: skip
    group = (
        b"\0\0\0" + compact("g") + compact("Stable") + struct.pack(">ii", 1, 1) + compact("uniform") + rows(members)
        + b"\0\0\0\0" + b"\0"
    )  # fmt: skip
    return struct.pack(">i", CORRELATION) + b"\0" + struct.pack(">i", 0) + rows([group]) + b"\0"
