"""The assignors as plug-ins of kafka-python."""

from __future__ import annotations

import math
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
import kafka
from kafka import KafkaConsumer

from kafka_assignors import assignors
from kafka_assignors.clients.common.adapter import ClientAdapter, Membership, Packed, StreamJoinAdapter, calling
from kafka_assignors.clients.common.codec import SubscriptionWriter
from kafka_assignors.clients.common.custom import CustomAdapter
from kafka_assignors.clients.common.lag import LagAdapter, failing_source
from kafka_assignors.clients.kafka_python._internals import (
    COOPERATES,
    KEEPS_POSITIONS,
    NAMES_INSTANCES,
    STOPS_WITH_LISTENERS,
    as_coordinator,
    as_plug_in,
    assigned_by,
    close_connections,
    coordinator_of,
    forget_positions,
    is_closed,
    joined_metadata,
    membership_of,
    rebalance_protocols,
    refresh_under_way,
    refreshed_ms,
    replica_racks,
    stopped_heartbeats,
)
from kafka_assignors.clients.kafka_python.lag import of_consumer
from kafka_assignors.errors import ClientReleaseWarning, OptionError, StateError

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


# The most frames from a plug-in up to the consumer. In kafka-python 2 the consumer polls its coordinator, which joins
# in several steps.
_CONSUMER_FRAMES = 16

_LISTENERS_STOP = (
    f"kafka-python {kafka.__version__} stops reading after a rebalance if its consumer has a listener: install "
    "kafka-python 3.0.9 or newer, or use kafka_assignors.clients.kafka_python.KafkaConsumer, which reads on"
)


