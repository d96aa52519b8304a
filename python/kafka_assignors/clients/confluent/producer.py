"""A drop-in for `confluent_kafka.Producer` that takes partitioners written in Python.

librdkafka takes a partitioner only as a C function, and confluent-kafka only the names of librdkafka's own. So our
`produce` chooses the partition, and passes it to the client's `produce`.
"""

from __future__ import annotations

from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_assignors.errors import MissingDependencyError, PartitionerError, PartitionerTypeError

try:
    import confluent_kafka
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.confluent needs confluent-kafka 2: pip install kafka-assignors[confluent]"
    ) from error

from confluent_kafka import serializing_producer

from kafka_assignors.clients.common.partitioner_guard import claim, refuse_shared
from kafka_assignors.clients.confluent import _internals
from kafka_assignors.clients.confluent.errors import as_the_client
from kafka_assignors.clients.confluent.partitioning import AVAILABILITY_TIMEOUT, Partitioning
from kafka_assignors.partitioners import Partitioner

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.clients.confluent.batch_boundaries import Batch
    from kafka_assignors.clients.confluent.queue_feedback import QueueFeedback

    Delivery = Callable[[confluent_kafka.KafkaError | None, confluent_kafka.Message], None]

__all__ = ["Producer", "SerializingProducer"]

_Client = confluent_kafka.Producer
_produce: Callable[..., None] = _Client.produce
# From 2.12 on.
_produce_batch: Any = getattr(_Client, "produce_batch", None)

_UNASSIGNED = -1
_PART = str | bytes | None
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
# The interval of statistics for an `AdaptivePartitioner`, if the user has not set one.
_STATISTICS_MS = 1_000


def _produce_by_name(
    producer: Producer,
    topic: str,
    value: Any,
    key: Any,
    partition: Any,
    delivery: Delivery | None,
    _: None,
    timestamp: Any,
    headers: Any,
) -> None:
    """The client's `produce` with keywords: a tracer reads some arguments by their names, and adds its headers."""
    # Without headers the tracer makes a list or a mapping, as it needs it.
    given = {} if headers is None else {"headers": headers}
    _Client.produce(
        producer, topic, value, key=key, partition=partition, on_delivery=delivery, timestamp=timestamp, **given
    )


if type(_Client.__dict__.get("produce")) is not MethodDescriptorType:
    # A tracer's subclass is in the place of the client's class (docs/frameworks.md). `isinstance` would not find that
    # out, since a wrapper imitates the class of the object that it wraps.
    _produce = _produce_by_name


