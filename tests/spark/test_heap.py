"""Memory: batches have a limit in bytes, the driver collects little, and a small heap leads to one clear sentence."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import kafka_assignors.spark.replay as replay_module
from kafka_assignors.spark.heap import too_small
from kafka_assignors.spark.schemas import schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-2"), pytest.mark.timeout(900)]


def test_a_batch_of_groups_is_bounded_by_its_bytes(spark: SparkSession) -> None:
    """Forty groups of a megabyte each. By their number, all of them would fit into one batch."""

    def sizes(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            yield pyarrow.record_batch({"bytes": pyarrow.array([batch.nbytes], pyarrow.int64())})

    groups = spark.range(0, 40, 1, 1).selectExpr("id", "repeat('x', 1000000) as history")
    found = [row[0] for row in groups.mapInArrow(sizes, "bytes long").collect()]
    assert sum(found) > 40_000_000
    assert max(found) <= (16 << 20) + 2_000_000


def test_a_task_is_bounded_by_its_bytes_however_large_the_fleet(spark: SparkSession) -> None:
    """The bytes of a shuffle decide the number of its parts, not only the number of cores. Few bytes give few parts."""
    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", str(2 << 20))

    def parts(rows: int) -> int:
        made = own.range(0, rows, 1, 2).selectExpr("id", "sha2(cast(id as string), 256) as history")
        # The column is used afterwards: Spark does not shuffle unused ones.
        placed = made.repartition("id").selectExpr("spark_partition_id() as part", "history")
        return len(placed.groupBy("part").agg({"history": "max"}).collect())

    # About 70 bytes of each row remain after compression.
    assert 5 <= parts(300_000) <= 40
    assert parts(1_000) <= 2


def test_the_driver_collects_a_bounded_number_of_large_groups(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "MOST_LARGE", 3)
    events = spark.range(0, 60, 1, 2).selectExpr(
        *(
            {"cluster": "'c' cluster", "group_id": "concat('g', id % 10) group_id"}.get(
                field.name, f"cast(null as {field.dataType.simpleString()}) {field.name}"
            )
            for field in schema("membership_events").fields
        )
    )
    # Ten groups with six rows each. One of them gets a seventh.
    events = events.unionAll(events.where("group_id = 'g7'").limit(1))
    keys = replay_module._larger_than(5, {"events": events})
    assert keys is not None
    assert [row.group_id for row in keys.collect()] == ["g7", "g0", "g1"]
    assert replay_module._larger_than(7, {"events": events}) is None


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("An error occurred: java.lang.OutOfMemoryError: Java heap space\n\tat a.b.C", "spark.driver.memory"),
        ("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory", "spark.driver.memory"),
        ("[INVALID_DRIVER_MEMORY] System memory 259522560 must be at least 471859200", "spark.driver.memory"),
        ("[INVALID_EXECUTOR_MEMORY] Executor memory 1 must be at least 471859200", "spark.driver.memory"),
    ],
)
def test_an_error_of_memory_names_the_setting(text: str, setting: str) -> None:
    try:
        try:
            raise RuntimeError(text)
        except RuntimeError as cause:
            raise ValueError("the job has failed") from cause
    except ValueError as error:
        said = too_small(error)
    assert said is not None
    assert "\n" not in said
    assert setting in said
    assert f"give more, such as --conf {setting}=4g" in said
    assert too_small(ValueError("another error")) is None


@pytest.mark.needs("spark")
def test_parts_that_are_asked_for_are_those_and_the_memory_is_known_at_the_end(tmp_path: Path) -> None:
    """The message is made after the session has stopped. The JVM may have ended before that."""
    done = ran(
        "from kafka_assignors.spark.heap import too_small\n"
        "from kafka_assignors.spark.session import opened\n"
        "asked = {'spark.driver.memory': '500m', 'spark.sql.shuffle.partitions': 5}\n"
        "with opened('local[1]', **asked) as spark:\n"
        "    plan = spark.range(9).repartition('id')._jdf.queryExecution().executedPlan().toString()\n"
        "    print(plan.split('hashpartitioning(')[1].split(',')[1])\n"
        "print(too_small(RuntimeError('java.lang.OutOfMemoryError: Java heap space')))\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    *_, parts, message = done.stdout.splitlines()
    assert parts.split()[-1].strip(")") == "5"
    assert message == (
        "Spark has too little memory: spark.driver.memory, that of the driver, whose heap does all of the work here, "
        "is 500m; give more, such as --conf spark.driver.memory=4g"
    )


def ran(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=500, check=False
    )


@pytest.mark.needs("spark")
def test_a_heap_that_is_too_small_ends_in_one_sentence(tmp_path: Path) -> None:
    """A JVM of half a gigabyte that needs a gigabyte ends itself. Its own messages fill pages."""
    done = ran(
        "from kafka_assignors.spark.commands import exit_on_error, settings\n"
        "from kafka_assignors.spark.session import opened\n"
        "with exit_on_error():\n"
        "    with opened('local[1]', **settings(['spark.driver.memory=480m'])) as spark:\n"
        "        texts = \"collect_list(concat(id, repeat('x', 100000000)))\"\n"
        "        spark.range(40).selectExpr(f'size({texts})').collect()\n",
        tmp_path,
    )
    told = [line for line in done.stderr.splitlines() if line.startswith("kafka-assignors: ")]
    assert told == [
        "kafka-assignors: Spark has too little memory: spark.driver.memory, that of the driver, whose heap does all of "
        "the work here, is 480m; give more, such as --conf spark.driver.memory=4g"
    ], done.stderr
    # Java's messages on its start come before the sentence, and the trace of the test's own exit status after it.
    assert "OutOfMemoryError" not in done.stderr.split("kafka-assignors: ")[0]
