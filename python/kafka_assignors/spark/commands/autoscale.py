"""`autoscale`: the lag of every group of a capture replayed against policies of autoscalers, as a table and a page."""

from typing import Annotated

import typer

from kafka_assignors.flags import deprecated, duration_s
from kafka_assignors.spark.commands import (
    Conf,
    Master,
    OldStrategies,
    Overwrite,
    Tasks,
    exit_on_error,
    settings,
    strategies_given,
    write,
)
from kafka_assignors.spark.commands.tables import NamedTables, sources


def autoscale(
    policy: Annotated[
        list[str],
        typer.Option(
            help="A policy: 'keda(lagThreshold=500)' or 'calm=hpa(averageValue=500, maxReplicas=10)'. Repeatable.",
            metavar="[NAME=]KIND(PARAMETER=VALUE, …)",
        ),
    ],
    out: Annotated[str, typer.Option(help="Where the folder autoscale and autoscale.html go.")],
    offsets: Annotated[
        str | None, typer.Option(help="The table offset_snapshots: a folder of Parquet, as all of these.")
    ] = None,
    events: Annotated[
        str | None, typer.Option(help="The table membership_events, for how many members there were.")
    ] = None,
    table: NamedTables = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="A strategy, with options in parentheses. Repeatable; by default range, sticky, cooperative-sticky.",
            metavar="NAME[(OPTION=VALUE, …)]",
        ),
    ] = None,
    old_strategies: OldStrategies = None,
    membership: Annotated[
        list[str] | None, typer.Option(help="dynamic or static; by default both. Repeatable.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="How many records a second one member reads; by default measured, by group.")
    ] = None,
    late_after: Annotated[
        str, typer.Option(help="A record is late if it is read later than that after it arrived: 5m.")
    ] = "5m",
    old_late_after: Annotated[float | None, typer.Option("--deadline", hidden=True)] = None,
    reset: Annotated[str, typer.Option(help="The groups' auto_offset_reset.")] = "latest",
    group: Annotated[
        list[str] | None, typer.Option(help="Only this group. Repeatable; by default all, and the page shows some.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many groups are shown one by one.")] = 6,
    tasks: Tasks = None,
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Replay the lag of every group against policies of autoscalers.

    Writes the table autoscale, a row for each group, policy, strategy and membership, and the page autoscale.html.
    Exit status: 0, or 2 if the input is bad.
    """
    with exit_on_error():
        from kafka_assignors.autoscale import Timing
        from kafka_assignors.report.autoscale import autoscale_page, check_libraries
        from kafka_assignors.spark.autoscale import MEMBERSHIPS, STRATEGIES, autoscale_report, check_options
        from kafka_assignors.spark.autoscale import autoscale as autoscaled
        from kafka_assignors.spark.files import check_target, write_texts
        from kafka_assignors.spark.session import opened

        # Wrong options fail here, before the slow start of a JVM.
        wanted = settings(conf)
        deadline = duration_s("--late-after", late_after)
        if old_late_after is not None:
            deprecated("--deadline", "--late-after")
            deadline = old_late_after
        timing = Timing(deadline=deadline)
        memberships = membership or list(MEMBERSHIPS)
        asked = strategies_given(strategy, old_strategies, STRATEGIES)
        policies, assignors, _ = check_options(policy, asked, memberships, rate, tasks)
        given = sources(
            table,
            {"offset_snapshots": ("--offsets", offsets), "membership_events": ("--events", events)},
            needed=("offset_snapshots",),
        )
        check_libraries()
        with opened(master, **wanted) as spark:
            check_target(spark, out)
            tables = {name: source.read(spark) for name, source in given.items()}
            found = autoscaled(
                tables["offset_snapshots"],
                policies,
                events=tables.get("membership_events"),
                strategies=assignors,
                memberships=memberships,
                groups=group or (),
                rate=rate,
                reset=reset,
                timing=timing,
                tasks=tasks,
            )
            path = f"{out.rstrip('/')}/autoscale"
            write(found, path, overwrite)
            page = autoscale_report(spark.read.parquet(path), deadline=deadline, top=top, groups=group or ())
            (html,) = write_texts(spark, {"autoscale.html": autoscale_page(page)}, out)
    for each in (path, html):
        typer.echo(each)
