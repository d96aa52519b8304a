"""The private attributes of aiokafka. No other module uses them.

Each function first checks that this version of the client has the attribute. If not, a function for plug-ins returns a
value with which a plug-in works as with the public API alone. A function for producers, or for the settings of a second
client, raises `IncompatibleClientError` before anything is sent.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from abc import abstractmethod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import cluster
from aiokafka.consumer import group_coordinator, subscription_state

from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.errors import IncompatibleClientError, PartitionerTypeError
from kafka_assignors.partitioners import register_cluster_type

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from kafka_assignors.clients.aiokafka.gate import Gate

__all__ = [
    "HookedProducer",
    "Record",
    "SubscriptionRules",
    "Table",
    "accumulator_of",
    "as_coordinator",
    "assigning_method",
    "batch_size",
    "check_producer",
    "client_of",
    "coordinator_closed",
    "coordinator_of",
    "count_gets_exactly",
    "exchange_coordinator",
    "fail_waiting_gets",
    "is_closed",
    "last_batch",
    "last_get",
    "loop_of",
    "membership_of",
    "native_client",
    "native_coordinator",
    "own_loop",
    "queues",
    "reading_settings",
    "replace_assigning_method",
    "replace_coordinator",
    "session_timeout",
    "settings_of_client",
    "show_group",
    "strategy_count",
    "table_of",
    "takes_records",
    "wake_sender",
    "without_group",
]

# The client's class is stored at import, since programs may put our class in its place later.
_Consumer = aiokafka.AIOKafkaConsumer

Record = tuple[str, Any, Any, Any, Any]
"""Topic, key, value, serialized key and serialized value."""


# Partitioners read a topic's partitions in this attribute. In a version without this class or attribute they call the
# public methods.
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
    """The coordinator, if `caller` is one or belongs to one; else None."""
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
    """Replaces the method that `assigning_method` has found in this coordinator."""
    coordinator._perform_assignment = method


def _setting(owner: Any, name: str) -> Any:
    """A setting that a second client of the same cluster needs.

    Raises:
        IncompatibleClientError: this version does not show it.
    """
    try:
        return getattr(owner, f"_{name}")
    except AttributeError as error:
        raise IncompatibleClientError(
            f"this version of aiokafka does not show the consumer's settings ({error})"
        ) from error


def client_of(coordinator: Any) -> Any:
    """The client of a coordinator, with the connections. Raises an IncompatibleClientError as `_setting`."""
    return _setting(coordinator, "client")


def loop_of(client: Any) -> asyncio.AbstractEventLoop:
    """The event loop of a client. Raises an IncompatibleClientError as `_setting`."""
    loop: asyncio.AbstractEventLoop = _setting(client, "loop")
    return loop


def settings_of_client(client: Any, names: Iterable[str]) -> dict[str, Any]:
    """Settings of a client. Raises an IncompatibleClientError as `_setting`."""
    return {name: _setting(client, name) for name in names}


def reading_settings(consumer: Any) -> tuple[str, str]:
    """A consumer's `auto_offset_reset` and `isolation_level`. Raises an IncompatibleClientError as `_setting`."""
    return _setting(consumer, "auto_offset_reset"), _setting(consumer, "isolation_level")


# Consumers whose group our member runs.

# What `SubscriptionRules` uses of the client's table.
_SUBSCRIPTION = (
    "assign_from_user",
    "listener",
    "partitions_auto_assigned",
    "subscribed_pattern",
    "subscription",
    "topics",
    "unsubscribe",
)


class SubscriptionRules:
    """The subscription of a consumer, by the client's own rules: the errors are those of the installed release.

    The client's `subscribe` and `assign` are called on a stand-in, so that the consumer's own table does not change.

    Raises:
        IncompatibleClientError: this version keeps a subscription in another way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._state: Any = subscription_state.SubscriptionState(loop=loop)
            for name in _SUBSCRIPTION:
                getattr(self._state, name)
        except (AttributeError, TypeError) as error:
            raise _incompatible("subscription", error) from error

    def subscribe(self, topics: Any, pattern: Any, listener: Any) -> None:
        """As the client's method, with the same errors."""
        client = SimpleNamespace(set_topics=lambda _: None)
        stand_in: Any = SimpleNamespace(_subscription=self._state, _client=client, _group_id="", _coordinator=None)
        stand_in._validate_topics = lambda given: _Consumer._validate_topics(stand_in, given)
        try:
            _Consumer.subscribe(stand_in, topics, pattern, listener)
        except AttributeError as error:
            # The objects of the application may lack an attribute, too: that error is the client's own.
            if any(error.obj is each for each in (stand_in, client, self._state, _Consumer)):
                raise _incompatible("subscription", error) from error
            raise

    def assign(self, partitions: Any) -> None:
        """As the client's method, with the same errors."""
        self._state.assign_from_user(partitions)

    def unsubscribe(self) -> None:
        """As the client's method."""
        self._state.unsubscribe()

    @property
    def by_hand(self) -> bool:
        """Whether the application has chosen partitions."""
        return self._state.subscription is not None and not self._state.partitions_auto_assigned()

    @property
    def is_subscribed(self) -> bool:
        """Whether there are topics or a pattern."""
        return bool(self._state.partitions_auto_assigned())

    @property
    def pattern(self) -> Any | None:
        """The compiled pattern; None without one."""
        return self._state.subscribed_pattern

    @property
    def topics(self) -> frozenset[str]:
        """The topics by name."""
        return frozenset(self._state.topics) if self.is_subscribed and self.pattern is None else frozenset()

    @property
    def listener(self) -> Any | None:
        """The application's listener."""
        return self._state.listener


