"""`kafka-assignors plan`: a group after a change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.describe import per_second, show_record
from kafka_assignors.cli.output import (
    NO,
    WARNINGS,
    Format,
    console,
    exit_on_error,
    print_csv,
    print_json,
    show_findings,
)
from kafka_assignors.flags import deprecated
from kafka_assignors.planner.change import Situation, parse_change
from kafka_assignors.planner.findings import ranges
from kafka_assignors.planner.plan import PlannedGroup, plan_change
from kafka_assignors.report.names import natural
from kafka_assignors.report.terminal import number, table

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_assignors.planner.observed_group import ObservedGroup

_SHOWN = 50

Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        help="sticky, cooperative-sticky, sticky-join, lag, weighted, range, roundrobin, or uniform or "
        "server-side-range for what a broker would plan; options in parentheses, such as "
        "sticky(mode=sticky-yet-fair). By default the group's own.",
        metavar="NAME[(OPTION=VALUE, …)]",
    ),
]


def plan(
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    join: options.Join = None,
    leave: options.Leave = None,
    partitions: options.Partitions = None,
    subscribe: options.Subscribe = None,
    strategy: Strategy = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    max_moves: Annotated[
        int | None, typer.Option("--max-moves", min=0, help="Exit with 1 if more partitions than that would move.")
    ] = None,
    every: Annotated[bool, typer.Option("--all-moves", help=f"Show all moves, not only the first {_SHOWN}.")] = False,
    old_every: Annotated[bool, typer.Option("--all", hidden=True)] = False,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    rates: options.Rates = None,
    form: Annotated[Format, typer.Option("--format", help="Text for people, JSON, or CSV of the moves.")] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Plan a change of a group: the new owners, the moves with their reasons, and the rules that are not met.

    Nothing is changed: it joins no group and commits nothing. Without a change it plans the group as it is.

    \b
    kafka-assignors plan --bootstrap-server localhost:9092 --group billing --join 2
    kafka-assignors plan --snapshot billing.json --leave c3 --partitions orders=48
    kafka-assignors plan --snapshot billing.json --subscribe c1=orders,payments --strategy sticky
    kafka-assignors plan --snapshot billing.json --join 1 --max-moves 10 --format json

    Exit status: 0 if the plan meets every rule, 3 if it does not (the rules are named), 1 if it moves more than
    --max-moves, 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():
        if old_every:
            deprecated("--all", "--all-moves")
        change = parse_change(join or (), leave or (), partitions or (), subscribe or ())
        assignor = None if strategy is None else options.strategy_of(strategy)

        def read() -> ObservedGroup:
            return options.observed_group_of(
                bootstrap, group, snapshot, settings, config, timeout, topics=change.topics, reset=reset
            )

        observed, known = options.rates_of(rates, read(), None if snapshot is not None else read)
        planned = plan_change(Situation(observed, change), assignor, reset=reset, rates=known)
        if form is Format.JSON:
            print_json("plan", planned, warnings=len(planned.warnings))
        elif form is Format.CSV:
            headings = ("topic", "partition", "source", "target", "kind", "reason", "forced", "lag")
            print_csv(headings, ([getattr(move, name) for name in headings] for move in planned.moves))
        else:
            _show(console(wide), planned, None if every or old_every else _SHOWN)
    if max_moves is not None and len(planned.moves) > max_moves:
        typer.echo(f"kafka-assignors: {len(planned.moves)} partitions would move; --max-moves is {max_moves}", err=True)
        raise typer.Exit(NO)
    if planned.warnings:
        raise typer.Exit(WARNINGS)


def _show(out: Console, planned: PlannedGroup, most: int | None) -> None:
    observer = ", as an observer: the broker assigns this group" if planned.observer else ""
    out.print(f"group {planned.group_id}, planned with {planned.strategy}{observer}")
    for line in planned.changes or ("no change",):
        out.print(f"  {line}")
    rated = any(member.rate_before is not None or member.rate_after is not None for member in planned.members)
    rate = ["records/s before", "records/s after"] if rated else []
    rows = [
        [
            member.name,
            member.change,
            member.before,
            member.after,
            number(member.lag_before),
            number(member.lag_after),
            *([per_second(member.rate_before), per_second(member.rate_after)] if rate else []),
            "; ".join(f"{topic} {ranges(numbers)}" for topic, numbers in member.partitions.items()),
        ]
        for member in sorted(planned.members, key=lambda member: natural(member.name))
    ]
    headings = ["member", "", "before", "after", "lag before", "lag after", *rate, "gets"]
    first_out = ["lag before", "lag after", "before", ""]
    out.print(table("Assignments", headings, rows, left=("", "gets"), lists=["gets"], least=first_out))
    names = {member.id: member.name for member in planned.members}
    moves = [
        [
            f"{move.topic}-{move.partition}",
            names[move.source] if move.source else "nobody",
            names[move.target] if move.target else "nobody",
            move.reason,
        ]
        for move in planned.moves[:most]
    ]
    if moves:
        title = "Moves"
        if len(moves) < len(planned.moves):
            title = f"Moves: the first {most} of {len(planned.moves)} (--all-moves)"
        texts = ("from", "to", "because")
        out.print(
            table(title, ["partition", *texts], moves, left=texts, names=("partition", *texts[:2]), least=["because"])
        )
        kinds = Counter(move.kind for move in planned.moves)
        out.print("reasons: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    least = "" if planned.least_moved is None else f"; the least possible is {planned.least_moved}"
    least_most = planned.moves_by_order
    by_order = ""
    if least_most is not None and least_most[0] < least_most[1]:
        by_order = f" ({least_most[0]} to {least_most[1]}, by where the new ids sort)"
    out.print(
        f"{len(planned.moves)} partitions move{by_order}: {planned.forced} by the change itself, "
        f"{planned.moved} by the strategy{least}. {planned.kept} stay"
    )
    score = "" if planned.least_balance_score is None else f" (least possible {planned.least_balance_score})"
    lags = f"; lag {number(planned.lag_spread[0])} to {number(planned.lag_spread[1])}" if planned.lag_spread else ""
    before = planned.heaviest_lag_before
    if planned.lag_spread and before is not None and planned.lag_spread[1] > before:
        lags += f" (the heaviest had {before:,})"
    out.print(
        f"spread: {planned.spread[0]} to {planned.spread[1]} partitions a member, balance score "
        f"{planned.balance_score}{score}{lags}"
    )
    if planned.load is not None and planned.load_bound is not None:
        out.print(
            f"the heaviest member carries {planned.load:,.6g}, relative to its capacity; no plan has less than "
            f"{planned.load_bound:,.6g}"
        )
    show_record(out, planned.record_bytes, planned.record_limit, planned.record_limit_told)
    show_findings(out, planned.findings)
