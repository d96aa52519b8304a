"""`synth`: the tables of a made-up fleet."""

from typing import Annotated

import typer

from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, settings, write


def synth(
    out: Annotated[str, typer.Option(help="Where the tables go: a folder each, in Parquet.")],
    groups: Annotated[int, typer.Option(help="How many consumer groups.")] = 1_000,
    seed: Annotated[int, typer.Option(help="Another seed is another fleet.")] = 0,
    cluster: Annotated[str, typer.Option(help="The name of the cluster.")] = "synthetic",
    days: Annotated[float, typer.Option(help="How long the histories are.")] = 7.0,
    events: Annotated[int, typer.Option(help="How many rebalances a group has, in the middle.")] = 20,
    snapshots: Annotated[int, typer.Option(help="How often offsets are looked at.")] = 4,
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Make up a fleet from a seed: membership_events, topic_partitions, offset_snapshots and observed_assignments."""
    with exit_on_error():
        from kafka_assignors.spark.fleet import FleetOptions
        from kafka_assignors.spark.session import opened
        from kafka_assignors.spark.synth import synth as made

        # Before a JVM is started.
        wanted = settings(conf)
        FleetOptions(seed, groups, cluster, days, events, snapshots)
        with opened(master, **wanted) as spark:
            tables = made(spark, groups, seed, cluster=cluster, days=days, events=events, snapshots=snapshots)
            for name, table in tables.items():
                path = f"{out.rstrip('/')}/{name}"
                write(table, path, overwrite)
                typer.echo(path)
