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

    It has no web page and logs errors only. A local session has one shuffle partition for each core, since each costs a
    task of a Python worker, and more if a partition would be larger than 64 MiB; a cluster keeps Spark's number.
    Workers run this interpreter, or that of `PYSPARK_PYTHON`; on a cluster, the interpreter of the workers must have
    this package.

    Args:
        master: `local[N]`, `local[*]`, or the address of a cluster, `spark://host:7077`. None: that of the session that
            is there, or of `spark-submit`, and without them `local[2]`.
        jars: files for the class path of driver and executors, such as those of `connector_jars()`.
        conf: settings of Spark, with two underscores for a dot: `spark__driver__memory="4g"`; or as
            `**{"spark.driver.memory": "4g"}`. They override the settings above and those of `spark-submit`.

    Returns:
        The session. A running one is returned unchanged, since a process can have only one.

    Raises:
        MissingDependencyError: PySpark, or Java 17 or newer, is not installed.
        OptionError: a jar that does not exist.
        StateError: a running session has another master or lacks these jars, or `spark-submit` has another master.
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
    master = _master_of(master, submitted.get("spark.master"))
    if master.startswith("local"):
        # Otherwise Spark warns if the host's name resolves to another address, which a local session never uses.
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
        # Otherwise Spark starts with its initial number of parts, and ignores the given number.
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
    """As `session`; stops the session at the end unless it was running before."""
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
    """Stops a session. An error of a JVM that is gone is ignored: the call that failed first has raised it already."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        spark.stop()


def _submitted() -> dict[str, str]:
    """The settings from `spark-submit`; none if `spark-submit` did not start this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    ensure: Any = SparkContext._ensure_initialized
    ensure()
    return dict(SparkConf().getAll())


def _master_of(master: str | None, submitted: str | None) -> str:
    if master is not None and submitted is not None and master != submitted:
        raise StateError(
            f"spark-submit has the master {submitted}; leave out the master {master}, or make them the same"
        )
    return master or submitted or "local[2]"


def _java() -> bool:
    """Whether Java is where Spark searches: in `JAVA_HOME`, or else on `PATH`."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin")) if home else None) is not None


def _sized(master: str) -> dict[str, object]:
    """The settings of a local session that depend on the number of cores."""
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if local is None:
        return {}
    cores = os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
    # Only this machine connects to the driver of a local session.
    return {
        _PARTS: cores,
        # Spark cuts a shuffle into these parts and then joins them to parts of 64 MiB, at least one for each core. With
        # one part for each core from the start, a part and the memory of its task would grow with the fleet: a gigabyte
        # is too little for a part of 50,000 groups.
        _FIRST_PARTS: 256,
        # Otherwise a persisted table keeps all of these parts, and each costs a task of every query that reads it.
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Most of the pipeline's data goes to Python workers and back. A Unix domain socket is faster for it than TCP.
        "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
        "spark.python.daemon.module": "kafka_assignors.spark.worker_daemon",
        # By default Arrow's Java checks the bounds of each value that it reads, and repeats Spark's check for null.
        # pyarrow and the core write these values, and have checked them. While many methods wait for Java's last
        # compiler, Java by default compiles others without profiles. Then it does not inline the calls that read
        # Arrow's values, for the rest of the session.
        "spark.driver.extraJavaOptions": (
            "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false -XX:Tier3DelayOn=1000000"
        ),
        # Two tasks share a heap of a gigabyte. These settings limit the memory of a task: a batch of rows for Python,
        # groups that are aggregated before Spark sorts them instead, and a block of Parquet.
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