class Producer(_Client):
    """`confluent_kafka.Producer` with one more kind of value for its setting `partitioner`.

    Everything else is the client's own: methods, settings, callbacks, transactions, errors.

    Args:
        *args: the client's: the configuration as a mapping.
        **kwargs: likewise, settings by keyword, which win.

    The setting `partitioner`, in the mapping or as a keyword, is

    - a name, or absent: librdkafka's own partitioners, as ever. Nothing changes, and no key moves;
    - a [`Partitioner`][kafka_assignors.Partitioner]: `DefaultPartitioner()`, `AdaptivePartitioner()`, one of your own.
      Its `on_new_batch` is called when a record is about to open a batch; this is an estimate, since librdkafka does
      not report its batches;
    - a function `(topic, key, serialized_key, value, serialized_value, cluster) -> int`: key and value as they were
      given, and as bytes; `cluster` has `partitions_for_topic(topic)` and `available_partitions_for_topic(topic)`.

    A partitioner is not called for records that name their partition. It is called on the thread that calls `produce`,
    with no lock held.

    The first record to a topic waits for the partitions of the topic, at most `topic.metadata.propagation.max.ms`.
    After that a thread reads them every `topic.metadata.refresh.interval.ms`, by default every ten seconds, since
    librdkafka does not report when it learns of another leader. `sticky.partitioning.linger.ms` has no effect on
    records that a partitioner of ours places.

    The load for an `AdaptivePartitioner` comes from the delivery reports and statistics that `poll` and `flush` serve:
    `statistics.interval.ms` becomes 1,000 if it was not set. Java's `partitioner.availability.timeout.ms` counts as
    well; 0, the default, is never.

    Raises:
        MissingDependencyError: on import, if confluent-kafka is not installed.
        OptionError: `partitioner` is none of these, or a setting is not a number. It is a `KafkaException` with
            `_INVALID_ARG` as well.
        StateError: the `Partitioner` serves another open producer.
        KafkaException: as the client, for its own settings.

    >>> from kafka_assignors import DefaultPartitioner
    >>> producer = Producer({"bootstrap.servers": "localhost:9092"}, partitioner=DefaultPartitioner())
    >>> isinstance(producer, confluent_kafka.Producer)
    True
    """

    _partitioning: Partitioning | None = None
    _closed = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        config = _settings(args, kwargs)
        if config is None:
            # The client refuses these arguments. For it, no keywords and empty ones are not the same.
            super().__init__(*args, **kwargs) if kwargs else super().__init__(*args)
            return
        partitioner = config.pop("partitioner", None)
        if partitioner is None or isinstance(partitioner, str):
            super().__init__(config if partitioner is None else config | {"partitioner": partitioner})
            return
        shared = isinstance(partitioner, Partitioner)
        if shared:
            refuse_shared(partitioner)
        with as_the_client():
            partitioning = Partitioning(partitioner, config)
        config.pop(AVAILABILITY_TIMEOUT, None)
        if partitioning.feedback is not None:
            _listen(config, partitioning.feedback)
        super().__init__(config)
        if shared:
            claim(partitioner, self, Producer._was_closed)
        self._partitioning = partitioning

    def flush(self, timeout: float = -1) -> int:
        """Sends everything and waits for it, as `confluent_kafka.Producer.flush` does. No batch is open then.

        Args:
            timeout: in seconds; -1 waits as long as it takes.

        Returns:
            How many records and events are still waiting.
        """
        left = super().flush(timeout)
        if left == 0 and self._partitioning is not None:
            self._partitioning.close_batches()
        return left

    if hasattr(_Client, "close"):

        def close(self) -> bool:
            """Closes as `confluent_kafka.Producer.close`. Then another producer may use the partitioner."""
            closed = super().close()
            self._closed = True
            return closed

        def __exit__(self, *raised: Any) -> bool | None:
            """Closes, as the client's own."""
            handled = super().__exit__(*raised)
            self._closed = True
            return handled

    def _was_closed(self) -> bool:
        return self._closed

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """As the client's."""
        if self._closed:
            # Up to 2.15 the client's own method crashes the process.
            raise RuntimeError("Handle has been closed")
        super().set_sasl_credentials(username, password)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            raise _internals.lacks(self, name)

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: Delivery | None = None,
        on_delivery: Delivery | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Hands a record over as `confluent_kafka.Producer.produce` does, to the partition that is chosen for it.

        Args:
            topic: where to.
            value: bytes, text, which is sent as UTF-8, or None.
            key: likewise. An empty key is a key.
            partition: -1 asks the partitioner.
            callback: called by `poll` or `flush` with the error or None, and the message.
            on_delivery: another name for `callback`, which wins if both are given.
            timestamp: milliseconds since 1970; 0 is now.
            headers: a list of pairs, or a mapping.

        Raises:
            BufferError: the client's queue is full. The record is not counted in any batch.
            PartitionerError: the partitioner failed, or returned a value that is no partition of the topic.
            TopicMetadataError: a `KafkaException`: the partitions of the topic could not be read.
            KafkaException: as the client.

        A record is sent, or this raises.
        """
        # An explicit None for `callback` would make the client forget `on_delivery`.
        delivery = on_delivery if callback is None else callback
        partitioning = self._partitioning
        if partitioning is None:
            return _produce(self, topic, value, key, partition, delivery, None, timestamp, headers)
        if partition != _UNASSIGNED:
            return self._produce_to(partitioning, topic, value, key, partition, delivery, timestamp, headers)
        serialized_key = key if key is None or key.__class__ is bytes else _serialized(key, "key")
        serialized_value = value if value is None or value.__class__ is bytes else _serialized(value, "value")
        number, batch = partitioning.place(self, topic, key, serialized_key, value, serialized_value)
        if partitioning.feedback is not None:
            delivery = partitioning.feedback.callback(batch, delivery)
        try:
            _produce(self, topic, serialized_value, serialized_key, number, delivery, None, timestamp, headers)
        except BaseException as refusal:
            if batch is not None:
                partitioning.take_back(topic, number, batch, serialized_key, serialized_value)
            if not partitioning.outdated(self, topic, refusal):
                raise
            Producer.produce(self, topic, value, key, partition, callback, on_delivery, timestamp, headers)

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Delivery | None = None,
        on_delivery: Delivery | None = None,
    ) -> int:
        """Hands many records over as `confluent_kafka.Producer.produce_batch` does, each to its own partition.

        With a partitioner of ours a message's own `partition` counts as well. confluent-kafka 2.16 documents it, but
        sends the whole list to the argument `partition`, or to one partition of its choice. The records of one
        partition stay in order.

        Args:
            topic: where to.
            messages: mappings with `value`, `key`, `partition` and `callback`, all optional. Those that the client
                refuses get an entry `_error`; nothing else in them is changed.
            partition: of messages that name none; -1 asks the partitioner.
            callback: of messages that have none.
            on_delivery: another name for `callback`, which wins if both are given.

        Returns:
            How many messages the client has accepted.

        Raises:
            TypeError: a message has a wrong type. No message was sent, as after the other errors.
            PartitionerError: as `produce`; also for a partition that is no 32-bit number.
            TopicMetadataError: as `produce`.
        """
        delivery = on_delivery if callback is None else callback
        partitioning = self._partitioning
        if partitioning is None or not _sound(messages, partition):
            taken: int = _produce_batch(self, topic, messages, partition, delivery)
            return taken
        placed: list[_Placed] = []
        sent = False
        count = 0
        try:
            placed.extend(self._placed(partitioning, topic, message, partition, delivery) for message in messages)
            groups: dict[int, list[dict[str, Any]]] = {}
            for each in placed:
                groups.setdefault(each.number, []).append(each.copy)
            for number, group in groups.items():
                count += _produce_batch(self, topic, group, number, delivery)
            sent = True
        finally:
            for message, each in zip(messages, placed, strict=False):
                refused = "_error" in each.copy
                if refused:
                    message["_error"] = each.copy["_error"]
                if each.batch is not None and (refused or not sent):
                    partitioning.take_back(topic, each.number, each.batch, each.copy.get("key"), each.copy.get("value"))
        return count

    def _placed(
        self, partitioning: Partitioning, topic: str, message: dict[str, Any], partition: int, delivery: Delivery | None
    ) -> _Placed:
        key, value, number = message.get("key"), message.get("value"), message.get("partition")
        if number is None:
            number = partition
        copy = message.copy()
        # An entry of an earlier call would mean that this message was refused.
        copy.pop("_error", None)
        if key is not None:
            copy["key"] = _serialized(key, "key")
        if value is not None:
            copy["value"] = _serialized(value, "value")
        batch: Batch | None
        if number == _UNASSIGNED:
            number, batch = partitioning.place(self, topic, key, copy.get("key"), value, copy.get("value"))
        elif _INT32_MIN <= number <= _INT32_MAX:
            batch = partitioning.follow(topic, number, copy.get("key"), copy.get("value"))
        else:
            raise PartitionerError(f"partition of a message is {number}; give the number of a partition")
        if partitioning.feedback is not None:
            copy["callback"] = partitioning.feedback.callback(batch, copy.get("callback") or delivery)
        return _Placed(number, copy, batch)

    def _produce_to(
        self,
        partitioning: Partitioning,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        delivery: Delivery | None,
        timestamp: int,
        headers: Any,
    ) -> None:
        """Hands over a record that names its partition. The client reports any error in it."""
        batch = (
            partitioning.follow(topic, partition, key, value)
            if isinstance(partition, int) and partitioning.tracks
            else None
        )
        if partitioning.feedback is not None:
            delivery = partitioning.feedback.callback(batch, delivery)
        try:
            _produce(self, topic, value, key, partition, delivery, None, timestamp, headers)
        except BaseException:
            if batch is not None:
                partitioning.take_back(topic, partition, batch, key, value)
            raise


if _produce_batch is None:
    # `__getattr__` then raises an error that names the release with this method.
    del Producer.produce_batch


class SerializingProducer(serializing_producer.SerializingProducer, Producer):  # type: ignore[misc]
    """`confluent_kafka.SerializingProducer` over our [`Producer`][kafka_assignors.clients.confluent.producer.Producer].

    Its one argument is a mapping of the client's settings, serializers included, and `partitioner` as for `Producer`. A
    partitioner gets key and value after the serializers: as bytes, or as `produce` was given them where there is no
    serializer.

    Raises:
        OptionError: as `Producer`.

    >>> from confluent_kafka.serialization import StringSerializer
    >>> from kafka_assignors import DefaultPartitioner
    >>> producer = SerializingProducer(
    ...     {
    ...         "bootstrap.servers": "localhost:9092",
    ...         "key.serializer": StringSerializer(),
    ...         "partitioner": DefaultPartitioner(),
    ...     }
    ... )
    """


class _Placed(NamedTuple):
    """A copy of a message of a list, its partition, and its batch."""

    number: int
    copy: dict[str, Any]
    batch: Batch | None


def _sound(messages: object, partition: object) -> bool:
    """Whether the client would accept the list of messages. If not, the client refuses all, with its own error."""
    return (
        isinstance(partition, int)
        and isinstance(messages, list)
        and all(
            isinstance(message, dict)
            and isinstance(message.get("key"), _PART)
            and isinstance(message.get("value"), _PART)
            and isinstance(message.get("partition"), int | None)
            and message.get("timestamp") is None
            for message in messages
        )
    )


def _serialized(part: object, field: str) -> bytes:
    if isinstance(part, str):
        return part.encode()
    if isinstance(part, bytes):
        return bytes(part)
    raise PartitionerTypeError(f"{field} is of type {type(part).__name__}; give bytes, text or None")


def _settings(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The client's configuration from its arguments; None if the client will refuse them."""
    if len(args) > 1 or (args and not isinstance(args[0], dict)) or not (args or kwargs):
        return None
    return {**(args[0] if args else {}), **kwargs}


def _listen(config: dict[str, Any], feedback: QueueFeedback) -> None:
    """Routes statistics and all delivery reports to `feedback`. The user's callbacks are called as before."""
    config.pop("delivery.report.only.error", None)
    asked = config.get("statistics.interval.ms") not in (None, 0, "0")
    own = config.get("stats_cb") if asked else None
    if not asked:
        config["statistics.interval.ms"] = _STATISTICS_MS

    def read(text: str) -> None:
        feedback.statistics(text)
        if own is not None:
            own(text)

    config["stats_cb"] = read
