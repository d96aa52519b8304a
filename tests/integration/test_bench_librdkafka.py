"""The measurement of librdkafka in `make bench-partitioners` counts every record and every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from partitioners.live_librdkafka import LOADS, PARTITIONS, Load, measure

from support.broker import unique

if TYPE_CHECKING:
    from support.broker import Kafka

pytestmark = pytest.mark.needs("benches")


@pytest.mark.parametrize("ours", [False, True], ids=["librdkafka", "ours"])
def test_every_record_and_request_is_counted(any_kafka: Kafka, ours: bool) -> None:
    topic = any_kafka.create_topic(unique("bench"), PARTITIONS)
    run = measure(Load(10, 200, 16_384), any_kafka.bootstrap_servers, topic, ours, 0.5)
    assert run.records == 100
    assert 1 <= run.requests == run.batches <= 100
    assert len(run.latencies) == 1_000
    assert 0 < run.latencies[0] <= run.latencies[-1]
    # The record with the shortest linger was the last one of its batch.
    assert run.at(99.9) >= 10


def test_what_ends_a_batch_is_told_apart() -> None:
    ended_by_size = {load.name for load in LOADS if load.size_ends_batches}
    assert ended_by_size == {
        "librdkafka-linger-20-20000-16384",
        "librdkafka-linger-100-20000-16384",
        "librdkafka-linger-1000-1000-16384",
    }
    assert len({load.name for load in LOADS}) == len(LOADS) == 9
