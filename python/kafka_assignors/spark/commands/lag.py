"""`lag`: the lag of groups over time, from the tables of a capture and of snapshots."""

from typing import Annotated

import typer

from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, read, settings, write


def lag(
    out: Annotated[str, typer.Option(help="Where the folders offset_snapshots and lags go.")],
    offsets: Annotated[str, typer.Option(help="The table offsets: a folder of Parquet, as all of these.")],
    commits: Annotated[str, typer.Option(help="The table offset_commits.")],
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

        with opened(master, **settings(conf)) as spark:
            of_events = None if events is None else read(spark, events, "--events")
            found = offset_snapshots(read(spark, commits, "--commits"), read(spark, offsets, "--offsets"), of_events)
            write(found, f"{out}/offset_snapshots", overwrite)
            write(lags(spark.read.parquet(f"{out}/offset_snapshots"), reset), f"{out}/lags", overwrite)
            (total,) = spark.read.parquet(f"{out}/lags").selectExpr("count(*) as counted", "sum(lag) as lag").collect()
            typer.echo(f"lags: {total.counted:,} rows, {total.lag or 0:,} records to read")
