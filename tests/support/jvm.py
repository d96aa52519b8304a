"""How the tests start Java: the cheapest compiler and collector, and an archive of Spark's classes.

A Java program that runs for seconds spends most of them on loading classes and on compiling. Class-data sharing
(JEP 350) stores the loaded classes of one run in an archive, which later runs map into memory. `make class-archives`
makes the archive in ``.cache``; a test that finds none runs all the same, only longer.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from support import jars

__all__ = ["OPTIONS", "SPARK_VARIABLE", "archived", "make_archives", "spark_options"]

# The smallest heap and the cheapest compiler and collector: several of these processes run at a time, for seconds.
OPTIONS = ("-Xms32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto")
# Spark's launcher gives the options of this variable to every driver.
SPARK_VARIABLE = "SPARK_SUBMIT_OPTS"
_SPARK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# A JVM says on its standard output that an archive does not fit its class path. Some tests read this output.
_QUIET = "-Xlog:disable"
_TIMEOUT = 600


def archived(archive: Path) -> list[str]:
    """The options for an archive, if it is there."""
    return [_QUIET, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def spark_options() -> str:
    """The value of `SPARK_VARIABLE` for the drivers that tests start."""
    return " ".join([*_SPARK, *archived(_spark_archive())])


def _spark_archive() -> Path:
    # An archive fits one class path only, and pip's PySpark is below `sys.prefix`.
    key = hashlib.sha256(f"{sys.prefix} {version('pyspark')}".encode()).hexdigest()[:12]
    return jars.home(jars.DEFAULT_VERSION) / f"spark-classes-{key}.jsa"


# A shuffle, Python workers, and a table written and read: most classes of the pipeline's jobs.
_TRAINING = """
import sys
from kafka_assignors.spark.session import opened
with opened("local[2]") as spark:
    counts = spark.range(1000).selectExpr("id % 10 as key").groupBy("key").count()
    counts.mapInArrow(lambda batches: batches, counts.schema).write.parquet(sys.argv[1])
    spark.read.parquet(sys.argv[1]).orderBy("key").collect()
"""


def make_archives() -> None:
    """Makes the archive for Spark by a short run of its own."""

    def train(target: Path) -> None:
        options = " ".join([*_SPARK, _QUIET, f"-XX:ArchiveClassesAtExit={target}"])
        with tempfile.TemporaryDirectory() as folder:
            script = (sys.executable, "-P", "-c", _TRAINING, Path(folder, "table"))
            # The JVM writes the archive after Python's end. `run` waits for it, since the JVM holds the output open.
            jars.run(("env", f"{SPARK_VARIABLE}={options}", *script), "a run of Spark for its classes", _TIMEOUT)

    jars.made_once(jars.DEFAULT_VERSION, _spark_archive().name, train)


if __name__ == "__main__":
    make_archives()
