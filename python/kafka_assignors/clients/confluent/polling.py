"""How `poll` and `consume` attend to the group, at the cost of the native methods while the group has no work for them.

    native poll ──── the membership's thread has some work: `_summoned` ────► attentive poll
        ▲                                                                         │
        └──────────── records come, and nothing is left to do: `_dismiss` ◄───────┘

The attentive methods attend to the group, wait for records with the native methods, and put the native methods back. If
the application is blocked inside a native method, librdkafka's callback for statistics attends to the group:
`_on_statistics`.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import confluent_kafka

from kafka_assignors import _core
from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.clients.confluent import times
from kafka_assignors.clients.confluent.application_side import ConfluentSide
from kafka_assignors.clients.confluent.native_close import close_native_consumer
from kafka_assignors.clients.confluent.poll_methods import PollMethods
from kafka_assignors.member import fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from kafka_assignors.clients.confluent.config import ConsumerConfig

__all__ = ["PollingConsumer"]

_Native = confluent_kafka.Consumer


class PollingConsumer(_Native):
    """A consumer of librdkafka with a member of the group. Its `poll` and `consume` attend to both.

    Args:
        config: the consumer's.
    """

    # No dictionary: a record would cost more (`poll_methods.py`).
    __slots__ = (
        # A tracer's subclass in the place of the client's class has one already (docs/frameworks.md).
        *(() if hasattr(_Native, "__weakref__") else ("__weakref__",)),
        "_closed",
        "_config",
        "_gate",
        "_group",
        "_holds_records",
        "_last_poll",
        "_native",
        "_poll_methods",
        "_renewing",
    )

    def __init__(self, config: ConsumerConfig) -> None:
        this = weakref.ref(self)
        stats = _StatisticsCallback(this, config.stats_cb, config.stats_interval)
        self._native = {**config.data_path, "stats_cb": _core.Uninterrupted(stats)}
        super().__init__(self._native)
        self._config = config
        self._renewing = False
        self._gate = threading.Lock()
        self._poll_methods = PollMethods(
            self, (("poll", PollingConsumer._attentive_poll), ("consume", PollingConsumer._attentive_consume))
        )
        self._last_poll = time.monotonic()
        self._holds_records = False
        self._closed = False
        self._group = ConfluentSide(self, config, _Summons(this), self._renew)
        fork.watch(self)

    def _attentive_poll(self, timeout: float | None = None) -> Message | None:
        """`poll` while the group has work for the turn, or while no record arrives."""
        if not self._poll_methods.is_on:
            # The application keeps the bound method of an earlier lookup. Its calls have the native speed as well.
            return self._poll_methods.native.poll(self, timeout)  # type: ignore[no-any-return]
        self._last_poll = time.monotonic()
        if self._closed or (timeout is not None and not isinstance(timeout, int | float)):
            return _Native.poll(self, timeout)  # type: ignore[arg-type]
        endless = timeout is None or timeout < 0
        deadline = 0.0 if timeout is None else self._last_poll + timeout
        while True:
            message = self._group.attend_in_poll()
            if message is not None:
                return self._delivered(message)
            if self._closed:
                return None
            left = times.NATIVE_WAIT if endless else max(0.0, deadline - time.monotonic())
            message = self._serve(min(left, times.NATIVE_WAIT))
            if message is not None and (message.error() is not None or self._group.may_hand_out):
                self._dismiss()
                return message
            self._last_poll = time.monotonic()
            if not endless and self._last_poll >= deadline:
                return None

    def _serve(self, timeout: float) -> Message | None:
        """Waits inside the native `poll`, or that of a subclass, and then for the mailbox."""
        records, group = self._group.patience(timeout)
        message: Message | None = None if records is None else self._poll_methods.native.poll(self, records)
        if message is None and group > 0:
            self._group.mailbox.wait(group)
        return message

    def _delivered(self, message: Message) -> Message:
        """Hands an error of the group out as `poll` does; a subclass may raise it."""
        return message

    def _attentive_consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """`consume` while the group has work for the turn, or while no record arrives."""
        engine, native = self._group, self._poll_methods.native.consume
        if not self._poll_methods.is_on:
            kept: list[Message] = native(self, num_messages, timeout)
            return kept
        self._last_poll = started = time.monotonic()
        if self._closed or not isinstance(timeout, int | float) or not isinstance(num_messages, int):
            found: list[Message] = native(self, num_messages, timeout)
            return found
        messages: list[Message] = []
        while True:
            if engine.is_due:
                if messages:
                    return messages
                message = engine.attend_in_poll()
                if message is not None:
                    return [message]
                if self._closed:
                    return []
            left = times.NATIVE_WAIT if timeout < 0 else max(0.0, started + timeout - time.monotonic())
            records, group = engine.patience(min(left, times.NATIVE_WAIT))
            if records is not None:
                self._holds_records = bool(messages)
                try:
                    messages += native(self, num_messages - len(messages), records)
                finally:
                    self._holds_records = False
                if messages and not engine.may_hand_out:
                    messages = [message for message in messages if message.error() is not None]
            if group > 0 and len(messages) < num_messages:
                engine.mailbox.wait(group)
            self._last_poll = time.monotonic()
            if len(messages) >= num_messages:
                self._dismiss()
                return messages
            if left <= 0 or 0 <= timeout <= self._last_poll - started:
                return messages

    def _summoned(self) -> float:
        """Makes the application's next `poll` or `consume` an attentive one. The membership's thread calls it.

        Returns the time of the application's last poll. The native methods do not record it, so while they are in
        place the application counts as polling now.
        """
        with self._gate:
            if self._poll_methods.is_on or self._closed or not self._group.subscribed:
                return self._last_poll
            self._poll_methods.on(self)
            return time.monotonic()

    def _dismiss(self) -> None:
        """Puts the native methods back, if nothing is left to do."""
        with self._gate:
            needed = self._group.is_due or self._group.is_in_doubt
            if not needed and (self._group.subscribed or not self._group.unsubscribed_commits.on_interval):
                self._poll_methods.off(self)

    def _on_statistics(self, statistics: str, users: Callable[[str], object]) -> None:
        """Attends to the group, and calls the user's callback. librdkafka calls this, so the application may be blocked
        inside librdkafka.
        """
        with self._group.within_callback:
            self._attend_blocked(statistics)
            users(statistics)

    def _attend_blocked(self, statistics: str) -> None:
        if self._closed or self._renewing:
            # librdkafka is closing. A commit that begins now would make it abort the process.
            return
        self._last_poll = time.monotonic()
        engine = self._group
        if engine.subscribed:
            if not self._holds_records:
                self._take_turns()
            engine.pause_in_doubt()
            engine.look(statistics)
        elif engine.commits_now():
            engine.unsubscribed_commits.commit()

    def _take_turns(self) -> None:
        """Takes the turns that are due, inside librdkafka.

        `consume` must not hold records meanwhile: the turn would revoke their partitions and commit their offsets, and
        another member would read the records as well. Records in librdkafka's own queue are safe: the pause of a
        partition (`LibrdkafkaPath.hold`) makes librdkafka drop them, and its position is still before them.
        """
        engine = self._group
        engine.attend_inside()
        # An eager rebalance took the partitions away. No record may be delivered until the new ones are assigned.
        late = time.monotonic() + times.BLOCKED_CALLBACK
        while engine.holds_back and not engine.is_busy and engine.mailbox.wait(late - time.monotonic()):
            engine.attend_inside()

    def _commit_on_interval(self) -> None:
        """Makes `poll` attentive, so that it commits on the interval. Without a subscription no member commits."""
        if self._group.unsubscribed_commits.begin():
            self._attend_next()

    def _attend_next(self) -> None:
        """Makes the next `poll` an attentive one."""
        with self._gate:
            if not self._poll_methods.is_on:
                self._poll_methods.on(self)

    def _rebalance(self) -> tuple[bool, Membership | None]:
        """Within a callback: whether the rebalance is cooperative, and the membership that it gave."""
        member = self._group.member
        now = None if member is None else Membership(member.identity[1], member.identity[0])
        return self._group.strategies.cooperative, now

    def _renew(self) -> None:
        """Replaces librdkafka's consumer by a new one with the same settings."""
        self._renewing = True
        try:
            _Native.close(self)
            _Native.__init__(self, self._native)
            if self._group.own_client.credentials is not None:
                _Native.set_sasl_credentials(self, *self._group.own_client.credentials)
        finally:
            self._renewing = False

    def _disown(self, refuse: Callable[..., Any]) -> None:
        """In the child of a fork: abandons the member, and puts `refuse` in the place of the methods."""
        # This keeps the object for ever: librdkafka's destructor would wait for threads that do not exist here.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        member = self._group.fetcher
        if member is not None:
            with contextlib.suppress(Exception):
                member.abandon()
        kind = self._poll_methods.native
        methods = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
        # The methods are replaced, so that a consumer that is never forked pays for no check in every call.
        self._poll_methods.forever(
            self, tuple((dict.fromkeys(methods, refuse) | {"close": _left_to_the_parent}).items())
        )
        self._closed = True

    def _end(self) -> None:
        if not self._group.subscribed:
            self._group.unsubscribed_commits.end()
        with self._gate:
            self._closed = True
            self._poll_methods.off(self)
        close_native_consumer(self)


