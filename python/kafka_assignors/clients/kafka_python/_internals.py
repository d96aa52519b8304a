"""The private attributes of kafka-python, and the differences of its releases. No other module uses them.

Each function first checks that this version of the client has the attribute. If not, a function for plug-ins returns a
value with which a plug-in works as with the public API alone. A function for producers raises
`IncompatibleClientError`; then the producer still partitions its records, but closes no batches.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import kafka
from kafka.cluster import ClusterMetadata
from kafka.consumer.subscription_state import SubscriptionState, TopicPartitionState
from kafka.coordinator.assignors import abstract
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import OffsetAndMetadata, TopicPartition

from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.errors import IncompatibleClientError, StateError
from kafka_assignors.partitioners import register_cluster_type

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping

__all__ = [
    "COOPERATES",
    "KEEPS_POSITIONS",
    "LOSES_PAUSED_RECORDS",
    "NAMES_INSTANCES",
    "STOPS_WITH_LISTENERS",
    "HookedConsumer",
    "HookedProducer",
    "JoinedMetadata",
    "aborts_on_new_batch",
    "accumulator_of",
    "add_to_transaction",
    "append_to_open",
    "as_coordinator",
    "as_plug_in",
    "assigned_by",
    "close_batch",
    "close_connections",
    "coordinator_of",
    "forget_positions",
    "frame_limit",
    "given_api_version",
    "introduce",
    "is_closed",
    "isolation_name",
    "joined_metadata",
    "membership_of",
    "metadata_of",
    "partition_lock",
    "position_of",
    "queue_lengths",
    "queue_of",
    "rebalance_protocols",
    "rebalances_cooperatively",
    "refresh_under_way",
    "refreshed_ms",
    "replica_racks",
    "run_coroutine",
    "sender_wakeup",
    "show_subscription",
    "start_at",
    "stopped_heartbeats",
]


# Partitioners read a topic's partitions in this attribute. In a version without it they call the public methods.
register_cluster_type(ClusterMetadata, "_partitions")


def is_closed(client: Any, *, unknown: bool = False) -> bool:
    """Whether a consumer or a producer is closed; `unknown` if this version does not show it."""
    return bool(getattr(client, "_closed", unknown))


# Plug-ins.


COOPERATES = hasattr(abstract, "RebalanceProtocol")
"""Whether consumers rebalance cooperatively, and ask a plug-in for its protocol: from 3.0 on."""

NAMES_INSTANCES = "group_instance_id" in ConsumerCoordinator.DEFAULT_CONFIG
"""Whether a plug-in receives the instance ids of the group's members: from 2.3 on."""


def _keeps_positions() -> bool:
    """Whether a partition keeps its position when it is assigned again. True if this version does not show it."""
    try:
        state, partition = SubscriptionState(), TopicPartition("t", 0)
        state.subscribe(topics=["t"])
        state.assign_from_subscribed([partition])
        before = state.assignment[partition]
        state.assign_from_subscribed([partition])
        return state.assignment[partition] is before
    except (AttributeError, TypeError, KeyError):
        return True


KEEPS_POSITIONS = _keeps_positions()
"""Whether the client's own consumer keeps the positions of kept partitions: from 3.0 on."""


def _stops_with_listeners() -> bool:
    mark = getattr(TopicPartitionState, "mark_pending_revocation", None)
    return mark is not None and len(inspect.signature(mark).parameters) == 1


STOPS_WITH_LISTENERS = _stops_with_listeners()
"""Whether the client's own consumer stops reading after a rebalance if it has a listener: from 3.0.0 to 3.0.8."""


def rebalance_protocols(*, cooperative: bool) -> list[Any]:
    """The protocols that a plug-in returns to a consumer that asks for them."""
    return [abstract.RebalanceProtocol.COOPERATIVE if cooperative else abstract.RebalanceProtocol.EAGER]


def as_plug_in(plug_in: type) -> None:
    """Makes the client take the class as a plug-in; older releases take any object."""
    register = getattr(abstract.AbstractPartitionAssignor, "register", None)
    if register is not None:
        register(plug_in)


