"""The partitioners at work in kafka-python's producer, to be imported from `kafka_assignors.clients.kafka_python`.

kafka-python 3 knows KIP-480's hook, but leaves two things undone that Java does. A batch which turned out to have no
room is not closed, so it waits out the linger with the sticky partition long gone elsewhere; and the hook is not called
for records with a key. Both are mended here, at the one place that every record passes: the accumulator's `append`.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import kafka
from kafka.partitioner import Partitioner as _KafkaPartitioner
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import TopicPartition

from kafka_assignors import partitioners
from kafka_assignors.clients._choice import check, choose, claim, knows_its_partitions, notify, refuse_shared
from kafka_assignors.clients._load import LoadFeed, availability_timeout
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

# kafka-python asks anything else in the way of its version 1: without the topic's values and with a warning.
_KafkaPartitioner.register(partitioners.Partitioner)


# Seconds; as short as the system's timer allows, since what counts is that the thread lets go of the interpreter.
_HAND_OVER = 1e-6


class _Link:
    """What ties one producer to its partitioner; it lives as long as the producer's accumulator.

    Of a record `append` cannot tell whether its partition was chosen or given. Our `KafkaProducer` says so, per thread,
    between choosing and appending. For a plain producer it is kafka-python that calls the hook, if there is no key.
    """

    def __init__(self, producer: Any, partitioner: Any, availability_timeout_ms: float) -> None:
        accumulator = _accumulator(producer)
        self._producer = weakref.ref(producer)
        self._partitioner = partitioner
        self._accumulator = accumulator
        self._wakeup: Callable[[], None] = producer._sender.wakeup
        self._append = accumulator.append
        self._asked = threading.local()
        accumulator.append = self.append
        if hasattr(partitioner, "update_load"):
            self._feed = LoadFeed(partitioner, producer._metadata.leader_for_partition, availability_timeout_ms)
            self._ready, self._drain = accumulator.ready, accumulator.drain
            self._ready_nodes: set[Any] = set()
            accumulator.ready, accumulator.drain = self.ready, self.drain

    def asked(self, record: tuple[Any, Any] | None) -> None:
        """The key and value of the record for which the calling thread has just chosen a partition, if it has."""
        self._asked.record = record

    def append(
        self,
        tp: Any,
        timestamp_ms: int | None,
        key: Any,
        value: Any,
        headers: Any,
        now: float | None = None,
        abort_on_new_batch: bool = False,
    ) -> Any:
        """The accumulator's own `append`, but that a batch without room for the record is closed, and that a record
        which is ours to place tells the partitioner before it opens a batch, and may go elsewhere.
        """
        record, self._asked.record = getattr(self._asked, "record", None), None
        if record is None and not abort_on_new_batch:
            return self._append(tp, timestamp_ms, key, value, headers, now=now)
        result = self._append(tp, timestamp_ms, key, value, headers, now=now, abort_on_new_batch=True)
        if not result[3]:
            return result
        late = self._leave(tp, timestamp_ms, key, value, headers, now)
        if late is not None:
            return late
        if record is None:
            # The rest is up to kafka-python, whose producer this is.
            return result
        tp = self._choose_again(tp, key, value, record)
        return self._append(tp, timestamp_ms, key, value, headers, now=now)

    def _leave(
        self, tp: Any, timestamp_ms: int | None, key: Any, value: Any, headers: Any, now: float | None
    ) -> tuple[Any, bool, bool, bool] | None:
        """Closes the batch that has no room, as Java does: it may go at once.

        The accumulator let go of its lock, and another thread may have opened a batch since; then the record goes in
        there after all, which is the result.
        """
        with self._accumulator._tp_lock(tp):
            queue = self._accumulator._batches[tp]
            if not queue:
                return None
            last = queue[-1]
            future = last.try_append(timestamp_ms, key, value, headers, now=now)
            if future is not None:
                return future, len(queue) > 1 or last.records.is_full(), False, False
            _close(last.records)
        self._wakeup()
        # The sender's thread needs the interpreter lock several times to send a batch, and a thread that only sends
        # records lets go of it for a wake-up at most. Without this pause the batches of a saturated producer pile up.
        time.sleep(_HAND_OVER)
        return None

    def _choose_again(self, tp: Any, key: Any, value: Any, record: tuple[Any, Any]) -> Any:
        producer = self._producer()
        if producer is None:
            raise StateError("the producer is gone while one of its threads is still sending")
        notify(self._partitioner, tp.topic, producer._metadata, tp.partition)
        partition = producer._partition(tp.topic, None, *record, key, value)
        self._asked.record = None
        tp = TopicPartition(tp.topic, partition)
        transactions = producer._transaction_manager
        if transactions is not None and transactions.is_transactional():
            transactions.maybe_add_partition_to_transaction(tp)
        return tp

    # On the sender's thread, once in each of its turns.

    def ready(self, cluster: Any, now: float | None = None) -> Any:
        """The accumulator's own `ready`; the queues are what Java's producer looks at in its."""
        result = self._ready(cluster, now=now)
        # A copy, as the sender takes from the set what it cannot send to.
        self._ready_nodes = set(result[0])
        self._feed.feed([(tp, len(queue)) for tp, queue in list(self._accumulator._batches.items())])
        return result

    def drain(self, cluster: Any, nodes: Any, max_size: int, now: float | None = None) -> Any:
        """The accumulator's own `drain`, with a note of which of the ready brokers can be sent to."""
        self._feed.delays.swept(self._ready_nodes, nodes, time.monotonic() if now is None else now)
        return self._drain(cluster, nodes, max_size, now=now)


