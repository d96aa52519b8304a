"""`AIOKafkaConsumer`: aiokafka's, with any assignor of this package.

    application ──► AIOKafkaConsumer ──────────► aiokafka            records: a consumer that never subscribes
                        │
                        ├─ group_slot            the task of the turns; the object in `_coordinator`
                        └─ data_path             assignments; listeners; errors
                               ▲ Mailbox │ calls
                               │         ▼
                           membership ─────────► brokers             its own thread: heartbeats, rebalances, commits

The two sides meet in a task on the consumer's event loop. A blocked loop stops neither heartbeats nor planning.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    IllegalStateError,
    NoOffsetForPartitionError,
)
from aiokafka.util import commit_structure_validate

from kafka_assignors.clients.aiokafka import _internals
from kafka_assignors.clients.aiokafka.commits import Committing
from kafka_assignors.clients.aiokafka.config import ConsumerConfig, is_ours_alone, signature
from kafka_assignors.clients.aiokafka.data_path import AiokafkaPath, as_partitions
from kafka_assignors.clients.aiokafka.group_slot import GroupSlot
from kafka_assignors.clients.aiokafka.lag_source import with_lags
from kafka_assignors.clients.common.group_protocol import broker_expression
from kafka_assignors.clients.common.topic_pattern import TopicPattern
from kafka_assignors.errors import IncompatibleClientError
from kafka_assignors.member import fork
from kafka_assignors.member.application_side import ApplicationSide
from kafka_assignors.member.data_path import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_assignors.group import Plan

__all__ = ["AIOKafkaConsumer"]


_Client = aiokafka.AIOKafkaConsumer


class AIOKafkaConsumer(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]
    """`aiokafka.AIOKafkaConsumer`, in whose group the assignors of this package decide.

    Methods, settings, listeners and errors are the client's own. What differs:

    Args:
        *topics: as the client's.
        **settings: as the client's, and those below.

    The setting `partition_assignment_strategy` takes the names `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
    `sticky-join`, `cooperative-sticky-join`, `weighted`, `cooperative-weighted` and `lag`, separated by commas, or an
    assignor of `kafka_assignors`, or a list of both; several in order of preference, for rolling upgrades. The client's
    own classes are taken by their names, and so are our plug-ins. The default is the client's: `roundrobin`. `lag` by
    name reads the lags of the group from the cluster.

    Further settings:

    - `client_rack`: the consumer's rack, also for the group. Before aiokafka 0.14 for the group alone.
    - `on_rebalance`: a function that every member calls with a
      [`RebalanceReport`][kafka_assignors.clients.aiokafka.RebalanceReport] after each rebalance, on the event loop. Its
      errors are logged.
    - `on_broker_assignor`: the reaction to the broker's own assignor, which serves the group once a member with
      `group.protocol=consumer` has joined (KIP-848). `fail`, the default, is an error; `carry-on` takes the broker's
      plan and logs a warning; so does `migrate`, with which a leader's assignments have no user data, so that a broker
      converts the group while it works ([the way over](kip-848.md#the-way-over)).
    - `group_protocol`: `consumer` for a group that the broker plans (KIP-848, brokers from 4.0 on); `classic` by
      default. The broker matches a `pattern`, also with internal topics, and in the syntax of RE2. Other values than
      the defaults of `partition_assignment_strategy`, `session_timeout_ms`, `heartbeat_interval_ms`,
      `rebalance_timeout_ms` and `on_broker_assignor` are refused. `on_rebalance` gets reports without a plan.
    - `group_remote_assignor`: the broker's assignor for which this consumer votes, such as `range`; None by default.

    Partitions that stay with a consumer are read without a break, also in eager rebalances: positions, fetched records
    and pauses stay. A consumer whose event loop is blocked stays a member, up to `max_poll_interval_ms` without a get.
    A listener with a method `on_partitions_lost` is called with partitions that other members may own already.

    Without a `group_id`, and with partitions that the application assigns itself, it is the client's consumer.

    Raises:
        MissingDependencyError: on import, if aiokafka is not installed.
        OptionError: a setting that the membership cannot honour, such as a Kerberos login.

    >>> import asyncio
    >>> async def make():
    ...     consumer = AIOKafkaConsumer("orders", group_id="billing", partition_assignment_strategy="sticky")
    ...     await consumer.stop()
    ...     return consumer.subscription()
    >>> asyncio.run(make())
    frozenset({'orders'})
    """

    def __init__(self, *topics: str, **settings: Any) -> None:
        bound = signature().bind(*topics, **settings)
        bound.apply_defaults()
        given = dict(bound.arguments)
        names = given.pop("topics")
        config = None if given["group_id"] is None else ConsumerConfig.read(given, _loop_of(given))
        self._membership_config = config
        own = {name: value for name, value in settings.items() if not is_ours_alone(name)}
        if config is None:
            super().__init__(*topics, **own)
            return
        # Without strategies and a group, the client does not join. `show_group` sets the group afterwards.
        super().__init__(**own | {"group_id": None, "partition_assignment_strategy": ()})
        _internals.show_group(self, config.group_id)
        _internals.count_gets_exactly(self)
        self._group_loop = _internals.own_loop(self) or asyncio.get_running_loop()
        config = self._membership_config = with_lags(config, _internals.native_client(self), self._group_loop)
        self._group_path = path = AiokafkaPath(self, config)
        self._group_side = path.side = ApplicationSide(path, config)
        self._group_commits = Committing(path.side, config)
        self._group_rules = _internals.SubscriptionRules(self._group_loop)
        # None until the consumer has started with our membership.
        self._group_slot: GroupSlot | None = None
        self._is_read_by_hand = False
        self._retired: set[asyncio.Task[None]] = set()
        fork.watch(self)
        if names:
            self.subscribe(names)

    # The group.

    async def start(self) -> None:
        """As the client's. With a subscription it waits for the topics, and for the first assignment of the group."""
        config = self._membership_config
        if config is None or self._group_slot is not None or self._is_read_by_hand or self._group_rules.by_hand:
            await super().start()
            self._is_read_by_hand = config is not None and self._group_slot is None
            return
        topics = self._group_rules.topics
        if topics:
            # The client's `start` waits until the topics of its assignment exist.
            super().assign([TopicPartition(topic, 0) for topic in sorted(topics)])
        with _internals.without_group(self, config.group_id):
            await super().start()
        if topics:
            # In the same step of the loop, so that no record of this assignment is read.
            self._group_path.begin_empty(topics)
        if _internals.replace_coordinator(self, self._slot_on) is None:
            raise IncompatibleClientError(
                f"aiokafka {aiokafka.__version__} has another coordinator than we know: install aiokafka 0.14"
            )
        if self._group_rules.is_subscribed:
            self._join_group()
            await self._group_path.first_assignment()

    def _slot_on(self, native: Any) -> GroupSlot:
        """The slot, in the place of the client's coordinator. The first call makes it, and it begins to take turns."""
        if self._group_slot is None:
            self._group_slot = GroupSlot(native, self._group_path, self._group_commits)
        self._group_slot.put_upon(native)
        return self._group_slot

    def _join_group(self) -> None:
        rules, path = self._group_rules, self._group_path
        expressions = {}
        if rules.pattern is not None:
            with_internal = not path.config.exclude_internal_topics
            is_matched_here = path.config.group_protocol == "classic"
            text = rules.pattern.pattern if is_matched_here else broker_expression(rules.pattern)
            expressions[text] = TopicPattern(rules.pattern, with_internal=with_internal)
        listener = path.listen(rules.topics, rules.listener)
        self._group_side.subscribe(sorted(rules.topics), expressions, listener)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """As the client's, with the same errors."""
        if self._membership_config is None:
            super().subscribe(topics, pattern, listener)
            return
        if self._has_started:
            self._check_loop()
        self._group_rules.subscribe(topics, pattern, listener)
        if self._is_read_by_hand:
            self._exchange(self._slot_on(_internals.native_coordinator(self, in_group=False)))
        if self._group_slot is not None:
            self._join_group()

    def unsubscribe(self) -> None:
        """As the client's: the consumer leaves the group. The listener is not called."""
        if self._membership_config is None:
            super().unsubscribe()
            return
        if self._has_started:
            self._check_loop()
        if self._group_rules.by_hand:
            super().unsubscribe()
        self._group_rules.unsubscribe()
        member = self._group_side.member
        if member is not None:
            self._group_path.end_subscription()
            member.unsubscribe()

    def assign(self, partitions: Any) -> None:
        """As the client's, with the same errors: reads these partitions without joining the group."""
        if self._membership_config is not None:
            if self._has_started:
                self._check_loop()
            self._group_rules.assign(partitions)
            if self._group_slot is not None and not self._is_read_by_hand:
                self._exchange(_internals.native_coordinator(self, in_group=True))
        super().assign(partitions)

    def _exchange(self, coordinator: Any) -> None:
        """Changes between our membership and partitions chosen by the application, on a consumer that has started."""
        self._is_read_by_hand = not self._is_read_by_hand
        self._group_path.let_go()
        before = _internals.exchange_coordinator(self, coordinator)
        ending = asyncio.ensure_future(before.close_native() if isinstance(before, GroupSlot) else before.close())
        self._retired.add(ending)
        ending.add_done_callback(self._retired.discard)

    async def stop(self) -> None:
        """As the client's: commits, leaves the group, and closes. Gets that wait raise `ConsumerStoppedError`.

        Within the listener it returns before the consumer has left.
        """
        try:
            await super().stop()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # No caller cancelled this call: aiokafka cancels a fetch that sleeps before a retry, and raises that error
            # in `stop`. If it were raised here, the member would stay in its group, and the client's connections open.
            client = _internals.native_client(self)
            if client is not None:
                await client.close()
        if self._membership_config is not None and self._group_slot is not None:
            await self._group_slot.close()
            # The client ends the gets that wait for records. Gets that wait for the group would wait for ever.
            _internals.fail_waiting_gets(self, ConsumerStoppedError())

    def subscription(self) -> Any:
        """As the client's."""
        if not self._in_our_group:
            return super().subscription()
        if not self._group_rules.is_subscribed:
            return set()
        if self._group_rules.pattern is None or self._group_side.member is None:
            return self._group_rules.topics
        return self._group_side.member.topics

    def assignment(self) -> Any:
        """As the client's."""
        if not self._in_our_group:
            return super().assignment()
        if self._group_path.is_over:
            return set()
        return frozenset(TopicPartition(*each) for each in self._group_side.assigned.owned) or set()

    def plan(self) -> Plan | None:
        """The plan that this consumer made when it last led its group; None if it never did."""
        return None if self._membership_config is None else self._group_side.strategies.last_plan

    @property
    def _in_our_group(self) -> bool:
        """Whether only our member assigns partitions: there is a group, and the application has chosen none."""
        return self._membership_config is not None and not self._group_rules.by_hand

    @property
    def _has_started(self) -> bool:
        return self._group_slot is not None or self._is_read_by_hand

    def _check_loop(self) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self._group_loop:
            raise RuntimeError("this consumer belongs to another event loop: call its methods there")

    # Positions.

    def _check(self, *partitions: TopicPartition) -> set[TopicPartition]:
        """The given partitions that the client reads. Raises for a partition that is not this consumer's."""
        self._check_loop()
        path = self._group_path
        strange = [each for each in partitions if not path.has(each)]
        if strange:
            raise IllegalStateError(f"Partitions {strange} are not assigned")
        return {each for each in partitions if path.is_read(each)}

    def pause(self, *partitions: TopicPartition) -> None:
        """As the client's; also for a partition that is not read yet. It stays paused until it is taken away."""
        if not self._in_our_group or not _are_partitions(partitions):
            super().pause(*partitions)
            return
        super().pause(*self._check(*partitions))
        self._group_side.assigned.paused |= as_partitions(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """As the client's; also for a partition that is not read yet."""
        if not self._in_our_group or not _are_partitions(partitions):
            super().resume(*partitions)
            return
        super().resume(*(self._check(*partitions) - self._group_path.held))
        self._group_side.assigned.paused -= as_partitions(partitions)

    def paused(self) -> set[TopicPartition]:
        """As the client's."""
        if not self._in_our_group:
            found: set[TopicPartition] = super().paused()
            return found
        return {TopicPartition(*each) for each in self._group_side.assigned.paused}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """As the client's; also for a partition that is not read yet, and within `on_partitions_assigned`."""
        if self._in_our_group and isinstance(offset, int) and offset >= 0 and not self._check(partition):
            self._group_path.start_at(partition, offset)
        else:
            super().seek(partition, offset)

    async def position(self, partition: TopicPartition) -> int:
        """As the client's. It waits until the position is known."""
        while self._in_our_group and not self._check(partition):
            sought = self._group_path.sought_for(partition)
            if sought is not None:
                return sought
            if self._group_side.within == "assigned":
                # The partition begins after the listener has returned, so the listener must not wait for that.
                offset = await self._first_position(partition)
                self.seek(partition, offset)
                return offset
            await self._group_path.next_assignment()
        found: int = await super().position(partition)
        return found

    async def _first_position(self, partition: TopicPartition) -> int:
        committed: int | None = await self.committed(partition)
        if committed is not None:
            return committed
        match self._group_path.config.reset:
            case "earliest":
                found = await self.beginning_offsets([partition])
            case "latest":
                found = await self.end_offsets([partition])
            case _:
                raise NoOffsetForPartitionError(partition)
        offset: int = found[partition]
        return offset

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """As the client's; also for partitions that are not read yet."""
        return await self._seek_all(partitions, super().seek_to_beginning, self.beginning_offsets)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """As the client's; also for partitions that are not read yet."""
        return await self._seek_all(partitions, super().seek_to_end, self.end_offsets)

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """As the client's; also for partitions that are not read yet."""
        found: dict[TopicPartition, int | None] = {}
        if not self._in_our_group or not _are_partitions(partitions):
            found.update(await super().seek_to_committed(*partitions))
            return found
        wanted = partitions or tuple(self.assignment())
        assert wanted, "No partitions are currently assigned"
        self._check(*wanted)
        for each in wanted:
            found[each] = offset = await self.committed(each)
            if offset:
                self.seek(each, offset)
        return found

    async def _seek_all(self, partitions: tuple[TopicPartition, ...], native: Any, offsets: Any) -> bool:
        if not self._in_our_group or not _are_partitions(partitions):
            return bool(await native(*partitions))
        wanted = partitions or tuple(self.assignment())
        assert wanted, "No partitions are currently assigned"
        read = self._check(*wanted)
        rest = [each for each in wanted if each not in read]
        if rest:
            for each, offset in (await offsets(rest)).items():
                self.seek(each, offset)
        return bool(await native(*read)) if read else True

    def highwater(self, partition: TopicPartition) -> int | None:
        """As the client's; None for a partition that is not read yet."""
        return self._of_state(partition, super().highwater)

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """As the client's; None for a partition that is not read yet."""
        return self._of_state(partition, super().last_stable_offset)

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """As the client's; None for a partition that is not read yet."""
        return self._of_state(partition, super().last_poll_timestamp)

    def _of_state(self, partition: TopicPartition, native: Callable[[TopicPartition], int | None]) -> int | None:
        if not self._in_our_group:
            return native(partition)
        assert self._group_path.has(partition), "Partition is not assigned"
        return native(partition) if self._group_path.is_read(partition) else None

    # Offsets.

    async def commit(self, offsets: Any = None) -> None:
        """As the client's. The commit is refused if this consumer is no longer a member.

        Args:
            offsets: by partition: an offset, or one with metadata; by default all positions.

        Raises:
            CommitFailedError: the group has rebalanced, or is about to and the partitions are given up.
            IllegalStateError: there is no subscription, or a partition is not this consumer's.
            IllegalOperation: the consumer has no group.
        """
        if not self._in_our_group:
            await super().commit(offsets)
            return
        side = self._group_side
        if not self._group_rules.is_subscribed:
            raise IllegalStateError("Not subscribed to any topics")
        if side.latest[1] < 0:
            raise IllegalStateError("No partitions assigned")
        self._check_loop()
        if offsets is None:
            due = self._group_path.positions(side.assigned.held)
        else:
            checked = commit_structure_validate(offsets)
            self._check(*checked)
            due = {(each.topic, each.partition): Position(at.offset, -1, at.metadata) for each, at in checked.items()}
        if side.holds_back:
            raise CommitFailedError("the group rebalances, and the partitions are given up")
        await self._group_commits.commit(due)

    async def committed(self, partition: TopicPartition) -> int | None:
        """As the client's: the group's commit of any partition; None if there is none."""
        found: int | None
        if not self._in_our_group:
            found = await super().committed(partition)
            return found
        self._check_loop()
        answer = await self._group_commits.committed([partition])
        return answer[partition].offset if partition in answer else None

    # Forks.

    def _disown(self, refuse: Callable[..., Any]) -> None:
        """In the child of a fork: abandons the member, and puts `refuse` in the place of the methods."""
        member = self._group_side.fetcher
        if member is not None:
            member.abandon()
        kind = _Client
        methods = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
        self.__dict__ |= dict.fromkeys(methods, refuse)


def _loop_of(given: dict[str, Any]) -> asyncio.AbstractEventLoop | None:
    """The loop on which a consumer is made; None if there is none, which the client refuses."""
    try:
        return given.get("loop") or asyncio.get_running_loop()
    except RuntimeError:
        return None


def _are_partitions(given: Iterable[Any]) -> bool:
    """Whether the client accepts these arguments. If not, its own method raises the right error."""
    return all(isinstance(each, TopicPartition) for each in given)


AIOKafkaConsumer.__init__.__signature__ = signature(with_self=True)  # type: ignore[attr-defined]