class JoinedMetadata(NamedTuple):
    """The metadata of a member of the group, as far as the client decodes them."""

    member_id: str
    instance_id: str | None
    version: int
    topics: list[str]
    user_data: bytes | None
    owned: list[tuple[str, list[int]]]
    generation: int
    rack: str | None


def joined_metadata(members: Any) -> Iterator[JoinedMetadata]:
    """The members that a leader assigns to.

    Before 3.0 they are a mapping, and the client decodes the fields of the first version only.
    """
    if hasattr(members, "items"):
        for member_id, sent in members.items():
            topics = sent.topics if hasattr(sent, "topics") else sent.subscription
            instance = getattr(sent, "group_instance_id", None)
            yield JoinedMetadata(member_id, instance, 0, topics, sent.user_data, [], -1, None)
        return
    for member in members:
        sent = member.metadata
        owned = [(each.topic, each.partitions) for each in sent.owned_partitions or ()]
        who = member.member_id, member.group_instance_id
        yield JoinedMetadata(*who, sent.version, sent.topics, sent.user_data, owned, sent.generation_id, sent.rack_id)


def assigned_by(assignment: Any) -> list[tuple[str, list[int]]]:
    """The partitions of a decoded assignment."""
    if hasattr(assignment, "assigned_partitions"):
        return [(each.topic, each.partitions) for each in assignment.assigned_partitions or ()]
    return [(topic, partitions) for topic, partitions in assignment.assignment or ()]


# Consumers.


def as_coordinator(caller: object) -> Any | None:
    """`caller` if it is a consumer's coordinator, else None."""
    return caller if isinstance(caller, ConsumerCoordinator) else None


def membership_of(coordinator: Any) -> Membership | None:
    """The membership of a coordinator's consumer; None if this version does not show it."""
    try:
        # Before 3.0 no method shows it while the group rebalances.
        show = getattr(coordinator, "group_metadata", None)
        metadata = coordinator._generation if show is None else show()
        return Membership(metadata.generation_id, metadata.member_id)
    except AttributeError:
        return None


def coordinator_of(consumer: Any) -> Any | None:
    """A consumer's coordinator; None if this version does not show it."""
    return getattr(consumer, "_coordinator", None)


def stopped_heartbeats(coordinator: Any) -> bool:
    """Whether a coordinator is closed and sends no heartbeats; False if this version does not show it."""
    closed = getattr(coordinator, "_heartbeat_closed", None)
    return is_closed(getattr(coordinator, "_client", None)) if closed is None else bool(closed)


def rebalances_cooperatively(coordinator: Any) -> bool:
    """Whether the group's members rebalance cooperatively; False if this version does not show it."""
    return getattr(getattr(coordinator, "_rebalance_protocol", None), "name", None) == "COOPERATIVE"


def refreshed_ms(cluster: Any) -> float | None:
    """When the metadata was last replaced, in milliseconds of `time.monotonic`; None if it is not shown."""
    refreshed = getattr(cluster, "_last_successful_refresh_ms", None)
    if not isinstance(refreshed, int | float):
        return None
    wall, monotonic = time.time() * 1000, time.monotonic() * 1000
    # Before 3.0 the client counts from 1970.
    return refreshed - wall + monotonic if abs(refreshed - wall) < abs(refreshed - monotonic) else refreshed


def refresh_under_way(cluster: Any) -> Any | None:
    """The future of the metadata request that is under way, of which there is one at a time.

    None if there is none, or this version does not show it.
    """
    return (
        getattr(cluster, "_refresh_future", None) if getattr(cluster, "metadata_refresh_in_progress", False) else None
    )


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


def isolation_name(level: Any) -> str:
    """The name of an isolation level. From 3.0 on the level may be given as a number or the client's constant, too."""
    if isinstance(level, str):
        return level.lower()
    from kafka.protocol.consumer import IsolationLevel

    name: str = IsolationLevel.build_from(level).name
    return name.lower()


# Consumers whose membership is ours.


# The client's class is stored at import, since programs may put our class in its place later.
_Consumer = kafka.KafkaConsumer


