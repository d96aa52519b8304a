"""The partitioners at work in aiokafka's producer; `kafka_assignors.clients.aiokafka` is where to import it from.

aiokafka asks its partitioner with neither topic nor word of batches, so this is a subclass of its producer. What it
relies on: between the choice of a partition and the first attempt to append nothing else runs on the event loop, and an
append that does not fit closes its batch.
"""

from __future__ import annotations

import inspect
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka.structs import TopicPartition

from kafka_assignors.clients._choice import check, choose, claim, notify, refuse_shared
from kafka_assignors.clients._load import LoadFeed, availability_timeout
from kafka_assignors.errors import IncompatibleClientError, OptionError, PartitionerTypeError
from kafka_assignors.partitioners import DefaultPartitioner

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AIOKafkaProducer"]

Record = tuple[str, Any, Any, Any, Any]


class AIOKafkaProducer(aiokafka.AIOKafkaProducer):  # type: ignore[misc]
    """`aiokafka.AIOKafkaProducer` with our partitioners.

    Everything is as in aiokafka but for these:

    - without `partitioner=` it is sticky, with a `DefaultPartitioner` of its own; keyed records go where they went;
    - before a record without an explicit partition opens a batch, the partitioner is told and asked again; the batch
      that it leaves is closed and sent, where aiokafka would wait for that very batch to be drained;
    - an `AdaptivePartitioner` is told the load in each turn of the sender. Its queues are what Java's are: batches that
      the sender has not taken yet, and what waits for room in them;
    - a partitioner that fails, or returns what is no partition of the topic, makes `send` raise, and the next record is
      as welcome as ever.

    `send_batch` names its partition and is none of the partitioner's business. One of aiokafka's own partitioners, a
    callable of (key, all partitions, available ones), works as it does in aiokafka.

    Args:
        partitioner: any of ours, any other object with the same six arguments to its `partition`, or a callable as
            aiokafka wants it. One of ours serves one producer only.
        partitioner_availability_timeout_ms: of use to a partitioner that adapts to load: a broker that has had batches
            ready for it for so long without taking any gets no more, as in Java. 0 is never.
        options: as for `aiokafka.AIOKafkaProducer`.

    Raises:
        OptionError: `partitioner` is no such thing, or the timeout no number.
        StateError: it serves another open producer.
        IncompatibleClientError: this version of aiokafka does not let us.
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
        self._asked: Record | None = None
        _check_client()
        super().__init__(partitioner=partitioner, **options)
        self._ours = ours
        if not ours:
            return
        claim(partitioner, self)
        accumulator = self._message_accumulator
        self._add_message = accumulator.add_message
        accumulator.add_message = self._add_to_chosen
        if hasattr(partitioner, "update_load"):
            self._feed = LoadFeed(partitioner, self._metadata.leader_for_partition, timeout)
            # Bytes that wait for room in a batch, by topic partition.
            self._waiting: Counter[Any] = Counter()
            self._drain_by_nodes = accumulator.drain_by_nodes
            accumulator.drain_by_nodes = self._drain_and_feed

    def _serialize(self, key: Any, value: Any, headers: Any) -> tuple[bytes | None, bytes | None]:
        try:
            serialized: tuple[bytes | None, bytes | None] = super()._serialize(key, value, headers)
        except TypeError as error:
            # aiokafka does not say what of the record it is that should be bytes.
            if self._key_serializer is None and not isinstance(key, bytes | bytearray | memoryview | None):
                raise PartitionerTypeError(
                    f"the key of a record is of type {type(key).__name__}: give bytes, or the producer a key_serializer"
                ) from error
            raise
        return serialized

    def _partition(
        self, topic: str, partition: int | None, key: Any, value: Any, serialized_key: Any, serialized_value: Any
    ) -> Any:
        """Called by `send` for each record, right before it is appended."""
        self._asked = None
        if partition is not None or not self._ours:
            return super()._partition(topic, partition, key, value, serialized_key, serialized_value)
        chosen = self._choose((topic, key, value, serialized_key, serialized_value))
        self._asked = topic, key, value, serialized_key, serialized_value
        return chosen

    def _choose(self, record: Record) -> int:
        topic, key, value, serialized_key, serialized_value = record
        metadata = self._metadata
        return choose(
            self._partitioner,
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
        """The accumulator's own `add_message`, but that the partitioner is told before a batch is opened.

        Up to its first `await` it runs in one go with `_partition`, so the record asked for is this one.
        """
        record, self._asked = self._asked, None
        accumulator = self._message_accumulator
        # An accumulator that is closed or has failed says so itself.
        if record is not None and not accumulator._closed and accumulator._exception is None:
            pending = accumulator._batches.get(tp)
            if pending:
                future: Any = pending[-1].append(key, value, timestamp_ms, headers=headers)
                if future is not None:
                    return future
                # It had no room, and is closed now: the sender need not wait for it to linger.
                if not accumulator._waiter_future.done():
                    accumulator._waiter_future.set_result(None)
            notify(self._partitioner, tp.topic, self._metadata, tp.partition)
            tp = TopicPartition(tp.topic, self._choose(record))
        if not hasattr(self, "_waiting"):
            return await self._add_message(tp, key, value, timeout, timestamp_ms=timestamp_ms, headers=headers)
        size = len(key or b"") + len(value or b"")
        self._waiting[tp] += size
        try:
            return await self._add_message(tp, key, value, timeout, timestamp_ms=timestamp_ms, headers=headers)
        finally:
            self._waiting[tp] -= size

    def _drain_and_feed(self, ignore_nodes: Any, muted_partitions: Any = frozenset()) -> Any:
        """The accumulator's own `drain_by_nodes`, with a look at its queues before.

        Brokers to be ignored are those with a request under way: what is ready for them cannot be drained yet.
        """
        accumulator, leader = self._message_accumulator, self._metadata.leader_for_partition
        queues, ready = [], set()
        for tp, batches in accumulator._batches.items():
            queues.append((tp, len(batches) + math.ceil(self._waiting[tp] / accumulator._batch_size)))
            if batches and not batches[0].remaining_linger() and tp not in muted_partitions:
                ready.add(leader(tp))
        ready -= {None, -1}
        self._feed.feed(queues)
        self._feed.delays.swept(ready, ready.difference(ignore_nodes or ()), time.monotonic())
        return self._drain_by_nodes(ignore_nodes, muted_partitions)


def _check_client() -> None:
    """Whether aiokafka's internals are as we know them.

    Raises:
        IncompatibleClientError: they are not.
    """
    from aiokafka.producer.message_accumulator import MessageAccumulator, MessageBatch

    try:
        known = (
            list(inspect.signature(MessageAccumulator.add_message).parameters)[1:5]
            == ["tp", "key", "value", "timeout"],
            "ignore_nodes" in inspect.signature(MessageAccumulator.drain_by_nodes).parameters,
            list(inspect.signature(MessageBatch.append).parameters)[1:4] == ["key", "value", "timestamp_ms"],
            callable(MessageBatch.remaining_linger) and callable(aiokafka.AIOKafkaProducer._partition),
        )
    except AttributeError as error:
        raise _incompatible(error) from error
    if not all(known):
        raise _incompatible("its accumulator is not the one we know")


def _incompatible(reason: object) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"aiokafka {aiokafka.__version__} cannot be told which partition comes next ({reason}): install aiokafka 0.14"
    )
