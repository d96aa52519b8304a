"""The sticky assignors, the stream join, the lag-based assignor, and the producer's partitioners for kafka-python 3.

>>> from kafka_assignors.clients.kafka_python import StickyAssignor
>>> from functools import partial
>>> strategies = [StickyAssignor]                      # a class, or an instance per consumer, or a factory:
>>> strategies = [partial(StickyAssignor, rack="a")]

`KafkaConsumer("orders", group_id="g", partition_assignment_strategy=[StickyAssignor])` is all it takes. The assignor
finds the consumer's membership by itself; `attach(consumer)`, right after the consumer was made, is for interpreters
that do not show a caller's frame.

`KafkaProducer` is kafka-python's with a sticky partitioner at work as in Java.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import time
import weakref
from typing import TYPE_CHECKING, Any

from kafka_assignors import assignors
from kafka_assignors.clients._adapter import ClientAdapter, Membership, Packed, StreamJoinAdapter, calling
from kafka_assignors.clients._codec import SubscriptionWriter
from kafka_assignors.clients._lag import LagAdapter, unknown
from kafka_assignors.clients._listener import DiffListener, Step, run, run_async
from kafka_assignors.clients._report import RebalanceReport
from kafka_assignors.errors import MissingDependencyError, OptionError, StateError

try:
    from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.coordinator.consumer import ConsumerCoordinator

    from kafka_assignors.clients._kafka_python_internals import refreshed_ms
    from kafka_assignors.clients._kafka_python_lag import AdminLagSource, of_consumer
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.kafka_python needs kafka-python 3: pip install kafka-assignors[kafka-python]"
    ) from error

from kafka_assignors.clients._kafka_python_producer import (
    AdaptivePartitioner,
    DefaultPartitioner,
    KafkaProducer,
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.group import Topic
    from kafka_assignors.lag import LagFunction, LagSource

__all__ = [
    "AdaptivePartitioner",
    "AdminLagSource",
    "AsyncRebalanceDiffListener",
    "CooperativeStickyAssignor",
    "DefaultPartitioner",
    "KafkaProducer",
    "LagBasedAssignor",
    "Partitioner",
    "RebalanceDiffListener",
    "RebalanceReport",
    "RoundRobinPartitioner",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "UniformStickyPartitioner",
]


def _coordinator(caller: object) -> Any | None:
    return caller if isinstance(caller, ConsumerCoordinator) else None


def _membership(coordinator: Any) -> Membership | None:
    try:
        metadata = coordinator.group_metadata()
        return Membership(metadata.generation_id, metadata.member_id)
    except AttributeError:
        return None


class _KafkaPythonAdapter(ClientAdapter):
    _client = "kafka_python"
    # The membership of the latest assignment.
    _since: Membership | None = None
    # Whether the client begins at the group's commits with every partition of that assignment.
    _begins_anew: bool = False

    def _begin(self, *arguments: Any) -> None:
        super()._begin(*arguments)
        # Topic to the time from which on the client keeps its metadata, in milliseconds of `time.monotonic`.
        self._metadata_since: dict[str, float] = {}

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """How partitions change hands: kafka-python asks once, while it builds a consumer."""
        self._greet()
        return [RebalanceProtocol.EAGER]

    def _greet(self) -> object | None:
        """Meets the consumer that is being built. One too many is refused here, as it could not be closed later."""
        coordinator = calling(self._recognise)
        if coordinator is not None:
            try:
                self._serve(coordinator)
            except StateError:
                _abandon(coordinator)
                raise
        return coordinator

    def metadata(self, topics: Iterable[str]) -> bytes:
        """What the member sends in JoinGroup."""
        subscribed = list(topics)
        told = super().metadata(subscribed)
        if self._last_report is None or not self._last_report.leader:
            # A follower's client drops the metadata of topics that only other members subscribe to.
            self._keep_metadata(set(subscribed))
        # A join that changed metadata caused is forgotten once the leader has planned: if `poll` returns before the
        # join has ended, nobody would ever take its result, and the member would be gone for good. Asked for in words,
        # the join is awaited until it has succeeded.
        request = getattr(self._serving(), "request_rejoin", None)
        if request is not None:
            request()
        return told

    def on_assignment(self, assignment: Any, generation: int | None = None) -> None:
        """What the member was given: remembered first, then reported. Where to begin is asked for again after a gap."""
        membership, coordinator = self._membership(), self._serving()
        before, self._since = self._since, membership
        self._begins_anew = membership is not None and before is not None and not _follows(membership, before)
        if self._begins_anew:
            # kafka-python (3.0.12) prepares once for any number of attempts to join, as Java did before KAFKA-12983: a
            # member that is expelled, or misses a generation, between two of them keeps its positions. Others have read
            # on meanwhile; reading on from there would read theirs again, and commit what takes the group back.
            _forget_positions(coordinator)
        super().on_assignment(assignment, generation)

    def _recognise(self, caller: object) -> object | None:
        return _coordinator(caller)

    def _coordinator_of(self, consumer: object) -> tuple[bool, object | None]:
        coordinator = getattr(consumer, "_coordinator", None)
        return coordinator is not None, _coordinator(coordinator)

    def _membership_of(self, coordinator: object) -> Membership | None:
        return _membership(coordinator)

    def _coordinator_closed(self, coordinator: object) -> bool:
        return bool(getattr(coordinator, "_heartbeat_closed", False))

    def _consumer_closed(self, consumer: object) -> bool:
        return bool(getattr(consumer, "_closed", False))

    def _pack(self, members: Sequence[Any]) -> Packed:
        packed: list[tuple[str, str | None, bytes]] = []
        writer = SubscriptionWriter()
        racks = False
        for member in members:
            told = member.metadata
            racks = racks or bool(told.rack_id)
            owned = [(each.topic, each.partitions) for each in told.owned_partitions or ()]
            metadata = writer.write(told.version, told.topics, told.user_data, owned, told.generation_id, told.rack_id)
            packed.append((member.member_id, member.group_instance_id, metadata))
        self._keep_metadata(writer.topics)
        return Packed(packed, writer.topics, racks)

    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        assigned = [(each.topic, each.partitions) for each in assignment.assigned_partitions or ()]
        return assignment.version, assigned, assignment.user_data

    def _keep_metadata(self, topics: set[str]) -> None:
        """From now on the client keeps the metadata of these topics, and of no others."""
        now = time.monotonic() * 1000
        self._metadata_since = {topic: self._metadata_since.get(topic, now) for topic in topics}

    def _partitions(self, cluster: Any, packed: Packed) -> dict[str, int | Topic]:
        found = super()._partitions(cluster, packed)
        # A topic that was found once and is not found later has been deleted. The client need not ask again.
        self._metadata_since.update(dict.fromkeys(found, -math.inf))
        return found

    def _not_known_yet(self, cluster: Any, topics: set[str]) -> set[str]:
        refreshed = refreshed_ms(cluster)
        if refreshed is None:
            return set()
        return {topic for topic in topics if self._metadata_since.get(topic, math.inf) >= refreshed}

    def _rewound(self, kept: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        return kept if self._begins_anew else {}

    def _session(self, coordinator: Any) -> tuple[str, float]:
        config = coordinator.config
        return config.get("group_id") or "", config.get("session_timeout_ms", math.inf) / 1000

    def _replica_racks(self, cluster: Any, topic: str, count: int) -> list[frozenset[str]] | None:
        try:
            partitions = cluster._partitions[topic]
            rack_of = {broker.node_id: broker.rack for broker in cluster.brokers() if broker.rack}
            replicas = {number: partition.replica_nodes for number, partition in partitions.items()}
        except (AttributeError, KeyError):
            return None
        if not rack_of:
            return None
        return [
            frozenset(rack_of[node] for node in replicas.get(number, ()) if node in rack_of) for number in range(count)
        ]


def _follows(now: Membership, before: Membership) -> bool:
    """Whether nobody else can have had a partition between the two assignments that is in both."""
    return now.member_id == before.member_id and now.generation - before.generation in (0, 1)


def _forget_positions(coordinator: Any) -> None:
    """What is assigned begins at the group's commits."""
    subscription = getattr(coordinator, "_subscription", None)
    if subscription is not None:
        assigned = list(subscription.assigned_partitions())
        subscription.assign_from_subscribed([])
        subscription.assign_from_subscribed(assigned)


