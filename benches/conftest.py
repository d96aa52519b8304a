"""Ratios, measured in one run on one machine and held to the committed bounds."""

import sys
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console
from rich.table import Table

# The benchmarks' own modules import each other by name.
sys.path.insert(0, str(Path(__file__).parent))

BOUNDS: dict[str, dict[str, float]] = tomllib.loads((Path(__file__).parent / "bounds.toml").read_text())


@dataclass(frozen=True)
class Row:
    """One comparison: two times in seconds (or two sizes in bytes), their ratio, and what the ratio is held to."""

    against: str
    name: str
    ours: float
    other: float
    ratio: float
    bound: str
    note: str


_ROWS: list[Row] = []

# Peers that are not measured, each with the reason.
MISSING: list[str] = []


def check_bounds(kind: str, cases: Collection[str]) -> None:
    """Refuses bounds without a benchmark, which guard nothing. (A benchmark without a bound fails at its lookup.)"""
    unused = BOUNDS[kind].keys() - set(cases)
    if unused:
        raise LookupError(f"bounds.toml names cases of {kind} that are not measured: {sorted(unused)}")


class Ratio:
    """Holds a ratio to its committed bound and puts it on the table."""

    def at_most(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        bound = BOUNDS[kind][name]
        _ROWS.append(Row(kind, name, ours, other, ours / other, f"<= {bound:g}", note))
        assert ours / other <= bound, f"{name}: {ours / other:.2f} times {kind}; at most {bound:g} is allowed"

    def at_least(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        bound = BOUNDS[kind][name]
        _ROWS.append(Row(kind, name, ours, other, other / ours, f">= {bound:g}", note))
        assert other / ours >= bound, f"{name}: {kind} takes {other / ours:.0f} times ours, not {bound:g}"


@pytest.fixture
def ratio() -> Ratio:
    return Ratio()


Interleaved = Callable[[Callable[[], object], Callable[[], object], int], tuple[float, float]]


@pytest.fixture
def interleaved(benchmark: BenchmarkFixture) -> Interleaved:
    """Times two callables in turn and returns the least of each, in seconds.

    pytest-benchmark times the first; the second runs as the set-up of each round, so that both see the same machine.
    """

    def run(ours: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
        others: list[float] = []

        def time_other() -> None:
            start = perf_counter()
            other()
            others.append(perf_counter() - start)

        benchmark.pedantic(ours, setup=time_other, rounds=rounds, warmup_rounds=1)
        benchmark.extra_info["other_seconds"] = min(others)
        return benchmark.stats.stats.min, min(others)

    return run


def pytest_terminal_summary() -> None:
    for peer in MISSING:
        Console(width=170).print(f"Not measured: {peer}")
    if not _ROWS:
        return
    table = Table(title="Ratios, least of the rounds if not said otherwise; times in ms, sizes in MB")
    for column in ("against", "case", "ours", "other", "ratio", "bound", ""):
        table.add_column(column, justify="left" if column in {"against", "case", ""} else "right")
    for row in _ROWS:
        scale, digits = (1e-6, 1) if row.against == "memory" else (1e3, 3)
        times = f"{row.ours * scale:,.{digits}f}", f"{row.other * scale:,.{digits}f}"
        ratio = f"{row.ratio:,.2f}" if row.ratio >= 0.1 else f"{row.ratio:.4f}"
        table.add_row(row.against, row.name, *times, ratio, row.bound, row.note)
    Console(width=170).print(table)
