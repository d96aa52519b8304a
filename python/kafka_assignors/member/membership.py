"""The thread of a consumer that is its member of the group: it owns the sockets, and the core tells it what to do.

The application's thread and this one share three things: the core, under a lock that is held for microseconds; the
`Mailbox`, in which this thread puts what only the application's thread may do; and the answers that the application
waits for. This thread never calls the data consumer: confluent-kafka serialises a consumer's methods, and a call from
here could wait for seconds while heartbeats are due.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core
from kafka_assignors.clients.confluent._neighbours import Neighbours
from kafka_assignors.clients.confluent._subscription import Subscription
from kafka_assignors.errors import KafkaAssignorsError, SecurityError
from kafka_assignors.net import Address, Closed, Connection, Poller, Ready, Received
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.clients.confluent._conf import ConsumerConfig
    from kafka_assignors.clients.confluent._strategies import Strategies

__all__ = ["Mailbox", "Member", "Reply"]

logger = logging.getLogger("kafka_assignors")

_SASL_AUTHENTICATION_FAILED = 58
# How long after the last look at the application's liveness the next one comes at the latest, in seconds.
_PULSE = 1.0
_LEAST_PULSE = 0.1
# For how many seconds an answer that a neighbour waits for may bring news.
_SUSPENSE = 0.25


class Mailbox:
    """What the application's thread has to do, in order. Any thread may put, any thread may wait."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._arrival = threading.Condition()

    def __bool__(self) -> bool:
        return bool(self._items)

    def put(self, item: Any) -> None:
        """Leaves something to be done."""
        with self._arrival:
            self._items.append(item)
            self._arrival.notify_all()

    def put_back(self, item: Any) -> None:
        """Puts an item that was taken back to the front."""
        with self._arrival:
            self._items.appendleft(item)

    def take(self) -> Any | None:
        """The oldest thing to be done, or None."""
        return self._items.popleft() if self._items else None

    def wait(self, timeout: float | None) -> bool:
        """Whether there is something to be done, after waiting for it."""
        with self._arrival:
            return self._arrival.wait_for(self.__bool__, timeout)


