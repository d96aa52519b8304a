"""`decode`: the tables of a capture, from a dump of the offsets topic."""

from typing import Annotated

import typer

from kafka_assignors.spark.commands import Conf, Master, Overwrite, exit_on_error, read, settings, write


def decode(
    records: Annotated[
        str, typer.Option(help="A folder of Parquet with the columns key, value, partition, offset and timestamp.")
    ],
    out: Annotated[str, typer.Option(help="Where the tables' folders go.")],
    cluster: Annotated[str, typer.Option(help="The tables' column cluster.")],
    snapshots: Annotated[
        str | None, typer.Option(help="The --out of `snapshot`, for the names of topic ids in KIP-848 groups.")
    ] = None,
    clients: Annotated[bool, typer.Option("--clients", help="Keep client ids and hosts.")] = False,
    keep_bytes: Annotated[bool, typer.Option("--keep-bytes", help="Keep the bytes of unreadable records.")] = False,
    master: Master = None,
    conf: Conf = None,
    overwrite: Overwrite = False,
) -> None:
    """Decode a dump of __consumer_offsets to the tables that `capture` writes.

    Exit status: 0, or 2 if the input is bad.
    """
    with exit_on_error():
        from pyspark import StorageLevel

        from kafka_assignors.spark.decoding import decode_wide, hand_over_by_count, tables_of
        from kafka_assignors.spark.session import opened
        from kafka_assignors.spark.snapshot import topic_names

        names = None if snapshots is None else topic_names(snapshots)
        with opened(master, **settings(conf)) as shared:
            spark = shared.newSession()
            hand_over_by_count(spark)
            wide = decode_wide(read(spark, records, "--records"), names=names, clients=clients, keep_bytes=keep_bytes)
            # The records are decoded once and written to five tables; rows that do not fit the memory go to disk.
            wide = wide.persist(StorageLevel.MEMORY_AND_DISK)
            for name, table in tables_of(wide, cluster).items():
                write(table, f"{out}/{name}", overwrite)
                typer.echo(f"{name}: {spark.read.parquet(f'{out}/{name}').count():,}")
            wide.unpersist()
