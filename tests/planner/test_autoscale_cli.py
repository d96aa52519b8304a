"""The command `autoscale`: readings and tables in, figures and a page out."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from kafka_assignors.assignors import by_name
from kafka_assignors.autoscale import Workload, parse_policy, replay
from kafka_assignors.cli.app import app
from kafka_assignors.errors import ClusterError, GroupError, OptionError
from kafka_assignors.planner.autoscale import load_of_looks, load_of_tables
from kafka_assignors.report.autoscale import AutoscaledGroup, AutoscalePage, autoscale_page
from support.snapshots import before, orders

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_assignors.cluster import Snapshot

POLICY = "calm=keda(lagThreshold=100, maxReplicaCount=9)"
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b[2J"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["autoscale", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    now, earlier = tmp_path / "now.json", tmp_path / "before.json"
    orders().save(now)
    before(orders(), 10, arrived=5, read=20).save(earlier)
    return str(now), str(earlier)


def test_looks_become_a_workload() -> None:
    now = orders()
    first, second = before(now, 20, arrived=15, read=40), before(now, 10, arrived=5, read=20)
    load = load_of_looks([now, first, second], "billing")
    assert load.times == (now.taken_ms - 20_000, now.taken_ms - 10_000, now.taken_ms)
    # At the first reading 85 - 10 records wait in a partition; then 10 arrive, and then 5.
    assert set(load.arrived.values()) == {(75, 85, 90)}
    assert (len(load.partitions), load.members, load.rate, load.notes) == (18, 3, 12.0, ())
    longer = load.continued(20)
    assert set(longer.arrived.values()) == {(75, 85, 90, 100)}


def test_a_look_without_the_group_is_left_out() -> None:
    now, earlier = orders(), before(orders(), 10, arrived=5, read=20)
    gone = replace(before(now, 5, arrived=2, read=10), groups={})
    load = load_of_looks([earlier, gone, now], "billing")
    assert len(load.times) == 2
    assert load.notes == ("1 of 3 readings lack the group, and are left out",)
    with pytest.raises(OptionError, match="no reading has the group"):
        load_of_looks([gone], "billing")
    with pytest.raises(GroupError, match="rates need two"):
        load_of_looks([gone, now], "billing", rate=1.0)
    with pytest.raises(OptionError, match="'other', 'test'"):
        load_of_looks([now, replace(earlier, cluster="other")], "billing")


def test_the_command_in_three_forms(files: tuple[str, str]) -> None:
    asked = [
        "--snapshot",
        files[0],
        "--since",
        files[1],
        "--policy",
        POLICY,
        "--policy",
        "fixed(replicas=2)",
        "--horizon",
        "1h",
    ]
    status, text = run(*asked)
    assert status == 0, text
    assert "one member reads 12.0 records a second; a record is late after 300 s" in text
    assert text.count("calm") == 6
    status, text = run(*asked, "--format", "json")
    answer = json.loads(text)
    assert (status, answer["schema"], len(answer["runs"])) == (0, "kafka-assignors/autoscale/1", 12)
    load = load_of_looks([orders(), before(orders(), 10, arrived=5, read=20)], "billing").continued(3_600)
    found = {(each["policy"], each["strategy"], each["membership"]): each for each in answer["runs"]}
    wanted = replay(load, parse_policy(POLICY), by_name("cooperative-sticky"), static=True)
    row = found["calm", "cooperative-sticky", "static"]
    assert (row["rebalances"], row["late"], row["replicas"]) == (
        wanted.rebalances,
        wanted.late,
        [list(each) for each in wanted.replicas],
    )
    status, text = run(*asked, "--format", "csv", "--membership", "static", "--strategy", "range")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(each["policy"], each["membership"]) for each in rows] == [
        ("calm", "static"),
        ("fixed(replicas=2)", "static"),
    ]
    assert "replicas" not in rows[0]


def test_the_page_draws_policy_by_policy(files: tuple[str, str], tmp_path: Path) -> None:
    page = tmp_path / "autoscale.html"
    asked = ["--snapshot", files[0], "--since", files[1], "--policy", POLICY, "--policy", "fixed(replicas=2)"]
    status, text = run(*asked, "--html", str(page))
    assert status == 0, text
    written = page.read_text("utf-8")
    assert re.findall(r"<h3><bdi>(.*?)</bdi></h3>", written) == ["calm", "fixed(replicas=2)"]
    assert written.count("<figure>") == 2
    assert "Lines over time for calm: range dynamic: " in html.unescape(written)
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", written) == []
    assert "default-src 'none'" in written


def test_names_of_strangers_are_text_on_the_page() -> None:
    load = Workload.steady(EVIL, {"t": 4}, rate=10.0, arrivals=20.0, lag=500, members=1)
    runs = [replay(load, replace(parse_policy("fixed(replicas=2)"), name=EVIL), by_name("sticky"))]
    group = AutoscaledGroup(EVIL, EVIL, load.times[0], load.times[-1], 4, 10.0, runs, [EVIL])
    written = autoscale_page(AutoscalePage(EVIL, 300.0, (), (group,), [EVIL]))
    assert "<script" not in written
    assert "<img src=x" not in written
    assert "\u202e" not in written
    assert "\x1b" not in written


def table(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    (folder / name).mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / name / "part-0.parquet")


def captured(folder: Path, clusters: tuple[str, ...] = ("c",)) -> None:
    """A group that falls behind for ten minutes, with two members and then one."""
    key = [{"cluster": cluster, "group_id": "g"} for cluster in clusters]
    table(
        folder,
        "offset_snapshots",
        [
            {
                **each,
                "ts": 60_000 * at,
                "topic": "t",
                "partition": number,
                "begin": 0,
                "end": 6_000 * at,
                "committed": 600 * at,
            }
            for each in key
            for at in range(11)
            for number in range(4)
        ],
    )
    happened = [(0, 1, "join", "a"), (0, 1, "join", "b"), (300_000, 2, "leave", "b")]
    table(
        folder,
        "membership_events",
        [
            {**each, "ts": ts, "seq": seq, "kind": kind, "member_id": member}
            for each in key
            for ts, seq, kind, member in happened
        ],
    )


def test_the_tables_of_a_capture_without_spark(tmp_path: Path) -> None:
    captured(tmp_path)
    load = load_of_tables([str(tmp_path)], "g")
    # 4 x 600 records in a minute are committed by two members, and then by one alone: 40 in a second.
    assert (load.rate, load.members, load.records) == (40.0, 2, 4 * 60_000)
    status, text = run("--in", str(tmp_path), "--group", "g", "--policy", POLICY, "--format", "json")
    answer = json.loads(text)
    assert (status, answer["until_ms"], answer["rate"]) == (0, 600_000, 40.0)
    assert answer["runs"][0]["most_replicas"] == 4


def test_tables_that_cannot_be_used(tmp_path: Path) -> None:
    captured(tmp_path, ("c", "d"))
    with pytest.raises(OptionError, match="give --cluster"):
        load_of_tables([str(tmp_path)], "g")
    assert load_of_tables([str(tmp_path)], "g", cluster="d").rate == 40.0
    asked = ["--policy", POLICY, "--in", str(tmp_path)]
    assert "has no group 'nobody'" in run(*asked, "--group", "nobody")[1]
    assert "there is no group; give --group NAME" in run(*asked)[1]
    assert "--in is a folder of tables" in run(*asked, "--group", "g", "--snapshot", "x.json")[1]
    assert "has the table offset_snapshots" in run("--policy", POLICY, "--in", str(tmp_path / "x"), "--group", "g")[1]
    (tmp_path / "bad" / "offset_snapshots").mkdir(parents=True)
    (tmp_path / "bad" / "offset_snapshots" / "part.parquet").write_bytes(b"PAR1 nothing")
    status, text = run("--policy", POLICY, "--in", str(tmp_path / "bad"), "--group", "g")
    assert (status, "cannot be read as Parquet" in text) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "keda()"], "lagThreshold is missing"),
        (["--policy", POLICY, "--policy", POLICY], "policy 'calm' is given twice"),
        (["--policy", POLICY, "--membership", "both"], "--membership is 'both'"),
        (["--policy", POLICY, "--late-after", "now"], "--late-after is 'now'"),
        (["--policy", POLICY, "--horizon", "1y"], "--horizon is '1y'"),
        (["--policy", POLICY, "--rate", "0"], "the rate of a member is 0.0"),
    ],
)
def test_wrong_options_are_one_sentence(arguments: list[str], said: str, files: tuple[str, str]) -> None:
    status, text = run("--snapshot", files[0], "--since", files[1], *arguments)
    assert (status, said in text) == (2, True), text


def test_a_group_that_vanishes_between_live_readings_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([orders()])

    def read(*_arguments: object, **_options: object) -> Snapshot:
        found = next(answers, None)
        if found is None:
            raise ClusterError("group 'billing' does not exist")
        return found

    monkeypatch.setattr("kafka_assignors.cli.readings.read_snapshot", read)
    status, text = run(
        *("--bootstrap-server", "nowhere:9092", "--group", "billing", "--policy", POLICY),
        *("--interval", "0.1", "--readings", "3"),
    )
    assert (status, "after 1 of 3 readings: group 'billing' does not exist" in text) == (2, True), text
