"""Positions and commits of our consumer on kafka-python."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import kafka
import kafka.errors
import pytest
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python.commits import offset_and_metadata
from kafka_assignors.member.data_path import Position
from support.data_paths import Readers
from support.readers.on_kafka_python import TELLS_OF_LOSSES, KafkaPythonReader, consumer_of, tps
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_assignors.clients.kafka_python import KafkaConsumer
    from support.broker import Kafka


@pytest.fixture
def sticky(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        yield readers


def test_commits_with_metadata_and_callbacks(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    by_default: list[Any] = []
    reader = sticky.add(further={"default_offset_commit_callback": lambda *heard: by_default.append(heard)})
    reader.follow(topic)
    consumer = consumer_of(reader)
    sticky.settle(partitions)
    sticky.until(lambda: len(reader.read) == 10, "all is read")
    one, two = tps(partitions)
    given = {one: offset_and_metadata(Position(3, -1, "made by me"))}
    consumer.commit(given)
    assert consumer.committed(one) == 3
    assert consumer.committed(one, metadata=True) == given[one]
    assert consumer.committed(two) is None
    heard: list[Any] = []
    future = consumer.commit_async({two: offset_and_metadata(Position(4))}, lambda *each: heard.append(each))
    sticky.until(lambda: heard, "the callback is called")
    assert heard == [({two: offset_and_metadata(Position(4))}, None)]
    assert future.succeeded()
    assert by_default == []
    consumer.commit_async()
    sticky.until(lambda: by_default, "the default callback is called")
    ((offsets, error),) = by_default
    assert error is None
    assert {each: at.offset for each, at in offsets.items()} == {one: 5, two: 5}
    assert [consumer.committed(each) for each in (one, two)] == [5, 5]
    nothing = consumer.commit_async({})
    sticky.until(nothing.succeeded, "it ends")
    consumer.seek(one, 1)
    consumer.commit()
    assert consumer.committed(one) == 1, "a position before the last commit is committed as well"


def test_commits_that_are_refused(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    first = sticky.add().follow(topic)
    consumer = consumer_of(first)
    with pytest.raises(TypeError if TELLS_OF_LOSSES else AssertionError):
        consumer.commit({"t": 3})
    outsider = consumer_of(sticky.add())
    sticky.settle(partitions, first)
    anything = {TopicPartition(topic, 0): offset_and_metadata(Position(1))}
    # The broker accepts a commit without a member id only while the group is empty.
    with pytest.raises(kafka.errors.CommitFailedError):
        outsider.commit(anything)
    failed: list[Any] = []
    future = outsider.commit_async(anything, lambda _, error: failed.append(error))
    wait_until(lambda: (outsider.poll(10), failed)[1], "the callback is called")
    assert isinstance(failed[0], kafka.errors.CommitFailedError)
    assert future.failed()
    assert future.exception is failed[0]


def test_a_commit_during_a_rebalance_takes_part_in_it(sticky: Readers) -> None:
    """A program commits and does not poll, while the group waits for its member."""
    topic, partitions = sticky.topic(2, 5)
    first = sticky.add().follow(topic)
    sticky.settle(partitions)
    sticky.until(lambda: len(first.read) == 10, "all is read")
    second = sticky.add().follow(topic)
    sticky.until(lambda: first.side.is_due, "the rebalance has begun", second)
    consumer_of(first).commit()
    asks = consumer_of(sticky.add())
    assert [asks.committed(each) for each in tps(partitions)] == [5, 5]
    sticky.settle(partitions, first, second)


def test_between_two_shares_nobody_knows_whose_positions_they_are(sticky: Readers) -> None:
    """An eager rebalance has revoked all partitions, and cannot end: another member does not join yet."""
    topic, partitions = sticky.topic(2, 5)
    first = sticky.add().follow(topic)
    consumer = consumer_of(first)
    sticky.settle(partitions)
    sticky.until(lambda: len(first.read) == 10, "all is read")
    sticky.add().follow(topic)
    sticky.settle(partitions)
    (kept,) = tps(first.held)
    third = sticky.add().follow(topic)
    # The second member does not poll, and the group waits for it.
    sticky.until(lambda: first.side.holds_back, "the rebalance has begun", first, third)
    with pytest.raises(kafka.errors.RebalanceInProgressError):
        consumer.commit()
    assert consumer.poll(100) == {}
    failed: list[Any] = []
    consumer.commit_async(callback=lambda _, error: failed.append(error))
    sticky.until(lambda: failed, "the callback is called", first)
    assert isinstance(failed[0], kafka.errors.RebalanceInProgressError)
    consumer.pause(kept)
    assert consumer.paused() == {kept}
    consumer.resume(kept)
    sticky.until(lambda: not first.side.holds_back, "the second has polled")


def test_automatic_commits_and_the_end(sticky: Readers) -> None:
    topic, partitions = sticky.topic(1, 5)
    (partition,) = tps(partitions)
    asks = consumer_of(sticky.add())
    ends: list[tuple[int, Callable[[KafkaConsumer], None], int | None]] = [
        (5, lambda each: each.close(autocommit=False), None),
        (5, lambda each: each.__exit__(ValueError, ValueError(), None), None),
        (5, lambda each: each.__exit__(None, None, None), 5),
        (1, lambda each: each.unsubscribe(), 6),
    ]
    for count, leave, committed in ends:
        reader = sticky.add(auto_commit=True, auto_commit_interval=60.0).follow(topic)
        if committed == 6:
            sticky.fill(topic, 1, 1)
        deadline = time.monotonic() + TIMEOUT
        while len(reader.read) < count and time.monotonic() < deadline:
            reader.turn()
        leave(consumer_of(reader))
        # `unsubscribe` sends its commit before the member leaves, but does not wait for the answer.
        wait_until(lambda committed=committed: asks.committed(partition) == committed, f"{committed} is committed")  # type: ignore[misc]


def test_positions(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    reader = sticky.add().follow(topic)
    consumer = consumer_of(reader)
    one, two = tps(partitions)
    sticky.until(consumer.assignment, "it is assigned")
    assert consumer.position(one) in (0, 5), "it waits for the group's commit and the reset"
    sticky.until(lambda: len(reader.read) == 10, "all is read")
    assert (consumer.position(one), consumer.position(two, timeout_ms=0)) == (5, 5)
    assert consumer.highwater(one) == 5
    unowned = TopicPartition(topic, 7)
    with pytest.raises((AssertionError, kafka.errors.IllegalStateError)):
        consumer.position(unowned)
    with pytest.raises((AssertionError, ValueError)):
        consumer.seek(unowned, 0)
    with pytest.raises(KeyError):
        consumer.pause(unowned)
    with pytest.raises((AssertionError, ValueError)):
        consumer.seek(one, -1)
    with pytest.raises(TypeError):
        consumer.seek((topic, 0), 0)
    consumer.seek_to_beginning()
    assert [consumer.position(each) for each in (one, two)] == [0, 0]
    consumer.seek_to_end(two)
    assert [consumer.position(each) for each in (one, two)] == [0, 5]


def test_nothing_is_lost_by_a_pause_between_small_batches(sticky: Readers) -> None:
    """kafka-python up to 2.1.1 discards fetched records in a pause, and later reads on after them."""
    topic, partitions = sticky.topic(1, 300)
    (partition,) = tps(partitions)
    consumer = consumer_of(sticky.add().follow(topic))
    read: list[int] = []

    def poll() -> int:
        read.extend(each.offset for records in consumer.poll(50, max_records=10).values() for each in records)
        return len(read)

    wait_until(poll, "it reads")
    consumer.pause(partition)
    assert consumer.paused() == {partition}
    before = len(read)
    for _ in range(3):
        poll()
    assert len(read) == before
    consumer.resume(partition)
    assert consumer.paused() == set()
    wait_until(lambda: poll() >= 300, "all is read")
    assert read == list(range(300))
