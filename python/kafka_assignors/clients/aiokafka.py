"""The sticky assignor, the stream join, the lag-based assignor and a producer with our partitioners, for aiokafka.

    consumer = AIOKafkaConsumer("orders", group_id="g", partition_assignment_strategy=[StickyAssignor()])

One instance per consumer: aiokafka takes instances as well as classes, and a class would make all consumers of a
process share what each of them holds (aiokafka #1175). It tells an assignor no generation (#1176). Ours looks for it:
through the consumer that it was attached to (`attach`, before `start()`; `consumer(...)` builds and attaches), else
through the caller of its methods, else it takes the generation that our leaders write into the assignments.

aiokafka's leaders see only the oldest fields of the members' metadata: topics and user data. That is all the sticky
strategy needs, but racks count only while a member of another client leads.

`AIOKafkaProducer` is aiokafka's with a sticky partitioner at work as in Java.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka_assignors import assignors
from kafka_assignors.clients._adapter import ClientAdapter, Membership, Packed, StreamJoinAdapter, calling
from kafka_assignors.clients._codec import SubscriptionWriter
from kafka_assignors.clients._lag import LagAdapter, unknown
from kafka_assignors.clients._listener import DiffListener, run_async
from kafka_assignors.clients._report import RebalanceReport
from kafka_assignors.errors import LagError, MissingDependencyError
from kafka_assignors.lag import Inquiry

try:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.consumer import group_coordinator as _group

    from kafka_assignors.clients._aiokafka_lag import AdminLagSource, of_client
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.aiokafka needs aiokafka 0.14: pip install kafka-assignors[aiokafka]"
    ) from error

from kafka_assignors.clients._aiokafka_producer import AIOKafkaProducer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_assignors.assignors import JoinedMember
    from kafka_assignors.group import Plan, Topic
    from kafka_assignors.lag import LagFunction, LagSource

__all__ = [
    "AIOKafkaProducer",
    "AdminLagSource",
    "LagBasedAssignor",
    "RebalanceDiffListener",
    "RebalanceReport",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "consumer",
]

logger = logging.getLogger("kafka_assignors")

_COORDINATORS: tuple[type, ...] = tuple(filter(None, [getattr(_group, "GroupCoordinator", None)]))
# The object that asks for metadata; a new one for each rebalance.
_REBALANCES: tuple[type, ...] = tuple(filter(None, [getattr(_group, "CoordinatorGroupRebalance", None)]))


def _coordinator(caller: object) -> Any | None:
    if isinstance(caller, _REBALANCES):
        caller = getattr(caller, "_coordinator", None)
    return caller if isinstance(caller, _COORDINATORS) else None


def _membership(coordinator: Any) -> Membership | None:
    try:
        return Membership(coordinator.generation, coordinator.member_id)
    except AttributeError:
        return None


_ABSENT = object()


class _AiokafkaAdapter(ClientAdapter):
    _client = "aiokafka"
    _anonymous = True

    def _serve(self, coordinator: object) -> None:
        if self._deref(self._coordinator) is not coordinator and len(getattr(coordinator, "_assignors", ())) > 1:
            logger.warning(
                "aiokafka joins a group once per strategy, and offers only the first in its first request; "
                "list one strategy only"
            )
        super()._serve(coordinator)

    def _recognise(self, caller: object) -> object | None:
        return _coordinator(caller)

    def _coordinator_of(self, consumer: object) -> tuple[bool, object | None]:
        coordinator = getattr(consumer, "_coordinator", _ABSENT)
        return coordinator is not _ABSENT, _coordinator(coordinator)

    def _membership_of(self, coordinator: object) -> Membership | None:
        return _membership(coordinator)

    def _coordinator_closed(self, coordinator: object) -> bool:
        try:
            return bool(coordinator._closing.done())  # type: ignore[attr-defined]
        except AttributeError:
            return False

    def _consumer_closed(self, consumer: object) -> bool:
        return bool(getattr(consumer, "_closed", False))

    def _session(self, coordinator: Any) -> tuple[str, float]:
        return coordinator.group_id, getattr(coordinator, "_session_timeout_ms", math.inf) / 1000

    def _pack(self, members: Mapping[str, Any]) -> Packed:
        writer = SubscriptionWriter()
        # Version 0, whatever was said: the newer fields are gone.
        packed = [
            (member_id, None, writer.write(0, told.subscription, told.user_data)) for member_id, told in members.items()
        ]
        return Packed(packed, writer.topics, racks=False)

    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        return assignment.version, assignment.assignment, assignment.user_data

    def _rewound(self, kept: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        # aiokafka makes a new assignment of each share, without the positions of the one before.
        return kept


class _ToldGeneration(_AiokafkaAdapter):
    """For strategies whose claims carry the group's generation."""

    _told: int | None = None

    def on_generation_assignment(self, generation: int) -> None:
        """For versions of aiokafka that tell (#1185); harmless before or after `on_assignment`, or both."""
        self._told = generation
        if self._state.owned:
            self._state.generation = generation

    def on_assignment(self, assignment: Any, generation: int | None = None) -> None:
        """What the member was given: remembered first, then reported."""
        if generation is None and not assignment.user_data:
            generation = self._told
        super().on_assignment(assignment, generation)