_ManualSubscription: Any = getattr(subscription_state, "ManualSubscription", object)


class _Gated(_ManualSubscription):  # type: ignore[misc]
    """The client's own gate in front of `getone` and `getmany`, which it shuts while a group of its own rebalances.

    Fetched records stay in the client, and gets wait without reading them.
    """

    gate: Gate

    @property
    def _reassignment_in_progress(self) -> bool:
        # The client reads this for each record, so the check is cheap while the membership is certain.
        gate = self.gate
        return gate.shut or (time.monotonic() >= gate.certain_until and gate.is_shut())

    @_reassignment_in_progress.setter
    def _reassignment_in_progress(self, _: bool) -> None:
        """Does nothing. The client's constructor sets the attribute."""


class Table:
    """The partitions that a consumer reads: the client's own table, changed in place.

    The client's task does not notice, so a partition that stays keeps its position, its records and its requests under
    way. `assign` would throw all of them away. The table holds no reference to the consumer.

    Args:
        consumer: after its first `assign`, and its `start`.
        gate: the client checks it before it hands out records. It holds no reference to the consumer either, since the
            client's task holds this table.
    """

    def __init__(self, consumer: Any, gate: Gate) -> None:
        self._state = consumer._subscription
        self._subscription = self._state.subscription
        self._assignment = self._subscription.assignment
        self._client = consumer._client
        self._fetcher = consumer._fetcher
        self._subscription.__class__ = _Gated
        self._subscription.gate = gate

    @property
    def read(self) -> frozenset[Any]:
        """The partitions that the client reads."""
        found: frozenset[Any] = self._assignment.tps
        return found

    def replace(
        self, wanted: Collection[Any], fresh: Mapping[Any, int | None], topics: Iterable[str]
    ) -> frozenset[Any]:
        """Reads these partitions from now on.

        Args:
            wanted: all partitions to read.
            fresh: the partitions that are new or begin elsewhere, each with its offset; None for the client's reset
                rule.
            topics: the topics whose metadata the client keeps.

        Returns:
            The partitions whose pause flag is lost: none.
        """
        states = self._assignment._tp_state
        for gone in self.read.difference(wanted):
            # Throws away the fetched records, or the fetched error.
            self._fetcher.seek_to(gone, 0)
            state = states[gone]
            state.pause()
            # Ends a request for its position that is under way. The state stays in the table: when the answer to such a
            # request or to a fetch arrives, the client looks the state up, and ignores the answer.
            state.update_committed(aiokafka.structs.OffsetAndMetadata(-1, ""))
            state.await_reset(_LATEST)
        for each in fresh.keys() - self.read:
            states[each] = subscription_state.TopicPartitionState(self._assignment)
        self._assignment._topic_partitions = frozenset(wanted)
        names = frozenset(topics).union(each.topic for each in wanted)
        self._subscription._topics = names
        for each, offset in fresh.items():
            # This wakes the client's task as well.
            self._fetcher.seek_to(each, 0 if offset is None else offset)
            if offset is None:
                states[each] = subscription_state.TopicPartitionState(self._assignment)
        if names:
            # Without a topic the client would fetch the metadata of all topics of the cluster.
            self._client.set_topics(names)
        return frozenset()

    def position(self, partition: Any) -> int | None:
        """The offset after the last record that was handed out; None if it is not known."""
        state = self._assignment.state_value(partition)
        if state is None or partition not in self.read or not state.has_valid_position:
            return None
        found: int = state.position
        return found

    def open(self) -> None:
        """Makes the waiting gets check the gate again."""
        self._state._notify_assignment_waiters()


_LATEST = -1


