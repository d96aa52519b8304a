"""What all benchmarks use is in `ratios`: a name that mypy does not find twice, as it finds `conftest`."""

import sys
from pathlib import Path

# The benchmarks' own modules import each other by name, and the broker and the jars are those of the tests.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parent.parent / "tests"))

from ratios import interleaved, pytest_runtest_call, pytest_terminal_summary, ratio

__all__ = ["interleaved", "pytest_runtest_call", "pytest_terminal_summary", "ratio"]
