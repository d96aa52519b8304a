"""What a consumer does when its group wants something: the application's side of the membership.

Everything here runs in the application's thread, inside `poll`, `consume`, `close` or a callback of librdkafka.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import OFFSET_STORED, KafkaError, KafkaException, Message, TopicPartition

from kafka_assignors.clients._report import PLANNING_SHARE
from kafka_assignors.clients.confluent._alone import Alone
from kafka_assignors.clients.confluent._commits import Commits
from kafka_assignors.clients.confluent._errors import as_the_client, client_error
from kafka_assignors.clients.confluent._share import Position, Share
from kafka_assignors.clients.confluent._silence import Silence
from kafka_assignors.clients.confluent._strategies import Strategies
from kafka_assignors.clients.confluent.membership import Mailbox, Member
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors import _core
    from kafka_assignors.clients.confluent._conf import ConsumerConfig
    from kafka_assignors.clients.confluent._strategies import Partition

__all__ = ["Callbacks", "Engine"]

logger = logging.getLogger("kafka_assignors")

# How long a departure may take before the consumer goes without a goodbye.
_CLOSE_TIMEOUT = 30.0
_JOIN_TIMEOUT = 5.0
# When an answer of the group is due, the application waits for the mailbox for so many seconds, and looks for records
# only this often. An answer that takes longer is looked for each time after a tenth of its delay.
_SUSPENSE = 0.25
_GLANCE = 0.005
# The next statistics come within so many of their intervals.
_LATE = 1.5


class Callbacks:
    """What `subscribe` was given."""

    def __init__(self, on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        for name, function in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} expects a callable")
        self.on_assign = on_assign
        self.on_revoke = on_revoke
        # As in the client.
        self.on_lost = on_lost or on_revoke


class Engine:
    """The membership of one consumer, as its own methods need it.

    Attributes:
        share: what the consumer holds.
        strategies: its assignors.
        mailbox: what is to be done.
        commits: its commits.
        alone: its commits on the interval as long as it has not subscribed.
        member: None before the first subscription.
        asks: the member that fetches committed offsets; with the first subscription it becomes `member`. None before
            the first of both.
        holds_back: whether no record may be delivered: the whole share was given up, and the new one is not there yet.
    """

    def __init__(
        self,
        consumer: confluent_kafka.Consumer,
        config: ConsumerConfig,
        summon: Callable[[], float | None],
        renew: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._config = config
        self._summon = summon
        self.share = Share(consumer, config.reset, auto_store=config.auto_store, tells_end=config.tells_end)
        self.alone = Alone(consumer, config)
        seconds = config.session_timeout_ms / 1000 * PLANNING_SHARE
        self.strategies = Strategies(config.assignors, config.rack, config.on_rebalance, seconds)
        self.mailbox = Mailbox()
        self.commits = Commits(consumer, self.share, self.mailbox, config)
        self.member: Member | None = None
        self.asks: Member | None = None
        self.holds_back = False
        self._callbacks = Callbacks()
        self._turn = threading.RLock()
        self._starting = threading.Lock()
        self._busy = False
        # The partitions that the application assigns within a callback: those of its share that it wants to read.
        self._assigning: dict[Partition, TopicPartition] | None = None
        self._in: str | None = None
        # Errors and messages that came up within librdkafka, which can neither raise nor return them.
        self._later: list[BaseException | Message] = []
        self._fatal: KafkaError | None = None
        self._left = False
        self._close_wanted = False
        # The member id and the generation of the latest share.
        self._since: tuple[str, int] = ("", -1)
        self._next_commit = self._commit_after()
        self._renew = renew
        self.silence = Silence(config.data_path, config.session_timeout_ms / 1000, self._found_silent)
        self._is_silent = False

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
        waiting = self.mailbox or self._later or self._fatal or self._close_wanted or self._is_silent
        waiting = waiting or self.share.is_held_up
        return bool(waiting) or time.monotonic() >= self._next_commit

    @property
    def may_hand_out(self) -> bool:
        """Whether the application may have librdkafka's records: others may have read those of a share that is lost."""
        return self.member is None or not self.member.is_lost

    @property
    def is_in_doubt(self) -> bool:
        """Whether the end of the session may come before `poll` is called again."""
        return self.member is not None and self.member.is_in_doubt

    def hold_still(self) -> None:
        """Pauses the share if the session may end before the next statistics.

        The application is blocked inside librdkafka until then, which would hand out records of a lost share.
        """
        member = self.member
        seconds = _LATE * self._config.data_path["statistics.interval.ms"] / 1000
        if member is not None and member.is_in_doubt and member.session_left < seconds:
            self.share.hold_up()

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
        if self.holds_back or member.is_lost:
            return None, timeout
        timeout = min(timeout, max(0.0, member.session_left))
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

    def subscribe(
        self, topics: Iterable[str], expressions: Mapping[str, _core.Expression], callbacks: Callbacks
    ) -> None:
        """Becomes a member, or a member with another subscription: these names, and what the expressions match."""
        # Not under `_turn`: a callback may subscribe from another thread, as those of asyncio do.
        with self._starting:
            self._callbacks = callbacks
            if self.member is None:
                # An application that assigned by itself so far: the group decides from now on.
                confluent_kafka.Consumer.unassign(self._consumer)
                self.member = self._asking()
                self.commits.member = self.member
            self.member.subscribe(topics, expressions)
            # From the next poll on: the member's first call came before there was one here.
            self._summon()

    def _asking(self) -> Member:
        if self.asks is None:
            with as_the_client():
                self.asks = Member(self._config, self.strategies, self.mailbox, self._summon)
        return self.asks

    def committed(self, partitions: Any, timeout: float | None) -> list[TopicPartition]:
        """What the group has committed, whoever did it; a consumer need not have subscribed for that."""
        with self._starting:
            asks = self._asking()
        return self.commits.committed(asks, partitions, timeout)

    # Work.

    def attend(self, *, native: bool = False) -> Message | None:
        """Does what is in the mailbox; returns an error that is to be delivered as a message.

        `native` is for calls within librdkafka. It loses a message if a callback raises, so errors wait for the next
        `poll`.
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
        if self.may_hand_out and not (native and self.is_in_doubt):
            self.share.go_on()
        while (item := self.mailbox.take()) is not None:
            expelled = item["action"] == "max-poll-exceeded"
            if expelled and native:
                # `poll` returns this error before `on_lost` is called, and a callback of librdkafka cannot return it.
                self.mailbox.put_back(item)
                break
            try:
                message = self._obey(item, native=native)
            except Exception as error:
                self._later.append(error)
            else:
                if message is not None:
                    self._later.append(message)
                    # As in the client, an error is returned before the callbacks that follow from it.
                    expelled = expelled or not native
            if expelled:
                break
        if self.commits_now():
            if self.subscribed:
                self.commits.send(self.share.due())
            else:
                self.alone.commit()
        if native:
            return None
        if self._is_silent:
            self._make_new()
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
                logger.warning("group %r: %s", self._config.group_id, printable(item["message"], SENTENCE))
            case "error":
                return _message(item["error_code"], item["message"], item["topic"])
            case "fatal":
                self._fatal = client_error(item["error_code"], item["message"], fatal=True)
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

    # A data path that falls silent.

    def look(self, statistics: str) -> None:
        """Looks whether records still come."""
        if self.member is None or self._busy or self.holds_back:
            return
        self.silence.look(self.share.reading(), statistics)

    def _found_silent(self) -> None:
        """Called on the thread of `Silence`."""
        self._is_silent = True
        self._summon()

    def _make_new(self) -> None:
        self._is_silent = False
        if self.holds_back or not self.share.is_read:
            return
        logger.warning(
            "group %r: records wait, and librdkafka has fetched nothing for %g s (session.timeout.ms) while the group "
            "and the leaders answer; its connections are made anew, and reading goes on at the same positions",
            self._config.group_id,
            self._config.session_timeout_ms / 1000,
        )
        self.share.renew(self._renew, self.silence.resolved)
        self.silence.reset()

    # A change of the share.

    def _change(self, notice: Mapping[str, Any], *, native: bool) -> None:
        assert self.member is not None
        ticket, kind = notice["ticket"], notice["kind"]
        if not self.member.begin(ticket):
            return
        failures: list[BaseException] = []
        protocols: list[tuple[str, bytes]] = []
        lost, revoked = _is_lost(notice), _flat(notice["revoked"])
        gone: set[Partition] = set()
        if lost:
            self.strategies.forget()
        elif self.strategies.cooperative:
            # No member can read on the partitions of a deleted topic.
            gone = {(topic, number) for topic, number in revoked if topic in notice["gone"]}
            self._give_up(gone, failures, lost=True, parks=False, native=native)
        parks = kind == "prepare" and not self.strategies.cooperative and not lost
        self._give_up(revoked - gone, failures, lost=lost, parks=parks, native=native)
        if kind == "prepare":
            protocols = self.strategies.metadata(notice["topics"], dict(notice["owned"]))
        elif kind == "assign":
            self._take(notice, gone, failures)
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
            self.commits.send(self.share.left(told))
        if parks:
            self.holds_back = True
            self.share.park(pause=native)
        else:
            self.share.drop(revoked)
        if lost:
            self.share.unpark()

    def _take(self, notice: Mapping[str, Any], gone: set[Partition], failures: list[BaseException]) -> None:
        owned = _flat(notice["owned"])
        member_id, generation = notice["member_id"], notice["generation"]
        if (member_id, generation - 1) != self._since and (member_id, generation) != self._since:
            # In the generation that this member missed, others may have read on the partitions that it gave up.
            self.share.unpark()
        self._since = (member_id, generation)
        share = {topic: list(numbers) for topic, numbers in notice["owned"]}
        self.share.take(owned, spares=self.strategies.cooperative)
        kept = self.share.read
        self.holds_back = False
        try:
            self.strategies.take(notice["protocol"], notice["assignment"], generation, share)
        except Exception as error:
            failures.append(error)
        told = _flat(notice["added"]) if self.strategies.cooperative else owned
        self._assigning = None
        if told or not _is_idle(notice, gone):
            self._call(self._callbacks.on_assign, told, "assign", failures)
        chosen, self._assigning = self._assigning, None
        if self.strategies.cooperative:
            # The application chooses among the new partitions only; those that it reads stay.
            stays = kept if chosen is not None else kept | told
            chosen = {each: TopicPartition(*each) for each in stays} | (chosen or {})
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

    def assignment(self) -> list[TopicPartition]:
        """What is read, as the client shows it; within `on_assign` what the application has chosen so far."""
        shown = self.share.read | (self._assigning or {}).keys()
        return [TopicPartition(*each, OFFSET_STORED) for each in sorted(shown)]

    def reassign(self, partitions: list[TopicPartition] | None, *, incremental: int = 0) -> None:
        """Between rebalances the application assigns by itself; the group does not hear of it.

        Args:
            partitions: which; None for `unassign`.
            incremental: 1 to add them, -1 to take them away, 0 for these and nothing else.

        Raises:
            KafkaException: as the client: where the group hands partitions on one by one, so does the application.
            RuntimeError: the consumer is closed.
        """
        if self._left:
            raise RuntimeError("Consumer closed")
        if self._since[1] >= 0 and self.strategies.cooperative != bool(incremental):
            verb = "remove" if partitions is None else "set"
            reason = f"Failed to {verb} assignment: Local: Erroneous state"
            if incremental:
                reason = (
                    "Changes to the current assignment must be made using assign() when rebalance protocol is EAGER"
                )
            raise KafkaException(KafkaError(KafkaError._STATE, reason))
        given = partitions or []
        named = {(each.topic, each.partition) for each in given}
        share, read = self.share, self.share.read
        refused = named & read if incremental > 0 else named - read if incremental < 0 else set()
        if refused:
            topic, number = min(refused)
            what = "assigned since it is already" if incremental > 0 else "unassigned since it is not"
            reason = f"{topic} [{number}] can't be {what} in the current assignment"
            code = KafkaError._CONFLICT if incremental > 0 else KafkaError._INVALID_ARG
            raise KafkaException(KafkaError(code, reason))
        gone = set() if incremental > 0 else named if incremental < 0 else read - named
        if self._config.auto_commit:
            self.commits.send(share.left(gone))
        missing: set[Partition] = set()
        if incremental > 0:
            missing = share.further(given)
        elif incremental < 0:
            share.stop(gone)
        else:
            missing = share.replace(given)
        if missing:
            self.commits.fetch(missing)

    # The end.

    def close(self) -> bool:
        """Leaves the group; False while a callback runs, after which it is done."""
        if self._busy:
            self._close_wanted = True
            return False
        with self._turn:
            if self.member is None:
                if self.asks is not None:
                    self.asks.stop()
                    self.asks.join(_JOIN_TIMEOUT)
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
        self._left = True
        member.stop()
        member.join(_JOIN_TIMEOUT)
        while (item := self.mailbox.take()) is not None:
            if item["action"] == "commit-done":
                self.commits.done(item)
        if failures:
            raise failures[0]


def _flat(partitions: Iterable[tuple[str, Iterable[int]]]) -> set[Partition]:
    return {(topic, number) for topic, numbers in partitions for number in numbers}


def _is_lost(notice: Mapping[str, Any]) -> bool:
    """Whether the partitions that a change takes away may belong to another member already.

    While a group rebalances, no member is given a partition that another one joined with. So a member that goes then
    gives up partitions of its own.
    """
    return bool(notice["lost"]) and (notice["kind"] != "leave" or notice["generation"] < 0)


def _is_idle(notice: Mapping[str, Any], gone: set[Partition]) -> bool:
    """Whether the client calls no `on_assign` for a share without new partitions.

    The client does not join while no subscribed topic exists. It gives up a deleted topic before it joins, not after.
    """
    return bool(notice["nowhere"] or (gone and gone == _flat(notice["revoked"])))


def _message(code: int, reason: str, topic: str | None = None) -> Message:
    """An error, as librdkafka delivers one."""
    about: dict[str, Any] = {} if topic is None else {"topic": topic}
    return Message(error=client_error(code, reason), **about)
