"""The histories of consumer groups, replayed with assignment strategies.

Spark collects the history of each group in one row. A worker passes batches of such rows to the core through Arrow, and
the core returns rows of figures. Every strategy starts without owners and then continues from its own plans; all
strategies see the same members, partition counts and lags at the same time.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core
from kafka_assignors.errors import OptionError
from kafka_assignors.intervals import Intervals
from kafka_assignors.spark.lag import lags as lags_of
from kafka_assignors.spark.schemas import checked, needs_pyspark, schema
from kafka_assignors.spark.strategies import STRATEGIES, kernel_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.spark.strategies import KernelOptions

__all__ = ["LARGE", "assignments", "replay"]

LARGE = 100_000
"""The default of `large`: a group with more rows in the input tables does not become one row of Spark."""

MOST_LARGE = 1_000
"""The largest number of groups that workers put together (see `large`). Their keys go through the driver."""

_KEY = ("cluster", "group_id")
_INTERVALS = Intervals()
# Each input table becomes a list of such structs in a group's row.
_LISTS = {
    "events": ("seq", "ts", "kind", "member_id", "instance_id", "topics", "generation"),
    "counts": ("ts", "topic", "partition_count"),
    "lags": ("ts", "topic", "partition", "lag"),
    "observed": ("generation", "member_id", "topic", "partitions"),
}
_TABLES = {
    "events": "membership_events",
    "counts": "topic_partitions",
    "lags": "lags",
    "observed": "observed_assignments",
}
MOST_BYTES = 2**31 - 1
"""The most bytes that the offsets of an Arrow list address; a group with a larger history gets an error row."""

# The most events times strategies of one call of the core, which limits the size of its answer.
_CALL = 200_000


def replay(
    events: DataFrame,
    counts: DataFrame,
    *,
    lags: DataFrame | None = None,
    observed: DataFrame | None = None,
    reset: str = "latest",
    strategies: Iterable[str | Assignor] = STRATEGIES,
    tasks: int | None = None,
    large: int | None = LARGE,
    intervals: Intervals = _INTERVALS,
) -> DataFrame:
    """The table `rebalances`: a row for each rebalance of each group, with each strategy.

    Events of one `seq` make one rebalance, and so does a change of the partition count of a topic that a present member
    subscribes to. Order and duplicates of the input do not matter. A fault of an event, such as a member that leaves
    twice or a topic without a known partition count, is in the column `error` of its rebalance, once for all members. A
    rebalance before any partition count of the subscribed topics is known has an `error` and no figures, and counts in
    no total. A group whose history cannot be replayed at all (a null in a required column, a negative partition count,
    more than 1,000,000 partitions at some time) has one row with only its key and `error`. A rebalance that empties the
    group has no row; its partitions keep their former owners, and count as moved when the next member gets them.

    `moved` are the partitions whose former owner, present or not, is not the new one; `moved_needed` are those of them
    that must move for the least possible balance score. `lag_skew` is the largest lag of a member divided by the mean;
    1 is even. `ownerless_ms` is how long partitions are expected to be without an owner, as partitions x milliseconds:
    by the intervals, in the classic protocol, or in the new one for the broker's assignors; null for `observed`.

    The rows, `kernel_ns` aside, do not depend on the number of tasks and the order of the input.

    Args:
        events: the table `membership_events`.
        counts: the table `topic_partitions`. Before its first count a topic has no partitions.
        lags: the table `lags`, or `offset_snapshots`. Without it no partition has a lag, and the strategy `lag` keeps
            owners, as its leader does if the lags are not known.
        observed: the table `observed_assignments`: the real assignments of the groups become a strategy called
            `observed`, for events with a generation.
        reset: for `offset_snapshots`, the groups' `auto_offset_reset`, as for `kafka_assignors.lag.partition_lag`.
        strategies: texts as for `kafka_assignors.strategies.parse_strategy`, such as `"lag(scope=group, max_skew=2)"`,
            or assignors. A `CustomAssignor` is sent to the workers, and receives members without racks and data. If
            it fails, the row has an `error` and the figures of the sticky plan.
        tasks: the number of tasks; None leaves it to Spark.
        large: the number of rows, over all tables, above which a worker puts a group together. Spark would hold the
            group in its heap as one row, up to 2 GiB. To find such groups Spark counts rows once, during this call.
            None: there is no such group, and nothing is counted.
        intervals: of the members' heartbeats, for `ownerless_ms`.

    Raises:
        MissingDependencyError: PySpark is not installed.
        OptionError: a strategy that is unknown, given twice, or has an option that does not count here.
        TableError: a table lacks a column, or has one of another type.

    A worker's memory is bounded by one Arrow batch (`spark.sql.execution.arrow.maxBytesPerBatch`) or by its largest
    group, whichever is more. Time: see `kafka_assignors_core::replay`.
    """
    return _replayed(
        _rebalances, "rebalances", events, counts, lags, observed, reset, strategies, tasks, large, intervals
    )


def assignments(
    events: DataFrame,
    counts: DataFrame,
    *,
    lags: DataFrame | None = None,
    observed: DataFrame | None = None,
    reset: str = "latest",
    strategies: Iterable[str | Assignor] = STRATEGIES,
    tasks: int | None = None,
    large: int | None = LARGE,
) -> DataFrame:
    """The table `assignments`: the partitions of each member after each rebalance, with each strategy.

    Large: groups x rebalances x strategies x members x topics. `seq`, `ts` and `generation` are those of the row of
    `rebalances`. Members without partitions, and groups that cannot be replayed, have no rows. For a cooperative
    strategy it is the assignment after its second rebalance.

    Arguments and errors are those of `replay`.
    """
    return _replayed(_assignments, "assignments", events, counts, lags, observed, reset, strategies, tasks, large)


def _rebalances(kernel: _core.Replay, batch: Any) -> Iterator[Any]:
    yield kernel.run(batch)


def _assignments(kernel: _core.Replay, batch: Any) -> Iterator[Any]:
    yield from kernel.assignments(batch)


def _replayed(
    what: Callable[[_core.Replay, Any], Iterator[Any]],
    table: str,
    events: DataFrame,
    counts: DataFrame,
    lags: DataFrame | None,
    observed: DataFrame | None,
    reset: str,
    strategies: Iterable[str | Assignor],
    tasks: int | None,
    large: int | None,
    intervals: Intervals = _INTERVALS,
) -> DataFrame:
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.functions import collect_list, size
    except ImportError as error:
        raise needs_pyspark() from error
    options = kernel_options(strategies)
    if not isinstance(intervals, Intervals):
        raise OptionError(f"intervals is of type {type(intervals).__name__}; give an Intervals")
    for name, number in (("tasks", tasks), ("large", large)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise OptionError(f"{name} is {number!r}; give a positive integer, or None")
    if lags is not None and isinstance(lags, DataFrame) and "lag" not in lags.columns and "end" in lags.columns:
        lags = lags_of(lags, reset)
    given = {"events": events, "counts": counts, "lags": lags, "observed": observed}
    tables = {name: checked(frame, _TABLES[name]) for name, frame in given.items() if frame is not None}
    if observed is not None:
        # The current and target assignments of a KIP-848 member belong to no generation of the group.
        tables["observed"] = tables["observed"].where("coalesce(source, 'classic') = 'classic'")
    tables["counts"] = _counts_of_groups(tables["events"], tables["counts"])
    rows = reduce(DataFrame.unionAll, [_as_lists(frame, name) for name, frame in tables.items()])
    too_large = None if large is None else _larger_than(large, tables)
    plain = rows if too_large is None else _of_groups(rows, too_large, "left_anti")
    # Rows are distributed first, so that Spark collects them once; else it collects them on both sides of the shuffle.
    dealt = plain.repartition(*_KEY) if tasks is None else plain.repartition(tasks, *_KEY)
    grouped = dealt.groupBy(*_KEY).agg(*(collect_list(name).alias(name) for name in _LISTS))
    # A group that only has lags has no history.
    done = grouped.where(size("events") > 0).mapInArrow(_by_batch(what, options, intervals), schema(table))
    if too_large is None:
        return done
    parts = _of_groups(rows, too_large, "left_semi").groupBy(*_KEY)
    return done.unionAll(parts.applyInArrow(_by_group(what, options, intervals), schema(table)))


def _as_lists(frame: DataFrame, name: str) -> DataFrame:
    """The key, and a column for each list: this table's has a struct, the others are null."""
    from pyspark.sql.functions import lit, struct

    columns = [
        struct(*fields).alias(name) if each == name else lit(None).cast(_struct_type(each)).alias(each)
        for each, fields in _LISTS.items()
    ]
    return frame.select(*_KEY, *columns)


