"""The records that iteration has taken out of the client, and not handed out yet.

kafka-python's `poll` returns batches, and its iterator single records. After a seek the client's iterator drops its
whole batch. Here only the records of the sought partition are dropped, so that no other partition is fetched again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kafka_assignors.member.data_path import Partition

__all__ = ["Undelivered"]


class Undelivered:
    """Records by partition, each partition's in order."""

    def __init__(self) -> None:
        self._queues: dict[Any, deque[Any]] = {}

    def add(self, records: Mapping[Any, Iterable[Any]]) -> None:
        """Adds the records that the client's `poll` returned."""
        for partition in [partition for partition, queue in self._queues.items() if not queue]:
            del self._queues[partition]
        for partition, found in records.items():
            self._queues.setdefault(partition, deque()).extend(found)

    def next_of(self, partition: Partition) -> Any | None:
        """The next record of a partition."""
        queue = self._queues.get(partition)
        return queue[0] if queue else None

    def drop(self, partitions: Collection[Partition]) -> None:
        """Forgets the records of these partitions."""
        for partition in partitions:
            queue = self._queues.pop(partition, None)
            if queue is not None:
                # An iterator may hold the queue.
                queue.clear()

    def keep(self, partitions: Collection[Partition]) -> None:
        """Forgets the records of all other partitions."""
        self.drop([each for each in self._queues if each not in partitions])

    def ready(self, paused: Collection[Partition]) -> list[tuple[Any, deque[Any]]]:
        """The partitions that have records and are not paused. A caller hands out each record that it takes."""
        return [(partition, queue) for partition, queue in self._queues.items() if queue and partition not in paused]

    def take(self, most: int, paused: Collection[Partition]) -> dict[Any, list[Any]]:
        """Takes at most so many records, as the client's `poll` returns them."""
        taken: dict[Any, list[Any]] = {}
        for partition, queue in self.ready(paused):
            count = min(most, len(queue))
            if count > 0:
                taken[partition] = [queue.popleft() for _ in range(count)]
                most -= count
        return taken
