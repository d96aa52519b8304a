"""The partition of a key as a column of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import MissingDependencyError, PartitionerTypeError, StateError
from kafka_assignors.key_hash import check_hash, checked_count, partitions_of_column

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["partition_for"]


def partition_for(keys: Column | str, partitions: int, *, hash: str = "murmur2") -> Column:
    """The partition of each key, as Java's producers choose it: an integer column, null for a null key.

    One call per Arrow batch, without a Python object per row. For Spark's Kafka sink, or to group rows as a topic does:

        frame.withColumn("partition", partition_for("key", 12)).write.format("kafka")...

    The workers need this package, and the interpreter that has it: set `PYSPARK_PYTHON`.

    Args:
        keys: a column of binary or string, or its name: the key as the producer's serializer writes it. Strings are
            encoded as UTF-8, as in the sink.
        partitions: how many the topic has, 1 to 2**31 - 1.
        hash: as for `kafka_assignors.key_hash.partitions_of`; by default Java's.

    Raises:
        MissingDependencyError: PySpark 4.1 or newer, or pyarrow, is not installed.
        OptionError: `partitions` is out of range, or `hash` is unknown.
        PartitionerTypeError: `keys` is neither a column nor a name. A column of another type fails the query, with the
            same error on the worker.
        StateError: there is no Spark session yet.
    """
    try:
        import pyarrow
        from pyspark.sql import Column
        from pyspark.sql.functions import col
        from pyspark.sql.pandas.functions import arrow_udf
        from pyspark.sql.types import IntegerType
    except ImportError as error:
        raise MissingDependencyError(
            "kafka_assignors.spark needs PySpark 4.1 or newer and pyarrow: pip install kafka-assignors[spark]"
        ) from error
    count = checked_count(partitions)
    check_hash(hash)
    if not isinstance(keys, (str, Column)):
        raise PartitionerTypeError(f"keys is of type {type(keys).__name__}; give a column, or the name of one")

    def place(batch: Any) -> Any:
        return partitions_of_column(batch, count, hash=hash)

    # PySpark chooses the kind of function by its type hints, and does not evaluate hints that are text.
    place.__annotations__ = {"batch": pyarrow.Array, "return": pyarrow.Array}
    # The stub of `arrow_udf` has no signature without the kind of the function.
    arrow: Any = arrow_udf
    place_batches = arrow(place, IntegerType())
    try:
        column: Column = place_batches(col(keys) if isinstance(keys, str) else keys)
    except AssertionError as error:
        # PySpark fails with an empty assertion.
        raise StateError(
            "there is no Spark session yet; make one first: SparkSession.builder.getOrCreate(), with Java 17 or newer"
        ) from error
    return column
