"""`make race`: its points, its judge, and peers that fail."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from race import __main__ as race_command
from race import contenders, report
from race.contenders import FLOORS, OURS, PEERS, Contender, MissingPeerError
from race.measure import Plans, Timed, measure
from race.plans import InvalidPlanError, Judge, Quality
from race.points import POINTS, QUICK, Group, Point, subscription
from race.run import QUICK as LIMITS
from race.run import GaveUpError, Race
from race.worker import _prefixed

from kafka_assignors import Group as PlannedGroup
from kafka_assignors import Member, StickyAssignor
from kafka_assignors.userdata import StickyUserData, Subscription

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Starting a JVM, and the first download by Maven and Go, take long.
pytestmark = [pytest.mark.needs("benches"), pytest.mark.floors, pytest.mark.timeout(400)]

ROOT = Path(__file__).parent.parent
SMALL = Point(20, 5, 10, "equal", "one joins")
# Java is installed wherever these tests run, since they need a broker. Go may be missing; then its harness is not
# tested.
HARNESSES = ["Java StickyAssignor", "Java CooperativeStickyAssignor"]
if shutil.which("go") or Path(contenders.GO).exists():
    HARNESSES += ["franz-go sticky", "franz-go cooperative-sticky", "Sarama sticky", "Sarama cooperative-sticky"]
# One process builds the Go harness, for most of a minute. Otherwise three further ones would wait for it.
GO = pytest.mark.xdist_group("race")


def peer(name: str) -> Contender:
    (found,) = (each for each in PEERS if each.name == name)
    return found


@pytest.fixture
def race() -> Iterator[Race]:
    race = Race(replace(LIMITS, budget=10.0))
    yield race
    race.close()


# ---- the points ----


def test_the_grid_is_spread_over_what_it_promises() -> None:
    assert 40 <= len(POINTS) <= 48
    assert len({point.name for point in (*POINTS, *QUICK)}) == len(POINTS) + len(QUICK)
    assert {point.members for point in POINTS} == {100, 1_000, 10_000}
    assert {point.per_member for point in POINTS} == {5, 10, 50}
    assert {point.topics for point in POINTS} == {10, 100, 1_000}
    assert len({point.kind for point in POINTS}) == len({point.change for point in POINTS}) == 6
    assert {point.racks for point in POINTS} == {True, False}
    assert all(point.partitions >= point.topics for point in POINTS)


def small(kind: Any, change: Any, racks: bool = False) -> Point:
    return Point(50, 10, 100, kind, change, racks)


@pytest.mark.parametrize("change", ["fresh", "one joins", "one leaves", "10 % replaced", "doubled", "redrawn"])
@pytest.mark.parametrize("kind", ["equal", "one odd member", "5 buckets", "random", "skewed", "chain"])
def test_a_point_is_the_same_group_each_time_and_its_bytes_say_what_is_owned(kind: Any, change: Any) -> None:
    point = small(kind, change)
    group = point.group()
    assert group == point.group()
    assert group.ids == sorted(group.ids)
    assert len(group.ids) == 50 + {"one joins": 1, "one leaves": -1}.get(change, 0)
    assert len(group.owned) == {"fresh": 0, "one leaves": 49, "10 % replaced": 45, "doubled": 25}.get(change, 50)
    for member, metadata in group.joined():
        read = Subscription.decode(metadata, strict=True)
        assert (read.version, read.topics, read.rack) == (3, tuple(sorted(group.subscriptions[member])), None)
        expected = {name: tuple(numbers) for name, numbers in group.owned.get(member, {}).items()}
        assert read.owned == expected
        claim = StickyUserData.decode(read.user_data, strict=True)
        assert (claim.assignments, claim.generation) == (expected, read.generation)
        assert read.generation == (5 if member in group.owned else -1)


def test_members_and_partitions_have_racks_where_they_count() -> None:
    group = small("random", "one joins", racks=True).group()
    assert set(group.racks) == set(group.ids)
    assert {Subscription.decode(metadata).rack for _, metadata in group.joined()} == {"rack-0", "rack-1", "rack-2"}
    plan = StickyAssignor().assign(
        PlannedGroup(
            group.partitions, [Member(each, t, rack=group.racks[each]) for each, t in group.subscriptions.items()]
        )
    )
    assert plan.verify().rack_misses is not None


def test_the_form_that_kafka_python_reads_says_the_same() -> None:
    metadata = subscription(["t", "u"], {"t": [0, 2]}, 5, "r")
    read = Subscription.decode(_prefixed(metadata), strict=True)
    assert (read.topics, read.owned, read.generation, read.rack) == (("t", "u"), {"t": (0, 2)}, 5, "r")
    assert read.user_data is not None
    assert read.user_data[:2] == b"\0\1"
    assert StickyUserData.decode(read.user_data, strict=True) == StickyUserData({"t": (0, 2)}, 5)
    fresh = subscription(["t"], None, 5)
    assert _prefixed(fresh) == fresh


def test_the_page_shows_the_committed_results() -> None:
    about, results = report.read(ROOT / "docs" / "figures" / "race")
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert set(results) == {point.name for point in POINTS}
    assert report.section(results, about) in page
    assert (ROOT / "docs" / "figures" / "race" / "results.md").read_text() == report.markdown(results, about)


def test_a_page_without_a_place_for_results_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    about = {"date": "d", "processor": "p", "versions": {"Python": "3"}}
    report.publish(page, {}, about)
    assert page.read_text() == f"before\n{report.section({}, about)}\nafter\n"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match=r"page.md has no section"):
        report.publish(page, {}, about)


# ---- the judge ----

GROUP = Group({"t": 4, "u": 2}, {"a": ("t", "u"), "b": ("t",)}, {"a": {"t": [0, 1], "u": [0]}, "b": {"t": [3]}})


def assignments(*shares: Mapping[str, Sequence[int]]) -> list[bytes | None]:
    encoded: list[bytes | None] = []
    for share in shares:
        # After version and topics (none), a subscription has user data, which list partitions like an assignment.
        owned = subscription([], share, 1)
        size = int.from_bytes(owned[6:10], "big")
        encoded.append(b"\0\3" + owned[10 : 10 + size - 4] + b"\xff\xff\xff\xff")
    return encoded


def test_a_plan_is_judged_by_score_and_what_is_kept() -> None:
    judge = Judge(GROUP)
    assert judge.quality(assignments({"t": [0], "u": [0, 1]}, {"t": [1, 2, 3]})) == Quality(0, 0, 3)
    assert judge.quality(assignments({"t": [0, 1, 2], "u": [1, 0]}, {"t": [3]}), 2) == Quality(4, 0, 4, 2)
    assert judge.withheld(assignments({"t": [0], "u": [0]}, {"t": [3]})) == 3
    again = judge.rejoined(assignments({"t": [0], "u": [0]}, {"t": [3]}), 1)
    assert (again.owned, again.generation) == ({"a": {"t": [0], "u": [0]}, "b": {"t": [3]}}, 6)


def test_plans_that_list_the_same_in_another_order_are_one() -> None:
    judge = Judge(GROUP)
    one, other = assignments({"t": [1, 0]}, {"t": [2]}), assignments({"t": [0, 1]}, {"t": [2]})
    assert one != other
    assert judge.canonical(one) == judge.canonical(other)
    assert judge.canonical(one) != judge.canonical(assignments({"t": [0]}, {"t": [1, 2]}))


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        (({"t": [0, 1], "u": [0]}, {"t": [2, 3]}), "1 partitions are given to nobody"),
        (({"t": [0, 1], "u": [0, 1]}, {"t": [1, 2, 3]}), "given twice"),
        (({"t": [0, 0, 1], "u": [0, 1]}, {"t": [2, 3]}), "given twice"),
        (({"t": [0, 1, 2], "u": [0]}, {"t": [3], "u": [1]}), "does not subscribe"),
        (({"t": [0, 1, 4], "u": [0, 1]}, {"t": [2, 3]}), "t has 4 partitions"),
    ],
)
def test_what_is_no_plan_is_said_to_be_none(shares: Any, problem: str) -> None:
    with pytest.raises(InvalidPlanError, match=problem):
        Judge(GROUP).quality(assignments(*shares))


def test_racks_count_before_what_is_kept() -> None:
    group = replace(GROUP, racks={"a": "rack-0", "b": "rack-1"})
    # Replicas of number n are on racks n and n + 1, modulo 3: number 1 is not on rack 0, number 2 not on rack 1.
    judge = Judge(group)
    missing = judge.quality(assignments({"t": [0, 1], "u": [0, 1]}, {"t": [2, 3]}))
    assert missing.misses == 3
    assert missing.behind(Quality(missing.score, 2, 0))
    assert not missing.behind(Quality(missing.score, 3, missing.kept))
    assert not missing.behind(Quality(missing.score + 1, 0, 9))


# ---- runs ----


@GO
@pytest.mark.needs("java", "peers")
def test_a_quick_run_measures_the_peers_that_are_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Other tests may use the processor at the same time, so only the quality is compared.
    assert race_command.main(["--quick", "--out", str(tmp_path)]) == 0
    stored = json.loads((tmp_path / report.RESULTS).read_text())
    assert list(stored["points"]) == [point.name for point in QUICK]
    for name, entries in stored["points"].items():
        quick = [each.name for each in (*FLOORS, *OURS, *PEERS[:3], peer("librdkafka cooperative-sticky"))]
        assert list(entries) == quick
        assert {each: entry["status"] for each, entry in entries.items()} == dict.fromkeys(quick, "measured"), name
        for each, floor in zip(OURS, FLOORS, strict=True):
            assert entries[each.name]["plans"] == 1
            assert entries[each.name]["calls"] == entries[floor.name]["calls"]
            assert entries[each.name]["compared"] == 10
            theirs = [
                entries[other.name] for other in PEERS if other.strategy == each.strategy and other.name in entries
            ]
            mine = report.quality(entries[each.name])
            assert not any(mine.behind(report.quality(entry)) for entry in theirs)
    page = (tmp_path / "results.md").read_text()
    assert all(f"## {point.name}" in page for point in QUICK)
    assert (tmp_path / "race.png").stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert "librdkafka cooperative-sticky" in printed
    assert "kafka-assignors sticky: " in printed


@pytest.mark.parametrize(("budget", "rounds"), [(1e9, 10), (0.0, 1)])
def test_ours_and_the_floor_are_measured_in_turns(budget: float, rounds: int) -> None:
    """Without time for a second call of ours, the first one counts, and the floor is called once."""
    calls: list[str] = []

    def timed(name: str, wall: int, cpu: int) -> Timed:
        calls.append(name)
        return wall, cpu, {"m": name.encode()}

    plans = Plans(["m"])
    request = {"budget": budget, "warm": 0, "least": 0}
    figures = measure(partial(timed, "ours", 30, 20), request, plans, partial(timed, "floor", 3, 2))
    cold = rounds == 1
    assert calls == ["ours"] * (not cold) + ["ours", "floor"] * rounds
    expected = {"wall": 30, "cpu": 20, "beside_wall": 3, "beside_cpu": 2}
    assert figures == {"cold": cold, **{name: [each] * rounds for name, each in expected.items()}}
    assert plans.of_call == [0] * rounds


def test_the_distance_to_the_floor_is_the_median_and_the_largest() -> None:
    name = OURS[0].name
    results = {f"point {each}": {name: measured(cpu_ms=each, floor_cpu_ms=2.0)} for each in (3.0, 2.5, 8.0)}
    late = {"point 9": {name: {"status": "gave up", "reason": "late"}}}
    assert list(report.to_floor(results | late)) == [
        f"{name}: 1.50 times the codec floor in the median, at most 4.00 times (point 8.0)"
    ]


@GO
@pytest.mark.needs("java", "peers")
@pytest.mark.parametrize("name", HARNESSES)
def test_the_harness_of_a_peer(name: str, race: Race) -> None:
    """The peer's plan is valid. With equal subscriptions it is as balanced as ours, and keeps as many partitions."""
    contender = peer(name)
    entries = race.run(SMALL, [contender])
    entry, mine = entries[name], entries[f"kafka-assignors {contender.strategy}"]
    assert entry["status"] == "measured", entry
    assert (entry["score"], entry["kept"]) == (mine["score"], mine["kept"])
    assert entry["rounds"] == mine["rounds"] == (2 if contender.cooperative else 1)
    assert entry["compared"] == 10
    assert entry["cpu_ms"] > 0
    with_racks = race.run(QUICK[2], [contender])[name]
    assert with_racks["status"] == "measured", with_racks


