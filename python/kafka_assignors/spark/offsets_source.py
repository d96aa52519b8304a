"""`__consumer_offsets` as a stream, with Spark's own Kafka connector, and a description of the topic for checks.

Spark's connector skips internal topics silently unless it reads offsets with consumers, the old method. Therefore the
connector's Kafka client describes the topic first, with the same settings: its partitions, whether they may be read,
and their first and last offsets. The progress of the stream is later compared with this description.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import CaptureError, ConnectorError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

__all__ = ["GROUP_PREFIX", "OFFSETS_TOPIC", "SourceTopic", "check_settings", "look_at", "refusal", "stream"]

OFFSETS_TOPIC = "__consumer_offsets"

# The old method reads offsets as a member of a group of this name. It commits nothing, but needs READ on the group.
GROUP_PREFIX = "kafka-assignors-capture"

# The setting for the old method, which reads offsets with consumers and does not skip internal topics.
DEPRECATED_OFFSETS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
_WANTED = {
    "isolation.level": "read_committed",
    # How long a task at the end of its partition waits for more records; Spark's default is half a second.
    "fetch.max.wait.ms": "10",
    "max.poll.records": "5000",
}
_PROBLEMS = {
    "TopicAuthorizationException": "its user may not read the topic: allow it READ and DESCRIBE on {topic}",
    "GroupAuthorizationException": "its user may not ask for offsets: allow it READ on groups that begin with {group}",
    "ClusterAuthorizationException": "its user may not ask for the cluster: allow it DESCRIBE on the cluster",
    "UnknownTopicOrPartitionException": "there is no topic {topic}; Kafka makes its offsets topic for the first group",
    "SaslAuthenticationException": "it does not accept the credentials: {detail}",
    "SslAuthenticationException": "TLS fails: {detail}",
    "ConfigException": "its settings are refused: {detail}",
    # The last, since a timeout explains least: it is the reason only if the chain of causes has no other.
    "TimeoutException": "no broker answers there in time; see bootstrap.servers, and the settings of security",
}


@dataclass(frozen=True)
class SourceTopic:
    """The description of a topic by its cluster.

    Attributes:
        cluster: the cluster's id.
        name: the topic's name.
        topic_id: its id; a topic that is created again has another one.
        begin: for each partition, the first offset.
        end: for each partition, the offset after the last committed record.
    """

    cluster: str
    name: str
    topic_id: str
    begin: tuple[int, ...]
    end: tuple[int, ...]

    def unread(self, reached: Mapping[str, int]) -> list[int]:
        """The partitions that held records, and whose records a source with these next offsets has not read to the end.

        Args:
            reached: by partition number, as text, the next offset.
        """
        spans = enumerate(zip(self.begin, self.end, strict=True))
        return [number for number, (begin, end) in spans if end > begin and reached.get(str(number), -1) < end]

    def share_read(self, reached: Mapping[str, int]) -> float:
        """The part of the offsets between `begin` and `end` that is before these next offsets; 1 if there are none.

        Args:
            reached: by partition number, as text, the next offset.
        """
        spans = [(max(0, end - begin), begin) for begin, end in zip(self.begin, self.end, strict=True)]
        read = sum(
            min(length, max(0, reached.get(str(number), begin) - begin)) for number, (length, begin) in enumerate(spans)
        )
        return read / total if (total := sum(length for length, _ in spans)) else 1.0


def check_settings(kafka: Mapping[str, Any]) -> dict[str, str]:
    """Checks the settings of a Java client, and returns their values as texts.

    Raises:
        OptionError: `bootstrap.servers` is missing, or a name or a value has the wrong type.
    """
    settings: dict[str, str] = {}
    for name, value in kafka.items():
        if not isinstance(name, str) or isinstance(value, (dict, list, set, bytes)) or value is None:
            raise OptionError(f"kafka[{name!r}] is {type(value).__name__}; give settings of a Java consumer as texts")
        settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if not settings.get("bootstrap.servers"):
        raise OptionError("kafka has no 'bootstrap.servers'; give the cluster's address, host:port")
    return settings


def look_at(spark: SparkSession, kafka: Mapping[str, str], topic: str, timeout: float) -> SourceTopic:
    """Asks the cluster for a description of the topic.

    Args:
        spark: a session with the connector's jars.
        kafka: settings of a Java client.
        topic: its name.
        timeout: the limit in seconds.

    Raises:
        ConnectorError: the session lacks the connector's jars.
        CaptureError: there is no such topic, or it may not be read, or no broker answers.
    """
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark.sparkContext._jvm
    _check_jars(jvm)
    milliseconds = max(1, int(timeout * 1000))
    properties = jvm.java.util.Properties()
    for name, value in kafka.items():
        properties.setProperty(name, value)
    properties.setProperty("default.api.timeout.ms", str(milliseconds))
    properties.setProperty("request.timeout.ms", str(milliseconds))
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        try:
            return _look(jvm, admin, topic, kafka["bootstrap.servers"], milliseconds)
        finally:
            admin.close(jvm.java.time.Duration.ofMillis(0))
    except Py4JJavaError as error:
        raise refusal(kafka["bootstrap.servers"], topic, error.java_exception) from error


def _check_jars(jvm: Any) -> None:
    from py4j.java_gateway import JavaClass

    classes = (
        jvm.org.apache.kafka.clients.admin.AdminClient,
        jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider,
        jvm.org.apache.spark.kafka010.KafkaConfigUpdater,
        jvm.org.apache.commons.pool2.ObjectPool,
    )
    if not all(isinstance(each, JavaClass) for each in classes):
        raise ConnectorError(
            "this Spark session lacks the jars of Spark's Kafka connector, or some of them; make it with "
            "kafka_assignors.spark.session(jars=connector_jars()), or with spark-submit --jars"
        )


def _look(jvm: Any, admin: Any, topic: str, address: str, milliseconds: int) -> SourceTopic:
    clients, unit = jvm.org.apache.kafka.clients.admin, jvm.java.util.concurrent.TimeUnit.MILLISECONDS

    def answer(future: Any) -> Any:
        return future.get(milliseconds, unit)

    options = clients.DescribeTopicsOptions().includeAuthorizedOperations(True)
    names = jvm.java.util.Collections.singletonList(topic)
    described = answer(admin.describeTopics(names, options).allTopicNames()).get(topic)
    allowed = described.authorizedOperations()
    if allowed is not None and not allowed.contains(jvm.org.apache.kafka.common.acl.AclOperation.READ):
        raise CaptureError(_message(address, "TopicAuthorizationException", topic, ""))
    count = described.partitions().size()

    def offsets(spec: Any) -> tuple[int, ...]:
        asked = jvm.java.util.HashMap()
        partitions = [jvm.org.apache.kafka.common.TopicPartition(topic, number) for number in range(count)]
        for partition in partitions:
            asked.put(partition, spec)
        committed = clients.ListOffsetsOptions(jvm.org.apache.kafka.common.IsolationLevel.READ_COMMITTED)
        found = answer(admin.listOffsets(asked, committed).all())
        return tuple(found.get(partition).offset() for partition in partitions)

    begin, end = offsets(clients.OffsetSpec.earliest()), offsets(clients.OffsetSpec.latest())
    return SourceTopic(
        answer(admin.describeCluster().clusterId()) or "", topic, described.topicId().toString(), begin, end
    )


def refusal(address: str, topic: str, thrown: Any) -> CaptureError:
    """An exception of Java and its causes, as one sentence."""
    chain: list[tuple[str, str]] = []
    while thrown is not None and len(chain) < 20:
        name = thrown.getClass().getSimpleName()
        chain.append((name, str(thrown.getMessage() or name).splitlines()[0]))
        thrown = thrown.getCause()
    for problem in _PROBLEMS:
        for name, detail in chain:
            # The exception of a worker reaches the driver as text.
            if name == problem or f".{problem}:" in detail:
                return CaptureError(_message(address, problem, topic, detail))
    return CaptureError(f"topic {topic} of the cluster at {address} cannot be read: {chain[-1][1]}")


def _message(address: str, problem: str, topic: str, detail: str) -> str:
    reason = _PROBLEMS[problem].format(topic=topic, detail=detail, group=GROUP_PREFIX)
    return f"topic {topic} of the cluster at {address} cannot be read: {reason}"


def stream(spark: SparkSession, kafka: Mapping[str, str], topic: SourceTopic, most: int | None) -> DataFrame:
    """The records of the topic as a stream, from the first offset.

    Args:
        spark: a session that only this stream uses: its settings are changed.
        kafka: settings of a Java client; this function sets those on which exactness depends.
        topic: the topic.
        most: the approximate limit of records in a micro-batch.
    """
    spark.conf.set(DEPRECATED_OFFSETS, "true")
    assigned = {topic.name: list(range(len(topic.end)))}
    reader: DataStreamReader = (
        spark.readStream.format("kafka")
        # With named partitions Spark's consumers join no group. A join would write a record to the topic that is read.
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", "earliest")
        .option("groupIdPrefix", GROUP_PREFIX)
    )
    for name, value in {**kafka, **_WANTED}.items():
        reader = reader.option(f"kafka.{name}", value)
    if most is not None:
        reader = reader.option("maxOffsetsPerTrigger", most)
    return reader.load()