def _left_to_the_parent(_: PollingConsumer) -> None:
    """`close` in the child of a fork: only the parent may close the consumer."""


class _Summons:
    """Calls `_summoned` for the membership's thread, without keeping the consumer alive."""

    def __init__(self, consumer: weakref.ref[PollingConsumer]) -> None:
        self._consumer = consumer

    def __call__(self) -> float | None:
        consumer = self._consumer()
        return None if consumer is None else consumer._summoned()


class _StatisticsCallback:
    """The callback for statistics, and the user's own after it.

    No other callback is called at an interval of our choice while the application is blocked inside librdkafka.
    """

    def __init__(
        self, consumer: weakref.ref[PollingConsumer], users: Callable[[str], object] | None, interval: float
    ) -> None:
        self._consumer = consumer
        self._users = users if interval > 0 else None
        self._interval = interval
        self._last = time.monotonic()

    def __call__(self, statistics: str) -> None:
        consumer = self._consumer()
        if consumer is None:
            self._tell(statistics)
        else:
            consumer._on_statistics(statistics, self._tell)

    def _tell(self, statistics: str) -> None:
        now = time.monotonic()
        # Statistics arrive at least as often as the user wants them, and may arrive a tenth of the interval early.
        if self._users is not None and now - self._last >= 0.9 * self._interval:
            self._last = now
            self._users(statistics)
