"""The partitioners in kafka-python's producer.

kafka-python 3 has KIP-480's hook, but differs from Java in two things:

- A batch without room for the next record is not closed. It waits for the end of the linger, although the partitioner
  has left the partition.
- The hook is not called for records with a key.

Both are done here, in the accumulator's `append`, which every record passes. kafka-python 2 has no hook at all, and
calls a partitioner without the topic: there our producer calls the hook and the partitioner by itself.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import kafka.partitioner
from kafka.structs import TopicPartition

from kafka_assignors import partitioners
from kafka_assignors.clients.common.batch_estimate import BatchEstimate, cannot_close
from kafka_assignors.clients.common.partitioner_guard import (
    check,
    choose,
    claim,
    knows_its_partitions,
    notify,
    refuse_shared,
)
from kafka_assignors.clients.common.queue_feedback import LoadFeed, availability_timeout
from kafka_assignors.clients.kafka_python import _internals
from kafka_assignors.errors import IncompatibleClientError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "AdaptivePartitioner",
    "DefaultPartitioner",
    "KafkaProducer",
    "Partitioner",
    "RoundRobinPartitioner",
    "UniformStickyPartitioner",
]

# kafka-python 3 calls any other class as its version 1 did: without topic and value, and with a warning.
_NAMES_TOPICS = hasattr(kafka.partitioner, "Partitioner")
if _NAMES_TOPICS:
    kafka.partitioner.Partitioner.register(partitioners.Partitioner)


# Seconds; as short as the system's timer allows. The pause only has to release the interpreter lock.
_HAND_OVER = 1e-6


class _Link:
    """The tie between one producer and its partitioner. It lives as long as the producer's accumulator.

    The arguments of `append` do not tell whether the partition of a record was chosen or given. So our `KafkaProducer`
    notes it before `append` is called, for each thread (`asked`). For a plain producer kafka-python calls the hook, for
    records without a key.
    """

    def __init__(self, producer: Any, partitioner: Any, availability_timeout_ms: float) -> None:
        accumulator = _internals.accumulator_of(producer)
        self._producer = weakref.ref(producer)
        self._partitioner = partitioner
        self._accumulator = accumulator
        self._wakeup: Callable[[], None] = _internals.sender_wakeup(producer)
        self._append = accumulator.append
        self._aborts = _internals.aborts_on_new_batch(accumulator)
        self._asked = threading.local()
        accumulator.append = self.append
        if hasattr(partitioner, "update_load"):
            self._feed = LoadFeed(
                partitioner, _internals.metadata_of(producer).leader_for_partition, availability_timeout_ms
            )
            self._ready, self._drain = accumulator.ready, accumulator.drain
            self._ready_nodes: set[Any] = set()
            accumulator.ready, accumulator.drain = self.ready, self.drain

    def asked(self, record: tuple[Any, Any] | None) -> None:
        """Notes the key and value of the record whose partition this thread has chosen; None if it was given."""
        self._asked.record = record

    def append(
        self,
        tp: Any,
        timestamp_ms: int | None,
        key: Any,
        value: Any,
        headers: Any,
        *further: Any,
        abort_on_new_batch: bool = False,
        **options: Any,
    ) -> Any:
        """The accumulator's `append`, with two differences.

        A batch without room for the record is closed. And before a record whose partition was chosen opens a batch,
        the partitioner is notified and chooses again.
        """
        record, self._asked.record = getattr(self._asked, "record", None), None
        given = timestamp_ms, key, value, headers, *further
        if record is None and not abort_on_new_batch:
            return self._append(tp, *given, **options)
        if self._aborts:
            result = self._append(tp, *given, **options, abort_on_new_batch=True)
            if not result[3]:
                return result
        else:
            result = _internals.append_to_open(self._accumulator, self._append, tp, *given, **options)
            if result is not None:
                return result
        late = self._leave(tp, timestamp_ms, key, value, headers)
        if late is not None:
            return late
        if record is None:
            # A plain producer: kafka-python notifies the partitioner.
            return result
        tp = self._choose_again(tp, key, value, record)
        return self._append(tp, *given, **options)

    def _leave(self, tp: Any, timestamp_ms: int | None, key: Any, value: Any, headers: Any) -> tuple[Any, ...] | None:
        """Closes the batch that has no room, so that it is sent at once, as in Java.

        Another thread may have opened a batch since, as the accumulator has released its lock. Then the record goes
        into that one, and the result is that of `append`.
        """
        with _internals.partition_lock(self._accumulator, tp):
            queue = _internals.queue_of(self._accumulator, tp)
            if not queue:
                return None
            last = queue[-1]
            future = last.try_append(timestamp_ms, key, value, headers)
            if future is not None:
                result = future, len(queue) > 1 or last.records.is_full(), False
                return (*result, False) if self._aborts else result
            _internals.close_batch(last.records)
        self._wakeup()
        # The sender's thread needs the interpreter lock several times to send a batch, and a thread that produces in a
        # loop hardly releases it. Without this pause the batches of a saturated producer pile up.
        time.sleep(_HAND_OVER)
        return None

    def _choose_again(self, tp: Any, key: Any, value: Any, record: tuple[Any, Any]) -> Any:
        producer = self._producer()
        if producer is None:
            raise StateError("the producer is gone while one of its threads is still sending")
        metadata = _internals.metadata_of(producer)
        notify(self._partitioner, tp.topic, metadata, tp.partition)
        partition = producer._choose_partition(tp.topic, *record, key, value, metadata)
        self._asked.record = None
        tp = TopicPartition(tp.topic, partition)
        _internals.add_to_transaction(producer, tp)
        return tp

    # The sender's thread calls these, once in each of its turns.

    def ready(self, cluster: Any, **options: Any) -> Any:
        """The accumulator's `ready`, which then feeds the lengths of its queues, as Java's does."""
        result = self._ready(cluster, **options)
        # A copy, since the sender removes from the set each broker to which it cannot send.
        self._ready_nodes = set(result[0])
        self._feed.feed(_internals.queue_lengths(self._accumulator))
        return result

    def drain(self, cluster: Any, nodes: Any, max_size: int, **options: Any) -> Any:
        """The accumulator's `drain`, which first notes the ready brokers that take batches."""
        now = options.get("now")
        self._feed.delays.swept(self._ready_nodes, nodes, time.monotonic() if now is None else now)
        return self._drain(cluster, nodes, max_size, **options)


