"""Tables by their names in a catalog, beside folders: the session's own catalog, Delta's and Iceberg's."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors.errors import OptionError
from kafka_assignors.spark.app import app
from kafka_assignors.spark.commands.tables import named_tables, sources, target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-2"), pytest.mark.timeout(900)]

SYNTH = ["--groups", "6", "--seed", "4", "--offset-snapshots", "1"]


def run(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout if status == 0 else done.stderr


@pytest.fixture
def lake(spark: SparkSession) -> Iterator[str]:
    spark.sql("create database lake")
    yield "spark_catalog.lake"
    spark.sql("drop database lake cascade")


def rows(spark: SparkSession, place: str) -> list[str]:
    frame = spark.read.parquet(place) if "/" in place else spark.table(place)
    kept = [name for name in frame.columns if name != "kernel_ns" and not name.startswith("kernel_ns_")]
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in frame.select(kept).collect())


def test_the_pipeline_goes_by_names_as_by_folders(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    folder = str(tmp_path)
    run("synth", "--out", folder, *SYNTH)
    told = run("synth", "--into", lake, *SYNTH)
    assert told.split()[0] == f"{lake}.membership_events"
    names = ("membership_events", "topic_partitions", "offset_snapshots", "observed_assignments")
    for name in names:
        assert rows(spark, f"{lake}.{name}") == rows(spark, f"{folder}/{name}")
    strategies = ("--strategy", "range", "--strategy", "sticky")
    tables = [part for name in names for part in ("--table", f"{lake}.{name}")]
    run("replay", *tables, "--into", lake, *strategies)
    options = ("--events", "--topics", "--offsets", "--observed")
    folders = [part for name, option in zip(names, options, strict=True) for part in (option, f"{folder}/{name}")]
    run("replay", *folders, "--out", folder, *strategies)
    for name in ("rebalances", "group_summary", "strategy_summary"):
        assert rows(spark, f"{lake}.{name}") == rows(spark, f"{folder}/{name}")
    # One from a catalog and the others from a folder; and a table of another name.
    spark.sql(f"create table {lake}.replayed as select * from {lake}.rebalances")
    named = ["--in", folder, "--table", f"rebalances={lake}.replayed"]
    told = run("report", *named, "--out", f"{folder}/report", "--into", lake, "--top", "1")
    assert told.split()[-1] == f"{lake}.recommendations"
    assert spark.table(f"{lake}.recommendations").count() == 6
    again = run("synth", "--into", lake, *SYNTH, status=2)
    assert again.endswith("membership_events is there already; give another --into, or --overwrite\n")
    run("synth", "--into", lake, *SYNTH, "--overwrite")


def test_what_is_not_there_is_one_sentence(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    assert spark is not None
    events = ["--table", f"{lake}.membership_events", "--table", f"{lake}.topic_partitions"]
    said = run("replay", *events, "--out", str(tmp_path), status=2)
    assert said.startswith(f"kafka-assignors: --table: {lake}.membership_events cannot be read (")
    assert said.count("\n") == 1
    said = run("synth", "--into", "spark_catalog.nowhere", *SYNTH, status=2)
    assert said.startswith("kafka-assignors: --into: spark_catalog.nowhere.membership_events cannot be written (")
    assert said.count("\n") == 1


def test_values_that_cannot_be() -> None:
    assert named_tables(["a.b.lags", "rebalances=a.b.c", "c.`offsets`"]) == {
        "lags": "a.b.lags",
        "rebalances": "a.b.c",
        "offsets": "c.`offsets`",
    }
    for given, said in (
        (["a.b.c"], "--table is 'a.b.c', and the pipeline has no table 'c'; give NAME=CATALOG.SCHEMA.TABLE"),
        (["lags="], "--table is 'lags='"),
        (["a.lags", "b.lags"], "--table names lags twice; give it once"),
    ):
        with pytest.raises(OptionError, match=re.escape(said)):
            named_tables(given)
    folders = {"lags": ("--lags", "somewhere"), "offsets": ("--offsets", None)}
    for given, said in (
        (["a.lags"], "--lags and --table both say where lags is; give one of them"),
        (["a.autoscale"], "--table names autoscale, which this command does not read; it reads lags, offsets"),
        ([], "the table offsets is missing; give its folder with --offsets, or its name with --table"),
    ):
        with pytest.raises(OptionError, match=re.escape(said)):
            sources(given, folders, needed=("offsets",))
    for out, into, said in (("a", "b.c", "--out and --into both say"), (None, None, "nothing says where tables go")):
        with pytest.raises(OptionError, match=said):
            target(out, into)
