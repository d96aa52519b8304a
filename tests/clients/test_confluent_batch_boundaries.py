"""The begin and the end of batches, as the confluent producer computes them. The test sets the clock."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import DefaultPartitioner, OptionError, Partitioner
from kafka_assignors.clients.confluent import partitioning
from kafka_assignors.clients.confluent.batch_boundaries import BatchRule
from kafka_assignors.clients.confluent.partitioning import Partitioning

if TYPE_CHECKING:
    from collections.abc import Mapping

TOPIC = "orders"
# Sums of a quarter of a second are exact in binary.
LINGER = 0.25


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(partitioning, "monotonic", clock)
    return clock


class Told(Partitioner):
    """Chooses the next partition at every new batch, and keeps the arguments of its calls."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def partition(self, topic: str, key: object, *_: Any) -> int:
        return len(self.told) % 4 if key is None else int(str(key))

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:
        assert set(cluster.partitions_for_topic(topic)) == {0, 1, 2, 3}
        self.told.append(prev_partition)


class Choices:
    """The partitioner's side of a producer, with a topic of four partitions and no broker."""

    def __init__(self, partitioner: Any, **config: object) -> None:
        settings = {"linger.ms": LINGER * 1_000, "topic.metadata.refresh.interval.ms": -1}
        self.partitioning = Partitioning(
            partitioner, settings | {name.replace("_", "."): given for name, given in config.items()}
        )
        self.partitioning.topics._put(TOPIC, {0: 1, 1: 1, 2: 1, 3: 1})

    def send(self, value: bytes = b"", key: str | None = None) -> int:
        serialized = None if key is None else key.encode()
        return self.partitioning.place(_NOBODY, TOPIC, key, serialized, value, value)[0]

    def records(self) -> Mapping[int, int]:
        batches = self.partitioning.topics.known[TOPIC].batches
        return {number: batch.records for number, batch in enumerate(batches) if batch is not None}


_NOBODY: Any = None


def test_a_batch_ends_with_the_linger_of_its_first_record(clock: Clock) -> None:
    told = Told()
    choices = Choices(told)
    assert choices.send() == 1
    assert told.told == [0]
    clock.now += LINGER / 2
    assert choices.send() == 1
    clock.now += LINGER / 2 - 0.001
    assert choices.send() == 1
    clock.now += 0.001
    assert choices.send() == 2
    assert told.told == [0, 1]


def test_a_partition_whose_batches_fill_before_the_linger_is_kept_for_two(clock: Clock) -> None:
    told = Told()
    choices = Choices(told, batch_size=100)
    assert [choices.send(b"x" * 60) for _ in range(5)] == [1] * 5
    clock.now += LINGER
    assert choices.send() == 1
    clock.now += LINGER
    assert choices.send() == 2


def test_as_many_records_as_fill_a_batch_do_the_same(clock: Clock) -> None:
    choices = Choices(Told(), batch_num_messages=3)
    assert [choices.send() for _ in range(3)] == [1] * 3
    clock.now += LINGER
    assert choices.send() == 1
    choices = Choices(Told(), batch_num_messages=4)
    assert [choices.send() for _ in range(3)] == [1] * 3
    clock.now += LINGER
    assert choices.send() == 2


def test_keys_count_as_bytes(clock: Clock) -> None:
    choices = Choices(lambda *_: 0)
    assert choices.send(b"12345", key="0") == 0
    assert choices.records() == {}  # a plain function has no `on_new_batch`, so no batches are counted
    choices = Choices(Told(), batch_size=6)
    assert choices.send(b"12345", key="3") == 3
    clock.now += LINGER
    assert choices.send(key="3") == 3
    assert choices.records() == {3: 2}


def test_a_record_with_a_key_that_opens_a_batch_is_told_of_like_any_other(clock: Clock) -> None:
    told = Told()
    choices = Choices(told)
    assert choices.send(key="3") == 3
    assert told.told == [3]
    assert choices.send(key="3") == 3
    assert told.told == [3]


def test_a_record_that_names_its_partition_opens_and_fills_batches(clock: Clock) -> None:
    told = Told()
    choices = Choices(told)
    first = choices.partitioning.follow(TOPIC, 2, None, b"1")
    assert told.told == [2]
    assert choices.partitioning.follow(TOPIC, 2, "key", "value") is first
    assert told.told == [2]
    assert first is not None
    assert (first.records, first.size) == (2, 9)
    assert choices.partitioning.follow(TOPIC, 4, None, None) is None
    assert choices.partitioning.follow(TOPIC, -2, None, None) is None
    assert choices.partitioning.follow("unheard of", 0, None, None) is None


def test_a_refused_record_is_in_no_batch(clock: Clock) -> None:
    choices = Choices(Told())
    number, batch = choices.partitioning.place(_NOBODY, TOPIC, None, None, None, b"x" * 10)
    assert batch is not None
    assert choices.partitioning.place(_NOBODY, TOPIC, None, None, None, b"x" * 7) == (number, batch)
    choices.partitioning.take_back(TOPIC, number, batch, None, b"x" * 7)
    assert (batch.records, batch.size) == (1, 10)
    choices.partitioning.take_back(TOPIC, number, batch, None, b"x" * 10)
    assert choices.records() == {}


def test_the_sticky_partition_never_repeats_and_all_get_their_share(clock: Clock) -> None:
    choices = Choices(DefaultPartitioner(seed=3))
    seen = []
    for _ in range(200):
        seen.append(choices.send())
        assert choices.send() == seen[-1]
        clock.now += LINGER
    assert all(one != another for one, another in pairwise(seen))
    assert {number: seen.count(number) > 25 for number in range(4)} == dict.fromkeys(range(4), True)


def test_a_topic_that_grows_keeps_its_batches(clock: Clock) -> None:
    choices = Choices(DefaultPartitioner(seed=3))
    number = choices.send()
    choices.partitioning.topics._put(TOPIC, dict.fromkeys(range(6), 1))
    assert choices.send() == number
    assert choices.records() == {number: 2}
    reached = set()
    for _ in range(300):
        clock.now += LINGER
        reached.add(choices.send())
    assert reached == set(range(6))


def test_a_partition_without_a_leader_is_left_at_the_next_batch(clock: Clock) -> None:
    choices = Choices(DefaultPartitioner(seed=3))
    number = choices.send()
    choices.partitioning.topics._put(TOPIC, {other: -1 if other == number else 1 for other in range(4)})
    assert choices.send() == number
    reached = set()
    for _ in range(100):
        clock.now += LINGER
        reached.add(choices.send())
    assert reached == set(range(4)) - {number}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (0.005, 1_000_000, 10_000)),
        ({"linger.ms": 0.5}, (0.0005, 1_000_000, 10_000)),
        ({"queue.buffering.max.ms": "20", "batch.num.messages": "7"}, (0.02, 1_000_000, 7)),
        ({"linger.ms": 0, "batch.size": 1}, (0.0, 1, 10_000)),
        ({"linger.ms": None}, (0.005, 1_000_000, 10_000)),
    ],
)
def test_settings_are_librdkafka_s(config: dict[str, object], expected: tuple[float, int, int]) -> None:
    rule = BatchRule.of(config)
    assert (rule.linger, rule.size, rule.records) == expected


@pytest.mark.parametrize("name", ["linger.ms", "batch.size", "topic.metadata.refresh.interval.ms"])
def test_a_setting_that_is_no_number_is_named(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is 'soon'"):
        Partitioning(DefaultPartitioner(), {name: "soon"})
