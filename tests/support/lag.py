"""Partitions in every state that lag depends on: committed, uncommitted, truncated, compacted."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import confluent_kafka
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.broker import Kafka

COMPACTION = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


def fill(kafka: Kafka, topic: str, counts: Sequence[int]) -> None:
    """Write to each partition its number of records."""
    # kafka-python 2 has no `with`.
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)) as producer:
        sent = [
            producer.send(topic, b"x", partition=partition)
            for partition, count in enumerate(counts)
            for _ in range(count)
        ]
        for each in sent:
            each.get(timeout=60)


def commit(kafka: Kafka, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets for a group without members."""
    servers = kafka.bootstrap_servers
    with closing(KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)) as consumer:
        consumer.assign([TopicPartition(*key) for key in offsets])
        consumer.commit({TopicPartition(*key): _offset(offset) for key, offset in offsets.items()})


def _offset(offset: int) -> OffsetAndMetadata:
    """An offset to commit. kafka-python up to 2.0 has no leader epoch in it."""
    return OffsetAndMetadata(*(offset, "", -1)[: len(OffsetAndMetadata._fields)])


def truncate(kafka: Kafka, offsets: Mapping[tuple[str, int], int]) -> None:
    """Delete the records before these offsets."""
    cut = [confluent_kafka.TopicPartition(*key, offset) for key, offset in offsets.items()]
    for future in kafka.admin.delete_records(cut).values():
        future.result(10)


STATES = ("committed", "at the end", "uncommitted", "committed and truncated", "uncommitted and truncated", "beyond")
"""The partitions of `in_every_state`, by number."""

LAGS = {"latest": [7, 0, 0, 7, 0, 0], "earliest": [7, 0, 9, 7, 3, 0], "none": [7, 0, 9, 7, 3, 0]}
"""Their lags, by the consumers' `auto_offset_reset`. Deleted records count if the committed offset is before them."""


def in_every_state(kafka: Kafka) -> tuple[str, str]:
    """A topic with one partition for each of the `STATES`, and the group with these commits."""
    topic, group = kafka.create_topic(unique("orders"), len(STATES)), unique("readers")
    fill(kafka, topic, [9] * len(STATES))
    commit(kafka, group, {(topic, 0): 2, (topic, 1): 9, (topic, 3): 2, (topic, 5): 50})
    truncate(kafka, {(topic, 3): 6, (topic, 4): 6})
    return topic, group


def compact(kafka: Kafka) -> tuple[str, int, int]:
    """A compacted topic with one partition, in which every record has the same key: its name, its end offset, and the
    number of records that are left. The embedded Kafka compacts nothing, so that all records are left.
    """
    topic = kafka.create_topic(unique("latest-prices"), 1, COMPACTION)
    deadline = time.monotonic() + 60
    # kafka-python 2 has no `with`.
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)) as producer:
        end = 0
        while True:
            # The broker closes a segment when a record arrives late enough after the segment's first one.
            end = producer.send(topic, b"x", key=b"one", partition=0).get(timeout=60).offset + 1
            if end < 10:
                continue
            left = len(read(kafka, topic, end))
            if left < end or kafka.version == "embedded":
                return topic, end, left
            if time.monotonic() > deadline:
                msg = f"{topic} was not compacted within 60 s"
                raise TimeoutError(msg)
            time.sleep(0.1)


def read(kafka: Kafka, topic: str, end: int) -> list[int]:
    """The offsets of the records of partition 0 below `end`. The record at `end - 1` must exist."""
    with closing(KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=None)) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        offsets: list[int] = []
        while not offsets or offsets[-1] < end - 1:
            offsets += [each.offset for each in consumer.poll(timeout_ms=1_000).get(partition, ())]
        return offsets
