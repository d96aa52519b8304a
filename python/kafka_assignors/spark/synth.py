"""The tables of a made-up fleet, from a seed, on Spark.

The rows of a table are made in workers, as Arrow columns: arrays of numbers are copied as a whole, and the observed
plans come from the core, which replays the histories of many groups in one call.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kafka_assignors import _core
from kafka_assignors.spark import schemas
from kafka_assignors.spark.fleet import START, FleetOptions, SynthGroup, pool_size, pool_topic
from kafka_assignors.spark.replay import history_schema
from kafka_assignors.spark.strategies import kernel_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "synth"]

TABLES = ("membership_events", "topic_partitions", "offset_snapshots", "observed_assignments")
"""The tables of a fleet."""

# The rows of a batch; a batch of offsets is then about a megabyte.
_ROWS = 16_384
# The events of one call of the core. Each call starts a thread, and at most one finished batch of plans waits in it.
_EVENTS = 8_192

# The values of a column: one for each row, or one for all rows.
_Values: TypeAlias = "list[Any] | np.ndarray[Any, Any] | str | int"
_Made: TypeAlias = "tuple[int, Mapping[str, _Values]]"


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
        seed: of the random numbers: an equal seed makes an equal fleet.
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
    make = _planned_in_batches if name == "observed_assignments" else partial(_rows_in_batches, rows=_MAKERS[name])
    return numbers.mapInArrow(partial(make, options=options, schema=to_arrow_schema(schema)), schema)


def _numbers(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[int]:
    return chain.from_iterable(batch.column(0).to_pylist() for batch in batches)


def _rows_in_batches(
    numbers: Iterable[pyarrow.RecordBatch],
    *,
    options: FleetOptions,
    rows: Callable[[FleetOptions, int], Iterator[_Made]],
    schema: pyarrow.Schema,
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of the groups with these numbers, in batches of about the same size; missing columns are null."""
    counts: list[int] = []
    parts: dict[str, list[_Values]] = {}
    total = 0
    for number in _numbers(numbers):
        for count, columns in rows(options, number):
            counts.append(count)
            total += count
            for name, values in columns.items():
                parts.setdefault(name, []).append(values)
        if total >= _ROWS:
            yield _batch(schema, options.cluster, counts, parts)
            counts, parts, total = [], {}, 0
    if counts:
        yield _batch(schema, options.cluster, counts, parts)


def _batch(
    schema: pyarrow.Schema, cluster: str, counts: Sequence[int], parts: Mapping[str, Sequence[_Values]]
) -> pyarrow.RecordBatch:
    import pyarrow

    total = sum(counts)

    def column(field: pyarrow.Field) -> pyarrow.Array:
        given = parts.get(field.name)
        if given is None:
            return pyarrow.repeat(cluster, total) if field.name == "cluster" else pyarrow.nulls(total, field.type)
        if isinstance(given[0], np.ndarray):
            values = np.concatenate(given)
            # -1 stands for a missing commit, which is null in the table.
            return pyarrow.array(values, field.type, mask=values < 0 if field.name == "committed" else None)
        if isinstance(given[0], list):
            return pyarrow.array(list(chain.from_iterable(given)), field.type)  # type: ignore[arg-type]
        return pyarrow.array(given, field.type).take(np.repeat(np.arange(len(counts)), counts))

    return pyarrow.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def _membership_events(options: FleetOptions, number: int) -> Iterator[_Made]:
    group = SynthGroup(options, number)
    seq, ts, kind, member_id, instance_id, rack, topics = map(list, zip(*group.events, strict=True))
    yield (
        len(seq),
        {
            "group_id": group.group_id,
            "seq": seq,
            "ts": ts,
            "kind": kind,
            "member_id": member_id,
            "instance_id": instance_id,
            "rack": rack,
            "topics": topics,
            "generation": seq,
            "protocol": group.strategy,
        },
    )


def _topic_partitions(options: FleetOptions, number: int) -> Iterator[_Made]:
    topics = list(SynthGroup(options, number).own_topics)
    if number < pool_size(options.groups):
        topics.append(pool_topic(options, number))
    for topic in topics:
        since, counts = map(list, zip(*topic.counts, strict=True))
        yield len(since), {"topic": topic.name, "ts": since, "partition_count": counts}