@GO
@pytest.mark.needs("java", "peers")
def test_results_of_parts_add_up(tmp_path: Path) -> None:
    out = ["--quick", "--out", str(tmp_path)]
    first, second, third = QUICK
    assert race_command.main([*out, "--peers", "none", "--part", "1/2"]) == 0
    assert list(report.read(tmp_path)[1]) == [first.name, third.name]
    assert race_command.main([*out, "--peers", "aiokafka*", "--only", second.name]) == 0
    assert race_command.main([*out, "--peers", "kafka-python sticky", "--only", second.name]) == 0
    _, results = report.read(tmp_path)
    assert list(results) == [first.name, second.name, third.name]
    names = [each.name for each in (*FLOORS, *OURS)]
    assert list(results[first.name]) == names
    assert list(results[second.name]) == [*names, "kafka-python sticky", "aiokafka sticky"]


def test_a_peer_that_is_missing_is_named(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(contenders, "GO", "/nowhere/go")
    contenders.available.cache_clear()
    try:
        with pytest.raises(MissingPeerError, match="go is not on PATH"):
            contenders.available("franz-go")
        entry = race.run(SMALL, [peer("franz-go sticky")])["franz-go sticky"]
    finally:
        contenders.available.cache_clear()
    assert entry["status"] == "missing"
    assert entry["reason"].startswith("go is not on PATH: the harness of franz-go needs Go")
    (line,) = [line for line in report.summary({"p": {"franz-go sticky": entry}}) if line[0] == "franz-go sticky"]
    assert line[2] == entry["reason"]


def test_a_run_without_figures_of_ours_ends(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(*_: object) -> dict[str, Any]:
        raise GaveUpError("gave up after 9 s")

    monkeypatch.setattr(race, "_measure", measure)
    with pytest.raises(RuntimeError, match=f"^{OURS[0].name} was not measured at {SMALL.name}: gave up after 9 s$"):
        race.run(SMALL, [])


def test_a_peer_that_gives_up_is_named_and_not_tried_where_it_is_no_easier(monkeypatch: pytest.MonkeyPatch) -> None:
    contender = peer("kafka-python sticky")
    race = Race(replace(LIMITS, call=0.5))
    # kafka-python needs seconds for this point, ours a millisecond.
    hard = Point(300, 10, 100, "random", "redrawn")
    try:
        entry = race.run(hard, [contender])[contender.name]
        assert entry == {"status": "gave up", "reason": "gave up after 0.5 s"}
        larger = race.run(Point(400, 10, 100, "random", "redrawn"), [contender])[contender.name]
        assert larger == {"status": "not tried", "reason": f"gave up after 0.5 s at {hard.name}"}
        assert race.run(SMALL, [contender])[contender.name]["status"] == "measured"
    finally:
        race.close()


def test_a_worker_that_fails_says_why(race: Race) -> None:
    contender = replace(peer("aiokafka sticky"), call="range")
    entry = race.run(SMALL, [contender])[contender.name]
    assert entry == {"status": "gave up", "reason": "failed: KeyError: 'range'"}


def measured(**figures: Any) -> dict[str, Any]:
    usual = {"status": "measured", "cpu_ms": 1.0, "wall_ms": 1.0, "ours_cpu_ms": 1.0, "ours_wall_ms": 1.0, "plans": 1}
    return {**usual, "score": 4, "misses": 0, "kept": 10, "rounds": 1, **figures}


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"cpu_ms": 1.1, "wall_ms": 2.0}, []),
        ({"cpu_ms": 0.9, "wall_ms": 2.0}, ["is faster: cpu_ms 0.900 against 1.000"]),
        ({"cpu_ms": 2.0, "wall_ms": 1.0}, ["is faster: wall_ms"]),
        ({"cpu_ms": 2.0, "wall_ms": 2.0, "kept": 11}, ["plans better"]),
        ({"cpu_ms": 2.0, "wall_ms": 2.0, "kept": 11, "score": 5}, []),
        ({"cpu_ms": 2.0, "wall_ms": 2.0, "score": 3}, ["plans better"]),
    ],
)
def test_where_ours_is_not_ahead_is_said(theirs: dict[str, Any], told: list[str]) -> None:
    mine = {each.name: measured() for each in OURS}
    found = report.behind({"p": {**mine, "aiokafka sticky": measured(**theirs)}})
    assert len(found) == len(told)
    assert all(expected in line for expected, line in zip(told, found, strict=True))


def test_that_ours_plans_differently_each_time_or_fails_is_said() -> None:
    sticky, cooperative = (each.name for each in OURS)
    found = report.behind({"p": {sticky: measured(plans=2), cooperative: {"status": "gave up", "reason": "late"}}})
    assert found == [f"p: {sticky} made 2 different plans", f"p: {cooperative}: late"]


@pytest.mark.parametrize(
    "arguments", [["--only", "nothing"], ["--peers", "nobody"], ["--part", "3/2"], ["--part", "x"], ["--minute", "0"]]
)
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        race_command.main(arguments)
    assert stopped.value.code == 2
    assert arguments[1] in capsys.readouterr().err


def test_points_and_peers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert race_command.main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [*(point.name for point in POINTS), "", *(each.name for each in PEERS)]
