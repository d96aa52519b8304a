"""The application's side of a consumer of librdkafka: the parts that other clients do not need.

A turn may begin in librdkafka's callback for statistics, while the application is blocked inside librdkafka. Errors and
messages of such a turn wait for the next `poll`. librdkafka's consumer may also stall, and is replaced then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import OFFSET_STORED, KafkaError, KafkaException, Message, TopicPartition

from kafka_assignors.clients.confluent import times
from kafka_assignors.clients.confluent.commits import as_partitions, checked, committed_as_the_client, positions_of
from kafka_assignors.clients.confluent.data_path import LibrdkafkaPath
from kafka_assignors.clients.confluent.errors import as_the_client
from kafka_assignors.clients.confluent.own_client import CallbackThread, OwnClient
from kafka_assignors.clients.confluent.stall_detector import StallDetector
from kafka_assignors.clients.confluent.unsubscribed_commits import UnsubscribedCommits
from kafka_assignors.member.application_side import ApplicationSide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.clients.confluent.config import ConsumerConfig
    from kafka_assignors.member.data_path import Partition, Position
    from kafka_assignors.member.subscription import Filter

__all__ = ["ConfluentSide"]

logger = logging.getLogger("kafka_assignors")

# The client's class is stored at import, since programs may put our class in its place later.
_Native = confluent_kafka.Consumer


class ConfluentSide(ApplicationSide):
    """The application's side of one consumer.

    Args:
        consumer: the consumer.
        config: its settings.
        summon: makes the next `poll` an attentive one (`polling.py`).
        renew: replaces librdkafka's consumer.

    Attributes:
        path: librdkafka as the data path.
        unsubscribed_commits: the commits on the interval while the consumer has not subscribed.
        own_client: a client beside the consumer, with the consumer's settings.
        within_callback: the thread that runs the callback for statistics.
        stall_detector: detects that librdkafka fetches no more.
    """

    def __init__(
        self,
        consumer: confluent_kafka.Consumer,
        config: ConsumerConfig,
        summon: Callable[[], float | None],
        renew: Callable[[], None],
    ) -> None:
        self.path = LibrdkafkaPath(consumer, config, summon)
        super().__init__(self.path, config)
        self.path.paused = self.assigned.paused
        self._consumer = consumer
        self._settings = config
        self._summon = summon
        self._renew = renew
        self.unsubscribed_commits = UnsubscribedCommits(consumer, config)
        self.own_client = OwnClient(config.data_path)
        self.within_callback = CallbackThread()
        self._new_credentials: tuple[str, str] | None = None
        interval = config.data_path.get("statistics.interval.ms", 0)
        limit = config.session_timeout_ms / 1000
        self.stall_detector = StallDetector(self.own_client, interval, limit, self._found_stalled)
        self._is_stalled = False

    @property
    def is_due(self) -> bool:
        """Whether `poll` has something to do."""
        path = self.path
        own = path.news or path.fatal or self._is_stalled or path.is_held_up or self._new_credentials
        return bool(own) or super().is_due

    def subscribe(self, topics: Iterable[str], expressions: Mapping[str, Filter], listener: Any) -> None:
        """As `ApplicationSide.subscribe`. Removes the partitions that the application assigned: now the group assigns.

        Raises:
            OptionError: the files that TLS needs cannot be used.
        """
        with self._starting, as_the_client():
            if not self.subscribed:
                _Native.unassign(self._consumer)
            super().subscribe(topics, expressions, listener)

    def committed(self, partitions: Any, timeout: float | None) -> list[TopicPartition]:
        """The committed offsets of the group. The consumer need not have subscribed."""
        with as_the_client():
            fetcher = self.ensure_fetcher()
        asked = checked(partitions)
        return committed_as_the_client(asked, self.commits.committed(fetcher, as_partitions(asked), timeout))

    # Methods that also work within the callback for statistics (`own_client.py`).

    def list_topics(self, topic: str | None, timeout: float) -> Any:
        """As the client's."""
        if not self.within_callback.is_this:
            return _list_topics(self._consumer, topic, timeout)
        with self.own_client.opened() as client:
            return _list_topics(client, topic, timeout)

    def set_sasl_credentials(self, username: str, password: str) -> bool:
        """As the client's. False within the callback: the next attentive `poll` passes them to librdkafka."""
        self.own_client.credentials = username, password
        if self.within_callback.is_this:
            self._new_credentials = username, password
            return False
        _Native.set_sasl_credentials(self._consumer, username, password)
        return True

    def _set_new_credentials(self) -> None:
        new, self._new_credentials = self._new_credentials, None
        if new is not None:
            _Native.set_sasl_credentials(self._consumer, *new)

    # Turns.

    def attend_in_poll(self) -> Message | None:
        """Takes a turn. Returns an error that `poll` delivers as a message.

        Raises:
            BaseException: what a callback raised, also one of an earlier turn inside librdkafka.
            KafkaException: the member has left its group for good.
        """
        with self._lock:
            if self._busy:
                return None
            try:
                self.path.is_inside = False
                self._set_new_credentials()
                if self.may_hand_out:
                    self.path.go_on(self.assigned.paused)
                self.attend()
                self._commit_unsubscribed()
                if self._is_stalled:
                    self._renew_data_path()
            finally:
                if self.leaves_later:
                    self.leaves_later = False
                    self._consumer.close()
            if self.path.news:
                first = self.path.news.pop(0)
                if isinstance(first, Exception):
                    raise first
                return first
            if self.path.fatal is not None:
                raise KafkaException(self.path.fatal)
            return None

    def attend_inside(self) -> None:
        """Takes a turn in a callback of librdkafka. If the callback raised, librdkafka would lose a message, so errors
        wait for the next `poll`.
        """
        with self._lock:
            if self._busy:
                return
            self.path.is_inside = True
            if self.may_hand_out and not self.is_in_doubt:
                self.path.go_on(self.assigned.paused)
            self.attend(can_raise=False)
            self._commit_unsubscribed()

    def _commit_unsubscribed(self) -> None:
        if not self.subscribed and self.commits_now():
            self.unsubscribed_commits.commit()

    def pause_in_doubt(self) -> None:
        """Pauses the partitions if the session may end before the next statistics.

        Until then the application is blocked inside librdkafka, which would deliver records of lost partitions.
        """
        member = self.member
        seconds = times.STATISTICS_LATE * self._settings.data_path["statistics.interval.ms"] / 1000
        if member is not None and member.is_in_doubt and member.session_left < seconds:
            self.path.hold_up(self.assigned.reading)

    def nothing_to_commit(self) -> None:
        """Reports to `on_commit`, in a turn, that there was nothing to commit."""
        read = self.assigned.read
        self.run(lambda: self.path.outcomes.tell_of_nothing(read))

    # A consumer of librdkafka that has stalled.

    def look(self, statistics: str) -> None:
        """Checks whether records still arrive."""
        if self.member is None or self.is_busy or self.holds_back:
            return
        starts = self.path.next_starts(self.assigned.reading)
        self.stall_detector.look({partition: start.offset for partition, start in starts.items()}, statistics)

    def _found_stalled(self) -> None:
        """Makes the next `poll` replace librdkafka's consumer. The stall detector calls it, on a thread of its own."""
        self._is_stalled = True
        self._summon()

    def _renew_data_path(self) -> None:
        self._is_stalled = False
        if self.holds_back or not self.assigned.is_read:
            return
        logger.warning(
            "group %r: records wait, and librdkafka has fetched nothing for %g s (session.timeout.ms) while the group "
            "and the leaders answer; its connections are made anew, and reading goes on at the same positions",
            self._settings.group_id,
            self._settings.session_timeout_ms / 1000,
        )
        resolved = self.stall_detector.resolved
        self.path.renew(self._renew, resolved, held=self.assigned.held, paused=self.assigned.paused)
        self.stall_detector.reset()

    # Assignments by the application.

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are read, as the client shows them; within `on_assign` also those chosen so far."""
        return [TopicPartition(*each, OFFSET_STORED) for each in sorted(self.shown)]

    def assign(self, partitions: list[TopicPartition] | None, *, incremental: int = 0) -> None:
        """Assigns for the application between rebalances. The group's assignment stays the same.

        Args:
            partitions: the partitions; None for `unassign`.
            incremental: 1 to add them, -1 to take them away, 0 for these and nothing else.

        Raises:
            KafkaException: as the client: `assign` in a cooperative group, or an incremental change in an eager one.
            RuntimeError: the consumer is closed.
        """
        if self.has_left:
            raise RuntimeError("Consumer closed")
        if self.latest[1] >= 0 and self.strategies.cooperative != bool(incremental):
            verb = "remove" if partitions is None else "set"
            reason = f"Failed to {verb} assignment: Local: Erroneous state"
            if incremental:
                reason = (
                    "Changes to the current assignment must be made using assign() when rebalance protocol is EAGER"
                )
            raise KafkaException(KafkaError(KafkaError._STATE, reason))
        wanted: dict[Partition, Position | None] = positions_of(partitions or [])
        read = self.assigned.read
        refused = wanted.keys() & read if incremental > 0 else wanted.keys() - read if incremental < 0 else set()
        if refused:
            topic, number = min(refused)
            what = "assigned since it is already" if incremental > 0 else "unassigned since it is not"
            reason = f"{topic} [{number}] can't be {what} in the current assignment"
            code = KafkaError._CONFLICT if incremental > 0 else KafkaError._INVALID_ARG
            raise KafkaException(KafkaError(code, reason))
        self.reassign(wanted, incremental=incremental)


def _list_topics(client: confluent_kafka.Consumer, topic: str | None, timeout: float) -> Any:
    return (
        _Native.list_topics(client, timeout=timeout) if topic is None else _Native.list_topics(client, topic, timeout)
    )
