"""The choice of a record's partition in a confluent-kafka producer, by a partitioner of ours or of the user's."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.clients.common.partitioner_guard import checked, failure
from kafka_assignors.clients.confluent.batch_boundaries import Batch, BatchRule
from kafka_assignors.clients.confluent.queue_feedback import PERIOD, PERIOD_AT_BATCHES, QueueFeedback, TrackedBatch
from kafka_assignors.clients.confluent.topic_metadata import ProducerTopic, ProducerTopics
from kafka_assignors.errors import KafkaAssignorsError, OptionError, PartitionerError
from kafka_assignors.partitioners import Partitioner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import confluent_kafka

__all__ = ["AVAILABILITY_TIMEOUT", "Partitioning"]

# Java's name; librdkafka has no such setting.
AVAILABILITY_TIMEOUT = "partitioner.availability.timeout.ms"

# librdkafka's default, in milliseconds.
_PROPAGATION_MS = 30_000
# librdkafka's default is five minutes, since it learns of a lost leader by errors as well. We do not see those errors.
_REFRESH_MS = 10_000


class Partitioning:
    """A partitioner in one producer: the calls to it, and the checks of its answers.

    Thread-safe. The partitioner is called with no lock held, so it may take its own.

    Args:
        partitioner: a `Partitioner`, or a function with the arguments of its method `partition`.
        config: of the producer.

    Raises:
        OptionError: `partitioner` is not a partitioner, or a setting is not a number.
    """

    def __init__(self, partitioner: Any, config: Mapping[str, Any]) -> None:
        self._name, self._partition, self._notify = _hooks(partitioner)
        self._rule = BatchRule.of(config)
        self._size, self._records = self._rule.size, self._rule.records
        patience = _milliseconds(config, "topic.metadata.propagation.max.ms", _PROPAGATION_MS)
        interval = _milliseconds(config, "topic.metadata.refresh.interval.ms", _REFRESH_MS)
        self.topics = ProducerTopics(patience, interval if interval > 0 else float("inf"))
        self._known = self.topics.known
        self._cluster = self.topics.cluster
        self.feedback: QueueFeedback | None = None
        update = getattr(partitioner, "update_load", None)
        if callable(update):
            self.feedback = QueueFeedback(
                update,
                _milliseconds(config, AVAILABILITY_TIMEOUT, 0),
                self._cluster,
                config.get("on_delivery"),
                bool(config.get("delivery.report.only.error", False)),
            )
        # Whether batches are tracked: the partitioner wants `on_new_batch`, or the load.
        self.tracks = self._notify is not None or self.feedback is not None
        self._lock = self.feedback.lock if self.feedback is not None else threading.Lock()

    def place(
        self,
        producer: confluent_kafka.Producer,
        name: str,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
    ) -> tuple[int, Batch | None]:
        """The partition of a record that names none, and the batch that it is counted in.

        Raises:
            PartitionerError: the partitioner failed, or returned a value that is no partition of the topic.
            TopicMetadataError: the partitions of the topic could not be read in time.
        """
        topic = self._known.get(name)
        if topic is None:
            topic = self.topics.discover(producer, name)
        now = monotonic()
        if now >= topic.due:
            self.topics.look_again(producer)
        feedback = self.feedback
        if feedback is not None:
            feedback.feed(topic, now, PERIOD)
        # As `_ask`, `_join_open` and `Batch.add`, but without a call for each.
        try:
            number = self._partition(name, key, serialized_key, value, serialized_value, self._cluster)
        except KafkaAssignorsError:
            raise
        except Exception as error:
            raise self._failure(topic, error) from error
        if number.__class__ is not int or not 0 <= number < topic.count:
            number = self._checked(topic, number)
        if not self.tracks:
            return number, None
        size = len(serialized_value) if serialized_value is not None else 0
        if serialized_key is not None:
            size += len(serialized_key)
        if feedback is None:
            # Without the lock, which would cost more than all the rest. A lost update makes the estimate one record
            # too small. A second `on_new_batch` for one batch also happens in Java.
            batch = topic.batches[number]
            if batch is not None and now < batch.until:
                batch.size += size
                batch.records += 1
                if batch.size >= self._size or batch.records >= self._records:
                    batch.keep(self._rule)
                return number, batch
        else:
            joined = self._join_open(topic, number, now, size)
            if joined is not None:
                return number, joined
        if self._notify is not None:
            if feedback is not None:
                feedback.feed(topic, now, PERIOD_AT_BATCHES)
            self._tell(topic, number)
            number = self._ask(topic, key, serialized_key, value, serialized_value)
        return number, self._join(topic, number, now, size)

    def follow(self, name: str, number: int, serialized_key: object, serialized_value: object) -> Batch | None:
        """Counts a record that names its partition. Returns its batch, None if the partition is not known."""
        topic = self._known.get(name)
        if topic is None or not 0 <= number < topic.count:
            return None
        now = monotonic()
        size = sum(len(part) for part in (serialized_key, serialized_value) if isinstance(part, bytes | str))
        batch = self._join_open(topic, number, now, size)
        if batch is not None:
            return batch
        if self._notify is not None:
            self._tell(topic, number)
        return self._join(topic, number, now, size)

    def take_back(self, name: str, number: int, batch: Batch, serialized_key: object, serialized_value: object) -> None:
        """Removes a record that the client refused from its batch."""
        size = sum(len(part) for part in (serialized_key, serialized_value) if isinstance(part, bytes | str))
        with self._lock:
            if isinstance(batch, TrackedBatch):
                batch.pending -= 1
            topic = self._known.get(name)
            if batch.take_back(size) and topic is not None and topic.batches[number] is batch:
                topic.batches[number] = None

    def close_batches(self) -> None:
        """Closes all batches, since every record has been sent."""
        with self._lock:
            for topic in list(self._known.values()):
                topic.batches[:] = [None] * len(topic.batches)

    def outdated(self, producer: confluent_kafka.Producer, name: str, refusal: BaseException) -> bool:
        """Whether the client refused a record since the partitions of the topic have changed. Reads the new ones.

        Raises:
            TopicMetadataError: the topic was deleted.
        """
        if not isinstance(refusal, KafkaException) or refusal.args[0].code() != KafkaError._UNKNOWN_PARTITION:
            return False
        before = self._known[name].count if name in self._known else 0
        return self.topics.discover(producer, name).count != before

    def _join_open(self, topic: ProducerTopic, number: int, now: float, size: int) -> Batch | None:
        """Counts a record in the open batch of a partition, if it has one."""
        with self._lock:
            batch = topic.batches[number]
            if batch is None or now >= batch.until:
                return None
            self._add(topic, number, batch, size)
            return batch

    def _join(self, topic: ProducerTopic, number: int, now: float, size: int) -> Batch:
        with self._lock:
            batch = topic.batches[number]
            if batch is None or now >= batch.until:
                batch = (
                    Batch(now, self._rule)
                    if self.feedback is None
                    else self.feedback.batch(now, self._rule, topic, number)
                )
                topic.batches[number] = batch
            self._add(topic, number, batch, size)
            return batch

    def _add(self, topic: ProducerTopic, number: int, batch: Batch, size: int) -> None:
        batch.add(size, self._rule)
        if self.feedback is not None:
            self.feedback.sent(topic, number, batch)

    def _ask(
        self,
        topic: ProducerTopic,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
    ) -> int:
        try:
            number = self._partition(topic.name, key, serialized_key, value, serialized_value, self._cluster)
        except KafkaAssignorsError:
            raise
        except Exception as error:
            raise self._failure(topic, error) from error
        if number.__class__ is int and 0 <= number < topic.count:
            return number
        return self._checked(topic, number)

    def _failure(self, topic: ProducerTopic, error: Exception) -> PartitionerError:
        return failure(f"partitioner {self._name} failed for a record to {topic.name!r}", error)

    def _checked(self, topic: ProducerTopic, answer: object) -> int:
        def problem(returned: object) -> str:
            return f"partitioner {self._name} returned {returned!r} for a record to {topic.name!r}, which was not sent"

        def there() -> str:
            return f"; the topic has the partitions 0 to {topic.count - 1}"

        return checked(answer, lambda number: 0 <= number < topic.count, problem, there)

    def _tell(self, topic: ProducerTopic, number: int) -> None:
        try:
            self._notify(topic.name, self._cluster, number)  # type: ignore[misc]
        except KafkaAssignorsError:
            raise
        except Exception as error:
            what = f"on_new_batch of partitioner {self._name} failed before a record to topic {topic.name!r}"
            raise failure(what, error) from error


def _hooks(partitioner: Any) -> tuple[str, Callable[..., Any], Callable[[str, Any, int], object] | None]:
    """The partitioner's name, its `partition`, and its `on_new_batch` if it has overridden that."""
    if isinstance(partitioner, Partitioner):
        cares = type(partitioner).on_new_batch is not Partitioner.on_new_batch
        return type(partitioner).__name__, partitioner.partition, partitioner.on_new_batch if cares else None
    if isinstance(partitioner, type):
        raise OptionError(
            f"partitioner is the class {partitioner.__name__}; give an instance of it: {partitioner.__name__}()"
        )
    if callable(partitioner):
        return getattr(partitioner, "__qualname__", None) or type(partitioner).__name__, partitioner, None
    raise OptionError(
        f"partitioner is of type {type(partitioner).__name__}; give the name of one of librdkafka's, a "
        "kafka_assignors.Partitioner, or a function of (topic, key, serialized_key, value, serialized_value, cluster)"
    )


def _milliseconds(config: Mapping[str, Any], name: str, default: float) -> float:
    """A setting in milliseconds, as a number of seconds."""
    given = config.get(name)
    try:
        return float(default if given is None else given) / 1_000
    except (TypeError, ValueError):
        raise OptionError(f"{name} is {given!r}; give a number of milliseconds") from None
