"""The whole pipeline on a generated fleet, by one command."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from kafka_assignors.spark.app import app

pytestmark = [pytest.mark.xdist_group("spark-2"), pytest.mark.timeout(1800)]

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
(LINE,) = re.findall(r"^(kafka-assignors spark pipeline .*)$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.needs("spark")
def test_it_says_where_the_report_will_be_and_it_is_there(tmp_path: Path) -> None:
    """In a process of its own, so that the end of Spark's workers is tested, too. The page's fleet has more groups."""
    program, *words = shlex.split(LINE.replace("--groups 300 ", "--groups 20 "))
    command = [str(Path(sys.executable).with_name(program)), *words]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1000, check=False
        )
    except subprocess.TimeoutExpired as late:
        # The tables that are done, with their seconds, show whether the machine is slow or a table hangs.
        said = [(output or b"").decode() for output in (late.stdout, late.stderr)]
        pytest.fail(f"not over after {late.timeout} s:\n" + "\n".join(said))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    out = tmp_path / "pipeline"
    page = out / "report.html"
    assert done.stdout.splitlines()[0] == f"The report will be here: {page.as_uri()}"
    # The page has pictures of six groups at most.
    assert page.stat().st_size < 2_000_000
    assert page.read_text("utf-8").startswith("<!doctype html>")
    values = json.loads((out / "report.json").read_text("utf-8"))
    rebalances = pyarrow.parquet.read_table(out / "tables" / "rebalances")
    sums = rebalances.group_by("strategy").aggregate([("moved", "sum")]).to_pylist()
    moved = {row["strategy"]: row["moved_sum"] for row in sums}
    assert {each["strategy"]: each["moved"] for each in values["strategies"]} == moved
    assert {"observed", "range", "sticky", "lag"} <= set(moved)
    assert all(group["ownership"] for group in values["worst"])


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
        assert process.wait(1000) == -signal.SIGPIPE, told
    assert [line for line in told.splitlines() if "Traceback" in line or "BrokenPipe" in line] == []
    # The command ends at the first line after the reader has gone, not at its last line.
    assert not (tmp_path / "report.html").exists()


def test_an_address_is_refused() -> None:
    done = CliRunner().invoke(app, ["pipeline", "--out", "file:///somewhere"])
    assert done.exit_code == 2
    assert done.stderr.startswith("kafka-assignors: --out is 'file:///somewhere'; give a folder of this machine")