class _Attachable:
    """A partitioner that can be tied to a producer of kafka-python."""

    def attach(self, producer: kafka.KafkaProducer, *, availability_timeout_ms: float = 0) -> None:
        """Makes a producer close the batch that this partitioner leaves, as in Java, and not keep it for `linger_ms`.

        A partitioner that adapts to load also gets the load. Call it right after the producer was made with this
        partitioner as `partitioner=`, before anything is sent. Our `KafkaProducer` calls it by itself, and also
        notifies the partitioner of batches that keyed records open. A second call does nothing.

        Args:
            producer: a `kafka.KafkaProducer`.
            availability_timeout_ms: for a partitioner that adapts to load: a broker that takes none of its batches for
                so long gets no more, as with `partitioner.availability.timeout.ms` in Java. 0 is never.

        Raises:
            OptionError: the timeout is no number, or negative.
            StateError: the producer is closed or has another partitioner, or this one serves another open producer.
            IncompatibleClientError: kafka-python 2, which calls a partitioner without the topic; or this version has
                other private attributes.
        """
        if not _NAMES_TOPICS:
            raise _nameless(type(self).__qualname__)
        timeout = availability_timeout(availability_timeout_ms)
        config = getattr(producer, "config", None)
        if not isinstance(config, dict) or config.get("partitioner") is not self:
            raise StateError(
                f"{producer!r} was not built with this {type(self).__qualname__}: give it as partitioner=, then attach"
            )
        if _internals.is_closed(producer, unknown=True):
            raise StateError("the producer is closed: attach a partitioner before anything is sent")
        _link(self, producer, timeout)

    if not _NAMES_TOPICS:

        def __call__(self, key: Any, all_partitions: Any, available: Any) -> int:
            """Refuses a plain producer of kafka-python 2: a sticky partition needs the topic, which is not passed."""
            raise _nameless(type(self).__qualname__)


def _nameless(name: str) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"kafka-python {kafka.__version__} calls a partitioner without the topic: give {name}() to "
        "kafka_assignors.clients.kafka_python.KafkaProducer, or install kafka-python 3"
    )


def _link(partitioner: Any, producer: Any, timeout: float) -> _Link | None:
    """Ties the two together. Returns None if they are tied already."""
    _internals.accumulator_of(producer)
    return _Link(producer, partitioner, timeout) if claim(partitioner, producer, _internals.is_closed) else None


class Partitioner(_Attachable, partitioners.Partitioner):
    """`kafka_assignors.Partitioner`, the base class of your own partitioners, with `attach`."""


