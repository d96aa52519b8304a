"""`kafka-assignors fleet` on files: forms of output, order, filters, exit statuses, pages, hostile names."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from kafka_assignors.cli.app import app
from support.fleets import cluster, troubled
from support.snapshots import classic, group

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_assignors.cluster import Snapshot

CONTROLS = "\x1b[2J\x1b]0;owned\x07\r\nwarning: forged\u202e</script><img src=x onerror=alert(1)>"


def run(*arguments: str | Path, status: int = 0, columns: int = 140) -> Result:
    result = CliRunner().invoke(app, ["fleet", *map(str, arguments)], env={"COLUMNS": str(columns)})
    assert result.exit_code == status, (result.output, result.exception)
    return result


@pytest.fixture
def now(tmp_path: Path) -> Path:
    troubled(later=True).save(tmp_path / "now.json")
    return tmp_path / "now.json"


@pytest.fixture
def before(tmp_path: Path) -> Path:
    troubled().save(tmp_path / "before.json")
    return tmp_path / "before.json"


def groups_of(text: str) -> list[str]:
    """The first cells of the table's rows."""
    return [row[1].strip() for row in (line.split("│") for line in text.splitlines()) if len(row) > 2]


def test_the_worst_come_first(now: Path, before: Path) -> None:
    text = run("--snapshot", now, "--since", before, status=3).stdout
    assert text.startswith("cluster test: 10 groups as of 2026-11-18 11:07:40 UTC, compared with 1.0 min before\n")
    assert "  1 dead, 1 stuck, 1 unread, 1 behind, 1 rebalancing, 1 idle, 4 ok\n" in text
    found = groups_of(text)
    assert found[:6] == ["dead", "stuck", "unread", "behind", "moving", "idle"]
    assert set(found[6:]) == {"fine", "costly", "by-lag", "new-protocol"}
    costs = "costly most (range: 3 instead of 1)"
    for sentence in (
        "rebalances: at least 2, most of them in new-protocol (2)",
        f"moves: when a member joins, 1 group moves more partitions than under sticky, {costs}",
        "idle: 1 member has no partition, most in idle (1)",
        "KIP-848: 5 blocked, 3 ready, 1 unknown, 1 moved",
        "  blocked: the assignments of 'sticky' carry user data, which the upgrade would lose",
    ):
        assert sentence in text


def test_json_and_csv_have_the_same_rows(now: Path, before: Path) -> None:
    document = json.loads(run("--snapshot", now, "--since", before, "--format", "json", status=3).stdout)
    assert document["schema"] == "kafka-assignors/fleet/1"
    assert (document["wrong"], document["seconds"], document["verdicts"]["ok"]) == (True, 60, 4)
    table = list(
        csv.DictReader(io.StringIO(run("--snapshot", now, "--since", before, "--format", "csv", status=3).stdout))
    )
    assert [row["group_id"] for row in table] == [each["group_id"] for each in document["groups"]]
    for row, each in zip(table, document["groups"], strict=True):
        for name in ("lag", "growth", "members", "moves", "stuck"):
            assert row[name] == ("" if each[name] is None else str(each[name]))
    (stuck,) = (each for each in document["groups"] if each["group_id"] == "stuck")
    assert (stuck["stuck"], stuck["verdict"], stuck["findings"][0]["rule"]) == (1, "stuck", "commits-advance")
    (idle,) = (row for row in table if row["group_id"] == "idle")
    assert idle["rules"] == "every-member-works"


def test_sort_filter_top(now: Path) -> None:
    assert groups_of(run("--snapshot", now, "--sort", "lag", "--top", "2", status=3).stdout) == ["behind", "stuck"]
    text = run("--snapshot", now, "--sort", "group", "--reverse", "--filter", "verdict=ok").stdout
    assert groups_of(text) == ["stuck", "new-protocol", "fine", "costly", "by-lag", "behind"]
    assert "2 of 10 groups are shown" in run("--snapshot", now, "--top", "2", status=3).stdout
    # --top hides groups, but the exit status counts hidden groups, too.
    assert groups_of(run("--snapshot", now, "--sort", "group", "--top", "1", status=3).stdout) == ["behind"]
    assert groups_of(run("--snapshot", now, "--filter", "group=nothing").stdout) == []
    rows = run("--snapshot", now, "--top", "3", "--format", "csv", status=3).stdout.splitlines()
    assert len(rows) == 4


