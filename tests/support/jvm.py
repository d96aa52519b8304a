"""How the tests start Java: the cheapest compiler and collector, and archives of Kafka's and Spark's classes.

A Java program that runs for seconds spends most of them on loading classes and on compiling. Class-data sharing
(JEP 310, JEP 350) stores the loaded classes of one run in an archive, which later runs map into memory. `make
class-archives` makes the archives in ``.cache``; a test that finds none runs all the same, only longer.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from support import jars

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "OPTIONS",
    "QUIET",
    "SPARK",
    "SPARK_VARIABLE",
    "archived",
    "kafka_archive",
    "kafka_options",
    "spark_archive",
    "spark_options",
]

# The smallest heap and the cheapest compiler and collector: several of these processes run at a time, for seconds.
OPTIONS = ("-Xms32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto")
# Spark's launcher gives the options of this variable to every driver.
SPARK_VARIABLE = "SPARK_SUBMIT_OPTS"
# With this compiler alone the JVM reserves 48 MB for compiled code. Spark fills them, and then a thread keeps searching
# for code to discard.
SPARK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
# A JVM prints to its standard output that an archive does not fit its class path. Some tests read this output.
QUIET = "-Xlog:disable"


def archived(archive: Path) -> list[str]:
    """The options for an archive, if it exists."""
    return [QUIET, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def kafka_options(release: str) -> list[str]:
    """The options for a broker or a member of this release. Its class path begins with the jars of the release."""
    return [*OPTIONS, *archived(kafka_archive(release))]


def spark_options() -> str:
    """The value of `SPARK_VARIABLE` for the drivers that tests start."""
    return " ".join([*SPARK, *archived(spark_archive())])


def kafka_archive(release: str) -> Path:
    """The archive for a broker and a member of this release."""
    return jars.home(release) / f"kafka-classes-{jars.libs(release).name}.jsa"


def spark_archive() -> Path:
    """The archive for Spark's drivers."""
    # An archive fits one class path only, and pip's PySpark is below `sys.prefix`.
    key = hashlib.sha256(f"{sys.prefix} {version('pyspark')}".encode()).hexdigest()[:12]
    return jars.home(jars.DEFAULT_VERSION) / f"spark-classes-{key}.jsa"
