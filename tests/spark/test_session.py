"""The session, the schemas of the tables and the commands, with and without the programs that they need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kafka_assignors import MissingDependencyError, OptionError, StateError
from kafka_assignors.errors import TableError
from kafka_assignors.spark.app import app
from kafka_assignors.spark.replay import replay
from kafka_assignors.spark.schemas import TABLES, checked, schema
from kafka_assignors.spark.session import opened, session
from kafka_assignors.spark.summary import group_summary, strategy_summary
from kafka_assignors.spark.worker_daemon import quiet
from support import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]


@pytest.fixture
def no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "pyspark", None)


@pytest.mark.usefixtures("no_pyspark")
def test_without_pyspark_there_is_one_sentence() -> None:
    nothing: Any = None
    calls = (
        session,
        lambda: schema("lags"),
        lambda: checked(nothing, "lags"),
        lambda: replay(nothing, nothing),
        lambda: group_summary(nothing),
        lambda: strategy_summary(nothing, nothing),
    )
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"PySpark 4.1 or newer.*pip install kafka-assignors\[spark\]"):
            call()
    done = CliRunner().invoke(app, ["replay", "--events", "e", "--topics", "t", "--out", "o"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "pip install kafka-assignors[spark]" in done.stderr


def run(script: str, **environment: str) -> str:
    """The last line of a script's error output, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stderr.splitlines()[-1]