def _struct_type(name: str) -> str:
    """The struct of a list in Spark's SQL."""
    types = {field.name: field.dataType.simpleString() for field in schema(_TABLES[name]).fields}
    return f"struct<{', '.join(f'{field}: {types[field]}' for field in _LISTS[name])}>"


def _counts_of_groups(events: DataFrame, counts: DataFrame) -> DataFrame:
    """The partition counts of the topics that any member of a group ever subscribed to, by group."""
    from pyspark.sql.functions import explode

    subscribed = events.select(*_KEY, explode("topics").alias("topic")).distinct()
    return subscribed.join(counts, ["cluster", "topic"]).select(*_KEY, *_LISTS["counts"])


def _larger_than(rows: int, tables: dict[str, DataFrame]) -> DataFrame | None:
    """The keys of the largest groups with more rows, at most `MOST_LARGE`; None if there is none."""
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import count, desc, lit

    # Partition counts are not counted: they are few, and come from a join.
    keys = reduce(DataFrame.unionAll, [frame.select(*_KEY) for name, frame in tables.items() if name != "counts"])
    counted = keys.groupBy(*_KEY).agg(count(lit(1)).alias("rows")).where(f"rows > {rows}")
    found = counted.orderBy(desc("rows"), *_KEY).limit(MOST_LARGE).select(*_KEY).collect()
    return keys.sparkSession.createDataFrame(found, keys.schema) if found else None


