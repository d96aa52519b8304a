"""Ratios of times that are measured in one run on one machine, and compared with the committed bounds."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from time import perf_counter
from typing import TypeVar

import pytest
from gate import Bounds, Row
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.stats import Stats
from rich.console import Console
from rich.table import Table

from kafka_assignors import _core

BOUNDS = Bounds.committed()

Result = TypeVar("Result")

_ROWS: list[Row] = []

# Peers that were not measured, with the reason.
MISSING: list[str] = []


def check_bounds(kind: str, cases: Collection[str]) -> None:
    """Fails for bounds without a benchmark. (A benchmark without a bound fails when it looks its bound up.)"""
    BOUNDS.check(kind, cases)


class RatioError(AssertionError):
    """A ratio beyond its bound. A busy machine can lengthen one of both times, so make's targets measure it again."""


# Empties the cache of each measurement that several tests read.
_FORGET: list[Callable[[], None]] = []


def measured_once(measure: Callable[..., Result]) -> Callable[..., Result]:
    """Keeps the results of a measurement that several tests read, until a ratio is beyond its bound.

    If the results were kept longer, a repeated test would compare the same figures again.
    """
    kept = cache(measure)
    _FORGET.append(kept.cache_clear)
    return kept


class Ratio:
    """Compares a measurement with its committed bound, and adds it to the table.

    `say` shows a complaint at once: a long run that is stopped shows no table.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def at_most(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        self._hold(BOUNDS.at_most(kind, name, ours, other, note), RatioError)

    def at_least(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        self._hold(BOUNDS.at_least(kind, name, ours, other, note), RatioError)

    def count_at_most(self, kind: str, name: str, ours: float, other: float, note: str = "") -> None:
        """The same for a ratio of counts."""
        self._hold(BOUNDS.at_most(kind, name, ours, other, note), AssertionError)

    def within(self, kind: str, name: str, count: float, note: str = "") -> None:
        """The same for a count, which does not vary between measurements."""
        self._hold(BOUNDS.within(kind, name, count, note), AssertionError)

    def _hold(self, row: Row, error: type[AssertionError]) -> None:
        if error is RatioError and _core.build_profile != "release":
            raise RuntimeError(
                "the installed wheel is a debug build, and bounds on times are of the release: `make build`"
            )
        _ROWS.append(row)
        if row.complaint is not None:
            self._say(row.complaint)
            for forget in _FORGET:
                forget()
            raise error(row.complaint)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails a benchmark that compares nothing with a bound: it would pass without any check."""
    held = len(_ROWS)
    yield
    if "benchmark" in getattr(item, "fixturenames", ()) and len(_ROWS) == held:
        raise AssertionError(f"{item.name} is held to no bound: compare it by way of the fixture `ratio`")


@pytest.fixture
def ratio(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> Ratio:
    terminal: pytest.TerminalReporter = request.config.pluginmanager.getplugin("terminalreporter")

    def say(complaint: str) -> None:
        # While pytest captures the output of a test, it captures the lines of its own reporter, too.
        with capfd.disabled():
            terminal.write_line(f"\n{complaint}")

    return Ratio(say)


def rounds_of(
    benchmark: BenchmarkFixture,
    run: Callable[[], Result],
    rounds: int = 1,
    *,
    warm: bool = False,
    setup: Callable[[], None] | None = None,
) -> Result:
    """Times this number of calls, after an untimed one if `warm`. Returns the result of the last call, too."""
    result: Result = benchmark.pedantic(run, setup=setup, rounds=rounds, warmup_rounds=int(warm))  # type: ignore[no-untyped-call]
    return result


def measured(benchmark: BenchmarkFixture) -> Stats:
    """The figures of a finished benchmark."""
    assert benchmark.stats is not None
    found: Stats = benchmark.stats.stats
    return found


InTurns = Callable[[Sequence[Callable[[], object]], int], list[float]]
Interleaved = Callable[[Callable[[], object], Callable[[], object], int], tuple[float, float]]


@pytest.fixture
def in_turns(benchmark: BenchmarkFixture) -> InTurns:
    """Times callables in turns and returns the least time of each, in seconds.

    pytest-benchmark times the first. The others run as the set-up of each round, so that all run under the same load.
    """

    def run(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
        ours, *others = calls
        times: list[list[float]] = [[] for _ in others]

        def time_others() -> None:
            for other, seconds in zip(others, times, strict=True):
                start = perf_counter()
                other()
                seconds.append(perf_counter() - start)

        rounds_of(benchmark, ours, rounds, warm=True, setup=time_others)
        least = [min(seconds) for seconds in times]
        benchmark.extra_info["other_seconds"] = least
        return [measured(benchmark).min, *least]

    return run


@pytest.fixture
def interleaved(in_turns: InTurns) -> Interleaved:
    """`in_turns` of two callables."""

    def run(ours: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
        seconds, other_seconds = in_turns((ours, other), rounds)
        return seconds, other_seconds

    return run


# Kinds whose figures are sizes or counts, and not times.
_SCALES = {
    **dict.fromkeys(("memory", "replay-memory", "fleet-memory", "kept-bytes"), (1e-6, 1)),
    "fleet-requests": (1, 0),
    "exporter-series": (1, 0),
    "growth": (1, 3),
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
