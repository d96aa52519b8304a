"""`kafka-assignors size`: how many members work off the lag by a deadline."""

from __future__ import annotations

import time
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import NO, Format, console, exit_on_error, print_csv, print_json, show_findings
from kafka_assignors.cli.readings import Interval, Rate, readings_of
from kafka_assignors.planner.moments import deadline_ms
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.rates import rates_between
from kafka_assignors.planner.size import SizedGroup, SizedStrategy
from kafka_assignors.planner.size import size as sized
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.report.terminal import duration, number, table

if TYPE_CHECKING:
    from rich.console import Console

# The most numbers of members that are shown after "divide evenly among".
_MOST_EVEN = 12


def size(
    deadline: Annotated[
        str,
        typer.Option(
            "--deadline",
            help="When no lag may be left: 18:00 (local), 18:00Z, 2026-01-31T18:00, or 45m after the last reading.",
            metavar="TIME",
        ),
    ],
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="An earlier snapshot of the same cluster, for the rates.", metavar="FILE"),
    ] = None,
    interval: Interval = None,
    rate: Rate = None,
    startup: Annotated[
        float, typer.Option("--startup", min=0, help="How many seconds members need that are started now.")
    ] = 20.0,
    strategy: options.Strategies = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    form: Annotated[Format, typer.Option("--format", help="Text for people, JSON, or CSV.")] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Compute the fewest members that work off the lag by a deadline, with each strategy.

    From the lag, and from the rates between two readings. Nothing is changed: it joins no group and commits nothing.

    \b
    kafka-assignors size --bootstrap-server localhost:9092 --group billing --deadline 18:00
    kafka-assignors size --snapshot now.json --since before.json --group billing --deadline 45m --rate 250

    Exit status: 0, 1 if no number of members is enough with any of the strategies, or 2 for bad input or a cluster that
    cannot be read.
    """
    with exit_on_error():
        options.check_reset(reset)
        # Checked here too, before a cluster is read.
        deadline_ms("--deadline", deadline, time.time_ns() // 1_000_000 if snapshot is None else 0)
        assignors = [options.strategy_of(text) for text in strategy] if strategy else list(STANDARD)
        readings, name = readings_of(
            bootstrap, group, snapshot, [since] if since else [], interval, settings, config, timeout
        )
        earlier, now = readings[0], readings[-1]
        rates = rates_between(earlier, now)
        with options.bars() as progress:
            found = sized(
                ObservedGroup(now, name),
                ObservedGroup(earlier, name) if name in earlier.groups else None,
                deadline_ms("--deadline", deadline, now.taken_ms),
                assignors,
                rates=rates,
                rate=rate,
                startup=startup,
                reset=reset,
                progress=lambda done, total: progress("strategies", done, total),
            )
        if form is Format.JSON:
            print_json("size", found)
        elif form is Format.CSV:
            names = [field.name for field in fields(SizedStrategy)]
            print_csv(names, ([getattr(row, name) for name in names] for row in found.strategies))
        else:
            _show(console(wide), found)
    if all(row.members is None for row in found.strategies):
        raise typer.Exit(NO)


def _show(out: Console, found: SizedGroup) -> None:
    seconds = (found.deadline_ms - found.taken_ms) / 1000
    until = datetime.fromtimestamp(found.deadline_ms / 1000).astimezone()
    by = f"{until:%Y-%m-%d %H:%M:%S %Z}"
    out.print(f"group {found.group_id}: {number(found.lag)} records of lag, to be gone by {by}")
    source = {"given": "as given", "measured": "as measured", "at least": "at least"}[found.rate_source]
    out.print(
        f"  {duration(seconds)} from the last reading on; {number(found.arrivals, 1)} records arrive in a second, and "
        f"one member reads {number(found.rate, 1)}, {source}"
    )
    if found.members:
        gone = "the lag is never gone"
        if found.now_seconds is not None:
            gone = f"the slowest member has no lag after {duration(found.now_seconds)}"
        out.print(f"  as it is now, with {found.members} members, {gone}")
    if found.largest is not None:
        each = found.largest
        enough = "which is enough" if found.possible else "so that no number of members is enough"
        needed = f"{number(each.needed_rate, 1)} records a second"
        out.print(f"  {each.topic}-{each.partition} needs the fastest member: {needed}, {enough}")
    if found.possible:
        out.print(f"  {found.least} members would be enough if all had equally many records to read")
    rows = [
        [
            f"{row.strategy} (in use)" if row.in_use else row.strategy,
            "-" if row.members is None else row.members,
            "-" if row.seconds is None else duration(row.seconds),
            "-" if row.fewest is None else f"{row.fewest} to {row.most}",
            "-" if row.heaviest is None else number(row.heaviest),
            row.error or "",
        ]
        for row in found.strategies
    ]
    headings = ["strategy", "members", "no lag after", "partitions a member", "most to read", "why not"]
    least = ["most to read", "partitions a member", "no lag after"]
    out.print(table("Members", headings, rows, left=("why not",), names=(), least=least))
    out.print(f"all {number(found.partitions)} partitions divide evenly among {_listed(found.even)} members")
    if found.even_by_topic != found.even:
        out.print(f"the partitions of each topic, as range deals them, among {_listed(found.even_by_topic)} members")
    show_findings(out, found.findings)


def _listed(numbers: tuple[int, ...]) -> str:
    more = f", … {numbers[-1]}" if len(numbers) > _MOST_EVEN else ""
    return ", ".join(map(str, numbers[:_MOST_EVEN])) + more
