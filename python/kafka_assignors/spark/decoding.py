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

__all__ = ["DECODED", "decode", "decode_wide", "hand_over_by_count", "records_of", "tables_of"]

# The records of a batch. Even if each has the largest default size (`message.max.bytes`, 1 MiB), the batch fits in a
# buffer of 1 GiB, the largest size to which Arrow's Java doubles a buffer.
_RECORDS = 1_000
# Batches are joined up to this number of rows, or of bytes, for one call of the core: a call costs much for each batch,
# because the rows have many columns, and little for each row. A batch with more bytes is not joined, since joining
# copies it.
_GATHERED_ROWS, _GATHERED_BYTES = 50_000, 16 << 20

# The columns of the core's answer, in the order of its schema (`_core.OffsetsTopic`). Most records are commits: their
# columns come first, and all other columns are in a list with one struct, which is null for commits.
_WIDE = (
    "table tinyint not null, src_partition int, src_offset bigint, row int not null, ts bigint, group_id string, "
    "topic string, topic_id string, partition int, committed bigint, leader_epoch int"
)
_REST = {
    "kind": "string",
    "member_id": "string",
    "generation": "int",
    "partitions": "array<int>",
    "protocol": "string",
    "instance_id": "string",
    "rack": "string",
    "topics": "array<string>",
    "topic_regex": "string",
    "claimed_generation": "int",
    "claimed": "array<struct<topic: string, partitions: array<int>>>",
    "client_id": "string",
    "client_host": "string",
    "detail": "string",
    "record_kind": "int",
    "key": "binary",
    "value": "binary",
}
# Columns that are null, and left out, by default.
_CLIENTS, _BYTES = {"client_id", "client_host"}, {"key", "value"}

# Tables with their columns, in the order of the numbers in the column `table`. `kind:record_kind` is the column `kind`,
# from the column `record_kind` of the wide row.
_SOURCE = "src_partition src_offset row"
DECODED: dict[str, tuple[str, ...]] = {
    "membership_events": tuple(
        "cluster group_id seq:src_offset ts kind member_id instance_id rack topics generation protocol topic_regex "
        f"claimed_generation claimed client_id client_host {_SOURCE}".split()
    ),
    "observed_assignments": tuple(
        f"cluster group_id generation member_id topic partitions ts source:kind topic_id {_SOURCE}".split()
    ),
    "offset_commits": tuple(f"cluster group_id ts topic partition committed leader_epoch topic_id {_SOURCE}".split()),
    "topic_matches": tuple(f"cluster group_id ts topic_regex topics {_SOURCE}".split()),
    "rejected_records": tuple(
        f"cluster ts kind:record_kind reason:kind group_id member_id detail key value {_SOURCE}".split()
    ),
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
    next epoch in the log of the group, or null if that is not in the same Arrow batch.

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
    """As `decode`, all tables in one, with the table's number in the column `table`.

    It has the columns of commits, and a column `rest`: a list with one struct of the other tables' columns, null for
    commits. The columns that `clients` and `keep_bytes` fill are missing if these options are false.

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
        for batch in _gathered(batches):
            yield from decoder.decode(batch)

    left_out = (set() if clients else _CLIENTS) | (set() if keep_bytes else _BYTES)
    rest = ", ".join(f"{name}: {kind}" for name, kind in _REST.items() if name not in left_out)
    return records_of(records).mapInArrow(decode_batches, _output(f"{_WIDE}, rest array<struct<{rest}>>"))


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
    """The same rows in the same order, in fewer batches."""
    import pyarrow

    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        if waiting and size + batch.nbytes > _GATHERED_BYTES:
            yield pyarrow.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        if batch.nbytes >= _GATHERED_BYTES:
            yield batch
            continue
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GATHERED_ROWS:
            yield pyarrow.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pyarrow.concat_batches(waiting)


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
    from pyspark.sql.functions import col, lit

    if not isinstance(cluster, str):
        raise OptionError(f"cluster is of type {type(cluster).__name__}; give a name")

    there = set(wide.select(col("rest")[0].alias("rest")).select("rest.*").columns)

    def column(text: str) -> Column:
        name, _, source = text.partition(":")
        source = source or name
        if name == "cluster":
            return lit(cluster).alias(name)
        if source not in _REST:
            return col(source).alias(name)
        value = col("rest")[0][source] if source in there else lit(None).cast(_REST[source])
        return value.alias(name)

    return {
        name: wide.where(col("table") == number).select([column(text) for text in columns])
        for number, (name, columns) in enumerate(DECODED.items())
    }
