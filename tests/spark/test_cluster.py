"""The replay on a Spark cluster: a standalone master and two workers on this machine, with the wheel on executors."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet
import pytest

from support import jars
from support.histories import drawn
from support.standalone_spark import WORKERS, standalone

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.needs("spark"), pytest.mark.timeout(900)]

GROUPS = 200


def tables(folder: Path) -> None:
    """The fleet as Parquet, in several files each, for reading in parallel."""
    events: list[dict[str, Any]] = []
    counts: list[dict[str, Any]] = []
    for seed in range(GROUPS):
        history, group = drawn(seed), f"g{seed}"
        for each in history.events:
            topics = None if each["topics"] is None else [f"{group}-{topic}" for topic in each["topics"]]
            events.append({"cluster": "c", "group_id": group, **each, "topics": topics})
        counts += [{"cluster": "c", **each, "topic": f"{group}-{each['topic']}"} for each in history.counts]
    int_columns = {"generation", "partition_count"}
    for name, rows in (("events", events), ("topics", counts)):
        (folder / name).mkdir()
        whole = pyarrow.Table.from_pylist(rows)
        for place, column in enumerate(whole.column_names):
            if column in int_columns:
                whole = whole.set_column(place, column, whole[column].cast(pyarrow.int32()))
        size = len(rows) // 4 + 1
        for part in range(4):
            pyarrow.parquet.write_table(whole.slice(part * size, size), folder / name / f"{part}.parquet")


def replay(folder: Path, out: str, *options: str) -> list[dict[str, Any]]:
    """Runs the command; returns the rows that it wrote."""
    paths = ("--events", str(folder / "events"), "--topics", str(folder / "topics"), "--out", str(folder / out))
    command = [sys.executable, "-m", "kafka_assignors.spark", "replay", *paths, *options]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(folder / out / "rebalances").to_pylist()
    for row in rows:
        del row["kernel_ns"]
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row.values()])


def test_a_standalone_cluster_gives_the_rows_of_this_machine(tmp_path: Path) -> None:
    jars.tool("java")
    tables(tmp_path)
    here = replay(tmp_path, "here")
    assert len(here) > 6 * GROUPS
    with standalone(tmp_path, "700m") as master:
        conf = ("spark.executor.memory=600m", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1")
        settings = [part for each in conf for part in ("--conf", each)]
        there = replay(tmp_path, "there", "--master", master, "--tasks", "8", *settings)
        assert there == here
        # Every worker had an executor.
        assert all(list((tmp_path / f"work{number}").glob("app-*/*/stderr")) for number in range(WORKERS))
