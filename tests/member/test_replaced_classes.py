"""A program that puts our class in the place of the client's, in the client's own module (docs/frameworks.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiokafka
import confluent_kafka
import kafka

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.clients.kafka_python import KafkaConsumer

if TYPE_CHECKING:
    import pytest

    from support.data_paths import Readers


def test_it_works_as_before(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our classes call methods of the client's classes, and must not find these by their names, which now name ours."""
    monkeypatch.setattr(kafka, "KafkaConsumer", KafkaConsumer)
    monkeypatch.setattr(aiokafka, "AIOKafkaConsumer", AIOKafkaConsumer)
    monkeypatch.setattr(confluent_kafka, "Consumer", Consumer)
    topic, partitions = readers.topic(4, 10)
    first = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(first.read) == 40, "all is read")
    paused = min(first.held)
    first.pause(paused)
    second = readers.add().follow(topic)
    readers.settle(partitions)
    first.commit()
    second.close()
    readers.until(lambda: first.held == partitions, "the first has all", first)
    if paused in partitions:
        first.resume(paused)
    first.seek((topic, 3), 5)
    before = len(first.read)
    # Records of the other partition that the first member got back may come before, between and after these.
    again = [(topic, 3, offset) for offset in range(5, 10)]
    readers.until(lambda: again[-1] in first.read[before:], "it reads again", first)
    assert [record for record in first.read[before:] if record[1] == 3] == again
    assert first.committed([paused]) == {paused: 10}