class HookedConsumer(kafka.KafkaConsumer):  # type: ignore[misc]
    """kafka-python's consumer, whose iteration takes the records of a group from a subclass.

    The client's own generator does not attend to the group between the records of one batch, and drops the rest of the
    batch when any partition is sought.
    """

    def _next_records(self) -> Generator[Any, None, None] | None:
        """The next records, ending at `consumer_timeout_ms`; None if the client finds them by itself."""
        return None

    def _message_generator_v2(self) -> Any:
        """The records over which the client's `__next__` iterates. When they end, the client calls this again."""
        records = self._next_records()
        return super()._message_generator_v2() if records is None else records

    if not hasattr(_Consumer, "_message_generator_v2"):

        def __next__(self) -> Any:
            """As the client's. A tracer that has replaced the client's `__next__` does not see these calls."""
            records = None if is_closed(self) else self._next_records()
            if records is None:
                return super().__next__()
            return next(records)


def position_of(consumer: Any, partition: Any) -> tuple[int, int] | None:
    """The next offset of a partition and its leader epoch or -1, without a request; None if there is no position yet.

    The public method asks for the offsets of all partitions first.
    """
    try:
        position = consumer._subscription.assignment[partition].position
    except KeyError:
        return None
    except AttributeError:
        offset = _Consumer.position(consumer, partition, timeout_ms=0)
        return None if offset is None else (offset, -1)
    if position is None or isinstance(position, int):
        return None if position is None else (position, -1)
    epoch = getattr(position, "leader_epoch", -1)
    return position.offset, -1 if epoch is None else epoch


def start_at(consumer: Any, partition: Any, offset: int, leader_epoch: int) -> None:
    """Seeks, and keeps the leader epoch of a commit, so that the client notices a truncated log (KIP-320).

    The public method takes no epoch, and its time is proportional to the number of all partitions.
    """
    seek = getattr(getattr(consumer, "_subscription", None), "assignment", {}).get(partition, None)
    if seek is None:
        _Consumer.seek(consumer, partition, offset)
    elif _TAKES_EPOCHS:
        seek.seek(OffsetAndMetadata(offset, "", leader_epoch))
    else:
        seek.seek(offset)


def _takes_epochs() -> bool:
    """Whether a partition's position is an offset with its leader epoch, and may be sought as such."""
    try:
        state = TopicPartitionState()
        state.seek(5)
        made = state.position
        state.seek(OffsetAndMetadata(5, "", 1))
        return bool(made.offset == state.position.offset and state.position.leader_epoch == 1)
    except (AttributeError, TypeError):
        return False


_TAKES_EPOCHS = _takes_epochs()
LOSES_PAUSED_RECORDS = hasattr(TopicPartitionState(), "last_offset_from_message_batch")
"""Whether the client drops the fetched records of a paused partition, and goes on after them (up to 2.1.1)."""


def frame_limit(settings: Mapping[str, Any]) -> int | None:
    """The bytes of the largest response that the client must accept; None if its limit allows that, or it has no limit.

    kafka-python 3.0.0 lets a broker send `fetch_max_bytes` and closes the connection at a response of 1 MB, so that it
    never reads a backlog. Later releases raise the limit to the size that they request.

    Args:
        settings: the client's defaults, and the user's values in place of some.
    """
    limit = settings.get("receive_message_max_bytes")
    if limit is None:
        return None
    # As later releases: a response is longer than its records.
    needed = int(settings["fetch_max_bytes"]) + int(settings["max_partition_fetch_bytes"])
    return needed if int(limit) < needed else None


def introduce(consumer: Any, topics: Iterable[str]) -> None:
    """Makes the client fetch the metadata of topics, which also creates them if it may; nothing without such a method.

    The client keeps these topics until it is assigned partitions.
    """
    for owner in ("_cluster", "_client"):
        set_topics = getattr(getattr(consumer, owner, None), "set_topics", None)
        if set_topics is not None:
            set_topics(list(topics))
            return


def show_subscription(consumer: Any, topics: set[str] | None) -> None:
    """Sets the attribute in which instrumentation reads the topics of a subscription.

    The client does not read it while it has assigned partitions. Up to version 2.0 it is not set, since the client
    would then refuse to assign partitions.
    """
    subscription: Any = getattr(consumer, "_subscription", None)
    if hasattr(subscription, "subscription_type"):
        subscription.subscription = topics


