"""Whether librdkafka still fetches what a consumer holds.

librdkafka may stop fetching without an error while the membership lives. A data path counts as silent if three things
are true:

1. A partition that is read has not advanced for `session.timeout.ms`, and no record of it waits to be polled.
2. Its leader has not answered librdkafka for as long. A broker answers a fetch after `fetch.wait.max.ms`, even without
   records.
3. A new connection to that leader is answered, and there are records which the consumer has not had.

The first costs a look at the positions with each of librdkafka's statistics. The second costs a reading of these
statistics once in `session.timeout.ms`. The third costs a client of its own, on a thread, when the first two hold.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.clients.confluent._strategies import Partition

__all__ = ["Silence"]

logger = logging.getLogger("kafka_assignors")

# How many partitions are asked for at most, and for how many seconds each.
_MOST_ASKED = 8
_PATIENCE = 5.0
# Settings of the data path that the client which asks for the ends of partitions has no use for.
_UNWANTED = {"statistics.interval.ms", "logger", "log_level", "debug"}


class Silence:
    """Watches one consumer. `look` is called in the application's thread.

    Args:
        settings: the data path's; with those of connections among them another client asks for the ends of partitions.
        limit: for how many seconds nothing may come.
        found: called on a thread of its own when the data path is silent.

    Attributes:
        credentials: a user name and a password that replaced those of the settings.
        resolved: for partitions that begin at a logical offset, the offset at which librdkafka begins to read.
    """

    def __init__(self, settings: Mapping[str, Any], limit: float, found: Callable[[], object]) -> None:
        self._settings = {
            name: value
            for name, value in settings.items()
            if name not in _UNWANTED and (not callable(value) or name == "oauth_cb")
        }
        self._limit = limit
        # `look` is called with each of the statistics.
        self._away = max(limit / 2, 2.5 * settings.get("statistics.interval.ms", 0) / 1000)
        self._found = found
        self.credentials: tuple[str, str] | None = None
        self.resolved: dict[Partition, int] = {}
        # Where each partition stood, and since when.
        self._standing: dict[Partition, tuple[int, float]] = {}
        self._last = float("-inf")
        self._asking: threading.Thread | None = None

    def reset(self) -> None:
        """Forgets all positions."""
        self._standing.clear()

    def look(self, reading: Mapping[Partition, int], statistics: str) -> None:
        """Compares where the consumer is with where it was.

        Args:
            reading: the offset that comes next of each partition that is read and not paused.
            statistics: librdkafka's, of now.
        """
        now = time.monotonic()
        if now - self._last > self._away:
            # The application has not polled meanwhile, so no partition could advance.
            self._standing.clear()
        self._last = now
        before = self._standing
        self._standing = {
            partition: before[partition] if before.get(partition, (None,))[0] == offset else (offset, now)
            for partition, offset in reading.items()
        }
        late = [partition for partition, (_, since) in self._standing.items() if now - since >= self._limit]
        if not late or (self._asking is not None and self._asking.is_alive()):
            return
        said = _Statistics(statistics)
        for partition in late:
            # The next statistics of this partition are read a session later.
            self._standing[partition] = (reading[partition], now)
        silent = [partition for partition in late if said.is_silent(partition, self._limit)]
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
                # The interpreter takes no more threads, since it ends.
                self._asking = None

    def _ask(self, behind: Mapping[Partition, int]) -> None:
        try:
            consumer = confluent_kafka.Consumer({**self._settings, "log_level": 0})
        except KafkaException as error:
            logger.debug("the ends of partitions cannot be asked for: %s", error)
            return
        try:
            if self.credentials is not None:
                consumer.set_sasl_credentials(*self.credentials)
            asked = itertools.islice(behind.items(), _MOST_ASKED)
            if any(_has_more(consumer, partition, offset) for partition, offset in asked):
                self._found()
        finally:
            consumer.close()


def _has_more(consumer: confluent_kafka.Consumer, partition: Partition, offset: int) -> bool:
    try:
        found = consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_PATIENCE)
    except KafkaException:
        # Its leader cannot be reached or is none: a new data path could not read it either.
        return False
    if found is None or offset == OFFSET_END:
        # librdkafka is to begin at the end, and has never found it.
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

    def is_silent(self, partition: Partition, limit: float) -> bool:
        """Whether nothing waits to be polled, and the leader has answered nothing for so many seconds."""
        said = self._of(partition)
        since = self._answered.get(said.get("broker", -1), -1)
        return bool(said.get("fetchq_cnt", 0) == 0 and (since < 0 or since >= limit * 1e6))

    def next_offset(self, partition: Partition) -> int:
        """The offset that librdkafka fetches next; negative if it is not known."""
        return int(self._of(partition).get("next_offset", -1))