def _of_groups(rows: DataFrame, keys: DataFrame, how: str) -> DataFrame:
    """The rows with one of these keys, or with none of them; null counts as a key."""
    from pyspark.sql.functions import broadcast, col

    named = broadcast(keys.toDF(*(f"large_{name}" for name in _KEY)))
    same = [col(name).eqNullSafe(col(f"large_{name}")) for name in _KEY]
    return rows.join(named, reduce(lambda a, b: a & b, same), how)


def _by_batch(
    what: Callable[[_core.Replay, Any], Iterator[Any]], options: list[KernelOptions], intervals: Intervals = _INTERVALS
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function of a worker for batches of groups' rows."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        kernel = _core.Replay(options, intervals._in_ms())
        wanted = history_schema()
        for batch in batches:
            # With `spark.sql.execution.arrow.useLargeVarTypes` Spark writes strings with 64-bit offsets.
            fitting = batch if batch.schema.equals(wanted) else batch.cast(wanted)
            for part in _parts(fitting, len(options)):
                yield from what(kernel, part)

    return run


def _parts(batch: Any, strategies: int) -> Iterator[Any]:
    """The batch in slices with a bounded number of events, of at least one group each."""
    most = max(1, _CALL // (strategies + 1))
    ends = batch.column("events").offsets.to_pylist()
    start = 0
    while start < batch.num_rows:
        stop = max(bisect_right(ends, ends[start] + most) - 1, start + 1)
        yield batch.slice(start, stop - start)
        start = stop


def _by_group(
    what: Callable[[_core.Replay, Any], Iterator[Any]], options: list[KernelOptions], intervals: Intervals = _INTERVALS
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function of a worker for the rows of one group, which come in batches."""
    import pyarrow

    def run(batches: Any) -> Any:
        kernel = _core.Replay(options, intervals._in_ms())
        key, columns, problem = _one_row(batches)
        row = pyarrow.record_batch([*key, *columns], history_schema())
        if problem is None:
            yield from what(kernel, row)
        elif what is not _assignments:
            failed = kernel.floor(row)
            place = failed.schema.get_field_index("error")
            yield failed.set_column(place, "error", pyarrow.array([problem], pyarrow.string()))

    # PySpark chooses the kind of function by its type hints, and does not evaluate hints that are text.
    from collections.abc import Iterator as Batches

    run.__annotations__ = {"batches": Batches[pyarrow.RecordBatch], "return": Batches[pyarrow.RecordBatch]}
    return run


def _one_row(batches: Iterator[Any]) -> tuple[list[Any], list[Any], str | None]:
    """The row of a group, as Spark would have collected it: key, lists, and an error if it is too large."""
    import pyarrow

    wanted = history_schema()
    key: list[Any] = []
    found: dict[str, list[Any]] = {name: [] for name in _LISTS}
    bytes_ = 0
    for batch in batches:
        key = key or [batch.column(name)[:1].cast(pyarrow.string()) for name in _KEY]
        for name, items in found.items():
            items.append(batch.column(name).drop_null().cast(wanted.field(name).type.value_type))
            bytes_ += items[-1].nbytes
        if bytes_ > MOST_BYTES:
            problem = f"the group's history has more than {MOST_BYTES:,} bytes; replay it in parts, by ts"
            return key, [pyarrow.array([[]], wanted.field(name).type) for name in _LISTS], problem
    columns = []
    for name, items in found.items():
        values = pyarrow.concat_arrays(items)
        ends = pyarrow.array([0, len(values)], pyarrow.int32())
        columns.append(pyarrow.ListArray.from_arrays(ends, values, type=wanted.field(name).type))
    return key, columns, None


def history_schema() -> Any:
    """The Arrow schema of the core's input: a row for each group."""
    import pyarrow

    long, int_, text = pyarrow.int64(), pyarrow.int32(), pyarrow.string()

    def many(of: Any) -> Any:
        return pyarrow.list_(pyarrow.field("element", of))

    types = {
        "seq": long,
        "ts": long,
        "kind": text,
        "member_id": text,
        "instance_id": text,
        "topics": many(text),
        "generation": int_,
        "topic": text,
        "partition_count": int_,
        "partition": int_,
        "lag": long,
        "partitions": many(int_),
    }
    lists = [
        (name, many(pyarrow.struct([(field, types[field]) for field in fields]))) for name, fields in _LISTS.items()
    ]
    return pyarrow.schema([*((name, text) for name in _KEY), *lists])
