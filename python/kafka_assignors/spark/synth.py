"""The tables of a made-up fleet, from a seed, on Spark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_assignors.spark import schemas
from kafka_assignors.spark.fleet import START, FleetOptions, SynthGroup, pool_size, pool_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "synth"]

TABLES = ("membership_events", "topic_partitions", "offset_snapshots", "observed_assignments")
"""The tables of a fleet."""

# The rows of a batch; a batch of offsets is then well below a megabyte.
_ROWS = 8_192

_Columns = dict[str, list[Any]]


def synth(
    spark: SparkSession,
    groups: int,
    seed: int = 0,
    *,
    cluster: str = "synthetic",
    days: float = 7.0,
    events: int = 20,
    snapshots: int = 4,
    start: int = START,
) -> dict[str, DataFrame]:
    """The tables of a made-up fleet of consumer groups, by name: those of `TABLES`.

    Every row depends on the arguments alone, not on the number of tasks or their order. A table is computed when it is
    read, and without the others.

    Groups follow the shapes of `kafka_assignors.spark.fleet`, in heavy-tailed sizes; some share topics, whose partition
    counts grow; lags are skewed by Zipf's law. `observed_assignments` are plans of our own `range`, `roundrobin` or
    `sticky`, whichever the group runs "today".

    Args:
        spark: the session.
        groups: how many groups.
        seed: another seed is another fleet.
        cluster: the name of the cluster.
        days: how long the histories are.
        events: the median number of rebalances of a group.
        snapshots: how many snapshots of offsets a group has.
        start: when the histories begin, in milliseconds since 1970; by default 5 January 2026.

    Returns:
        DataFrames with the columns of `kafka_assignors.spark.schemas`.

    Raises:
        OptionError: a number that is too small, or no name.
    """
    options = FleetOptions(seed, groups, cluster, days, events, snapshots, start)
    # Many small tasks, since the sizes of groups differ much.
    tasks = max(1, min(groups, 4 * spark.sparkContext.defaultParallelism))
    numbers = spark.range(0, groups, 1, tasks)
    return {name: _table(numbers, name, options) for name in TABLES}


def _table(numbers: DataFrame, name: str, options: FleetOptions) -> DataFrame:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = schemas.schema(name)
    make = partial(_rows_in_batches, options=options, rows=_MAKERS[name], schema=to_arrow_schema(schema))
    return numbers.mapInArrow(make, schema)


def _rows_in_batches(
    numbers: Iterable[pyarrow.RecordBatch],
    *,
    options: FleetOptions,
    rows: Callable[[FleetOptions, int], Iterator[_Columns]],
    schema: pyarrow.Schema,
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of the groups with these numbers, in batches of about the same size; missing columns are null."""
    import pyarrow

    gathered: _Columns = {field.name: [] for field in schema}

    def batch() -> pyarrow.RecordBatch:
        arrays = [pyarrow.array(gathered[field.name], field.type) for field in schema]
        for column in gathered.values():
            column.clear()
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    for each in numbers:
        for number in each.column(0).to_pylist():
            for columns in rows(options, number):
                count = len(columns["cluster"])
                for name, column in gathered.items():
                    column.extend(columns.get(name) or [None] * count)
                if len(gathered["cluster"]) >= _ROWS:
                    yield batch()
    if gathered["cluster"]:
        yield batch()


def _membership_events(options: FleetOptions, number: int) -> Iterator[_Columns]:
    group = SynthGroup(options, number)
    seq, ts, kind, member_id, instance_id, rack, topics = zip(*group.events, strict=True)
    count = len(seq)
    yield {
        "cluster": [options.cluster] * count,
        "group_id": [group.group_id] * count,
        "seq": list(seq),
        "ts": list(ts),
        "kind": list(kind),
        "member_id": list(member_id),
        "instance_id": list(instance_id),
        "rack": list(rack),
        "topics": list(topics),
        "generation": list(seq),
        "protocol": [group.strategy] * count,
    }


def _topic_partitions(options: FleetOptions, number: int) -> Iterator[_Columns]:
    topics = list(SynthGroup(options, number).own_topics)
    if number < pool_size(options.groups):
        topics.append(pool_topic(options, number))
    for topic in topics:
        since, counts = zip(*topic.counts, strict=True)
        yield {
            "cluster": [options.cluster] * len(since),
            "topic": [topic.name] * len(since),
            "ts": list(since),
            "partition_count": list(counts),
        }


def _offset_snapshots(options: FleetOptions, number: int) -> Iterator[_Columns]:
    group = SynthGroup(options, number)
    for found in group.offsets():
        count = len(found.end)
        yield {
            "cluster": [options.cluster] * count,
            "group_id": [group.group_id] * count,
            "ts": [found.ts] * count,
            "topic": [found.topic] * count,
            "partition": list(range(count)),
            "begin": found.begin.tolist(),
            "end": found.end.tolist(),
            "committed": [None if commit < 0 else commit for commit in found.committed.tolist()],
        }


def _observed_assignments(options: FleetOptions, number: int) -> Iterator[_Columns]:
    group = SynthGroup(options, number)
    for row in group.observed():
        yield {
            "cluster": [options.cluster],
            "group_id": [group.group_id],
            "generation": [row.generation],
            "ts": [row.ts],
            "source": ["classic"],
            "member_id": [row.member_id],
            "topic": [row.topic],
            "partitions": [row.partitions],
        }


_MAKERS = {
    "membership_events": _membership_events,
    "topic_partitions": _topic_partitions,
    "offset_snapshots": _offset_snapshots,
    "observed_assignments": _observed_assignments,
}
