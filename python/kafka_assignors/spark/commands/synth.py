"""`synth`: the tables of a made-up fleet."""

from contextlib import ExitStack
from typing import Annotated

import typer

from kafka_assignors.flags import deprecated
from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, settings
from kafka_assignors.spark.commands.tables import Into, target

# How long the tables take, relative to each other, for the progress bar.
_WEIGHTS = {"membership_events": 2.0, "topic_partitions": 1.0, "offset_snapshots": 4.0, "observed_assignments": 5.0}
_START = 1.0


def synth(
    out: Annotated[str | None, typer.Option(help="Where the tables go: a folder each, in Parquet.")] = None,
    into: Into = None,
    groups: Annotated[int, typer.Option(help="How many consumer groups.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The seed of the random numbers: an equal seed makes an equal fleet.")] = 0,
    cluster: Annotated[str, typer.Option(help="The name of the cluster.")] = "synthetic",
    days: Annotated[float, typer.Option(help="How long the histories are.")] = 7.0,
    rebalances: Annotated[int, typer.Option(min=1, help="The median number of rebalances of a group.")] = 20,
    old_events: Annotated[int | None, typer.Option("--events", min=1, hidden=True)] = None,
    offset_snapshots: Annotated[int, typer.Option(min=0, help="How many snapshots of offsets a group has.")] = 4,
    old_snapshots: Annotated[int | None, typer.Option("--snapshots", min=0, hidden=True)] = None,
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Make up a fleet from a seed: membership_events, topic_partitions, offset_snapshots and observed_assignments."""
    with exit_on_error():
        from kafka_assignors.spark.fleet import FleetOptions
        from kafka_assignors.spark.progress import Steps, on_stderr
        from kafka_assignors.spark.session import opened
        from kafka_assignors.spark.synth import synth as made

        # Wrong options fail here, before the slow start of a JVM.
        wanted = settings(conf)
        if old_events is not None:
            deprecated("--events", "--rebalances")
            rebalances = old_events
        if old_snapshots is not None:
            deprecated("--snapshots", "--offset-snapshots")
            offset_snapshots = old_snapshots
        FleetOptions(seed, groups, cluster, days, rebalances, offset_snapshots)
        there = target(out, into)
        with Steps(on_stderr(), _START + sum(_WEIGHTS.values())) as steps, ExitStack() as stack:
            with steps.step("Spark", _START, printed=False):
                spark = stack.enter_context(opened(master, **wanted))
            tables = made(
                spark, groups, seed, cluster=cluster, days=days, events=rebalances, snapshots=offset_snapshots
            )
            for name, table in tables.items():
                with steps.step(name, _WEIGHTS[name], spark):
                    there.write(table, name, overwrite)
                typer.echo(there.place(name))
