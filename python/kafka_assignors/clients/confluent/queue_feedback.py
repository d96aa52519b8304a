"""The load of librdkafka's queues, for an `AdaptivePartitioner`.

A batch waits from its first record until the last delivery report of its records. So the reports give the number of
waiting batches of each partition. The statistics give the brokers that cannot be reached, and the partitions without a
leader.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.confluent.batch_boundaries import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.clients.confluent.batch_boundaries import BatchRule
    from kafka_assignors.clients.confluent.topic_metadata import KnownTopics, ProducerTopic

__all__ = ["PERIOD", "PERIOD_AT_BATCHES", "QueueFeedback", "TrackedBatch"]

logger = logging.getLogger("kafka_assignors")

DeliveryCallback = Any
"""Called with the error and the message of one record."""

# Seconds between two updates of a topic: in general, and when a batch is opened. An update costs time for every
# partition.
PERIOD = 0.01
PERIOD_AT_BATCHES = 0.001
# In these states a broker takes no records. In any other state it is up, coming up, or was never needed.
_DOWN = {"DOWN", "TRY_CONNECT", "CONNECT"}


class TrackedBatch(Batch):
    """A batch with the number of its records that are not reported yet; also the delivery callback of its records."""

    __slots__ = ("_lock", "moved", "pending", "queued")

    def __init__(self, now: float, rule: BatchRule, lock: threading.Lock, moved: set[int], number: int) -> None:
        super().__init__(now, rule)
        self._lock = lock
        self.pending = 0
        self.queued = False
        self.moved = (moved, number)

    def __call__(self, error: object, message: object) -> None:
        """Takes the delivery report of a record of this batch."""
        moved, number = self.moved
        with self._lock:
            self.pending -= 1
            moved.add(number)


class _Queues:
    """The batches that wait in each partition of one topic, the oldest first."""

    __slots__ = ("moved", "updated", "waiting")

    def __init__(self) -> None:
        self.updated = float("-inf")
        self.waiting: list[deque[TrackedBatch]] = []
        self.moved: set[int] = set()


class QueueFeedback:
    """Counts waiting batches, and gives the counts to a partitioner.

    Args:
        update: `update_load` of the partitioner.
        timeout: seconds after which a broker that takes none of its waiting batches is unavailable; 0 is never.
        default: the callback of records without one, or None.
        only_errors: whether the user's callbacks are called for failed records only.
    """

    def __init__(
        self,
        update: Callable[[str, dict[int, int], set[int]], object],
        timeout: float,
        cluster: KnownTopics,
        default: DeliveryCallback | None,
        only_errors: bool,
    ) -> None:
        self.lock = threading.Lock()
        self._update = update
        self._timeout = timeout
        self._cluster = cluster
        self._default = default
        self._only_errors = only_errors
        self._topics: dict[str, _Queues] = {}
        self._stalled_since: dict[int, float] = {}
        self._down: set[int] = set()
        self._leaderless: dict[str, set[int]] = {}
        self._broken = False

    def batch(self, now: float, rule: BatchRule, topic: ProducerTopic, number: int) -> TrackedBatch:
        """A new batch of a partition. The caller holds `lock`."""
        return TrackedBatch(now, rule, self.lock, self._queues(topic).moved, number)

    def sent(self, topic: ProducerTopic, number: int, batch: Batch) -> None:
        """Counts a record of a batch that `batch` made. The caller holds `lock`."""
        if not isinstance(batch, TrackedBatch):
            return
        batch.pending += 1
        if not batch.queued:
            batch.queued = True
            self._queues(topic).waiting[number].append(batch)

    def callback(self, batch: Batch | None, own: DeliveryCallback | None) -> DeliveryCallback | None:
        """The delivery callback of a record: it calls the batch, if there is one, and then the user's callback."""
        own = own or self._default
        if own is None:
            return batch
        if isinstance(batch, TrackedBatch):
            return partial(_call_both_on_errors if self._only_errors else _call_both, batch, own)
        return partial(_call_on_errors, own) if self._only_errors else own

    def feed(self, topic: ProducerTopic, now: float, period: float) -> None:
        """Gives the partitioner the lengths of a topic's queues, at most once a period."""
        queues = self._queues(topic)
        if self._broken or now - queues.updated < period:
            return
        queues.updated = now
        lengths: dict[int, int] = {}
        late: set[int] = set()
        with self.lock:
            moved = {self._cluster.leader(topic.name, number) for number in queues.moved}
            queues.moved.clear()
            for number, waiting in enumerate(queues.waiting):
                while waiting and not waiting[0].pending:
                    waiting.popleft().queued = False
                lengths[number] = len(waiting)
                if waiting and now >= waiting[0].until:
                    late.add(self._cluster.leader(topic.name, number))
            for broker in moved | (self._stalled_since.keys() - late):
                self._stalled_since.pop(broker, None)
            for broker in late:
                self._stalled_since.setdefault(broker, now)
        try:
            self._update(topic.name, lengths, self._unavailable(topic, now))
        except Exception:
            self._broken = True
            logger.exception("the producer's load does not reach its partitioner, which continues without it")

    def statistics(self, text: str) -> None:
        """Takes the brokers' states and the leaders from the statistics. Statistics of another form are ignored."""
        try:
            found = _read(text)
            self._down = {
                broker["nodeid"]
                for broker in found["brokers"].values()
                if broker["state"] in _DOWN and broker["nodeid"] >= 0
            }
            self._leaderless = {
                name: {
                    each["partition"]
                    for each in topic["partitions"].values()
                    if each["partition"] >= 0 and each["leader"] < 0
                }
                for name, topic in found["topics"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            logger.warning("the statistics of librdkafka are not what they were; a partitioner goes without them")

    def _unavailable(self, topic: ProducerTopic, now: float) -> set[int]:
        stalled = set(self._down)
        if self._timeout > 0:
            stalled.update(broker for broker, since in list(self._stalled_since.items()) if now - since > self._timeout)
        unavailable = (
            {number for number in range(topic.count) if self._cluster.leader(topic.name, number) in stalled}
            if stalled
            else set()
        )
        return unavailable | self._leaderless.get(topic.name, set())

    def _queues(self, topic: ProducerTopic) -> _Queues:
        queues = self._topics.get(topic.name)
        if queues is None:
            queues = self._topics.setdefault(topic.name, _Queues())
        while len(queues.waiting) < topic.count:
            queues.waiting.append(deque())
        return queues


def _read(text: str) -> Any:
    """The parsed statistics. The topics are left out if each of their partitions has a leader.

    Nearly all of the text is about partitions. With thousands of them, parsing takes ten times as long as a search for
    `"leader":-1`. Each topic has one such entry anyway, for records that have no partition yet.
    """
    head, name, topics = text.partition('"topics":')
    unassigned = topics.count('"partition":-1')
    if name and unassigned and topics.count('"leader":-1') == unassigned:
        with contextlib.suppress(ValueError):
            return json.loads(head.rstrip().removesuffix(",") + "}") | {"topics": {}}
    return json.loads(text)


def _call_both(batch: TrackedBatch, own: DeliveryCallback, error: object, message: object) -> None:
    batch(error, message)
    own(error, message)


def _call_both_on_errors(batch: TrackedBatch, own: DeliveryCallback, error: object, message: object) -> None:
    batch(error, message)
    if error is not None:
        own(error, message)


def _call_on_errors(own: DeliveryCallback, error: object, message: object) -> None:
    if error is not None:
        own(error, message)