class Reply:
    """The answer that somebody waits for, if somebody does."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._value: Any = None

    def set(self, value: Any) -> None:
        """The answer is there."""
        self._value = value
        self._arrived.set()

    def wait(self, timeout: float | None) -> Any | None:
        """The answer; None if it does not come in time."""
        self._arrived.wait(timeout)
        return self._value


class Member:
    """A member of a group, on a thread of its own from construction until it has left.

    Its methods may be called from any thread; none waits for a broker.

    Args:
        config: the consumer's.
        strategies: the consumer's; only their `plan` is used here.
        mailbox: for what the application's thread has to do.
        summon: called when there is something in the mailbox, and from time to time: makes the application's next poll
            look into it. Returns the time (`time.monotonic`) of the last poll that is known of; None if the consumer
            has gone without being closed, and so goes the member.

    Raises:
        OptionError: the files that TLS needs cannot be used.
    """

    def __init__(
        self, config: ConsumerConfig, strategies: Strategies, mailbox: Mailbox, summon: Callable[[], float | None]
    ) -> None:
        self._config = config
        self._strategies = strategies
        self._mailbox = mailbox
        self._summon = summon
        self._poller = Poller(config.client)
        self._lock = threading.RLock()
        self._core = _core.Membership(now_ms=_milliseconds(), **_settings(config, strategies))
        self._actions: deque[Any] = deque()
        self._connections: dict[int, Connection] = {}
        self._numbers: dict[Connection, int] = {}
        self._subscription = Subscription()
        self._ids = itertools.count(1)
        self._replies: dict[int, Reply] = {}
        # From the core, after each event: whether the share is lost, and when the session ends (`time.monotonic`).
        self._lost = False
        self._session_end = float("inf")
        # If less than this is left of the session, waits of the application end with it.
        self._caution = _caution(config)
        self._next_pulse = 0.0
        self._pulse_interval = min(_PULSE, config.max_poll_interval_ms / 4000)
        if config.auto_commit and config.auto_commit_interval > 0:
            # A commit on the interval is made when the application's thread looks up.
            self._pulse_interval = min(self._pulse_interval, max(_LEAST_PULSE, config.auto_commit_interval))
        self._news_due = float("inf")
        self._polled = time.monotonic()
        self._closed = self._ended = False
        self._neighbours = Neighbours()
        self._place = (0, 1)
        self._thread = threading.Thread(target=self._run, name=f"kafka-assignors-member-{config.group_id}", daemon=True)
        self._thread.start()

    # For the application's thread.

    def subscribe(self, names: Iterable[str], expressions: Mapping[str, _core.Expression]) -> None:
        """These are the topics: by name, and by regular expressions that are matched against all of the cluster."""
        with self._lock:
            self._subscription.replace(names, expressions)
            matched = sorted(self._subscription.matched())
            self._tell(lambda now: self._core.subscribe(now, matched, bool(expressions)))

    def unsubscribe(self) -> None:
        """Gives everything up and leaves the group, which is then told through the mailbox."""
        self._tell(self._core.unsubscribe)

    def begin(self, ticket: int) -> bool:
        """Whether a notice still holds; from then on it is carried out."""
        with self._lock:
            return bool(self._core.begin(ticket))

    def done(self, ticket: int, protocols: list[tuple[str, bytes]]) -> None:
        """A notice has been obeyed."""
        self._tell(lambda now: self._core.done(now, ticket, protocols))

    def commit(self, offsets: list[tuple[str, int, int, int, str | None]], timeout: float, reply: Reply | None) -> int:
        """Commits; the answer goes to `reply`, or into the mailbox where there is none.

        Args:
            offsets: topic, partition, offset, leader epoch or -1, metadata.
            timeout: for how many seconds it is tried.
        """
        return self._ask(reply, lambda now, ident: self._core.commit(now, ident, offsets, int(timeout * 1000)))

    def fetch(self, partitions: Mapping[str, list[int]], timeout: float, reply: Reply | None = None) -> int:
        """Asks for committed offsets; they go to `reply`, or into the mailbox where there is none."""
        wanted = sorted(partitions.items())
        return self._ask(reply, lambda now, ident: self._core.fetch_offsets(now, ident, wanted, int(timeout * 1000)))

    def polled(self) -> None:
        """The application lives."""
        self._tell(self._core.poll)

    def leave(self, timeout: float) -> None:
        """Begins to leave the group for good; the mailbox says when it is over."""
        self._tell(lambda now: self._core.close(now, int(timeout * 1000)))

    @property
    def identity(self) -> tuple[str, int]:
        """Member id, empty for none, and generation, -1 for none."""
        with self._lock:
            _, member_id, generation, _, _ = self._core.state()
            return member_id, generation

    @property
    def fencing(self) -> tuple[str, int] | None:
        """Member id and generation to name in a transaction: the last ones, where the member is in no generation now.

        None before the first.
        """
        with self._lock:
            return self._core.fencing()

    @property
    def is_subscribed(self) -> bool:
        """Whether there is a subscription."""
        with self._lock:
            return self._core.is_subscribed()

    @property
    def is_lost(self) -> bool:
        """Whether the share may belong to other members already, so that no record of it may be handed out.

        A session that is over by the clock counts, even if this member's thread has not run since.
        """
        if not self._lost and time.monotonic() >= self._session_end:
            self._tell(self._core.tick)
        return self._lost

    @property
    def session_left(self) -> float:
        """For how many seconds the share is certainly this member's, if no request is answered meanwhile."""
        return 0.0 if self._lost else self._session_end - time.monotonic()

    @property
    def is_in_doubt(self) -> bool:
        """Whether the coordinator has not answered for so long that waits must end with the session."""
        return self._lost or self.session_left < self._caution

    @property
    def news_due(self) -> float:
        """From when on the group may have something for the application (`time.monotonic`).

        That is the next request, a heartbeat mostly, this member's or a neighbour's; or, while one is unanswered or a
        rebalance runs, when that began.
        """
        since = time.monotonic() - _SUSPENSE
        others = (other._news_due for other in self._neighbours.members if other is not self)
        return min((self._news_due, *(due for due in others if due > since)))

    def hear(self, generation: int) -> None:
        """A neighbour has heard that this generation is over."""
        self._tell(lambda now: self._core.group_rebalances(now, generation))

    def stop(self) -> None:
        """Ends the thread, wherever the member is. May be called twice, and from a finaliser."""
        self._closed = True
        self._poller.wake()

    def abandon(self) -> None:
        """In the child of a fork, where this thread is not: lets go of what was copied, and tells nobody."""
        self._closed = True
        self._poller.abandon()

    def join(self, timeout: float) -> None:
        """Waits for the end of the thread."""
        self._thread.join(timeout)

    def _ask(self, reply: Reply | None, ask: Callable[[int, int], list[Any]]) -> int:
        ident = next(self._ids)
        if reply is not None:
            with self._lock:
                if self._ended:
                    reply.set(None)
                self._replies[ident] = reply
        self._tell(lambda now: ask(now, ident))
        return ident

    def _tell(self, tell: Callable[[int], list[Any]]) -> None:
        """Hands the core an event. What it wants done is done by the member's thread, in the order of the events."""
        self._tell_core(tell)
        self._poller.wake()

    # The thread.

    def _run(self) -> None:
        self._neighbours = Neighbours.of(self, self._config)
        try:
            with self._poller:
                while not self._closed:
                    self._pulse()
                    self._take_place()
                    self._tell_core(self._core.tick)
                    self._perform_all()
                    for event in self._poller.poll(self._patience()):
                        self._take(event)
                        self._perform_all()
        except Exception as error:
            # A defect of ours must not leave an application waiting for records that never come.
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
            self._lost, end = self._core.standing()
            self._session_end = float("inf") if end is None else end / 1000

    def _pulse(self) -> None:
        """Looks whether the application polls, before the core looks at the time."""
        now = time.monotonic()
        if now < self._next_pulse:
            return
        self._next_pulse = now + self._pulse_interval
        polled = self._summon()
        if polled is None:
            self._closed = True
        elif polled > self._polled:
            self._polled = polled
            self._tell_core(self._core.poll)

    def _take_place(self) -> None:
        """Neighbours come and go."""
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
            self._news_due = min(self._news_due, time.monotonic())
        else:
            self._news_due = float("inf") if deadline is None else deadline / 1000
        left = self._next_pulse - time.monotonic()
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
                    # Internal ones as well: librdkafka makes no difference.
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
            case {"action": "notify", "kind": "prepare", "lost": False, "revoked": []}:
                # Nothing for the application to give up: the group does not wait for its next poll.
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
        """This is for the application's thread."""
        self._mailbox.put(action)
        self._summon()

    def _plan(self, action: Mapping[str, Any]) -> None:
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


