"""The gate of the benchmarks: each bound passes and fails correctly, and none is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gate import TOLERANCE, Bounds
from instructions import COUNTED, GROWTH

pytestmark = pytest.mark.needs("benches")

BENCHES = Path(__file__).parent.parent / "benches"
BOUNDS = Bounds({"instructions": {"a": 1_000.0}, "floor": {"a": 2.0}, "peer": {"a": 10.0}})


@pytest.mark.parametrize("place", [-TOLERANCE, 0.0, TOLERANCE])
def test_a_third_slower_fails_wherever_in_its_window_a_count_was(place: float) -> None:
    count = 1_000 * (1 + place)
    assert BOUNDS.within("instructions", "a", count).complaint is None
    slowed = BOUNDS.within("instructions", "a", count * 4 / 3)
    assert slowed.complaint is not None
    assert "find out why" in slowed.complaint


def test_a_count_that_has_become_less_wants_to_be_committed() -> None:
    complaint = BOUNDS.within("instructions", "a", 850).complaint
    assert complaint is not None
    assert "commit the new figure" in complaint


def test_a_count_of_zero_allows_none() -> None:
    bounds = Bounds({"allocations": {"a": 0}})
    assert bounds.within("allocations", "a", 0).complaint is None
    complaint = bounds.within("allocations", "a", 1).complaint
    assert complaint is not None
    assert "find out why" in complaint


def test_ratios_hold_up_to_their_bound() -> None:
    assert BOUNDS.at_most("floor", "a", 2, 1).complaint is None
    assert BOUNDS.at_most("floor", "a", 2.01, 1).complaint == "a: 2.01 times floor; at most 2 is allowed"
    assert BOUNDS.at_most("floor", "a", 2.004, 1).complaint == "a: 2.004 times floor; at most 2 is allowed"
    assert BOUNDS.at_most("floor", "a", 1234.5, 1).complaint == "a: 1,234 times floor; at most 2 is allowed"
    assert BOUNDS.at_least("peer", "a", 1, 10).complaint is None
    assert BOUNDS.at_least("peer", "a", 1, 9.96).complaint == "a: peer takes 9.96 times ours, not 10"
    assert BOUNDS.at_least("peer", "a", 1, 9).complaint == "a: peer takes 9 times ours, not 10"


def test_a_bound_without_a_benchmark_is_refused_and_a_benchmark_without_a_bound() -> None:
    BOUNDS.check("floor", ["a", "b"])
    with pytest.raises(LookupError, match=r"names cases of floor that are not measured: \['a'\]"):
        BOUNDS.check("floor", ["renamed"])
    with pytest.raises(LookupError, match=r'no bound for "renamed" in \[floor\]'):
        BOUNDS.at_most("floor", "renamed", 1, 1)


def test_every_kind_of_bound_is_checked_by_a_benchmark() -> None:
    sources = "".join(path.read_text() for path in BENCHES.glob("test_*.py"))
    missing = [kind for kind in Bounds.committed().kinds() if f'"{kind}"' not in sources]
    assert missing == []


def test_every_counted_case_has_its_bounds() -> None:
    bounds = Bounds.committed()
    names = {case.name for case in COUNTED}
    assert len(names) == len(COUNTED)
    assert set(bounds.cases("instructions")) == set(bounds.cases("allocations")) == names
    assert set(bounds.cases("instruction-growth")) == set(bounds.cases("allocation-growth")) == set(GROWTH)


BENCHMARKS = {
    "held": ("ratio.count_at_most('floor', 'a', benchmark(int), 1)", 0, "1 passed"),
    "without a bound": ("ratio.count_at_most('floor', 'new', benchmark(int), 1)", 1, 'no bound for "new" in [floor]'),
    "held to nothing": ("benchmark(int)", 1, "test_it is held to no bound"),
    "skipped": ("__import__('pytest').skip('no tool')", 1, "CI must not skip: Skipped: no tool"),
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_new_benchmark_without_a_bound_fails_the_gate(name: str, tmp_path: Path) -> None:
    line, code, text = BENCHMARKS[name]
    done = run_benchmark(line, tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert text in done.stdout


def test_a_ratio_beyond_its_bound_is_shown_before_the_run_ends(tmp_path: Path) -> None:
    done = run_benchmark("ratio.count_at_most('floor', 'a', 3, benchmark(int) + 1)", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    before, _, after = done.stdout.partition("= FAILURES =")
    complaint = next(line for line in after.splitlines() if line.startswith("E  ")).partition("Error: ")[2]
    assert "floor" in complaint
    assert complaint in before.splitlines()


def run_benchmark(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a benchmark of one line with the committed plug-ins, and with one bound: [floor] "a" = 2."""
    for source in ("conftest.py", "ratios.py", "gate.py"):
        shutil.copy(BENCHES / source, folder)
    (folder / "bounds.toml").write_text('[floor]\n"a" = 2\n')
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_new.py").write_text(f"def test_it(benchmark, ratio):\n    {line}\n")
    options = ["--benchmark-only", "--benchmark-max-time=0.01", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-P", "-m", "pytest", *options, "--rootdir", str(folder), str(folder)]
    # This process may be a worker of xdist, in which pytest-benchmark would measure nothing.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    alone |= {"CI": "true", "PYTHONPATH": str(BENCHES.parent / "tests")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=alone)


def test_the_core_is_compiled_once_for_the_program_the_seeds_and_the_wheel() -> None:
    """Cargo compiles the core again, for a minute, if a crate below it has other features (rust/gate, rust/seeds)."""

    def below(package: str, *options: str) -> set[str]:
        # Each line is the name of a crate or of a feature of it.
        command = ["cargo", "tree", "--locked", "--edges", "normal,build,features", "--prefix", "none"]
        command += ["--package", package, *options]
        tree = subprocess.check_output(command, cwd=BENCHES.parent, text=True)
        return {line.removesuffix(" (*)") for line in tree.splitlines()}

    core = {line.split(" ")[0] for line in below("kafka-assignors-core")} - {"kafka-assignors-core"}
    wheel = below("kafka-assignors-python", "--features", "bench")
    others = below("kafka-assignors-gate"), below("kafka-assignors-seeds")
    features, *same = [
        {line for line in lines if line.split(" ")[0] in core and " feature " in line} for lines in (wheel, *others)
    ]
    assert same == [features, features]
    assert any(line.startswith("syn feature") for line in features)
