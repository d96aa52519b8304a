"""For PySpark: `partition_for`, the partition that Java's producers choose for a key, for Spark's own Kafka sink.

Spark's sink writes each row to the partition that its column `partition` names, and lets its producer choose where that
is null. Importing this package imports neither pyspark nor pyarrow.
"""

from kafka_assignors.spark.partition import partition_for

__all__ = ["partition_for"]
