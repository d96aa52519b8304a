"""The sticky assignor, the stream join and a producer with our partitioners, for aiokafka.

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

import logging
from typing import TYPE_CHECKING, Any

from kafka_assignors import assignors
from kafka_assignors.clients._adapter import ClientAdapter, Membership, Packed, StreamJoinAdapter, calling
from kafka_assignors.clients._codec import SubscriptionWriter
from kafka_assignors.clients._listener import DiffListener, run_async
from kafka_assignors.clients._report import RebalanceReport
from kafka_assignors.errors import MissingDependencyError

try:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.consumer import group_coordinator as _group
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.aiokafka needs aiokafka 0.14: pip install kafka-assignors[aiokafka]"
    ) from error

from kafka_assignors.clients._aiokafka_producer import AIOKafkaProducer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "AIOKafkaProducer",
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

    def _pack(self, members: Mapping[str, Any]) -> Packed:
        writer = SubscriptionWriter()
        # Version 0, whatever was said: the newer fields are gone.
        packed = [
            (member_id, None, writer.write(0, told.subscription, told.user_data)) for member_id, told in members.items()
        ]
        return Packed(packed, writer.topics, racks=False)

    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        return assignment.version, assignment.assignment, assignment.user_data


class StickyAssignor(_AiokafkaAdapter):
    """`kafka_assignors.StickyAssignor` for aiokafka: eager, on the wire `sticky`. One instance per consumer.

    List no other strategy beside it: aiokafka joins once per strategy, each time with one more (its pull request
    #1168).
    """

    name = assignors.StickyAssignor.name
    _strategy = assignors.StickyAssignor
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


class StickyStreamJoinAssignor(StreamJoinAdapter, _AiokafkaAdapter):
    """`kafka_assignors.StickyStreamJoinAssignor` for aiokafka: eager, on the wire `sticky-join`.

    One instance per consumer, and no other strategy beside it, as for `StickyAssignor`.
    """

    _protocols = ("eager",)

    def on_generation_assignment(self, generation: int) -> None:
        """For versions of aiokafka that tell (#1185). The group's generation is no epoch, and does not count."""


def consumer(
    *topics: str, assignor: StickyAssignor | StickyStreamJoinAssignor | None = None, **config: Any
) -> AIOKafkaConsumer:
    """An `AIOKafkaConsumer` with a sticky assignor attached. Call it where the event loop runs.

    Args:
        topics: to subscribe to.
        assignor: one with options, made for this consumer; None makes one, which knows the rack if `client_rack` is
            given.
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
