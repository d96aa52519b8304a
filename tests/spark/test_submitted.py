"""A block of docs/spark-cluster.md, run: a cluster of two executors in processes of their own stands for YARN, and `file://`
for HDFS and S3."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet
import pytest

import kafka_assignors
from support import jars

pytestmark = [pytest.mark.cluster, pytest.mark.needs("spark"), pytest.mark.timeout(900)]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "spark-cluster.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CLUSTER = "local-cluster[2,1,1024]"
HERE = ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.ui.enabled=false")


def block(*words: str) -> str:
    """The one block of the page that has all of these words, in one line."""
    (found,) = [text for kind, text in BLOCKS if kind == "sh" and all(word in text for word in words)]
    return str(found).replace("\\\n", " ").strip()


def submit(folder: Path, line: str, environment: dict[str, str], status: int = 0) -> str:
    """Runs a line of the page in a folder with the program of the page; returns the output."""
    import pyspark

    (program,) = [text for kind, text in BLOCKS if kind == "py"]
    (folder / "pipeline.py").write_text(program)
    home = Path(pyspark.__file__).parent
    words = shlex.split(line)
    at = words.index("spark-submit")
    words[at : at + 1] = [str(home / "bin" / "spark-submit"), *(part for each in HERE for part in ("--conf", each))]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"} | environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert (done.returncode == 0) == (status == 0), done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of twenty groups, made on this machine."""
    jars.tool("java")
    folder = tmp_path_factory.mktemp("fleet")
    command = [sys.executable, "-m", "kafka_assignors.spark", "synth", "--groups", "20", "--out", str(folder / "kafka")]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    return folder


def bare(folder: Path) -> Path:
    """A Python with everything but this package, as executors have it. Its path."""
    site = Path(kafka_assignors.__file__).parents[1]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], timeout=120, check=True)
    (there,) = (folder / "bare").glob("lib/python*/site-packages")
    for each in site.iterdir():
        if not each.name.startswith(("kafka_assignors", "__pycache__")) and each.suffix != ".pth":
            (there / each.name).symlink_to(each)
    return folder / "bare" / "bin" / "python"


def rows(folder: Path) -> list[str]:
    table = pyarrow.parquet.read_table(folder / "rebalances").drop_columns(["kernel_ns"])
    return sorted(map(str, table.to_pylist()))


def test_executors_get_the_package_with_the_job(fleet: Path, tmp_path: Path) -> None:
    line = block("spark-submit --master yarn --deploy-mode client", "--archives package.zip")
    line = line.replace("yarn --deploy-mode client", CLUSTER).replace(
        "hdfs:///kafka/replayed", f"file://{tmp_path}/there"
    )
    line = line.replace("hdfs://", f"file://{fleet}") + " --strategy range --strategy sticky --tasks 4"
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        package = Path(kafka_assignors.__file__).parent
        for each in package.rglob("*"):
            if "__pycache__" not in each.parts:
                archive.write(each, each.relative_to(package.parent))
    pythons = {"PYSPARK_PYTHON": str(bare(tmp_path)), "PYSPARK_DRIVER_PYTHON": sys.executable}
    submit(tmp_path, line, pythons)
    command = [sys.executable, "-m", "kafka_assignors.spark", "replay", "--strategy", "range", "--strategy", "sticky"]
    tables = ["--events", f"{fleet}/kafka/membership_events", "--topics", f"{fleet}/kafka/topic_partitions"]
    subprocess.run([*command, *tables, "--out", str(tmp_path / "here")], capture_output=True, timeout=300, check=True)
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    without = re.sub(r"--archives \S+", "", line).replace("/there", "/nowhere")
    assert "No module named 'kafka_assignors'" in submit(tmp_path, without, pythons, status=1)
