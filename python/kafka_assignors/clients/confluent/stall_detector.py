"""Detects that librdkafka no longer fetches the partitions that a consumer is assigned.

librdkafka may stop fetching without an error while the membership lives on. Its data path counts as stalled if three
things are true, each of which is checked only if the ones before are:

1. A partition that is read has not advanced for `session.timeout.ms`. The positions are read with each of librdkafka's
   statistics.
2. No record of it waits to be polled, and its leader has not answered for as long, although a broker answers a fetch
   after `fetch.wait.max.ms`, even without records. The statistics are parsed, once in `session.timeout.ms`.
3. A new connection to that leader is answered, and the partition has records that were not delivered. This needs a
   client of its own, on a thread.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import OFFSET_END, KafkaException, TopicPartition

from kafka_assignors.clients.confluent import times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.clients.confluent.own_client import OwnClient
    from kafka_assignors.member.data_path import Partition

__all__ = ["StallDetector"]

logger = logging.getLogger("kafka_assignors")

# The most partitions whose last offset is asked for.
_MOST_ASKED = 8


class StallDetector:
    """Watches one consumer. `look` is called in the application's thread.

    Args:
        client: the client of check 3.
        statistics_ms: the interval of librdkafka's statistics, in milliseconds.
        limit: how many seconds a partition may take to advance.
        found: called when the data path has stalled, on a thread of its own.

    Attributes:
        resolved: for partitions that begin at a logical offset, the offset at which librdkafka begins to read.
    """

    def __init__(self, client: OwnClient, statistics_ms: float, limit: float, found: Callable[[], object]) -> None:
        self._client = client
        self._limit = limit
        # `look` is called with each of the statistics. If it was not called for so long, the application did not poll.
        self._away = max(limit / 2, 2.5 * statistics_ms / 1000)
        self._found = found
        self.resolved: dict[Partition, int] = {}
        # The offset of each partition, and since when it has not changed.
        self._last_offsets: dict[Partition, tuple[int, float]] = {}
        self._last = float("-inf")
        self._asking: threading.Thread | None = None

    def reset(self) -> None:
        """Forgets all positions."""
        self._last_offsets.clear()

    def look(self, reading: Mapping[Partition, int], statistics: str) -> None:
        """Compares the positions with the earlier ones.

        Args:
            reading: the next offset of each partition that is read and not paused.
            statistics: the newest of librdkafka.
        """
        now = time.monotonic()
        if now - self._last > self._away:
            # The application has not polled, so no partition could advance.
            self._last_offsets.clear()
        self._last = now
        before = self._last_offsets
        self._last_offsets = {
            partition: before[partition] if before.get(partition, (None,))[0] == offset else (offset, now)
            for partition, offset in reading.items()
        }
        late = [partition for partition, (_, since) in self._last_offsets.items() if now - since >= self._limit]
        if not late or (self._asking is not None and self._asking.is_alive()):
            return
        said = _Statistics(statistics)
        for partition in late:
            # The partition counts as late again only after another `limit`.
            self._last_offsets[partition] = (reading[partition], now)
        silent = [partition for partition in late if said.is_stalled(partition, self._limit)]
        if silent:
            logical = [partition for partition, offset in reading.items() if offset < 0]
            nexts = {partition: said.next_offset(partition) for partition in logical}
            self.resolved = {partition: offset for partition, offset in nexts.items() if offset >= 0}
            behind = {partition: self.resolved.get(partition, reading[partition]) for partition in sorted(silent)}
            self._asking = threading.Thread(
                target=self._ask, args=(behind,), name="kafka-assignors-silence", daemon=True
            )
            try:
                self._asking.start()
            except RuntimeError:
                # The interpreter is shutting down and starts no more threads.
                self._asking = None

    def _ask(self, behind: Mapping[Partition, int]) -> None:
        asked = itertools.islice(behind.items(), _MOST_ASKED)
        try:
            with self._client.opened() as consumer:
                stalled = any(_has_more(consumer, partition, offset) for partition, offset in asked)
        except KafkaException as error:
            logger.debug("the ends of partitions cannot be asked for: %s", error)
            return
        if stalled:
            self._found()


def _has_more(consumer: confluent_kafka.Consumer, partition: Partition, offset: int) -> bool:
    try:
        found = consumer.get_watermark_offsets(TopicPartition(*partition), timeout=times.END_OFFSETS)
    except KafkaException:
        # The leader cannot be reached, or there is none. A new data path could not read the partition either.
        return False
    if found is None or offset == OFFSET_END:
        # The partition starts at the end, and librdkafka has not found the end yet.
        return False
    first, end = found
    return bool(end > max(offset, first))


class _Statistics:
    """librdkafka's statistics of partitions and of the connections to their leaders."""

    def __init__(self, statistics: str) -> None:
        read = json.loads(statistics)
        self._answered = {each["nodeid"]: each.get("rxidle", -1) for each in read.get("brokers", {}).values()}
        self._topics = read.get("topics", {})

    def _of(self, partition: Partition) -> dict[str, Any]:
        topic, number = partition
        said: dict[str, Any] = self._topics.get(topic, {}).get("partitions", {}).get(str(number), {})
        return said

    def is_stalled(self, partition: Partition, limit: float) -> bool:
        """Whether no record waits to be polled, and the leader has not answered for `limit` seconds."""
        said = self._of(partition)
        since = self._answered.get(said.get("broker", -1), -1)
        return bool(said.get("fetchq_cnt", 0) == 0 and (since < 0 or since >= limit * 1e6))

    def next_offset(self, partition: Partition) -> int:
        """The offset that librdkafka fetches next; negative if it is not known."""
        return int(self._of(partition).get("next_offset", -1))
