"""`replay`: the figures of each strategy for the histories of groups, as tables."""

from contextlib import ExitStack
from typing import Annotated, Any

import typer

from kafka_assignors.intervals import (
    APART_FLAG,
    CLIENT_FLAG,
    CONSUMER_HEARTBEAT_FLAG,
    HEARTBEAT_FLAG,
    Intervals,
)
from kafka_assignors.spark.commands import (
    Conf,
    Master,
    OldStrategies,
    Overwrite,
    Tasks,
    exit_on_error,
    settings,
    strategies_given,
)
from kafka_assignors.spark.commands.tables import Into, NamedTables, Target, sources, target
from kafka_assignors.spark.strategies import STRATEGIES

# How long the steps take, relative to each other, for the progress bar.
_WEIGHTS = {
    "Spark": 1.0,
    "large groups": 2.0,
    "rebalances": 12.0,
    "group_summary": 4.0,
    "strategy_summary": 3.0,
    "assignments": 12.0,
}


def replay(
    events: Annotated[
        str | None, typer.Option(help="The table membership_events: a folder of Parquet, as all of these.")
    ] = None,
    topics: Annotated[str | None, typer.Option(help="The table topic_partitions.")] = None,
    out: Annotated[
        str | None, typer.Option(help="Where the folders rebalances, group_summary and strategy_summary go.")
    ] = None,
    lags: Annotated[str | None, typer.Option(help="The table lags.")] = None,
    offsets: Annotated[str | None, typer.Option(help="The table offset_snapshots, in place of --lags.")] = None,
    reset: Annotated[str, typer.Option(help="The groups' auto_offset_reset, for --offsets.")] = "latest",
    observed: Annotated[str | None, typer.Option(help="The table observed_assignments.")] = None,
    table: NamedTables = None,
    into: Into = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="A strategy, with options in parentheses: 'lag(scope=group, max_skew=2)'. Repeatable; by default "
            f"{', '.join(STRATEGIES)}.",
            metavar="NAME[(OPTION=VALUE, …)]",
        ),
    ] = None,
    old_strategies: OldStrategies = None,
    with_assignments: Annotated[
        bool, typer.Option("--assignments", help="Write the table assignments too; it is large.")
    ] = False,
    client: Annotated[str, typer.Option(*CLIENT_FLAG.names, help=CLIENT_FLAG.help)] = "librdkafka",
    heartbeat: Annotated[float | None, typer.Option(*HEARTBEAT_FLAG.names, help=HEARTBEAT_FLAG.help)] = None,
    consumer_heartbeat: Annotated[
        float | None, typer.Option(*CONSUMER_HEARTBEAT_FLAG.names, help=CONSUMER_HEARTBEAT_FLAG.help)
    ] = None,
    apart: Annotated[bool, typer.Option(*APART_FLAG.names, help=APART_FLAG.help)] = False,
    tasks: Tasks = None,
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Run the history of each consumer group through assignment strategies.

    Writes a row for each rebalance and strategy, and their summaries by group and by strategy. A group that cannot be
    replayed has a row with the reason. Exit status: 0, or 2 if the input is bad.
    """
    with exit_on_error():
        from kafka_assignors.errors import OptionError
        from kafka_assignors.spark.progress import Steps, on_stderr
        from kafka_assignors.spark.replay import assignments
        from kafka_assignors.spark.replay import replay as replayed
        from kafka_assignors.spark.session import opened
        from kafka_assignors.spark.strategies import kernel_options
        from kafka_assignors.spark.summary import group_summary, strategy_summary

        asked = strategies_given(strategy, old_strategies, STRATEGIES)
        # Wrong options fail here, before the slow start of a JVM.
        kernel_options(asked)
        intervals = Intervals.of_client(client, heartbeat=heartbeat, consumer_heartbeat=consumer_heartbeat, apart=apart)
        given = sources(
            table,
            {
                "membership_events": ("--events", events),
                "topic_partitions": ("--topics", topics),
                "lags": ("--lags", lags),
                "offset_snapshots": ("--offsets", offsets),
                "observed_assignments": ("--observed", observed),
            },
            needed=("membership_events", "topic_partitions"),
        )
        if "lags" in given and "offset_snapshots" in given:
            raise OptionError("--lags and --offsets both tell lags; give one of them")
        there = target(out, into)
        total = sum(weight for name, weight in _WEIGHTS.items() if with_assignments or name != "assignments")
        with Steps(on_stderr(), total) as steps, ExitStack() as stack:
            with steps.step("Spark", _WEIGHTS["Spark"], printed=False):
                spark = stack.enter_context(opened(master, **settings(conf)))
            found = {name: source.read(spark) for name, source in given.items()}
            tables: dict[str, Any] = {
                "events": found["membership_events"],
                "counts": found["topic_partitions"],
                "lags": found.get("lags", found.get("offset_snapshots")),
                "observed": found.get("observed_assignments"),
            }

            def kept(name: str, frame: Any) -> Any:
                with steps.step(name, _WEIGHTS[name], spark):
                    return there.write(frame, name, overwrite)

            with steps.step("large groups", _WEIGHTS["large groups"], spark, printed=False):
                rows = replayed(**tables, reset=reset, strategies=asked, tasks=tasks, intervals=intervals)
            rebalances = kept("rebalances", rows)
            groups = kept("group_summary", group_summary(rebalances))
            summed = kept("strategy_summary", strategy_summary(rebalances, groups))
            if with_assignments:
                kept("assignments", assignments(**tables, reset=reset, strategies=asked, tasks=tasks))
            _show(summed.collect(), there)


def _show(rows: list[Any], there: Target) -> None:
    """A line for each strategy, for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("strategy")
    for column in (
        "rebalances",
        "moved",
        "had to",
        "share moved",
        "nobody gets",
        "no owner",
        "balance p95",
        "best of",
        "errors",
    ):
        table.add_column(column, justify="right")
    for row in sorted(rows, key=lambda row: (row.strategy is None, row.moved_total, row.strategy)):
        table.add_row(
            row.strategy or "(not replayed)",
            f"{row.rebalances:,}",
            f"{row.moved_total:,}",
            f"{row.moved_needed_total:,}",
            f"{row.share_moved:.1%}",
            f"{row.share_unassigned:.1%}",
            "" if row.ownerless_ms_total is None else f"{row.ownerless_ms_total / 1000:,.0f} s",
            "" if row.balance_score_p95 is None else f"{row.balance_score_p95:,.0f}",
            f"{row.best_groups:,} of {row.groups:,} groups",
            f"{row.errors:,}",
        )
    console = Console(highlight=False, markup=False)
    (console if console.is_terminal else Console(highlight=False, markup=False, width=160)).print(table)
    names = ("rebalances", "group_summary", "strategy_summary")
    typer.echo(f"Tables: {', '.join(map(there.place, names))}")
