"""The lag of groups over time: their commits, joined with the first and last offsets of the topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError
from kafka_assignors.spark.schemas import checked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["lags", "offset_snapshots", "partition_lag"]


def offset_snapshots(commits: DataFrame, offsets: DataFrame, events: DataFrame | None = None) -> DataFrame:
    """The commits of each group at the time of each snapshot, by partition. One shuffle.

    A group has a row for each partition of a topic after its first commit there, and, with `events`, of each topic that
    its members subscribe to. A row without a commit is a partition that the group has not begun to read.

    Args:
        commits: the table `offset_commits`. The last commit of a partition before the snapshot counts; a tombstone
            removes it.
        offsets: the table `offsets`, of `snapshot`.
        events: the table `membership_events`.

    Returns:
        The table `offset_snapshots`: a row for each group, partition and snapshot; `begin` and `end` are null where the
        partition had no leader, `committed` is null without a commit.

    Raises:
        TableError: columns are missing or have another type.
        MissingDependencyError: PySpark is not installed.
    """
    commits, offsets = checked(commits, "offset_commits"), checked(offsets, "offsets")
    from pyspark.sql import Window
    from pyspark.sql.functions import coalesce, col, explode, last, lit, min, struct

    topic = ["cluster", "topic"]
    followed = commits.groupBy("cluster", "group_id", "topic").agg(min("ts").alias("since"))
    if events is not None:
        named = checked(events, "membership_events").select(
            "cluster", "group_id", "ts", explode("topics").alias("topic")
        )
        subscribed = named.groupBy("cluster", "group_id", "topic").agg(min("ts").alias("since"))
        followed = (
            followed.unionByName(subscribed).groupBy("cluster", "group_id", "topic").agg(min("since").alias("since"))
        )
    asked = offsets.join(followed, topic).where(col("ts") >= col("since"))
    key = ["cluster", "group_id", "topic", "partition"]
    nothing = lit(None).cast("bigint")
    # A commit at the time of the snapshot counts. Of several commits at one time, the last one in the log counts.
    timeline = commits.select(
        *key,
        "ts",
        lit(0).alias("asked"),
        coalesce("src_offset", lit(0)).alias("at"),
        struct("committed").alias("commit"),
        nothing.alias("begin"),
        nothing.alias("end"),
    ).unionByName(
        asked.select(
            *key,
            "ts",
            lit(1).alias("asked"),
            lit(0).cast("bigint").alias("at"),
            lit(None).cast("struct<committed: bigint>").alias("commit"),
            "begin",
            "end",
        )
    )
    order = Window.partitionBy(*key).orderBy("ts", "asked", "at").rowsBetween(Window.unboundedPreceding, 0)
    found = timeline.withColumn("known", last("commit", ignorenulls=True).over(order)).where(col("asked") == 1)
    return found.select(
        "cluster", "group_id", "ts", "topic", "partition", "begin", "end", col("known.committed").alias("committed")
    )


def partition_lag(begin: Column, end: Column, committed: Column, reset: str = "latest") -> Column:
    """`kafka_assignors.lag.partition_lag` as a column; a null or negative commit counts as none.

    Raises:
        OptionError: `reset` is not a text.
    """
    from pyspark.sql.functions import coalesce, greatest, lit, when

    _check_reset(reset)
    zero = lit(0).cast("bigint")
    first, last = coalesce(begin, zero), coalesce(end, zero)
    position = when(committed >= 0, committed).otherwise(last if reset.lower() == "latest" else first)
    return greatest(zero, last - position)


def lags(snapshots: DataFrame, reset: str = "latest") -> DataFrame:
    """The lag of each partition in each snapshot (KAFKA-5337).

    Args:
        snapshots: the table `offset_snapshots`.
        reset: the groups' `auto_offset_reset`. For a partition without a commit, `"latest"` gives no lag, any other
            value the lag of the whole partition.

    Returns:
        The table `lags`, with the additional columns begin, end and committed.

    Raises:
        TableError: columns are missing or have another type.
        OptionError: `reset` is not a text.
        MissingDependencyError: PySpark is not installed.
    """
    _check_reset(reset)
    snapshots = checked(snapshots, "offset_snapshots")
    from pyspark.sql.functions import col

    lag = partition_lag(col("begin"), col("end"), col("committed"), reset)
    return snapshots.withColumn("lag", lag)


def _check_reset(reset: object) -> None:
    if not isinstance(reset, str):
        raise OptionError(f"reset is {reset!r}; give the groups' auto_offset_reset, 'latest' or 'earliest'")
