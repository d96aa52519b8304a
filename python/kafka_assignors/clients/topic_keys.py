"""The keys of a live topic and their partitions, read with confluent-kafka, without a group and without commits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import MissingDependencyError, OptionError, TopicReadError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_topic_keys"]

_FIXED = {
    "group.id": "kafka-assignors-keys",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
}

# Seconds between two requests about a partition without a leader: an election takes about as long.
_LEADER_PAUSE = 0.1


def read_topic_keys(
    config: Mapping[str, Any], topic: str, *, most: int = 100_000, timeout: float = 30.0
) -> tuple[int, list[tuple[bytes | None, int]]]:
    """A topic's partition count, and the key and partition of its newest records, equally many of each partition.

    Args:
        config: settings of librdkafka, `bootstrap.servers` among them.
        topic: one that exists.
        most: how many records to read, of all partitions together; at least one of each is tried.
        timeout: how many seconds that may take. The answer has the records that were read by then.

    Raises:
        MissingDependencyError: confluent-kafka is not installed.
        OptionError: `most` or `timeout` is not positive.
        TopicReadError: there is no such topic, or the cluster cannot be read.
    """
    try:
        import confluent_kafka as kafka
    except ImportError as error:
        raise MissingDependencyError(
            "reading the keys of a topic needs confluent-kafka 2: pip install kafka-assignors[confluent]"
        ) from error
    if most < 1:
        raise OptionError(f"most is {most}; give at least 1")
    if not timeout > 0:
        raise OptionError(f"timeout is {timeout!r}; give a positive number of seconds")
    late = time.monotonic() + timeout
    try:
        consumer = kafka.Consumer({**config, **_FIXED}, logger=_silent())
    except (kafka.KafkaException, ValueError, TypeError) as error:
        raise TopicReadError(f"the settings for reading topic {topic!r} are refused: {error}") from error
    try:
        return _read(kafka, consumer, topic, most, late)
    except kafka.KafkaException as error:
        raise TopicReadError(f"topic {topic!r} cannot be read: {error}") from error
    finally:
        consumer.close()


def _silent() -> Any:
    """Keeps librdkafka's log off standard error. Errors of the reading are raised."""
    import logging

    logger = logging.getLogger("kafka_assignors.librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _watermarks(kafka: Any, consumer: Any, partition: Any, late: float) -> tuple[int, int]:
    """The first offset and the end of a partition. A partition without a leader is asked again until `late`.

    A new topic's partitions are in the metadata before their leader serves them, and librdkafka does not retry this
    request.
    """
    without_leader = {
        kafka.KafkaError.LEADER_NOT_AVAILABLE,
        kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
        kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    while True:
        try:
            begin, end = consumer.get_watermark_offsets(partition, timeout=max(0.001, late - time.monotonic()))
            return begin, end
        except kafka.KafkaException as error:
            if error.args[0].code() not in without_leader or time.monotonic() + _LEADER_PAUSE >= late:
                raise
        time.sleep(_LEADER_PAUSE)


def _read(kafka: Any, consumer: Any, topic: str, most: int, late: float) -> tuple[int, list[tuple[bytes | None, int]]]:
    def left() -> float:
        return max(0.001, late - time.monotonic())

    known = consumer.list_topics(topic, timeout=left()).topics[topic]
    if known.error is not None:
        raise TopicReadError(f"topic {topic!r} cannot be read: {known.error.str()}")
    count = len(known.partitions)
    of_each = max(1, most // count)
    ends: dict[int, int] = {}
    starts = []
    for number in range(count):
        begin, end = _watermarks(kafka, consumer, kafka.TopicPartition(topic, number), late)
        if end > begin:
            ends[number] = end
            starts.append(kafka.TopicPartition(topic, number, max(begin, end - of_each)))
    found: list[tuple[bytes | None, int]] = []
    if not starts:
        return count, found
    consumer.assign(starts)
    while ends and time.monotonic() < late:
        for message in consumer.consume(10_000, timeout=min(0.5, left())):
            number = message.partition()
            error = message.error()
            if error is None and number in ends:
                # Records that are produced meanwhile are not read, since a busy topic has no end.
                if message.offset() < ends[number]:
                    found.append((message.key(), number))
                if message.offset() >= ends[number] - 1:
                    del ends[number]
            elif error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                ends.pop(number, None)
            elif error is not None and not error.retriable():
                raise TopicReadError(f"topic {topic!r} cannot be read: {error.str()}")
    if not found and ends:
        raise TopicReadError(f"topic {topic!r} was not read in time; give a longer timeout")
    return count, found
