"""Makes the archives of `support.jvm`, each from a short run of the program that it is for."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from support import jars, jvm
from support.broker import ApacheKafka
from support.members import JavaMember
from support.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TIMEOUT = 1_800

# A shuffle, Python workers, and a table written and read: most classes of the pipeline's jobs.
_JOB = """
import sys
from kafka_assignors.spark.session import opened
with opened("local[2]") as spark:
    counts = spark.range(1000).selectExpr("id % 10 as key").groupBy("key").count()
    counts.mapInArrow(lambda batches: batches, counts.schema).write.parquet(sys.argv[1])
    spark.read.parquet(sys.argv[1]).orderBy("key").collect()
"""


def spark(target: Path) -> None:
    """Writes the archive, with the classes of a short job."""
    options = " ".join([*jvm.SPARK, jvm.QUIET, f"-XX:ArchiveClassesAtExit={target}"])
    with tempfile.TemporaryDirectory() as folder:
        script = (sys.executable, "-P", "-c", _JOB, Path(folder, "table"))
        # The JVM writes the archive after Python's end. `run` waits for it, since the JVM holds the output open.
        jars.run(("env", f"{jvm.SPARK_VARIABLE}={options}", *script), "a run of Spark for its classes", _TIMEOUT)


def kafka(target: Path) -> None:
    """Writes the archive, with the classes of a broker and of a member that joins a group on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lists = [folder / "broker.classes", folder / "member.classes"]
        broker = ApacheKafka(folder / "broker")
        with listed(lists[0]):
            broker.start()
        try:
            broker.create_topic("t", 1)
            trace = Trace()
            with listed(lists[1]):
                member = JavaMember(trace, "member", broker, "g", folder)
            try:
                member.subscribe("t")
                trace.settle(["member"], {("t", 0)})
                member.close()
            finally:
                member.kill()
        finally:
            broker.stop()
        both = folder / "classes"
        lines = dict.fromkeys(line for each in lists for line in each.read_text().splitlines())
        both.write_text("".join(f"{line}\n" for line in lines))
        options = ("-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={both}", jvm.QUIET)
        path = jars.classpath(jars.libs(broker.version))
        command = (jars.tool("java"), *options, f"-XX:SharedArchiveFile={target}", "-cp", path)
        jars.run(command, "an archive of Kafka's classes", _TIMEOUT)


@contextmanager
def listed(path: Path) -> Iterator[None]:
    """A JVM that starts within this block writes the names of its classes to `path` when it ends."""
    with mock.patch.dict(os.environ, JDK_JAVA_OPTIONS=f"-XX:DumpLoadedClassList={path}"):
        yield


def make(target: Path, train: Callable[[Path], None]) -> None:
    """Makes an archive if it does not exist. The archive gets its name when it is complete.

    `jars.made_once` cannot do this: the broker takes the same lock for its own files, and the lock does not nest.
    """
    if not target.exists():
        unfinished = target.with_suffix(".unfinished")
        try:
            train(unfinished)
            unfinished.rename(target)
        finally:
            unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    make(jvm.spark_archive(), spark)
    make(jvm.kafka_archive(jars.DEFAULT_VERSION), kafka)
