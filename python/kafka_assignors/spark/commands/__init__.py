"""The pipeline's commands, one module each, and their common options, errors, reading and writing."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.errors import KafkaAssignorsError, OptionError, TableError
from kafka_assignors.flags import BAD_INPUT, deprecated, print_error
from kafka_assignors.spark.heap import too_small
from kafka_assignors.spark.schemas import needs_pyspark
from kafka_assignors.stdout import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Conf",
    "Jars",
    "Master",
    "OldStrategies",
    "Overwrite",
    "Tasks",
    "exit_on_error",
    "read",
    "settings",
    "strategies_given",
    "write",
]

_LIBRARIES = ("numpy", "pandas", "py4j", "pyarrow", "pyspark")

Master = Annotated[
    str | None,
    typer.Option(
        help="Spark's master: local[N], local[*], or spark://host:port. By default local[2], or that of spark-submit."
    ),
]
Jars = Annotated[list[str] | None, typer.Option("--jar", help="A jar for Spark's class path; repeatable.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="NAME=VALUE, a setting of Spark's; repeatable.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace tables that are there already.")]
Tasks = Annotated[int | None, typer.Option(min=1, help="The number of Spark tasks among which the groups are divided.")]
OldStrategies = Annotated[str | None, typer.Option("--strategies", hidden=True)]
"""The earlier form of `--strategy`: one list with commas."""


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Errors that this package raises on purpose become one sentence on standard error, and exit status 2.

    So do a missing library of the extra `spark`, and a heap that is too small, instead of Java's stack traces.
    """
    # py4j logs each failed connection to a JVM that is gone.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        yield
    except KafkaAssignorsError as error:
        print_error(error)
        raise typer.Exit(BAD_INPUT) from error
    except ImportError as error:
        if (error.name or "").split(".")[0] not in _LIBRARIES:
            raise
        print_error(needs_pyspark())
        raise typer.Exit(BAD_INPUT) from error
    except OutputError:
        # The cause of an OutputError is a closed pipe, which `too_small` would take for a JVM that ran out of memory.
        raise
    except Exception as error:
        sentence = too_small(error)
        if sentence is None:
            raise
        print_error(sentence)
        raise typer.Exit(BAD_INPUT) from error


def settings(conf: list[str] | None) -> dict[str, str]:
    """The settings of `--conf`. By default Java logs nothing, since its errors reach Python as exceptions.

    Raises:
        OptionError: no equals sign.
    """
    pairs = [each.partition("=") for each in conf or []]
    wrong = [name for name, equals, _ in pairs if not equals or not name]
    if wrong:
        raise OptionError(f"--conf is {wrong[0]!r}; give NAME=VALUE, such as spark.executor.memory=4g")
    return {"spark.log.level": "OFF", **{name: value for name, _, value in pairs}}


def strategies_given(strategy: list[str] | None, old: str | None, default: Sequence[str]) -> list[str]:
    """The strategies of `--strategy`, or of its earlier form, for which a warning is printed.

    Args:
        strategy: the values of `--strategy`.
        old: the value of `--strategies`.
        default: the strategies of a command to which none is given.
    """
    from kafka_assignors.strategies import split_strategies

    if old is not None:
        deprecated("--strategies", "--strategy for each strategy")
    if strategy:
        return strategy
    return list(default) if old is None else split_strategies(old)


def read(spark: SparkSession, path: str, option: str) -> DataFrame:
    """A table in Parquet; of a capture the complete batches only, since the last one may be half written.

    Args:
        spark: the session.
        path: the folder, or any address that this Spark reads.
        option: the option that named it, for the error.

    Raises:
        TableError: there is no Parquet at the path.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from kafka_assignors.spark.captured import captured
    from kafka_assignors.spark.decoding import DECODED
    from kafka_assignors.spark.ledger import Ledger

    folder, _, name = path.rstrip("/").rpartition("/")
    try:
        if name in DECODED and Ledger(spark, folder or ".").is_capture:
            return captured(spark, folder or ".", name)
        return spark.read.parquet(path)
    except (PySparkException, Py4JJavaError) as error:
        # The text of the Python exception begins with a Python traceback.
        text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
        first = text.splitlines()[0]
        raise TableError(f"{option}: {path} cannot be read as Parquet ({first}); give the folder of a table") from error


def write(frame: DataFrame, path: str, overwrite: bool) -> None:
    """Writes a table as Parquet.

    Raises:
        TableError: it exists, and `overwrite` is false.
    """
    from pyspark.errors import AnalysisException

    try:
        frame.write.mode("overwrite" if overwrite else "errorifexists").parquet(path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise TableError(f"{path} is there already; give another --out, or --overwrite") from error
