"""The generated fleet as tables, on Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kafka_assignors import OptionError
from kafka_assignors.spark.app import app
from kafka_assignors.spark.fleet import FleetOptions, SynthGroup
from kafka_assignors.spark.schemas import checked
from kafka_assignors.spark.synth import TABLES, synth

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]


def rows(table: DataFrame) -> list[str]:
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in table.collect())


def test_tables_have_their_columns_and_the_fleet_of_the_seed(spark: SparkSession) -> None:
    tables = synth(spark, 30, 3, snapshots=2)
    assert tuple(tables) == TABLES
    for name, table in tables.items():
        assert checked(table, name).schema == table.schema
    wanted: list[Any] = [
        ("synthetic", group.group_id, *event)
        for number in range(30)
        for group in [SynthGroup(FleetOptions(3, 30, snapshots=2), number)]
        for event in group.events
    ]
    names = ("cluster", "group_id", "seq", "ts", "kind", "member_id", "instance_id", "rack", "topics")
    found = [tuple(row) for row in tables["membership_events"].select(*names).collect()]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_the_same_rows_whatever_the_parallelism(spark: SparkSession) -> None:
    """The fleet with two cores, and with its groups distributed over tasks in other ways."""
    from kafka_assignors.spark import synth as module

    options = FleetOptions(9, 25, snapshots=2)
    for name, table in synth(spark, 25, 9, snapshots=2).items():
        expected = rows(table)
        assert expected
        for numbers in (spark.range(0, 25, 1, 1), spark.range(0, 25, 1, 25).orderBy("id", ascending=False)):
            assert rows(module._table(numbers, name, options)) == expected


def test_the_core_plans_what_the_definition_of_a_group_says(spark: SparkSession) -> None:
    """The table, from batches of histories, beside `SynthGroup.observed`, which plans one step after the other."""
    options = FleetOptions(5, 400, snapshots=1)
    expected = [
        (group.group_id, row.generation, row.ts, row.member_id, row.topic, tuple(row.partitions))
        for number in range(options.groups)
        for group in [SynthGroup(options, number)]
        for row in group.observed()
    ]
    names = ("group_id", "generation", "ts", "member_id", "topic", "partitions")
    found = [(*row[:5], tuple(row[5])) for row in synth(spark, 400, 5)["observed_assignments"].select(*names).collect()]
    assert sorted(found) == sorted(expected)


def test_no_groups_are_empty_tables(spark: SparkSession) -> None:
    assert [table.count() for table in synth(spark, 0).values()] == [0, 0, 0, 0]


def test_another_seed_is_another_fleet(spark: SparkSession) -> None:
    first, second = (rows(synth(spark, 5, seed)["topic_partitions"]) for seed in (1, 2))
    assert first != second


def test_numbers_that_cannot_be(spark: SparkSession) -> None:
    with pytest.raises(OptionError, match="groups is -5; give an integer of 0 or more"):
        synth(spark, -5)


def test_the_command_writes_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    options = ["synth", "--out", str(tmp_path / "fleet"), "--groups", "8", "--seed", "4", "--offset-snapshots", "1"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == [f"{tmp_path}/fleet/{name}" for name in TABLES]
    assert [line.split()[0] for line in done.stderr.splitlines()] == list(TABLES)
    for name, table in synth(spark, 8, 4, snapshots=1).items():
        assert rows(spark.read.parquet(str(tmp_path / "fleet" / name))) == rows(table)
    again = CliRunner().invoke(app, options)
    assert again.exit_code == 2
    assert "is there already; give another --out, or --overwrite" in again.stderr
    bad = CliRunner().invoke(app, [*options, "--days", "0"])
    sentence = "kafka-assignors: days is 0.0; give a positive number of days, 36500 at most\n"
    assert (bad.exit_code, bad.stderr) == (2, sentence)
