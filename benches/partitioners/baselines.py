"""The partitioners of the comparison, besides `RoundRobinPartitioner`."""

from __future__ import annotations

import random
import threading
from typing import Any

from kafka_assignors import Partitioner

__all__ = ["RandomPartitioner"]


class RandomPartitioner(Partitioner):
    """A random partition with a leader for each record, like kafka-python's and aiokafka's default without a key.

    It draws once for a record. When it is called again because a batch would be opened, it returns the same partition.
    A second draw could hit a partition with an open batch, so there would be fewer batches than with those defaults.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._repeat = threading.local()
        self._partitions: list[int] = []

    def partition(
        self, topic: str, key: object, serialized_key: bytes | None, value: object, serialized_value: Any, cluster: Any
    ) -> int:
        """The same partition after `on_new_batch`, otherwise a draw."""
        again, self._repeat.partition = getattr(self._repeat, "partition", None), None
        if again is not None:
            return int(again)
        if not self._partitions:
            # Read once, since the benchmarks' topics do not change. The clients' defaults read it for each record.
            self._partitions = sorted(cluster.available_partitions_for_topic(topic))
        return self._random.choice(self._partitions)

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:
        """The next call on this thread returns that partition."""
        self._repeat.partition = prev_partition
