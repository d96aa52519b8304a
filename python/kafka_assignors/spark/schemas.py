"""The tables of the pipeline: their columns, and the check of a table that every function makes.

A table is any DataFrame with these columns, in any order. An optional column may be missing, and then counts as null;
other columns are ignored. In Parquet a table is a folder of its name.

>>> [column.name for column in TABLES["topic_partitions"]]
['cluster', 'topic', 'ts', 'partition_count']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from kafka_assignors.errors import MissingDependencyError, TableError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["SUMMED", "TABLES", "TableColumn", "checked", "schema"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table.

    Attributes:
        name: its name.
        type: its type in Spark's SQL. A narrower integer is accepted too.
        optional: whether it may be missing.
    """

    name: str
    type: str
    optional: bool = False


def _columns(text: str) -> tuple[TableColumn, ...]:
    """Reads `name type, name? type`: the question mark marks an optional column."""
    pairs = [line.split() for line in text.split(", ")]
    return tuple(TableColumn(name.rstrip("?"), kind, name.endswith("?")) for name, kind in pairs)


_SOURCE = "src_partition? int, src_offset? bigint, row? int"
SUMMED = ("moved", "moved_needed", "balance_score", "copartition_violations", "kernel_ns", "ownerless_ms")
"""The columns of `rebalances` that the summaries add up."""


def _summary(keys: str, counts: str) -> tuple[TableColumn, ...]:
    figures = [f"{name}_total bigint, {name}_p50 double, {name}_p95 double, {name}_max bigint" for name in SUMMED]
    skew = "lag_skew_p50 double, lag_skew_p95 double, lag_skew_max double"
    loads = "load_ratio_mean? double, load_ratio_max? double"
    return _columns(
        f"{keys}, rebalances bigint, errors bigint, share_moved double, unassigned_total bigint, "
        f"share_unassigned double, {', '.join(figures)}, {skew}, {loads}, {counts}"
    )


TABLES: dict[str, tuple[TableColumn, ...]] = {
    # Events of members. Those of one seq are one rebalance; kind is join, leave, subscribe or snapshot.
    "membership_events": _columns(
        "cluster string, group_id string, seq bigint, ts bigint, kind string, member_id string, instance_id? string, "
        "rack? string, topics array<string>, generation? int, protocol? string, topic_regex? string, "
        "claimed_generation? int, claimed? array<struct<topic:string,partitions:array<int>>>, client_id? string, "
        f"client_host? string, {_SOURCE}"
    ),
    # The partition count of a topic from ts on.
    "topic_partitions": _columns("cluster string, topic string, ts bigint, partition_count int"),
    # The first and last offsets of partitions at ts; null if the partition had no leader.
    "offsets": _columns("cluster string, topic string, partition int, ts bigint, begin bigint, end bigint"),
    # The same with the group's commit at ts; committed is null without one.
    "offset_snapshots": _columns(
        "cluster string, group_id string, ts bigint, topic string, partition int, begin bigint, end bigint, "
        "committed bigint"
    ),
    # The lag of a group on a partition from ts on, in records.
    "lags": _columns("cluster string, group_id string, ts bigint, topic string, partition int, lag bigint"),
    # The partitions of members in a generation; source is classic, or for KIP-848 target, current, pending_revocation.
    "observed_assignments": _columns(
        "cluster string, group_id string, generation int, member_id string, topic string, partitions array<int>, "
        f"ts? bigint, source? string, topic_id? string, {_SOURCE}"
    ),
    # The commits of groups; committed is null for a tombstone.
    "offset_commits": _columns(
        "cluster string, group_id string, ts bigint, topic string, partition int, committed bigint, leader_epoch? int, "
        f"topic_id? string, {_SOURCE}"
    ),
    # The topics that match regular expressions of members of KIP-848 groups.
    "topic_matches": _columns(
        f"cluster string, group_id string, ts bigint, topic_regex string, topics array<string>, {_SOURCE}"
    ),
    # Records of __consumer_offsets, or parts of them, that cannot be used, each with the reason.
    "rejected_records": _columns(
        "cluster string, ts bigint, kind int, reason string, group_id? string, member_id? string, detail? string, "
        "key? binary, value? binary, src_partition int, src_offset bigint, row? int"
    ),
    # A row for each rebalance and strategy; strategy "observed" is the group's real assignment. Only weighted
    # strategies have loads.
    "rebalances": _columns(
        "cluster string, group_id string, strategy string, seq bigint, ts bigint, generation int, cause string, "
        "members int, partitions int, assigned int, min_count int, max_count int, balance_score bigint, moved bigint, "
        "moved_needed bigint, max_lag bigint, mean_lag double, lag_skew double, worst_load? double, "
        "load_bound? double, copartition_violations int, kernel_ns bigint, error string, ownerless_ms? bigint"
    ),
    # The partitions of each member after a rebalance of `rebalances`.
    "assignments": _columns(
        "cluster string, group_id string, strategy string, seq bigint, ts bigint, generation int, member_id string, "
        "topic string, partitions array<int>"
    ),
    # What an autoscaler would have done: a row for each group, policy, strategy and membership.
    "autoscale": _columns(
        "cluster string, group_id string, policy string, strategy string, membership string, since bigint, "
        "until bigint, partitions int, rate double, member_hours double, scalings int, least_replicas int, "
        "most_replicas int, rebalances int, moves bigint, unowned_s double, empty_s double, late bigint, "
        "records bigint, unread bigint, most_lag bigint, replicas array<struct<ts:bigint,replicas:int>>, "
        "lag array<struct<ts:bigint,lag:bigint>>, notes array<string>, error string"
    ),
    # `rebalances` by group and strategy; best marks one strategy of each group.
    "group_summary": _summary("cluster string, group_id string, strategy string", "best boolean"),
    # `rebalances` by strategy; best_groups are the groups in which it is the best.
    "strategy_summary": _summary("strategy string", "groups bigint, best_groups bigint"),
}

