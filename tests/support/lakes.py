"""The pipeline on tables of Iceberg and of Delta, in an environment with a Spark that both have jars for.

    python -m support.lakes --wheel target/wheels/dev/kafka_assignors-….whl

`synth`, `replay`, the same replay once more with `--overwrite`, and `report` run on tables by name. Every table must
have the rows that the same commands leave in folders of Parquet. The replaced ones must be of the catalog's own format,
and replaced in one commit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.jars import CACHE, DEFAULT_VERSION, ROOT, made_once, run, tool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POM: Final = ROOT / "tests" / "java" / "lakes.pom.xml"
LAKE: Final = ROOT / "target" / "lakes"
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"file://{LAKE}/iceberg",
    },
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.sources.default": "delta",
        "spark.sql.warehouse.dir": f"{LAKE}/delta",
    },
}
SCHEMAS: Final = {"iceberg": "lake.kafka", "delta": "spark_catalog.kafka"}
MADE: Final = ("membership_events", "topic_partitions", "offset_snapshots", "observed_assignments")
REPLAYED: Final = ("rebalances", "group_summary", "strategy_summary")
OPTIONS: Final = ("--events", "--topics", "--offsets", "--observed")
STRATEGIES: Final = ("--strategy", "range", "--strategy", "sticky", "--strategy", "uniform")


def environment(wheel: Path) -> Path:
    """The interpreter of an environment with this wheel and the Spark of requirements/lakes.txt."""
    uv = Path(sys.executable).with_name("uv")
    python = LAKE / "venv" / "bin" / "python"
    if not python.exists():
        run([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, LAKE / "venv"], "making an environment")
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--no-config", "--python", python]
    locked: list[str | Path] = ["--require-hashes", "--requirement", ROOT / "requirements" / "lakes.txt"]
    run([*install, *locked, "--build-constraints", ROOT / "requirements" / "constraints.txt"], "installing Spark", 900)
    run([*install, "--no-deps", "--reinstall", wheel], "installing the wheel", 300)
    return python


def jars() -> list[Path]:
    """The jars of both catalogs, in the cache."""

    def fetch(target: Path) -> None:
        goal = (tool("mvn"), "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime")
        run((*goal, f"-DoutputDirectory={target}"), "fetching the jars of Iceberg and Delta with Maven", 600)

    return sorted(made_once(DEFAULT_VERSION, "lakes", fetch).glob("*.jar"))


def command(*arguments: str) -> None:
    """A command of `kafka-assignors spark`, in this process and its session."""
    from typer.testing import CliRunner

    from kafka_assignors.spark.app import app

    done = CliRunner().invoke(app, arguments)
    if done.exit_code != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.output}\n{done.exception!r}")


def rows(spark: SparkSession, place: str) -> list[str]:
    """The rows of a table or folder, as text, without times of this machine."""
    frame = spark.read.parquet(place) if place.startswith("/") else spark.table(place)
    kept = [name for name in frame.columns if name != "kernel_ns" and not name.startswith("kernel_ns_")]
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in frame.select(kept).collect())


def of_format(spark: SparkSession, which: str, table: str) -> bool:
    """Whether the table is of this format, and has been replaced in one commit after it was made."""
    if which == "delta":
        history: list[Any] = spark.sql(f"describe history {table}").collect()
        return len(history) == 2 and spark.sql(f"describe detail {table}").collect()[0]["format"] == "delta"
    return spark.table(f"{table}.snapshots").count() == 2


def try_one(which: str, found: list[str]) -> None:
    """All commands on the tables of one catalog, beside folders."""
    from kafka_assignors.spark.session import opened

    schema, folder = SCHEMAS[which], str(LAKE / f"{which}-folders")
    for made in (LAKE / which, Path(folder)):
        shutil.rmtree(made, ignore_errors=True)
    with opened("local[2]", jars=found, **SETTINGS[which]) as spark:
        spark.sql(f"create namespace {schema}")
        synth = ("synth", "--groups", "30", "--seed", "4", "--offset-snapshots", "1")
        command(*synth, "--into", schema)
        command(*synth, "--out", folder)
        tables = [part for name in MADE for part in ("--table", f"{schema}.{name}")]
        folders = [part for name, at in zip(MADE, OPTIONS, strict=True) for part in (at, f"{folder}/{name}")]
        command("replay", *tables, "--into", schema, *STRATEGIES)
        command("replay", *tables, "--into", schema, *STRATEGIES, "--overwrite")
        command("replay", *folders, "--out", folder, *STRATEGIES)
        for name in (*MADE, *REPLAYED):
            if rows(spark, f"{schema}.{name}") != rows(spark, f"{folder}/{name}"):
                raise SystemExit(f"{which}: the table {name} has other rows than the folder")
        for name in REPLAYED:
            if not of_format(spark, which, f"{schema}.{name}"):
                raise SystemExit(f"{which}: {name} is no table of {which} that was replaced in one commit")
        read = [part for name in ("rebalances", *MADE) for part in ("--table", f"{schema}.{name}")]
        command("report", *read, "--out", folder)
        count = spark.table(f"{schema}.rebalances").count()
        print(f"=== lakes: {which}: 7 tables with the rows of the folders, {count:,} rebalances; Spark {spark.version}")


def main() -> None:
    """With a wheel, makes its environment and runs this program there. Without, runs the commands of one catalog."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="the wheel to install; then everything runs in its environment")
    parser.add_argument("--catalog", choices=list(SETTINGS))
    parser.add_argument("jars", nargs="*")
    given = parser.parse_args()
    if given.wheel is None:
        try_one(given.catalog, given.jars)
        return
    CACHE.mkdir(exist_ok=True)
    python, found = environment(given.wheel.resolve()), jars()
    for which in SETTINGS:
        subprocess.run([python, "-P", "-m", "support.lakes", "--catalog", which, *found], check=True)


if __name__ == "__main__":
    main()