def test_without_java_there_is_one_sentence(tmp_path: Path) -> None:
    script = "from kafka_assignors.spark.session import session; session()"
    for environment in ({"PATH": str(tmp_path)}, {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}):
        said = run(script, **environment)
        assert said.startswith("kafka_assignors.errors.MissingDependencyError: Spark needs Java 17 or newer: install")
    command = [sys.executable, "-m", "kafka_assignors.spark", "replay", "--events", "e", "--topics", "t", "--out", "o"]
    done = subprocess.run(
        command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("kafka-assignors: Spark needs Java 17 or newer")


def test_a_java_that_does_not_start_spark_is_told(tmp_path: Path) -> None:
    """Java 11 ends like this."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'class file version 61.0' >&2\nexit 1\n")
    java.chmod(0o755)
    script = "from kafka_assignors.spark.session import session; session()"
    said = run(script, PATH="/usr/bin:/bin", JAVA_HOME=str(tmp_path))
    assert "MissingDependencyError: Java came to an early end" in said
    assert "needs Java 17 or newer" in said


def test_without_typer_there_is_one_sentence() -> None:
    script = "import sys; sys.modules['typer'] = None; import kafka_assignors.spark.__main__ as m; m.main()"
    assert "pip install kafka-assignors[spark]" in run(script)


def test_a_session_that_is_there_is_used(spark: SparkSession, tmp_path: Path) -> None:
    assert session() is spark
    with opened("local[4]") as same:
        assert same is spark
    assert spark.range(3).count() == 3
    jar = tmp_path / "other.jar"
    with pytest.raises(OptionError, match=r"other\.jar does not exist"):
        session(jars=[jar])
    jar.write_bytes(b"")
    with pytest.raises(StateError, match=r"there is a Spark session already, without .*other\.jar; stop it first"):
        session(jars=[jar])
    with pytest.raises(StateError, match=r"already, on local\[2\]; stop it before one on spark://h:1"):
        session("spark://h:1")


def test_a_small_persisted_table_is_read_by_few_tasks(spark: SparkSession) -> None:
    """Spark cuts a shuffle into 256 parts. If a persisted table kept them, each would cost a task of every query."""
    counted = spark.range(1_000).selectExpr("id % 100 as key").groupBy("key").count().persist()
    try:
        assert counted.count() == 100
        assert counted.rdd.getNumPartitions() <= 2
    finally:
        counted.unpersist()


@pytest.mark.needs("spark")
def test_under_spark_submit_its_master_and_settings_count(tmp_path: Path) -> None:
    import pyspark

    script = tmp_path / "submitted.py"
    script.write_text(
        "import sys\n"
        "from kafka_assignors import StateError\n"
        "from kafka_assignors.spark.session import opened, session\n"
        "try:\n"
        "    session('local[7]')\n"
        "except StateError as error:\n"
        "    print('refused:', error)\n"
        "with opened() as spark:\n"
        "    print('master:', spark.sparkContext.master, spark.conf.get('spark.sql.shuffle.partitions'))\n"
    )
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[3]", "--conf", "spark.sql.shuffle.partitions=11"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    environment |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment[jvm.SPARK_VARIABLE] = os.environ[jvm.SPARK_VARIABLE]
    done = subprocess.run(
        [*command, str(script)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "refused: spark-submit has the master local[3]; leave out the master local[7], or make them the same",
        "master: local[3] 11",
    ]


def test_a_worker_whose_socket_is_closed_ends_quietly() -> None:
    """For any other end of a worker, the daemon prints a traceback."""

    def closed(sock: Any, authenticated: bool) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def broken(sock: Any, authenticated: bool) -> int:
        raise ValueError("something else")

    assert quiet(closed)(None, True) == 1
    assert quiet(lambda sock, authenticated: 0)(None, True) == 0
    with pytest.raises(ValueError, match="something else"):
        quiet(broken)(None, True)


def test_schemas(spark: SparkSession) -> None:
    for name in TABLES:
        assert [field.name for field in schema(name).fields] == [column.name for column in TABLES[name]]
    assert schema("observed_assignments")["partitions"].dataType.simpleString() == "array<int>"
    narrow = spark.sql("select 1S partition_count, 'c' cluster, 't' topic, 5 ts, 'more' more")
    assert checked(narrow, "topic_partitions").schema.simpleString() == schema("topic_partitions").simpleString()
    assert checked(narrow, "topic_partitions").collect() == [("c", "t", 5, 1)]
    (row,) = checked(
        spark.sql("select 'c' cluster, null group_id, 1 seq, 2L ts, 'join' kind, 'm' member_id, array() topics"),
        "membership_events",
    ).collect()
    assert (row.group_id, row.instance_id, row.generation, row.topics) == (None, None, None, [])
    with pytest.raises(
        TableError,
        match=r"topic_partitions: has no column topic string; partition_count is bigint, not int. Select",
    ):
        checked(spark.sql("select 1L partition_count, 'c' cluster, 5 ts"), "topic_partitions")
    with pytest.raises(TableError, match="lags is of type list; give a DataFrame"):
        checked([], "lags")  # type: ignore[arg-type]


def fleet(spark: SparkSession, folder: Path) -> dict[str, str]:
    """Two groups of two members, one of which leaves, as tables in Parquet."""
    events = [
        ("c", group, seq, 10 * seq, kind, member, ["t"])
        for group in ("a", "b")
        for seq, kind, member in ((1, "join", "x"), (2, "join", "y"), (3, "leave", "x"))
    ]
    frames = {
        "events": spark.createDataFrame(
            events,
            "cluster string, group_id string, seq int, ts long, kind string, member_id string, topics array<string>",
        ),
        "topics": spark.createDataFrame([("c", "t", 0, 8)], schema("topic_partitions")),
        "offsets": spark.createDataFrame([("c", "a", 0, "t", 3, 0, 100, 60)], schema("offset_snapshots")),
        "lags": spark.createDataFrame([("c", "a", 0, "t", 3, 40)], schema("lags")),
    }
    for name, frame in frames.items():
        frame.write.parquet(str(folder / name))
    return {name: str(folder / name) for name in frames}


def test_the_command(spark: SparkSession, tmp_path: Path) -> None:
    paths, out = fleet(spark, tmp_path), str(tmp_path / "out")
    base = ["replay", "--events", paths["events"], "--topics", paths["topics"], "--out", out]
    strategies = ["--strategy", "sticky", "--strategy", "lag(scope=group, max_skew=2)"]
    options = ["--offsets", paths["offsets"], *strategies, "--assignments"]
    done = CliRunner().invoke(app, [*base, *options])
    assert done.exit_code == 0, done.output
    assert "lag(scope=group, max_skew=2)" in done.output
    found = {name: spark.read.parquet(f"{out}/{name}") for name in ("rebalances", "group_summary", "strategy_summary")}
    for name, frame in found.items():
        assert frame.schema.simpleString() == schema(name).simpleString()
    rows = found["rebalances"].collect()
    assert len(rows) == 12
    assert {(row.group_id, row.max_lag) for row in rows} == {("a", 40), ("b", 0)}
    moved = {row.strategy: row.moved_total for row in found["strategy_summary"].collect()}
    assert moved["sticky"] == 16 <= moved["lag(scope=group, max_skew=2)"]
    assert spark.read.parquet(f"{out}/assignments").where("strategy = 'sticky' and member_id = 'y'").count() == 4

    again = CliRunner().invoke(app, [*base, *options])
    assert (again.exit_code, again.stderr) == (
        2,
        f"kafka-assignors: {out}/rebalances is there already; give another --out, or --overwrite\n",
    )
    with_lags = CliRunner().invoke(app, [*base, "--lags", paths["lags"], "--strategy", "sticky", "--overwrite"])
    assert with_lags.exit_code == 0, with_lags.output
    assert spark.read.parquet(f"{out}/rebalances").agg({"max_lag": "max"}).collect() == [(40,)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--events": "/nowhere/at/all"}, "--events: /nowhere/at/all cannot be read as Parquet"),
        ({"--events": "topics"}, "membership_events: has no column group_id string"),
        ({"--strategy": "best"}, "the strategy is 'best'; give one of"),
        ({"--lags": "lags", "--offsets": "offsets"}, "--lags and --offsets both tell lags; give one of them"),
        ({"--conf": "spark.executor.memory"}, "--conf is 'spark.executor.memory'; give NAME=VALUE"),
        ({"--master": "spark://127.0.0.1:1"}, "there is a Spark session already"),
    ],
)
def test_what_the_command_refuses(spark: SparkSession, tmp_path: Path, changes: dict[str, str], message: str) -> None:
    paths = fleet(spark, tmp_path)
    given = {"--events": "events", "--topics": "topics", "--out": str(tmp_path / "out"), **changes}
    arguments = [part for name, value in given.items() for part in (name, paths.get(value, value))]
    done = CliRunner().invoke(app, ["replay", *arguments])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"kafka-assignors: {message}")
    assert done.stderr.count("\n") == 1
