"""Scenarios and their results: a table, a file of figures, a plot of the latencies."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

__all__ = ["Bar", "Measured", "Options", "Result", "Scenario", "medians", "plot", "quantiles", "show", "write"]

FIGURES = "figures.json"

# A distribution is stored as its thousandths, so that p99.9 is the last but one.
POINTS = 1_000


@dataclass(frozen=True)
class Options:
    """The options of a run.

    Attributes:
        quick: fewer and shorter runs, which only show that the benchmarks work. Bounds do not fail.
        rounds: how many times each contender runs, in turns with the others. Figures are medians of the rounds.
    """

    quick: bool = False
    rounds: int = 3


def quantiles(latencies: Sequence[float]) -> list[float]:
    """The distribution of latencies: the least that k of 1,000 records do not exceed, for k of 1 to 1,000."""
    ordered = sorted(latencies)
    if not ordered:
        raise ValueError("no record was answered, so there is no distribution")
    return [ordered[max(0, math.ceil(len(ordered) * point / POINTS) - 1)] for point in range(1, POINTS + 1)]


@dataclass
class Measured:
    """One run of one contender.

    Attributes:
        latencies: its distribution in seconds, as of `quantiles`.
        records: how many were sent and answered.
        batches: in how many batches.
        requests: in how many requests.
        seconds: from the first record to the last answer.
        producer_cpu: seconds of processor time, of all producers together; None if not measured.
        broker_cpu: likewise of the brokers.
    """

    latencies: list[float]
    records: int
    batches: int
    requests: int
    seconds: float
    producer_cpu: float | None = None
    broker_cpu: float | None = None

    def at(self, percent: float) -> float:
        """A percentile in milliseconds."""
        return 1_000 * self.latencies[max(0, math.ceil(percent * POINTS / 100) - 1)]

    def figures(self) -> dict[str, float]:
        """The figures for the table and the file, in milliseconds and percents of one core."""
        found = {
            "p50_ms": self.at(50),
            "p99_ms": self.at(99),
            "p99.9_ms": self.at(99.9),
            "records_per_second": self.records / self.seconds,
            "batches_per_1000": 1_000 * self.batches / self.records,
            "requests_per_second": self.requests / self.seconds,
        }
        for name, seconds in (("producer_cpu_percent", self.producer_cpu), ("broker_cpu_percent", self.broker_cpu)):
            if seconds is not None:
                found[name] = 100 * seconds / self.seconds
        return found


def medians(runs: Sequence[Measured]) -> dict[str, float]:
    """The median of each figure over the rounds."""
    figures = [run.figures() for run in runs]
    return {name: median(each[name] for each in figures) for name in figures[0]}


@dataclass(frozen=True)
class Bar:
    """A ratio or a difference, and its bounds."""

    what: str
    value: float
    at_most: float = math.inf
    at_least: float = -math.inf

    @property
    def holds(self) -> bool:
        """Whether the value is within the bounds. NaN is not."""
        return self.at_least <= self.value <= self.at_most

    @property
    def bound(self) -> str:
        """The bounds as text."""
        parts = [f">= {self.at_least:g}"] * (self.at_least > -math.inf) + [f"<= {self.at_most:g}"] * (
            self.at_most < math.inf
        )
        return ", ".join(parts)


@dataclass
class Result:
    """The result of a scenario.

    Attributes:
        runs: of each contender, in the order of the table.
        bars: its bounds.
        notes: sentences below the table.
    """

    runs: Mapping[str, Sequence[Measured]]
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ratio(self, figure: str, ours: str, other: str) -> float:
        """A figure of one contender divided by that of another: the median of the ratios of the paired rounds."""
        pairs = zip(self.runs[ours], self.runs[other], strict=True)
        return median(mine.figures()[figure] / theirs.figures()[figure] for mine, theirs in pairs)

    def difference(self, figure: str, ours: str, other: str) -> float:
        """The same for the difference."""
        pairs = zip(self.runs[ours], self.runs[other], strict=True)
        return median(mine.figures()[figure] - theirs.figures()[figure] for mine, theirs in pairs)


@dataclass(frozen=True)
class Scenario:
    """One case of the benchmarks.

    Attributes:
        name: for `--only`; also the name of its plot.
        title: of its table.
        run: measures it.
    """

    name: str
    title: str
    run: Callable[[Options], Result]


_COLUMNS = {
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "p99.9_ms": "p99.9 ms",
    "records_per_second": "records/s",
    "batches_per_1000": "batches per 1,000",
    "requests_per_second": "requests/s",
    "producer_cpu_percent": "producer CPU %",
    "broker_cpu_percent": "broker CPU %",
}


def show(scenario: Scenario, result: Result, console: Console) -> None:
    """Prints a scenario's table, its bounds and its notes."""
    rows = {name: medians(runs) for name, runs in result.runs.items()}
    columns = [column for column in _COLUMNS if any(column in row for row in rows.values())]
    table = Table(title=scenario.title, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(_COLUMNS[column], justify="right")
    for name, row in rows.items():
        table.add_row(name, *(f"{row[column]:,.1f}" if column in row else "" for column in columns))
    console.print(table)
    for bar in result.bars:
        console.print(f"{'holds' if bar.holds else 'FAILS'}: {bar.what}: {bar.value:.3g} ({bar.bound})")
    for note in result.notes:
        console.print(note)
    console.print()


def write(scenario: Scenario, result: Result, options: Options, directory: Path) -> None:
    """Writes a scenario's figures into the file, instead of those of its last run."""
    path = directory / FIGURES
    everything: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    everything[scenario.name] = {
        "title": scenario.title,
        "quick": options.quick,
        "rounds": max(len(runs) for runs in result.runs.values()),
        "figures": {
            name: {figure: round(value, 3) for figure, value in medians(runs).items()}
            for name, runs in result.runs.items()
        },
        "bars": [
            {"what": bar.what, "value": round(bar.value, 4), "bound": bar.bound, "holds": bar.holds}
            for bar in result.bars
        ],
    }
    path.write_text(json.dumps(everything, indent=2, sort_keys=True) + "\n")


def plot(scenario: Scenario, result: Result, directory: Path) -> None:
    """Plots the number of records above each latency, with logarithmic axes, which show the tail."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    slower = [1 - point / POINTS for point in range(POINTS)]
    for name, runs in result.runs.items():
        curve = [1_000 * median(run.latencies[point] for run in runs) for point in range(POINTS)]
        axes.step(curve, slower, where="post", label=name)
    axes.set(
        title=scenario.title,
        xlabel="latency in ms",
        ylabel="share of records that take longer",
        xscale="log",
        yscale="log",
    )
    axes.set_ylim(1 / POINTS, 1)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(directory / f"{scenario.name}.png", dpi=100)
