"""Every command of the planner with hostile names: they control terminals, forge lines, are formulas or very long."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.cluster import ClassicMember, GroupSnapshot, Snapshot
from support.snapshots import classic, topic

if TYPE_CHECKING:
    from pathlib import Path

CONTROLS = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\nwarning: forged\u202e\u2028\x7f"
TOPIC = f"=cmd|'/c calc'!A0{CONTROLS}"
LONG = f"-{'x' * 30_000}"

COMMANDS = [
    ["describe"],
    ["describe", "--clients"],
    ["describe", "--no-map"],
    ["plan"],
    ["plan", "--join", "1", "--all-moves"],
    ["plan", "--strategy", "sticky-join"],
    ["plan", "--strategy", "range"],
    ["compare"],
    ["rebalance-cost", "--rolling-restart"],
    ["decode"],
]
BAD = [
    ["plan", "--leave", "nobody"],
    ["plan", "--leave", "m"],
    ["describe", "--group", "other"],
    ["describe", "--group", CONTROLS],
    ["plan", "--join", CONTROLS],
    ["plan", "--strategy", CONTROLS],
    ["plan", "--subscribe", f"m0=none{CONTROLS}"],
]


def hostile() -> Snapshot:
    missing = [f"missing{CONTROLS}{number}" for number in range(200)]
    topics = [TOPIC, "@plain", LONG]
    members = [
        classic(f"m{row}{CONTROLS}", topics, {TOPIC: [row], "@plain": [0]}, claimed={TOPIC: [0]}, rack=CONTROLS)
        for row in range(3)
    ]
    members[0] = dataclasses.replace(members[0], client_id=CONTROLS, client_host=LONG, instance_id=f"+i{CONTROLS}")
    members.append(classic(f"n{LONG}", [*topics, *missing], {LONG: [0, 1]}))
    broken = ClassicMember(f"z{CONTROLS}", None, b"\xff", b"\1")
    group = GroupSnapshot("classic", "Stable", "sticky", members=(*members, broken), committed={TOPIC: (1, 2)})
    counts = {TOPIC: topic(4), "@plain": topic(1), LONG: topic(3)}
    return Snapshot("c", 1_795_000_000_000, counts, {f"g{CONTROLS}": group})


def printed(text: str) -> None:
    """Checks that all characters are printable, that no line is forged and that none is too long."""
    lines = text.split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    assert not any(line.startswith("warning: forged") for line in lines)
    assert max(map(len, lines)) <= 40_000
    assert len(text) <= 3_000_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "hostile.json"
    hostile().save(path)
    return path


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_nothing_of_it_reaches_the_terminal(arguments: list[str], path: Path) -> None:
    for form in ("text", "json", "csv"):
        result = CliRunner().invoke(app, [*arguments, "--snapshot", str(path), "--format", form])
        assert result.exit_code in (0, 3), (result.output, result.exception)
        assert result.stderr == ""
        if form == "json":
            assert json.loads(result.stdout)
            assert "\x1b" not in result.stdout
        else:
            printed(result.stdout)
    assert "\\x1b[2J" in CliRunner().invoke(app, ["describe", "--snapshot", str(path)]).stdout


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: " ".join(arguments)[:30].encode("unicode_escape"))
def test_sentences_on_standard_error_are_one_line(arguments: list[str], path: Path) -> None:
    result = CliRunner().invoke(app, [*arguments, "--snapshot", str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    printed(result.stderr)
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) <= 12_000


def test_the_map_of_many_topics_is_printable(tmp_path: Path) -> None:
    names = [f"{number}{CONTROLS}" for number in range(30)]
    members = [classic(f"m{CONTROLS}", names, {name: list(range(20)) for name in names})]
    group = GroupSnapshot("classic", "Stable", "sticky", members=tuple(members))
    path = tmp_path / "many.json"
    Snapshot("c", 0, {name: topic(20) for name in names}, {"g": group}).save(path)
    result = CliRunner().invoke(app, ["describe", "--snapshot", str(path)])
    assert "topics 1 to 30 of 30" in result.stdout
    printed(result.stdout)


def test_texts_in_csv_are_no_formulas_and_numbers_stay_numbers(path: Path) -> None:
    from kafka_assignors.cli.output import print_csv

    written = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", written)
        print_csv(("a", "b"), [(each, -5) for each in ("=1", "+1", "-1", "@x", "\t=1", "\r=1", "x-1", "")])
        print_csv(("a", "b"), [(None, -1.5)])
    rows = list(csv.reader(io.StringIO(written.getvalue())))
    assert rows[1:9] == [[text, "-5"] for text in ("'=1", "'+1", "'-1", "'@x", "'\\t=1", "'\\r=1", "x-1", "")]
    assert rows[10] == ["", "-1.5"]
    result = CliRunner().invoke(app, ["describe", "--snapshot", str(path), "--format", "csv"])
    cells = [row["topic"] for row in csv.DictReader(io.StringIO(result.stdout))]
    assert {cell[:2] for cell in cells} == {"'=", "'@", "'-"}


def test_many_findings_of_one_rule_are_counted(path: Path) -> None:
    text = CliRunner().invoke(app, ["describe", "--snapshot", str(path)]).stdout
    assert text.count("warning: topic-exists: topic") == 20
    assert "warning: topic-exists: 180 more of these (--format json)" in text


def test_a_snapshot_on_standard_output_is_the_same_json_in_ascii() -> None:
    from kafka_assignors.cli.snapshot import _ascii

    text = hostile().dumps() + "\U0001f600é"
    assert _ascii(text).isascii()
    assert _ascii(text).replace("\n", "").isprintable()
    assert json.loads(_ascii(hostile().dumps())) == json.loads(hostile().dumps())


def test_tables_of_the_terminal_are_printable() -> None:
    from kafka_assignors.report.terminal import table

    out = Console(file=io.StringIO(), width=200)
    out.print(table("t", ["a", "b"], [[CONTROLS, LONG]], lists=["b"]))
    assert isinstance(out.file, io.StringIO)
    printed(out.file.getvalue())
