"""Records of `__consumer_offsets` in bulk, as Spark's Kafka source returns them; the same in every run.

The shapes are those of the core's own bench (`rust/core/benches/offsets_topic.rs`).
"""

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_assignors import StickyAssignor
from kafka_assignors.group import MemberState

MEMBERS, PARTITIONS = 50, 3_000
TOPIC = "commerce.orders"
SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.int64(),
    }.items()
)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _table(pairs: list[tuple[bytes, bytes]]) -> pa.Table:
    keys, values = zip(*pairs, strict=True)
    count = len(pairs)
    columns = [list(keys), list(values), [0] * count, range(count), [1_700_000_000_000] * count]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def commits(count: int) -> pa.Table:
    """Commits of 2,000 groups on 300 topics: half as brokers write them today, half as older ones do."""

    def one(number: int) -> tuple[bytes, bytes]:
        group, topic = f"orders-service-{number % 2_000:04}", f"commerce.orders.{number % 300:03}"
        key = struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", number % 64)
        if number % 2:
            return key, struct.pack(">hqihq", 3, number, 5, 0, 1_700_000_000_000)
        return key, struct.pack(">hqiBq", 4, number, 5, 1, 1_700_000_000_000) + bytes([1, 0, 16]) + bytes([7]) * 16

    return _table([one(number) for number in range(count)])


def groups(count: int) -> pa.Table:
    """Generations of 50 members with 60 partitions each, which are in the user data and in the assignments."""
    ids = [f"member-{number:02}" for number in range(MEMBERS)]
    assignor = StickyAssignor()
    first = [(name, assignor.metadata([TOPIC], MemberState({}, None, None))) for name in ids]
    shares = assignor.perform_assignment(first, {TOPIC: PARTITIONS})
    owned = {name: [number for number in range(PARTITIONS) if number % MEMBERS == at] for at, name in enumerate(ids)}

    def one(number: int) -> tuple[bytes, bytes]:
        listed = b"".join(
            _text(name)
            + struct.pack(">h", -1)
            + _text("consumer-orders-service")
            + _text("/10.0.0.1")
            + struct.pack(">ii", 300_000, 45_000)
            + _sized(assignor.metadata([TOPIC], MemberState({TOPIC: owned[name]}, number, None)))
            + _sized(shares[name])
            for name in ids
        )
        head = (
            struct.pack(">h", 3) + _text("consumer") + struct.pack(">i", number + 1) + _text("sticky") + _text(ids[0])
        )
        key = struct.pack(">h", 2) + _text(f"orders-service-{number:04}")
        return key, head + struct.pack(">qi", 1_700_000_000_000, MEMBERS) + listed

    return _table([one(number) for number in range(count)])


def write(table: pa.Table, folder: Path, files: int) -> str:
    """The records as Parquet, in several equal files."""
    folder.mkdir()
    for number in range(files):
        pq.write_table(
            table, folder / f"{number}.parquet", compression="none", use_dictionary=False, row_group_size=100_000
        )
    return str(folder)


def size(table: pa.Table) -> int:
    """The number of bytes of keys and values."""
    return sum(chunk.buffers()[2].size for name in ("key", "value") for chunk in table.column(name).chunks)
