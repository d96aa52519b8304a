"""aiokafka as the data path of a membership: the partitions it reads, the calls of its listeners, and its errors.

    the application's getone, getmany ──► aiokafka ──── asks ────► AiokafkaPath.gate, .asked
    the consumer's task, in a turn ─────► AiokafkaPath ──────────► the client's table of partitions
    the membership's thread ────────────► AiokafkaPath.wake

Everything but `wake` runs on the consumer's event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import TopicPartition

from kafka_assignors.clients.aiokafka import _internals
from kafka_assignors.clients.aiokafka.errors import error_of, is_passing
from kafka_assignors.clients.aiokafka.gate import Gate
from kafka_assignors.clients.aiokafka.public_table import PublicTable, TrackedGets
from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.member.data_path import Position
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafka_assignors.clients.aiokafka.config import ConsumerConfig
    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import ClientAssignment, CommitOutcome, Failure, ListenerEvent, Partition
    from kafka_assignors.member.turn import Arrivals

__all__ = ["AiokafkaPath", "SubscriptionListener", "as_partitions"]

logger = logging.getLogger("kafka_assignors")

# The client's class is stored at import, since programs may put our class in its place later.
_Client = aiokafka.AIOKafkaConsumer

_METHODS = {"assigned": "on_partitions_assigned", "revoked": "on_partitions_revoked", "lost": "on_partitions_lost"}


def as_partitions(partitions: Iterable[Any]) -> set[Partition]:
    """The client's partitions in the form of the membership: topic and number."""
    return {(each.topic, each.partition) for each in partitions}


@dataclass(eq=False)
class SubscriptionListener:
    """The listener of one subscription.

    Attributes:
        listener: the application's; None for none.
        is_over: whether the subscription is over. Then the listener is not called any more, as in the client.
    """

    listener: Any
    is_over: bool = False


