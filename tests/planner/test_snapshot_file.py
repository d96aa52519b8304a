"""The file format of snapshots: a written snapshot can be read again, and the error of a bad one names the mistake."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assignors.cluster import (
    ClassicMember,
    ConsumerMember,
    GroupSnapshot,
    Snapshot,
    TopicSnapshot,
    replay_tables,
)
from kafka_assignors.errors import SnapshotError
from support.snapshots import by_broker, orders

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
MAYBE = st.none() | TEXT
OFFSET = st.integers(0, 2**63 - 1)
# The end of the year 9999.
LAST_MS = 253_402_300_799_999
NUMBERS = st.lists(st.integers(0, 2**31 - 1), max_size=4, unique=True).map(lambda each: tuple(sorted(each)))
PARTITIONS = st.dictionaries(TEXT, NUMBERS, max_size=3)


@st.composite
def topics(draw: st.DrawFn) -> TopicSnapshot:
    count = draw(st.integers(0, 5))

    def each(of: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | st.lists(of, min_size=count, max_size=count).map(tuple))

    racks = st.frozensets(TEXT, max_size=3)
    return TopicSnapshot(count, each(racks), each(st.none() | OFFSET), each(st.none() | OFFSET), draw(MAYBE))


def members(kind: type[Any]) -> st.SearchStrategy[Any]:
    who = {"id": TEXT, "instance_id": MAYBE, "client_id": MAYBE, "client_host": MAYBE}
    if kind is ClassicMember:
        return st.builds(ClassicMember, **who, subscription=st.binary(max_size=20), assignment=st.binary(max_size=20))
    return st.builds(
        ConsumerMember,
        **who,
        topics=st.lists(TEXT, max_size=3).map(tuple),
        topic_regex=MAYBE,
        rack=MAYBE,
        epoch=st.integers(-1, 2**31 - 1),
        owned=PARTITIONS,
        target=PARTITIONS,
        classic=st.none() | st.booleans(),
        place=st.none() | st.integers(0, 2**31 - 1),
    )


def groups(protocol: str, kind: type[Any]) -> st.SearchStrategy[GroupSnapshot]:
    everyone = st.lists(members(kind), max_size=4, unique_by=lambda each: each.id)
    return st.builds(
        GroupSnapshot,
        protocol=st.just(protocol),
        state=TEXT,
        assignor=TEXT,
        protocol_type=TEXT,
        epoch=st.none() | st.integers(-1, 2**31 - 1),
        members=everyone.map(lambda each: tuple(sorted(each, key=lambda member: member.id))),
        committed=st.dictionaries(TEXT, st.lists(st.none() | OFFSET, max_size=4).map(tuple), max_size=3),
        record_bytes=st.none() | OFFSET,
    )


SNAPSHOTS = st.builds(
    Snapshot,
    cluster=TEXT,
    taken_ms=st.integers(0, LAST_MS),
    topics=st.dictionaries(TEXT, topics(), max_size=3),
    groups=st.dictionaries(TEXT, groups("classic", ClassicMember) | groups("consumer", ConsumerMember), max_size=3),
    record_limit=st.none() | st.integers(0, 2**31 - 1),
)


@given(SNAPSHOTS)
def test_what_is_written_is_read_again(snapshot: Snapshot) -> None:
    text = snapshot.dumps()
    assert Snapshot.loads(text) == snapshot
    assert Snapshot.loads(text.encode()).dumps() == text


@given(SNAPSHOTS, st.data())
def test_a_changed_file_is_read_or_refused(snapshot: Snapshot, data: st.DataObject) -> None:
    text = snapshot.dumps()
    at = data.draw(st.integers(0, len(text)))
    other = text[:at] + data.draw(st.sampled_from(["", "0", '"', "{", "]", ",", "null", "NaN"])) + text[at + 1 :]
    try:
        read = Snapshot.loads(other)
    except SnapshotError:
        return
    assert Snapshot.loads(read.dumps()) == read


def changed(path: str, value: Any) -> str:
    """The text of a snapshot with one field changed, or removed with ``...``."""
    document = json.loads(orders().dumps())
    *way, last = path.split("/")
    place: Any = document
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if value is ...:
        del place[last]
    else:
        place[last if isinstance(place, dict) else int(last)] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", "other", '"format" is not "kafka-assignors-snapshot"'),
        ("version", 2, "version is 2; this release reads version 1"),
        ("cluster", ..., "cluster is missing"),
        ("cluster", 5, "cluster is 5; give a text"),
        ("taken_ms", -1, "taken_ms is -1; give a number from 0"),
        ("taken_ms", 2**63 - 1, "taken_ms is 9223372036854775807; give a number from 0 to 253402300799999"),
        ("taken_ms", LAST_MS + 1, "taken_ms is 253402300800000; give a number from 0 to 253402300799999"),
        ("taken_ms", True, "taken_ms is true; give an integer"),
        ("more", 1, "more is not a field that version 1 has"),
        ("topics", [], "topics is a list; give an object"),
        ("topics/orders/partitions", 12.5, "topics.orders.partitions is 12.5; give an integer"),
        ("topics/orders/partitions", 13, "topics.orders.begin has 12 entries; give one for each of 13 partitions"),
        ("topics/orders/end/3", "x", 'topics.orders.end[3] is "x"; give an integer'),
        ("topics/orders/end/3", 2**63, "topics.orders.end[3] is 9223372036854775808; give a number from 0"),
        ("groups/billing/protocol", "new", 'groups.billing.protocol is "new"; give "classic" or "consumer"'),
        ("groups/billing/members/1/subscription", "!", "groups.billing.members[1].subscription is not base64"),
        ("groups/billing/members/1/assignment", ..., "groups.billing.members[1].assignment is missing"),
        ("groups/billing/members/1/id", "c0", "groups.billing.members[1].id is 'c0' a second time"),
        ("groups/billing/members/1/epoch", 3, "groups.billing.members[1].epoch is not a field"),
        ("groups/billing/members/1/instance_id", 3, "groups.billing.members[1].instance_id is 3; give a text"),
        ("groups/billing/members/1/id", "\ud800", "groups.billing.members[1].id is not valid Unicode"),
        ("groups/billing/committed/orders/0", -5, "groups.billing.committed.orders[0] is -5"),
        ("record_limit", "big", 'record_limit is "big"; give an integer'),
    ],
)
def test_errors_name_the_field(path: str, value: Any, said: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        Snapshot.loads(changed(path, value))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, b"\xff\xfe", "1" * 5000]
)
def test_what_is_no_snapshot_is_refused(text: str | bytes) -> None:
    with pytest.raises(SnapshotError):
        Snapshot.loads(text)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "billing.json"
    orders().save(path)
    assert Snapshot.load(path) == orders()
    path.write_text("{}")
    with pytest.raises(SnapshotError, match=r"billing\.json: this is not a snapshot"):
        Snapshot.load(path)
    with pytest.raises(SnapshotError, match="cannot be read"):
        Snapshot.load(tmp_path / "none.json")
    with pytest.raises(SnapshotError, match="cannot be written"):
        orders().save(tmp_path / "none" / "x.json")


def test_members_read_their_bytes() -> None:
    member = orders().groups["billing"].members[1]
    assert isinstance(member, ClassicMember)
    assert (member.topics, member.owned) == (("orders", "payments"), {"orders": (4, 5, 6, 7), "payments": (2, 3)})
    assert (member.generation, member.rack, member.faults) == (5, None, ())
    broken = ClassicMember("c9", subscription=b"\xff\xff", assignment=b"\0\1\2")
    assert (broken.topics, broken.owned, broken.rack, broken.generation) == ((), {}, None, None)
    assert [fault.partition(":")[0] for fault in broken.faults] == ["subscription", "assignment"]


def test_the_replays_tables() -> None:
    first = orders()
    later = Snapshot("test", first.taken_ms + 1000, first.topics, {"billing": GroupSnapshot(state="Empty")})
    tables = replay_tables([later, first])
    events = tables["membership_events"]
    assert [(row["seq"], row["member_id"], row["generation"]) for row in events] == [
        *((first.taken_ms, name, 1) for name in ("c0", "c1", "c2")),
        (later.taken_ms, "", 2),
    ]
    assert events[0] == {
        "cluster": "test",
        "group_id": "billing",
        "seq": first.taken_ms,
        "ts": first.taken_ms,
        "kind": "snapshot",
        "member_id": "c0",
        "instance_id": None,
        "rack": None,
        "topics": ["orders", "payments"],
        "generation": 1,
        "protocol": "sticky",
    }
    assert {(row["topic"], row["partition_count"]) for row in tables["topic_partitions"]} == {
        ("orders", 12),
        ("payments", 6),
    }
    assert len(tables["offset_snapshots"]) == 18
    assert tables["offset_snapshots"][0]["committed"] == 50
    owned = [row for row in tables["observed_assignments"] if row["member_id"] == "c1"]
    assert [(row["topic"], row["partitions"], row["source"]) for row in owned] == [
        ("orders", [4, 5, 6, 7], "classic"),
        ("payments", [2, 3], "classic"),
    ]
    assert replay_tables([by_broker()])["observed_assignments"][0]["source"] == "current"
