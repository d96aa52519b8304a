"""The pytest fixture `embedded_kafka`: an empty [`EmbeddedKafka`][kafka_assignors.embedded.EmbeddedKafka] for one test.

pytest finds it when the package is installed; nothing has to be imported.

    def test_orders(embedded_kafka):
        embedded_kafka.create_topic("orders", 12)
        producer = KafkaProducer(bootstrap_servers=embedded_kafka.bootstrap_servers)

A server starts within a millisecond or two, so each test has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.embedded import EmbeddedKafka

__all__ = ["embedded_kafka"]


@pytest.fixture
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    """An embedded Kafka without topics, closed when the test is over."""
    from kafka_assignors.embedded import EmbeddedKafka

    with EmbeddedKafka() as kafka:
        yield kafka
