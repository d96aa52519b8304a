"""From the tables of a replay to the report, on Spark. The figures are computed again from the same rows."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import kafka_assignors.spark.report_groups as groups_module
from kafka_assignors import KafkaAssignorsError, OptionError
from kafka_assignors.assignors import by_name
from kafka_assignors.autoscale import Workload, parse_policy, replay
from kafka_assignors.report.page import page, write
from kafka_assignors.spark.app import app
from kafka_assignors.spark.files import check_target, write_report
from kafka_assignors.spark.fleet import FleetOptions
from kafka_assignors.spark.report import find_table, recommendations, report
from kafka_assignors.spark.schemas import schema
from support import replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors.report.model import Report

pytestmark = [pytest.mark.xdist_group("spark-2"), pytest.mark.timeout(900)]

GROUPS = 40


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    """A small fleet, replayed, and one group that could not be replayed."""
    found = replayed.tables(FleetOptions(11, GROUPS))
    nothing = dict.fromkeys(found["rebalances"][0])
    found["rebalances"].append(nothing | {"cluster": "synthetic", "group_id": "<broken>", "error": "ts is null"})
    frames = {}
    for name, rows in found.items():
        wanted = schema(name)
        frames[name] = spark.createDataFrame([[row.get(each) for each in wanted.names] for row in rows], wanted).cache()
    return frames


@pytest.fixture(scope="module")
def made(tables: dict[str, DataFrame]) -> Report:
    return report(
        tables["rebalances"],
        events=tables["membership_events"],
        lags=tables["lags"],
        assignments=tables["assignments"],
        joined="^join-",
        top=4,
    )


@pytest.fixture(scope="module")
def one(made: Report) -> Report:
    """With one group's pictures only: drawing is most of the time that a page takes."""
    return replace(made, worst=made.worst[:1])


