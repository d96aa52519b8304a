"""The binding of the replay: record batches to record batches, compared with a replay by hand over the public API."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from kafka_assignors import LagBasedAssignor, MemberState, OptionError, _core
from kafka_assignors.errors import TableError
from kafka_assignors.spark.strategies import STRATEGIES, kernel_options
from kafka_assignors.strategies import parse_strategy
from support.histories import SCHEMA, ByHand, History, batch, count, drawn, event
from support.needs import rest

BROKERS = ["uniform", "uniform(broker=4.0.0)", "server-side-range"]
ALL = [
    *STRATEGIES,
    "cooperative-sticky-join",
    "sticky(mode=sticky-yet-fair)",
    "lag(scope=group, max_skew=none)",
    *BROKERS,
]
FIRST = ["sticky", "cooperative-sticky", "uniform"]
# Together, since the first table in a process makes pyarrow load pandas.
pytestmark = pytest.mark.xdist_group("tables")
# The columns that the comparison leaves out: the key, and the time and errors of the core, which have their own tests.
UNLIKE = {"cluster", "group_id", "strategy", "kernel_ns", "error"}


def rows(histories: dict[Any, History], strategies: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _core.Replay(kernel_options(strategies)).run(batch(histories)).to_pylist()
    return found


def of(found: list[dict[str, Any]], group_id: str, strategy: str) -> list[dict[str, Any]]:
    chosen = [row for row in found if (row["group_id"], row["strategy"]) == (group_id, strategy)]
    return [{name: value for name, value in row.items() if name not in UNLIKE} for row in chosen]


@pytest.mark.parametrize("text", [*FIRST, *rest(*(text for text in ALL if text not in FIRST))])
def test_equals_a_replay_by_hand(text: str) -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(150)}
    if text.startswith("lag"):
        # Without lags the leader keeps owned partitions, for which it needs user data. This has a test of its own.
        histories = {group_id: history for group_id, history in histories.items() if history.lags}
    found = rows(histories, [text])
    label = kernel_options([text])[0][0]
    wrong = {}
    for group_id, history in histories.items():
        by_hand = ByHand(history, parse_strategy(text)).rows()
        if of(found, group_id, label) != by_hand:
            wrong[group_id] = (of(found, group_id, label), by_hand)
    assert wrong == {}
    assert all(row["error"] is None and row["kernel_ns"] >= 0 for row in found)
    # The comparison covers rebalances that move partitions, with lag, of both causes.
    assert sum(row["moved"] > 0 for row in found) > 100
    assert {row["cause"] for row in found} == {"members", "partitions"}
    assert sum(row["max_lag"] > 0 for row in found) > 100


def test_without_lags_the_lag_strategy_keeps_what_members_own() -> None:
    """As the leader does when the lags are unknown."""
    history = History(
        events=[event(1, "join", "a", ["t"]), event(2, "join", "b", ["t"]), event(3, "leave", "b")],
        counts=[count(0, "t", 4)],
    )
    figures = [(row["seq"], row["balance_score"], row["moved"]) for row in rows({"g": history}, ["lag"])]
    members = [("a", LagBasedAssignor().metadata(["t"], MemberState({"t": [0, 1, 2, 3]}, 1)))]
    members.append(("b", LagBasedAssignor().metadata(["t"], MemberState())))
    _, plan = _core.perform_assignment_by_lag(("topic", 0, None), members, {"t": 4}, None, None)
    taken = len((plan.assignment_of("b") or {}).get("t", []))
    assert figures == [(1, 0, 0), (2, plan.balance_score, plan.kept_and_moved()[1]), (3, 0, taken)]


def test_order_and_duplicates_do_not_count() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(30)}
    plain = rows(histories, ALL)
    for history in histories.values():
        history.events = [*history.events[::-1], *history.events]
        history.counts = [*history.counts[::-1], *history.counts]
        history.lags.reverse()
    shuffled = rows(histories, ALL)
    for row in (*plain, *shuffled):
        del row["kernel_ns"]
    assert shuffled == plain


def test_strategies_come_in_the_order_given_and_observed_last() -> None:
    history = History(
        events=[
            event(1, "snapshot", "a", ["t"], generation=5),
            event(2, "snapshot", "a", ["t"], generation=6),
            event(2, "snapshot", "b", ["t"], generation=6),
        ],
        counts=[count(0, "t", 4)],
        observed=[
            {"generation": 5, "member_id": "a", "topic": "t", "partitions": [0, 1, 2, 3]},
            {"generation": 6, "member_id": "a", "topic": "t", "partitions": [0]},
            {"generation": 6, "member_id": "b", "topic": "t", "partitions": [1, 2, 3]},
        ],
    )
    found = rows({"g": history}, ["sticky", "range"])
    figures = [(row["strategy"], row["generation"], row["moved"], row["moved_needed"]) for row in found]
    assert figures == [
        ("sticky", 1, 0, 0),
        ("range", 1, 0, 0),
        ("observed", 5, 0, 0),
        ("sticky", 2, 2, 2),
        ("range", 2, 2, 2),
        ("observed", 6, 3, 2),
    ]


def test_bad_groups_have_an_error_row_and_the_others_their_figures() -> None:
    good = History(events=[event(1, "join", "a", ["t"])], counts=[count(0, "t", 2)])

    def but(**fields: Any) -> History:
        return History(events=[{**good.events[0], **fields}], counts=good.counts)

    histories = {
        "kind": but(kind="fly"),
        "null kind": but(kind=None),
        "null seq": but(seq=None),
        "null ts": but(ts=None),
        "null member": but(member_id=None),
        "null topic": but(topics=["t", None]),
        "negative": History(events=good.events, counts=[count(0, "t", -1)]),
        "too many": History(events=good.events, counts=[count(0, "t", 2**31 - 1)]),
        "null count": History(events=good.events, counts=[{"ts": 0, "topic": "t", "partition_count": None}]),
        "null lag": History(good.events, good.counts, [{"ts": 0, "topic": "t", "partition": 0, "lag": None}]),
        "null share": History(
            good.events, good.counts, [], [{"generation": 1, "member_id": "a", "topic": "t", "partitions": [None]}]
        ),
        "good": good,
        None: good,
    }
    errors = {row["group_id"]: row["error"] for row in rows(histories, ["sticky"])}
    assert errors == {
        "kind": "events[0].kind is \"fly\"; known are 'join', 'leave', 'subscribe' and 'snapshot'",
        "null kind": "events[0].kind is null",
        "null seq": "events[0].seq is null",
        "null ts": "events[0].ts is null",
        "null member": "events[0].member_id is null",
        "null topic": "events[0].topics[] is null",
        "negative": 'topic "t" has -1 partitions; a partition count cannot be negative',
        "too many": 'topic "t" has 2147483647 partitions, and all topics of the group have 2147483647; a replay '
        "takes at most 1000000 of a group",
        "null count": "counts[0].partition_count is null",
        "null lag": "lags[0].lag is null",
        "null share": "observed[0].partitions[] is null",
        "good": None,
        None: "group_id is null",
    }


def test_odd_events_are_told_in_their_rebalance() -> None:
    odd = History(
        events=[
            event(1, "join", "a", ["t", "ghost"]),
            event(2, "join", "b", ["t"]),
            event(3, "leave", "b"),
            event(4, "leave", "b"),
            event(5, "leave", "a"),
            event(6, "snapshot", None),
            event(7, "join", "a", None),
        ],
        counts=[count(0, "t", 2)],
    )
    told = [(row["seq"], row["assigned"], row["error"]) for row in rows({"g": odd}, ["sticky"])]
    assert told == [
        (1, 2, 'seq 1: topic "ghost" has no known partition count'),
        (2, 2, None),
        (3, 2, None),
        (4, 2, 'seq 4: member "b" leaves but is not in the group'),
        (7, 0, None),
    ]
    assert rows({"none": History(), "empty": History(events=[event(1, "snapshot", None)])}, ["sticky"]) == []


def test_a_count_of_ninety_million_partitions_takes_no_memory() -> None:
    """In a process of its own, to read its peak memory. The first count is valid; the later one is refused at once."""
    script = (
        "import resource\n"
        "from kafka_assignors import _core\n"
        "from kafka_assignors.spark.strategies import STRATEGIES, kernel_options\n"
        "from support.histories import History, batch, count, event\n"
        "events = [event(1, 'join', 'a', ['t']), event(3, 'join', 'b', ['t'])]\n"
        "history = History(events=events, counts=[count(0, 't', 4), count(200, 't', 90_000_000)])\n"
        "replay = _core.Replay(kernel_options(STRATEGIES))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "rows = replay.run(batch({'g': history})).to_pylist()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        "print(*[(row['strategy'], row['error']) for row in rows], sep='\\n')\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    kilobytes, *rows = done.stdout.splitlines()
    assert int(kilobytes) < 50_000
    said = (
        'topic "t" has 90000000 partitions, and all topics of the group have 90000000; a replay takes at most 1000000 '
        "of a group"
    )
    assert rows == [str((None, said))]


def test_an_emptied_groups_partitions_had_an_owner() -> None:
    history = History(
        events=[
            event(1, "join", "a", ["t"]),
            event(2, "leave", "a"),
            event(3, "join", "b", ["t"]),
            event(4, "snapshot", None),
            event(5, "snapshot", "c", ["t"]),
        ],
        counts=[count(0, "t", 4)],
    )
    for strategy in ALL:
        figures = [(row["seq"], row["moved"], row["moved_needed"]) for row in rows({"g": history}, [strategy])]
        assert figures == [(1, 0, 0), (3, 4, 4), (5, 4, 4)], strategy


def test_rebalances_without_known_counts_have_no_figures_and_one_error() -> None:
    history = History(
        events=[
            *(event(1, "join", f"m{number}", ["t", "u"]) for number in range(100)),
            event(2, "leave", "m0", generation=8),
            event(4, "leave", "m1"),
        ],
        counts=[count(350, "t", 99)],
        observed=[{"generation": 8, "member_id": "m1", "topic": "t", "partitions": [0]}],
    )
    found = rows({"g": history}, ["sticky", "lag"])
    without = [row for row in found if row["moved"] is None]
    assert [(row["strategy"], row["seq"], row["ts"], row["generation"], row["cause"]) for row in without] == [
        ("sticky", 1, 100, 1, "members"),
        ("lag", 1, 100, 1, "members"),
        ("sticky", 2, 200, 2, "members"),
        ("lag", 2, 200, 2, "members"),
        ("observed", 2, 200, 8, "members"),
    ]
    assert all(
        row["error"] == f'seq {row["seq"]}: topic "t" has no known partition count (and 1 more)' for row in without
    )
    told = {"cluster", "group_id", "strategy", "seq", "ts", "generation", "cause", "error"}
    assert all(row[name] is None for row in without for name in set(row) - told)
    later = [
        (row["strategy"], row["seq"], row["cause"], row["assigned"], row["moved"], row["error"]) for row in found[5:]
    ]
    assert later == [
        ("sticky", 2, "partitions", 99, 0, None),
        ("lag", 2, "partitions", 99, 0, None),
        ("sticky", 4, "members", 99, 1, None),
        ("lag", 4, "members", 99, 1, None),
    ]
    assert [row for part in _core.Replay(kernel_options(["sticky"])).assignments(batch({"g": history}))
            for row in part.to_pylist() if row["seq"] == 1] == []  # fmt: skip


def test_bytes_that_are_no_text_and_offsets_beyond_the_end_cost_their_group_only() -> None:
    """No correct writer produces such bytes. Such arrays cannot be built from Python values."""
    good = batch({"a": drawn(1), "b": drawn(2), "c": drawn(3)})
    replay = _core.Replay(kernel_options(["sticky"]))
    # In the last two cases all bytes together are valid UTF-8, but a text ends within a character.
    for text, ends, known in (
        (b"a\xffc", [0, 1, 2, 3], {"a", "c"}),
        ("aéc".encode(), [0, 1, 2, 4], {"a"}),
        ("aé".encode(), [0, 2, 3, 3], {""}),
    ):
        offsets = pyarrow.array(ends, pyarrow.int32()).buffers()[1]
        names = pyarrow.Array.from_buffers(pyarrow.string(), 3, [None, offsets, pyarrow.py_buffer(text)])
        found = replay.run(good.set_column(1, "group_id", names)).to_pylist()
        errors = [row["error"] for row in found if row["group_id"] is None]
        assert errors == ["group_id is not valid UTF-8"] * (3 - len(known)), text
        assert {row["group_id"] for row in found} == known | {None}, text

    events = good.column("events")
    offsets = events.offsets.to_pylist()
    for broken in ([0, offsets[1], 1 << 30, offsets[3]], [0, offsets[1], -5, offsets[3]]):
        buffer = pyarrow.array(broken, pyarrow.int32()).buffers()[1]
        lists = pyarrow.Array.from_buffers(events.type, 3, [None, buffer], children=[events.values])
        found = replay.run(good.set_column(2, "events", lists)).to_pylist()
        assert any("offsets outside of its items" in (row["error"] or "") for row in found)
        assert any(row["group_id"] == "a" and row["error"] is None for row in found)


def test_slices_and_nulls_are_read_where_they_are() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(10)}
    whole, replay = batch(histories), _core.Replay(kernel_options(["range"]))
    parts = [row for start in range(0, 10, 3) for row in replay.run(whole.slice(start, 3)).to_pylist()]
    alone = replay.run(whole).to_pylist()
    for row in (*parts, *alone):
        del row["kernel_ns"]
    assert parts == alone
    nothing = pyarrow.RecordBatch.from_pylist([{"cluster": "c", "group_id": "g"}], SCHEMA)
    assert replay.run(nothing).num_rows == 0
    assert replay.run(whole.slice(0, 0)).num_rows == 0


def test_assignments_say_who_had_what() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(40)}
    replay = _core.Replay(kernel_options(["sticky", "range"]))
    figures = replay.run(batch(histories)).to_pylist()
    shares = [row for part in replay.assignments(batch(histories)) for row in part.to_pylist()]
    counted: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in shares:
        key = tuple(row[name] for name in ("group_id", "strategy", "seq", "ts", "generation"))
        assert row["partitions"] == sorted(set(row["partitions"]))
        loads = counted.setdefault(key, {})
        loads[row["member_id"]] = loads.get(row["member_id"], 0) + len(row["partitions"])
    for row in figures:
        loads = counted.pop(tuple(row[name] for name in ("group_id", "strategy", "seq", "ts", "generation")), {})
        assert (sum(loads.values()), max(loads.values(), default=0)) == (row["assigned"], row["max_count"])
    assert counted == {}


def test_assignments_come_in_bounded_batches_and_may_be_left() -> None:
    members = [event(1, "join", f"m{number:02}", ["t"]) for number in range(20)]
    changes = [event(seq, "leave" if seq % 2 == 0 else "join", "m00", ["t"]) for seq in range(2, 22)]
    history = History(events=members + changes, counts=[count(0, "t", 100_000)])
    replay = _core.Replay(kernel_options(["sticky"]))
    sizes = [sum(map(len, part.column("partitions").to_pylist())) for part in replay.assignments(batch({"g": history}))]
    assert sum(sizes) == 21 * 100_000
    assert max(sizes) < 300_000
    left = iter(replay.assignments(batch({"g": history})))
    next(left)
    assert workers() == 1
    del left
    deadline = time.monotonic() + 60
    while workers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers() == 0


def workers() -> int:
    """The number of threads that replay. The kernel shows 15 characters of their names."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return names.count("kafka-assignors-replay"[:15])


