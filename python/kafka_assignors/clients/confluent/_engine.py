"""What a consumer does when its group wants something: the application's side of the membership.

Everything here runs in the application's thread, inside `poll`, `consume`, `close` or a callback of librdkafka.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kafka_assignors.clients.confluent._commits import Commits
from kafka_assignors.clients.confluent._share import Position, Share
from kafka_assignors.clients.confluent._strategies import Strategies
from kafka_assignors.clients.confluent.membership import Mailbox, Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors.clients.confluent._conf import ConsumerConfig
    from kafka_assignors.clients.confluent._strategies import Partition

__all__ = ["Callbacks", "Engine"]

logger = logging.getLogger("kafka_assignors")

# How long a departure may take before the consumer goes without a goodbye.
_CLOSE_TIMEOUT = 30.0
_JOIN_TIMEOUT = 5.0
# While the group is about to say something: for how many seconds it is waited for, and records only looked for this
# often; after that the group is looked for, each time after a tenth of how long it has been taking.
_SUSPENSE = 0.25
_GLANCE = 0.005


class Callbacks:
    """What `subscribe` was given."""

    def __init__(self, on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        for name, function in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} expects a callable")
        self.on_assign = on_assign
        self.on_revoke = on_revoke
        # Without one, what is lost is told as what is revoked.
        self.on_lost = on_lost or on_revoke


class Engine:
    """The membership of one consumer, as its own methods need it.

    Attributes:
        share: what the consumer holds.
        strategies: its assignors.
        mailbox: what is to be done.
        commits: its commits.
        member: None before the first subscription.
        holds_back: whether nothing may be delivered: everything was given up, and the new share is not there yet.
    """

    def __init__(
        self, consumer: confluent_kafka.Consumer, config: ConsumerConfig, summon: Callable[[], float | None]
    ) -> None:
        self._consumer = consumer
        self._config = config
        self._summon = summon
        self.share = Share(consumer, config.reset, auto_store=config.auto_store)
        self.strategies = Strategies(config.assignors, config.rack, config.on_rebalance)
        self.mailbox = Mailbox()
        self.commits = Commits(self.share, self.mailbox, config)
        self.member: Member | None = None
        self.holds_back = False
        self._callbacks = Callbacks()
        self._turn = threading.RLock()
        self._starting = threading.Lock()
        self._busy = False
        # Within a callback: what the application assigns there is its choice of what to read.
        self._assigning: dict[Partition, TopicPartition] | None = None
        self._in: str | None = None
        # What came up where it could neither be raised nor returned.
        self._later: list[BaseException | Message] = []
        self._fatal: KafkaError | None = None
        self._left = False
        self._close_wanted = False
        # The member id and the generation of the latest share.
        self._since: tuple[str, int] = ("", -1)
        self._next_commit = self._commit_after()

    @property
    def subscribed(self) -> bool:
        """Whether the consumer is, or was, a member of its group; if not, it is an ordinary one."""
        return self.member is not None

    @property
    def within(self) -> str | None:
        """`assign` or `revoke` within those callbacks, else None."""
        return self._in

    @property
    def is_busy(self) -> bool:
        """Whether a callback is running."""
        return self._busy

    @property
    def is_due(self) -> bool:
        """Whether `attend` has something to do."""
        waiting = self.mailbox or self._later or self._fatal or self._close_wanted
        return bool(waiting) or time.monotonic() >= self._next_commit

    def patience(self, timeout: float) -> tuple[float | None, float]:
        """How to spend a wait of at most `timeout` seconds.

        Nobody can wait for records and for the group at once. So the wait for records ends when the group may have
        news, which is known beforehand since heartbeats bring them, and a rebalance finds no member amid a wait.

        Returns:
            How long to wait inside librdkafka, where only records end it, None where it must not be asked at all; and
            how long to wait in front of the mailbox then.
        """
        member = self.member
        if member is None:
            return timeout, 0.0
        if self.holds_back:
            return None, timeout
        if not self.share.is_read:
            # For the callbacks of librdkafka: logs, errors, tokens.
            return 0.0, timeout
        left = member.news_due - time.monotonic()
        if left > 0:
            return min(timeout, left), 0.0
        if left > -_SUSPENSE:
            return 0.0, min(timeout, _GLANCE)
        return min(timeout, -left / 10), 0.0

    def _commit_after(self) -> float:
        """When to commit next; never where the application does it, or an interval of 0 leaves it to revocations."""
        config = self._config
        wanted = config.auto_commit and config.auto_commit_interval > 0
        return time.monotonic() + config.auto_commit_interval if wanted else float("inf")

    def commits_now(self) -> bool:
        """Whether it is time for a commit on the interval; the next one is an interval later."""
        if time.monotonic() < self._next_commit:
            return False
        self._next_commit = self._commit_after()
        return True

    # Subscriptions.

    def subscribe(self, topics: Iterable[str], callbacks: Callbacks) -> None:
        """Becomes a member, or a member with another subscription."""
        names = {topic for topic in topics if not topic.startswith("^")}
        patterns = [re.compile(topic) for topic in topics if topic.startswith("^")]
        # Not under `_turn`: a callback may subscribe from another thread, as those of asyncio do.
        with self._starting:
            self._callbacks = callbacks
            if self.member is None:
                # An application that assigned by itself so far: the group decides from now on.
                confluent_kafka.Consumer.unassign(self._consumer)
                self.member = Member(self._config, self.strategies, self.mailbox, self._summon)
                self.commits.member = self.member
            self.member.subscribe(names, patterns)

    # Work.

    def attend(self, *, native: bool = False) -> Message | None:
        """Does what there is to do; returns an error that is to be delivered as a message.

        `native` within librdkafka, which loses a message where a callback raises: what came up is kept for later.
        """
        with self._turn:
            if self._busy:
                return None
            self._busy = True
            try:
                return self._attend(native=native)
            finally:
                self._busy = False
                if self._close_wanted and not native:
                    self._close_wanted = False
                    self._consumer.close()

    def _attend(self, *, native: bool) -> Message | None:
        while (item := self.mailbox.take()) is not None:
            try:
                message = self._obey(item, native=native)
            except Exception as error:
                self._later.append(error)
            else:
                if message is not None:
                    self._later.append(message)
        if self.commits_now():
            self.commits.send(self.share.due())
        if native:
            return None
        if self._later:
            first = self._later.pop(0)
            if isinstance(first, Message):
                return first
            raise first
        if self._fatal is not None:
            raise KafkaException(self._fatal)
        return None

    def _obey(self, item: Mapping[str, Any], *, native: bool) -> Message | None:
        match item["action"]:
            case "notify":
                self._change(item, native=native)
            case "commit-done":
                self.commits.done(item)
            case "offsets-fetched":
                return self._started(item)
            case "max-poll-exceeded":
                assert self.member is not None
                self.member.polled()
                interval = item["interval_ms"]
                return _message(
                    KafkaError._MAX_POLL_EXCEEDED,
                    f"Application maximum poll interval ({interval}ms) exceeded: out of the group until now",
                )
            case "converted-by-broker":
                logger.warning("group %r: %s", self._config.group_id, item["message"])
            case "error":
                return _message(item["error_code"], item["message"])
            case "fatal":
                self._fatal = KafkaError(item["error_code"], item["message"], True)
            case "closed":
                self._left = True
        return None

    def _started(self, item: Mapping[str, Any]) -> Message | None:
        """The committed offsets from which to start; some may be missing, and are asked for again."""
        known: dict[Partition, Position] = {}
        asked = self.commits.fetched(item["id"])
        refused = item["error_code"]
        for topic, partition, offset, epoch, _, code in item["offsets"]:
            if code != 0:
                refused = code
            elif (topic, partition) in asked:
                known[topic, partition] = Position(offset, epoch)
        self.share.begin(known)
        again = (asked - known.keys()) & self.share.waiting
        if not again:
            return None
        self.commits.fetch(again)
        return _message(refused, "Failed to fetch committed offsets; trying again")

    # A change of the share.

    def _change(self, notice: Mapping[str, Any], *, native: bool) -> None:
        assert self.member is not None
        ticket, kind = notice["ticket"], notice["kind"]
        if not self.member.begin(ticket):
            return
        failures: list[BaseException] = []
        protocols: list[tuple[str, bytes]] = []
        if notice["lost"]:
            self.strategies.forget()
        parks = kind == "prepare" and not self.strategies.cooperative and not notice["lost"]
        self._give_up(_flat(notice["revoked"]), failures, lost=notice["lost"], parks=parks, native=native)
        if kind == "prepare":
            protocols = self.strategies.metadata(notice["topics"], dict(notice["owned"]))
        elif kind == "assign":
            self._take(notice, failures)
        self.member.done(ticket, protocols)
        if failures:
            for further in failures[1:]:
                logger.error("another callback of group %r failed as well", self._config.group_id, exc_info=further)
            raise failures[0]

    def _give_up(
        self, revoked: set[Partition], failures: list[BaseException], *, lost: bool, parks: bool, native: bool
    ) -> None:
        told = revoked & self.share.owned
        if told:
            self._call(self._callbacks.on_lost if lost else self._callbacks.on_revoke, told, "revoke", failures)
        if not lost and self._config.auto_commit:
            # What another member goes on with.
            self.commits.send({each: position for each, position in self.share.due().items() if each in told})
        if parks:
            self.holds_back = True
            self.share.park(pause=native)
        else:
            self.share.drop(revoked)
        if lost:
            self.share.unpark()

    def _take(self, notice: Mapping[str, Any], failures: list[BaseException]) -> None:
        owned = _flat(notice["owned"])
        member_id, generation = notice["member_id"], notice["generation"]
        if (member_id, generation - 1) != self._since and (member_id, generation) != self._since:
            # Others had their turn meanwhile: what was given up has been read on by them.
            self.share.unpark()
        self._since = (member_id, generation)
        share = {topic: list(numbers) for topic, numbers in notice["owned"]}
        self.share.take(owned)
        self.holds_back = False
        try:
            self.strategies.take(notice["protocol"], notice["assignment"], generation, share)
        except Exception as error:
            failures.append(error)
        told = _flat(notice["added"]) if self.strategies.cooperative else owned
        self._assigning = None
        self._call(self._callbacks.on_assign, told, "assign", failures)
        chosen, self._assigning = self._assigning, None
        if chosen is not None and self.strategies.cooperative:
            # The application chose among what is new; it has chosen what it holds already.
            kept = owned - told
            chosen = {each: TopicPartition(*each) for each in kept} | chosen
        missing = self.share.start(chosen)
        if missing:
            self.commits.fetch(missing)

    def _call(self, callback: Any, partitions: set[Partition], within: str, failures: list[BaseException]) -> None:
        if callback is None:
            return
        self._in = within
        try:
            callback(self._consumer, [TopicPartition(*each) for each in sorted(partitions)])
        except BaseException as error:  # an interrupt as well: the group waits for the end of this change
            failures.append(error)
        finally:
            self._in = None

    def choose(self, partitions: Sequence[TopicPartition]) -> None:
        """Within `on_assign`: the application wants to read these, from their offsets if they have one."""
        self._assigning = {(each.topic, each.partition): each for each in partitions}

    # The end.

    def close(self) -> bool:
        """Leaves the group; False while a callback runs, after which it is done."""
        if self._busy:
            self._close_wanted = True
            return False
        with self._turn:
            if self.member is None:
                return True
            self._busy = True
            try:
                self._leave(self.member)
            finally:
                self._busy = False
            return True

    def _leave(self, member: Member) -> None:
        member.leave(_CLOSE_TIMEOUT)
        deadline = time.monotonic() + _CLOSE_TIMEOUT + _JOIN_TIMEOUT
        failures: list[BaseException] = []
        while not self._left and self.mailbox.wait(deadline - time.monotonic()):
            item = self.mailbox.take()
            if item is None:
                continue
            try:
                self._obey(item, native=False)
            except Exception as error:
                failures.append(error)
        member.stop()
        member.join(_JOIN_TIMEOUT)
        while (item := self.mailbox.take()) is not None:
            if item["action"] == "commit-done":
                self.commits.done(item)
        if failures:
            raise failures[0]


def _flat(partitions: Iterable[tuple[str, Iterable[int]]]) -> set[Partition]:
    return {(topic, number) for topic, numbers in partitions for number in numbers}


def _message(code: int, reason: str) -> Message:
    """An error, as librdkafka delivers one."""
    return Message(error=KafkaError(code, reason))
