"""The Spark pipeline: its session, the jars of Spark's Kafka connector, and `partition_for` for Spark's Kafka sink.

The steps are modules of their own, such as `kafka_assignors.spark.replay`; docs/spark.md shows how they go together.
Importing this package imports neither pyspark nor pyarrow.
"""

from kafka_assignors.spark.connector import connector_jars
from kafka_assignors.spark.partition import partition_for

# The function has the name of its module, and hides it: `kafka_assignors.spark.session` is the function.
from kafka_assignors.spark.session import session

__all__ = ["connector_jars", "partition_for", "session"]
