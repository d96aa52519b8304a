"""The whole pipeline on a generated fleet, by one command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors.spark.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-2"), pytest.mark.timeout(900)]


@pytest.mark.needs("spark")
def test_it_ends_without_a_traceback_and_its_page_is_small(tmp_path: Path) -> None:
    """In a process of its own, so that the end of Spark's workers is tested, too."""
    command = [sys.executable, "-m", "kafka_assignors.spark", "pipeline", "--out", str(tmp_path), "--groups", "12"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    # The page has pictures of six groups at most.
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


@pytest.mark.needs("spark")
def test_a_reader_of_one_line_ends_it_as_it_ends_any_command(tmp_path: Path) -> None:
    """`pipeline | head -1`: neither the command nor a Spark worker prints a traceback."""
    command = [sys.executable, "-m", "kafka_assignors.spark", "pipeline", "--out", str(tmp_path), "--groups", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("The report will be here: ")
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(500) == -signal.SIGPIPE, told
    assert [line for line in told.splitlines() if "Traceback" in line or "BrokenPipe" in line] == []
    # The command ends at the first line after the reader has gone, not at its last line.
    assert not (tmp_path / "report.html").exists()


def test_an_address_is_refused() -> None:
    done = CliRunner().invoke(app, ["pipeline", "--out", "file:///somewhere"])
    assert done.exit_code == 2
    assert done.stderr.startswith("kafka-assignors: --out is 'file:/somewhere'; give a folder of this machine")


def test_it_says_where_the_report_will_be_and_it_is_there(spark: SparkSession, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["pipeline", "--out", str(tmp_path / "out"), "--groups", "20", "--seed", "2"])
    assert done.exit_code == 0, done.output
    page = tmp_path / "out" / "report.html"
    lines = done.stdout.splitlines()
    assert lines[0] == f"The report will be here: {page.as_uri()}"
    assert page.read_text("utf-8").startswith("<!doctype html>")
    values = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    rebalances = spark.read.parquet(str(tmp_path / "out" / "tables" / "rebalances"))
    moved = {row[0]: row[1] for row in rebalances.groupBy("strategy").sum("moved").collect()}
    assert {each["strategy"]: each["moved"] for each in values["strategies"]} == moved
    assert {"observed", "range", "sticky", "lag"} <= set(moved)
    assert all(group["ownership"] for group in values["worst"])
