"""Commands as processes: the reader of a pipe ends, the disk is full, the terminal has few characters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.snapshots import classic, orders, snapshot

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = [
    ["plan", "--join", "1", "--max-moves", "100"],
    ["plan", "--join", "1", "--format", "json"],
    ["plan", "--join", "1", "--format", "csv"],
    ["describe"],
    ["compare"],
    ["rebalance-cost", "--rolling-restart"],
    ["decode"],
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams") / "billing.json"
    orders().save(path)
    return path


def run(
    arguments: list[str], stdout: int, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "kafka_assignors.cli", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=300,
        env={**os.environ, **(environment or {})},
    )


@pytest.mark.parametrize("arguments", [*COMMANDS, ["--help"], ["plan", "--help"], ["--version"]], ids=" ".join)
def test_a_reader_that_goes_away_ends_a_command_as_it_ends_any(arguments: list[str], path: Path) -> None:
    """`plan | head -1` ends by SIGPIPE. Exit status 1 would mean that the plan has more moves than allowed."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run([*arguments, *(["--snapshot", str(path)] if arguments in COMMANDS else [])], writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[1], ["--help"]], ids=" ".join)
def test_a_full_disk_is_one_sentence(arguments: list[str], path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    done = run([*arguments, *(["--snapshot", str(path)] if arguments in COMMANDS else [])], full)
    os.close(full)
    text = "kafka-assignors: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (2, text)


def test_a_terminal_of_ascii_gets_all_there_is(tmp_path: Path) -> None:
    taken = snapshot({"tópico": 2, "x": 2}, [classic("é", ["tópico", "x"], {"tópico": [0, 1], "x": [0]})])
    path = tmp_path / "ascii.json"
    taken.save(path)
    for command in ("describe", "plan", "decode"):
        done = run([command, "--snapshot", str(path)], subprocess.PIPE, {"PYTHONIOENCODING": "ascii"})
        assert done.returncode in (0, 3), done.stderr
        assert done.stderr == b""
        assert "t\\xf3pico" in done.stdout.decode("ascii")
    text = run(["describe", "--snapshot", str(path)], subprocess.PIPE, {"PYTHONIOENCODING": "ascii"}).stdout.decode()
    assert "nobody .. .-" in text