class DefaultPartitioner(_Attachable, partitioners.DefaultPartitioner):
    """`kafka_assignors.DefaultPartitioner` (KIP-480) for kafka-python.

    Keys are hashed as in Java. Records without a key stay with a partition for a batch.
    """


class UniformStickyPartitioner(_Attachable, partitioners.UniformStickyPartitioner):
    """`kafka_assignors.UniformStickyPartitioner` for kafka-python: sticky for keyed records too.

    Give it to our `KafkaProducer`. kafka-python's own does not notify a partitioner of batches that keyed records open,
    so keyed records would stay with one partition for good.
    """


class RoundRobinPartitioner(_Attachable, partitioners.RoundRobinPartitioner):
    """`kafka_assignors.RoundRobinPartitioner` for kafka-python: each record to the next partition."""


class AdaptivePartitioner(_Attachable, partitioners.AdaptivePartitioner):
    """`kafka_assignors.AdaptivePartitioner` (KIP-794) for kafka-python; `attach` gives it the producer's load."""


class KafkaProducer(_internals.HookedProducer):
    """`kafka.KafkaProducer`, in which our partitioners work as in Java.

    It differs from kafka-python's in this:

    - Without `partitioner=` it has a `DefaultPartitioner`, which is sticky. Keyed records keep their partitions.
    - The batch that the partitioner leaves is closed and sent.
    - `on_new_batch` is also called for batches that keyed records open. It is not called for records that name their
      partition.
    - An `AdaptivePartitioner` gets the load in each turn of the sender.
    - If a partitioner fails, or returns a value that is no partition of the topic, `send` raises. The next record is
      not affected.

    Args:
        configs: as for `kafka.KafkaProducer`. `partitioner` is any of ours, or any other object with kafka-python's six
            arguments; each producer needs one of its own. `partitioner_availability_timeout_ms` (0) is as for `attach`.

    Raises:
        OptionError: `partitioner` is no such object, or the timeout no number.
        StateError: the partitioner serves another open producer.

    If this version of kafka-python lacks an attribute with which a batch is closed, the constructor warns: records are
    partitioned all the same, and the ends of batches are estimated.
    """

    _link: _Link | BatchEstimate

    def __init__(self, **configs: Any) -> None:
        partitioner = configs.setdefault("partitioner", None)
        if partitioner is None:
            partitioner = configs["partitioner"] = DefaultPartitioner()
        timeout = availability_timeout(configs.pop("partitioner_availability_timeout_ms", 0))
        check(partitioner)
        refuse_shared(partitioner)
        self._ours = knows_its_partitions(partitioner)
        super().__init__(**configs)
        try:
            link = self._tied(partitioner, timeout)
        except Exception:
            # The caller never gets the object to close it.
            self.close(timeout=0)
            raise
        assert link is not None, "a producer under construction has no link"
        self._link = link

    def _tied(self, partitioner: Any, timeout: float) -> _Link | BatchEstimate | None:
        try:
            return _link(partitioner, self, timeout)
        except IncompatibleClientError as error:
            cannot_close(error)
            claim(partitioner, self, _internals.is_closed)
            return BatchEstimate(partitioner, self.config["batch_size"])

    def __del__(self) -> None:
        # kafka-python's `__del__` would fail on a producer that was refused before its own `__init__`.
        if "config" in self.__dict__:
            super().__del__()

    def _note_given_partition(self) -> None:
        if not isinstance(self._link, BatchEstimate):
            self._link.asked(None)

    def _choose_partition(
        self, topic: str, key: Any, value: Any, serialized_key: Any, serialized_value: Any, metadata: Any
    ) -> int:
        """`send` calls it for each record without a partition, and `append` again before the record opens a batch."""
        record = key, value, serialized_key, serialized_value, metadata
        chosen = self._chosen(topic, *record)
        if isinstance(self._link, BatchEstimate):
            return self._link.placed(topic, chosen, record, self._chosen)
        self._link.asked((key, value))
        return chosen

    def _chosen(
        self, topic: str, key: Any, value: Any, serialized_key: Any, serialized_value: Any, metadata: Any
    ) -> int:
        partitioner = self.config["partitioner"]
        if self._ours:
            chosen: int = partitioner.partition(topic, key, serialized_key, value, serialized_value, metadata)
            return chosen
        return choose(
            partitioner,
            topic,
            key,
            serialized_key,
            value,
            serialized_value,
            metadata,
            lambda number: metadata.leader_for_partition(TopicPartition(topic, number)) is not None,
        )