def run_coroutine(consumer: Any, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
    """Runs a coroutine function on the client's own event loop, which is not asyncio's, and waits for its end.

    If the client has no loop, the coroutine must not wait for anything.

    Raises:
        StateError: there is no loop, and the coroutine waits.
    """
    run = getattr(getattr(consumer, "_net", None), "run", None)
    if run is not None:
        run(function, *arguments)
        return
    coroutine = function(*arguments)
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise StateError(
        f"the listener's {function.__name__} waits, and kafka-python {kafka.__version__} has no event loop; "
        "install kafka-python 3, or use a listener with ordinary methods"
    )


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
        metadata = getattr(self, "_metadata", None)
        if metadata is None:
            # The client calls the partitioner by its own rules; `accumulator_of` has refused this version as well.
            return super()._partition(topic, partition, key, value, serialized_key, serialized_value)
        return self._choose_partition(topic, key, value, serialized_key, serialized_value, metadata)

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
        parameters = list(inspect.signature(accumulator.append).parameters)
        has_method = hasattr(accumulator, "_tp_lock")
        known = {
            "append": parameters[:5] == ["tp", "timestamp_ms", "key", "value", "headers"],
            "_batches": hasattr(accumulator, "_batches"),
            "_closed": hasattr(accumulator, "_closed"),
            "_tp_lock": callable(accumulator._tp_lock) if has_method else None in accumulator._tp_locks,
            "_appends_in_progress": "abort_on_new_batch" in parameters or hasattr(accumulator, "_appends_in_progress"),
            "ready": callable(accumulator.ready),
            "drain": callable(accumulator.drain),
            "KafkaProducer._sender.wakeup": callable(producer._sender.wakeup),
            "KafkaProducer._metadata.leader_for_partition": callable(producer._metadata.leader_for_partition),
            "MemoryRecordsBuilder._builder": hasattr(MemoryRecordsBuilder, "_builder"),
            "MemoryRecordsBuilder._batch_size": hasattr(MemoryRecordsBuilder, "_batch_size"),
            "DefaultRecordBatchBuilder._batch_size": hasattr(DefaultRecordBatchBuilder, "_batch_size"),
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise _incompatible(error) from error
    unknown = [name if "." in name else f"RecordAccumulator.{name}" for name, is_known in known.items() if not is_known]
    if unknown:
        raise _incompatible(f"{' and '.join(unknown)} changed or missing")
    return accumulator


def _incompatible(reason: object) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"the batches of kafka-python {kafka.__version__} are not such as this package can close ({reason}): "
        "install kafka-python 3.0"
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
    transactions = getattr(producer, "_transaction_manager", None)
    if transactions is not None and transactions.is_transactional():
        transactions.maybe_add_partition_to_transaction(topic_partition)


def partition_lock(accumulator: Any, topic_partition: Any) -> Any:
    """The lock of the queue of a partition."""
    if hasattr(accumulator, "_tp_lock"):
        return accumulator._tp_lock(topic_partition)
    # Up to 2.1 `append` makes the locks.
    locks = accumulator._tp_locks
    with locks[None]:
        return locks.setdefault(topic_partition, threading.Lock())


def aborts_on_new_batch(accumulator: Any) -> bool:
    """Whether the accumulator's `append` can say that a record would open a batch: from 3.0 on."""
    return "abort_on_new_batch" in inspect.signature(accumulator.append).parameters


def append_to_open(accumulator: Any, append: Any, topic_partition: Any, *record: Any, **options: Any) -> Any | None:
    """The result of an `append` for a record that needs no new batch. None if it needs one.

    For an accumulator whose own `append` cannot return without a new batch.

    Args:
        accumulator: the producer's.
        append: its own `append`.
        topic_partition: of the record.
        record: timestamp, key, value and headers, and further arguments of `append`.
        options: likewise.
    """
    if accumulator._closed:
        # Raises the client's own error.
        return append(topic_partition, *record, **options)
    # `close` of the producer waits until no append is under way.
    accumulator._appends_in_progress.increment()
    try:
        with partition_lock(accumulator, topic_partition):
            queue = queue_of(accumulator, topic_partition)
            future = queue[-1].try_append(*record[:4]) if queue else None
            return None if future is None else (future, len(queue) > 1 or queue[-1].records.is_full(), False)
    finally:
        accumulator._appends_in_progress.decrement()


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
