"""Partitioners in tests: a cluster that belongs to no client, and calls of a partitioner."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import AdaptivePartitioner, DefaultPartitioner, RoundRobinPartitioner, UniformStickyPartitioner
from kafka_assignors.partitioners import register_cluster_type

if TYPE_CHECKING:
    from kafka_assignors import Partitioner

Ours = DefaultPartitioner | UniformStickyPartitioner | AdaptivePartitioner | RoundRobinPartitioner
ALL: list[type[Ours]] = [
    DefaultPartitioner,
    UniformStickyPartitioner,
    AdaptivePartitioner,
    RoundRobinPartitioner,
]
every = pytest.mark.parametrize("kind", ALL)


class Asked:
    """A cluster that belongs to no client. It counts the calls of its two methods."""

    def __init__(self, all_: int | set[int] | None, available: set[int] | None = None) -> None:
        self.all = set(range(all_)) if isinstance(all_, int) else all_
        self.available = self.all if available is None else available
        self.calls = Counter[str]()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["all"] += 1
        return self.all and set(self.all)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["available"] += 1
        return self.available and set(self.available)


class Metadata(Asked):
    """A cluster of a registered type, like a client's: `update` replaces a topic, `move` changes it in place."""

    def __init__(self, all_: int) -> None:
        super().__init__(all_)
        self.update(all_)

    def update(self, all_: int, topic: str = "t") -> None:
        self.topics = {topic: {partition: {"leader": 1} for partition in range(all_)}}

    def move(self, partition: int, leader: int, topic: str = "t") -> None:
        self.topics[topic][partition]["leader"] = leader

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["all"] += 1
        return set(self.topics[topic]) if topic in self.topics else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["available"] += 1
        if topic not in self.topics:
            return None
        return {partition for partition, data in self.topics[topic].items() if data["leader"] != -1}


register_cluster_type(Metadata, "topics")


def ask(partitioner: Partitioner, cluster: Any, key: Any = None, value: Any = b"value", topic: str = "t") -> int:
    return partitioner.partition(topic, key, key, value, value, cluster)


def refuses(error: type[Exception], message: str) -> pytest.RaisesExc[Exception]:
    return pytest.raises(error, match=re.escape(message))


def filled(partitioner: AdaptivePartitioner, cluster: Asked, rounds: int) -> Counter[int]:
    """How often each partition was chosen in `rounds` calls."""
    return Counter(ask(partitioner, cluster, value=b"x" * 40) for _ in range(rounds))
