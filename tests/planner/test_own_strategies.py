"""The planner's commands with a user's own assignor, named by its module and class."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from support.snapshots import orders

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from kafka_assignors import CustomAssignor

class First(CustomAssignor):
    name = "first"

    def __init__(self, at=0):
        self.at = at

    def plan(self, group):
        member = group.members[self.at]
        return {member.id: {topic: range(group.partitions(topic)) for topic in member.topics}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and a snapshot, from which a command runs."""
    (tmp_path / "mine_of_this_test.py").write_text(PROGRAM)
    orders().save(tmp_path / "billing.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.delitem(sys.modules, "mine_of_this_test", raising=False)
    return tmp_path


@pytest.mark.parametrize("command", ["plan", "compare"])
@pytest.mark.usefixtures("folder")
def test_a_command_plans_with_a_program_of_the_current_folder(command: str) -> None:
    text = "mine_of_this_test:First(at=1)"
    arguments = [command, "--snapshot", "billing.json", "--strategy", text, "--join", "1", "--format", "json"]
    result = CliRunner().invoke(app, arguments)
    # 3: the plan has warnings.
    assert result.exit_code in (0, 3), (result.output, result.exception)
    found = json.loads(result.stdout)
    assert "mine_of_this_test:First" in json.dumps(found)


@pytest.mark.usefixtures("folder")
def test_a_program_that_is_not_there_is_one_sentence() -> None:
    result = CliRunner().invoke(app, ["plan", "--snapshot", "billing.json", "--strategy", "mine_of_this_test:Second"])
    assert result.exit_code == 2
    assert "Second" in result.output
    assert "Traceback" not in result.output