class StickyAssignor(_ToldGeneration):
    """`kafka_assignors.StickyAssignor` for aiokafka: eager, on the wire `sticky`. One instance per consumer.

    List no other strategy beside it: aiokafka joins once per strategy, each time with one more (its pull request
    #1168).
    """

    name = assignors.StickyAssignor.name
    _strategy = assignors.StickyAssignor


class StickyStreamJoinAssignor(StreamJoinAdapter, _AiokafkaAdapter):
    """`kafka_assignors.StickyStreamJoinAssignor` for aiokafka: eager, on the wire `sticky-join`.

    One instance per consumer, and no other strategy beside it, as for `StickyAssignor`.
    """

    _protocols = ("eager",)

    def on_generation_assignment(self, generation: int) -> None:
        """For versions of aiokafka that tell (#1185). The group's generation is no epoch, and does not count."""


class _UnansweredError(Exception):
    """The lags are on their way; whoever can await them calls again."""

    def __init__(self, inquiry: Inquiry) -> None:
        super().__init__()
        self.inquiry = inquiry


class LagBasedAssignor(LagAdapter, _ToldGeneration):
    """`kafka_assignors.LagBasedAssignor` for aiokafka: eager, on the wire `lag`, as Java's.

    One instance per consumer, attached to it before `start()` (`attach`, or `consumer(..., assignor=...)`), and no
    other strategy beside it. The event loop is never blocked: a member that may lead asks for the lags on another
    thread before it joins (`AdminLagSource`), and if it leads before they are there, it awaits them, until the
    deadline.
    """

    # The group's topics when this member led last: it will need them again, whatever it subscribes to itself.
    _group_topics: frozenset[str] = frozenset()
    _inquiry: Inquiry | None = None
    # Whether whoever calls `assign` would await the lags and call again; None: it cannot.
    _may_wait: bool | None = None

    def metadata(self, topics: Iterable[str]) -> bytes:
        """What the member sends in JoinGroup. The lags are asked for now, if it may lead."""
        subscribed = list(topics)
        told = super().metadata(subscribed)
        asked, self._inquiry = self._inquiry, None
        if self._last_report is None or self._last_report.leader:
            asking, wanted = self._asking(), self._group_topics.union(subscribed)
            # One question at a time, however often a join has to be tried again.
            if asked is None or asked.future.done() or not asked.left(asking.deadline) or wanted - {*asked.topics}:
                asked = self._ask(asking, wanted)
            self._inquiry = asked
        return told

    def _ask(self, asking: assignors.LagBasedAssignor, topics: Iterable[str]) -> Inquiry | None:
        """Asks on another thread, unless there is nothing to ask, or nobody."""
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
        """What was asked before the join, or is asked now; without waiting.

        Raises:
            _UnansweredError: it can be waited for.
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
            return unknown("the consumer's auto_offset_reset is not known; call attach(consumer), or give lags=")
        try:
            return of_client(
                coordinator._client,
                coordinator._client._loop,
                reset=consumer._auto_offset_reset,
                isolation_level=consumer._isolation_level,
                timeout=timeout,
            )
        except AttributeError as error:
            return unknown(f"this version of aiokafka does not show the consumer's settings ({error}); give lags=")

    def _serve(self, coordinator: object) -> None:
        new = self._deref(self._coordinator) is not coordinator
        super()._serve(coordinator)
        if new:
            self._inquiry, self._group_topics, self._may_wait = None, frozenset(), None
            self._await_lags(coordinator)

    def _await_lags(self, coordinator: Any) -> None:
        """Lets the coordinator, before it assigns, wait for the lags.

        `assign` cannot await; what calls it in aiokafka can. In versions where it cannot, the lags count if they came
        while the group was joining.
        """
        plain = getattr(type(coordinator), "_perform_assignment", None)
        if not inspect.iscoroutinefunction(plain):
            return
        # Weakly, or the consumer would be in a circle.
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

        coordinator._perform_assignment = perform_assignment

    async def _wait(self, inquiry: Inquiry) -> None:
        """Until the source has answered, or failed, or the deadline is over."""
        answered = asyncio.wrap_future(inquiry.future)
        try:
            await asyncio.wait([answered], timeout=inquiry.left(self._asking().deadline))
        finally:
            # Cancelled, it is left behind if it is late, whatever becomes of the loop until it comes.
            if not answered.cancel():
                answered.exception()


def consumer(
    *topics: str, assignor: StickyAssignor | StickyStreamJoinAssignor | LagBasedAssignor | None = None, **config: Any
) -> AIOKafkaConsumer:
    """An `AIOKafkaConsumer` with an assignor attached. Call it where the event loop runs.

    Args:
        topics: to subscribe to.
        assignor: one with options, made for this consumer; None makes a `StickyAssignor`, which knows the rack if
            `client_rack` is given.
        config: the consumer's settings, except for `partition_assignment_strategy`.

    Raises:
        StateError: `assignor` serves another consumer.
    """
    if assignor is None:
        assignor = StickyAssignor(rack=config.get("client_rack"))
    built = AIOKafkaConsumer(*topics, partition_assignment_strategy=[assignor], **config)
    assignor.attach(built)
    return built


class RebalanceDiffListener(DiffListener):
    """KIP-54's clean-up listener: told of what really came and went, not of what is revoked and given straight back.

    Subclass it and override `on_partitions_gained` and `on_partitions_given_up`, as functions or coroutines; both get
    ascending lists of `TopicPartition`. Pass it as `consumer.subscribe(topics, listener=...)`. aiokafka is eager, and
    so what has really gone is known only after the rebalance: `on_partitions_given_up` comes then, but at once where
    the membership was lost. After a generation without this consumer nothing counts as kept.

    Errors of the callbacks reach aiokafka, which logs them as those of any listener; the books stay right.

    Args:
        listener: an ordinary listener that is to be called as well, with everything, as aiokafka would.
    """

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """For aiokafka to call."""
        coordinator = calling(_coordinator)
        now = None if coordinator is None else _membership(coordinator)
        # aiokafka has no call of its own for a lost membership.
        gone = self._holdings.taken(self._holdings.held) if now is not None and now.lost else []
        await run_async(self._user("on_partitions_revoked", revoked) + self._due(gone))

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """For aiokafka to call."""
        coordinator = calling(_coordinator)
        now = None if coordinator is None else _membership(coordinator)
        given_up, gained = self._holdings.replaced(assigned, now)
        await run_async(self._due(given_up, gained) + self._user("on_partitions_assigned", assigned))

    async def close(self) -> None:
        """Gives up what is still held. Call it when the consumer has been stopped; aiokafka does not say so."""
        await run_async(self._on_close())


ConsumerRebalanceListener.register(RebalanceDiffListener)
