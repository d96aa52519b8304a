"""How far a command is: lines where standard error is a file, a bar where it is a terminal. Without Spark."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from kafka_assignors.spark.commands.capture import _CaptureProgress
from kafka_assignors.spark.offsets_source import SourceTopic
from kafka_assignors.spark.progress import Steps, on_stderr

if TYPE_CHECKING:
    from collections.abc import Mapping


def console(terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=80, highlight=False), text


def test_a_file_gets_a_line_for_each_step_that_is_done() -> None:
    shown, text = console(False)
    with Steps(shown, 3.0) as steps:
        with steps.step("Spark", 1.0, printed=False):
            assert text.getvalue() == ""
        with steps.step("lags", 1.0):
            pass
        with pytest.raises(ValueError, match="no"), steps.step("rebalances", 1.0):
            raise ValueError("no")
    assert re.fullmatch(r"lags +\d+\.\d s\n", text.getvalue())


def test_a_terminal_gets_a_bar() -> None:
    shown, text = console(True)
    with Steps(shown, 2.0) as steps, steps.step("lags", 1.0):
        pass
    assert "\x1b[" in text.getvalue()
    assert "lags" in text.getvalue()


class Running:
    """A capture whose batches the test finishes, one after the other."""

    topic = SourceTopic("c", "__consumer_offsets", "id", (0, 10), (60, 50))

    def __init__(self) -> None:
        self.finished: dict[int, dict[str, Any]] = {}
        self.reached: dict[int, Mapping[str, int]] = {}

    def batches(self, after: int = -1) -> dict[int, dict[str, Any]]:
        return {number: counts for number, counts in self.finished.items() if number > after}

    def share_read(self, batch_id: int) -> float:
        return self.topic.share_read(self.reached.get(batch_id, {}))

    def finish(self, number: int, rows: int, *reached: int) -> None:
        self.finished[number] = {"rows": {"offset_commits": rows}, "rejected": {}}
        self.reached[number] = {str(at): offset for at, offset in enumerate(reached)}


def test_a_capture_tells_of_each_batch_once() -> None:
    running: Any = Running()
    running.finish(6, 5, 0, 10)
    shown, text = console(False)
    with _CaptureProgress(running, shown) as told:
        told.look()
        assert text.getvalue() == ""
        running.finish(7, 1_234, 30, 30)
        told.look()
        told.look()
        # More than the topic had at the start.
        running.finish(8, 2, 90, 70)
        told.look()
    assert text.getvalue().splitlines() == [
        "batch 7: 1,234 rows, 50% of what the topic held at the start",
        "batch 8: 2 rows, 100% of what the topic held at the start",
    ]
    shown, text = console(True)
    with _CaptureProgress(running, shown) as told:
        told.look()
    assert "reading __consumer_offsets" in text.getvalue()


def test_an_empty_topic_is_read() -> None:
    assert SourceTopic("c", "t", "id", (5,), (5,)).share_read({}) == 1.0


def test_progress_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    on_stderr().print("so far")
    assert SimpleNamespace(**capsys.readouterr()._asdict()) == SimpleNamespace(out="", err="so far\n")
