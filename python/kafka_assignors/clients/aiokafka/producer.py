"""The partitioners in aiokafka's producer.

aiokafka calls its partitioner without the topic, and has no hook for new batches. So this is a subclass of its
producer, which relies on two properties of aiokafka: nothing else runs on the event loop between the choice of a
partition and the first attempt to append, and an append that does not fit closes its batch.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from aiokafka.structs import TopicPartition

from kafka_assignors.clients.aiokafka import _internals
from kafka_assignors.clients.common.batch_estimate import BatchEstimate, cannot_close
from kafka_assignors.clients.common.partitioner_guard import check, choose, claim, notify, refuse_shared
from kafka_assignors.clients.common.queue_feedback import LoadFeed, availability_timeout
from kafka_assignors.errors import IncompatibleClientError, OptionError
from kafka_assignors.partitioners import DefaultPartitioner

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AIOKafkaProducer"]

# The client's default for `max_batch_size`.
_BATCH_SIZE = 16_384


class AIOKafkaProducer(_internals.HookedProducer):
    """`aiokafka.AIOKafkaProducer` with our partitioners.

    It differs from aiokafka's in this:

    - Without `partitioner=` it has a `DefaultPartitioner`, which is sticky. Keyed records keep their partitions.
    - Before a record without an explicit partition opens a batch, the partitioner is notified and chooses again. The
      batch that it leaves is closed and sent; aiokafka would wait until that batch is drained.
    - An `AdaptivePartitioner` gets the load in each turn of the sender. Its queues are those of Java: batches that the
      sender has not taken yet, and records that wait for room in them.
    - If a partitioner fails, or returns a value that is no partition of the topic, `send` raises. The next record is
      not affected.

    The partitioner is not called for `send_batch`, which names its partition. A partitioner of aiokafka, a callable of
    (key, all partitions, available ones), works as it does there.

    Args:
        partitioner: any of ours, any other object with the same six arguments to its `partition`, or a callable as
            aiokafka wants it. One of ours serves one producer only.
        partitioner_availability_timeout_ms: for a partitioner that adapts to load: a broker that takes none of its
            batches for so long gets no more, as in Java. 0 is never.
        options: as for `aiokafka.AIOKafkaProducer`.

    Raises:
        OptionError: `partitioner` is none of these, or the timeout no number.
        StateError: the partitioner serves another open producer.

    If this version of aiokafka does not show its batches, the constructor warns: records are partitioned all the same,
    and the ends of batches are estimated.
    """

    def __init__(
        self, *, partitioner: Any = None, partitioner_availability_timeout_ms: float = 0, **options: Any
    ) -> None:
        timeout = availability_timeout(partitioner_availability_timeout_ms)
        if partitioner is None:
            partitioner = DefaultPartitioner()
        ours = callable(getattr(partitioner, "partition", None)) or isinstance(partitioner, type)
        if ours:
            check(partitioner)
            refuse_shared(partitioner)
        elif not callable(partitioner):
            raise OptionError(
                f"partitioner is {partitioner!r}; give a kafka_assignors.Partitioner, or a callable as aiokafka has it"
            )
        self._asked: _internals.Record | None = None
        # Bytes that wait for room in a batch, by topic partition; None if the partitioner does not adapt to load.
        self._waiting: Counter[Any] | None = None
        self._own_partitioner = partitioner
        self._estimate: BatchEstimate | None = None
        super().__init__(partitioner=partitioner, **options)
        self._ours = ours
        if not ours:
            return
        try:
            _internals.check_producer()
            accumulator = _internals.accumulator_of(self)
        except IncompatibleClientError as error:
            cannot_close(error)
            claim(partitioner, self, _internals.is_closed)
            self._estimate = BatchEstimate(partitioner, options.get("max_batch_size", _BATCH_SIZE))
            return
        self._accumulator = accumulator
        claim(partitioner, self, _internals.is_closed)
        self._add_message = accumulator.add_message
        accumulator.add_message = self._add_to_chosen
        if hasattr(partitioner, "update_load"):
            self._feed = LoadFeed(partitioner, self.client.cluster.leader_for_partition, timeout)
            self._waiting = Counter()
            self._drain_by_nodes = accumulator.drain_by_nodes
            accumulator.drain_by_nodes = self._drain_and_feed

    def _place(self, partition: int | None, record: _internals.Record) -> int | None:
        self._asked = None
        if partition is not None or not self._ours:
            return None
        chosen = self._choose(record)
        if self._estimate is not None:
            topic, *parts = record
            about = (*parts, self.client.cluster)
            return self._estimate.placed(topic, chosen, about, lambda *_: self._choose(record))
        self._asked = record
        return chosen

    def _choose(self, record: _internals.Record) -> int:
        topic, key, value, serialized_key, serialized_value = record
        metadata = self.client.cluster
        return choose(
            self._own_partitioner,
            topic,
            key,
            serialized_key,
            value,
            serialized_value,
            metadata,
            lambda number: metadata.leader_for_partition(TopicPartition(topic, number)) is not None,
        )

    async def _add_to_chosen(
        self,
        tp: Any,
        key: Any,
        value: Any,
        timeout: float,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Any:
        """The accumulator's `add_message`, which first notifies the partitioner if the record opens a batch.

        No other task runs between `_partition` and the first `await` here, so `_asked` is this record.
        """
        record, self._asked = self._asked, None
        # An accumulator that is closed or has failed raises its own error below.
        if record is not None and _internals.takes_records(self._accumulator):
            batch = _internals.last_batch(self._accumulator, tp)
            if batch is not None:
                future: Any = batch.append(key, value, timestamp_ms, headers=headers)
                if future is not None:
                    return future
                # The batch had no room, and once it is closed, the sender can take it before the end of the linger.
                _internals.leave_batch(batch)
                _internals.wake_sender(self._accumulator)
            notify(self._own_partitioner, tp.topic, self.client.cluster, tp.partition)
            tp = TopicPartition(tp.topic, self._choose(record))
        if self._waiting is None:
            return await self._add_message(tp, key, value, timeout, timestamp_ms=timestamp_ms, headers=headers)
        size = len(key or b"") + len(value or b"")
        self._waiting[tp] += size
        try:
            return await self._add_message(tp, key, value, timeout, timestamp_ms=timestamp_ms, headers=headers)
        finally:
            self._waiting[tp] -= size

    def _drain_and_feed(self, ignore_nodes: Any, muted_partitions: Any = frozenset()) -> Any:
        """The accumulator's `drain_by_nodes`, which first feeds the lengths of its queues.

        Brokers to be ignored have a request under way, so their batches cannot be drained yet.
        """
        assert self._waiting is not None
        leader, size = self.client.cluster.leader_for_partition, _internals.batch_size(self._accumulator)
        queues, ready = [], set()
        for tp, batches in _internals.queues(self._accumulator):
            queues.append((tp, len(batches) + math.ceil(self._waiting[tp] / size)))
            if batches and not _internals.lingers(batches[0]) and tp not in muted_partitions:
                ready.add(leader(tp))
        ready -= {None, -1}
        self._feed.feed(queues)
        self._feed.delays.swept(ready, ready.difference(ignore_nodes or ()), time.monotonic())
        return self._drain_by_nodes(ignore_nodes, muted_partitions)