def _close(records: Any) -> None:
    """Closes a batch for further records and makes it count as full.

    Not by its own `close`, which builds the bytes: an idempotent producer, the default, writes id and sequence into
    them when the batch is drained, fails on one that is built, and loses its records without a word.
    """
    if records._builder is not None:
        records._batch_size = records._builder._batch_size = 0


def _accumulator(producer: Any) -> Any:
    """The part of a producer that the link hooks into, if it is as we know it.

    Raises:
        IncompatibleClientError: kafka-python's internals have changed.
    """
    try:
        accumulator = producer._accumulator
        parameters = inspect.signature(accumulator.append).parameters
        looked_at = (
            "abort_on_new_batch" in parameters,
            hasattr(accumulator, "_batches") and callable(accumulator._tp_lock),
            callable(accumulator.ready) and callable(accumulator.drain) and callable(producer._sender.wakeup),
            callable(producer._metadata.leader_for_partition) and hasattr(producer, "_transaction_manager"),
            hasattr(MemoryRecordsBuilder, "_builder") and hasattr(MemoryRecordsBuilder, "_batch_size"),
            hasattr(DefaultRecordBatchBuilder, "_batch_size"),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise _incompatible(error) from error
    if not all(looked_at):
        raise _incompatible("its accumulator is not the one we know")
    return accumulator


def _incompatible(reason: object) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"kafka-python {kafka.__version__} cannot be told to close a batch ({reason}): install kafka-python 3.0, or "
        "use the partitioner without attach and without our KafkaProducer, with a linger_ms of 0"
    )


class _Attachable:
    """A partitioner that can be tied to a producer of kafka-python."""

    def attach(self, producer: kafka.KafkaProducer, *, availability_timeout_ms: float = 0) -> None:
        """Has a producer close the batch that this partitioner leaves, as Java does, instead of keeping it for the
        whole of `linger_ms`; and, if the partitioner adapts to load, tell it the load.

        To be called right after the producer was built with `partitioner=` this one, before anything is sent. Our
        `KafkaProducer` does it by itself, and moreover tells the partitioner of batches that keyed records open. The
        producer is looked at weakly; calling again does nothing.

        Args:
            producer: a `kafka.KafkaProducer`.
            availability_timeout_ms: of use to a partitioner that adapts to load: a broker that has had batches ready
                for it for so long without taking any gets no more, as with `partitioner.availability.timeout.ms` in
                Java. 0 is never.

        Raises:
            OptionError: the timeout is no such number.
            StateError: the producer is closed or has another partitioner, or this one serves another open producer.
            IncompatibleClientError: this version of kafka-python does not let us.
        """
        timeout = availability_timeout(availability_timeout_ms)
        config = getattr(producer, "config", None)
        if not isinstance(config, dict) or config.get("partitioner") is not self:
            raise StateError(
                f"{producer!r} was not built with this {type(self).__qualname__}: give it as partitioner=, then attach"
            )
        if getattr(producer, "_closed", True):
            raise StateError("the producer is closed: attach a partitioner before anything is sent")
        _link(self, producer, timeout)


