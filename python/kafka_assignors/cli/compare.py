"""`kafka-assignors compare`: all strategies side by side."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import Format, console, exit_on_error, plain, print_csv, print_json
from kafka_assignors.planner.change import Situation, parse_change
from kafka_assignors.planner.compare import ComparedStrategy, Comparison
from kafka_assignors.planner.compare import compare as compare_strategies
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.report.terminal import number, table

if TYPE_CHECKING:
    from rich.console import Console


def compare(
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    join: options.Join = None,
    leave: options.Leave = None,
    partitions: options.Partitions = None,
    subscribe: options.Subscribe = None,
    strategy: options.Strategies = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    form: Annotated[Format, typer.Option("--format", help="Text for people, JSON, or CSV.")] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Compare strategies on the same group and the same change: moves, spread, balance, lag, co-location.

    Nothing is changed: it joins no group and commits nothing.

    \b
    kafka-assignors compare --bootstrap-server localhost:9092 --group billing --join 1
    kafka-assignors compare --snapshot billing.json --strategy sticky --strategy range

    Exit status: 0, or 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():
        change = parse_change(join or (), leave or (), partitions or (), subscribe or ())
        assignors = [options.strategy_of(text) for text in strategy] if strategy else list(STANDARD)
        observed = options.observed_group_of(
            bootstrap, group, snapshot, settings, config, timeout, topics=change.topics, reset=reset
        )
        situation = Situation(observed, change)
        with options.bars() as progress:
            found = compare_strategies(
                situation, assignors, reset=reset, progress=lambda done: progress("strategies", done, len(assignors))
            )
        if form is Format.JSON:
            print_json("compare", found)
        elif form is Format.CSV:
            names = [field.name for field in fields(ComparedStrategy)]
            rows = [plain(row) for row in (found.now, *found.strategies)]
            print_csv(names, ([_cell(row[name]) for name in names] for row in rows))
        else:
            _show(console(wide), found)


# The heading of a column that is shown only if a strategy is weighted.
_LOAD = "heaviest carries"
# In a narrow terminal columns are left out, the first of these first.
_LEAST = [
    "unassigned",
    "lag skew",
    "by the change",
    "stay",
    "co-located",
    "balance score",
    "by the strategy",
    "lag a member",
    "not met",
    "partitions a member",
    _LOAD,
]


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _load_text(row: ComparedStrategy) -> str:
    if row.load is None or row.load_bound is None:
        return "-"
    return f"{row.load:,.6g} (least {row.load_bound:,.6g})"


def _show(out: Console, found: Comparison) -> None:
    observer = ": the broker assigns it, and asks none of these (KIP-848)" if found.observer else ""
    out.print(f"group {found.group_id}{observer}")
    for line in found.changes or ("no change",):
        out.print(f"  {line}")
    raised = found.raised
    weighted = any(row.load is not None for row in found.strategies)
    rows: list[list[object]] = []
    for row in (found.now, *found.strategies):
        if row.error is not None:
            rows.append([row.strategy, *["-"] * (10 + weighted), f"cannot plan this: {row.error}"])
            continue
        lag = "?" if row.most_lag is None else f"{number(row.least_lag)} to {number(row.most_lag)}"
        if row in raised:
            lag += f" (up from {number(found.now.most_lag)})"
        least = "" if row.least_moved is None else f" (least {row.least_moved})"
        rows.append(
            [
                f"{row.strategy} (in use)" if row.in_use else row.strategy,
                row.moves,
                row.forced,
                f"{row.moved}{least}",
                row.kept,
                f"{row.fewest} to {row.most}",
                row.balance_score,
                lag,
                "?" if row.lag_skew is None else number(row.lag_skew, 2),
                "-" if row.split_numbers is None else f"{row.numbers - row.split_numbers} of {row.numbers}",
                *([_load_text(row)] if weighted else []),
                row.unassigned,
                ", ".join(row.warnings),
            ]
        )
    headings = [
        "strategy",
        "moves",
        "by the change",
        "by the strategy",
        "stay",
        "partitions a member",
        "balance score",
        "lag a member",
        "lag skew",
        "co-located",
        *([_LOAD] if weighted else []),
        "unassigned",
        "not met",
    ]
    out.print(table("Strategies", headings, rows, left=("not met",), names=(), least=_LEAST))
    for sentence in found.heaviest_lag():
        out.print(sentence)
