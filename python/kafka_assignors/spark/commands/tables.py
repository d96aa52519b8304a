"""Where the tables of a command are: folders of Parquet, or tables of a catalog, such as Delta's and Iceberg's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.errors import OptionError, TableError
from kafka_assignors.spark.commands import read, write
from kafka_assignors.spark.schemas import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Into", "NamedTables", "Source", "Target", "named_tables", "read_named", "sources", "target"]

NamedTables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        help="A table of a catalog, such as lake.kafka.membership_events, in place of the option for its folder; "
        "membership_events=lake.kafka.events if it has another name. Repeatable.",
        metavar="[NAME=]CATALOG.SCHEMA.TABLE",
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into", help="A catalog and schema, such as lake.kafka, that gets the tables.", metavar="CATALOG.SCHEMA"
    ),
]


@dataclass(frozen=True, slots=True)
class Source:
    """The place of a table: a folder, or a name in a catalog.

    Attributes:
        at: the folder, or the name in a catalog.
        option: the option that gave the place, for errors.
        named: whether `at` is a name in a catalog.
    """

    at: str
    option: str
    named: bool

    def read(self, spark: SparkSession) -> DataFrame:
        """The table.

        Raises:
            TableError: it is not there, or cannot be read.
        """
        return read_named(spark, self.at) if self.named else read(spark, self.at, self.option)


def named_tables(given: list[str] | None) -> dict[str, str]:
    """The values of `--table`: the pipeline's name of a table to its name in a catalog.

    Raises:
        OptionError: a name that the pipeline does not know, or that is given twice.
    """
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, at = text.partition("=")
        if not equals:
            name, at = text.rpartition(".")[2].strip("`"), text
        if name not in TABLES or not at:
            raise OptionError(
                f"--table is {text!r}, and the pipeline has no table {name!r}; give NAME=CATALOG.SCHEMA.TABLE with one "
                f"of the names {', '.join(TABLES)}"
            )
        if name in found:
            raise OptionError(f"--table names {name} twice; give it once")
        found[name] = at
    return found


def sources(
    given: list[str] | None, folders: Mapping[str, tuple[str, str | None]], needed: tuple[str, ...] = ()
) -> dict[str, Source]:
    """The place of each given table.

    Args:
        given: the values of `--table`.
        folders: the tables that the command reads: name to its option, and the folder that this option gave.
        needed: the tables that the command needs.

    Raises:
        OptionError: a table that is given twice, that is missing, or that the command does not read.
    """
    named = named_tables(given)
    unread = sorted(set(named) - set(folders))
    if unread:
        raise OptionError(f"--table names {unread[0]}, which this command does not read; it reads {', '.join(folders)}")
    found = {}
    for name, (option, folder) in folders.items():
        if folder is not None and name in named:
            raise OptionError(f"{option} and --table both say where {name} is; give one of them")
        if folder is not None:
            found[name] = Source(folder, option, False)
        elif name in named:
            found[name] = Source(named[name], "--table", True)
        elif name in needed:
            raise OptionError(f"the table {name} is missing; give its folder with {option}, or its name with --table")
    return found


def read_named(spark: SparkSession, name: str) -> DataFrame:
    """A table of a catalog of this session.

    Raises:
        TableError: no catalog has it, or it cannot be read.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return spark.table(name)
    except (PySparkException, Py4JJavaError) as error:
        first = str(error.java_exception if isinstance(error, Py4JJavaError) else error).splitlines()[0]
        raise TableError(
            f"--table: {name} cannot be read ({first}); give a table of a catalog of this session "
            "(--conf spark.sql.catalog.…)"
        ) from error


@dataclass(frozen=True, slots=True)
class Target:
    """Where tables go: folders below `out`, or tables of the schema `into` of a catalog."""

    out: str | None
    into: str | None

    def place(self, name: str) -> str:
        """The folder, or the name, of a table."""
        return f"{self.into}.{name}" if self.into is not None else f"{(self.out or '').rstrip('/')}/{name}"

    def write(self, frame: DataFrame, name: str, overwrite: bool) -> DataFrame:
        """Writes a table, and returns it as it was written.

        Raises:
            TableError: it exists and `overwrite` is false, or the catalog has no such schema.
        """
        place = self.place(name)
        spark = frame.sparkSession
        if self.into is None:
            write(frame, place, overwrite)
            return spark.read.parquet(place)
        from pyspark.errors import AnalysisException

        try:
            writer = frame.writeTo(place)
            if overwrite:
                writer.createOrReplace()
            else:
                writer.create()
        except AnalysisException as error:
            if overwrite and (error.getCondition() or "").startswith("UNSUPPORTED_FEATURE"):
                # A catalog that cannot replace a table in one step, such as Spark's own.
                frame.write.mode("overwrite").saveAsTable(place)
                return spark.table(place)
            if error.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS":
                raise TableError(f"{place} is there already; give another --into, or --overwrite") from error
            raise TableError(
                f"--into: {place} cannot be written ({str(error).splitlines()[0]}); give a schema that is there, of a "
                "catalog that --conf spark.sql.catalog.… sets up"
            ) from error
        return spark.table(place)


def target(out: str | None, into: str | None) -> Target:
    """Where tables go.

    Raises:
        OptionError: neither is given, or both.
    """
    if (out is None) == (into is None):
        said = "--out and --into both say where the tables go" if out is not None else "nothing says where tables go"
        raise OptionError(f"{said}; give a folder with --out, or a catalog and schema with --into")
    return Target(out, into)
