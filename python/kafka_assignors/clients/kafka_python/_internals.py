"""The private attributes of kafka-python. They are touched here and nowhere else.

Each function first checks that this version of the client has the attribute. If not, a plug-in gets an answer with
which it works as with the public API alone. A producer cannot work without them, so it gets an
`IncompatibleClientError` before anything is sent.
"""

from __future__ import annotations

import contextlib
import inspect
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import kafka
from kafka.cluster import ClusterMetadata
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder

from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.errors import IncompatibleClientError
from kafka_assignors.partitioners import register_cluster_type

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "HookedProducer",
    "accumulator_of",
    "add_to_transaction",
    "as_coordinator",
    "close_batch",
    "close_connections",
    "coordinator_of",
    "forget_positions",
    "given_api_version",
    "is_closed",
    "membership_of",
    "metadata_of",
    "partition_lock",
    "queue_lengths",
    "queue_of",
    "rebalance_protocol",
    "refreshed_ms",
    "replica_racks",
    "sender_wakeup",
    "stopped_heartbeats",
]


# Partitioners read a topic's partitions here. If a version has no such attribute, they call the public methods instead.
register_cluster_type(ClusterMetadata, "_partitions")


def is_closed(client: Any, *, unknown: bool = False) -> bool:
    """Whether a consumer or a producer is closed; `unknown` if this version does not show it."""
    return bool(getattr(client, "_closed", unknown))


# Consumers.


def as_coordinator(caller: object) -> Any | None:
    """`caller` if it is a consumer's coordinator, else None."""
    return caller if isinstance(caller, ConsumerCoordinator) else None


def membership_of(coordinator: Any) -> Membership | None:
    """The membership of a coordinator's consumer; None if this version does not show it."""
    try:
        metadata = coordinator.group_metadata()
        return Membership(metadata.generation_id, metadata.member_id)
    except AttributeError:
        return None


def coordinator_of(consumer: Any) -> Any | None:
    """A consumer's coordinator; None if this version does not show it."""
    return getattr(consumer, "_coordinator", None)


def stopped_heartbeats(coordinator: Any) -> bool:
    """Whether a coordinator is closed and sends no heartbeats; False if this version does not show it."""
    return bool(getattr(coordinator, "_heartbeat_closed", False))


def rebalance_protocol(coordinator: Any) -> Any | None:
    """The `RebalanceProtocol` of the group's members; None if this version does not show it."""
    return getattr(coordinator, "_rebalance_protocol", None)


def refreshed_ms(cluster: Any) -> float | None:
    """When the metadata was last replaced, in milliseconds of `time.monotonic`; None if it is not shown."""
    refreshed = getattr(cluster, "_last_successful_refresh_ms", None)
    return refreshed if isinstance(refreshed, int | float) else None


def replica_racks(cluster: Any, topic: str, count: int) -> list[frozenset[str]] | None:
    """The racks of the replicas of each of a topic's partitions.

    None if no broker has a rack, or this version does not show them.
    """
    try:
        partitions = cluster._partitions[topic]
        rack_of = {broker.node_id: broker.rack for broker in cluster.brokers() if broker.rack}
        replicas = {number: partition.replica_nodes for number, partition in partitions.items()}
    except (AttributeError, KeyError):
        return None
    if not rack_of:
        return None
    return [frozenset(rack_of[node] for node in replicas.get(number, ()) if node in rack_of) for number in range(count)]


def forget_positions(coordinator: Any) -> None:
    """Makes all assigned partitions start at the group's commits; nothing if this version shows no subscription."""
    subscription = getattr(coordinator, "_subscription", None)
    if subscription is not None:
        assigned = list(subscription.assigned_partitions())
        subscription.assign_from_subscribed([])
        subscription.assign_from_subscribed(assigned)


def close_connections(coordinator: Any) -> None:
    """Closes the connections of a consumer whose constructor fails. Its caller never gets the object to close it."""
    # The error of the constructor is the one to report.
    with contextlib.suppress(Exception):
        coordinator._client.close()


