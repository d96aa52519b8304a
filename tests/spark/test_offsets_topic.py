"""The binding of the decoder of the offsets topic: record batches to record batches."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from typing import Any

import pyarrow
import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    MemberState,
    OptionError,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
    _core,
)
from kafka_assignors.errors import TableError
from kafka_assignors.spark.decoding import _LISTS, DECODED, _gathered
from kafka_assignors.userdata import Assignment
from support.offsets_records import SCHEMA, commit_key, commit_value, group_value, key, records

# Together, since the first table in a process makes pyarrow load pandas.
pytestmark = pytest.mark.xdist_group("tables")

TOPIC_ID = bytes([1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18])
TOPIC_ID_TEXT = "AQIDBAUGBwgREhMUFRYXGA"


def decoded(*batches: Any, names: Any = None, clients: bool = False, keep_bytes: bool = False) -> dict[str, list[Any]]:
    """The rows of each table, without their null columns."""
    tables: dict[str, list[Any]] = {name: [] for name in DECODED}
    for found in _core.OffsetsTopic(names or {}, clients, keep_bytes).decode(pyarrow.Table.from_batches(batches)):
        for record in found.to_pylist():
            rest = record.pop("rest")
            if rest is None:
                tables["offset_commits"].append(_without_nulls(record | {"row": 0}))
                continue
            (of_record,) = rest
            lists = {name: of_record.pop(of) for name, of in _LISTS.items()}
            for name, rows in lists.items():
                tables[name] += [_without_nulls(record | of_record | row) for row in rows]
    return tables


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {column: value for column, value in row.items() if value is not None}


def test_commits_of_both_forms_and_their_ends() -> None:
    batch = records(
        [
            (commit_key("g", "orders", 3), commit_value(42, 900)),
            (commit_key("g", "orders", 4), commit_value(43, 901, TOPIC_ID, 7)),
            (commit_key("g", "orders", 3), None),
        ],
        partition=5,
        start=70,
    )
    common = {"src_partition": 5, "row": 0, "group_id": "g", "topic": "orders"}
    assert decoded(batch)["offset_commits"] == [
        {**common, "src_offset": 70, "ts": 900, "partition": 3, "committed": 42},
        {
            **common,
            "src_offset": 71,
            "ts": 901,
            "partition": 4,
            "committed": 43,
            "leader_epoch": 7,
            "topic_id": TOPIC_ID_TEXT,
        },
        {**common, "src_offset": 72, "ts": 1_002, "partition": 3},
    ]


@pytest.mark.parametrize(
    ("assignor", "claimed", "generation"),
    [
        (StickyAssignor(), [{"topic": "a", "partitions": [0, 2]}], 6),
        (CooperativeStickyAssignor(), [{"topic": "a", "partitions": [0, 2]}], 6),
        (StickyStreamJoinAssignor(), [{"topic": None, "partitions": [0, 2]}], 6),
        (RangeAssignor(), None, None),
        (RoundRobinAssignor(), None, None),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_generation_as_our_own_assignors_write_it(assignor: Any, claimed: Any, generation: int | None) -> None:
    state = MemberState({"a": [0, 2]}, 6, "r1")
    sent = {"m0": assignor.metadata(["a", "b"], state), "m1": assignor.metadata(["a"], MemberState({}, None, None))}
    shares = assignor.perform_assignment(list(sent.items()), {"a": 4, "b": 2})
    members = [(name, "i0" if name == "m0" else None, sent[name], shares[name]) for name in sent]
    tables = decoded(records([(key(2, "g"), group_value(9, assignor.name, members))], start=7))
    common = {"src_partition": 0, "src_offset": 7, "ts": 1_000, "group_id": "g", "kind": "snapshot", "generation": 9}
    expected: dict[str, Any] = {
        **common,
        "member_id": "m0",
        "protocol": assignor.name,
        "instance_id": "i0",
        "topics": ["a", "b"],
    }
    first, second = tables["membership_events"]
    rack = {"rack": "r1"} if "rack" in first else {}
    claim = {} if claimed is None else {"claimed": claimed, "claimed_generation": generation}
    assert first == {**expected, "row": 0, **rack, **claim}
    assert (second["member_id"], second["topics"], second.get("claimed") or []) == ("m1", ["a"], [])
    given: dict[str, dict[str, list[int]]] = {name: {} for name in sent}
    for row in tables["observed_assignments"]:
        assert (row["generation"], row["source"]) == (9, "classic")
        given[row["member_id"]][row["topic"]] = row["partitions"]
    sent_shares = {name: Assignment.decode(share).partitions for name, share in shares.items()}
    assert given == {
        name: {topic: list(numbers) for topic, numbers in share.items()} for name, share in sent_shares.items()
    }
    # A cooperative leader withholds partitions that another member still owns. A stream join withholds partition
    # numbers that not all topics have.
    assert sum(len(numbers) for share in given.values() for numbers in share.values()) >= 3
    rows = [row["row"] for table in tables.values() for row in table]
    assert sorted(rows) == list(range(len(rows)))


def test_clients_are_left_out_unless_asked_for() -> None:
    batch = records([(key(2, "g"), group_value(1, "range", [("m", None, b"", b"")]))])
    assert {"client_id", "client_host"}.isdisjoint(decoded(batch)["membership_events"][0])
    row = decoded(batch, clients=True)["membership_events"][0]
    assert (row["client_id"], row["client_host"]) == ("app", "/10.0.0.1")


def test_what_cannot_be_told_is_kept_aside_with_the_reason() -> None:
    broken = [
        (None, b"x"),
        (b"\x00", None),
        (key(2, "g"), b"\x00\x09"),
        (key(2, "g"), b"\x00\x03\x00"),
        (key(2, "g"), None),
        (key(2, "c"), group_value(1, "compatible", [("w", None, b"", b"")], protocol_type="connect")),
        (key(10, "s"), b"\x00\x00"),
        (key(2, "g"), group_value(1, "sticky", [("m", None, b"\x00", b"\x00")])),
    ]
    found = decoded(records(broken), keep_bytes=True)
    reasons = [
        (row["src_offset"], row["reason"], row.get("record_kind"), row.get("group_id"))
        for row in found["rejected_records"]
    ]
    assert reasons == [
        (0, "no_key", None, None),
        (1, "broken", None, None),
        (2, "unknown_version", 2, "g"),
        (3, "broken", 2, "g"),
        (4, "tombstone", 2, "g"),
        (5, "not_consumer", 2, "c"),
        (6, "other_kind", 10, None),
        (7, "subscription", 2, "g"),
        (7, "assignment", 2, "g"),
    ]
    kept = {row["src_offset"]: (row.get("key"), row.get("value")) for row in found["rejected_records"]}
    assert [offset for offset, pair in kept.items() if pair != (None, None)] == [1, 2, 3]
    assert kept[2] == (key(2, "g"), b"\x00\x09")
    assert all("key" not in row and "value" not in row for row in decoded(records(broken))["rejected_records"])
    assert [row["member_id"] for row in found["membership_events"]] == ["m"]


def test_the_first_record_of_a_classic_group_is_of_no_other_kind() -> None:
    """A coordinator writes this record before a member sends the protocol type. Connect groups have the same record."""
    first = group_value(0, None, [], protocol_type="")
    found = decoded(records([(key(2, "g"), first)]))
    assert found["rejected_records"] == []
    (row,) = found["membership_events"]
    assert (row["kind"], row["group_id"], row["generation"], row.get("member_id")) == ("snapshot", "g", 0, None)


def test_nulls_in_a_dump_are_kept_aside() -> None:
    columns = [[key(2, "g")] * 3, [None] * 3, [None, 0, 0], [1, None, 1], [1, 1, None]]
    arrays = [pyarrow.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    found = decoded(pyarrow.record_batch(arrays, schema=SCHEMA))
    assert [row["detail"] for row in found["rejected_records"]] == [
        "the record's partition is null",
        "the record's offset is null",
        "the record's timestamp is null",
    ]


@pytest.mark.parametrize("ends", [[50], [0, 1, 20, 20, 49, 50]], ids=["one batch", "several batches"])
def test_rows_have_the_place_of_their_record(ends: list[int]) -> None:
    """Records of all tables by turns, from the middle of a larger batch, and some without an offset."""
    subscription = StickyAssignor().metadata(["t"], MemberState({}, None, None))
    generation = group_value(1, "sticky", [(name, None, subscription, b"") for name in "mn"])
    pairs = [(key(2, "g"), generation), (commit_key("g", "t", 1), commit_value(5, 77)), (key(2, "g"), None)]
    whole = records(pairs * 20, partition=3, start=100, ts=1_000)
    nulls = pyarrow.array([None if at % 15 == 12 else 100 + at for at in range(60)], pyarrow.int64())
    whole = whole.set_column(3, "offset", nulls)
    found = decoded(*(whole.slice(7 + start, end - start) for start, end in pairwise([0, *ends])))
    places = {
        name: [(row["src_partition"], row.get("src_offset"), row["row"], row["ts"]) for row in table]
        for name, table in found.items()
    }
    at = range(7, 57)
    there = [index for index in at if nulls[index].is_valid]
    assert places["membership_events"] == [
        (3, 100 + index, row, 1_000 + index) for index in there if index % 3 == 0 for row in range(2)
    ]
    assert places["offset_commits"] == [(3, 100 + index, 0, 77) for index in at if index % 3 == 1]
    assert places["rejected_records"] == [
        (3, nulls[index].as_py(), 0, 1_000 + index) for index in at if index % 3 == 2 or index not in there
    ]


def test_names_that_are_not_ascii_or_not_utf_8() -> None:
    """Invalid UTF-8 in a subscription becomes U+FFFD, as in Java. In the name of a group it makes the record broken."""
    names = [b"caf\xc3\xa9-orders", b"orders-\xff", b"\xc3", b"o", b""]
    listed = struct.pack(">i", len(names)) + b"".join(struct.pack(">h", len(name)) + name for name in names)
    subscription = struct.pack(">h", 0) + listed + struct.pack(">i", -1)
    good = (key(2, "caf\xe9"), group_value(1, "range", [("m\xe9mber", None, subscription, b"")]))
    bad = (struct.pack(">hh", 2, 9) + b"orders-\xff\xff", None)
    found = decoded(records([good, bad, (commit_key("\u4e2d\u6587-group", "t\xf6pic", 1), None)]))
    (event,) = found["membership_events"]
    assert (event["group_id"], event["member_id"]) == ("caf\xe9", "m\xe9mber")
    assert event["topics"] == ["caf\xe9-orders", "orders-\ufffd", "\ufffd", "o", ""]
    (commit,) = found["offset_commits"]
    assert (commit["group_id"], commit["topic"]) == ("\u4e2d\u6587-group", "t\xf6pic")
    (rejected,) = found["rejected_records"]
    assert rejected["detail"] == "the record's key: cannot read group at byte 2: the string is not UTF-8"


def test_topic_ids_get_their_names() -> None:
    value = struct.pack(">hB", 0, 2) + TOPIC_ID + b"\x03" + struct.pack(">ii", 0, 3) + b"\x00\x00"
    batch = records([(key(7, "g", "m"), value), (key(6, "g"), struct.pack(">hiB", 0, 12, 0))])
    # The epoch may be in a later one of the batches.
    for batches in ([batch], [batch.slice(0, 1), batch.slice(1)]):
        row = decoded(*batches)["observed_assignments"][0]
        assert (row["source"], row["generation"]) == ("target", 12)
        assert (row["topic_id"], row["partitions"]) == (TOPIC_ID_TEXT, [0, 3])
        assert "topic" not in row
    assert decoded(batch, names={TOPIC_ID_TEXT: "orders"})["observed_assignments"][0]["topic"] == "orders"
    with pytest.raises(OptionError, match='names has "orders", which is no topic id'):
        _core.OffsetsTopic({"orders": "x"}, False, False)


def test_every_record_is_somewhere_whatever_its_bytes() -> None:
    chance = random.Random(6)
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for _ in range(3_000):
        kind = chance.choice([0, 1, 2, 5, 7, 8, 16, 4, 99])
        head = chance.choice([key(kind, "g"), key(kind, "g", "m"), commit_key("g", "t", 1), struct.pack(">h", kind)])
        body = struct.pack(">h", chance.randrange(-1, 6)) + chance.randbytes(chance.randrange(60))
        pairs.append((head + chance.randbytes(chance.randrange(3)), chance.choice([None, body])))
    found = decoded(records(pairs))
    seen = {row["src_offset"] for table in found.values() for row in table}
    # An empty target assignment, or an empty current one, gives no row.
    silent = {
        offset
        for offset, (head, value) in enumerate(pairs)
        if head and head[:2] in (b"\0\x07", b"\0\x08") and value is not None
    }
    assert seen | silent == set(range(len(pairs)))
    assert all(found.values()) or set(found) - {name for name, rows in found.items() if rows} <= {
        "topic_matches",
        "observed_assignments",
    }


def test_large_batches_come_in_pieces() -> None:
    """A record of a hundred kilobytes may give a megabyte. No batch is larger than Arrow's offsets allow."""
    value = group_value(1, "range", [(f"m{number}", None, b"", b"") for number in range(2_000)])
    pieces = list(_core.OffsetsTopic({}, False, False).decode(table_of((key(2, "g"), value), times=300)))
    assert len(pieces) > 2
    assert max(piece.nbytes for piece in pieces) < 256 << 20
    offsets = [offset for piece in pieces for offset in piece.column("src_offset").to_pylist()]
    assert offsets == list(range(300))
    members = [piece.column("rest").flatten().field("members") for piece in pieces]
    assert sum(len(lists.flatten()) for lists in members) == 300 * 2_000