def _abandon(coordinator: Any) -> None:
    """Closes the connections of a consumer whose construction fails: its caller never gets to see it."""
    # The error that matters is the one on its way.
    with contextlib.suppress(Exception):
        coordinator._client.close()


class StickyAssignor(_KafkaPythonAdapter):
    """`kafka_assignors.StickyAssignor` for kafka-python: eager, on the wire `sticky`, as Java's.

    Differs from kafka-python's own `sticky` in that it plans exactly, writes the history as Java does, and knows in
    which generation it was.
    """

    name = assignors.StickyAssignor.name
    _strategy = assignors.StickyAssignor


class CooperativeStickyAssignor(_KafkaPythonAdapter):
    """`kafka_assignors.CooperativeStickyAssignor` for kafka-python: on the wire `cooperative-sticky`, as Java's.

    Partitions that stay are read on throughout a rebalance; what moves takes a second, short one. Differs from
    kafka-python's own in that it sends the generation, so that claims of a member that was away do not count.
    """

    name = assignors.CooperativeStickyAssignor.name
    _strategy = assignors.CooperativeStickyAssignor

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Cooperative only, as kafka-python's own."""
        self._greet()
        return [RebalanceProtocol.COOPERATIVE]


class StickyStreamJoinAssignor(StreamJoinAdapter, _KafkaPythonAdapter):
    """`kafka_assignors.StickyStreamJoinAssignor` for kafka-python: on the wire `sticky-join`, or with
    `protocol="cooperative"` `cooperative-sticky-join`.
    """

    _protocols = ("eager", "cooperative")

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """The one that was chosen."""
        self._greet()
        return [RebalanceProtocol.COOPERATIVE if self._assignor.cooperative else RebalanceProtocol.EAGER]


