"""The load of a producer for an `AdaptivePartitioner`: its queues of batches, and brokers that accept no batches."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

__all__ = ["BrokerDelays", "LoadFeed", "availability_timeout"]

logger = logging.getLogger("kafka_assignors")


def availability_timeout(milliseconds: object) -> float:
    """Checks an availability timeout of the user.

    Raises:
        OptionError: it is no number, or negative.
    """
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or not milliseconds >= 0:
        raise OptionError(
            f"the partitioner's availability timeout is {milliseconds!r}; give milliseconds, or 0 for none"
        )
    return milliseconds


class BrokerDelays:
    """For each broker, how long no batch has been sent although batches were ready: KIP-794's availability.

    Args:
        timeout: seconds after which a broker counts as unavailable; 0 is never.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._ready: dict[object, float] = {}
        self._drained: dict[object, float] = {}

    def swept(self, ready: Collection[object], drained: Collection[object], now: float) -> None:
        """Notes one turn of the sender: `ready` brokers had batches to send; to `drained` brokers some were sent."""
        for broker in ready:
            self._ready[broker] = now
            # Java's clock for a broker starts when it is first seen.
            self._drained.setdefault(broker, now)
        for broker in drained:
            self._ready[broker] = self._drained[broker] = now

    def unavailable(self, broker: object) -> bool:
        """Whether the batches of the broker have waited for longer than the timeout."""
        if self._timeout <= 0 or broker not in self._ready:
            return False
        return self._ready[broker] - self._drained[broker] > self._timeout


class LoadFeed:
    """Gives a partitioner the load of its producer.

    The client's sender calls it, and an error would end the sender. So the first error is logged, and after it the
    partitioner goes on with the last load.

    Args:
        partitioner: has `update_load`.
        leader: returns the leader of a topic partition; None or -1 if there is none.
        availability_timeout_ms: as `partitioner.availability.timeout.ms` of Java's producer; 0 is never.
    """

    def __init__(self, partitioner: Any, leader: Callable[[Any], Any], availability_timeout_ms: float) -> None:
        self.delays = BrokerDelays(availability_timeout_ms / 1000)
        self._partitioner = partitioner
        self._leader = leader
        self._broken = False

    def feed(self, queues: Iterable[tuple[Any, int]]) -> None:
        """Takes the number of waiting batches of each topic partition. Partitions that are not named have none."""
        if self._broken:
            return
        try:
            lengths: dict[str, dict[int, int]] = {}
            slow: dict[str, set[int]] = {}
            for topic_partition, length in queues:
                topic, partition = topic_partition.topic, topic_partition.partition
                lengths.setdefault(topic, {})[partition] = length
                # A partition without waiting batches is never slow.
                if length and self.delays.unavailable(self._leader(topic_partition)):
                    slow.setdefault(topic, set()).add(partition)
            for topic, of_topic in lengths.items():
                self._partitioner.update_load(topic, of_topic, slow.get(topic, set()))
        except Exception:
            self._broken = True
            logger.exception("the producer's load does not reach its partitioner, which continues with the last load")
