"""The benchmarks share `ratios`, and not this module: mypy would find a second module `conftest`, the tests'."""

import sys
from pathlib import Path

# The benchmarks' modules import each other by name, and they use the broker and the jars of the tests.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parent.parent / "tests"))

from ratios import in_turns, interleaved, pytest_runtest_call, pytest_terminal_summary, ratio

from support.no_skips import pytest_make_collect_report, pytest_runtest_makereport

__all__ = [
    "in_turns",
    "interleaved",
    "pytest_make_collect_report",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
    "ratio",
]
