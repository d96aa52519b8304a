"""The assignors as plug-ins of aiokafka, and a consumer with one attached."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
from aiokafka import AIOKafkaConsumer

from kafka_assignors import assignors
from kafka_assignors.clients.aiokafka import _internals
from kafka_assignors.clients.aiokafka.lag import of_client
from kafka_assignors.clients.common.adapter import ClientAdapter, Membership, Packed, StreamJoinAdapter
from kafka_assignors.clients.common.codec import SubscriptionWriter
from kafka_assignors.clients.common.custom import CustomAdapter
from kafka_assignors.clients.common.lag import LagAdapter, failing_source
from kafka_assignors.errors import IncompatibleClientError, LagError
from kafka_assignors.lag import Inquiry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_assignors.assignors import JoinedMember
    from kafka_assignors.group import Plan, Topic
    from kafka_assignors.lag import LagFunction, LagSource

__all__ = [
    "CustomAssignor",
    "LagBasedAssignor",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "consumer",
]

logger = logging.getLogger("kafka_assignors")


class _AiokafkaAdapter(ClientAdapter):
    _client = "aiokafka"
    _anonymous = True

    def _serve(self, coordinator: object) -> None:
        if self._deref(self._coordinator) is not coordinator and _internals.strategy_count(coordinator) > 1:
            logger.warning(
                "aiokafka joins a group once per strategy, and offers only the first in its first request; "
                "list one strategy only"
            )
        super()._serve(coordinator)

    def _recognise(self, caller: object) -> object | None:
        return _internals.as_coordinator(caller)

    def _coordinator_of(self, consumer: object) -> tuple[bool, object | None]:
        known, coordinator = _internals.coordinator_of(consumer)
        return known, _internals.as_coordinator(coordinator)

    def _membership_of(self, coordinator: object) -> Membership | None:
        return _internals.membership_of(coordinator)

    def _coordinator_closed(self, coordinator: object) -> bool:
        return _internals.coordinator_closed(coordinator)

    def _consumer_closed(self, consumer: object) -> bool:
        return _internals.is_closed(consumer)

    def _session(self, coordinator: Any) -> tuple[str, float]:
        return coordinator.group_id, _internals.session_timeout(coordinator)

    def _pack(self, members: Mapping[str, Any]) -> Packed:
        writer = SubscriptionWriter()
        # Version 0, since aiokafka has dropped the newer fields.
        packed = [
            (member_id, None, writer.write(0, sent.subscription, sent.user_data)) for member_id, sent in members.items()
        ]
        return Packed(packed, writer.topics, racks=False)

    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        return assignment.version, assignment.assignment, assignment.user_data

    def _rewound(self, kept: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        # aiokafka makes a new state for each assignment, without the positions of the previous one.
        return kept


class _GenerationAdapter(_AiokafkaAdapter):
    """For strategies whose claims carry the group's generation."""

    _generation: int | None = None

    def on_generation_assignment(self, generation: int) -> None:
        """Versions of aiokafka with #1185 call it before `on_assignment`, after it, or both."""
        self._generation = generation
        if self._state.owned:
            self._state.generation = generation

    def on_assignment(self, assignment: Any, generation: int | None = None) -> None:
        """Remembers the member's assignment, and then reports the rebalance."""
        if generation is None and not assignment.user_data:
            generation = self._generation
        super().on_assignment(assignment, generation)


class StickyAssignor(_GenerationAdapter):
    """`kafka_assignors.StickyAssignor` for aiokafka: eager, on the wire `sticky`. One instance per consumer.

    List no other strategy with it: aiokafka joins once for each strategy, each time with one more (its pull request
    #1168).
    """

    name = assignors.StickyAssignor.name
    _strategy = assignors.StickyAssignor


class StickyStreamJoinAssignor(StreamJoinAdapter, _AiokafkaAdapter):
    """`kafka_assignors.StickyStreamJoinAssignor` for aiokafka: eager, on the wire `sticky-join`.

    One instance per consumer, and no other strategy with it, as for `StickyAssignor`.
    """

    _protocols = ("eager",)

    def on_generation_assignment(self, generation: int) -> None:
        """Versions of aiokafka with #1185 call it. The group's generation is no epoch, and does not count."""


class CustomAssignor(CustomAdapter, _GenerationAdapter):
    """Your own `kafka_assignors.CustomAssignor` for aiokafka: `CustomAssignor(Failover())`; eager only.

    One instance per consumer, and no other strategy with it, as for `StickyAssignor`.
    """

    _cooperates = False


class _UnansweredError(Exception):
    """The lags have not arrived yet. A caller that can await them awaits them, and calls `assign` again."""

    def __init__(self, inquiry: Inquiry) -> None:
        super().__init__()
        self.inquiry = inquiry


