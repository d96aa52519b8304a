"""`KafkaConsumer`: kafka-python's, with any assignor of this package.

    application ──► KafkaConsumer ─────────────► kafka.KafkaConsumer   records: it has no group
                        │
                        └─ application_side     callbacks, commits, the data path
                               ▲ Mailbox │ calls
                               │         ▼
                           membership ──────► brokers                its own thread: heartbeats, rebalances, commits

The two sides meet in the application's thread, inside `poll`, iteration, `commit`, `unsubscribe` and `close`.
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from typing import TYPE_CHECKING, Any, Self

import kafka
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python import _internals
from kafka_assignors.clients.kafka_python.application_side import KafkaPythonSide
from kafka_assignors.clients.kafka_python.commits import Asked, offset_and_metadata, offsets_of, positions_of
from kafka_assignors.clients.kafka_python.config import ConsumerConfig, without_membership
from kafka_assignors.clients.kafka_python.data_path import BEGINNING, END, without_group
from kafka_assignors.clients.kafka_python.errors import as_the_client, commit_error, committed_error, rebalance_error
from kafka_assignors.clients.kafka_python.group_metadata import group_metadata_of
from kafka_assignors.clients.kafka_python.lag_source import with_lags
from kafka_assignors.member import fork
from kafka_assignors.member.data_path import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from kafka_assignors.group import Plan
    from kafka_assignors.member.data_path import Partition

__all__ = ["KafkaConsumer"]

_Native = kafka.KafkaConsumer
# The longest wait of the iterator in one `poll`, in milliseconds. `close` of another thread is noticed after it.
_ITERATION_MS = 1_000.0
_CLOSES_IN_TIME = "timeout_ms" in inspect.signature(_Native.close).parameters


class KafkaConsumer(_internals.HookedConsumer):
    """`kafka.KafkaConsumer`, in whose group the assignors of this package decide.

    Methods, settings, callbacks and exceptions are the client's own. What differs:

    Args:
        *topics: the client's: topics to subscribe to.
        **configs: the client's settings.

    The setting `partition_assignment_strategy` takes the names `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
    `sticky-join`, `cooperative-sticky-join`, `weighted`, `cooperative-weighted` and `lag`, separated by commas, or an
    assignor of `kafka_assignors`, or a list of both; several in order of preference, for rolling upgrades. The client's
    own assignors and our plug-ins are taken by their names, if ours write the same bytes. The default is the client's:
    `range,roundrobin`. `lag` by name reads the lags of the group from the cluster.

    Further settings:

    - `on_rebalance`: a function that every member calls with a
      [`RebalanceReport`][kafka_assignors.clients.kafka_python.RebalanceReport] after each rebalance, in the
      application's thread. Its errors are logged.
    - `on_broker_assignor`: the reaction to the broker's own assignor, which serves the group once a member with
      KIP-848's protocol has joined. `fail`, the default, is an error; `carry-on` takes the broker's plan and logs a
      warning; so does `migrate`, with which a leader's assignments have no user data, so that a broker converts the
      group while it works ([the way over](kip-848.md#the-way-over)).
    - `client_rack` and `group_instance_id` are known with older releases of the client, too.
    - `group_protocol`: `consumer` for a group that the broker plans (KIP-848, brokers from 4.0 on); `classic` by
      default. The broker matches a `pattern`, also with internal topics, and in the syntax of RE2.
      `partition_assignment_strategy`, `session_timeout_ms`, `heartbeat_interval_ms` and `on_broker_assignor` are
      refused. `on_rebalance` gets reports without a plan.
    - `group_remote_assignor`: the broker's assignor for which this consumer votes, such as `range`; None by default.

    Partitions that stay with a consumer are read without a break, also in eager rebalances. Their positions stay, and
    so do the records that the client has fetched for them. Listeners run in the application's thread, so that they may
    call any method of the consumer but `poll`, which returns nothing there. Without a `group_id` the consumer is the
    client's, unchanged.

    Raises:
        MissingDependencyError: on import, if kafka-python is not installed.
        OptionError: a setting with a bad value, or one that the membership cannot honour, such as
            `sasl_mechanism="GSSAPI"`. It is a `KafkaConfigurationError` as well.
        KafkaError: as the client.

    >>> from kafka_assignors import StickyAssignor
    >>> from kafka_assignors.embedded import EmbeddedKafka
    >>> with EmbeddedKafka(topics={"orders": 6}) as broker:
    ...     with KafkaConsumer(
    ...         "orders",
    ...         bootstrap_servers=broker.bootstrap_servers,
    ...         group_id="billing",
    ...         partition_assignment_strategy=[StickyAssignor(), "range"],
    ...     ) as consumer:
    ...         while not consumer.assignment():
    ...             records = consumer.poll(timeout_ms=1000)
    ...         len(consumer.assignment())
    6
    """

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._group: KafkaPythonSide | None = None
        with as_the_client():
            settings = ConsumerConfig.read(configs)
            if settings is None:
                super().__init__(*topics, **without_membership(configs))
                return
            settings.checked()
        super().__init__(**settings.data_path)
        try:
            # By now the client has found the broker's release, on which its default session timeout depends.
            session_timeout_ms = int(self.config["session_timeout_ms"])
            with as_the_client():
                if settings.group_protocol == "classic":
                    settings = dataclasses.replace(settings, session_timeout_ms=session_timeout_ms).checked()
                self._settings = with_lags(settings, self)
        except BaseException:
            # The caller does not get the consumer, and cannot close it.
            _Native.close(self)
            raise
        self.config.update(settings.shown)
        self._group = KafkaPythonSide(self, self._settings)
        fork.watch(self)
        if topics:
            self._group.follow(topics=topics)

    # The group.

    def subscribe(self, topics: Iterable[str] = (), pattern: str | None = None, listener: Any = None) -> None:
        """As the client's; replaces the previous subscription.

        Args:
            topics: names.
            pattern: in their place a regular expression, matched from the beginning of a topic's name on. Each name is
                matched once.
            listener: a `ConsumerRebalanceListener`, or in version 3 of the client an `AsyncConsumerRebalanceListener`.

        Raises:
            IllegalStateError: both are given, or the program has assigned partitions by itself.
            TypeError: `topics` or `listener` has another type.
            ValueError: neither is given; in version 2 of the client an `AssertionError`.
        """
        if self._group is None:
            _Native.subscribe(self, topics=topics, pattern=pattern, listener=listener)
        else:
            self._group.follow(topics=topics, pattern=pattern, listener=listener)

    def unsubscribe(self) -> None:
        """As the client's: gives all partitions up, and leaves the group. The listener is not called."""
        if self._group is None:
            _Native.unsubscribe(self)
        else:
            self._group.unsubscribe()

    def subscription(self) -> set[str] | None:
        """As the client's: the topics, also those that a pattern matches so far; None without a subscription."""
        found: set[str] | None = _Native.subscription(self) if self._group is None else self._group.subscription()
        return found

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """As the client's: reads these partitions without the group's plan, from its commits.

        Raises:
            IllegalStateError: the consumer has subscribed.
        """
        if self._group is None:
            _Native.assign(self, partitions)
            return
        chosen = [*partitions]
        if not chosen:
            self.unsubscribe()
            return
        self._group.wanted.assign_from_user(chosen)
        self._group.assign_by_program({_plain(each) for each in chosen})

    def assignment(self) -> set[TopicPartition]:
        """As the client's."""
        if self._group is None:
            found: set[TopicPartition] = _Native.assignment(self)
            return found
        return {TopicPartition(*each) for each in self._group.assigned.owned}

    def plan(self) -> Plan | None:
        """The plan that this consumer made when it last led its group; None if it never did."""
        return None if self._group is None else self._group.strategies.last_plan

    if hasattr(_Native, "group_metadata"):

        def group_metadata(self) -> Any:
            """As the client's, for `KafkaProducer.send_offsets_to_transaction`.

            The metadata name this member, so that a zombie's transaction is fenced. Between two memberships they name
            the last one, whose transactions are refused.
            """
            if self._group is None:
                return _Native.group_metadata(self)
            return group_metadata_of(self._group.member, self._settings)

    # Records.

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[Any]]:
        """As the client's. Within a listener it returns nothing."""
        group = self._group
        if group is None or self._is_odd(timeout_ms, max_records):
            return self._fetched(timeout_ms, max_records, update_offsets)
        if group.is_busy:
            return {}
        deadline = time.monotonic() + timeout_ms / 1000
        waited = False
        with group.path.polling():
            while True:
                group.attend_in_poll()
                if _internals.is_closed(self):
                    return {}
                undelivered = group.path.undelivered
                if undelivered and group.hands_out and undelivered.ready(group.paused):
                    most = self.config["max_poll_records"] if max_records is None else max_records
                    return undelivered.take(most, group.paused)
                now = time.monotonic()
                if waited and now >= deadline:
                    # The client has just looked for records. Another look would cost as much as a whole wait.
                    return {}
                records, mailbox = group.waits(max(0.0, deadline - now))
                waited = records is not None and mailbox == 0
                if records is not None:
                    found = self._fetched(records * 1000, max_records, update_offsets)
                    if found and group.may_hand_out:
                        return found
                if mailbox > 0:
                    group.mailbox.wait(mailbox)
                if now >= deadline:
                    return {}

    def _is_odd(self, timeout_ms: Any, max_records: Any) -> bool:
        """Whether the client refuses these arguments, or any call since it is closed."""
        return (
            _internals.is_closed(self)
            or timeout_ms < 0
            or not (max_records is None or (isinstance(max_records, int) and max_records > 0))
        )

    def _fetched(self, timeout_ms: float, max_records: int | None, update_offsets: bool) -> dict[Any, list[Any]]:
        """The client's own `poll`. The group is hidden from it, since it would look for the group's coordinator."""
        with without_group(self):
            found: dict[Any, list[Any]] = _Native.poll(
                self, timeout_ms=timeout_ms, max_records=max_records, update_offsets=update_offsets
            )
            return found

    def _next_records(self) -> Generator[Any, None, None] | None:
        return None if self._group is None else self._iterate(self._group)

    def _iterate(self, group: KafkaPythonSide) -> Generator[Any, None, None]:
        """The records of one wait. When the generator ends, the client calls `_next_records` again."""
        undelivered, mailbox = group.path.undelivered, group.mailbox
        milliseconds = self.config["consumer_timeout_ms"]
        deadline = time.monotonic() + milliseconds / 1000 if milliseconds >= 0 else float("inf")
        while not undelivered.ready(group.paused) or not group.hands_out:
            left = (deadline - time.monotonic()) * 1000
            if left <= 0 or _internals.is_closed(self):
                return
            undelivered.add(self.poll(timeout_ms=min(left, _ITERATION_MS)))
        paused, path = group.assigned.paused, group.path
        for partition, queue in undelivered.ready(paused):
            while queue and partition not in paused:
                if mailbox or group.is_due:
                    with path.polling():
                        group.attend_in_poll()
                if not group.hands_out or not queue:
                    break
                path.polled = time.monotonic()
                yield queue.popleft()

    def highwater(self, partition: TopicPartition) -> int | None:
        """As the client's; None for a partition that is not read yet."""
        if self._is_waiting(partition):
            return None
        found: int | None = _Native.highwater(self, partition)
        return found

    def pause(self, *partitions: TopicPartition) -> None:
        """As the client's. A paused partition that stays in a rebalance stays paused."""
        read = [each for each in partitions if not self._is_waiting(each)]
        if read or not partitions:
            _Native.pause(self, *read)
        if self._group is not None:
            self._group.assigned.pause(map(_plain, partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """As the client's."""
        read = [each for each in partitions if not self._is_waiting(each)]
        if _internals.LOSES_PAUSED_RECORDS:
            paused = _Native.paused(self)
            positions = {each: _internals.position_of(self, each) for each in read if each in paused}
        if read or not partitions:
            _Native.resume(self, *read)
        if self._group is not None:
            self._group.assigned.resume(map(_plain, partitions))
        if _internals.LOSES_PAUSED_RECORDS:
            for partition, position in positions.items():
                if position is not None:
                    _internals.start_at(self, partition, *position)

    def paused(self) -> set[TopicPartition]:
        """As the client's."""
        if self._group is None:
            found: set[TopicPartition] = _Native.paused(self)
            return found
        # During an eager rebalance no partition is owned, but the client still has the pauses of parked partitions.
        noted = {TopicPartition(*each) for each in self._group.paused}
        return noted.union(_Native.paused(self))

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int | None:
        """As the client's: the offset of the next record, or None if it is not known in time.

        Args:
            partition: one that is assigned.
            timeout_ms: how long to wait for it; by default until it is known.
        """
        if self._group is None or not (self._is_waiting(partition) or self._reads(partition)):
            timed = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
            found: int | None = _Native.position(self, partition, **timed)
            return found
        return self._group.position(_plain(partition), None if timeout_ms is None else timeout_ms / 1000)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """As the client's; also for a partition that is not read yet, and within a listener."""
        waits = self._is_waiting(partition) and isinstance(offset, int) and offset >= 0
        if waits and self._of_group()[0].starts_at(_plain(partition), Position(offset)):
            return
        _Native.seek(self, partition, offset)
        self._sought((partition,))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """As the client's; also for partitions that are not read yet."""
        self._seek_to(BEGINNING, _Native.seek_to_beginning, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """As the client's; also for partitions that are not read yet."""
        self._seek_to(END, _Native.seek_to_end, partitions)

    def _seek_to(self, logical: int, native: Callable[..., None], partitions: tuple[TopicPartition, ...]) -> None:
        every = partitions or tuple(sorted(self.assignment())) if self._group is not None else partitions
        waiting = [
            each
            for each in every
            if self._is_waiting(each) and self._of_group()[0].starts_at(_plain(each), Position(logical))
        ]
        others = [each for each in every if each not in waiting]
        if others or not waiting:
            native(self, *others)
            self._sought(others)

    def _sought(self, partitions: Iterable[TopicPartition]) -> None:
        if self._group is not None:
            plain = [_plain(each) for each in partitions]
            self._group.path.undelivered.drop(plain)
            for each in plain:
                # After a seek, an offset below the last commit is committed as well.
                self._group.assigned.committed(each, -1)

    # Offsets.

    def commit(self, offsets: Any = None, timeout_ms: float | None = None) -> None:
        """As the client's. It is refused if this consumer is no longer a member.

        Args:
            offsets: `{TopicPartition: OffsetAndMetadata}`; by default the positions of all partitions.
            timeout_ms: how long to try; by default `request_timeout_ms`.

        Raises:
            CommitFailedError: the consumer is no longer a member, or no longer has one of the partitions. The offsets
                of the others are committed.
            RebalanceInProgressError: an eager rebalance is under way, so that it is not known which positions are this
                consumer's. With `offsets` the commit waits for its end.
            KafkaTimeoutError: no answer came in time.
        """
        if self._group is None:
            timed = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
            _Native.commit(self, offsets, **timed)
            return
        if self._group.holds_back and offsets is None:
            raise rebalance_error()
        due = self._due(offsets)
        if due:
            seconds = self._settings.client.request_timeout if timeout_ms is None else max(0.0, timeout_ms / 1000)
            error = commit_error(self._group.commit(due, seconds))
            if error is not None:
                raise error

    def commit_async(self, offsets: Any = None, callback: Any = None) -> Any:
        """As the client's. The callback is called by a later `poll` or `commit`.

        Args:
            offsets: `{TopicPartition: OffsetAndMetadata}`; by default the positions of all partitions.
            callback: called with the offsets and None or the error; by default `default_offset_commit_callback`.

        Returns:
            A `kafka.future.Future`.
        """
        if self._group is None:
            return _Native.commit_async(self, offsets, callback)
        group = self._group
        due = self._due(offsets)
        asked = Asked(offsets_of(due) if offsets is None else offsets, callback)
        if due:
            group.commits.send(due, asked)
        else:
            failed = rebalance_error() if group.holds_back and offsets is None else None
            group.run(lambda: group.path.outcomes.end(asked, failed))
        return asked.future

    def _due(self, offsets: Any) -> dict[Partition, Position]:
        group, _ = self._of_group()
        with as_the_client():
            if group.commits.member is None:
                group.commits.member = group.ensure_fetcher()
        if offsets is None:
            return group.path.positions(group.assigned.held)
        return positions_of(offsets)

    def committed(self, partition: TopicPartition, metadata: bool = False, timeout_ms: float | None = None) -> Any:
        """As the client's: the group's last commit; None without one.

        Args:
            partition: any partition.
            metadata: whether to return the client's `OffsetAndMetadata` instead of the offset.
            timeout_ms: how long to try; by default without end.

        Raises:
            KafkaTimeoutError: no answer came in time.
        """
        if self._group is None or not isinstance(partition, TopicPartition):
            timed = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
            return _Native.committed(self, partition, metadata, **timed)
        with as_the_client():
            fetcher = self._group.ensure_fetcher()
        seconds = None if timeout_ms is None else timeout_ms / 1000
        found = self._group.commits.committed(fetcher, [_plain(partition)], seconds)
        error = committed_error(found)
        if error is not None:
            raise error
        assert found is not None
        position = found.positions[_plain(partition)]
        if position.offset < 0:
            return None
        return offset_and_metadata(position) if metadata else position.offset

    # The end.

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """As the client's: calls `on_partitions_revoked`, makes automatic commits a last time, and leaves the group.

        If the coordinator does not answer, this takes 30 seconds at most. Within a listener, the consumer closes when
        the listener returns.

        Args:
            autocommit: False leaves out the last commit.
            timeout_ms: how long it may take.

        Raises:
            KafkaError: the listener has failed. The consumer is closed all the same.
        """
        group = self._group
        if group is None or _internals.is_closed(self):
            self._close_native(autocommit, timeout_ms)
            return
        group.path.commits = group.path.commits and autocommit
        try:
            group.leave(None if timeout_ms is None else timeout_ms / 1000)
        finally:
            if not group.is_busy:
                self._close_native(False, timeout_ms)

    def _close_native(self, autocommit: bool, timeout_ms: float | None) -> None:
        timed = {"timeout_ms": timeout_ms} if _CLOSES_IN_TIME and timeout_ms is not None else {}
        _Native.close(self, autocommit=autocommit, **timed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        # After an error the last records may not be processed, so they are not committed.
        self.close(autocommit=exc_type is None)

    def _disown(self, refuse: Callable[..., Any]) -> None:
        """In the child of a fork: abandons the member, and puts `refuse` in the place of the methods."""
        group = self._group
        if group is not None and group.fetcher is not None:
            group.fetcher.abandon()
        methods = [name for name in dir(type(self)) if not name.startswith("_") and callable(getattr(self, name))]
        self.__dict__.update(dict.fromkeys(methods, refuse) | {"close": _left_to_the_parent})

    # Partitions of the group.

    def _of_group(self) -> tuple[KafkaPythonSide, ConsumerConfig]:
        assert self._group is not None
        return self._group, self._settings

    def _is_waiting(self, partition: Any) -> bool:
        """Whether the partition is this consumer's, and the client is not assigned it yet."""
        group = self._group
        return (
            group is not None
            and isinstance(partition, TopicPartition)
            and partition in group.assigned.owned
            and not group.path.reads(_plain(partition))
        )

    def _reads(self, partition: Any) -> bool:
        group = self._group
        return group is not None and isinstance(partition, TopicPartition) and group.path.reads(_plain(partition))


def _plain(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition


def _left_to_the_parent(autocommit: bool = True, timeout_ms: float | None = None) -> None:
    """`close` in the child of a fork: only the parent may close the consumer."""
