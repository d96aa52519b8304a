"""`capture`: the history of groups, streamed from the broker's offsets topic to Parquet."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.printable import printable
from kafka_assignors.spark.commands import Conf, Jars, Master, exit_on_error, settings
from kafka_assignors.spark.commands.connection import (
    BootstrapServer,
    ConfigFile,
    JavaSettings,
    OldConfigFile,
    client_settings,
    file_given,
)
from kafka_assignors.spark.progress import on_stderr

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_assignors.spark.capture import Capture


def capture(
    out: Annotated[str, typer.Option(help="The folder for tables, checkpoint and notes; one for each cluster.")],
    bootstrap: BootstrapServer = None,
    single: JavaSettings = None,
    config: ConfigFile = None,
    old_config: OldConfigFile = None,
    every: Annotated[float, typer.Option(help="Write a micro-batch every so many seconds, until interrupted.")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, and end.")] = False,
    cluster: Annotated[
        str | None, typer.Option(help="The tables' column cluster; the cluster's id by default.")
    ] = None,
    snapshots: Annotated[
        str | None, typer.Option(help="The --out of `snapshot`, for the names of topic ids in KIP-848 groups.")
    ] = None,
    clients: Annotated[bool, typer.Option("--clients", help="Keep client ids and hosts.")] = False,
    keep_bytes: Annotated[bool, typer.Option("--keep-bytes", help="Keep the bytes of unreadable records.")] = False,
    most: Annotated[int | None, typer.Option(min=1, help="About so many records in a micro-batch at most.")] = None,
    jar: Jars = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Stream group metadata and commits from __consumer_offsets to Parquet, until it is interrupted.

    Settings are those of a Java consumer. Started again with the same --out it goes on where it ended, also after a
    crash: each record is in the tables once. The jars of Spark's Kafka connector are fetched with Maven, unless --jar
    names them.

    Exit status: 0, or 2 if the input is bad or the topic cannot be read.
    """
    with exit_on_error():
        from kafka_assignors.spark.capture import capture as start
        from kafka_assignors.spark.connector import connector_jars
        from kafka_assignors.spark.session import opened
        from kafka_assignors.spark.snapshot import topic_names

        kafka = client_settings(bootstrap, single, file_given(config, old_config))
        # Before the slow start of a JVM, since the jars may be missing.
        jars = jar or connector_jars()
        names = None if snapshots is None else lambda: topic_names(snapshots)
        with opened(master, jars, **settings(conf)) as spark:
            running = start(
                spark,
                kafka,
                out,
                every=None if once else every,
                cluster=cluster,
                names=names,
                clients=clients,
                keep_bytes=keep_bytes,
                most=most,
            )
            _until_the_end(running, once)
            _print_rows(running)


def _until_the_end(running: Capture, once: bool) -> None:
    """Waits until the capture ends by itself or is interrupted.

    A signal only sets a flag. If its handler raised an exception during a call to Java, the answer would stay unread in
    the connection, and the query could not be stopped over this connection.
    """
    interrupted = threading.Event()
    progress = _CaptureProgress(running, on_stderr())
    before = {number: signal.signal(number, lambda *_: interrupted.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    with progress, ThreadPoolExecutor(1) as beside:
        catching_up = None if once else beside.submit(running.catch_up)
        while not interrupted.is_set() and not running.wait(1.0):
            progress.look()
            if catching_up is not None and catching_up.done():
                catching_up.result()
                catching_up = None
                whose = f"{printable(running.topic.name)} of {printable(running.topic.cluster)}"
                typer.echo(f"{whose} is caught up; capturing until interrupted")
        for number, handler in before.items():
            signal.signal(number, handler)
        if interrupted.is_set():
            running.stop()
        elif catching_up is not None:
            catching_up.result()
        progress.look()


class _CaptureProgress:
    """The progress of a capture: a line for each batch, and on a terminal a bar until the capture is caught up."""

    def __init__(self, running: Capture, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._running = running
        self._console = console
        self._last = max(running.batches(), default=-1)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._task = self._progress.add_task(f"reading {printable(running.topic.name)}", total=1.0)

    def __enter__(self) -> _CaptureProgress:
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._progress.stop()

    def look(self) -> None:
        """Prints a line for each batch that was finished since the last call."""
        for number, counts in self._running.batches(self._last).items():
            self._last = number
            share = self._running.share_read(number)
            self._progress.update(self._task, completed=share)
            rows = sum(counts["rows"].values())
            self._console.print(f"batch {number}: {rows:,} rows, {share:.0%} of what the topic held at the start")


def _print_rows(running: Capture) -> None:
    """Prints the numbers of rows in the tables, and of rejected records by reason."""
    rows: dict[str, int] = {}
    reasons: dict[str, int] = {}
    for counts in running.batches().values():
        for total, part in ((rows, counts["rows"]), (reasons, counts["rejected"])):
            for name, number in part.items():
                total[name] = total.get(name, 0) + number
    for name, number in rows.items():
        typer.echo(f"{name}: {number:,}")
    for name, number in sorted(reasons.items()):
        typer.echo(f"  {name}: {number:,}")
