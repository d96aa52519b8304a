"""The application's side of a consumer of kafka-python: the parts that other clients do not need.

Callbacks run in the application's thread, inside `poll`, iteration, `commit`, `unsubscribe` and `close`. A program that
assigns partitions by itself has no membership; its commits, and the starts at commits, are made by a member that never
subscribes.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from kafka.consumer.subscription_state import SubscriptionState

from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.clients.common.group_protocol import broker_expression
from kafka_assignors.clients.common.topic_pattern import TopicPattern
from kafka_assignors.clients.kafka_python import _internals
from kafka_assignors.clients.kafka_python.commits import Asked, offsets_of
from kafka_assignors.clients.kafka_python.data_path import NO_COMMIT, KafkaPythonPath
from kafka_assignors.clients.kafka_python.errors import as_the_client, commit_error, committed_error
from kafka_assignors.clients.kafka_python.listeners import TELLS_OF_LOSSES
from kafka_assignors.member import times
from kafka_assignors.member.application_side import ApplicationSide
from kafka_assignors.member.data_path import Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import kafka

    from kafka_assignors.clients.kafka_python.config import ConsumerConfig
    from kafka_assignors.clients.kafka_python.listeners import Rebalance
    from kafka_assignors.member.data_path import CommitOutcome, Partition
    from kafka_assignors.member.subscription import Filter

__all__ = ["KafkaPythonSide"]

logger = logging.getLogger("kafka_assignors")

# Seconds of a wait inside the client while the starting offsets of a program's own partitions are being fetched.
_GLANCE = 0.05
# The longest wait inside the client. Only a record ends it early.
_LONGEST_WAIT = 1.0


class KafkaPythonSide(ApplicationSide):
    """The application's side of one consumer.

    Args:
        consumer: the consumer.
        config: its settings.

    Attributes:
        path: kafka-python as the data path.
        wanted: the subscription or assignment of the program, kept by the client's own code.
    """

    def __init__(self, consumer: kafka.KafkaConsumer, config: ConsumerConfig) -> None:
        self.path = KafkaPythonPath(consumer, config, self._rebalance)
        super().__init__(self.path, config)
        self.wanted = SubscriptionState(config.reset)
        self._consumer = consumer
        self._settings = config

    def _rebalance(self) -> Rebalance:
        """Within a callback: whether the rebalance is cooperative, and the membership that it gave."""
        member = self.member
        now = None if member is None else Membership(member.identity[1], member.identity[0])
        return self.strategies.cooperative, now

    # Subscriptions and assignments.

    def follow(self, **asked: Any) -> None:
        """Subscribes. The arguments are those of the client's `subscribe`, whose own code checks them."""
        self.wanted.subscribe(**asked)
        if not self.subscribed and self.assigned.owned:
            self.assign_by_program(())
        pattern, listener = asked.get("pattern"), asked.get("listener")
        if pattern:
            matching = TopicPattern(pattern, with_internal=self._settings.with_internal)
            text = broker_expression(pattern) if self._settings.group_protocol == "consumer" else pattern
            self.subscribe((), {text: matching}, listener)
        else:
            names = sorted(self.wanted.subscription)
            if self._settings.create_topics and not self.assigned.is_read:
                _internals.introduce(self._consumer, names)
            self.subscribe(names, {}, listener)
        _internals.show_subscription(self._consumer, self.subscription())

    def subscription(self) -> set[str] | None:
        """The topics, also those that a pattern matches so far; None without a subscription."""
        if self.wanted.subscription is None:
            return None
        if self.member is not None and self.wanted.subscribed_pattern is not None:
            return set(self.member.topics)
        return set(self.wanted.subscription)

    def subscribe(self, topics: Iterable[str], expressions: Mapping[str, Filter], listener: Any) -> None:
        """As `ApplicationSide.subscribe`.

        Raises:
            OptionError: the files that TLS needs cannot be used.
        """
        self.path.muted = False
        with as_the_client():
            super().subscribe(topics, expressions, listener)

    def unsubscribe(self) -> None:
        """Gives up all partitions, and leaves the group. The listener is not called."""
        self.wanted.unsubscribe()
        _internals.show_subscription(self._consumer, None)
        member = self.member
        if member is None or not member.is_subscribed:
            self.assign_by_program(())
            return
        self.path.muted = True
        member.unsubscribe()
        deadline = time.monotonic() + times.JOIN_THREAD
        # Within a listener the turn has to end first.
        while self.assigned.owned and not self.is_busy and time.monotonic() < deadline:
            self.mailbox.wait(_GLANCE)
            self.attend()
        if not self.is_busy:
            # Drops the partitions that an eager rebalance has parked.
            self.assign_by_program(())

    def assign_by_program(self, partitions: Iterable[Partition]) -> None:
        """Reads these partitions by the program's own choice, from the group's commits, without joining the group."""
        if self._settings.auto_commit:
            self.commits.send(self.assigned.due())
        with as_the_client():
            self.commits.member = self.ensure_fetcher()
        self.holds_back = False
        self.assigned.take(partitions, spares=False)
        missing = self.assigned.start(None)
        if missing:
            self.commits.fetch(missing)

    @property
    def paused(self) -> set[Partition]:
        """The partitions that the application has paused."""
        return set(self.assigned.paused)

    # Turns.

    def attend(self, *, can_raise: bool = True) -> None:
        """As `ApplicationSide.attend`. Then closes the consumer if its listener has called `close`."""
        try:
            super().attend(can_raise=can_raise)
            if not self.subscribed and not self.is_busy and self.commits_now():
                self.commits.send(self.assigned.due())
        finally:
            if self.leaves_later and not self.is_busy:
                self.leaves_later = False
                self._consumer.close(autocommit=self.path.commits)

    def attend_in_poll(self) -> None:
        """Takes a turn.

        Raises:
            Exception: an error that a turn has stored for the application.
        """
        self.attend()
        self.path.look_after_resets()
        if self.path.news:
            raise self.path.news.pop(0)
        if self.path.fatal is not None:
            raise self.path.fatal

    def waits(self, seconds: float) -> tuple[float | None, float]:
        """As `patience`, but short enough that commits, and a `close` of another thread, are not late."""
        now = time.monotonic()
        seconds = min(seconds, _LONGEST_WAIT, max(times.LIVENESS_CHECK_LEAST, self.next_commit - now))
        if self.member is None and self.assigned.waiting:
            seconds = min(seconds, _GLANCE)
        return self.patience(seconds)

    @property
    def hands_out(self) -> bool:
        """Whether records that were taken out of the client may be handed out."""
        return not self.holds_back and self.may_hand_out

    # Positions.

    def starts_at(self, partition: Partition, position: Position) -> bool:
        """Chooses the start of a partition that the client does not read yet.

        Returns:
            False if the client reads it, or it is not this consumer's.
        """
        if self.within == "assigned" and partition in self.assigned.owned and not self.path.reads(partition):
            self.path.sought[partition] = position
            self.choose({each: self.path.sought.get(each) for each in self.assigned.owned})
            return True
        return self.assigned.start_at(partition, position)

    def position(self, partition: Partition, timeout: float | None) -> int | None:
        """The offset of the next record.

        Args:
            partition: one that is assigned.
            timeout: how many seconds to wait for it; None has no end.

        Returns:
            None if it is not known in time.
        """
        deadline = time.monotonic() + (times.NO_LIMIT if timeout is None else timeout)
        while True:
            if self.is_busy and not self.path.reads(partition):
                return self._start_in_listener(partition)
            known = self.path.position(partition)
            if known is not None:
                return known.offset
            left = deadline - time.monotonic()
            if left <= 0 or partition not in self.assigned.owned:
                return None
            if self.path.reads(partition):
                self.path.reset(partition, min(left, _GLANCE))
            else:
                self.mailbox.wait(min(left, _GLANCE))
            self.attend()

    def _start_in_listener(self, partition: Partition) -> int | None:
        """The offset at which a new partition starts, for its listener. This call fixes the start."""
        chosen = self.path.sought.get(partition)
        if chosen is None and self.member is not None:
            found = self.commits.committed(self.member, [partition], self._settings.client.request_timeout)
            error = committed_error(found)
            if error is not None:
                raise error
            assert found is not None
            chosen = found.positions[partition]
        if chosen is None or chosen.offset < 0:
            logical = None if chosen is None or chosen.offset == NO_COMMIT else chosen.offset
            offset = self.path.looked_up(partition, logical)
            chosen = None if offset is None else Position(offset)
        if chosen is not None:
            self.starts_at(partition, chosen)
        return None if chosen is None else chosen.offset

    # Commits.

    def commit(self, offsets: Mapping[Partition, Position], timeout: float) -> CommitOutcome | None:
        """Commits, and waits. Meanwhile turns are taken, since without them the group may not answer.

        Returns:
            None if the membership did not answer.
        """
        if self.is_busy:
            return self.commits.send_and_wait(offsets, timeout)
        asked = Asked(offsets_of(offsets), _unheard)
        self.commits.send(offsets, asked, timeout)
        deadline = time.monotonic() + timeout + times.REPLY_GRACE
        while not asked.outcome and (left := deadline - time.monotonic()) > 0:
            self.mailbox.wait(min(left, _LONGEST_WAIT))
            self.attend()
        return asked.outcome[0] if asked.outcome else None

    # The end.

    def leave(self, timeout: float | None) -> None:
        """Leaves the group for good, after a last commit.

        Args:
            timeout: how many seconds it may take; `times.CLOSE` by default.

        Raises:
            KafkaError: the listener has failed.
        """
        if not TELLS_OF_LOSSES:
            # Before version 3 a listener is not called when the consumer closes.
            self.path.muted = True
        if not self.subscribed and not self.is_busy and self._settings.auto_commit and self.path.commits:
            due = self.assigned.due()
            error = commit_error(self.commits.send_and_wait(due, timeout)) if due else None
            if error is not None:
                logger.warning("group %r: the last commit of offsets failed: %s", self._settings.group_id, error)
        self.close(timeout)


def _unheard(_offsets: object, _response: object) -> None:
    """The callback of a synchronous commit."""