class LagBasedAssignor(LagAdapter, _GenerationAdapter):
    """`kafka_assignors.LagBasedAssignor` for aiokafka: eager, on the wire `lag`, as Java's.

    One instance per consumer, attached to it before `start()` (`attach`, or `consumer(..., assignor=...)`), and no
    other strategy with it. The event loop is never blocked: a member that may lead reads the lags on another thread
    before it joins (`AdminLagSource`). If it leads before the lags have arrived, it awaits them until the deadline.
    """

    # The group's topics when this member led last. As a leader it needs their lags, even without subscribing to them.
    _group_topics: frozenset[str] = frozenset()
    _inquiry: Inquiry | None = None
    # Whether the caller of `assign` awaits the lags and calls again; None if this version of aiokafka cannot.
    _may_wait: bool | None = None

    def metadata(self, topics: Iterable[str]) -> bytes:
        """The member's metadata for JoinGroup. If it may lead, it starts to read the lags."""
        subscribed = list(topics)
        metadata = super().metadata(subscribed)
        asked, self._inquiry = self._inquiry, None
        if self._last_report is None or self._last_report.leader:
            asking, wanted = self._asking(), self._group_topics.union(subscribed)
            # Only one inquiry at a time, also if a join is tried again several times.
            if asked is None or asked.future.done() or not asked.left(asking.deadline) or wanted - {*asked.topics}:
                asked = self._ask(asking, wanted)
            self._inquiry = asked
        return metadata

    def _ask(self, asking: assignors.LagBasedAssignor, topics: Iterable[str]) -> Inquiry | None:
        """Starts an inquiry; None without topics, or if the lags are given as a mapping."""
        wanted = sorted(topics)
        if asking.lags is None or isinstance(asking.lags, Mapping) or not wanted:
            return None
        return Inquiry(asking.lags, wanted, asking.group_id)

    def _plan(
        self, members: Sequence[JoinedMember], partitions: dict[str, int | Topic], generation: int | None
    ) -> tuple[dict[str, bytes], Plan]:
        asking = self._asking()
        if isinstance(asking.lags, Mapping):
            return asking._plan_assignment(members, partitions, generation, *self._bounds())
        lags = self._lags(asking, partitions)
        return asking._plan_with(lags, members, partitions, generation, *self._bounds())

    def _lags(
        self, asking: assignors.LagBasedAssignor, partitions: Mapping[str, int | Topic]
    ) -> dict[str, Sequence[int]] | LagError:
        """The lags of the inquiry from before the join, or of one that starts now, without waiting for them.

        Raises:
            _UnansweredError: the caller can await them.
        """
        self._group_topics = frozenset(partitions)
        inquiry = self._inquiry
        if self._may_wait and (inquiry is None or not self._group_topics.issubset(inquiry.topics)):
            inquiry = self._inquiry = self._ask(asking, partitions)
        if not partitions:
            return {}
        if inquiry is None:
            return LagError("nobody asked for them before the join")
        if inquiry.future.done() or not inquiry.left(asking.deadline):
            try:
                return inquiry.answer(asking.deadline)
            except LagError as error:
                return error
        if self._may_wait:
            raise _UnansweredError(inquiry)
        if self._may_wait is None:
            return LagError("the lag source had not answered when the group had joined")
        return LagError(f"the lag source did not answer within {asking.deadline:g} s")

    def _own_source(self, coordinator: Any, timeout: float) -> LagSource | LagFunction:
        consumer = self._deref(self._consumer)
        if consumer is None:
            return failing_source("the consumer's auto_offset_reset is not known; call attach(consumer), or give lags=")
        try:
            client = _internals.client_of(coordinator)
            reset, isolation_level = _internals.reading_settings(consumer)
            return of_client(
                client, _internals.loop_of(client), reset=reset, isolation_level=isolation_level, timeout=timeout
            )
        except IncompatibleClientError as error:
            return failing_source(f"{error}; give lags=")

    def _serve(self, coordinator: object) -> None:
        new = self._deref(self._coordinator) is not coordinator
        super()._serve(coordinator)
        if new:
            self._inquiry, self._group_topics, self._may_wait = None, frozenset(), None
            self._await_lags(coordinator)

    def _await_lags(self, coordinator: Any) -> None:
        """Makes the coordinator await the lags before it assigns.

        `assign` cannot await, but its caller in aiokafka can. In versions in which the caller cannot, the lags count
        only if they arrive while the group joins.
        """
        plain = _internals.assigning_method(coordinator)
        if plain is None:
            return
        # A weak reference, since the coordinator will refer to the function below.
        reference = weakref.ref(coordinator)

        async def perform_assignment(response: Any) -> Any:
            served = reference()
            self._may_wait = True
            try:
                return await plain(served, response)
            except _UnansweredError as unanswered:
                await self._wait(unanswered.inquiry)
            finally:
                self._may_wait = False
            return await plain(served, response)

        _internals.replace_assigning_method(coordinator, perform_assignment)

    async def _wait(self, inquiry: Inquiry) -> None:
        """Waits until the source has answered or failed, or the deadline is over."""
        answered = asyncio.wrap_future(inquiry.future)
        try:
            await asyncio.wait([answered], timeout=inquiry.left(self._asking().deadline))
        finally:
            # A late answer must not reach this loop, which may be closed by then.
            if not answered.cancel():
                answered.exception()


def consumer(
    *topics: str,
    assignor: StickyAssignor | StickyStreamJoinAssignor | LagBasedAssignor | CustomAssignor | None = None,
    **config: Any,
) -> AIOKafkaConsumer:
    """An `AIOKafkaConsumer` with an assignor attached. Call it where the event loop runs.

    Args:
        topics: the subscription.
        assignor: an assignor made for this consumer; None makes a `StickyAssignor`, with `client_rack` as its rack.
        config: the consumer's settings, except for `partition_assignment_strategy`. `client_rack` is for the group
            alone before aiokafka 0.14.

    Raises:
        StateError: `assignor` serves another consumer.
    """
    if assignor is None:
        assignor = StickyAssignor(rack=config.get("client_rack"))
    if "client_rack" not in inspect.signature(AIOKafkaConsumer).parameters:
        config.pop("client_rack", None)
    built = AIOKafkaConsumer(*topics, partition_assignment_strategy=[assignor], **config)
    assignor.attach(built)
    return built
