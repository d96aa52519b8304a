"""Ratios, measured in one run on one machine and held to the committed bounds."""

from collections.abc import Callable, Collection, Iterator
from time import perf_counter
from typing import TypeVar

import pytest
from gate import Bounds, Row
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.stats import Stats
from rich.console import Console
from rich.table import Table

BOUNDS = Bounds.committed()

Result = TypeVar("Result")

_ROWS: list[Row] = []

# Peers that are not measured, each with the reason.
MISSING: list[str] = []


def check_bounds(kind: str, cases: Collection[str]) -> None:
    """Refuses bounds without a benchmark, which guard nothing. (A benchmark without a bound fails at its lookup.)"""
    BOUNDS.check(kind, cases)


class RatioError(AssertionError):
    """A ratio beyond its bound. A busy machine can stretch one of the two times, so make's targets measure it again."""


class Ratio:
    """Holds what was measured to its committed bound and puts it on the table."""

    def at_most(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        self._hold(BOUNDS.at_most(kind, name, ours, other, note), RatioError)

    def at_least(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        self._hold(BOUNDS.at_least(kind, name, ours, other, note), RatioError)

    def within(self, kind: str, name: str, count: float, note: str = "") -> None:
        """For counts, which are the same however often they are taken."""
        self._hold(BOUNDS.within(kind, name, count, note), AssertionError)

    def _hold(self, row: Row, error: type[AssertionError]) -> None:
        _ROWS.append(row)
        if row.complaint is not None:
            raise error(row.complaint)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A benchmark that is held to nothing fails: it would be taken for one that guards something."""
    held = len(_ROWS)
    yield
    if "benchmark" in getattr(item, "fixturenames", ()) and len(_ROWS) == held:
        raise AssertionError(f"{item.name} is held to no bound: compare it by way of the fixture `ratio`")


@pytest.fixture
def ratio() -> Ratio:
    return Ratio()


def rounds_of(
    benchmark: BenchmarkFixture,
    run: Callable[[], Result],
    rounds: int = 1,
    *,
    warm: bool = False,
    setup: Callable[[], None] | None = None,
) -> Result:
    """Times so many calls, after one that does not count if it is to be warm; what the last one returned."""
    result: Result = benchmark.pedantic(run, setup=setup, rounds=rounds, warmup_rounds=int(warm))  # type: ignore[no-untyped-call]
    return result


def measured(benchmark: BenchmarkFixture) -> Stats:
    """The figures of a benchmark that has run."""
    assert benchmark.stats is not None
    found: Stats = benchmark.stats.stats
    return found


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

        rounds_of(benchmark, ours, rounds, warm=True, setup=time_other)
        benchmark.extra_info["other_seconds"] = min(others)
        return measured(benchmark).min, min(others)

    return run


# What is not a time: sizes, and counts.
_SCALES = {
    **dict.fromkeys(("memory", "replay-memory"), (1e-6, 1)),
    **dict.fromkeys(("instructions", "instruction-growth"), (1e-3, 0)),
    **dict.fromkeys(("allocations", "allocation-growth"), (1e-3, 3)),
}


def pytest_terminal_summary() -> None:
    for peer in MISSING:
        Console(width=170).print(f"Not measured: {peer}")
    if not _ROWS:
        return
    table = Table(title="Ratios, least of the rounds if not said otherwise; ms, MB, and counts in thousands")
    for column in ("against", "case", "ours", "other", "ratio", "bound", "holds", ""):
        table.add_column(column, justify="right" if column in {"ours", "other", "ratio", "bound"} else "left")
    for row in _ROWS:
        scale, digits = _SCALES.get(row.against, (1e3, 3))
        times = f"{row.ours * scale:,.{digits}f}", f"{row.other * scale:,.{digits}f}"
        ratio = f"{row.ratio:,.2f}" if row.ratio >= 0.1 else f"{row.ratio:.4f}"
        holds = "yes" if row.complaint is None else "NO"
        table.add_row(row.against, row.name, *times, ratio, row.bound, holds, row.note)
    Console(width=170).print(table)
