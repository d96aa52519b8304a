"""The membership of a consumer, on a thread of its own. The core decides; this thread owns the sockets and the clock.

    application's thread                        membership's thread
        MemberThread.commit() ─ event ────►  core ──── actions ────► sockets
        mailbox.take()     ◄─────────────────────────── actions
        Reply.wait()       ◄─────────────────────────── answers

Both threads hand events to the core, under a lock. Only this thread carries actions out. It never calls the client:
the client's methods may block for seconds, and heartbeats would be late.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from kafka_assignors import _core
from kafka_assignors.errors import KafkaAssignorsError, SecurityError
from kafka_assignors.member import times
from kafka_assignors.member.neighbours import Neighbours
from kafka_assignors.member.strategies import Strategies
from kafka_assignors.member.subscription import SubscribedTopics
from kafka_assignors.net import Address, Closed, Connection, Poller, Ready, Received
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.member.broker_planned import BrokerPlanned
    from kafka_assignors.member.config import MemberConfig
    from kafka_assignors.member.subscription import Filter

__all__ = ["Answered", "Mailbox", "MemberThread", "Reply"]

logger = logging.getLogger("kafka_assignors")

_SASL_AUTHENTICATION_FAILED = 58


class Mailbox:
    """The work that only the application's thread may do, in order. Any thread may put, any thread may wait."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._arrival = threading.Condition()

    def __bool__(self) -> bool:
        return bool(self._items)

    def put(self, item: Any) -> None:
        """Adds work at the end."""
        with self._arrival:
            self._items.append(item)
            self._arrival.notify_all()

    def put_back(self, item: Any) -> None:
        """Adds work that was taken, at the front."""
        with self._arrival:
            self._items.appendleft(item)

    def take(self) -> Any | None:
        """The oldest work, or None."""
        return self._items.popleft() if self._items else None

    def wait(self, timeout: float | None) -> bool:
        """Waits for work. Returns whether there is any."""
        with self._arrival:
            return self._arrival.wait_for(self.__bool__, timeout)


class Answered(Protocol):
    """The place of one answer of the membership."""

    def set(self, value: Any) -> None:
        """Puts the answer in place; None if the thread ends without one. The membership's thread calls it."""


