"""Decodes records of `__consumer_offsets` to tables, with the Rust core on Arrow batches.

No record fails the job: one that cannot be read, or that is not about consumers, becomes a row of `rejected_records`
with the reason. Client ids and hosts may name people and machines, so they are left out by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from kafka_assignors import _core
from kafka_assignors.errors import OptionError, TableError
from kafka_assignors.spark.schemas import needs_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = ["DECODED", "counts_of", "decode", "decode_wide", "hand_over_by_count", "records_of", "tables_of"]

# The records of a batch. Even if each has the largest default size (`message.max.bytes`, 1 MiB), the batch fits in a
# buffer of 1 GiB, the largest size to which Arrow's Java doubles a buffer.
_RECORDS = 1_000
# For one call of the core, batches are gathered up to this number of rows or of bytes: a call costs much for each batch
# that it returns, because the rows have many columns, and little for each row. The core does not copy them.
_GATHERED_ROWS, _GATHERED_BYTES = 50_000, 16 << 20

# The columns of the core's answer, in the order of its schema (`_core.OffsetsTopic`). Most records are commits: their
# columns come first, and all others are in a list with one struct, which is null for commits.
_WIDE = (
    "src_partition int, src_offset bigint, ts bigint, group_id string, topic string, topic_id string, partition int, "
    "committed bigint, leader_epoch int"
)
# The fields of that struct: of the record, and for each other table a list of the record's rows in it.
_RECORD = {"kind": "string", "generation": "int", "protocol": "string"}
_ROWS = {
    "members": {
        "row": "int not null",
        "member_id": "string",
        "instance_id": "string",
        "rack": "string",
        "topics": "array<string> not null",
        "topic_regex": "string",
        "claimed_generation": "int",
        "claimed": "array<struct<topic: string, partitions: array<int>>>",
        "client_id": "string",
        "client_host": "string",
    },
    "assignments": {
        "row": "int not null",
        "source": "string not null",
        "member_id": "string not null",
        "topic": "string",
        "topic_id": "string",
        "partitions": "array<int> not null",
    },
    "matches": {"row": "int not null", "topic_regex": "string not null", "topics": "array<string> not null"},
    "rejected": {
        "row": "int not null",
        "reason": "string not null",
        "member_id": "string",
        "detail": "string not null",
        "record_kind": "int",
        "key": "binary",
        "value": "binary",
    },
}
# Columns that are null, and left out, by default.
_CLIENTS, _BYTES = {"client_id", "client_host"}, {"key", "value"}

# Tables with their columns. `kind:record_kind` is the column `kind`, from the field `record_kind` of the core's answer.
_SOURCE = "src_partition src_offset row"
DECODED: dict[str, tuple[str, ...]] = {
    "membership_events": tuple(
        "cluster group_id seq:src_offset ts kind member_id instance_id rack topics generation protocol topic_regex "
        f"claimed_generation claimed client_id client_host {_SOURCE}".split()
    ),
    "observed_assignments": tuple(
        f"cluster group_id generation member_id topic partitions ts source topic_id {_SOURCE}".split()
    ),
    "offset_commits": tuple(f"cluster group_id ts topic partition committed leader_epoch topic_id {_SOURCE}".split()),
    "topic_matches": tuple(f"cluster group_id ts topic_regex topics {_SOURCE}".split()),
    "rejected_records": tuple(
        f"cluster ts kind:record_kind reason group_id member_id detail key value {_SOURCE}".split()
    ),
}
# The list with the rows of each table; a commit is a row by itself.
_LISTS = {
    "membership_events": "members",
    "observed_assignments": "assignments",
    "topic_matches": "matches",
    "rejected_records": "rejected",
}


def decode(
    records: DataFrame,
    *,
    cluster: str,
    names: Mapping[str, str] | None = None,
    clients: bool = False,
    keep_bytes: bool = False,
) -> dict[str, DataFrame]:
    """The tables of records of `__consumer_offsets`, from a stream's batch or a dump. O(bytes), no shuffle.

    A record of a classic group gives an event `snapshot` for each of its members, with the number of the record
    (`seq`): exactly these are the members in that generation. Records of KIP-848 groups give `join` (also for a new
    subscription of a member) and `leave`. The records of such a group's members and targets have no epoch. They get the
    next epoch in the log of the group, or null if that is not among the records that are decoded together: about
    50,000, or fewer large ones.

    Args:
        records: columns key and value (binary), partition (int), offset (bigint), and timestamp (a timestamp, or a
            bigint of milliseconds since 1970), as in Spark's Kafka source; others are ignored. The records of a
            partition are in order of offsets.
        cluster: the value of the column `cluster`.
        names: topic ids, as Kafka prints them, with the names of the topics. KIP-848 groups name topics by
            their id; for an id without a name the column `topic` is null, and `topic_id` has the id.
        clients: fill `client_id` and `client_host` of `membership_events`.
        keep_bytes: fill `key` and `value` of `rejected_records` for records that cannot be read, so that a later
            version of this package can read them.

    Returns:
        The tables `membership_events`, `observed_assignments`, `offset_commits`, `topic_matches` and
        `rejected_records`. Each decodes all records; for several tables persist `decode_wide`, and give it to
        `tables_of`.

    Raises:
        TableError: columns are missing or have another type.
        OptionError: an id in `names` is no topic id.
        MissingDependencyError: PySpark is not installed.
    """
    return tables_of(decode_wide(records, names=names, clients=clients, keep_bytes=keep_bytes), cluster)


def decode_wide(
    records: DataFrame, *, names: Mapping[str, str] | None = None, clients: bool = False, keep_bytes: bool = False
) -> DataFrame:
    """As `decode`, all tables in one, with a row for each record.

    It has the columns of commits, and a column `rest`: a list with one struct, null for commits. The struct has a list
    of structs for each other table, with the rows that the record gives. Fields that `clients` and `keep_bytes` fill
    are missing if these options are false. A record that gives no row is left out.

    Raises:
        TableError: columns are missing or have another type.
        OptionError: an id in `names` is no topic id.
        MissingDependencyError: PySpark is not installed.
    """
    options = (dict(names or {}), clients, keep_bytes)
    # Checked here, so that the error is raised in the caller and not on a worker.
    _core.OffsetsTopic(*options)

    def decode_batches(batches: Iterable[Any]) -> Iterator[Any]:
        decoder = _core.OffsetsTopic(*options)
        for table in _gathered(batches):
            yield from decoder.decode(table)

    left_out = (set() if clients else _CLIENTS) | (set() if keep_bytes else _BYTES)

    def fields(of: Mapping[str, str]) -> str:
        return ", ".join(f"{name}: {kind}" for name, kind in of.items() if name not in left_out)

    lists = {name: f"array<struct<{fields(of)}>> not null" for name, of in _ROWS.items()}
    columns = f"{_WIDE}, rest array<struct<{fields(_RECORD | lists)}>>"
    return records_of(records).mapInArrow(decode_batches, _output(columns))


def _output(columns: str) -> StructType:
    """The schema of the core's answer. Its lists have no null items: Spark need not check each item."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    def full(kind: DataType) -> DataType:
        if isinstance(kind, ArrayType):
            return ArrayType(full(kind.elementType), containsNull=False)
        if isinstance(kind, StructType):
            return StructType([StructField(each.name, full(each.dataType), each.nullable) for each in kind.fields])
        return kind

    return cast("StructType", full(StructType.fromDDL(columns)))


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """The same batches in the same order, in tables."""
    import pyarrow

    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        # `nbytes` takes 40 times as long.
        rows, size = rows + batch.num_rows, size + batch.get_total_buffer_size()
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield pyarrow.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def hand_over_by_count(spark: SparkSession) -> None:
    """Lets Spark end the batches of records for Python by their number alone, 1,000 each.

    By default Spark adds up the bytes of a batch after every record (`spark.sql.execution.arrow.maxBytesPerBatch`),
    which takes longer than the rest of decoding. 1,000 records of the brokers' default size limit fit in a batch
    anyway. The setting holds for all queries of the session: give a `newSession()`.
    """
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_RECORDS))