def test_rows_of_one_record_are_numbered_across_its_tables() -> None:
    """Members, their faults and their assignments alternate."""
    good = RangeAssignor().metadata(["t"], MemberState({}, None, None))
    share = Assignment({"t": [1]}).encode()
    members = [("a", None, b"\x00", share), ("b", None, good, share), ("c", None, b"\x00", b"\x00")]
    found = decoded(records([(key(2, "g"), group_value(4, "range", members))] * 2))
    numbers = {name: [row["row"] for row in rows] for name, rows in found.items() if rows}
    assert numbers == {
        "membership_events": [0, 3, 5] * 2,
        "observed_assignments": [2, 4] * 2,
        "rejected_records": [1, 6, 7] * 2,
    }
    assert {(row["generation"], row.get("protocol")) for rows in found.values() for row in rows} == {(4, "range")}


def table_of(pair: tuple[bytes, bytes], *, times: int = 1) -> Any:
    return pyarrow.Table.from_batches([records([pair] * times)])


def test_other_tables_are_refused() -> None:
    decoder = _core.OffsetsTopic({}, False, False)
    with pytest.raises(TableError, match='column 0 of the batch is to be "key"'):
        decoder.decode(pyarrow.table({"value": pyarrow.array([b""])}))
    wrong = SCHEMA.set(3, pyarrow.field("offset", pyarrow.int32()))
    with pytest.raises(TableError, match='column "offset" has type Int32; give Int64'):
        decoder.decode(pyarrow.table([pyarrow.array([], field.type) for field in wrong], schema=wrong))
    offsets = pyarrow.py_buffer(struct.pack("<iii", 0, 1_000, 3))
    damaged = pyarrow.Array.from_buffers(pyarrow.binary(), 2, [None, offsets, pyarrow.py_buffer(b"abc")])
    arrays = [damaged, *(pyarrow.array([None] * 2, field.type) for field in list(SCHEMA)[1:])]
    good = records([(key(3, "g"), struct.pack(">hiB", 0, 1, 0))])
    with pytest.raises(TableError, match="the batch is damaged"):
        decoder.decode(pyarrow.Table.from_batches([good, pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA)]))
    for batches in ([good, good.slice(1)], []):
        assert list(decoder.decode(pyarrow.Table.from_batches(batches, SCHEMA))) == []


def test_batches_are_gathered_by_rows_and_by_bytes() -> None:
    small = [records([(bytes([number]), b"v")] * 20_000) for number in range(5)]
    large = [records([(bytes([number]), bytes(9 << 20))] * 2) for number in range(5, 7)]
    given = [*small, large[0], small[0], large[1], small[1]]
    gathered = list(_gathered(iter(given)))
    assert pyarrow.concat_tables(gathered) == pyarrow.Table.from_batches(given)
    assert [table.column("key").num_chunks for table in gathered] == [3, 3, 2, 1]
