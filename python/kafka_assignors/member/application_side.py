"""The application's side of a membership: the work that only a turn may do.

The membership's thread puts it into the mailbox. In a turn the listener is called, the client gets its assignment,
commits end and errors are handed on. The turn is a thread inside a method of the consumer, or the consumer's task on
its event loop; the rules are the same, and `turn.py` drives them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from kafka_assignors.member import times
from kafka_assignors.member.assigned_partitions import AssignedPartitions
from kafka_assignors.member.broker_planned import BrokerPlanned
from kafka_assignors.member.commits import Commits
from kafka_assignors.member.data_path import Failure, Position
from kafka_assignors.member.membership import Mailbox, MemberThread
from kafka_assignors.member.rebalance_report import PLANNING_SHARE, Course
from kafka_assignors.member.strategies import Strategies
from kafka_assignors.member.turn import Call, Wait, WaitForThread, drive, drive_on_loop
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from kafka_assignors.member.config import MemberConfig
    from kafka_assignors.member.data_path import DataPath, ListenerEvent, Partition
    from kafka_assignors.member.subscription import Filter
    from kafka_assignors.member.turn import Arrivals, Steps

__all__ = ["ApplicationSide"]

logger = logging.getLogger("kafka_assignors")


class ApplicationSide:
    """The application's side of one consumer.

    Args:
        path: the client.
        config: the membership's settings.

    Attributes:
        assigned: the partitions that the consumer holds.
        strategies: its assignors.
        mailbox: the work to be done.
        commits: its commits.
        member: None before the first subscription.
        fetcher: the member that fetches committed offsets. The first subscription makes it the `member`. None before
            the first request for offsets and the first subscription.
        holds_back: whether no record may be handed out: an eager rebalance took all partitions away, and the new ones
            are not assigned yet.
        has_left: whether the member has left for good.
        leaves_later: whether `close` was called within a turn. The client closes when that turn is over.
        within: the event of the listener's call that is under way, or None.
    """

    def __init__(self, path: DataPath, config: MemberConfig) -> None:
        self._path = path
        self._config = config
        self._wake = _Weakly(path)
        self.assigned = AssignedPartitions(path, auto_store=config.auto_store)
        seconds = config.session_timeout_ms / 1000 * PLANNING_SHARE
        self.strategies: Strategies | BrokerPlanned
        if config.group_protocol == "consumer":
            self.strategies = BrokerPlanned(config.group_remote_assignor, config.on_rebalance, config.group_id)
        else:
            self.strategies = Strategies(
                config.assignors,
                config.rack,
                config.on_rebalance,
                seconds,
                config.group_id,
                guards=config.on_broker_assignor != "migrate",
            )
        self.mailbox = Mailbox()
        self.commits = Commits(path, self.assigned, config)
        self.member: MemberThread | None = None
        self.fetcher: MemberThread | None = None
        self.holds_back = False
        self.has_left = False
        self.leaves_later = False
        self.within: ListenerEvent | None = None
        self._listener: Any = None
        self._lock = threading.RLock()
        self._starting = threading.RLock()
        self._busy = False
        # The partitions that the listener of an assignment chose to read; None for all of them.
        self._chosen: dict[Partition, Position | None] | None = None
        # The member id and the generation of the latest assignment.
        self._latest: tuple[str, int] = ("", -1)
        self._next_commit = self._commit_after()

    @property
    def subscribed(self) -> bool:
        """Whether the consumer has ever subscribed. If not, the client alone decides what it reads."""
        return self.member is not None

    @property
    def is_busy(self) -> bool:
        """Whether a turn is under way."""
        return self._busy

    @property
    def is_due(self) -> bool:
        """Whether a turn has something to do."""
        return bool(self.mailbox) or self.leaves_later or time.monotonic() >= self._next_commit

    @property
    def next_commit(self) -> float:
        """The time (`time.monotonic`) of the next commit on the interval. A task that takes turns wakes then."""
        return self._next_commit

    @property
    def may_hand_out(self) -> bool:
        """Whether records may be delivered. Those of lost partitions may not: another member may have read them."""
        return self.member is None or not self.member.is_lost

    @property
    def is_in_doubt(self) -> bool:
        """Whether the end of the session may come before the next turn."""
        return self.member is not None and self.member.is_in_doubt

    @property
    def latest(self) -> tuple[str, int]:
        """Member id and generation of the latest assignment; empty and -1 before the first."""
        return self._latest

    def patience(self, timeout: float) -> tuple[float | None, float]:
        """How a thread spends a wait of at most `timeout` seconds.

        One thread cannot wait for records and for the mailbox at once. News of the group come with the answers to
        requests, mostly heartbeats, and the time of the next request is known. So:

            until the next request         wait for records
            until `NEWS_OVERDUE` later     wait for the mailbox, and look for records every `RECORDS_GLANCE`
            after that                     wait for records, each time for a tenth of the delay

        Returns:
            How long to wait inside the client, None if no record may be taken out; and how long to wait for the mailbox
            after that.
        """
        member = self.member
        if member is None:
            return timeout, 0.0
        if self.holds_back or member.is_lost:
            return None, timeout
        timeout = min(timeout, max(0.0, member.session_left))
        if not self.assigned.is_read:
            # With a timeout of 0 a client still serves its connections, and calls its own callbacks.
            return 0.0, timeout
        left = member.news_due - time.monotonic()
        if left > 0:
            return min(timeout, left), 0.0
        if left > -times.NEWS_OVERDUE:
            return 0.0, min(timeout, times.RECORDS_GLANCE)
        return min(timeout, -left / 10), 0.0

    def _commit_after(self) -> float:
        """When to commit next: never if the application commits, or if the interval is 0 (only at revocations)."""
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

    def subscribe(self, topics: Iterable[str], expressions: Mapping[str, Filter], listener: Any) -> None:
        """Subscribes to these names and to the topics that the expressions match. Waits for nothing.

        Args:
            topics: their names.
            expressions: by their text.
            listener: handed to `DataPath.call`.

        Raises:
            OptionError: the files that TLS needs cannot be used.
        """
        # Not under `_lock`: a turn holds it while the listener runs. A listener that subscribes from another thread, as
        # in asyncio, would wait for ever.
        with self._starting:
            self._listener = listener
            if self.member is None:
                self.member = self.commits.member = self.ensure_fetcher()
            # Without a listener an empty revocation calls nothing, so the group need not wait for the next turn.
            self.member.tells_always = self._config.tells_every_rebalance and listener is not None
            self.member.subscribe(topics, expressions)
            # The member's thread may have called `wake` before `self.member` was set; that call had no effect.
            self._wake()

    def ensure_fetcher(self) -> MemberThread:
        """The member for requests that need no subscription: committed offsets, and commits outside of a group.

        Raises:
            OptionError: the files that TLS needs cannot be used.
        """
        with self._starting:
            if self.fetcher is None:
                self.fetcher = MemberThread(self._config, self.strategies, self.mailbox, self._wake)
            return self.fetcher

    # Turns.

    def attend(self, *, can_raise: bool = True) -> None:
        """Takes a turn on this thread. Does nothing within another turn.

        Args:
            can_raise: whether the caller raises or returns an error in the application before anything else happens.
                If so, the turn ends after the first error, as clients return an error before they call the listener
                because of it. If not, the turn goes on after an error; only `max-poll-exceeded` stays in the mailbox,
                for a turn that can raise it.
        """
        with self._lock:
            if self._busy or not (self.mailbox or time.monotonic() >= self._next_commit):
                return
            self._busy = True
            try:
                drive(self._turn(can_raise=can_raise), self._path, self.mailbox)
            finally:
                self._busy = False

    async def attend_on_loop(self, arrivals: Arrivals, *, can_raise: bool = True) -> None:
        """As `attend`, in a task on the consumer's event loop. The loop goes on while a listener is awaited."""
        if self._busy:
            return
        self._busy = True
        try:
            await drive_on_loop(self._turn(can_raise=can_raise), self._path, self.mailbox, arrivals)
        finally:
            self._busy = False

    def _turn(self, *, can_raise: bool) -> Steps[None]:
        while (item := self.mailbox.take()) is not None:
            if item["action"] == "max-poll-exceeded" and not can_raise:
                self.mailbox.put_back(item)
                break
            is_error = False
            try:
                is_error = yield from self._obey(item)
            except Exception as error:
                self._path.fail(error)
            if is_error and can_raise:
                break
        if self.subscribed and self.commits_now():
            try:
                self.commits.send(self.assigned.due())
            except Exception as error:
                self._path.fail(error)

    def _obey(self, item: Mapping[str, Any]) -> Steps[bool]:
        """Does one piece of work. Returns whether it was an error for the application."""
        match item["action"]:
            case "notify":
                yield from self._change(item)
            case "commit-done":
                self.commits.done(item)
            case "offsets-fetched":
                return self._started(item)
            case "run":
                item["function"]()
            case "max-poll-exceeded":
                assert self.member is not None
                self.member.polled()
                interval = item["interval_ms"]
                reason = f"Application maximum poll interval ({interval}ms) exceeded: out of the group until now"
                self._path.fail(Failure(None, reason))
                return True
            case "converted-by-broker":
                logger.warning("group %r: %s", self._config.group_id, printable(item["message"], SENTENCE))
            case "error":
                missing = item.get("is_missing", False)
                self._path.fail(Failure(item["error_code"], item["message"], item["topic"], is_missing=missing))
                return True
            case "fatal":
                self._path.fail(Failure(item["error_code"], item["message"], is_fatal=True))
            case "closed":
                self.has_left = True
        return False

    def run(self, function: Any) -> None:
        """Calls a function of the client in a turn, after the work already in the mailbox. Any thread may call this."""
        self.mailbox.put({"action": "run", "function": function})

    def _started(self, item: Mapping[str, Any]) -> bool:
        """Starts partitions at their committed offsets. Offsets that the answer lacks are requested again."""
        known: dict[Partition, Position] = {}
        asked = self.commits.fetched(item["id"])
        refused = item["error_code"]
        for topic, partition, offset, epoch, _, code in item["offsets"]:
            if code != 0:
                refused = code
            elif (topic, partition) in asked:
                known[topic, partition] = Position(offset, epoch)
        self.assigned.begin(known)
        again = (asked - known.keys()) & self.assigned.waiting
        if not again:
            return False
        self.commits.fetch(again)
        self._path.fail(Failure(refused, "Failed to fetch committed offsets; trying again"))
        return True

    # Rebalances.

    def _change(self, notice: Mapping[str, Any]) -> Steps[None]:
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
            yield from self._give_up(gone, failures, lost=True, parks=False)
        parks = kind == "prepare" and not self.strategies.cooperative and not lost
        yield from self._give_up(revoked - gone, failures, lost=lost, parks=parks)
        if kind == "prepare":
            protocols = self.strategies.metadata(notice["topics"], dict(notice["owned"]))
        elif kind == "assign":
            yield from self._take(notice, gone, failures)
        self.member.done(ticket, protocols)
        if failures:
            for further in failures[1:]:
                logger.error("another callback of group %r failed as well", self._config.group_id, exc_info=further)
            raise failures[0]

    def _give_up(
        self, revoked: Collection[Partition], failures: list[BaseException], *, lost: bool, parks: bool
    ) -> Steps[None]:
        given_up = self.assigned.owned.intersection(revoked)
        with _noting(failures):
            self.assigned.hold(given_up)
        self.strategies.give_up(given_up)
        if given_up or (parks and self._config.tells_every_rebalance):
            yield from self._call("lost" if lost else "revoked", given_up, failures)
        if not lost and self._config.auto_commit:
            with _noting(failures):
                # The next owner starts at these offsets.
                self.commits.send(self.assigned.left(given_up))
        with _noting(failures):
            if parks:
                self.holds_back = True
                self.assigned.park()
            else:
                self.assigned.drop(revoked)
            if lost:
                self.assigned.unpark()

    def _take(self, notice: Mapping[str, Any], gone: set[Partition], failures: list[BaseException]) -> Steps[None]:
        owned = _flat(notice["owned"])
        member_id, generation = notice["member_id"], notice["generation"]
        if (member_id, generation - 1) != self._latest and (member_id, generation) != self._latest:
            # This member missed a generation, in which other members may have read the partitions that it had parked.
            with _noting(failures):
                self.assigned.unpark()
        self._latest = (member_id, generation)
        by_topic = {topic: list(numbers) for topic, numbers in notice["owned"]}
        self.assigned.take(owned, spares=self.strategies.cooperative)
        kept = self.assigned.read
        self.holds_back = False
        with _noting(failures):
            self.strategies.take(notice["protocol"], notice["assignment"], generation, by_topic, Course.of(notice))
        added = _flat(notice["added"]) if self.strategies.cooperative else owned
        self._chosen = None
        if added or not _is_idle(notice, gone):
            yield from self._call("assigned", added, failures)
        chosen, self._chosen = self._chosen, None
        if self.strategies.cooperative:
            # The application chooses among the new partitions only. The partitions that it already reads go on.
            chosen = dict.fromkeys(kept) | (dict.fromkeys(added) if chosen is None else chosen)
        with _noting(failures):
            missing = self.assigned.start(chosen)
            if missing:
                self.commits.fetch(missing)

    def _call(
        self, event: ListenerEvent, partitions: Iterable[Partition], failures: list[BaseException]
    ) -> Steps[None]:
        self.within = event
        try:
            yield Call(self._listener, event, frozenset(partitions))
        except BaseException as error:  # an interrupt too: the rebalance must be carried out to its end
            failures.append(error)
        finally:
            self.within = None

    def choose(self, partitions: Mapping[Partition, Position | None]) -> None:
        """Within the listener's `assigned`: only these are read, from their positions if they have one."""
        self._chosen = dict(partitions)

    @property
    def shown(self) -> set[Partition]:
        """The partitions that are read or about to be; within the listener's `assigned` also those chosen so far."""
        return self.assigned.read | (self._chosen or {}).keys()

    def reassign(self, partitions: Mapping[Partition, Position | None], *, incremental: int = 0) -> None:
        """Changes the partitions that the client reads, as the application asks between rebalances.

        The group's assignment stays the same.

        Args:
            partitions: the partitions, each with its starting position if the application gives one.
            incremental: 1 to add them, -1 to take them away, 0 for these and nothing else.
        """
        assigned = self.assigned
        gone = partitions.keys() if incremental < 0 else set() if incremental > 0 else assigned.read - partitions.keys()
        if self._config.auto_commit:
            self.commits.send(assigned.left(gone))
        missing: set[Partition] = set()
        if incremental > 0:
            missing = assigned.further(partitions)
        elif incremental < 0:
            assigned.stop(gone)
        else:
            missing = assigned.replace(partitions)
        if missing:
            self.commits.fetch(missing)

    # The end.

    def close(self, timeout: float | None = None) -> bool:
        """Leaves the group.

        Args:
            timeout: how many seconds it may take; `times.CLOSE` by default and at most.

        Returns:
            False within a turn: the member cannot leave before the turn's listener returns. Then `leaves_later` is set,
            and the client closes after the turn.

        Raises:
            Exception: what a listener raised, after the member has left.
        """
        if self._busy:
            self.leaves_later = True
            return False
        with self._lock:
            self._busy = True
            try:
                drive(self._leave(timeout), self._path, self.mailbox)
            finally:
                self._busy = False
            return True

    async def close_on_loop(self, arrivals: Arrivals, timeout: float | None = None) -> bool:
        """As `close`, without blocking the loop."""
        if self._busy:
            self.leaves_later = True
            return False
        self._busy = True
        try:
            await drive_on_loop(self._leave(timeout), self._path, self.mailbox, arrivals)
        finally:
            self._busy = False
        return True

    def _leave(self, timeout: float | None) -> Steps[None]:
        failures: list[BaseException] = []
        member = self.member
        if member is not None:
            seconds = times.CLOSE if timeout is None else min(timeout, times.CLOSE)
            member.leave(seconds)
            deadline = time.monotonic() + seconds + times.JOIN_THREAD
            while not self.has_left and (left := deadline - time.monotonic()) > 0:
                yield Wait(left)
                item = self.mailbox.take()
                if item is None:
                    continue
                try:
                    yield from self._obey(item)
                except Exception as error:
                    failures.append(error)
        self.has_left = True
        if self.fetcher is not None:
            self.fetcher.stop()
            yield WaitForThread(self.fetcher, times.JOIN_THREAD)
        while (item := self.mailbox.take()) is not None:
            if item["action"] in ("commit-done", "run"):
                yield from self._obey(item)
        if failures:
            raise failures[0]