class Reply:
    """The place of one answer of the membership, for which a thread waits."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._value: Any = None

    def set(self, value: Any) -> None:
        """Puts the answer in place; None if the thread ends without one."""
        self._value = value
        self._arrived.set()

    def wait(self, timeout: float | None) -> Any | None:
        """The answer; None if it does not come in time."""
        self._arrived.wait(timeout)
        return self._value


class MemberThread:
    """A member of a group, on a thread of its own from construction until it has left.

    Its methods may be called from any thread; none waits for a broker.

    Args:
        config: the membership's settings.
        strategies: the consumer's; only their `plan` and `metadata` are used here.
        mailbox: for the work of the turn.
        summon: `DataPath.wake`. It is called after each `put`, and every `times.LIVENESS_CHECK`. It returns the time
            (`time.monotonic`) of the last known `poll`, or None if the consumer was collected without `close`: then the
            thread ends.

    Attributes:
        tells_always: whether the application's listener is called in each eager rebalance, even if no partition is
            given up.

    Raises:
        OptionError: the files that TLS needs cannot be used.
    """

    def __init__(
        self,
        config: MemberConfig,
        strategies: Strategies | BrokerPlanned,
        mailbox: Mailbox,
        summon: Callable[[], float | None],
    ) -> None:
        self._config = config
        self._strategies = strategies
        self._mailbox = mailbox
        self._summon = summon
        self._poller = Poller(config.client)
        self._lock = threading.RLock()
        self._core = _core_of(config, strategies)
        self._actions: deque[Any] = deque()
        self._connections: dict[int, Connection] = {}
        self._numbers: dict[Connection, int] = {}
        self._subscription = SubscribedTopics()
        self._ids = itertools.count(1)
        self._replies: dict[int, Answered] = {}
        # From the core, after each event: whether the partitions are lost, and when the session ends.
        self._lost = False
        self._session_end = float("inf")
        # If less than this is left of the session, waits of the application end with the session.
        self._caution = _caution(config)
        self._next_check = 0.0
        self._check_interval = min(times.LIVENESS_CHECK, config.max_poll_interval_ms / 4000)
        if config.auto_commit and config.auto_commit_interval > 0:
            # A commit on the interval is made by the call of `poll` that a check causes.
            self._check_interval = min(
                self._check_interval, max(times.LIVENESS_CHECK_LEAST, config.auto_commit_interval)
            )
        self.own_news_due = float("inf")
        self._polled = time.monotonic()
        self._closed = self._ended = False
        self.tells_always = config.tells_every_rebalance
        self._neighbours = Neighbours()
        self._place = (0, 1)
        self._thread = threading.Thread(target=self._run, name=f"kafka-assignors-member-{config.group_id}", daemon=True)
        self._thread.start()

    # For the application's thread.

    def subscribe(self, names: Iterable[str], expressions: Mapping[str, Filter]) -> None:
        """Subscribes to topics by name, and to all topics of the cluster that a regular expression matches.

        In the consumer protocol the broker matches the texts of the expressions.
        """
        names = list(names)
        with self._lock:
            self._subscription.replace(names, expressions)
            if self._config.group_protocol == "consumer":
                expression = "|".join(expressions) or None
                self._tell(lambda now: self._core.subscribe_expression(now, sorted(names), expression))
                return
            matched = sorted(self._subscription.matched())
            self._tell(lambda now: self._core.subscribe(now, matched, bool(expressions)))

    def unsubscribe(self) -> None:
        """Gives up all partitions and leaves the group. The mailbox gets the revocation."""
        self._tell(self._core.unsubscribe)

    def begin(self, ticket: int) -> bool:
        """Whether a notice of the core still holds. If so, it must be carried out, up to `done`."""
        with self._lock:
            return bool(self._core.begin(ticket))

    def done(self, ticket: int, protocols: list[tuple[str, bytes]]) -> None:
        """Reports that a notice was carried out.

        Args:
            ticket: the notice's.
            protocols: after the kind `prepare`: what JoinGroup sends for each assignor.
        """
        self._tell(lambda now: self._core.done(now, ticket, protocols))

    def commit(
        self, offsets: list[tuple[str, int, int, int, str | None]], timeout: float, reply: Answered | None
    ) -> int:
        """Commits. The answer goes to `reply`, or into the mailbox without one.

        Args:
            offsets: topic, partition, offset, leader epoch or -1, metadata.
            timeout: how many seconds to try.
        """
        return self._ask(reply, lambda now, ident: self._core.commit(now, ident, offsets, int(timeout * 1000)))

    def fetch(self, partitions: Mapping[str, list[int]], timeout: float, reply: Answered | None = None) -> int:
        """Asks for committed offsets. The answer goes to `reply`, or into the mailbox without one."""
        wanted = sorted(partitions.items())
        return self._ask(reply, lambda now, ident: self._core.fetch_offsets(now, ident, wanted, int(timeout * 1000)))

    def polled(self) -> None:
        """Reports that the application has polled."""
        self._tell(self._core.poll)

    def leave(self, timeout: float) -> None:
        """Begins to leave the group for good. The mailbox gets `closed` at the end."""
        self._tell(lambda now: self._core.close(now, int(timeout * 1000)))

    @property
    def identity(self) -> tuple[str, int]:
        """Member id, empty for none, and generation, -1 for none."""
        with self._lock:
            _, member_id, generation, _, _ = self._core.state()
            return member_id, generation

    @property
    def fencing(self) -> tuple[str, int] | None:
        """Member id and generation for a transaction. Between two memberships they are the last ones; None before the
        first.
        """
        with self._lock:
            return self._core.fencing()

    @property
    def is_stable(self) -> bool:
        """Whether this is a member of the group, and no rebalance is under way."""
        with self._lock:
            return bool(self._core.state()[0] == "stable")

    @property
    def topics(self) -> frozenset[str]:
        """The topics of its subscription: those by name, and those that an expression matches.

        In the consumer protocol only the broker matches expressions. Then only matching topics of which the member owns
        partitions are known.
        """
        with self._lock:
            if self._config.group_protocol == "consumer" and self._subscription.expressions:
                return self._subscription.matched().union(topic for topic, _ in self._core.owned())
            return self._subscription.matched()

    @property
    def is_subscribed(self) -> bool:
        """Whether there is a subscription."""
        with self._lock:
            return self._core.is_subscribed()

    @property
    def is_lost(self) -> bool:
        """Whether the partitions may belong to other members already. Then none of their records may be delivered.

        When the session is over by the clock, the partitions count as lost, even if this member's thread has not run
        since.
        """
        if not self._lost and time.monotonic() >= self._session_end:
            self._tell(self._core.tick)
        return self._lost

    @property
    def session_left(self) -> float:
        """For how many seconds the partitions are certainly this member's, if no request is answered meanwhile."""
        return 0.0 if self._lost else self._session_end - time.monotonic()

    @property
    def is_in_doubt(self) -> bool:
        """Whether the session may end soon, since the coordinator does not answer. Then waits must end with it."""
        return self._lost or self.session_left < self._caution

    @property
    def news_due(self) -> float:
        """The time (`time.monotonic`) from which on the group may have news for the application.

        It is the time of the next request of this member or of a neighbour, mostly a heartbeat. While a request is
        unanswered or a rebalance runs, it is the time at which the request or the rebalance began.
        """
        since = time.monotonic() - times.NEWS_OVERDUE
        others = (other.own_news_due for other in self._neighbours.members if other is not self)
        return min((self.own_news_due, *(due for due in others if due > since)))

    def hear(self, generation: int) -> None:
        """Called when a neighbour has learnt that this generation is over."""
        self._tell(lambda now: self._core.group_rebalances(now, generation))

    def stop(self) -> None:
        """Ends the thread without leaving the group. May be called twice, and by a finaliser."""
        self._closed = True
        self._poller.wake()

    def abandon(self) -> None:
        """In the child of a fork, where this thread does not exist: closes the copied sockets and sends nothing."""
        self._closed = True
        self._poller.abandon()

    def join(self, timeout: float) -> None:
        """Waits for the end of the thread."""
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _ask(self, reply: Answered | None, ask: Callable[[int, int], list[Any]]) -> int:
        ident = next(self._ids)
        if reply is not None:
            with self._lock:
                if self._ended:
                    reply.set(None)
                self._replies[ident] = reply
        self._tell(lambda now: ask(now, ident))
        return ident

    def _tell(self, tell: Callable[[int], list[Any]]) -> None:
        """Hands the core an event. The member's thread carries the actions out, in the order of the events."""
        self._tell_core(tell)
        self._poller.wake()

    # The thread.

    def _run(self) -> None:
        self._neighbours = Neighbours.of(self, self._config)
        try:
            with self._poller:
                while not self._closed:
                    self._check_liveness()
                    self._take_place()
                    self._tell_core(self._core.tick)
                    self._perform_all()
                    for event in self._poller.poll(self._patience()):
                        self._take(event)
                        self._perform_all()
        except Exception as error:
            # After a defect of ours the application must not wait for records for ever.
            logger.exception("the membership thread of group %r failed", self._config.group_id)
            reason = f"the membership thread failed with {type(error).__name__}: {error}"
            self._mailbox.put({"action": "fatal", "error_code": -1, "message": reason})
            self._mailbox.put({"action": "closed"})
            self._summon()
        finally:
            self._neighbours.leave(self)
            with self._lock:
                self._ended = True
                replies = list(self._replies.values())
            for reply in replies:
                reply.set(None)

    def _tell_core(self, tell: Callable[[int], list[Any]]) -> None:
        with self._lock:
            self._actions.extend(tell(_milliseconds()))
            self._lost, end = self._core.session_state()
            self._session_end = float("inf") if end is None else end / 1000

    def _check_liveness(self) -> None:
        """Reports a poll of the application to the core before its next `tick`.

        In the other order, `tick` could expel a member that polled in time.
        """
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + self._check_interval
        polled = self._summon()
        if polled is None:
            self._closed = True
        elif polled > self._polled:
            self._polled = polled
            self._tell_core(self._core.poll)

    def _take_place(self) -> None:
        """Passes this member's place among its neighbours to the core: they send heartbeats in turns."""
        place = self._neighbours.place(self)
        if place != self._place:
            self._place = place
            self._tell_core(lambda now: self._core.neighbours(now, *place))

    def _patience(self) -> float | None:
        with self._lock:
            if self._actions:
                return 0.0
            deadline = self._core.next_deadline()
            stage = self._core.state()[0]
        if stage != "stable" or any(each.in_flight for each in self._connections.values()):
            self.own_news_due = min(self.own_news_due, time.monotonic())
        else:
            self.own_news_due = float("inf") if deadline is None else deadline / 1000
        left = self._next_check - time.monotonic()
        if deadline is not None:
            left = min(left, (deadline - _milliseconds()) / 1000)
        return max(0.0, left)

    def _take(self, event: Any) -> None:
        number = self._numbers.get(event.connection)
        if number is None:
            return
        if isinstance(event, Ready):
            versions = event.connection.api_versions
            self._tell_core(lambda now: self._core.connected(now, number, versions))
        elif isinstance(event, Received):
            frame = event.frame
            self._tell_core(lambda now: self._core.received(now, number, frame))
        elif isinstance(event, Closed):
            self._forget(number)
            fatal = _SASL_AUTHENTICATION_FAILED if isinstance(event.error, SecurityError) else None
            self._tell_core(lambda now: self._core.disconnected(now, number, str(event.error), fatal))

    def _forget(self, number: int) -> Connection | None:
        connection = self._connections.pop(number, None)
        if connection is not None:
            del self._numbers[connection]
        return connection

    def _perform_all(self) -> None:
        while True:
            with self._lock:
                if not self._actions:
                    return
                action = self._actions.popleft()
            self._perform(action)

    def _perform(self, action: Any) -> None:
        match action:
            case {"action": "connect", "conn": number, "host": host, "port": port}:
                connection = self._poller.connect(Address(host, port))
                self._connections[number] = connection
                self._numbers[connection] = number
            case {"action": "send", "conn": number, "data": data}:
                if number in self._connections:
                    self._connections[number].send(data)
            case {"action": "close", "conn": number}:
                closing = self._forget(number)
                if closing is not None:
                    closing.close()
            case {"action": "topics", "topics": topics}:
                with self._lock:
                    # Kafka's internal topics count as well.
                    missing = self._subscription.seen([name for name, _ in topics])
                    if self._subscription.expressions:
                        matched = sorted(self._subscription.matched())
                        self._tell_core(lambda now: self._core.matched(now, matched))
                for error in missing:
                    self._hand_over(error)
            case {"action": "error"}:
                with self._lock:
                    action = self._subscription.refused(action)
                self._hand_over(action)
            case {"action": "notify", "kind": "prepare", "lost": False, "revoked": []} if not (
                self.tells_always and not self._strategies.cooperative
            ):
                # The application has nothing to give up, so the group need not wait for its next poll.
                ticket = action["ticket"]
                if self.begin(ticket):
                    protocols = self._strategies.metadata(action["topics"], dict(action["owned"]))
                    self._tell_core(lambda now: self._core.done(now, ticket, protocols))
            case {"action": "notify"}:
                with self._lock:
                    self._subscription.mark(action)
                self._hand_over(action)
            case {"action": "plan"}:
                threading.Thread(target=self._plan, args=(action,), name="kafka-assignors-plan", daemon=True).start()
            case {"action": "group-rebalances", "generation": generation}:
                self._neighbours.tell(self, generation)
            case {"action": "log", "level": level, "message": message}:
                log = logger.warning if level == "warning" else logger.info
                log("group %r: %s", self._config.group_id, printable(message, SENTENCE))
            case {"action": "commit-done" | "offsets-fetched", "id": ident} if ident in self._replies:
                self._replies.pop(ident).set(action)
            case _:
                self._hand_over(action)

    def _hand_over(self, action: Mapping[str, Any]) -> None:
        """Gives an action to the application's thread."""
        self._mailbox.put(action)
        self._summon()

    def _plan(self, action: Mapping[str, Any]) -> None:
        assert isinstance(self._strategies, Strategies)
        ticket = action["ticket"]
        try:
            assignments = self._strategies.plan(
                action["protocol"], action["members"], action["topics"], action["generation"]
            )
        except KafkaAssignorsError as error:
            message = str(error)
        except Exception as error:
            logger.exception("the assignor %r failed", action["protocol"])
            message = f"{type(error).__name__}: {error}"
        else:
            self._tell(lambda now: self._core.planned(now, ticket, assignments))
            return
        self._tell(lambda now: self._core.plan_failed(now, ticket, message))