class LagBasedAssignor(LagAdapter, _KafkaPythonAdapter):
    """`kafka_assignors.LagBasedAssignor` for kafka-python: eager, on the wire `lag`, as Java's.

    It reads the lags with a second client (`AdminLagSource`), since the consumer cannot be asked while it assigns.
    Until they are there, or the deadline is over, kafka-python's I/O thread waits, as it does for any assignor.
    """

    _built: weakref.ref[Any] | None = None

    def _greet(self) -> object | None:
        coordinator = super()._greet()
        consumer = calling(lambda caller: caller if isinstance(caller, KafkaConsumer) else None)
        if consumer is not None:
            self._built = weakref.ref(consumer)
        return coordinator

    def _own_source(self, coordinator: object, timeout: float) -> LagSource | LagFunction:
        for reference in (self._consumer, self._built):
            consumer = self._deref(reference)
            if consumer is not None and getattr(consumer, "_coordinator", None) is coordinator:
                return of_consumer(consumer, timeout)
        return unknown("the consumer's settings could not be found; call attach(consumer), or give lags=")

    def _planner(self) -> assignors.LagBasedAssignor:
        return self._asking()


AbstractPartitionAssignor.register(_KafkaPythonAdapter)


class _DiffListener(DiffListener):
    """What the two listeners have in common."""

    def __init__(self, listener: Any = None, *, cooperative: bool | None = None) -> None:
        super().__init__(listener)
        self._cooperative = cooperative

    def _is_cooperative(self, coordinator: Any) -> bool:
        if self._cooperative is not None:
            return self._cooperative
        return bool(getattr(coordinator, "_rebalance_protocol", None) == RebalanceProtocol.COOPERATIVE)

    def _on_revoked(self, revoked: Iterable[Any]) -> list[Step]:
        gone = self._holdings.taken(revoked) if self._is_cooperative(calling(_coordinator)) else []
        return self._user("on_partitions_revoked", revoked) + self._due(gone)

    def _on_assigned(self, assigned: Iterable[Any]) -> list[Step]:
        coordinator = calling(_coordinator)
        now = None if coordinator is None else _membership(coordinator)
        if self._is_cooperative(coordinator):
            due = self._due([], self._holdings.added(assigned, now))
        else:
            due = self._due(*self._holdings.replaced(assigned, now))
        return due + self._user("on_partitions_assigned", assigned)

    def _on_lost(self, lost: Iterable[Any]) -> list[Step]:
        return self._user("on_partitions_lost", lost) + self._due(self._holdings.taken(lost))


class RebalanceDiffListener(_DiffListener):
    """KIP-54's clean-up listener: told of what really came and went, not of what is revoked and given straight back.

    Subclass it and override `on_partitions_gained` and `on_partitions_given_up`; both get ascending lists of
    `TopicPartition`. Pass it as `consumer.subscribe(topics, listener=...)`. An eager client finds out only after a
    rebalance what has really gone, so `on_partitions_given_up` comes then; what was lost with the membership, and
    what is revoked in cooperative rebalancing, is given up at once.

    Errors of the callbacks reach kafka-python, which reports them as those of any listener; the books stay right.

    Args:
        listener: an ordinary listener that is to be called as well, with everything, as kafka-python would.
        cooperative: whether the consumer rebalances cooperatively; None looks at the consumer.

    Raises:
        OptionError: `listener` or an overridden method is asynchronous: use `AsyncRebalanceDiffListener`.
    """

    def __init__(self, listener: Any = None, *, cooperative: bool | None = None) -> None:
        super().__init__(listener, cooperative=cooperative)
        hooks: list[Any] = [self.on_partitions_gained, self.on_partitions_given_up]
        hooks += [getattr(listener, name, None) for name in ("on_partitions_revoked", "on_partitions_assigned")]
        if any(map(inspect.iscoroutinefunction, hooks)):
            raise OptionError(
                f"{type(self).__name__} has asynchronous callbacks, which nobody would await; "
                "derive it from AsyncRebalanceDiffListener"
            )

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """For kafka-python to call."""
        run(self._on_revoked(revoked))

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """For kafka-python to call."""
        run(self._on_assigned(assigned))

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """For kafka-python to call."""
        run(self._on_lost(lost))

    def close(self) -> None:
        """Gives up what is still held. Call it when the consumer has been closed; kafka-python does not say so."""
        run(self._on_close())


class AsyncRebalanceDiffListener(_DiffListener):
    """As `RebalanceDiffListener`, for callbacks that await: overridden methods and `listener` may be coroutines."""

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """For kafka-python to call."""
        await run_async(self._on_revoked(revoked))

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """For kafka-python to call."""
        await run_async(self._on_assigned(assigned))

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """For kafka-python to call."""
        await run_async(self._on_lost(lost))

    async def close(self) -> None:
        """Gives up what is still held. Call it when the consumer has been closed; kafka-python does not say so."""
        await run_async(self._on_close())


ConsumerRebalanceListener.register(RebalanceDiffListener)
AsyncConsumerRebalanceListener.register(AsyncRebalanceDiffListener)