def table_of(consumer: Any, gate: Gate) -> Table | None:
    """The table of a consumer that has assigned and started; None if this version has another kind of table."""
    try:
        state = consumer._subscription
        assignment = state.subscription.assignment
        known = (
            type(state.subscription) is _ManualSubscription,
            isinstance(assignment._tp_state, dict) and assignment._tp_state.keys() == assignment._topic_partitions,
            isinstance(assignment.tps, frozenset) and isinstance(state.subscription._topics, frozenset),
            isinstance(_ManualSubscription.__dict__.get("_reassignment_in_progress"), property),
            all(map(callable, (state._notify_assignment_waiters, consumer._fetcher.seek_to))),
            callable(consumer._client.set_topics),
        )
        states = subscription_state.TopicPartitionState
        for name in ("pause", "update_committed", "await_reset", "has_valid_position", "position"):
            getattr(states, name)
    except AttributeError:
        return None
    return Table(consumer, gate) if all(known) else None


def show_group(consumer: Any, group_id: str | None) -> bool:
    """Sets the attribute in which other code reads the group. Returns False if this version has no such attribute."""
    if not hasattr(consumer, "_group_id"):
        return False
    consumer._group_id = group_id
    return True


@contextlib.contextmanager
def without_group(consumer: Any, group_id: str) -> Iterator[None]:
    """Hides the group from the client, so that it makes no coordinator of its own."""
    show_group(consumer, None)
    try:
        yield
    finally:
        show_group(consumer, group_id)


def replace_coordinator(consumer: Any, make: Callable[[Any], Any]) -> Any | None:
    """Replaces the consumer's coordinator by `make(coordinator)`, and returns that; None if there is no coordinator."""
    native = getattr(consumer, "_coordinator", None)
    if native is None:
        return None
    consumer._coordinator = made = make(native)
    return made


def exchange_coordinator(consumer: Any, coordinator: Any) -> Any:
    """Replaces a consumer's coordinator, and returns the previous one. Only where `replace_coordinator` found one."""
    before, consumer._coordinator = consumer._coordinator, coordinator
    return before


def native_coordinator(consumer: Any, *, in_group: bool) -> Any:
    """A coordinator of the client's own, as `start` makes it.

    Args:
        consumer: a consumer that has started.
        in_group: whether the coordinator serves the group, for partitions that the application has chosen.

    Raises:
        IncompatibleClientError: this version makes a coordinator with other arguments.
    """
    kind = "GroupCoordinator" if in_group else "NoGroupCoordinator"
    try:
        made = getattr(group_coordinator, kind)
        spelled = {"assignors": "_partition_assignment_strategy"}
        names = inspect.signature(group_coordinator.GroupCoordinator).parameters if in_group else []
        given = {name: getattr(consumer, spelled.get(name, f"_{name}")) for name in list(names)[2:]}
        given["exclude_internal_topics"] = consumer._exclude_internal_topics
        return made(consumer._client, consumer._subscription, **given)
    except (AttributeError, TypeError) as error:
        raise IncompatibleClientError(
            f"aiokafka {aiokafka.__version__} cannot change between a subscription and chosen partitions ({error}): "
            f"stop the consumer and make another"
        ) from error


class _GetContext:
    """The client's count of gets under way, which also decreases after a get that was cancelled or has failed."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def __enter__(self) -> None:
        self._state._fetch_count += 1

    def __exit__(self, *_: object) -> None:
        self._state._fetch_count -= 1
        if self._state._fetch_count == 0:
            self._state._last_fetch_ended = time.monotonic()


def count_gets_exactly(consumer: Any) -> None:
    """Mends the count of a consumer's gets, on which `last_get` relies.

    The client's own count does not decrease when `asyncio.wait_for(consumer.getone(), 1)` times out: the application
    would count as asking for ever, and `max_poll_interval_ms` would never be exceeded.
    """
    state = getattr(consumer, "_subscription", None)
    if all(hasattr(state, name) for name in ("fetch_context", "_fetch_count", "_last_fetch_ended")):
        assert state is not None
        context = _GetContext(state)
        state.fetch_context = lambda: context


def last_get(consumer: Any) -> float | None:
    """When the application's last get ended (`time.monotonic`); infinity during a get. None if this is not shown.

    The number is the same until the next get, as `DataPath.wake` must return it. The client's `fetcher_idle_time`
    counts back from the present, so each call gives another one. Any thread may call this function.
    """
    state = getattr(consumer, "_subscription", None)
    count: int | None = getattr(state, "_fetch_count", None)
    ended: float | None = getattr(state, "_last_fetch_ended", None)
    if count is None or ended is None:
        return None
    return math.inf if count > 0 else ended


def fail_waiting_gets(consumer: Any, error: Exception) -> bool:
    """Raises an error in the waiting gets. Returns False if there are none, or this version has no method for that."""
    state = getattr(consumer, "_subscription", None)
    waiters = [*getattr(state, "_fetch_waiters", ()), *getattr(state, "_assignment_waiters", ())]
    waiting = any(not each.done() for each in waiters)
    abort = getattr(state, "abort_waiters", None)
    if not waiting or abort is None:
        return False
    abort(error)
    return True


def own_loop(consumer: Any) -> asyncio.AbstractEventLoop | None:
    """The event loop of a consumer; None if this version does not show it."""
    loop: asyncio.AbstractEventLoop | None = getattr(consumer, "_loop", None)
    return loop


def native_client(consumer: Any) -> Any | None:
    """A consumer's client of brokers; None if this version does not show it."""
    return getattr(consumer, "_client", None)


