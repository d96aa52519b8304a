"""`replay`: the figures of each strategy for the histories of groups, as tables."""

from typing import Annotated, Any

import typer

from kafka_assignors.intervals import CLIENTS, Intervals
from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, read, settings, write
from kafka_assignors.spark.strategies import STRATEGIES


def replay(
    events: Annotated[str, typer.Option(help="The table membership_events: a folder of Parquet, as all of these.")],
    topics: Annotated[str, typer.Option(help="The table topic_partitions.")],
    out: Annotated[str, typer.Option(help="Where the folders rebalances, group_summary and strategy_summary go.")],
    lags: Annotated[str | None, typer.Option(help="The table lags.")] = None,
    offsets: Annotated[str | None, typer.Option(help="The table offset_snapshots, in place of --lags.")] = None,
    reset: Annotated[str, typer.Option(help="The groups' auto_offset_reset, for --offsets.")] = "latest",
    observed: Annotated[str | None, typer.Option(help="The table observed_assignments.")] = None,
    strategies: Annotated[
        str, typer.Option(help="Names, with options in parentheses: range,sticky,lag(scope=group,max_skew=2).")
    ] = ",".join(STRATEGIES),
    with_assignments: Annotated[
        bool, typer.Option("--assignments", help="Write the table assignments too; it is large.")
    ] = False,
    client: Annotated[
        str, typer.Option(help=f"Whose intervals of heartbeats count for ownerless_ms: {', '.join(CLIENTS)}.")
    ] = "librdkafka",
    heartbeat: Annotated[
        float | None,
        typer.Option(help="heartbeat.interval.ms of the members, in seconds, if not the client's default."),
    ] = None,
    consumer_heartbeat: Annotated[
        float | None,
        typer.Option(help="The broker's group.consumer.heartbeat.interval.ms, in seconds, if not its default of 5."),
    ] = None,
    apart: Annotated[
        bool,
        typer.Option(
            "--apart", help="The group has not rebalanced for long: its members' heartbeats have drifted apart."
        ),
    ] = False,
    tasks: Annotated[int | None, typer.Option(min=1, help="Into how many parts groups are dealt.")] = None,
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
        from kafka_assignors.spark.replay import assignments
        from kafka_assignors.spark.replay import replay as replayed
        from kafka_assignors.spark.session import opened
        from kafka_assignors.spark.strategies import kernel_options
        from kafka_assignors.spark.summary import group_summary, strategy_summary
        from kafka_assignors.strategies import split_strategies

        asked = split_strategies(strategies)
        # Before a JVM is started.
        kernel_options(asked)
        intervals = Intervals.of_client(client, heartbeat=heartbeat, consumer_heartbeat=consumer_heartbeat, apart=apart)
        if lags is not None and offsets is not None:
            raise OptionError("--lags and --offsets both tell lags; give one of them")
        with opened(master, **settings(conf)) as spark:
            tables: dict[str, Any] = {
                "events": read(spark, events, "--events"),
                "counts": read(spark, topics, "--topics"),
                "lags": None,
                "observed": read(spark, observed, "--observed") if observed else None,
            }
            if lags is not None:
                tables["lags"] = read(spark, lags, "--lags")
            if offsets is not None:
                tables["lags"] = read(spark, offsets, "--offsets")
            rows = replayed(**tables, reset=reset, strategies=asked, tasks=tasks, intervals=intervals)
            write(rows, f"{out}/rebalances", overwrite)
            rebalances = spark.read.parquet(f"{out}/rebalances")
            write(group_summary(rebalances), f"{out}/group_summary", overwrite)
            groups = spark.read.parquet(f"{out}/group_summary")
            write(strategy_summary(rebalances, groups), f"{out}/strategy_summary", overwrite)
            if with_assignments:
                assigned = assignments(**tables, reset=reset, strategies=asked, tasks=tasks)
                write(assigned, f"{out}/assignments", overwrite)
            _show(spark.read.parquet(f"{out}/strategy_summary").collect(), out)


def _show(rows: list[Any], out: str) -> None:
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
    typer.echo(f"Tables: {out}/rebalances, {out}/group_summary, {out}/strategy_summary")
