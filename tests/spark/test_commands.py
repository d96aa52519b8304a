"""The input of the commands: a dump of the offsets topic, and an unfinished capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow
import pytest
from typer.testing import CliRunner

from kafka_assignors import _core
from kafka_assignors.errors import TableError
from kafka_assignors.spark.app import app
from kafka_assignors.spark.commands import read
from kafka_assignors.spark.decoding import DECODED, decode_wide
from kafka_assignors.spark.ledger import Ledger
from kafka_assignors.spark.schemas import schema
from support.offsets_records import commit_key, commit_value, group_value, key, records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

RECORDS = "key binary, value binary, partition int, offset bigint, timestamp bigint"


def test_a_dump_is_decoded(spark: SparkSession, tmp_path: Path) -> None:
    group = group_value(7, "range", [("m1", None, b"", b""), ("m2", None, b"", b"")])
    dump = [
        (commit_key("g", "orders", 3), commit_value(42, 900), 5, 10, 1_000),
        (key(2, "g"), group, 5, 11, 1_000),
        (b"\x00", b"", 5, 12, 1_000),
    ]
    spark.createDataFrame(dump, RECORDS).write.parquet(str(tmp_path / "dump"))
    out = tmp_path / "history"
    command = ["decode", "--records", str(tmp_path / "dump"), "--cluster", "c", "--out", str(out)]
    done = CliRunner().invoke(app, [*command, "--clients", "--keep-bytes"])
    assert done.exit_code == 0, done.output
    assert "offset_commits: 1" in done.output
    tables = {name: spark.read.parquet(str(out / name)) for name in DECODED}
    for name, table in tables.items():
        wanted = {field.name: field.dataType for field in schema(name).fields}
        assert {field.name: field.dataType for field in table.schema.fields} == wanted
    (commit,) = tables["offset_commits"].collect()
    assert (commit.cluster, commit.group_id, commit.topic, commit.partition, commit.committed) == (
        "c",
        "g",
        "orders",
        3,
        42,
    )
    events = tables["membership_events"].orderBy("member_id").collect()
    assert [(row.member_id, row.generation, row.client_id, row.client_host) for row in events] == [
        ("m1", 7, "app", "/10.0.0.1"),
        ("m2", 7, "app", "/10.0.0.1"),
    ]
    broken = tables["rejected_records"].where("reason = 'broken'").collect()
    assert [(bytes(row["key"]), row["src_offset"]) for row in broken] == [(b"\x00", 12)]
    again = CliRunner().invoke(app, command)
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    # Columns without their option are null, with the same types.
    plain = CliRunner().invoke(app, [*command, "--overwrite"])
    assert plain.exit_code == 0, plain.output
    events = spark.read.parquet(str(out / "membership_events")).collect()
    assert {(row.client_id, row.client_host) for row in events} == {(None, None)}
    assert {row["key"] for row in spark.read.parquet(str(out / "rejected_records")).collect()} == {None}


@pytest.mark.parametrize("clients", [False, True])
@pytest.mark.parametrize("keep_bytes", [False, True])
def test_spark_and_the_core_agree_where_rows_have_nulls(spark: SparkSession, clients: bool, keep_bytes: bool) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    declared = decode_wide(spark.createDataFrame([], RECORDS), clients=clients, keep_bytes=keep_bytes).schema
    decoder = _core.OffsetsTopic({}, clients, keep_bytes)
    table = pyarrow.Table.from_batches([records([(commit_key("g", "orders", 3), commit_value(42, 900))])])
    found = pyarrow.record_batch(next(decoder.decode(table)))
    assert found.schema == to_arrow_schema(declared)


def test_a_capture_is_read_as_far_as_its_batches_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    ledger = Ledger(spark, str(tmp_path))
    ledger.open("c", "__consumer_offsets", "id")
    row = {"cluster": "c", "group_id": "g", "ts": 900, "topic": "orders", "partition": 3, "committed": 42}
    commits = spark.createDataFrame([row], schema("offset_commits"))
    for batch_id in (0, 1):
        commits.write.parquet(str(tmp_path / "offset_commits" / f"batch_id={batch_id}"))
    table = str(tmp_path / "offset_commits")
    with pytest.raises(TableError, match="holds no finished batch of a capture"):
        read(spark, table, "--commits")
    ledger.finish(0, {"records": 1})
    found = read(spark, table + "/", "--commits")
    assert (found.count(), found.columns) == (1, commits.columns)


def test_what_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    for path in (str(tmp_path / "nowhere"), "nosuch://host/membership_events", "nosuch://host/table"):
        with pytest.raises(TableError, match=f"--events: {path} cannot be read as Parquet .*; give the folder"):
            read(spark, path, "--events")
