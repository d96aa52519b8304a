"""The decoder of `__consumer_offsets`, through its binding: without Spark on two threads, and in Spark on two cores."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import offsets_records
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import Interleaved, Ratio, check_bounds, measured, rounds_of

from kafka_assignors import _core
from kafka_assignors.spark.decoding import decode, decode_wide, hand_over_by_count, records_of
from kafka_assignors.spark.session import session

pytestmark = pytest.mark.timeout(1_800)

COMMITS, GROUPS = "offset commits", "group metadata"
CASES = {COMMITS, GROUPS}
# The least rates on two cores: offset commits, and bytes of group metadata.
COMMITS_A_SECOND, BYTES_A_SECOND = 1.5e6, 200e6
FILES = 8

check_bounds("capture-binding", CASES)
check_bounds("capture-spark", CASES)

# Spark's workers cannot import modules of this folder.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return {COMMITS: offsets_records.commits(400_000), GROUPS: offsets_records.groups(1_500)}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf: dict[str, Any] = {"spark.driver.memory": "3g", "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    made = session("local[2]", **conf)
    hand_over_by_count(made)
    yield made
    made.stop()


def wanted(name: str, table: pa.Table) -> tuple[float, str]:
    """The most seconds for these rows at the least rates, and a note for the table."""
    if name == COMMITS:
        return table.num_rows / COMMITS_A_SECOND, "M commits/s against 1.5"
    return offsets_records.size(table) / BYTES_A_SECOND, "MB/s against 200"


def pace(name: str, table: pa.Table, times: int, seconds: float) -> float:
    amount = table.num_rows if name == COMMITS else offsets_records.size(table)
    return times * amount / seconds / 1e6


@pytest.mark.quick
@pytest.mark.parametrize("name", [COMMITS, GROUPS])
def test_the_binding(name: str, tables: dict[str, pa.Table], benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """Two threads at once, which is faster than one only if the decoder releases the interpreter lock."""
    table = tables[name]
    batches = table.combine_chunks().to_batches(max_chunksize=10_000 if name == COMMITS else 500)
    decoder = _core.OffsetsTopic({}, False, False)

    def run(part: list[Any]) -> int:
        return sum(found.num_rows for batch in part for found in decoder.decode(pa.Table.from_batches([batch])))

    assert sum(run([batch]) for batch in batches) == table.num_rows
    with ThreadPoolExecutor(2) as pool:
        parts = [batches[::2], batches[1::2]]
        rounds_of(benchmark, lambda: list(pool.map(run, parts)), 5, warm=True)
    seconds = measured(benchmark).min
    bound, unit = wanted(name, table)
    ratio.at_most("capture-binding", name, seconds, bound, f"{pace(name, table, 1, seconds):,.1f} {unit}")


def consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


@pytest.mark.parametrize("name", [COMMITS, GROUPS])
def test_in_spark(
    name: str,
    tables: dict[str, pa.Table],
    spark: SparkSession,
    tmp_path: Path,
    interleaved: Interleaved,
    ratio: Ratio,
) -> None:
    """From Parquet to the rows of all tables, beside a kernel that returns the records unchanged."""
    table = tables[name]
    # Two partitions: `capture` coalesces those of the topic to the number of cores.
    records = spark.read.parquet(offsets_records.write(table, tmp_path / "records", FILES)).coalesce(2)
    if name == COMMITS:
        assert decode(records, cluster="c")["offset_commits"].count() == FILES * table.num_rows
    else:
        events = decode(records, cluster="c")["membership_events"]
        assert events.where("size(claimed) = 1").count() == FILES * table.num_rows * offsets_records.MEMBERS
    passed = records_of(records)
    schema = passed.schema

    def ours() -> None:
        consume(decode_wide(records))

    def empty() -> None:
        consume(passed.mapInArrow(lambda batches: batches, schema))

    for _ in range(2):
        ours()
        empty()
    seconds, floor = interleaved(ours, empty, 5)
    paces = [f"{pace(name, table, FILES, each):,.1f}" for each in (seconds, floor)]
    unit = "M commits/s" if name == COMMITS else "MB/s"
    note = f"{paces[0]} {unit}; records handed back as they are {paces[1]}"
    ratio.at_most("capture-spark", name, seconds, floor, note)