class AiokafkaPath:
    """A consumer of aiokafka that reads the partitions of a membership. The consumer is held weakly.

    Args:
        consumer: our consumer.
        config: its settings.

    Attributes:
        config: the consumer's settings.
        side: the application's side of the membership; set before the first turn.
        arrivals: wakes the task that takes the turns; set by `start`.
        table: the partitions that the client reads; None before the first assignment.
        topics: the topics to which the consumer subscribes by name.
        is_over: whether the subscription has ended. Its partitions may not have been removed yet.
        held: partitions that `hold` has paused, and not the application.
    """

    side: ApplicationSide
    arrivals: Arrivals

    def __init__(self, consumer: aiokafka.AIOKafkaConsumer, config: ConsumerConfig) -> None:
        self._consumer = weakref.ref(consumer)
        self.config = config
        self.table: _internals.Table | PublicTable | None = None
        self.topics: frozenset[str] = frozenset()
        self.is_over = False
        self.gate = Gate(self.certain_for)
        self.held: set[TopicPartition] = set()
        # Counts the gets under way, if this version of the client does not show them; else None.
        self._gets: TrackedGets | None = None
        self._listener = SubscriptionListener(None)
        self._has_asked = False
        # Whether the mailbox had work at the latest `wake`, and the application has not asked for records since.
        self._has_work = False
        self._failure: Exception | None = None
        self._is_fatal = False
        # Done at the first assignment of a subscription, or when there will be none.
        self._waits_for_assignment: asyncio.Future[None] | None = None
        # Tasks wait here for the start of partitions.
        self._next_assignment: asyncio.Future[None] | None = None
        # The positions that the listener of an assignment has sought.
        self._sought: dict[Partition, Position] = {}

    @property
    def consumer(self) -> Any | None:
        """The consumer; None if it was collected."""
        return self._consumer()

    # The partitions that the client reads.

    def has(self, partition: TopicPartition) -> bool:
        """Whether the partition is this consumer's, also while an eager rebalance has taken it away."""
        if self.is_over:
            return False
        return (partition.topic, partition.partition) in self.side.assigned.owned or self.is_read(partition)

    def is_read(self, partition: TopicPartition) -> bool:
        """Whether the client reads the partition. A partition of this consumer that is not read waits for its start."""
        return self.table is not None and not self.is_over and partition in self.table.read

    def begin_empty(self, topics: frozenset[str]) -> None:
        """Takes the consumer's table, and removes the partitions that were assigned only for the client's `start`."""
        self.topics = topics
        self._adopt()
        assert self.table is not None
        self.table.replace(frozenset(), {}, topics)

    def _adopt(self) -> None:
        """Takes the table of the consumer, which has just assigned something and has started."""
        consumer = self.consumer
        assert consumer is not None
        found = _internals.table_of(consumer, self.gate)
        self.table = PublicTable(consumer) if found is None else found
        if self._gets is None and (found is None or _internals.last_get(consumer) is None):
            self._gets = TrackedGets(consumer, self.gate, self.asked)

    def let_go(self) -> None:
        """Leaves the client's table to the application or, later, to a new subscription."""
        self.table = None
        self.held.clear()

    def assign(self, assignment: ClientAssignment) -> None:
        """As `DataPath`."""
        consumer = self.consumer
        if consumer is None:
            return
        wanted = frozenset(TopicPartition(*each) for each in assignment.partitions)
        if self.table is None:
            if wanted:
                _Client.assign(consumer, list(wanted))
                self._adopt()
            fresh = wanted
        else:
            fresh = wanted - self.table.read
        starts: dict[Any, int | None] = dict.fromkeys(fresh)
        for each, at in assignment.starts.items():
            starts[TopicPartition(*each)] = None if at is None else at.offset
        if self.table is not None:
            kept_paused = self.table.replace(wanted, starts, self.topics)
            paused = {TopicPartition(*each) for each in assignment.paused}
            _Client.pause(consumer, *(paused & (fresh | kept_paused)))
            _Client.resume(consumer, *((self.held & wanted) - paused))
        self.held.clear()
        self.gate.shut = self.is_over
        if assignment.is_assigned:
            self._sought.clear()
            self.end_wait()
        self._end_next_assignment()
        if self._gets is not None:
            self._gets.open()
        if self.table is not None:
            self.table.open()

    def hold(self, partitions: frozenset[Partition]) -> None:
        """As `DataPath`."""
        table, consumer = self.table, self.consumer
        if table is None or consumer is None:
            return
        held = {TopicPartition(*each) for each in partitions} & table.read
        if table.read <= held:
            self.gate.shut = True
        if not self.gate.shut or isinstance(table, PublicTable):
            # A get would throw away the fetched records of a paused partition. So where all partitions are held, the
            # gate is shut instead.
            self.held |= held
            _Client.pause(consumer, *held)

    def certain_for(self) -> float | None:
        """For how many seconds records may certainly be handed out; None if none may be."""
        if not self.side.may_hand_out:
            return None
        member = self.side.member
        return 1.0 if member is None else min(1.0, member.session_left)

    def _end_next_assignment(self) -> None:
        if self._next_assignment is not None and not self._next_assignment.done():
            self._next_assignment.set_result(None)
        self._next_assignment = None

    async def next_assignment(self) -> None:
        """Waits until the client gets another assignment, or the membership ends."""
        if self._next_assignment is None:
            self._next_assignment = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._next_assignment)

    def start_at(self, partition: TopicPartition, offset: int) -> None:
        """Starts a partition of this consumer that is not read yet, at this offset."""
        name, at = (partition.topic, partition.partition), Position(offset)
        if not self.side.assigned.start_at(name, at):
            # Within the listener of an assignment: the partition begins after the listener has returned.
            self._sought[name] = at
            self.side.choose(dict.fromkeys(self.side.assigned.owned) | self._sought)

    def sought_for(self, partition: TopicPartition) -> int | None:
        """The offset that the application has chosen for a partition that is not read yet; None without one."""
        at = self._sought.get((partition.topic, partition.partition))
        return None if at is None else at.offset

    def positions(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """As `DataPath`."""
        found: dict[Partition, Position] = {}
        if self.table is not None:
            for each in partitions:
                offset = self.table.position(TopicPartition(*each))
                if offset is not None:
                    found[each] = Position(offset, -1, "")
        return found

    # The listener.

    def listen(self, topics: frozenset[str], listener: Any) -> SubscriptionListener | None:
        """Begins a subscription. Returns its listener for the membership."""
        # Partitions of a subscription that has ended are removed in the next turn.
        self.gate.shut = self.is_over and self.table is not None and bool(self.table.read)
        self.topics, self.is_over = topics, False
        self._listener = SubscriptionListener(listener)
        return None if listener is None else self._listener

    def end_subscription(self) -> None:
        """Hands out no more records of a subscription. Its partitions are removed in the next turn."""
        self.end_listener()
        self.is_over = self.gate.shut = True
        self.end_wait()

    def end_listener(self) -> None:
        """From now on the listener is not called, not even for the revocation of its partitions."""
        self._listener.is_over = True

    @property
    def membership(self) -> Membership | None:
        """The membership, for a listener that is being called; None before the first."""
        member = self.side.member
        return None if member is None else Membership(member.identity[1], member.identity[0])

    @property
    def is_cooperative(self) -> bool:
        """Whether the listener is called with differences only."""
        return self.side.strategies.cooperative

    def call(
        self, listener: SubscriptionListener | None, event: ListenerEvent, partitions: frozenset[Partition]
    ) -> object:
        """As `DataPath`. The listener's errors are logged, as by the client."""
        if listener is None or listener.is_over:
            return None
        return self._call(listener.listener, event, {TopicPartition(*each) for each in partitions})

    async def _call(self, listener: Any, event: ListenerEvent, partitions: set[TopicPartition]) -> None:
        # aiokafka's own listeners have no method for lost partitions.
        name = _METHODS[event if hasattr(listener, _METHODS[event]) else "revoked"]
        try:
            result = getattr(listener, name)(partitions)
            if inspect.isawaitable(result):
                await result
        except Exception:
            # The client logs the error of a listener as well, and the rebalance goes on.
            logger.exception("the listener %r of group %r failed in %s", listener, self.config.group_id, name)

    # Commits and errors.

    def commit_done(self, outcome: CommitOutcome) -> None:
        """As `DataPath`: no call waits for an automatic commit, so its failure is logged."""
        refused = set(outcome.refused.values()) | ({outcome.error_code} - {0})
        for code in sorted(refused):
            logger.error("group %r: an automatic commit failed with error code %d", self.config.group_id, code)

    def fail(self, error: Failure | Exception) -> None:
        """As `DataPath`."""
        if isinstance(error, Exception):
            logger.error("the membership of group %r failed", self.config.group_id, exc_info=error)
            self._raise(error)
            return
        message = printable(error.message, SENTENCE)
        code = error.error_code
        if code is None or error.is_missing or (is_passing(code) and not error.is_fatal):
            # As the client: it logs that the poll interval is over, waits for topics, and tries again.
            logger.warning("group %r: %s", self.config.group_id, message)
            if error.is_missing:
                # There is no assignment to wait for, if no topic matches a pattern.
                self.end_wait()
            return
        logger.error("group %r: %s", self.config.group_id, message)
        self._is_fatal = self._is_fatal or error.is_fatal
        self._raise(error_of(code, message, error.topic, self.config.group_id))

    def _raise(self, error: Exception) -> None:
        """Raises an error in `start`, else in the waiting gets, else in the next get; a fatal error in each of them."""
        waiting, consumer = self._waits_for_assignment, self.consumer
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
            if not self._is_fatal:
                return
        raised = consumer is not None and _internals.fail_waiting_gets(consumer, error)
        if self._is_fatal or not raised:
            self._failure = error

    async def first_assignment(self) -> None:
        """Waits for the first assignment. Raises the error for which there is none."""
        self._waits_for_assignment = asyncio.get_running_loop().create_future()
        try:
            await self._waits_for_assignment
        finally:
            self._waits_for_assignment = None

    def end_wait(self) -> None:
        """Ends the wait for the first assignment."""
        if self._waits_for_assignment is not None and not self._waits_for_assignment.done():
            self._waits_for_assignment.set_result(None)

    def end(self) -> None:
        """Ends all waits, since the membership has ended."""
        self.end_wait()
        self._end_next_assignment()

    # Polls of the application.

    def asked(self) -> None:
        """Notes that the application asks for records, and raises the error that it has not received yet."""
        if self._has_work:
            # A member that left after `max_poll_interval_ms` without a poll joins again in the turn that begins now. A
            # get before the member left must not count: an application that hangs would be in the group once more.
            self._has_work = False
            self._has_asked = True
            self.arrivals.ring()
        if self._failure is not None:
            failure = self._failure
            if not self._is_fatal:
                self._failure = None
            raise failure

    @property
    def asks(self) -> bool:
        """Whether the application asks for records, or began the present turn by asking."""
        has_asked, self._has_asked = self._has_asked, False
        return has_asked or self._asks_now(self.consumer)

    def _asks_now(self, consumer: Any) -> bool:
        return consumer is not None and self._last_get(consumer) == math.inf

    def _last_get(self, consumer: Any) -> float | None:
        """As `last_get`."""
        if self._gets is not None:
            return math.inf if self._gets.waiting else self._gets.asked_at
        return _internals.last_get(consumer)

    def wake(self) -> float | None:
        """As `DataPath`."""
        consumer = self.consumer
        if consumer is None:
            return None
        # The membership may have ended.
        self.gate.certain_until = 0.0
        self._has_work = bool(self.side.mailbox)
        if self._has_work and not self.arrivals.ring():
            return None
        now, last = time.monotonic(), self._last_get(consumer)
        return now if last is None else min(last, now)
