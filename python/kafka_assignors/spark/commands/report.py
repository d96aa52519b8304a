"""`report`: a page from the tables of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, settings
from kafka_assignors.spark.commands.tables import NamedTables, Target, named_tables, read_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = (
    "rebalances",
    "membership_events",
    "topic_partitions",
    "lags",
    "observed_assignments",
    "assignments",
    "autoscale",
)


def report(
    out: Annotated[
        str, typer.Option(help="The folder, or address, that report.html, report.json and recommendations go to.")
    ],
    folders: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            help="A folder of tables; may be given repeatedly. `rebalances` has to be in one of them; "
            "`membership_events`, `topic_partitions`, `lags`, `observed_assignments`, `assignments` and `autoscale` "
            "are of use.",
            metavar="FOLDER",
        ),
    ] = None,
    table: NamedTables = None,
    into: Annotated[
        str | None,
        typer.Option(
            help="A catalog and schema, such as lake.kafka, that gets the table recommendations in place of --out.",
            metavar="CATALOG.SCHEMA",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many groups are shown with pictures: those that gain most.")] = 6,
    sections: Annotated[
        int,
        typer.Option(help="How many more of the groups that should change have a folded section, 0 to 1000."),
    ] = 300,
    group: Annotated[
        list[str] | None, typer.Option(help="A group to show, whatever it gains. Repeatable; by default the worst.")
    ] = None,
    joined: Annotated[
        str | None,
        typer.Option(help="An expression in RE2's syntax: groups with it in their id join their topics by number."),
    ] = None,
    lag_skew: Annotated[
        float, typer.Option(help="A heaviest member's lag of at most so many times the mean is no reason for a change.")
    ] = 2.0,
    lag: Annotated[
        int, typer.Option(help="A member's lag of at most so many records is no reason for a change.")
    ] = 10_000,
    gain: Annotated[float, typer.Option(help="The part that moves or balance must gain for a change.")] = 0.1,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Make a page from a replay: report.html, report.json, and a recommendation for every group.

    The page needs no network. The groups with the most to gain are shown with timelines: from the table `assignments`,
    or, where that is missing, by replaying them once more. With the table `autoscale` there is autoscale.html as well.
    Exit status: 0, or 2 if the input is bad.
    """
    with exit_on_error():
        from kafka_assignors.report.autoscale import autoscale_page
        from kafka_assignors.report.page import check_libraries
        from kafka_assignors.report.recommend import Limits
        from kafka_assignors.spark.autoscale import autoscale_report
        from kafka_assignors.spark.files import check_target, write_report, write_texts
        from kafka_assignors.spark.report import check_options, recommendations, replayed_assignments
        from kafka_assignors.spark.report import report as reported
        from kafka_assignors.spark.session import opened

        # Wrong options fail here, before the slow start of a JVM.
        wanted = settings(conf)
        limits = Limits(lag_skew, lag, gain)
        check_options(top, joined, sections)
        named = named_tables(table)
        check_libraries()
        with opened(master, **wanted) as spark:
            check_target(spark, out)
            tables = _tables(spark, named, folders or [])
            rebalances = tables["rebalances"]
            events, counts = tables["membership_events"], tables["topic_partitions"]
            assignments: Any = tables["assignments"]
            if assignments is None and events is not None and counts is not None:
                assignments = replayed_assignments(events, counts, tables["lags"], tables["observed_assignments"])
            there = Target(None if into else out, into)
            advice = recommendations(rebalances, events=events, joined=joined, limits=limits)
            advice = there.write(advice, "recommendations", overwrite)
            found = reported(
                rebalances,
                events=events,
                lags=tables["lags"],
                assignments=assignments,
                joined=joined,
                limits=limits,
                top=top,
                sections=sections,
                groups=group or (),
                advice=advice,
                pages={} if tables["autoscale"] is None else {"Autoscalers": "autoscale.html"},
                **({"title": title} if title else {}),
            )
            written = [*write_report(spark, found, out), there.place("recommendations")]
            if tables["autoscale"] is not None:
                page = autoscale_report(tables["autoscale"], top=top)
                written += write_texts(spark, {"autoscale.html": autoscale_page(page)}, out)
    for each in written:
        typer.echo(each)


def _tables(spark: SparkSession, named: dict[str, str], folders: list[str]) -> dict[str, Any]:
    """The tables by name; None for a table that neither `--table` nor a folder of `--in` has.

    Raises:
        TableError: the table `rebalances` is missing.
    """
    from kafka_assignors.errors import TableError
    from kafka_assignors.spark.report import find_table

    tables = {
        name: read_named(spark, named[name]) if name in named else find_table(spark, folders, name) for name in _TABLES
    }
    if tables["rebalances"] is None:
        raise TableError(
            f"--in: none of {', '.join(folders)} has the table rebalances; `replay` makes it"
            if folders
            else "the table rebalances is missing; give its folder with --in, or its name with --table"
        )
    return tables
