"""The reports on slow brokers that an adaptive partitioner receives, with any client."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from kafka_assignors.clients.common.queue_feedback import BrokerDelays, LoadFeed
from support.logs import records_of_the_package


def test_a_broker_is_unavailable_while_what_is_ready_for_it_waits_too_long() -> None:
    delays = BrokerDelays(0.5)
    seen = []
    # Seconds, brokers with a ready batch, and those of them that could accept it.
    for now, ready, drained in (
        (10.0, {1, 2}, {1, 2}),
        (10.4, {1, 2}, {2}),
        (10.5, {1, 2}, {2}),
        (10.6, {1, 2}, {2}),
        (11.0, {2}, {2}),
        (11.5, {1, 2}, {1, 2}),
        (99.0, {2}, {2}),
        (99.1, {1, 2}, {2}),
    ):
        delays.swept(ready, drained, now)
        seen.append([broker for broker in (1, 2, 3) if delays.unavailable(broker)])
    # From 10.6 on, a batch for broker 1 has waited for longer than half a second. At 11.0 broker 1 has no ready batch.
    assert seen == [[], [], [], [1], [1], [], [], [1]]


def test_a_broker_is_given_its_time_from_when_it_is_first_seen() -> None:
    delays = BrokerDelays(0.5)
    delays.swept({1}, set(), 100.0)
    assert not delays.unavailable(1)
    delays.swept({1}, set(), 100.75)
    assert delays.unavailable(1)


def test_without_a_timeout_every_broker_is_available() -> None:
    delays = BrokerDelays(0)
    delays.swept({1}, set(), 1.0)
    delays.swept({1}, set(), 1_000.0)
    assert not delays.unavailable(1)


class Told:
    def __init__(self) -> None:
        self.loads: list[Any] = []

    def update_load(self, topic: str, queue_lengths: dict[int, int], unavailable: set[int]) -> None:
        self.loads.append((topic, queue_lengths, unavailable))


def test_a_partition_without_a_queue_is_left_to_its_broker() -> None:
    """KIP-794: a partition without queued batches has no waiting time."""
    told = Told()
    feed = LoadFeed(told, lambda tp: {0: 1, 1: 2, 2: 1, 3: None}[tp.partition], 100)
    feed.delays.swept({1, 2}, {2}, 5.0)
    feed.delays.swept({1, 2}, {2}, 6.0)
    feed.feed([(TopicPartition("t", number), length) for number, length in enumerate((3, 4, 0, 5))])
    assert told.loads == [("t", {0: 3, 1: 4, 2: 0, 3: 5}, {0})]


@pytest.mark.parametrize("failure", [ValueError("bad"), KeyError("gone")])
def test_a_feed_that_fails_says_so_once(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def leader(topic_partition: Any) -> int:
        raise failure

    told = Told()
    feed = LoadFeed(told, leader, 100)
    for _ in range(3):
        feed.feed([(TopicPartition("t", 0), 1)])
    assert told.loads == []
    assert len(records_of_the_package(caplog)) == 1
