"""The session, the tables' schemas and the commands, with and without what they need."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import MissingDependencyError, OptionError, StateError
from kafka_assignors.errors import TableError
from kafka_assignors.spark.schemas import TABLES, checked, schema
from kafka_assignors.spark.session import opened, session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]


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
    )
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"PySpark 4.1 or newer.*pip install kafka-assignors\[spark\]"):
            call()


def run(script: str, **environment: str) -> str:
    """The last line of a script's error, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stderr.splitlines()[-1]


def test_without_java_there_is_one_sentence(tmp_path: Path) -> None:
    script = "from kafka_assignors.spark.session import session; session()"
    for environment in ({"PATH": str(tmp_path)}, {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}):
        said = run(script, **environment)
        assert said.startswith("kafka_assignors.errors.MissingDependencyError: Spark needs Java 17 or newer: install")


def test_a_java_that_does_not_start_spark_is_told(tmp_path: Path) -> None:
    """As Java 11 ends."""
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
