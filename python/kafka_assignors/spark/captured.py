"""The tables of a capture, complete batches only, ready for `replay` and `lag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.spark.ledger import Ledger
from kafka_assignors.spark.schemas import TABLES, needs_pyspark, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["captured", "with_matched_topics"]


def captured(spark: SparkSession, path: str, table: str) -> DataFrame:
    """The complete batches of a capture's table; the capture may be running.

    Args:
        spark: the session.
        path: the capture's folder.
        table: `membership_events`, `observed_assignments`, `offset_commits`, `topic_matches` or `rejected_records`.

    Raises:
        TableError: the folder holds no capture.
        MissingDependencyError: PySpark is not installed.
    """
    try:
        from pyspark.sql.functions import col
    except ImportError as error:
        raise needs_pyspark() from error
    ledger = Ledger(spark, path)
    last = ledger.require()
    found = spark.read.schema(schema(table).add("batch_id", "long")).parquet(f"{ledger.path}/{table}")
    return found.where(col("batch_id") <= last).select([column.name for column in TABLES[table]])


def with_matched_topics(events: DataFrame, matches: DataFrame) -> DataFrame:
    """Membership events with topics for the members that subscribe to a regular expression (KIP-848).

    The broker writes the record of the matching topics after the record of the member. Each later record of matching
    topics becomes an event `subscribe` of the member. Other events stay unchanged.

    Args:
        events: `membership_events`.
        matches: `topic_matches`.
    """
    from pyspark.sql import Window
    from pyspark.sql.functions import array_union, coalesce, col, lead, lit, max_by

    group = ("cluster", "group_id", "src_partition")
    columns = events.columns
    until = lead("seq").over(Window.partitionBy(*group, "member_id").orderBy("seq", "row"))
    wanting = events.withColumn("until", until).where(col("topic_regex").isNotNull())
    expressions = matches.select(
        *group,
        "topic_regex",
        col("ts").alias("m_ts"),
        col("topics").alias("m_topics"),
        col("src_offset").alias("m_seq"),
        col("row").alias("m_row"),
    )
    pairs = wanting.join(expressions, [*group, "topic_regex"])
    # The topics that were known when the member joined.
    place = [*group, "seq", "row"]
    known = pairs.where(col("m_seq") < col("seq")).groupBy(*place).agg(max_by("m_topics", "m_seq").alias("known"))
    at_once = (
        events.join(known, place, "left")
        .withColumn("topics", coalesce(array_union("topics", "known"), col("topics")))
        .select(columns)
    )
    # The topics that became known afterwards.
    still = col("until").isNull() | (col("m_seq") < col("until"))
    later = pairs.where((col("m_seq") > col("seq")) & still)
    replaced = {
        "seq": col("m_seq"),
        "ts": col("m_ts"),
        "kind": lit("subscribe"),
        "src_offset": col("m_seq"),
        "row": col("m_row"),
        "topics": array_union("topics", "m_topics"),
    }
    return at_once.unionByName(later.select([replaced.get(name, col(name)).alias(name) for name in columns]))
