"""Records of `__consumer_offsets`, encoded here from Kafka's schemas."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pyarrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCHEMA = pyarrow.schema(
    {
        "key": pyarrow.binary(),
        "value": pyarrow.binary(),
        "partition": pyarrow.int32(),
        "offset": pyarrow.int64(),
        "timestamp": pyarrow.int64(),
    }.items()
)

# Member id, instance id, subscription, assignment.
Member = tuple[str, str | None, bytes, bytes]


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def key(kind: int, *parts: str) -> bytes:
    return struct.pack(">h", kind) + b"".join(map(text, parts))


def commit_key(group: str, topic: str, partition: int) -> bytes:
    return key(1, group, topic) + struct.pack(">i", partition)


def commit_value(offset: int, ts: int, topic_id: bytes | None = None, leader_epoch: int = -1) -> bytes:
    """A value of version 3, or of version 4 if there is a topic id."""
    if topic_id is None:
        return struct.pack(">hqi", 3, offset, leader_epoch) + text("") + struct.pack(">q", ts)
    return struct.pack(">hqiBq", 4, offset, leader_epoch, 1, ts) + bytes([1, 0, 16]) + topic_id


def group_value(
    generation: int,
    protocol: str | None,
    members: Sequence[Member],
    *,
    ts: int = 0,
    protocol_type: str = "consumer",
    client: tuple[str, str] = ("app", "/10.0.0.1"),
) -> bytes:
    """The value of a classic group, version 3."""
    leader = members[0][0] if members else None
    head = struct.pack(">h", 3) + text(protocol_type) + struct.pack(">i", generation) + text(protocol) + text(leader)
    listed = b"".join(
        text(member_id)
        + text(instance_id)
        + text(client[0])
        + text(client[1])
        + struct.pack(">ii", 300_000, 45_000)
        + sized(subscription)
        + sized(assignment)
        for member_id, instance_id, subscription, assignment in members
    )
    return head + struct.pack(">qi", ts, len(members)) + listed


def records(
    pairs: Iterable[tuple[bytes | None, bytes | None]], *, partition: int = 0, start: int = 0, ts: int = 1_000
) -> Any:
    """A batch of records of one partition. Offsets are consecutive, timestamps a millisecond apart."""
    keys, values = zip(*pairs, strict=True)
    count = len(keys)
    columns = [keys, values, [partition] * count, range(start, start + count), range(ts, ts + count)]
    arrays = [pyarrow.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pyarrow.record_batch(arrays, schema=SCHEMA)
