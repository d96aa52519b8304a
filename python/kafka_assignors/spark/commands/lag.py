"""`lag`: the lag of groups over time, from the tables of a capture and of snapshots."""

from typing import Annotated

import typer

from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, settings
from kafka_assignors.spark.commands.tables import Into, NamedTables, sources, target


def lag(
    out: Annotated[str | None, typer.Option(help="Where the folders offset_snapshots and lags go.")] = None,
    offsets: Annotated[
        str | None, typer.Option(help="The table offsets: a folder of Parquet, as all of these.")
    ] = None,
    commits: Annotated[str | None, typer.Option(help="The table offset_commits.")] = None,
    table: NamedTables = None,
    into: Into = None,
    events: Annotated[
        str | None,
        typer.Option(help="The table membership_events: topics that groups subscribe to without a commit yet."),
    ] = None,
    reset: Annotated[
        str, typer.Option(help="The groups' auto_offset_reset, for partitions without a commit.")
    ] = "latest",
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Join commits with first and last offsets: the lag of each group and partition in each snapshot.

    Exit status: 0, or 2 if the input is bad.
    """
    with exit_on_error():
        from kafka_assignors.spark.lag import lags, offset_snapshots
        from kafka_assignors.spark.session import opened

        given = sources(
            table,
            {
                "offsets": ("--offsets", offsets),
                "offset_commits": ("--commits", commits),
                "membership_events": ("--events", events),
            },
            needed=("offsets", "offset_commits"),
        )
        there = target(out, into)
        with opened(master, **settings(conf)) as spark:
            tables = {name: source.read(spark) for name, source in given.items()}
            found = offset_snapshots(tables["offset_commits"], tables["offsets"], tables.get("membership_events"))
            snapshots = there.write(found, "offset_snapshots", overwrite)
            written = there.write(lags(snapshots, reset), "lags", overwrite)
            (total,) = written.selectExpr("count(*) as counted", "sum(lag) as lag").collect()
            typer.echo(f"lags: {total.counted:,} rows, {total.lag or 0:,} records to read")
