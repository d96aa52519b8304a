"""`snapshot`: partition counts, topic ids, first and last offsets of a live cluster; needs no Spark."""

from typing import Annotated

import typer

from kafka_assignors.printable import printable
from kafka_assignors.spark.commands import exit_on_error
from kafka_assignors.spark.commands.connection import (
    BootstrapServer,
    ConfigFile,
    OldConfigFile,
    Settings,
    file_given,
)


def snapshot(
    out: Annotated[str, typer.Option(help="The folder for the tables topic_partitions and offsets.")],
    bootstrap: BootstrapServer = None,
    single: Settings = None,
    config: ConfigFile = None,
    old_config: OldConfigFile = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="A topic. Repeatable; by default all but Kafka's internal ones.", metavar="NAME"),
    ] = None,
    every: Annotated[
        float | None, typer.Option(help="Write a snapshot every so many seconds, until interrupted.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="With --every: end after so many snapshots.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="The tables' column cluster; the cluster's id by default.")
    ] = None,
    isolation_level: Annotated[str, typer.Option(help="read_uncommitted, or read_committed.")] = "read_uncommitted",
) -> None:
    """Append partition counts, topic ids, first and last offsets to Parquet. Settings are confluent-kafka's names.

    Exit status: 0, or 2 if the input is bad or the cluster cannot be read.
    """
    with exit_on_error():
        from kafka_assignors.errors import OptionError
        from kafka_assignors.net.command_line import connection_settings
        from kafka_assignors.spark.snapshot import snapshots

        settings = connection_settings(bootstrap, single, file_given(config, old_config))
        if every is None and count is not None:
            raise OptionError("--count is for --every; give both, or neither")
        taken = snapshots(
            settings,
            out,
            every=every or 1.0,
            count=1 if every is None else count,
            topics=topic,
            cluster=cluster,
            isolation_level=isolation_level,
        )
        for found in taken:
            partitions = sum(len(each.end) for each in found.topics)
            typer.echo(
                f"{found.ts}: {len(found.topics):,} topics, {partitions:,} partitions of {printable(found.cluster)}"
            )
