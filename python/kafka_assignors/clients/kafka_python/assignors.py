"""The assignors as plug-ins of kafka-python."""

from __future__ import annotations

import math
import time
import weakref
from typing import TYPE_CHECKING, Any

# The package has made sure that the client is there, or said what to install.
from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol

from kafka_assignors import assignors
from kafka_assignors.clients.common.adapter import ClientAdapter, Membership, Packed, StreamJoinAdapter, calling
from kafka_assignors.clients.common.codec import SubscriptionWriter
from kafka_assignors.clients.common.custom import CustomAdapter
from kafka_assignors.clients.common.lag import LagAdapter, failing_source
from kafka_assignors.clients.kafka_python._internals import (
    as_coordinator,
    close_connections,
    coordinator_of,
    forget_positions,
    is_closed,
    membership_of,
    refreshed_ms,
    replica_racks,
    stopped_heartbeats,
)
from kafka_assignors.clients.kafka_python.lag import of_consumer
from kafka_assignors.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.group import Topic
    from kafka_assignors.lag import LagFunction, LagSource

__all__ = [
    "CooperativeStickyAssignor",
    "CustomAssignor",
    "LagBasedAssignor",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
]


class _KafkaPythonAdapter(ClientAdapter):
    _client = "kafka_python"
    # The membership of the latest assignment.
    _latest: Membership | None = None
    # Whether the client starts every partition of that assignment at the group's commits.
    _starts_again: bool = False

    def _begin(self, *arguments: Any) -> None:
        super()._begin(*arguments)
        # Topic to the time from which on the client keeps its metadata, in milliseconds of `time.monotonic`.
        self._metadata_since: dict[str, float] = {}

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """The rebalance protocols. kafka-python calls this once, while it makes a consumer."""
        self._greet()
        return [RebalanceProtocol.EAGER]

    def _greet(self) -> object | None:
        """Ties the assignor to the consumer that is being made. A second one is refused, and its connections closed."""
        coordinator = calling(self._recognise)
        if coordinator is not None:
            try:
                self._serve(coordinator)
            except StateError:
                close_connections(coordinator)
                raise
        return coordinator

    def metadata(self, topics: Iterable[str]) -> bytes:
        """The member's metadata for JoinGroup."""
        subscribed = list(topics)
        metadata = super().metadata(subscribed)
        if self._last_report is None or not self._last_report.leader:
            # A follower's client drops the metadata of topics that only other members subscribe to.
            self._keep_metadata(set(subscribed))
        # kafka-python forgets a join that was caused by changed metadata as soon as the leader has planned. If `poll`
        # returned before the join ended, its result would be lost, and with it the member. An explicit request is
        # kept until the join has succeeded.
        request = getattr(self._serving(), "request_rejoin", None)
        if request is not None:
            request()
        return metadata

    def on_assignment(self, assignment: Any, generation: int | None = None) -> None:
        """Remembers the member's assignment, and reports the rebalance. After a gap the positions are forgotten."""
        membership, coordinator = self._membership(), self._serving()
        before, self._latest = self._latest, membership
        self._starts_again = membership is not None and before is not None and not _follows(membership, before)
        if self._starts_again:
            # kafka-python (3.0.12) calls `on_join_prepare` once for several attempts to join, as Java did before
            # KAFKA-12983. A member that is expelled, or misses a generation, between two attempts keeps its positions.
            # Other members have read on meanwhile. From the old positions it would read their records again, and its
            # commits would take the group back.
            forget_positions(coordinator)
        super().on_assignment(assignment, generation)

    def _recognise(self, caller: object) -> object | None:
        return as_coordinator(caller)

    def _coordinator_of(self, consumer: object) -> tuple[bool, object | None]:
        coordinator = coordinator_of(consumer)
        return coordinator is not None, as_coordinator(coordinator)

    def _membership_of(self, coordinator: object) -> Membership | None:
        return membership_of(coordinator)

    def _coordinator_closed(self, coordinator: object) -> bool:
        return stopped_heartbeats(coordinator)

    def _consumer_closed(self, consumer: object) -> bool:
        return is_closed(consumer)

    def _pack(self, members: Sequence[Any]) -> Packed:
        packed: list[tuple[str, str | None, bytes]] = []
        writer = SubscriptionWriter()
        racks = False
        for member in members:
            sent = member.metadata
            racks = racks or bool(sent.rack_id)
            owned = [(each.topic, each.partitions) for each in sent.owned_partitions or ()]
            metadata = writer.write(sent.version, sent.topics, sent.user_data, owned, sent.generation_id, sent.rack_id)
            packed.append((member.member_id, member.group_instance_id, metadata))
        self._keep_metadata(writer.topics)
        return Packed(packed, writer.topics, racks)

    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        assigned = [(each.topic, each.partitions) for each in assignment.assigned_partitions or ()]
        return assignment.version, assigned, assignment.user_data

    def _keep_metadata(self, topics: set[str]) -> None:
        """Takes note that the client keeps the metadata of these topics from now on, and of no others."""
        now = time.monotonic() * 1000
        self._metadata_since = {topic: self._metadata_since.get(topic, now) for topic in topics}

    def _partitions(self, cluster: Any, packed: Packed) -> dict[str, int | Topic]:
        found = super()._partitions(cluster, packed)
        # If such a topic is missing later, it was deleted. The client need not ask again.
        self._metadata_since.update(dict.fromkeys(found, -math.inf))
        return found

    def _not_known_yet(self, cluster: Any, topics: set[str]) -> set[str]:
        refreshed = refreshed_ms(cluster)
        if refreshed is None:
            return set()
        return {topic for topic in topics if self._metadata_since.get(topic, math.inf) >= refreshed}

    def _rewound(self, kept: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        return kept if self._starts_again else {}

    def _session(self, coordinator: Any) -> tuple[str, float]:
        config = coordinator.config
        return config.get("group_id") or "", config.get("session_timeout_ms", math.inf) / 1000

    def _replica_racks(self, cluster: Any, topic: str, count: int) -> list[frozenset[str]] | None:
        return replica_racks(cluster, topic, count)


def _follows(now: Membership, before: Membership) -> bool:
    """Whether no other member can have had a partition in between that is in both assignments."""
    return now.member_id == before.member_id and now.generation - before.generation in (0, 1)


class StickyAssignor(_KafkaPythonAdapter):
    """`kafka_assignors.StickyAssignor` for kafka-python: eager, on the wire `sticky`, as Java's.

    It differs from kafka-python's own `sticky`: it plans exactly, writes the history as Java does, and writes its
    generation.
    """

    name = assignors.StickyAssignor.name
    _strategy = assignors.StickyAssignor


class CooperativeStickyAssignor(_KafkaPythonAdapter):
    """`kafka_assignors.CooperativeStickyAssignor` for kafka-python: on the wire `cooperative-sticky`, as Java's.

    Partitions that stay are read throughout a rebalance. Those that move need a second, short one. It differs from
    kafka-python's own: it sends the generation, so the claims of a member that was away do not count.
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
        """The protocol of the options."""
        self._greet()
        return [RebalanceProtocol.COOPERATIVE if self._assignor.cooperative else RebalanceProtocol.EAGER]


class LagBasedAssignor(LagAdapter, _KafkaPythonAdapter):
    """`kafka_assignors.LagBasedAssignor` for kafka-python: eager, on the wire `lag`, as Java's.

    It reads the lags with a second client (`AdminLagSource`), since the consumer can send no requests while it assigns.
    kafka-python's I/O thread waits for the lags until the deadline, as it waits for any assignor.
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
            if consumer is not None and coordinator_of(consumer) is coordinator:
                return of_consumer(consumer, timeout)
        return failing_source("the consumer's settings could not be found; call attach(consumer), or give lags=")

    def _planner(self) -> assignors.LagBasedAssignor:
        return self._asking()


class CustomAssignor(CustomAdapter, _KafkaPythonAdapter):
    """Your own `kafka_assignors.CustomAssignor` for kafka-python: `CustomAssignor(Failover())`.

    Eager or cooperative, as yours is.
    """

    _cooperates = True

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """The protocol of the assignor."""
        self._greet()
        return [RebalanceProtocol.COOPERATIVE if self._assignor.cooperative else RebalanceProtocol.EAGER]


AbstractPartitionAssignor.register(_KafkaPythonAdapter)
