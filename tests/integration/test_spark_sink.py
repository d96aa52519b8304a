"""`partition_for` in a real Spark job that writes through Spark's own Kafka sink to a real Kafka."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from kafka.partitioner.default import murmur2 as java_murmur2

from kafka_assignors import MissingDependencyError, OptionError, PartitionerTypeError
from kafka_assignors.clients.topic_keys import read_topic_keys
from kafka_assignors.planner.keys import infer
from kafka_assignors.spark import partition_for
from support.broker import Kafka, unique

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

PARTITIONS = 7


def keys() -> list[bytes | None]:
    chance = random.Random(4)
    return [None, b"", *(chance.randbytes(chance.randrange(1, 41)) for _ in range(500)), None]


def by_java(key: bytes) -> int:
    """Java's rule, computed by kafka-python."""
    hash: int = java_murmur2(key)
    return (hash & 0x7FFFFFFF) % PARTITIONS


@pytest.mark.timeout(900)
def test_the_sink_writes_where_java_would(spark: SparkSession, kafka_broker: Kafka) -> None:
    topic = kafka_broker.create_topic(unique("spark"), PARTITIONS)
    frame = spark.createDataFrame([(key, b"x") for key in keys()], "key binary, value binary")
    placed = frame.withColumn("partition", partition_for("key", PARTITIONS))
    (
        placed.write.format("kafka")
        .option("kafka.bootstrap.servers", kafka_broker.bootstrap_servers)
        .option("topic", topic)
        # Without the column, these producers would follow the order of Spark's rows instead of the key's hash.
        .option("kafka.partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner")
        .save()
    )
    count, records = read_topic_keys({"bootstrap.servers": kafka_broker.bootstrap_servers}, topic)
    found = infer(topic, count, records)
    assert (found.records, found.keyed, found.hashes) == (503, 501, ("murmur2",))
    assert all(partition == by_java(key) for key, partition in records if key is not None)


@pytest.mark.timeout(900)
def test_columns_of_all_kinds(spark: SparkSession) -> None:
    from pyspark.sql.functions import col

    words = ["abc", "", "größe", None]
    frame = spark.createDataFrame(
        [(word, None if word is None else word.encode()) for word in words], "t string, b binary"
    )
    rows = frame.select(
        "t", partition_for("t", PARTITIONS).alias("of_text"), partition_for(col("b"), PARTITIONS).alias("of_bytes")
    ).collect()
    expected = {word: None if word is None else by_java(word.encode()) for word in words}
    assert {row.t: row.of_text for row in rows} == {row.t: row.of_bytes for row in rows} == expected
    schema = frame.select(partition_for("t", PARTITIONS)).schema
    assert schema.fields[0].dataType.simpleString() == "int"


@pytest.mark.timeout(900)
def test_bad_input(spark: SparkSession) -> None:
    from pyspark.errors import PythonException

    with pytest.raises(OptionError, match="partitions is 0; give 1 to 2147483647"):
        partition_for("key", 0)
    with pytest.raises(OptionError, match="hash is 'md5'; give one of"):
        partition_for("key", 1, hash="md5")
    wrong: Any = 5
    with pytest.raises(PartitionerTypeError, match="keys is of type int; give a column, or the name of one"):
        partition_for(wrong, 1)
    with pytest.raises(PythonException, match="keys has type Int64; give the serialized keys"):
        spark.range(3).select(partition_for("id", 1)).collect()


def test_without_a_session_there_is_one_sentence() -> None:
    script = "from kafka_assignors.spark import partition_for; partition_for('key', 12)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False)
    assert done.stderr.splitlines()[-1].startswith(
        "kafka_assignors.errors.StateError: there is no Spark session yet; make"
    )


def test_without_pyspark_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[spark\]"):
        partition_for("key", 1)
