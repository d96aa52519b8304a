"""The commands in the planner's pages give the printed answers, and the pages name every rule, verdict and field."""

import csv
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.cli.output import SCHEMAS
from kafka_assignors.planner.findings import RULES
from kafka_assignors.planner.fleet import FLEET_RULES, VERDICTS
from kafka_assignors.planner.fleet_query import FIELDS
from kafka_assignors.planner.reasons import KINDS
from support import schemas
from support.fleets import troubled
from support.snapshots import before, orders

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("planner.md", "fleet.md", "output.md", "autoscale.md")
TEXTS = {page: (DOCS / page).read_text() for page in PAGES}
BLOCK = re.compile(r"^```console\n\$ (?:COLUMNS=(\d+) )?kafka-assignors (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
BLOCKS = [(page, *found) for page in PAGES for found in BLOCK.findall(TEXTS[page])]


def test_the_pages_have_blocks_and_name_everything() -> None:
    assert {page: len(BLOCK.findall(text)) for page, text in TEXTS.items()} == {
        "planner.md": 5,
        "fleet.md": 2,
        "output.md": 1,
        "autoscale.md": 2,
    }
    notes = {
        "broker-assigned",
        "pattern",
        "two-phases",
        "keys-stay",
        "known-lags",
        "committed",
        "known-order",
        "heaviest-lag",
    }
    assert [name for name in {*KINDS, *RULES} - notes if f"`{name}`" not in TEXTS["planner.md"]] == []
    assert [name for name in (*FLEET_RULES, *VERDICTS, *FIELDS) if f"`{name}`" not in TEXTS["fleet.md"]] == []


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the pages, in the current folder."""
    monkeypatch.chdir(tmp_path)
    orders().save("billing.json")
    before(orders(), 10, arrived=5, read=20).save("earlier.json")
    troubled().save("before.json")
    troubled(later=True).save("now.json")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("page", "columns", "command", "printed"), BLOCKS, ids=[f"{page} {command}"[:40] for page, _, command, _ in BLOCKS]
)
def test_commands_answer_as_printed(page: str, columns: str, command: str, printed: str) -> None:
    """A line of three dots stands for any lines; three dots at the end of a line stand for any rest of the line."""
    result = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": columns or "200"})
    assert result.exit_code == (3 if command.startswith("fleet") and "saved" not in command else 0), result.output
    said = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    parts = [part.strip("\n") for part in re.split(r"^…$", printed, flags=re.MULTILINE)]
    wanted = (re.escape(part).replace(r": …\n", ": .*\n").removesuffix("…") for part in parts)
    assert re.match(r"[\s\S]*".join(wanted) + r"[\s\S]*" * printed.endswith("…\n"), said.strip("\n")), said


def test_the_page_has_every_schema() -> None:
    """Each table of the page is made from its dataclass: adding, removing or retyping a field changes the table."""
    assert set(schemas.ROOTS) == set(SCHEMAS)
    assert set(SCHEMAS.values()) == {1}
    for heading, lines in schemas.pages().items():
        found = re.search(rf"^### {re.escape(heading)}\n\n((?:\|.*\n)+)", TEXTS["output.md"], re.MULTILINE)
        assert found, heading
        assert found[1].splitlines() == lines, heading


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("`fleet`", "fleet --snapshot now.json"),
        ("`describe`", "describe --snapshot billing.json"),
        ("`plan`", "plan --snapshot billing.json --join 1"),
        ("`compare`", "compare --snapshot billing.json"),
        ("`rebalance-cost`", "rebalance-cost --snapshot billing.json --scale +1"),
        ("`size`", "size --snapshot billing.json --since earlier.json --deadline 1h"),
        ("`autoscale`", "autoscale --snapshot billing.json --since earlier.json --policy 'fixed(replicas=2)'"),
        ("`decode`", "decode 0000000100017400000002000000000000000200000005"),
        ("`decode` of a group", "decode --snapshot billing.json"),
    ],
)
def test_the_page_has_the_columns_of_csv(name: str, command: str) -> None:
    said = CliRunner().invoke(app, [*shlex.split(command), "--format", "csv"]).stdout
    columns = next(csv.reader(io.StringIO(said)))
    row = f"| {name} | {', '.join(f'`{column}`' for column in columns)} |"
    assert row in TEXTS["output.md"].splitlines()
