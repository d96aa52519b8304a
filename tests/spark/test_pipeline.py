"""The whole way on a made-up fleet, by one command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors.spark.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


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
