"""Fixtures of the benchmarks. They import `ratios`, not this module: mypy allows one module `conftest`, the tests'."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The benchmarks' modules import each other by name, and they use the broker and the jars of the tests.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parent.parent / "tests"))

from ratios import in_turns, interleaved, pytest_runtest_call, pytest_terminal_summary, ratio

from support.broker import ApacheKafka, Kafka
from support.no_skips import pytest_make_collect_report, pytest_runtest_makereport

__all__ = [
    "in_turns",
    "interleaved",
    "kafka",
    "pytest_make_collect_report",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
    "ratio",
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker with its default settings, for the benchmarks of one file."""
    kafka = ApacheKafka(tmp_path_factory.mktemp("broker") / "kafka")
    try:
        kafka.start()
        yield kafka
    finally:
        # Closing thousands of partitions takes long, and the broker is not used again.
        kafka.kill()
