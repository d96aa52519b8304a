"""The private attributes of aiokafka. They are touched here and nowhere else.

Each function first checks that this version of the client has the attribute. If not, a plug-in gets an answer with
which it works as with the public API alone. A producer cannot work without them, so it gets an
`IncompatibleClientError` before anything is sent.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import cluster
from aiokafka.consumer import group_coordinator

from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.errors import IncompatibleClientError, PartitionerTypeError
from kafka_assignors.partitioners import register_cluster_type

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

__all__ = [
    "HookedProducer",
    "Record",
    "accumulator_of",
    "as_coordinator",
    "assigning_method",
    "batch_size",
    "check_producer",
    "client_of",
    "client_settings",
    "coordinator_closed",
    "coordinator_of",
    "is_closed",
    "last_batch",
    "loop_of",
    "membership_of",
    "queues",
    "reading_settings",
    "replace_assigning_method",
    "session_timeout",
    "strategy_count",
    "takes_records",
    "wake_sender",
]

Record = tuple[str, Any, Any, Any, Any]
"""Topic, key, value, serialized key and serialized value."""


# Partitioners read a topic's partitions here. If a version has no such class or attribute, they call the public methods
# instead.
if hasattr(cluster, "ClusterMetadata"):
    register_cluster_type(cluster.ClusterMetadata, "_partitions")


def is_closed(client: Any) -> bool:
    """Whether a consumer or a producer is closed; False if this version does not show it."""
    return bool(getattr(client, "_closed", False))


# Consumers.

_COORDINATORS: tuple[type, ...] = tuple(filter(None, [getattr(group_coordinator, "GroupCoordinator", None)]))
# The object that calls an assignor's `metadata`; there is a new one for each rebalance.
_REBALANCES: tuple[type, ...] = tuple(filter(None, [getattr(group_coordinator, "CoordinatorGroupRebalance", None)]))


def as_coordinator(caller: object) -> Any | None:
    """The coordinator that `caller` is, or belongs to; None if it is neither."""
    if isinstance(caller, _REBALANCES):
        _, caller = coordinator_of(caller)
    return caller if isinstance(caller, _COORDINATORS) else None


def membership_of(coordinator: Any) -> Membership | None:
    """The membership of a coordinator's consumer; None if this version does not show it."""
    try:
        return Membership(coordinator.generation, coordinator.member_id)
    except AttributeError:
        return None


def coordinator_of(owner: Any) -> tuple[bool, Any | None]:
    """Whether this version shows the coordinator of a consumer or of a rebalance; and the coordinator."""
    absent = object()
    coordinator = getattr(owner, "_coordinator", absent)
    return (False, None) if coordinator is absent else (True, coordinator)


def coordinator_closed(coordinator: Any) -> bool:
    """Whether a coordinator is being closed; False if this version does not show it."""
    try:
        return bool(coordinator._closing.done())
    except AttributeError:
        return False


def strategy_count(coordinator: Any) -> int:
    """The number of strategies of a consumer; 0 if this version does not show it."""
    return len(getattr(coordinator, "_assignors", ()))


def session_timeout(coordinator: Any) -> float:
    """The session timeout in seconds; infinite if this version does not show it."""
    timeout: float = getattr(coordinator, "_session_timeout_ms", math.inf) / 1000
    return timeout


def assigning_method(coordinator: Any) -> Callable[[Any, Any], Any] | None:
    """The method of the coordinator's class that calls the leader's assignor; None if it is no coroutine function."""
    plain = getattr(type(coordinator), "_perform_assignment", None)
    return plain if inspect.iscoroutinefunction(plain) else None


def replace_assigning_method(coordinator: Any, method: Callable[[Any], Any]) -> None:
    """Replaces that method in this coordinator. Only for one in which `assigning_method` has found it."""
    coordinator._perform_assignment = method


def client_of(coordinator: Any) -> Any:
    """The client of a coordinator, which has the connections to the brokers.

    Raises:
        AttributeError: this version does not show it.
    """
    return coordinator._client