def _offset_snapshots(options: FleetOptions, number: int) -> Iterator[_Made]:
    group = SynthGroup(options, number)
    for found in group.offsets():
        count = len(found.end)
        yield (
            count,
            {
                "group_id": group.group_id,
                "ts": found.ts,
                "topic": found.topic,
                "partition": np.arange(count),
                "begin": found.begin,
                "end": found.end,
                "committed": found.committed,
            },
        )


_MAKERS = {
    "membership_events": _membership_events,
    "topic_partitions": _topic_partitions,
    "offset_snapshots": _offset_snapshots,
}


# ---- plans -----------------------------------------------------------------------------------------------------------


def _planned_in_batches(
    numbers: Iterable[pyarrow.RecordBatch], *, options: FleetOptions, schema: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of `SynthGroup.observed` of the groups with these numbers, planned by the core."""
    waiting: dict[str, list[SynthGroup]] = {}
    events: dict[str, int] = {}
    for number in _numbers(numbers):
        group = SynthGroup(options, number)
        waiting.setdefault(group.strategy, []).append(group)
        events[group.strategy] = events.get(group.strategy, 0) + len(group.events)
        if events[group.strategy] >= _EVENTS:
            yield from _planned(waiting.pop(group.strategy), schema)
            events[group.strategy] = 0
    for groups in waiting.values():
        yield from _planned(groups, schema)


def _planned(groups: Sequence[SynthGroup], schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """The plans of groups of one strategy."""
    import pyarrow

    kernel = _core.Replay(kernel_options([groups[0].strategy]))
    for found in kernel.assignments(_histories(groups), counts_wait=True):
        given = {name: found.column(name) for name in ("cluster", "group_id", "member_id", "topic", "partitions", "ts")}
        # The generation of a rebalance is its number.
        given["generation"] = found.column("seq").cast(pyarrow.int32())
        given["source"] = pyarrow.repeat("classic", found.num_rows)
        columns = [given.get(field.name, pyarrow.nulls(found.num_rows, field.type)) for field in schema]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _histories(groups: Sequence[SynthGroup]) -> pyarrow.RecordBatch:
    """A row for each group, as the core takes them."""
    import pyarrow

    schema = history_schema()

    def lists(name: str, rows: Sequence[Sequence[Sequence[Any]]]) -> pyarrow.Array:
        """A list of structs for each row, from the structs' values."""
        kind = schema.field(name).type
        ends = pyarrow.array(np.cumsum([0, *map(len, rows)]), pyarrow.int32())
        columns = list(zip(*chain.from_iterable(rows), strict=True)) or [() for _ in kind.value_type]
        fields = list(kind.value_type)
        values = [pyarrow.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
        return pyarrow.ListArray.from_arrays(ends, pyarrow.StructArray.from_arrays(values, fields=fields), type=kind)

    counts = [[(ts, topic.name, count) for topic in group.topics for ts, count in topic.counts] for group in groups]
    arrays = {
        "cluster": pyarrow.repeat(groups[0].options.cluster, len(groups)),
        "group_id": pyarrow.array([group.group_id for group in groups]),
        "events": lists("events", [list(_lives(group)) for group in groups]),
        "counts": lists("counts", counts),
        "lags": lists("lags", [[]] * len(groups)),
        "observed": lists("observed", [[]] * len(groups)),
    }
    return pyarrow.RecordBatch.from_arrays([arrays[field.name] for field in schema], schema=schema)


def _lives(group: SynthGroup) -> Iterator[tuple[Any, ...]]:
    """The events, with another instance id for a static member that left and comes back.

    With the same instance id it would be the same member to the core, which would give it its former partitions if the
    group was empty meanwhile. A real member that joins again after it left owns no partitions.
    """
    lives: dict[str, int] = {}
    for event in group.events:
        instance_id = event.instance_id
        if instance_id is not None:
            life = lives.get(instance_id, 0)
            lives[instance_id] = life + (event.kind == "leave")
            instance_id = f"{instance_id}/{life}"
        yield event.seq, event.ts, event.kind, event.member_id, instance_id, event.topics, None