def _link(partitioner: Any, producer: Any, timeout: float) -> _Link | None:
    """None where the two are linked already."""
    _accumulator(producer)
    return _Link(producer, partitioner, timeout) if claim(partitioner, producer) else None


class Partitioner(_Attachable, partitioners.Partitioner):
    """`kafka_assignors.Partitioner`, the base class for people's own, with `attach`."""


class DefaultPartitioner(_Attachable, partitioners.DefaultPartitioner):
    """`kafka_assignors.DefaultPartitioner` (KIP-480) for kafka-python: keys hashed as Java does, records without a key
    sticky, a batch at a time.
    """


class UniformStickyPartitioner(_Attachable, partitioners.UniformStickyPartitioner):
    """`kafka_assignors.UniformStickyPartitioner` for kafka-python: sticky for keyed records too.

    Give it to our `KafkaProducer`: kafka-python's own never tells a partitioner of batches that keyed records open, and
    keyed records would stay on one partition for good.
    """


class RoundRobinPartitioner(_Attachable, partitioners.RoundRobinPartitioner):
    """`kafka_assignors.RoundRobinPartitioner` for kafka-python: each record to the next partition."""


class AdaptivePartitioner(_Attachable, partitioners.AdaptivePartitioner):
    """`kafka_assignors.AdaptivePartitioner` (KIP-794) for kafka-python; `attach` tells it the producer's queues."""


class KafkaProducer(kafka.KafkaProducer):  # type: ignore[misc]
    """`kafka.KafkaProducer` with our partitioners working as they do in Java.

    Everything is as in kafka-python but for these:

    - without `partitioner=` it is sticky, with a `DefaultPartitioner` of its own; keyed records go where they went;
    - the batch that the partitioner leaves is closed, and so sent;
    - a partitioner is told of the batches that keyed records are about to open, too; not of those of records with an
      explicit partition, which are nobody's choice;
    - an `AdaptivePartitioner` is told the load in each turn of the sender;
    - a partitioner that fails, or returns what is no partition of the topic, makes `send` raise, and the next record is
      as welcome as ever.

    Args:
        configs: as for `kafka.KafkaProducer`. `partitioner` is any of ours, or any other object with kafka-python's six
            arguments; each producer needs one of its own. `partitioner_availability_timeout_ms` (0) is as for `attach`.

    Raises:
        OptionError: `partitioner` is no such object, or the timeout no number.
        StateError: it serves another open producer.
        IncompatibleClientError: this version of kafka-python does not let us.
    """

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
            link = _link(partitioner, self, timeout)
        except Exception:
            # Its caller never gets to see it.
            self.close(timeout=0)
            raise
        assert link is not None, "a producer under construction has no link"
        self._link = link

    def __del__(self) -> None:
        # Without what `__init__` makes first, kafka-python's would fail on a producer that was refused.
        if "config" in self.__dict__:
            super().__del__()

    def _partition(
        self, topic: str, partition: int | None, key: Any, value: Any, serialized_key: Any, serialized_value: Any
    ) -> Any:
        """Called by `send` for each record, and again if the first choice would open a batch."""
        if partition is not None:
            self._link.asked(None)
            return super()._partition(topic, partition, key, value, serialized_key, serialized_value)
        metadata, partitioner = self._metadata, self.config["partitioner"]
        if self._ours:
            chosen = partitioner.partition(topic, key, serialized_key, value, serialized_value, metadata)
            self._link.asked((key, value))
            return chosen
        chosen = choose(
            partitioner,
            topic,
            key,
            serialized_key,
            value,
            serialized_value,
            metadata,
            lambda number: metadata.leader_for_partition(TopicPartition(topic, number)) is not None,
        )
        self._link.asked((key, value))
        return chosen