def records_of(frame: DataFrame) -> DataFrame:
    """The columns of records for the decoder, the timestamp in milliseconds since 1970.

    Raises:
        TableError: columns are missing or have another type.
        MissingDependencyError: PySpark is not installed.
    """
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.functions import col, unix_millis
    except ImportError as error:
        raise needs_pyspark() from error
    if not isinstance(frame, DataFrame):
        raise TableError(f"records is of type {type(frame).__name__}; give a DataFrame")
    found = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    wanted = {
        "key": ("binary",),
        "value": ("binary",),
        "partition": ("int", "smallint", "tinyint"),
        "offset": ("bigint", "int"),
        "timestamp": ("timestamp", "timestamp_ntz", "bigint"),
    }
    problems = [
        f"has no column {name} {kinds[0]}" if name not in found else f"{name} is {found[name]}, not {kinds[0]}"
        for name, kinds in wanted.items()
        if found.get(name) not in kinds
    ]
    if problems:
        raise TableError(f"records: {'; '.join(problems)}. Select, rename or cast columns so that it has them")
    timestamp = col("timestamp")
    if found["timestamp"] != "bigint":
        timestamp = unix_millis(timestamp.cast("timestamp"))
    return frame.select(
        "key",
        "value",
        col("partition").cast("int").alias("partition"),
        col("offset").cast("bigint").alias("offset"),
        timestamp.alias("timestamp"),
    )


def tables_of(wide: DataFrame, cluster: str) -> dict[str, DataFrame]:
    """The tables in the result of `decode_wide`.

    Raises:
        OptionError: `cluster` is not a text.
    """
    from pyspark.sql.functions import col, explode, lit

    if not isinstance(cluster, str):
        raise OptionError(f"cluster is of type {type(cluster).__name__}; give a name")
    rest = col("rest")[0]

    def table(name: str) -> DataFrame:
        if name not in _LISTS:
            rows, given = wide.where(col("rest").isNull()), {"row": lit(0)}
        else:
            of_record = [rest[field].alias(field) for field in _RECORD]
            rows = wide.select(
                "src_partition", "src_offset", "ts", "group_id", *of_record, explode(rest[_LISTS[name]]).alias("item")
            )
            there = set(rows.select("item.*").columns)
            given = {
                field: col("item")[field] if field in there else lit(None).cast(kind)
                for field, kind in _ROWS[_LISTS[name]].items()
            }

        def column(text: str) -> Column:
            target, _, source = text.partition(":")
            if target == "cluster":
                return lit(cluster).alias(target)
            source = source or target
            return given.get(source, col(source)).alias(target)

        return rows.select([column(text) for text in DECODED[name]])

    return {name: table(name) for name in DECODED}


def counts_of(wide: DataFrame) -> dict[str, int]:
    """The numbers of rows of each table in the result of `decode_wide`."""
    from pyspark.sql.functions import coalesce, col, lit, size, when
    from pyspark.sql.functions import sum as total

    of_commits = col("rest").isNull()
    sizes = {name: when(~of_commits, size(col("rest")[0][of])) for name, of in _LISTS.items()}
    sizes["offset_commits"] = when(of_commits, lit(1))
    (row,) = wide.select([coalesce(total(sizes[name]), lit(0)).alias(name) for name in DECODED]).collect()
    return {name: int(row[name]) for name in DECODED}