# Producers.


class HookedProducer(aiokafka.AIOKafkaProducer):  # type: ignore[misc]
    """aiokafka's producer, which gets the partition of each record from a subclass."""

    def _serialize(self, key: Any, value: Any, headers: Any) -> tuple[bytes | None, bytes | None]:
        try:
            serialized: tuple[bytes | None, bytes | None] = super()._serialize(key, value, headers)
        except TypeError as error:
            # aiokafka's error does not say which part of the record should be bytes.
            # Without the attribute it may be the error of a serializer.
            has_none = getattr(self, "_key_serializer", self) is None
            if has_none and not isinstance(key, bytes | bytearray | memoryview | None):
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
        added, drained, appended = (
            list(inspect.signature(method).parameters)
            for method in (MessageAccumulator.add_message, MessageAccumulator.drain_by_nodes, MessageBatch.append)
        )
        known = {
            "MessageAccumulator.add_message": added[1:5] == ["tp", "key", "value", "timeout"],
            "MessageAccumulator.drain_by_nodes": "ignore_nodes" in drained,
            "MessageBatch.append": appended[1:4] == ["key", "value", "timestamp_ms"],
            "AIOKafkaProducer._partition": callable(aiokafka.AIOKafkaProducer._partition),
        }
    except AttributeError as error:
        raise _incompatible("producer", error) from error
    changed = [name for name, is_known in known.items() if not is_known]
    if changed:
        raise _incompatible("producer", f"{' and '.join(changed)} changed")


def accumulator_of(producer: Any) -> Any:
    """A producer's accumulator, which has its batches. Checks for all its private attributes.

    Raises:
        IncompatibleClientError: aiokafka's internals have changed.
    """
    try:
        accumulator = producer._message_accumulator
        for name in ("_closed", "_exception", "_batches", "_batch_size"):
            getattr(accumulator, name)
        if not any(hasattr(accumulator, name) for name in _WAITERS):
            raise _incompatible("producer", f"its accumulator has no {' or '.join(_WAITERS)}")
    except AttributeError as error:
        raise _incompatible("producer", error) from error
    return accumulator


def _incompatible(part: str, reason: object) -> IncompatibleClientError:
    return IncompatibleClientError(
        f"the {part} of aiokafka {aiokafka.__version__} is not one that this package knows ({reason}): "
        "install aiokafka 0.14"
    )


# `accumulator_of` has checked for all attributes that the functions below touch.

# The attribute with the future for which the sender waits, from 0.14 on and before.
_WAITERS = ("_waiter_future", "_wait_data_future")


def takes_records(accumulator: Any) -> bool:
    """Whether an accumulator takes records: it is not closed, and has not failed."""
    return not accumulator._closed and accumulator._exception is None


def last_batch(accumulator: Any, topic_partition: Any) -> Any | None:
    """The newest batch of a partition, which takes records; None if there is none."""
    batches = accumulator._batches.get(topic_partition)
    return batches[-1] if batches else None


def wake_sender(accumulator: Any) -> None:
    """Makes the sender check the batches now."""
    waiter = next(getattr(accumulator, name) for name in _WAITERS if hasattr(accumulator, name))
    if not waiter.done():
        waiter.set_result(None)


def leave_batch(batch: Any) -> None:
    """Closes a batch that had no room for a record; from 0.14 on the client has already closed it."""
    close = getattr(getattr(batch, "_builder", None), "close", None)
    if close is not None:
        close()


def lingers(batch: Any) -> bool:
    """Whether a batch waits for further records. Before 0.14 the sender takes each batch as soon as it can."""
    remaining = getattr(batch, "remaining_linger", None)
    return remaining is not None and bool(remaining())


def queues(accumulator: Any) -> Iterable[tuple[Any, Any]]:
    """Each partition with its batches, the oldest first."""
    found: Iterable[tuple[Any, Any]] = accumulator._batches.items()
    return found


def batch_size(accumulator: Any) -> int:
    """The bytes that a batch can take."""
    size: int = accumulator._batch_size
    return size
