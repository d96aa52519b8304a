"""A Spark session for the pipeline, on this machine or on a cluster."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import MissingDependencyError, OptionError, StateError
from kafka_assignors.spark.schemas import needs_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["opened", "session"]

_PARTS = "spark.sql.shuffle.partitions"
_FIRST_PARTS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"

_NEEDS_JAVA = (
    "Spark needs Java 17 or newer: install one (Debian: apt-get install openjdk-17-jre-headless) and put it on PATH, "
    "or set JAVA_HOME"
)


def session(master: str | None = None, jars: Iterable[str | os.PathLike[str]] = (), **conf: object) -> SparkSession:
    """The Spark session of this process, made if there is none.

    Quiet and small: no web page, errors logged only, as many shuffle partitions as a local master has cores (each of
    them costs a Python worker's task; a cluster keeps Spark's number) and more as soon as they would be larger than
    64 MiB. Workers run this interpreter, unless
    `PYSPARK_PYTHON` says which one: on a cluster that is one that has this package.

    Args:
        master: `local[N]`, `local[*]`, or the address of a cluster, `spark://host:7077`. None: that of the session that
            is there, or of `spark-submit`, and without them `local[2]`.
        jars: files for the class path of driver and executors: Spark's Kafka connector, say.
        conf: settings of Spark's, dots written as two underscores: `spark__driver__memory="4g"`; or as
            `**{"spark.driver.memory": "4g"}`. They come before those above, and before those of `spark-submit`.

    Returns:
        The session. One that is there already is returned as it is, since a process can have only one.

    Raises:
        MissingDependencyError: PySpark, or Java 17 or newer, is not installed.
        OptionError: a jar that does not exist.
        StateError: there is a session already with another master or without these jars, or `spark-submit` has another
            master.
    """
    try:
        import pyarrow  # noqa: F401
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise needs_pyspark() from error
    paths = [str(Path(jar).resolve()) for jar in jars]
    for path in paths:
        if not Path(path).is_file():
            raise OptionError(f"the jar {path} does not exist; docs/spark.md says which ones the Kafka connector needs")
    running = SparkSession.getActiveSession()
    if running is not None:
        return _fitting(running, master, paths)
    if not _java():
        raise MissingDependencyError(_NEEDS_JAVA)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = _submitted()
    master = _chosen(master, submitted.get("spark.master"))
    if master.startswith("local"):
        # A host's name that leads to another address is no matter then, and Spark would warn of it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    named = {name.replace("__", "."): value for name, value in conf.items()}
    settings: dict[str, object] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **_sized(master),
        **submitted,
        **({"spark.jars": ",".join([*filter(None, [submitted.get("spark.jars")]), *paths])} if paths else {}),
        **named,
    }
    if any(_PARTS in given and _FIRST_PARTS not in given for given in (submitted, named)):
        # Spark would take the initial number of parts, and ignore the number that was given.
        settings.pop(_FIRST_PARTS, None)
    builder = SparkSession.builder.master(master).appName("kafka-assignors")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    try:
        made: SparkSession = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise MissingDependencyError(f"Java came to an early end; what it said stands above. {_NEEDS_JAVA}") from error
    made.sparkContext.setLogLevel(str(settings["spark.log.level"]))
    return made


@contextmanager
def opened(
    master: str | None = None, jars: Iterable[str | os.PathLike[str]] = (), **conf: object
) -> Iterator[SparkSession]:
    """As `session`, and stops it in the end if it was made here."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise needs_pyspark() from error
    there = SparkSession.getActiveSession() is not None
    spark = session(master, jars, **conf)
    try:
        yield spark
    finally:
        if not there:
            _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stops a session. If its JVM is gone there is nothing to stop, and the caller has the error already."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        spark.stop()


def _submitted() -> dict[str, str]:
    """The settings that `spark-submit` has given to this process; none if it did not start it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    ensure: Any = SparkContext._ensure_initialized
    ensure()
    return dict(SparkConf().getAll())


def _chosen(master: str | None, submitted: str | None) -> str:
    if master is not None and submitted is not None and master != submitted:
        raise StateError(
            f"spark-submit has the master {submitted}; leave out the master {master}, or make them the same"
        )
    return master or submitted or "local[2]"


def _java() -> bool:
    """Whether there is a Java where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin")) if home else None) is not None


def _sized(master: str) -> dict[str, object]:
    """Settings that go by the number of cores."""
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if local is None:
        return {}
    cores = os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
    # The driver of a local session talks to nobody else.
    return {
        _PARTS: cores,
        # What is shuffled is cut into many parts, of which Spark puts so many together again as make 64 MiB, or one for
        # each core if that is less. With a part for each core alone a part grows with the fleet, and so does what
        # sorting and collecting one takes: a gigabyte is too little for 50,000 groups in each.
        _FIRST_PARTS: 256,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # What goes to Python workers and back, which is most of what the pipeline does, then skips the network's stack.
        "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
        "spark.python.daemon.module": "kafka_assignors.spark.worker_daemon",
        # What a task holds at once, for a heap of a gigabyte that two of them share: a batch of groups' rows, the
        # groups that are gathered beside each other before Spark sorts them instead, and what waits to be written.
        "spark.sql.execution.arrow.maxBytesPerBatch": 16 << 20,
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": 8,
        "spark.hadoop.parquet.block.size": 32 << 20,
    }


def _fitting(running: SparkSession, master: str | None, jars: list[str]) -> SparkSession:
    context = running.sparkContext
    loaded = (context.getConf().get("spark.jars") or "").split(",")
    missing = [jar for jar in jars if Path(jar).name not in {Path(path).name for path in loaded}]
    if missing:
        raise StateError(f"there is a Spark session already, without {missing[0]}; stop it first, or give it the jars")
    there = str(context.master)
    if master is not None and there != master and not (there.startswith("local") and master.startswith("local")):
        raise StateError(f"there is a Spark session already, on {there}; stop it before one on {master}")
    return running