def test_a_large_group() -> None:
    members = [event(1, "join", f"m{number:03}", ["t"]) for number in range(100)]
    history = History(events=[*members, event(2, "leave", "m007")], counts=[count(0, "t", 100_000)])
    found = rows({"g": history}, ["sticky", "cooperative-sticky"])
    assert [(row["seq"], row["moved"], row["assigned"]) for row in found] == [
        (1, 0, 100_000),
        (1, 0, 100_000),
        (2, 1_000, 100_000),
        (2, 1_000, 100_000),
    ]


def test_other_columns_are_refused() -> None:
    replay = _core.Replay(kernel_options(["sticky"]))
    good = batch({"g": drawn(1)})
    with pytest.raises(TableError, match='column 0 of the batch is to be "cluster", but its columns are'):
        replay.run(good.select(["group_id"]))
    with pytest.raises(TableError, match='column "cluster" has type Int32; give Utf8'):
        replay.run(good.set_column(0, "cluster", pyarrow.array([1], pyarrow.int32())))
    with pytest.raises(TableError, match='a column "more" that is not known'):
        replay.assignments(good.append_column("more", pyarrow.array([1])))
    with pytest.raises(OptionError, match='strategy "x" is given twice'):
        _core.Replay([("x", ("range", "fair", "before-stickiness")), ("x", ("range", "fair", "before-stickiness"))])
    with pytest.raises(OptionError, match="is reserved for the observed assignments"):
        _core.Replay([("observed", ("range", "fair", "before-stickiness"))])


def test_the_floor_looks_at_nothing() -> None:
    found = _core.Replay(kernel_options(["sticky"])).floor(batch({"a": drawn(1), "b": drawn(2)})).to_pylist()
    assert [(row["group_id"], row["strategy"], row["error"]) for row in found] == [("a", None, None), ("b", None, None)]