def test_limits_are_a_check_for_deployments(tmp_path: Path) -> None:
    taken = troubled()
    path = tmp_path / "well.json"
    dataclasses.replace(taken, groups={name: taken.groups[name] for name in ("fine", "stuck")}).save(path)
    run("--snapshot", path)
    run("--snapshot", path, "--max-lag", "500")
    text = run("--snapshot", path, "--max-lag", "400", status=3).stdout
    assert "within-limits" in text
    run("--snapshot", path, "--max-lag", "400", "--filter", "group=fine")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is no broker"),
        (["--snapshot", "FILE", "--watch", "5"], "--snapshot is a file, the other options a live cluster"),
        (["--snapshot", "FILE", "--interval", "5"], "--snapshot is a file, the other options a live cluster"),
        (["--snapshot", "FILE", "--bootstrap-server", "x"], "--snapshot is a file, the other options a live cluster"),
        (["--bootstrap-server", "x", "--watch", "5", "--since", "FILE"], "each say which reading is the earlier one"),
        (["--snapshot", "FILE", "--count", "5"], "--count goes with --watch"),
        (["--snapshot", "FILE", "--filter", "lag"], "give a field, a comparison and a value"),
        (["--snapshot", "FILE", "--sort", "size"], "--sort names 'size'"),
        (["--snapshot", "FILE", "--reset", "none"], "--reset is 'none'"),
        (["--snapshot", "FILE", "--since", "none.json"], "cannot be read"),
        (["--snapshot", "FILE", "--html", "/nowhere/x.html"], "the page cannot be written"),
        (["--snapshot", "FILE", "--save", "/nowhere/x.json"], "the snapshot cannot be written"),
    ],
)
def test_bad_usage_is_one_sentence(arguments: list[str], said: str, now: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_ASSIGNORS_BOOTSTRAP_SERVERS", raising=False)
    result = run(*[str(now) if each == "FILE" else each for each in arguments], status=2)
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def hostile() -> Snapshot:
    topic = f"=cmd|'/c calc'!A0{CONTROLS}"
    name = f"=1+1{CONTROLS}"
    members = [classic(f"@m{row}{CONTROLS}", [topic], {topic: [row]}, rack=CONTROLS) for row in range(2)]
    groups = {
        name: group(members, committed={topic: [1, 2]}),
        f"-{'x' * 30_000}": group([classic("n", [topic], {topic: [0, 1]})], committed={topic: [1, 2]}),
        "empty": group([], state="Empty", assignor=CONTROLS),
    }
    return cluster({topic: [10, 20, 30]}, groups)


def test_nothing_of_strangers_reaches_the_terminal_or_is_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    hostile().save(path)
    for columns in (60, 200):
        text = run("--snapshot", path, columns=columns, status=3).stdout
        assert [line for line in text.split("\n") if not line.isprintable()] == []
        assert not any(line.startswith("warning: forged") for line in text.splitlines())
    text = run("--snapshot", path, "--wide", status=3).stdout
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    rows = list(csv.reader(io.StringIO(run("--snapshot", path, "--format", "csv", status=3).stdout)))
    cells = [cell for row in rows for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r")) or not cell.isprintable()] == []
    assert [cell for cell in cells if cell.startswith("-") and not re.fullmatch(r"-[\d.]+", cell)] == []
    document = run("--snapshot", path, "--format", "json", status=3).stdout
    assert "\x1b" not in document
    assert f"=1+1{CONTROLS}" in {each["group_id"] for each in json.loads(document)["groups"]}
