"""Every table fits its terminal: no number is cut, no word is broken, and what is left out is named."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.report.terminal import table
from kafka_assignors.report.terminal.fitting import Column, fit
from support.fleets import troubled
from support.needs import rest
from support.planned_group import commit
from support.snapshots import before, classic, orders, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_assignors.cluster import Snapshot

WIDTHS = (80, *rest(60, 100, 140, 200))
UUID = "0f3b2c1d-0000-4000-8000-{:012}"


def many() -> Snapshot:
    """30 members with long ids, 200 partitions, and lags of many digits."""
    ids = [f"billing-consumer-{row}-{UUID.format(row)}" for row in range(30)]
    topics = {"billing.invoices.v2": 150, "billing.payments.settled": 50}
    members = []
    for row, name in enumerate(ids):
        share = {topic: list(range(row, count, 30)) for topic, count in topics.items()}
        members.append(classic(name, sorted(topics), share, rack="eu-central-1a"))
    taken = snapshot(topics, members, committed={topic: [0] * count for topic, count in topics.items()})
    big = {
        name: type(each)(
            each.partitions, None, each.begin, tuple(1_234_567 + number for number in range(each.partitions))
        )
        for name, each in taken.topics.items()
    }
    return type(taken)(taken.cluster, taken.taken_ms, big, taken.groups, taken.record_limit)


COMMANDS = {
    "describe": ["describe"],
    "describe without a map": ["describe", "--no-map"],
    "plan": ["plan", "--join", "2"],
    "plan by range": ["plan", "--join", "1", "--strategy", "range"],
    "compare": ["compare", "--join", "1"],
    "rebalance-cost": ["rebalance-cost", "--scale", "+1"],
    "decode": ["decode"],
    "fleet": ["fleet"],
    "size": ["size", "--deadline", "1h", "--rate", "1500", "--since", "EARLIER"],
    "autoscale": [
        *("autoscale", "--policy", "keda(lagThreshold=20000)", "--policy", "one=fixed(replicas=1)"),
        *("--rate", "1500", "--since", "EARLIER", "--horizon", "10m", "--strategy", "sticky", "--strategy", "range"),
    ],
    "migrate": ["migrate"],
    "migrate all": ["migrate"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("widths")
    found = {}
    for name, taken in {"orders": orders(), "many": many()}.items():
        found[name] = folder / f"{name}.json"
        taken.save(found[name])
        before(taken, 10, arrived=40, read=30).save(found[name].with_suffix(".earlier"))
    troubled(later=True).save(folder / "fleet.json")
    return {**found, "fleet": folder / "fleet.json"}


def of(path: Path, arguments: list[str]) -> list[str]:
    """The arguments for a snapshot file. `EARLIER` becomes the earlier reading, which some commands need."""
    earlier = str(path.with_suffix(".earlier"))
    return [*(each.replace("EARLIER", earlier) for each in arguments), "--snapshot", str(path)]


def shown(arguments: list[str], path: Path, width: int) -> list[str]:
    result = CliRunner().invoke(app, of(path, arguments), env={"COLUMNS": str(width)})
    assert result.exit_code in (0, 3), (result.output, result.exception)
    return result.stdout.splitlines()


def cells(lines: list[str]) -> set[str]:
    """The words in the cells of all tables."""
    return {word for line in lines if "│" in line or "┃" in line for word in re.split(r"[\s│┃]+", line) if word}


@pytest.mark.parametrize("widths", [(80,), *rest((60, 100, 140, 200))])
@pytest.mark.parametrize("group", ["orders", "many"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_table_fits(command: str, group: str, widths: tuple[int, ...], files: dict[str, Path]) -> None:
    path = files["fleet" if command in ("fleet", "migrate all") else group]
    whole = cells(CliRunner().invoke(app, [*of(path, COMMANDS[command]), "--wide"]).stdout.splitlines())
    for width in widths:
        lines = shown(COMMANDS[command], path, width)
        assert max(map(cell_len, lines)) <= width
        # A word of a cell is whole, as in the table without limits, or has an ellipsis in place of its middle.
        broken = [word for word in cells(lines) if word not in whole and "…" not in word]
        assert (width, broken) == (width, [])
        cut = [word for word in cells(lines) if "…" in word and word[0].isdigit()]
        assert [word for word in cut if re.search(r"\d,\d{3}|^\d+…|…\d+$", word)] == [], width


@pytest.mark.parametrize("width", [20, *WIDTHS])
def test_the_tables_of_keys_fit(width: int, tmp_path: Path) -> None:
    path = tmp_path / "users.txt"
    path.write_text("".join(f"user-with-a-rather-long-key-{number:06}\n" for number in range(500)))
    command = ["audit-keys", str(path), "--partition-count", "12", "--partition-count", "48"]
    result = CliRunner().invoke(app, command, env={"COLUMNS": str(width)})
    assert result.exit_code == 1, result.output
    assert max(map(cell_len, result.stdout.splitlines())) <= width
    assert "Disagreements" in result.stdout
    # Each partition count and pair of hashes has its row, at any width.
    assert result.stdout.count("500") >= 6


@pytest.mark.parametrize("width", [20, *WIDTHS])
def test_the_list_of_groups_fits(width: int) -> None:
    names = [f"a-group-with-a-rather-long-name-{number}" for number in range(3)]
    with EmbeddedKafka(topics={"t": 1}) as kafka:
        for name in names:
            commit(kafka.bootstrap_servers, name, {("t", 0): 0})
        command = ["snapshot", "--bootstrap-server", kafka.bootstrap_servers, "--list"]
        result = CliRunner().invoke(app, command, env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    assert max(map(cell_len, result.stdout.splitlines())) <= width
    assert len(re.findall(r"a-gr\S*-\d", result.stdout)) == 3


def test_what_is_left_out_is_named_and_wide_shows_it(files: dict[str, Path]) -> None:
    two = ["--join", "1", "--strategy", "sticky", "--strategy", "range"]
    narrow = "\n".join(shown(["compare", *two], files["orders"], 60))
    wide = "\n".join(shown(["compare", *two, "--wide"], files["orders"], 60))
    said = " ".join(narrow.partition("not shown: ")[2].partition(" (--wide)")[0].split())
    names = said.split(", ")
    assert "lag skew" in names
    assert "not shown" not in wide
    for name in names:
        assert name in wide
    # A narrow table has one line instead of a column with the same text in every row.
    assert "in every row: " in narrow
    assert "in every row: " not in wide


def test_a_group_of_30_members_is_not_200_lines(files: dict[str, Path]) -> None:
    lines = shown(["describe"], files["many"], 140)
    assert len(lines) < 120
    numbers = [int(found[1]) for line in lines if (found := re.match(r"│ billing-consumer-(\d+)-", line))]
    assert numbers == list(range(30))


def test_the_strategy_in_use_is_marked(files: dict[str, Path]) -> None:
    for command in (["compare"], ["rebalance-cost", "--rolling-restart"]):
        marked = [line for line in shown(command, files["orders"], 140) if "(in use)" in line]
        assert len(marked) == 1
        assert "sticky (in use)" in marked[0]


@pytest.mark.parametrize("width", [20, *rest(30, 40)])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_of_20_columns_gets_lists(command: str, width: int, files: dict[str, Path]) -> None:
    lines = shown(COMMANDS[command], files["fleet" if command in ("fleet", "migrate all") else "orders"], width)
    assert max(map(cell_len, lines)) <= width


def test_in_a_terminal_without_colours_or_unicode(files: dict[str, Path]) -> None:
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    command = [sys.executable, "-m", "kafka_assignors.cli", "fleet", "--snapshot", str(files["fleet"])]
    done = subprocess.run(command, capture_output=True, check=False, timeout=240, env=environment)
    assert (done.returncode, done.stderr) == (3, b"")
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    assert b"\\u" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize("width", [60, 100])
def test_in_a_real_terminal(width: int, files: dict[str, Path]) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "kafka_assignors.cli", "compare", "--snapshot", str(files["orders"])]
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm", "NO_COLOR": "1"}
    ) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            said += part
        assert process.wait(60) == 0
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    lines = [line.split("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")]
    assert max(map(cell_len, lines)) <= width
    assert any("sticky (in use)" in line for line in lines)


# ---- any table ----

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Zs")), max_size=30)
CELLS = st.one_of(st.integers(0, 10**12).map(lambda number: f"{number:,}"), st.lists(TEXTS, max_size=5).map(" ".join))


@given(st.data())
def test_any_table_fits(data: st.DataObject) -> None:
    headings = data.draw(
        st.lists(st.sampled_from(["group", "lag", "strategy in use", "because"]), min_size=1, unique=True)
    )
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(headings), max_size=len(headings)), max_size=6))
    width = data.draw(st.integers(20, 120))
    least = data.draw(st.permutations(headings))
    out = Console(file=io.StringIO(), width=width)
    out.print(table("a title", headings, rows, left=headings[-1:], least=least))
    assert isinstance(out.file, io.StringIO)
    text = out.file.getvalue()
    assert max(map(cell_len, text.split("\n"))) <= width
    # No number is cut: its column is shown whole, or left out.
    layout = fit(
        [Column(heading, tuple(row[at] for row in rows), rank=1) for at, heading in enumerate(headings)], width
    )
    assert set(layout.dropped) <= set(headings)


def test_names_are_shortened_where_they_stay_different() -> None:
    names = [f"billing-consumer-with-a-long-name-{number:04}-of-the-cluster" for number in range(50)]
    (column,) = fit([Column("member", tuple(names), name=True)], 40).columns
    assert len(set(column.cells)) == 50
    assert max(map(len, column.cells)) <= 36
    same_ends = [f"begin-{'x' * 20}{number:02}{'y' * 20}-end" for number in range(50)]
    layout = fit([Column("member", tuple(same_ends), name=True)], 30)
    assert layout.widths is None
    assert layout.columns[0].cells == tuple(same_ends)