def test_totals_are_those_of_the_rows(tables: dict[str, DataFrame], made: Report) -> None:
    by_strategy: dict[str, list[Any]] = defaultdict(list)
    for row in tables["rebalances"].collect():
        if row["moved"] is not None:
            by_strategy[row["strategy"]].append(row)
    assert {each.strategy for each in made.strategies} == set(by_strategy)
    assert made.groups == GROUPS + 1
    for each in made.strategies:
        found = by_strategy[each.strategy]
        assert each.rebalances == len(found)
        assert each.groups == len({row["group_id"] for row in found})
        assert each.moved == sum(row["moved"] for row in found)
        assert each.moved_needed == sum(row["moved_needed"] for row in found)
        assert each.assigned == sum(row["assigned"] for row in found)
        assert each.copartition_violations == sum(row["copartition_violations"] for row in found)
        spreads = sorted(row["max_count"] - row["min_count"] for row in found)
        assert each.spread.max == spreads[-1]
        assert spreads[(len(spreads) - 1) // 2] <= each.spread.p50 <= spreads[len(spreads) // 2]
    assert made.rebalances == max(map(len, by_strategy.values()))


def test_periods_add_up(made: Report) -> None:
    assert 10 < len(made.periods) <= 80
    starts = [each.ts for each in made.periods]
    assert {later - earlier for earlier, later in itertools.pairwise(starts)} == {made.period_ms}
    for each in made.strategies:
        assert sum(period.moved.get(each.strategy, 0) for period in made.periods) == each.moved


def test_every_group_has_a_recommendation(tables: dict[str, DataFrame], made: Report) -> None:
    rows = recommendations(tables["rebalances"], joined="^join-").collect()
    assert len({row["group_id"] for row in rows}) == len(rows) == GROUPS + 1
    assert all(row["reason"] for row in rows)
    counted: dict[str, int] = defaultdict(int)
    for row in rows:
        counted[row["strategy"] or "none"] += 1
        assert (row["today"] is None) == (row["saved"] is None) == (row["nobody_gets_today"] is None)
        if row["group_id"].startswith("join-"):
            assert row["rule"] != "unknown"
    assert made.recommendations == counted
    assert counted["none"] == 1
    assert made.moved_today == sum(row["moved_today"] or 0 for row in rows)
    # The figure on the card equals the figure of the bar.
    assert made.moved_today == next(each.moved for each in made.strategies if each.strategy == "observed")
    assert made.observed_groups == GROUPS
    assert made.moved_recommended == made.moved_today - sum(row["saved"] or 0 for row in rows)
    gains = sorted((row["saved"] or 0 for row in rows), reverse=True)
    assert [each.saved for each in made.worst] == gains[:4]
    assert gains[0] > 0


def test_timelines_move_what_the_rows_say(tables: dict[str, DataFrame], made: Report) -> None:
    moved: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for row in tables["rebalances"].where("moved is not null").collect():
        moved[row["group_id"], row["strategy"]].append((row["ts"], row["seq"], row["moved"]))
    seen = 0
    for group in made.worst:
        assert group.ownership[0].strategy == "observed"
        for line in group.ownership:
            expected = sorted(moved[group.figures.group_id, line.strategy])[-len(line.times) :]
            assert list(line.times) == [ts for ts, _, _ in expected]
            assert list(line.moved) == [count for _, _, count in expected]
            # As in the table of owners, except for partitions of deleted topics.
            changed = [
                sum(old >= 0 and old != new for old, new in zip(before, after, strict=True))
                for before, after in itertools.pairwise(line.owners)
            ]
            if group.figures.group_id.startswith("regex"):
                assert all(more >= count for more, count in zip(changed, line.moved[1:], strict=True))
            else:
                assert changed == list(line.moved[1:]), (group.figures.group_id, line.strategy)
            seen += 1
    assert seen >= 4


def test_lags_of_members_add_up(made: Report) -> None:
    told = [group.lag for group in made.worst if group.lag is not None]
    assert told
    for lag in told:
        totals = {name: sum(by_member.values()) for name, by_member in lag.strategies.items()}
        # The total lag does not depend on the owners. A join leaves some partitions without an owner.
        plain = {total for name, total in totals.items() if "join" not in name}
        assert len(plain) == 1, totals
        assert all(total <= max(plain) for total in totals.values())


def test_the_driver_gets_the_end_of_a_history_only(
    tables: dict[str, DataFrame], made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last rebalances of the two compared strategies; of other strategies, only the rebalance with shown lags."""
    most = 5
    monkeypatch.setattr(groups_module, "COLUMNS_SHOWN", most)
    seen: list[Any] = []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            seen.append(function(*given))
            return seen[-1]

        return call

    monkeypatch.setattr(groups_module, "_Assignments", noted(groups_module._Assignments))
    monkeypatch.setattr(groups_module, "_lags_at", noted(groups_module._lags_at))
    # The same lags a hundred times, earlier: only the last one of each partition counts.
    early = tables["lags"].selectExpr("*", "explode(sequence(1, 100)) as earlier")
    early = early.selectExpr("cluster", "group_id", "ts - earlier as ts", "topic", "partition", "lag + earlier as lag")
    cut = report(
        tables["rebalances"],
        events=tables["membership_events"],
        lags=tables["lags"].select(early.columns).unionByName(early),
        assignments=tables["assignments"],
        joined="^join-",
        top=4,
        sections=0,
    )
    moments = {key: len(steps) for key, steps in seen[0]._found.items()}
    assert max(moments.values()) <= most + 1
    assert sum(moments.values()) <= 4 * (2 * most + len({name for _, name in moments}))
    assert all(
        len(lags) <= group.figures.partitions * 5 for group, lags in zip(cut.worst, seen[1].values(), strict=True)
    )
    assert [group.lag for group in cut.worst] == [group.lag for group in made.worst]
    for group, whole in zip(cut.worst, made.worst, strict=True):
        assert [(line.strategy, list(line.times)) for line in group.ownership] == [
            (line.strategy, list(line.times)[-most:]) for line in whole.ownership
        ]


def test_the_driver_collects_some_groups_at_a_time(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(step, f"m{step % 7}", "t", [step]) for step in range(50)]
    frame = spark.createDataFrame(rows, "step int, member_id string, topic string, partitions array<int>")
    collected = []
    collect = groups_module._tuples

    def counted(part: DataFrame) -> Iterator[Any]:
        found = list(collect(part))
        collected.append(len(found))
        return iter(found)

    monkeypatch.setattr(groups_module, "_tuples", counted)
    assert sorted(groups_module._in_parts(frame, 40)) == rows
    assert collected == [50]
    collected.clear()
    assert sorted(groups_module._in_parts(frame, 41)) == rows
    assert collected == [25, 25]
    assert not frame.is_cached


def test_every_group_that_should_change_has_a_section(tables: dict[str, DataFrame], made: Report) -> None:
    rows = [row for row in recommendations(tables["rebalances"], joined="^join-").collect() if row["strategy"]]
    changing = {row["group_id"]: row["saved"] for row in rows if row["strategy"] != "keep"}
    above = {each.figures.group_id for each in made.worst}
    below = [each.figures.group_id for each in made.changes]
    assert len(changing) == made.changing > 4
    assert set(below) == set(changing) - above
    assert [changing[each] for each in below] == sorted((changing[each] for each in below), reverse=True)
    assert all(each.changes and each.lag is None for each in made.changes)
    # Timelines are drawn for strategies that are in the table of assignments.
    drawn = [each for each in made.changes if each.ownership]
    assert drawn
    for group in drawn:
        for line in group.ownership:
            assert len(line.owners) == len(line.times) == len(line.moved)
    few = report(tables["rebalances"], joined="^join-", top=1, sections=2)
    assert [each.figures.group_id for each in (*few.worst, *few.changes)] == [
        each.figures.group_id for each in (*made.worst, *made.changes)
    ][:3]
    assert few.changing == made.changing
    text = page(few)
    assert f"the other {made.changing - 3:,} have none" in " ".join(text.split())
    assert "report --group NAME" in text
    with pytest.raises(OptionError, match="sections is 1001; give a number of groups, 0 to 1000"):
        report(tables["rebalances"], sections=1_001)


def test_what_failed_is_told(made: Report, one: Report) -> None:
    broken = [each for each in made.failures if each.group_id == "<broken>"]
    assert len(broken) == 1
    assert broken[0].strategy == "all strategies"
    assert made.failures[0] == broken[0]
    assert made.failed_groups >= 1
    html = page(one)
    assert "&lt;broken&gt;" in html
    assert "<broken>" not in html


def test_only_rebalances_is_needed(tables: dict[str, DataFrame]) -> None:
    small = tables["rebalances"].where("strategy in ('range', 'sticky')")
    found = report(small, top=2)
    assert [each.strategy for each in found.strategies] == sorted(
        ("range", "sticky"), key=lambda name: next(each.moved for each in found.strategies if each.strategy == name)
    )
    assert len(found.notes) == 2
    assert found.notes[0] == (
        f"What was really assigned is in the tables for 0 of {GROUPS} groups; for {GROUPS} nothing stands for today."
    )
    assert (found.observed_groups, found.moved_today) == (0, 0)
    assert all(each.saved == 0 for each in found.worst)
    assert all(not group.ownership and group.lag is None for group in found.worst)
    page(found)


def test_what_groups_run_is_what_was_captured(spark: SparkSession) -> None:
    """The protocol of a classic group, the type of a group that the broker assigns, and null if neither is known."""

    def row(group_id: str, strategy: str, moved: int, assigned: int = 100) -> tuple[Any, ...]:
        # Ten members, a hundred partitions.
        figures = (10, 100, assigned, 10, 10, 0, moved, moved, 0, 0.0, 1.0, None, None, 0, 1, None, None)
        return ("c", group_id, strategy, 1, 1_000, 1, "members", *figures)

    names = ("classic", "broker", "named broker", "upgraded", "unknown", "made")
    rows = [row(name, *of) for name in names for of in (("range", 3_447), ("sticky", 40), ("sticky-join", 0, 2))]
    rebalances = spark.createDataFrame(rows, schema("rebalances"))
    told = [
        ("classic", 1, "snapshot", "range", 1),
        ("classic", 2, "snapshot", "sticky", 2),
        ("broker", 1, "join", None, 1),
        ("named broker", 1, "join", "range", 1),
        ("upgraded", 1, "snapshot", "range", 1),
        ("upgraded", 2, "join", None, 2),
        ("made", 1, "join", "range", None),
    ]
    columns = [column for column in schema("membership_events").fields if column.name in (
        "cluster", "group_id", "seq", "ts", "kind", "member_id", "topics", "protocol", "src_offset")]  # fmt: skip
    wanted = schema("membership_events")
    wanted.fields, wanted.names = columns, [column.name for column in columns]
    values = [("c", group, seq, 0, kind, "m", ["t"], protocol, offset) for group, seq, kind, protocol, offset in told]
    events = spark.createDataFrame(values, wanted)
    found = {each["group_id"]: each for each in recommendations(rebalances, events=events).collect()}
    assert {name: (each["running"], each["by_broker"], each["today"]) for name, each in found.items()} == {
        "classic": ("sticky", False, "sticky"),
        "broker": (None, True, None),
        "named broker": ("range", True, None),
        "upgraded": (None, True, None),
        "unknown": (None, False, None),
        "made": ("range", False, "range"),
    }
    assert {name: (each["strategy"], each["saved"]) for name, each in found.items()} == {
        "classic": ("keep", 0),
        "broker": ("keep", None),
        "named broker": ("keep", None),
        "upgraded": ("keep", None),
        "unknown": ("sticky", None),
        "made": ("sticky", 3_407),
    }
    assert found["made"]["nobody_gets_today"] == found["made"]["nobody_gets_recommended"] == 0
    page_of = report(rebalances, events=events, joined="made")
    assert page_of.notes[0] == (
        "What was really assigned is in the tables for 0 of 6 groups; for 2 the strategy in use is known and replayed, "
        "and stands for today; 3 are assigned by the broker (KIP-848); for 1 nothing stands for today."
    )
    # A join in which no member reads most partitions is not recommended.
    assert page_of.recommendations == {"keep": 4, "sticky": 2}
    shares = {each.strategy: each.unassigned_share for each in page_of.strategies}
    assert shares == {"range": 0, "sticky": 0, "sticky-join": 0.98}


def test_what_the_heaviest_member_carries_is_of_weighted_strategies(spark: SparkSession) -> None:
    def row(group_id: str, seq: int, strategy: str, *loads: float | None) -> tuple[Any, ...]:
        rebalance = ("c", group_id, strategy, seq, seq, seq, "members", 2, 4, 4, 2, 2, 0, 1, 1, 0, 0.0, 1.0)
        return (*rebalance, *loads, 0, 1, None, None)

    rows = [
        row("g", 1, "weighted", 3.0, 2.0),
        row("g", 2, "weighted", 2.0, 2.0),
        row("h", 1, "weighted", 4.0, 2.0),
        # A plan without load, and a plan whose weights could not be used.
        row("h", 2, "weighted", 0.0, 0.0),
        row("h", 3, "weighted", None, None),
        *(row(group_id, 1, "sticky", None, None) for group_id in "gh"),
    ]
    found = report(spark.createDataFrame(rows, schema("rebalances")))
    totals = {each.strategy: (each.load_ratio_mean, each.load_ratio_max) for each in found.strategies}
    assert totals == {"weighted": (1.375, 2.0), "sticky": (None, None)}
    of_groups = {
        (group.figures.group_id, name): (each.load_ratio_mean, each.load_ratio_max)
        for group in found.worst
        for name, each in group.figures.strategies.items()
    }
    assert of_groups == {
        ("g", "weighted"): (1.25, 1.5),
        ("h", "weighted"): (1.5, 2.0),
        ("g", "sticky"): (None, None),
        ("h", "sticky"): (None, None),
    }
    text = page(found)
    for figure in ('load_ratio_mean">1.38<', 'load_ratio_max">2<', 'load_ratio_mean">1.25<', 'load_ratio_max">1.5<'):
        assert figure in text


def test_a_rebalance_without_figures_is_no_failure_of_the_strategy(spark: SparkSession) -> None:
    good = (
        "c",
        "g",
        "range",
        2,
        2_000,
        2,
        "members",
        2,
        4,
        4,
        2,
        2,
        0,
        1,
        1,
        0,
        0.0,
        1.0,
        None,
        None,
        0,
        1,
        None,
        None,
    )
    error = "seq 1: topic t has no known partition count"
    unknown = ("c", "g", "range", 1, 1_000, 1, "members", *[None] * 15, error, None)
    none = ("c", "h", *unknown[2:])
    found = report(spark.createDataFrame([good, unknown, none], schema("rebalances")))
    (of_range,) = found.strategies
    assert (of_range.groups, of_range.failed, of_range.rebalances, of_range.moved) == (2, 1, 1, 1)
    assert found.failed_groups == 2
    assert {each.figures.group_id: each.figures.strategies["range"].error for each in found.worst} == {
        "g": None,
        "h": error,
    }


def test_a_group_without_a_name_is_a_failure_and_no_crash(tables: dict[str, DataFrame], spark: SparkSession) -> None:
    nothing: list[Any] = [None] * len(schema("rebalances").names)
    nothing[0], nothing[schema("rebalances").names.index("error")] = "c", "group_id is null"
    rebalances = spark.createDataFrame([tuple(nothing)], schema("rebalances")).unionAll(
        tables["rebalances"].where("group_id like 'join-%'")
    )
    found = report(rebalances, joined="^join-", top=1_000)
    assert found.failures[0].error == "group_id is null"
    assert all(each.figures.joined for each in found.worst)
    page(found)


def test_an_expression_that_takes_forever_to_backtrack_takes_no_time(tables: dict[str, DataFrame]) -> None:
    """Expressions match in linear time. Their syntax is RE2's, which has no look-around."""
    long = "a" * 40
    one = tables["rebalances"].where("group_id like 'join-%'").replace({"synthetic": "c"}, subset=["cluster"])
    from pyspark.sql.functions import lit

    rows = recommendations(one.withColumn("group_id", lit(long)), joined="^(a|a?)+$b").collect()
    assert [row["group_id"] for row in rows] == [long]
    with pytest.raises(OptionError, match=r"joined is '\(\?=a\)'; give a regular expression"):
        recommendations(one, joined="(?=a)")


def test_no_rows_are_a_report_of_nothing(tables: dict[str, DataFrame]) -> None:
    nothing = report(tables["rebalances"].where("false"))
    assert (nothing.groups, nothing.strategies, nothing.periods, nothing.worst) == (0, [], [], [])
    page(nothing)


def test_bad_input(tables: dict[str, DataFrame], spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(KafkaAssignorsError, match="rebalances: has no column moved bigint"):
        report(tables["rebalances"].drop("moved"))
    with pytest.raises(OptionError, match="joined is '\\['; give a regular expression"):
        recommendations(tables["rebalances"], joined="[")
    with pytest.raises(OptionError, match="top is -1; give a number of groups"):
        report(tables["rebalances"], top=-1)
    assert find_table(spark, [str(tmp_path)], "rebalances") is None
    (tmp_path / "rebalances").mkdir()
    (tmp_path / "rebalances" / "part.parquet").write_bytes(b"no Parquet at all")
    with pytest.raises(KafkaAssignorsError, match="cannot be read as Parquet"):
        find_table(spark, [str(tmp_path)], "rebalances")


def test_the_command_leaves_page_figures_and_table(
    tables: dict[str, DataFrame], made: Report, spark: SparkSession, tmp_path: Path
) -> None:
    for name, table in tables.items():
        table.write.parquet(str(tmp_path / "in" / name))
    options = ["report", "--in", str(tmp_path / "none"), "--in", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*options, "--top", "1", "--joined", "^join-", "--title", "One page"])
    assert done.exit_code == 0, done.output
    names = ("report.html", "report.json", "recommendations")
    assert done.stdout.split() == [f"{tmp_path}/out/{name}" for name in names]
    values = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert values["title"] == "One page"
    assert values["strategies"] == made.to_json()["strategies"]
    assert [each["figures"]["group_id"] for each in values["worst"]] == [made.worst[0].figures.group_id]
    assert values["worst"][0]["ownership"] == made.to_json()["worst"][0]["ownership"]
    assert spark.read.parquet(str(tmp_path / "out" / "recommendations")).count() == GROUPS + 1


def test_who_asks_for_one_group_gets_it(
    tables: dict[str, DataFrame], made: Report, spark: SparkSession, tmp_path: Path
) -> None:
    """Also a group that gains nothing. With a table `autoscale`, the page about autoscalers is written, too."""
    tables["rebalances"].write.parquet(str(tmp_path / "rebalances"))
    steady = Workload.steady("g", {"t": 4}, rate=10.0, arrivals=20.0, lag=500, members=1)
    done = replay(steady, parse_policy("fixed(replicas=2)"), by_name("sticky"))
    figures = {each.name: getattr(done, each.name) for each in fields(done)}
    row = {**figures, "cluster": "c", "group_id": "g", "since": 0, "until": 3_600_000, "partitions": 4, "rate": 10.0}
    ordered = [row.get(field.name) for field in schema("autoscale").fields]
    spark.createDataFrame([tuple(ordered)], schema("autoscale")).write.parquet(str(tmp_path / "autoscale"))
    others = {row["group_id"] for row in tables["rebalances"].select("group_id").distinct().collect()}
    asked = sorted(each for each in others if each and each not in {each.figures.group_id for each in made.worst})[0]
    options = ["report", "--in", str(tmp_path), "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, [*options, "--group", asked])
    assert found.exit_code == 0, found.output
    assert found.stdout.split()[-1] == f"{tmp_path}/out/autoscale.html"
    values = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert [each["figures"]["group_id"] for each in values["worst"]] == [asked]
    assert '<a href="autoscale.html">Autoscalers</a>' in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "<figure>" in (tmp_path / "out" / "autoscale.html").read_text("utf-8")
    with pytest.raises(OptionError, match="the table rebalances has no group 'nobody'"):
        report(tables["rebalances"].where(f"group_id = '{asked}'"), groups=["nobody"])


def test_targets_are_those_of_spark(spark: SparkSession, one: Report, tmp_path: Path) -> None:
    html, values = write_report(spark, one, f"{tmp_path.as_uri()}/with a scheme/")
    assert (html, values) == tuple(f"{tmp_path.as_uri()}/with a scheme/report.{kind}" for kind in ("html", "json"))
    names = sorted(path.name for path in (tmp_path / "with a scheme").iterdir())
    assert names == ["report.html", "report.json"]
    # Another file system than the local one: Hadoop's view of a folder, with another scheme.
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.here.link./data", tmp_path.as_uri())
    write_report(spark, one, "viewfs://here/data/seen")
    assert (tmp_path / "seen" / "report.html").read_text("utf-8") == page(one)
    for refused, words in (("s3a://bucket/report", "s3a://bucket/report cannot be written"), ("nope://x/y", '"nope"')):
        with pytest.raises(KafkaAssignorsError, match=words):
            check_target(spark, refused)
    with pytest.raises(OptionError, match="folder is 'file:///somewhere'; give a folder of this machine"):
        write(one, "file:///somewhere")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--joined", "["], "joined is '['; give a regular expression"),
        (["--top", "-1"], "top is -1; give a number of groups, 0 to 1000"),
        (["--gain", "2"], "gain is 2.0; give a share, 1 at most"),
        (["--out", "nope://x/y"], "nope://x/y cannot be written"),
        ([], "has the table rebalances; `replay` makes it"),
    ],
)
def test_the_command_says_what_is_wrong(spark: SparkSession, tmp_path: Path, options: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["report", "--in", str(tmp_path), "--out", str(tmp_path / "out"), *options])
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (tmp_path / "out").exists()
