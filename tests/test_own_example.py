"""The four programs of docs/own-assignors.md: the page prints them as they are, and `make example-own` plays them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = ("active_standby", "priorities", "zones", "caps")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_prints_the_program(name: str) -> None:
    program = (ROOT / "examples" / "own_assignors" / f"{name}.py").read_text()
    assert f"```python\n{program}```\n" in (ROOT / "docs" / "own-assignors.md").read_text()


def test_every_scene_is_played_live() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "own_assignors"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ
        | {"PYTHONPATH": f"{ROOT / 'examples'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    after = {line.strip(): at for at, line in enumerate(lines) if line.strip().endswith((" joins", " leaves"))}
    assert len(after) == 15

    def row(title: str, member: str) -> list[str]:
        found = next(line for line in lines[after[title] :] if line.startswith(f"│ {member} "))
        return [cell.strip() for cell in found.strip("│").split("│")]

    assert row("active and standby: b joins", "a") == ["a", "orders 0,1,2,3,4,5", "active"]
    assert row("active and standby: b joins", "b")[1] == "nothing"
    assert row("active and standby: a leaves", "b") == ["b", "orders 0,1,2,3,4,5", "active"]
    assert "gold" not in row("priorities: b joins", "b")[1]
    assert row("zones with an overflow: c joins", "b")[1] == "nothing"
    assert row("zones with an overflow: a leaves", "b")[1] == "eu.orders 0,1,2,3"
    assert row("a cap for each member: b joins", "b")[2] == "2 of at most 2, full"
    assert "\x1b" not in done.stdout