def _caution(config: ConsumerConfig) -> float:
    """The part of a session that is always left while heartbeats are answered in time, in seconds."""
    session, interval = config.session_timeout_ms, config.heartbeat_interval_ms
    return max(0.0, min(session / 2, session - 1.5 * interval)) / 1000


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000


def _settings(config: ConsumerConfig, strategies: Strategies) -> dict[str, Any]:
    client = config.client
    return {
        "bootstrap": [(address.host, address.port) for address in client.bootstrap],
        "client_id": client.client_id,
        "group_id": config.group_id,
        "group_instance_id": config.group_instance_id,
        "assignors": strategies.described(),
        "session_timeout_ms": config.session_timeout_ms,
        "heartbeat_interval_ms": config.heartbeat_interval_ms,
        "max_poll_interval_ms": config.max_poll_interval_ms,
        "request_timeout_ms": int(client.request_timeout * 1000),
        "connect_timeout_ms": int(client.setup_timeout * 1000),
        # Below 1 librdkafka never refreshes.
        "metadata_refresh_ms": config.metadata_refresh_ms if config.metadata_refresh_ms > 0 else 2**31 - 1,
        "backoff_ms": config.retry_backoff_ms,
        "max_backoff_ms": config.retry_backoff_max_ms,
        "max_frame_bytes": client.frame_limit,
        "carry_on_when_converted": config.on_broker_assignor == "carry-on",
        "seed": secrets.randbits(64),
    }