class _KafkaPythonAdapter(ClientAdapter):
    _client = "kafka_python"
    _anonymous = not NAMES_INSTANCES
    # The membership of the latest assignment.
    _latest: Membership | None = None
    # Whether the client starts every partition of that assignment at the group's commits.
    _starts_again: bool = False

    def _begin(self, *arguments: Any) -> None:
        super()._begin(*arguments)
        # Topic to the time from which on the client keeps its metadata, in milliseconds of `time.monotonic`.
        self._metadata_since: dict[str, float] = {}
        # A metadata request that was sent before the client was asked for some topics, and these topics.
        self._too_early: tuple[Any, set[str]] | None = None

    def supported_protocols(self) -> list[Any]:
        """The rebalance protocols. kafka-python 3 calls this once, while it makes a consumer."""
        self._greet()
        return rebalance_protocols(cooperative=self._assignor.cooperative)

    def _greet(self) -> object | None:
        """Ties the assignor to the consumer that is being made.

        A second consumer is refused, and its connections are closed.
        """
        coordinator = calling(self._recognise)
        if STOPS_WITH_LISTENERS:
            warnings.warn(_LISTENERS_STOP, ClientReleaseWarning, stacklevel=4)
        if coordinator is not None:
            try:
                self._serve(coordinator)
            except StateError:
                close_connections(coordinator)
                raise
        return coordinator

    def metadata(self, topics: Iterable[str] = ()) -> bytes:
        """The member's metadata for JoinGroup."""
        if not isinstance(self, _KafkaPythonAdapter):
            # A release that makes no instances calls the method of the class, so the topics are `self`.
            raise _no_instance()
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
            # Other members have read on meanwhile. From the old positions this member would read their records again,
            # and its commits would set the group back.
            forget_positions(coordinator)
        super().on_assignment(assignment, generation)

    def on_generation_assignment(self, generation: int) -> None:
        """kafka-python 2 calls it after `on_assignment` where the name is `sticky`. The generation is known by then."""

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
        for each in joined_metadata(members):
            racks = racks or bool(each.rack)
            sent = each.version, each.topics, each.user_data, each.owned, each.generation, each.rack
            packed.append((each.member_id, each.instance_id, writer.write(*sent)))
        self._keep_metadata(writer.topics)
        return Packed(packed, writer.topics, racks)

    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        return assignment.version, assigned_by(assignment), assignment.user_data

    def _keep_metadata(self, topics: set[str]) -> None:
        """Takes note that the client keeps the metadata of these topics from now on, and of no others."""
        now = time.monotonic() * 1000
        self._metadata_since = {topic: self._metadata_since.get(topic, now) for topic in topics}

    def _partitions(self, cluster: Any, packed: Packed) -> dict[str, int | Topic]:
        found = super()._partitions(cluster, packed)
        # If a topic with metadata is missing later, it was deleted. The client need not ask again.
        self._metadata_since.update(dict.fromkeys(found, -math.inf))
        return found

    def _not_known_yet(self, cluster: Any, topics: set[str]) -> set[str]:
        refreshed = refreshed_ms(cluster)
        if refreshed is None:
            return set()
        self._discount(cluster, refreshed)
        unknown = {topic for topic in topics if self._metadata_since.get(topic, math.inf) >= refreshed}
        request = refresh_under_way(cluster)
        if request is not None:
            earlier = set() if self._too_early is None else self._too_early[1]
            self._too_early = request, earlier | unknown
        return unknown

    def _discount(self, cluster: Any, refreshed: float) -> None:
        """Discounts the answer to the request in `_too_early`, once it is there, for the topics that it lacked."""
        if self._too_early is None or refresh_under_way(cluster) is self._too_early[0]:
            return
        # The latest refresh may be that answer, so only a later refresh counts.
        for topic in self._too_early[1] & self._metadata_since.keys():
            self._metadata_since[topic] = max(self._metadata_since[topic], refreshed)
        self._too_early = None

    def _rewound(self, kept: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        return kept if self._starts_again or not KEEPS_POSITIONS else {}

    def _session(self, coordinator: Any) -> tuple[str, float]:
        config = coordinator.config
        return config.get("group_id") or "", config.get("session_timeout_ms", math.inf) / 1000

    def _replica_racks(self, cluster: Any, topic: str, count: int) -> list[frozenset[str]] | None:
        return replica_racks(cluster, topic, count)


def _no_instance() -> OptionError:
    return OptionError(
        f"kafka-python {kafka.__version__} makes no instances of the classes in partition_assignment_strategy, as "
        "kafka-python 3 does; give an instance: [StickyAssignor()]"
    )


def _follows(now: Membership, before: Membership) -> bool:
    """Whether no other member can have owned, between two assignments, a partition that both contain."""
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


class StickyStreamJoinAssignor(StreamJoinAdapter, _KafkaPythonAdapter):
    """`kafka_assignors.StickyStreamJoinAssignor` for kafka-python: on the wire `sticky-join`, or with
    `protocol="cooperative"` `cooperative-sticky-join`.
    """

    _protocols = ("eager", "cooperative") if COOPERATES else ("eager",)


class LagBasedAssignor(LagAdapter, _KafkaPythonAdapter):
    """`kafka_assignors.LagBasedAssignor` for kafka-python: eager, on the wire `lag`, as Java's.

    It reads the lags with a second client (`AdminLagSource`), since the consumer can send no requests while it assigns.
    kafka-python's I/O thread waits for the lags until the deadline, as it waits for any assignor.
    """

    _built: weakref.ref[Any] | None = None

    def _greet(self) -> object | None:
        coordinator = super()._greet()
        self._look_for_consumer()
        return coordinator

    def metadata(self, topics: Iterable[str] = ()) -> bytes:
        """The member's metadata for JoinGroup."""
        metadata = _KafkaPythonAdapter.metadata(self, topics)
        if self._built is None and not COOPERATES:
            # kafka-python 2 does not call a plug-in while it makes a consumer.
            self._look_for_consumer()
        return metadata

    def _look_for_consumer(self) -> None:
        consumer = calling(lambda caller: caller if isinstance(caller, KafkaConsumer) else None, _CONSUMER_FRAMES)
        if consumer is not None:
            self._built = weakref.ref(consumer)

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

    _cooperates = COOPERATES


as_plug_in(_KafkaPythonAdapter)