def loop_of(client: Any) -> asyncio.AbstractEventLoop:
    """The event loop of a client.

    Raises:
        AttributeError: this version does not show it.
    """
    loop: asyncio.AbstractEventLoop = client._loop
    return loop


def client_settings(client: Any, names: Iterable[str]) -> dict[str, Any]:
    """Settings of a client.

    Raises:
        AttributeError: this version does not show them.
    """
    return {name: getattr(client, f"_{name}") for name in names}


def reading_settings(consumer: Any) -> tuple[str, str]:
    """A consumer's `auto_offset_reset` and `isolation_level`.

    Raises:
        AttributeError: this version does not show them.
    """
    return consumer._auto_offset_reset, consumer._isolation_level


# Producers.


class HookedProducer(aiokafka.AIOKafkaProducer):  # type: ignore[misc]
    """aiokafka's producer, which gets the partition of each record from a subclass."""

    def _serialize(self, key: Any, value: Any, headers: Any) -> tuple[bytes | None, bytes | None]:
        try:
            serialized: tuple[bytes | None, bytes | None] = super()._serialize(key, value, headers)
        except TypeError as error:
            # aiokafka's error does not say which part of the record should be bytes.
            if self._key_serializer is None and not isinstance(key, bytes | bytearray | memoryview | None):
                raise PartitionerTypeError(
                    f"the key of a record is of type {type(key).__name__}: give bytes, or the producer a key_serializer"
                ) from error
            raise
        return serialized

    def _partition(
        self, topic: str, partition: int | None, key: Any, value: Any, serialized_key: Any, serialized_value: Any
    ) -> Any:
        """The partition of a record. `send` calls it right before the record is appended."""
        chosen = self._place(partition, (topic, key, value, serialized_key, serialized_value))
        if chosen is not None:
            return chosen
        return super()._partition(topic, partition, key, value, serialized_key, serialized_value)

    @abstractmethod
    def _place(self, partition: int | None, record: Record) -> int | None:
        """The partition of the next record, which may name `partition`; None leaves the choice to aiokafka."""


def check_producer() -> None:
    """Checks for all private attributes of a producer's class.

    Raises:
        IncompatibleClientError: aiokafka's internals have changed.
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


def accumulator_of(producer: Any) -> Any:
    """A producer's accumulator, which has its batches. Checks for all its private attributes.

    Raises:
        IncompatibleClientError: aiokafka's internals have changed.
    """
    try:
        accumulator = producer._message_accumulator
        for name in ("_closed", "_exception", "_batches", "_batch_size", "_waiter_future"):
            getattr(accumulator, name)
    except AttributeError as error:
        raise _incompatible(error) from error
    return accumulator


def _incompatible(reason: object) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"aiokafka {aiokafka.__version__} cannot be told which partition comes next ({reason}): install aiokafka 0.14"
    )


# `accumulator_of` has checked for all attributes that the functions below touch.


def takes_records(accumulator: Any) -> bool:
    """Whether an accumulator takes records: it is not closed, and has not failed."""
    return not accumulator._closed and accumulator._exception is None


def last_batch(accumulator: Any, topic_partition: Any) -> Any | None:
    """The newest batch of a partition, which takes records; None if there is none."""
    batches = accumulator._batches.get(topic_partition)
    return batches[-1] if batches else None


def wake_sender(accumulator: Any) -> None:
    """Makes the sender look at the batches now."""
    if not accumulator._waiter_future.done():
        accumulator._waiter_future.set_result(None)


def queues(accumulator: Any) -> Iterable[tuple[Any, Any]]:
    """Each partition with its batches, the oldest first."""
    found: Iterable[tuple[Any, Any]] = accumulator._batches.items()
    return found


def batch_size(accumulator: Any) -> int:
    """The bytes that a batch can take."""
    size: int = accumulator._batch_size
    return size
