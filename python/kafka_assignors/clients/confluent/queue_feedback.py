"""What an `AdaptivePartitioner` is told about librdkafka's queues.

A batch waits from its first record on until the last of its records is reported as delivered, or as failed: the
reports say how many batches each partition has waiting. The statistics say which brokers cannot be reached, and which
partitions have no leader.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.confluent._batches import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.clients.confluent._batches import BatchRule
    from kafka_assignors.clients.confluent._metadata import Cluster, Topic

__all__ = ["PERIOD", "PERIOD_AT_BATCHES", "Load", "TrackedBatch"]

logger = logging.getLogger("kafka_assignors")

Report = Any

# Seconds between two updates of a topic, and if a batch is opened. An update costs time for every partition.
PERIOD = 0.01
PERIOD_AT_BATCHES = 0.001
# A broker in one of these states takes nothing; one in any other is up, coming up, or was never needed.
_DOWN = {"DOWN", "TRY_CONNECT", "CONNECT"}


class TrackedBatch(Batch):
    """A batch that knows how many of its records are not reported yet. As a delivery callback it counts one off."""

    __slots__ = ("_lock", "moved", "pending", "queued")

    def __init__(self, now: float, rule: BatchRule, lock: threading.Lock, moved: set[int], number: int) -> None:
        super().__init__(now, rule)
        self._lock = lock
        self.pending = 0
        self.queued = False
        self.moved = (moved, number)

    def __call__(self, error: object, message: object) -> None:
        """A record of this batch was delivered, or has failed."""
        moved, number = self.moved
        with self._lock:
            self.pending -= 1
            moved.add(number)


class _Queues:
    """The batches that wait in each partition of one topic, the oldest first."""

    __slots__ = ("moved", "told", "waiting")

    def __init__(self) -> None:
        self.told = float("-inf")
        self.waiting: list[deque[TrackedBatch]] = []
        self.moved: set[int] = set()


class Load:
    """Counts batches and hands the counts to a partitioner. The caller holds `lock` where it says so.

    Args:
        update: `update_load` of the partitioner.
        timeout: seconds after which a broker that has batches to take and takes none is unavailable; 0 is never.
        default: called for records without a callback of their own, or None.
        only_errors: whether the user's callbacks are called for failed records alone.
    """

    def __init__(
        self,
        update: Callable[[str, dict[int, int], set[int]], object],
        timeout: float,
        cluster: Cluster,
        default: Report | None,
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

    def batch(self, now: float, rule: BatchRule, topic: Topic, number: int) -> TrackedBatch:
        """A new batch of a partition. Under the lock."""
        return TrackedBatch(now, rule, self.lock, self._queues(topic).moved, number)

    def sent(self, topic: Topic, number: int, batch: Batch) -> None:
        """A record joins a batch, one of `batch`. Under the lock."""
        if not isinstance(batch, TrackedBatch):
            return
        batch.pending += 1
        if not batch.queued:
            batch.queued = True
            self._queues(topic).waiting[number].append(batch)

    def callback(self, batch: Batch | None, own: Report | None) -> Report | None:
        """The delivery callback of a record: counts it off if it is in a batch, then calls the user's."""
        own = own or self._default
        if own is None:
            return batch
        if isinstance(batch, TrackedBatch):
            return partial(_report_errors if self._only_errors else _report, batch, own)
        return partial(_errors, own) if self._only_errors else own

    def feed(self, topic: Topic, now: float, period: float) -> None:
        """Tells the partitioner how long the queues of a topic are, if it was told longer than a period ago."""
        queues = self._queues(topic)
        if self._broken or now - queues.told < period:
            return
        queues.told = now
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
            logger.exception("the partitioner cannot be told the producer's load, and goes on without it")

    def statistics(self, text: str) -> None:
        """Reads what librdkafka says of its brokers. Statistics that make no sense are let go by."""
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

    def _unavailable(self, topic: Topic, now: float) -> set[int]:
        stalled = set(self._down)
        if self._timeout > 0:
            stalled.update(broker for broker, since in list(self._stalled_since.items()) if now - since > self._timeout)
        unavailable = (
            {number for number in range(topic.count) if self._cluster.leader(topic.name, number) in stalled}
            if stalled
            else set()
        )
        return unavailable | self._leaderless.get(topic.name, set())

    def _queues(self, topic: Topic) -> _Queues:
        queues = self._topics.get(topic.name)
        if queues is None:
            queues = self._topics.setdefault(topic.name, _Queues())
        while len(queues.waiting) < topic.count:
            queues.waiting.append(deque())
        return queues


def _read(text: str) -> Any:
    """The statistics, without the topics as long as each of their partitions has a leader.

    Nearly all of the text is about partitions: with thousands of them parsing it takes ten times as long as looking for
    the few characters that matter. Each topic has one more, for records without a partition yet, which has no leader.
    """
    head, name, topics = text.partition('"topics":')
    unassigned = topics.count('"partition":-1')
    if name and unassigned and topics.count('"leader":-1') == unassigned:
        with contextlib.suppress(ValueError):
            return json.loads(head.rstrip().removesuffix(",") + "}") | {"topics": {}}
    return json.loads(text)


def _report(batch: TrackedBatch, own: Report, error: object, message: object) -> None:
    batch(error, message)
    own(error, message)


def _report_errors(batch: TrackedBatch, own: Report, error: object, message: object) -> None:
    batch(error, message)
    if error is not None:
        own(error, message)


def _errors(own: Report, error: object, message: object) -> None:
    if error is not None:
        own(error, message)
