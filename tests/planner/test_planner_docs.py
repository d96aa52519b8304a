"""The commands in docs/planner.md answer as printed there."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.planner.findings import RULES
from kafka_assignors.planner.reasons import KINDS
from support.snapshots import orders

PAGE = Path(__file__).parents[2] / "docs" / "planner.md"
BLOCKS = re.findall(r"^```console\n\$ kafka-assignors (.*)\n((?:.*\n)*?)```$", PAGE.read_text(), re.MULTILINE)


def test_the_page_has_blocks_and_names_everything() -> None:
    assert len(BLOCKS) >= 4
    text = PAGE.read_text()
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
    assert [name for name in {*KINDS, *RULES} - notes if f"`{name}`" not in text] == []


@pytest.mark.parametrize(("command", "printed"), BLOCKS, ids=[command.split()[0] for command, _ in BLOCKS])
def test_commands_answer_as_printed(
    command: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line with three dots stands for any lines."""
    monkeypatch.chdir(tmp_path)
    orders().save("billing.json")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    said = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    parts = [part.strip("\n") for part in re.split(r"^…$", printed, flags=re.MULTILINE)]
    assert re.fullmatch(r"[\s\S]*".join(map(re.escape, parts)), said.strip("\n"), re.DOTALL), said
