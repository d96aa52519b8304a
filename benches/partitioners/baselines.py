"""What the partitioners are compared with, apart from `RoundRobinPartitioner`."""

from __future__ import annotations

import random
import threading
from typing import Any

from kafka_assignors import Partitioner

__all__ = ["RandomPartitioner"]


class RandomPartitioner(Partitioner):
    """Any partition with a leader for each record, as kafka-python's and aiokafka's default does without a key.

    It draws once for a record: asked again because a batch would be opened, it gives the same answer. A second draw
    would look for a partition with an open batch, which makes more of batching than those defaults do.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._repeat = threading.local()
        self._partitions: list[int] = []

    def partition(
        self, topic: str, key: object, serialized_key: bytes | None, value: object, serialized_value: Any, cluster: Any
    ) -> int:
        """The same again after `on_new_batch`, else a draw."""
        again, self._repeat.partition = getattr(self._repeat, "partition", None), None
        if again is not None:
            return int(again)
        if not self._partitions:
            # Read once, as the benchmarks' topics do not change; the clients' defaults pay for it with each record.
            self._partitions = sorted(cluster.available_partitions_for_topic(topic))
        return self._random.choice(self._partitions)

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:
        """The next answer, on this thread, is that partition."""
        self._repeat.partition = prev_partition
