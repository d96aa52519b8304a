"""Writes the report's files to any file system of Spark: a folder of this machine, `hdfs://`, `s3a://` and others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kafka_assignors.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from kafka_assignors.report.model import Report

__all__ = ["check_target", "write_report", "write_texts"]


def check_target(spark: SparkSession, folder: str) -> None:
    """Refuses a target that cannot be written, before the report is computed.

    Raises:
        TableError: this Spark does not know the address's file system.
    """
    _file_system(spark, folder)


def write_report(spark: SparkSession, report: Report, folder: str) -> tuple[str, str]:
    """Writes `report.html` and `report.json` with Spark; existing files are replaced.

    Returns:
        The paths of both.

    Raises:
        MissingDependencyError: jinja2 or matplotlib is not installed.
        TableError: the folder cannot be written.
    """
    from kafka_assignors.report.page import files

    html, values = write_texts(spark, files(report), folder)
    return html, values


def write_texts(spark: SparkSession, texts: Mapping[str, str], folder: str) -> list[str]:
    """Writes files with Spark, in UTF-8; existing ones are replaced.

    Args:
        spark: the session.
        texts: name to text.
        folder: of any file system of this Spark.

    Returns:
        The paths of the files.

    Raises:
        TableError: the folder cannot be written.
    """
    from py4j.protocol import Py4JJavaError

    root, system = _file_system(spark, folder)
    try:
        if system.getScheme() == "file":
            # Hadoop's local file system would write a file of checksums beside each.
            place = Path(str(root.toUri().getPath()))
            place.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (place / name).write_text(text, "utf-8")
        else:
            for name, text in texts.items():
                stream = system.create(_path(spark, f"{folder.rstrip('/')}/{name}"), True)
                try:
                    stream.write(bytearray(text.encode()))
                finally:
                    stream.close()
    except (Py4JJavaError, OSError) as error:
        raise TableError(f"{folder} cannot be written: {_reason(error)}") from error
    return [f"{folder.rstrip('/')}/{name}" for name in texts]


def _path(spark: SparkSession, path: str) -> Any:
    return cast(Any, spark.sparkContext._jvm).org.apache.hadoop.fs.Path(path)


def _file_system(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    from py4j.protocol import Py4JJavaError

    try:
        root = _path(spark, folder)
        return root, root.getFileSystem(cast(Any, spark.sparkContext)._jsc.hadoopConfiguration())
    except Py4JJavaError as error:
        raise TableError(
            f"{folder} cannot be written: {_reason(error)}; give a folder that this Spark writes to, and the jars of "
            "its file system with spark.jars.packages"
        ) from error


def _reason(error: Any) -> str:
    """The first line of the message of Java, or of the system."""
    thrown = getattr(error, "java_exception", None)
    said = str(error) if thrown is None else str(thrown.getMessage() or thrown)
    return said.splitlines()[0]
