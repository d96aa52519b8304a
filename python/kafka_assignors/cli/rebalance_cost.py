"""`kafka-assignors rebalance-cost`: the cost of restarts, scaling and deployments, per strategy."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import Format, console, exit_on_error, print_csv, print_json
from kafka_assignors.errors import OptionError
from kafka_assignors.intervals import (
    APART_FLAG,
    CLIENT_FLAG,
    CONSUMER_HEARTBEAT_FLAG,
    HEARTBEAT_FLAG,
    Intervals,
)
from kafka_assignors.planner import cost
from kafka_assignors.planner.change import Situation
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.report.terminal import table

if TYPE_CHECKING:
    from rich.console import Console


def rebalance_cost(
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    restart: Annotated[
        bool, typer.Option("--rolling-restart", help="Every member stops and comes back, one after the other.")
    ] = False,
    scale: Annotated[
        int | None, typer.Option("--scale", help="So many members more (+3) or fewer (-2): a step of an autoscaler.")
    ] = None,
    at_once: Annotated[bool, typer.Option("--at-once", help="With --scale: all in one rebalance.")] = False,
    deploy: Annotated[
        int | None, typer.Option("--deploy", help="So many members are replaced by new ones, one after the other.")
    ] = None,
    old_first: Annotated[
        bool, typer.Option("--old-first", help="With --deploy: a member stops before its successor starts.")
    ] = False,
    strategy: options.Strategies = None,
    client: Annotated[str, typer.Option(*CLIENT_FLAG.names, help=CLIENT_FLAG.help)] = "librdkafka",
    heartbeat: Annotated[float | None, typer.Option(*HEARTBEAT_FLAG.names, help=HEARTBEAT_FLAG.help)] = None,
    consumer_heartbeat: Annotated[
        float | None, typer.Option(*CONSUMER_HEARTBEAT_FLAG.names, help=CONSUMER_HEARTBEAT_FLAG.help)
    ] = None,
    apart: Annotated[bool, typer.Option(*APART_FLAG.names, help=APART_FLAG.help)] = False,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    form: Annotated[
        Format, typer.Option("--format", help="Text for people, JSON with each step, or CSV.")
    ] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Count the moved and stopped partitions of a rolling restart, an autoscaling step or a deployment, per strategy.

    And how long partitions are without an owner, as far as the intervals of heartbeats decide it. Nothing is changed:
    it joins no group and commits nothing. Give one of --rolling-restart, --scale and --deploy.

    \b
    kafka-assignors rebalance-cost --snapshot billing.json --rolling-restart
    kafka-assignors rebalance-cost --bootstrap-server localhost:9092 --group billing --scale +3
    kafka-assignors rebalance-cost --snapshot billing.json --deploy 4 --strategy sticky --strategy cooperative-sticky

    Exit status: 0, or 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():
        if restart + (scale is not None) + (deploy is not None) != 1:
            raise OptionError("give exactly one of --rolling-restart, --scale and --deploy")
        if (at_once and scale is None) or (old_first and deploy is None):
            raise OptionError("--at-once goes with --scale, and --old-first with --deploy")
        intervals = Intervals.of_client(client, heartbeat=heartbeat, consumer_heartbeat=consumer_heartbeat, apart=apart)
        assignors = [options.strategy_of(text) for text in strategy] if strategy else list(STANDARD)
        observed = options.observed_group_of(bootstrap, group, snapshot, settings, config, timeout, reset=reset)
        situation = Situation(observed)
        if restart:
            events, scenario = cost.rolling_restart(situation), "a rolling restart"
        elif scale is not None:
            events = cost.scaling(situation, scale, at_once=at_once)
            scenario = f"{abs(scale)} members {'more' if scale > 0 else 'fewer'}{', at once' if at_once else ''}"
        else:
            assert deploy is not None
            order = "old-first" if old_first else "new-first"
            events = cost.deployment(situation, deploy, order="old-first" if old_first else "new-first")
            scenario = f"a deployment of {deploy} members, {order.replace('-', ' ones ')}"
        with options.bars() as progress:
            found = cost.rebalance_cost(
                situation,
                events,
                assignors,
                scenario=scenario,
                reset=reset,
                intervals=intervals,
                progress=lambda done, total: progress("plans", done, total),
            )
        if form is Format.JSON:
            print_json("rebalance-cost", found)
        elif form is Format.CSV:
            names = [field.name for field in fields(cost.StrategyCost) if field.name != "steps"]
            print_csv(names, ([getattr(row, name) for name in names] for row in found.strategies))
        else:
            _show(console(wide), found, client)


def _show(out: Console, found: cost.Cost, client: str) -> None:
    observer = "; the broker assigns it, and asks none of these (KIP-848)" if found.observer else ""
    out.print(f"group {found.group_id}, {found.scenario}: {found.events} rebalances at least{observer}")
    if found.static:
        out.print(f"  {found.static} members are static: a restart within their session costs nothing")
    rows = [
        [row.strategy, *["-"] * 7, f"cannot plan this: {row.error}"]
        if row.error is not None
        else [
            f"{row.strategy} (in use)" if row.in_use else row.strategy,
            row.rebalances,
            _moves(row),
            row.forced,
            row.moves - row.forced,
            row.stopped,
            f"{row.ownerless_seconds:.1f}",
            row.most_moves,
            f"{row.fewest} to {row.most}",
        ]
        for row in found.strategies
    ]
    headings = [
        "strategy",
        "rebalances",
        "moves",
        "without an owner",
        "from one to another",
        "stopped meanwhile",
        "seconds without one",
        "most in one step",
        "partitions a member then",
    ]
    least = ["partitions a member then", "most in one step", "rebalances", "from one to another", "without an owner"]
    out.print(table("Cost", headings, rows, names=(), least=least))
    out.print("stopped meanwhile: partitions that stop being read during a rebalance although their owner stays")
    said = found.intervals
    out.print(
        "seconds without one: partitions x seconds without an owner, expected with the heartbeats of "
        f"{client}: every {said.heartbeat:g} s, in the new protocol every {said.consumer_heartbeat:g} s"
    )
    if any(row.least_moves < row.most_moves_in_all for row in found.strategies):
        out.print("moves, least to most: they depend on the ids of members that join, which are not known before")


def _moves(row: cost.StrategyCost) -> str:
    if row.least_moves == row.most_moves_in_all:
        return str(row.moves)
    return f"{row.moves} ({row.least_moves} to {row.most_moves_in_all})"