def given_api_version(consumer: Any) -> Any | None:
    """The `api_version` that the user gave; None without one, or if this version does not show it.

    The version in the consumer's own configuration may be one that it found by itself.
    """
    try:
        return consumer._client._manager.config["api_version"]
    except (AttributeError, KeyError):
        return None


# Producers.


class HookedProducer(kafka.KafkaProducer):  # type: ignore[misc]
    """kafka-python's producer, which gets the partition of each record that names none from a subclass."""

    def _partition(
        self, topic: str, partition: int | None, key: Any, value: Any, serialized_key: Any, serialized_value: Any
    ) -> Any:
        """The partition of a record. `send` calls it."""
        if partition is not None:
            self._note_given_partition()
            return super()._partition(topic, partition, key, value, serialized_key, serialized_value)
        return self._choose_partition(topic, key, value, serialized_key, serialized_value, self._metadata)

    @abstractmethod
    def _note_given_partition(self) -> None:
        """Takes note that the next record names its partition."""

    @abstractmethod
    def _choose_partition(
        self, topic: str, key: Any, value: Any, serialized_key: Any, serialized_value: Any, metadata: Any
    ) -> int:
        """The partition of the next record; `metadata` is the client's metadata of the cluster."""


def accumulator_of(producer: Any) -> Any:
    """A producer's accumulator, which has its batches. Checks for all private attributes of a producer.

    Raises:
        IncompatibleClientError: kafka-python's internals have changed.
    """
    try:
        accumulator = producer._accumulator
        parameters = inspect.signature(accumulator.append).parameters
        found = (
            "abort_on_new_batch" in parameters,
            hasattr(accumulator, "_batches") and callable(accumulator._tp_lock),
            callable(accumulator.ready) and callable(accumulator.drain) and callable(producer._sender.wakeup),
            callable(producer._metadata.leader_for_partition) and hasattr(producer, "_transaction_manager"),
            hasattr(MemoryRecordsBuilder, "_builder") and hasattr(MemoryRecordsBuilder, "_batch_size"),
            hasattr(DefaultRecordBatchBuilder, "_batch_size"),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise _incompatible(error) from error
    if not all(found):
        raise _incompatible("its accumulator is not the one we know")
    return accumulator


def _incompatible(reason: object) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"kafka-python {kafka.__version__} cannot be told to close a batch ({reason}): install kafka-python 3.0, or "
        "use the partitioner without attach and without our KafkaProducer, with a linger_ms of 0"
    )


# `accumulator_of` has checked for all attributes that the functions below touch.


def metadata_of(producer: Any) -> Any:
    """A producer's metadata of its cluster."""
    return producer._metadata


def sender_wakeup(producer: Any) -> Callable[[], None]:
    """The function that wakes a producer's sender."""
    wakeup: Callable[[], None] = producer._sender.wakeup
    return wakeup


def add_to_transaction(producer: Any, topic_partition: Any) -> None:
    """Adds a partition to the producer's transaction, if it has one."""
    transactions = producer._transaction_manager
    if transactions is not None and transactions.is_transactional():
        transactions.maybe_add_partition_to_transaction(topic_partition)


def partition_lock(accumulator: Any, topic_partition: Any) -> Any:
    """The lock of the queue of a partition."""
    return accumulator._tp_lock(topic_partition)


def queue_of(accumulator: Any, topic_partition: Any) -> Any:
    """The batches of a partition, the oldest first. The caller holds its lock."""
    return accumulator._batches[topic_partition]


def queue_lengths(accumulator: Any) -> list[tuple[Any, int]]:
    """The number of batches of each partition."""
    return [(topic_partition, len(queue)) for topic_partition, queue in list(accumulator._batches.items())]


def close_batch(records: Any) -> None:
    """Closes a batch for further records and makes it count as full.

    The batch's own `close` would build the bytes. An idempotent producer, the default, writes its id and sequence when
    the batch is drained; on a batch that is already built it fails, and the records are lost without an error.
    """
    if records._builder is not None:
        records._batch_size = records._builder._batch_size = 0