def _caution(config: MemberConfig) -> float:
    """How much of the session is always left while heartbeats are answered in time, in seconds."""
    session, interval = config.session_timeout_ms, config.heartbeat_interval_ms
    return max(0.0, min(session / 2, session - 1.5 * interval)) / 1000


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000


def _core_of(config: MemberConfig, strategies: Strategies | BrokerPlanned) -> _core.Membership:
    client = config.client
    shared: dict[str, Any] = {
        "now_ms": _milliseconds(),
        "bootstrap": [(address.host, address.port) for address in client.bootstrap],
        "client_id": client.client_id,
        "group_id": config.group_id,
        "group_instance_id": config.group_instance_id,
        "session_timeout_ms": config.session_timeout_ms,
        "max_poll_interval_ms": config.max_poll_interval_ms,
        "request_timeout_ms": int(client.request_timeout * 1000),
        "connect_timeout_ms": int(client.setup_timeout * 1000),
        "backoff_ms": config.retry_backoff_ms,
        "max_backoff_ms": config.retry_backoff_max_ms,
        "seed": secrets.randbits(64),
    }
    if not isinstance(strategies, Strategies):
        return _core.Membership.consumer(
            **shared,
            # As in Java: a random UUID in base64, which identifies the member for the life of the process (KIP-1082).
            member_id=secrets.token_urlsafe(16),
            rack=config.rack,
            remote_assignor=config.group_remote_assignor,
        )
    return _core.Membership(
        **shared,
        assignors=strategies.described(),
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        metadata_refresh_ms=config.metadata_refresh_ms,
        carry_on_when_converted=config.on_broker_assignor != "fail",
    )