class _Weakly:
    """`DataPath.wake` for the membership's thread, which must not keep a consumer alive that is never closed."""

    def __init__(self, path: DataPath) -> None:
        self._path = weakref.ref(path)

    def __call__(self) -> float | None:
        path = self._path()
        return None if path is None else path.wake()


@contextlib.contextmanager
def _noting(failures: list[BaseException]) -> Iterator[None]:
    """Notes an exception instead of raising it: the next steps must be taken all the same, or the group would wait."""
    try:
        yield
    except Exception as error:
        failures.append(error)


def _flat(partitions: Iterable[tuple[str, Iterable[int]]]) -> set[Partition]:
    return {(topic, number) for topic, numbers in partitions for number in numbers}


def _is_lost(notice: Mapping[str, Any]) -> bool:
    """Whether the revoked partitions may belong to another member already.

    A member that leaves during a rebalance still owns its partitions: no other member gets a partition that a member
    of the rebalance joined with.
    """
    return bool(notice["lost"]) and (notice["kind"] != "leave" or notice["generation"] < 0)


def _is_idle(notice: Mapping[str, Any], gone: set[Partition]) -> bool:
    """Whether clients do not call their listener for an assignment without new partitions.

    They do not join while no subscribed topic exists, and give up deleted topics before they join.
    """
    return bool(notice["nowhere"] or (gone and gone == _flat(notice["revoked"])))
