"""The commits of a consumer that has not subscribed: its application assigns the partitions.

librdkafka makes every commit, but commits on the interval are started here. librdkafka's own automatic commits are
switched off, since librdkafka would make them for a member as well, without its generation.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import confluent_kafka
from confluent_kafka import KafkaException

if TYPE_CHECKING:
    from kafka_assignors.clients.confluent.config import ConsumerConfig
    from kafka_assignors.member.data_path import Partition

__all__ = ["UnsubscribedCommits"]

_Native = confluent_kafka.Consumer


class UnsubscribedCommits:
    """The automatic commits of one consumer while it has not subscribed.

    Attributes:
        on_interval: whether the application has assigned partitions, and they are committed on the interval.
    """

    def __init__(self, consumer: confluent_kafka.Consumer, config: ConsumerConfig) -> None:
        self._consumer = consumer
        self._config = config
        self.on_interval = False
        self._asked: dict[Partition, int] = {}
        self._stored = False

    def begin(self) -> bool:
        """Notes that the application has assigned partitions. Returns whether they are committed on the interval."""
        self._asked.clear()
        self.on_interval = self._config.auto_commit and self._config.auto_commit_interval > 0
        return self.on_interval

    def stored(self) -> None:
        """Notes that the application has stored offsets."""
        self._stored = True

    def committed(self) -> None:
        """Notes that the application has committed the new offsets itself."""
        self._has_new()

    def commit(self) -> None:
        """Commits the new offsets, if there are any; librdkafka calls `on_commit`."""
        if self._has_new():
            with contextlib.suppress(KafkaException):
                _Native.commit(self._consumer, asynchronous=True)

    def before_change(self) -> None:
        """Commits before the application takes partitions away, or replaces them."""
        if self._config.auto_commit:
            self.commit()

    def end(self) -> None:
        """Makes the last commit, when the consumer closes."""
        if not self._config.auto_commit:
            return
        try:
            done = _Native.commit(self._consumer, asynchronous=False)
        except KafkaException:
            return
        if self._config.on_commit is not None:
            self._config.on_commit(None, done)

    def _has_new(self) -> bool:
        """Whether there are offsets without a commit. Without any, librdkafka would report an error."""
        if not self._config.auto_store:
            new, self._stored = self._stored, False
            return new
        positions = _Native.position(self._consumer, _Native.assignment(self._consumer))
        reached = {(each.topic, each.partition): each.offset for each in positions if each.offset >= 0}
        ahead = {partition: offset for partition, offset in reached.items() if offset > self._asked.get(partition, -1)}
        self._asked |= ahead
        return bool(ahead)