# Narrower first.
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def schema(name: str) -> StructType:
    """The schema of a table, all columns nullable.

    Args:
        name: a key of `TABLES`.

    Raises:
        MissingDependencyError: PySpark is not installed.
    """
    try:
        from pyspark.sql.types import StructType
    except ImportError as error:
        raise needs_pyspark() from error
    columns = ", ".join(f"`{column.name}` {column.type}" for column in TABLES[name])
    return cast("StructType", StructType.fromDDL(columns))


def checked(frame: DataFrame, name: str) -> DataFrame:
    """The columns of a table, in its order and of its types.

    Args:
        frame: the DataFrame. Other columns are ignored, missing optional columns become null, and narrower integers
            become wider.
        name: a key of `TABLES`.

    Raises:
        TableError: columns are missing or have another type; the message names all of them.
        MissingDependencyError: PySpark is not installed.
    """
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.functions import col, lit
    except ImportError as error:
        raise needs_pyspark() from error
    if not isinstance(frame, DataFrame):
        raise TableError(f"{name} is of type {type(frame).__name__}; give a DataFrame")
    found: dict[str, DataType] = {field.name: field.dataType for field in frame.schema.fields}
    wanted = schema(name)
    chosen: list[Column] = []
    missing: list[str] = []
    wrong: list[str] = []
    for column, field in zip(TABLES[name], wanted.fields, strict=True):
        kind = found.get(column.name)
        if kind is None:
            chosen.append(lit(None).cast(field.dataType).alias(column.name))
            if not column.optional:
                missing.append(f"{column.name} {column.type}")
        elif _fits(kind, field.dataType):
            chosen.append(col(f"`{column.name}`").cast(field.dataType).alias(column.name))
        else:
            wrong.append(f"{column.name} is {kind.simpleString()}, not {column.type}")
    problems = [f"has no column {text}" for text in missing] + wrong
    if problems:
        raise TableError(f"{name}: {'; '.join(problems)}. Select, rename or cast columns so that it has them")
    return frame.select(chosen)


def _fits(found: DataType, wanted: DataType) -> bool:
    """Whether all values of one type are values of the other."""
    from pyspark.sql.types import ArrayType

    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(found.elementType, wanted.elementType)
    names = found.simpleString(), wanted.simpleString()
    # The type of a column of nulls.
    if names[0] == "void":
        return True
    if names[0] in _INTEGERS and names[1] in _INTEGERS:
        return _INTEGERS.index(names[0]) <= _INTEGERS.index(names[1])
    return names[0] == names[1]


def needs_pyspark() -> MissingDependencyError:
    """The error of a function that needs PySpark."""
    return MissingDependencyError(
        "kafka_assignors.spark needs PySpark 4.1 or newer, pandas and pyarrow: pip install kafka-assignors[spark]"
    )
