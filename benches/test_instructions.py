"""Counts of rebalances, replays and decodings in the core: instructions, allocations, growth with partitions."""

import shutil
from pathlib import Path

import pytest
from instructions import COUNTED, GROWTH, Case, build, count
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import BOUNDS, Ratio, rounds_of

pytestmark = [pytest.mark.quick, pytest.mark.counts, pytest.mark.timeout(900)]

NAMES = {case.name: case for case in COUNTED}

BOUNDS.check("instructions", NAMES)
BOUNDS.check("allocations", NAMES)
BOUNDS.check("instruction-growth", GROWTH)
BOUNDS.check("allocation-growth", GROWTH)


@pytest.fixture(scope="session")
def program() -> Path:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not on PATH: it counts the instructions (Debian: apt-get install valgrind)")
    return build()


@pytest.mark.parametrize("name", NAMES)
def test_counts(name: str, program: Path, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    found = rounds_of(benchmark, lambda: count(program, NAMES[name]))
    ratio.within("instructions", name, found.instructions)
    ratio.within("allocations", name, found.allocations)


@pytest.mark.parametrize("name", GROWTH)
def test_growth(name: str, program: Path, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    def counted(case: Case) -> tuple[float, float]:
        found = count(program, case)
        return found.instructions, found.allocations

    once, twice = rounds_of(benchmark, lambda: [counted(case) for case in GROWTH[name]])
    ratio.count_at_most("instruction-growth", name, twice[0], once[0])
    ratio.count_at_most("allocation-growth", name, twice[1], once[1])
