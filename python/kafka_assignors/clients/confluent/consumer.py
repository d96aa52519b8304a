"""`Consumer`: confluent-kafka's, with any assignor of this package.

The records come through librdkafka, as ever: the data path is a `confluent_kafka.Consumer` that never subscribes. The
membership is our own. The two meet in the application's thread, inside `poll`, `consume`, `close` and the callbacks.

`poll` and `consume` cost what the native ones cost, because they are the native ones: when the group wants something,
the membership's thread puts others in their place, which do it and remove themselves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Self

from kafka_assignors.errors import MissingDependencyError

try:
    import confluent_kafka
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.confluent needs confluent-kafka 2: pip install kafka-assignors[confluent]"
    ) from error

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_assignors import _core
from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients.confluent import _fork
from kafka_assignors.clients.confluent._conf import ConsumerConfig
from kafka_assignors.clients.confluent._engine import Callbacks, Engine
from kafka_assignors.clients.confluent._errors import as_the_client
from kafka_assignors.clients.confluent._group_metadata import group_metadata_of
from kafka_assignors.clients.confluent._subscription import expression, unsubscribable
from kafka_assignors.clients.confluent._switch import Switch
from kafka_assignors.lag import ConfluentLagSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.group import Plan

__all__ = ["Consumer"]

_Native = confluent_kafka.Consumer
# How long a wait inside librdkafka lasts before the group is looked after again, in seconds.
_SLICE = 0.1
# For how many seconds a callback may keep an application that waits inside librdkafka.
_MOMENT = 0.5
# For a topic that subscribing is to create.
_CREATE_TIMEOUT = 10.0
# What of a consumer's settings a client of its own needs, to ask for lags.
_CONNECTING = (
    "bootstrap.",
    "metadata.broker.",
    "security.",
    "ssl.",
    "enable.ssl.",
    "sasl.",
    "oauth_cb",
    "socket.",
    "broker.address.",
    "client.id",
    "client.dns.",
)


class Consumer(_Native):
    """`confluent_kafka.Consumer`, in whose group the assignors of this package decide.

    Methods, settings, callbacks and errors are the client's own. What differs:

    Args:
        *args: the client's: the configuration as a dict.
        **kwargs: likewise, settings by keyword.

    The setting `partition.assignment.strategy` takes the names `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
    `sticky-join`, `cooperative-sticky-join` and `lag`, separated by commas, or an assignor of `kafka_assignors`, or a
    list of both; several in order of preference, for rolling upgrades. The default is the client's: `range,roundrobin`.
    `lag` by name asks the cluster itself for the lags of the group.

    Two more settings:

    - `on_rebalance`: a function that every member calls with a
      [`RebalanceReport`][kafka_assignors.clients.confluent.RebalanceReport] after each rebalance: what was gained, lost
      and kept. In the application's thread; its errors are logged.
    - `on_broker_assignor`: what to do when the broker's own assignor serves the group, since a member with
      `group.protocol=consumer` has joined (KIP-848). `fail`, the default, is an error; `carry-on` takes the broker's
      plan and logs a warning.

    Partitions that stay with a consumer are read on without a break, also in eager rebalances: their position, and what
    librdkafka has fetched for them, survive.

    Raises:
        MissingDependencyError: on import, if confluent-kafka is not installed.
        ValueError: there is no `group.id`.
        OptionError: a setting with a bad value, or one that the membership cannot honour, such as
            `group.protocol=consumer`. It is a `KafkaException` with `_INVALID_ARG` as well.
        KafkaException: as the client, for settings that librdkafka refuses.

    >>> from kafka_assignors import StickyAssignor
    >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "billing"}
    >>> consumer = Consumer({**settings, "partition.assignment.strategy": [StickyAssignor(), "range"]})
    >>> consumer.close()
    """

    # No dictionary: see `_switch`.
    __slots__ = (
        "__weakref__",
        "_closed",
        "_config",
        "_engine",
        "_gate",
        "_last_poll",
        "_native",
        "_renewing",
        "_switch",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _settings(args, kwargs)
        with as_the_client():
            config = ConsumerConfig.read(given)
            config = dataclasses.replace(
                config, assignors=tuple(_with_lags(each, config, given) for each in config.assignors)
            )
        this = weakref.ref(self)
        stats = _Statistics(this, config.stats_cb, config.stats_interval)
        self._native = {**config.data_path, "stats_cb": _core.Uninterrupted(stats)}
        super().__init__(self._native)
        self._config = config
        self._renewing = False
        self._gate = threading.Lock()
        self._switch = Switch(self, (("poll", Consumer._attentive_poll), ("consume", Consumer._attentive_consume)))
        self._last_poll = time.monotonic()
        self._closed = False
        self._engine = Engine(self, config, _Summons(this), self._renew)
        _fork.watch(self)

    # Records.

    # `poll` and `consume` are inherited; see `_summoned`.

    def _attentive_poll(self, timeout: float | None = None) -> Message | None:
        """What `poll` is while the group wants something, or nothing comes anyway."""
        if not self._switch.is_on:
            # An application that looked the method up once and kept it pays no more than one that does so each time.
            return self._switch.native.poll(self, timeout)  # type: ignore[no-any-return]
        self._last_poll = time.monotonic()
        if self._closed or (timeout is not None and not isinstance(timeout, int | float)):
            return _Native.poll(self, timeout)  # type: ignore[arg-type]
        endless = timeout is None or timeout < 0
        deadline = 0.0 if timeout is None else self._last_poll + timeout
        while True:
            message = self._engine.attend()
            if message is not None:
                return self._delivered(message)
            if self._closed:
                return None
            left = _SLICE if endless else max(0.0, deadline - time.monotonic())
            message = self._serve(min(left, _SLICE))
            if message is not None and (message.error() is not None or self._engine.may_hand_out):
                self._dismiss()
                return message
            self._last_poll = time.monotonic()
            if not endless and self._last_poll >= deadline:
                return None

    def _serve(self, timeout: float) -> Message | None:
        """The native `poll`, or that of a subclass; and in front of the mailbox when the group may have news."""
        records, group = self._engine.patience(timeout)
        message: Message | None = None if records is None else self._switch.native.poll(self, records)
        if message is None and group > 0:
            self._engine.mailbox.wait(group)
        return message

    def _delivered(self, message: Message) -> Message:
        """What `poll` does with an error of the group."""
        return message

    def _attentive_consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """What `consume` is at those times."""
        engine, native = self._engine, self._switch.native.consume
        if not self._switch.is_on:
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
                message = engine.attend()
                if message is not None:
                    return [message]
                if self._closed:
                    return []
            left = _SLICE if timeout < 0 else max(0.0, started + timeout - time.monotonic())
            records, group = engine.patience(min(left, _SLICE))
            if records is not None:
                messages += native(self, num_messages - len(messages), records)
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
        """The membership's thread calls: the application's next `poll` or `consume` is to look after the group.

        Returns when the application was last seen to poll. While the native methods are there nobody can know, so that
        it counts as having polled until now.
        """
        with self._gate:
            if self._switch.is_on or self._closed or not self._engine.subscribed:
                return self._last_poll
            self._switch.on(self)
            return time.monotonic()

    def _dismiss(self) -> None:
        """Messages flow and nothing is to be done: back to the native methods."""
        with self._gate:
            needed = self._engine.is_due or self._engine.is_in_doubt
            if not needed and (self._engine.subscribed or not self._engine.alone.reads):
                self._switch.off(self)

    def _look(self, statistics: str) -> None:
        """Looks after the group, with librdkafka's statistics: the application may be waiting inside librdkafka."""
        if self._closed or self._renewing:
            # librdkafka is closing: a commit that begins now makes it abort the process.
            return
        self._last_poll = time.monotonic()
        engine = self._engine
        if engine.subscribed:
            engine.attend(native=True)
            engine.hold_still()
            # The share that was given up comes back in a moment, and until then there is nothing to deliver.
            late = time.monotonic() + _MOMENT
            while engine.holds_back and not engine.is_busy and engine.mailbox.wait(late - time.monotonic()):
                engine.attend(native=True)
            engine.look(statistics)
        elif engine.commits_now():
            engine.alone.commit()

    def _renew(self) -> None:
        """Replaces librdkafka's consumer by a new one with the same settings."""
        self._renewing = True
        try:
            _Native.close(self)
            _Native.__init__(self, self._native)
            if self._engine.silence.credentials is not None:
                _Native.set_sasl_credentials(self, *self._engine.silence.credentials)
        finally:
            self._renewing = False

    # The group.

    def subscribe(self, topics: list[str], on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        """As the client's: names, and regular expressions that begin with `^`; replaces the subscription before.

        Args:
            topics: at least one.
            on_assign: called with the consumer and the partitions that came: all of them after an eager rebalance,
                those that are new after a cooperative one. What it assigns, with offsets or without, is what is read.
            on_revoke: called with what is about to go.
            on_lost: called with what others may own already; without one, `on_revoke` is.

        Raises:
            KafkaException: there are no topics, or an expression is none, or has a back-reference.
            RuntimeError: the consumer is closed.
        """
        self._check_open()
        if not isinstance(topics, list):
            raise TypeError("expected list of topic unicode strings")
        names = [str(topic) for topic in topics]
        callbacks = Callbacks(on_assign, on_revoke, on_lost)
        if not names or not all(names):
            raise unsubscribable()
        expressions = {name: expression(name) for name in names if name.startswith("^")}
        names = [name for name in names if not name.startswith("^")]
        if self._config.create_topics:
            for name in names:
                # Asking for it is what creates it, where the broker allows.
                with contextlib.suppress(KafkaException):
                    self.list_topics(name, timeout=_CREATE_TIMEOUT)
        self._engine.subscribe(names, expressions, callbacks)

    def unsubscribe(self) -> None:
        """As the client's; `on_revoke` is called by a later `poll`."""
        self._check_open()
        if self._engine.member is not None:
            self._engine.member.unsubscribe()

    def assignment(self) -> list[TopicPartition]:
        """As the client's."""
        if self._closed or not self._engine.subscribed:
            return _Native.assignment(self)
        return self._engine.assignment()

    def assign(self, partitions: list[TopicPartition]) -> None:
        """As the client's. Within `on_assign`: what is read, and from where."""
        if self._engine.within is None:
            if self._engine.subscribed:
                self._engine.reassign(_checked(partitions))
                return
            self._engine.alone.give_up()
            _Native.assign(self, partitions)
            self._commits_alone()
        elif self._engine.within == "assign":
            self._engine.choose(_checked(partitions))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """As the client's. Within `on_assign`: what of the new partitions is read, and from where."""
        if self._engine.within is None:
            if self._engine.subscribed:
                self._engine.reassign(_checked(partitions), incremental=1)
                return
            _Native.incremental_assign(self, partitions)
            self._commits_alone()
        elif self._engine.within == "assign":
            self._engine.choose(_checked(partitions))

    def unassign(self) -> None:
        """As the client's. Within a callback there is nothing left to do: what is revoked goes by itself."""
        if self._engine.within is None:
            if self._engine.subscribed:
                self._engine.reassign(None)
                return
            self._engine.alone.give_up()
            _Native.unassign(self)
        elif self._engine.within == "assign":
            self._engine.choose([])

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """As the client's. Within a callback there is nothing left to do: what is revoked goes by itself."""
        if self._engine.within is None:
            if self._engine.subscribed:
                self._engine.reassign(_checked(partitions), incremental=-1)
                return
            self._engine.alone.give_up()
            _Native.incremental_unassign(self, partitions)

    def _commits_alone(self) -> None:
        """Makes `poll` look at the clock for commits on the interval: without a group no thread does."""
        if self._engine.alone.begin():
            with self._gate:
                if not self._switch.is_on:
                    self._switch.on(self)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """As the client's."""
        _Native.pause(self, partitions)
        self._engine.share.pause(partitions)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """As the client's."""
        _Native.resume(self, partitions)
        self._engine.share.resume(partitions)

    def seek(self, partition: TopicPartition) -> None:
        """As the client's; also for a partition that has not begun to be read."""
        share = self._engine.share
        if not share.start_at(partition):
            if self._engine.subscribed:
                share.leaves((partition.topic, partition.partition))
            _Native.seek(self, partition)
            share.sought(partition)

    def memberid(self) -> str | None:  # type: ignore[override]
        """As the client's."""
        member = self._engine.member
        if self._closed or member is None:
            return _Native.memberid(self)
        return member.identity[0] or None

    def consumer_group_metadata(self) -> Any:
        """As the client's: what `Producer.send_offsets_to_transaction` takes. It names this member, so that a zombie's
        transaction is fenced; between two memberships the last one, whose transactions are refused.

        Raises:
            KafkaException: `_STATE`: the consumer is subscribed and has never been a member.
            StateError: librdkafka's form is not the one that this package knows.
        """
        native = _Native.consumer_group_metadata(self)
        member = self._engine.member
        if self._closed or member is None:
            return native
        return group_metadata_of(member, native, self._config.group_id, self._config.group_instance_id)

    def plan(self) -> Plan | None:
        """The plan that this consumer made when it last led its group; None if it never did."""
        return self._engine.strategies.last_plan

    # Offsets.

    def commit(  # type: ignore[override]
        self, message: Any = None, offsets: Any = None, asynchronous: Any = True, **kwargs: Any
    ) -> list[TopicPartition] | None:
        """As the client's, as a member: refused where this consumer is none any more.

        Args:
            message: its offset + 1 is committed.
            offsets: or these; with neither, what has been read, or stored, and not been committed yet.
            asynchronous: return at once; `on_commit` hears what became of it.
            **kwargs: `async`, the older name.

        Returns:
            None, or with `asynchronous=False` each partition with its offset, and its own error if it was refused; so
            is one that the consumer no longer owns.

        Raises:
            KafkaException: with `asynchronous=False`: nothing was committed. Without anything to commit `_NO_OFFSET`.
        """
        if kwargs.keys() - {"async"}:
            raise TypeError(f"commit() got an unexpected keyword argument {min(kwargs.keys() - {'async'})!r}")
        waits = not kwargs.get("async", asynchronous)
        self._check_open()
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        engine = self._engine
        if not engine.subscribed:
            given: dict[str, Any] = {"asynchronous": not waits}
            given |= {name: each for name, each in (("message", message), ("offsets", offsets)) if each is not None}
            committed: list[TopicPartition] | None = _Native.commit(self, **given)
            if message is None and offsets is None:
                engine.alone.committed()
            return committed
        everything = message is None and offsets is None
        if everything:
            due = engine.share.due()
        else:
            due = engine.commits.of_message(message) if offsets is None else engine.commits.of_offsets(offsets)
        if not due:
            if waits:
                raise KafkaException(KafkaError(KafkaError._NO_OFFSET, "Commit failed: Local: No offset stored"))
            engine.commits.nothing(engine.share.read)
            self._summoned()
            return None
        if not waits:
            engine.commits.send(due)
            return None
        done = engine.commits.send_and_wait(due)
        if everything:
            # As librdkafka: every partition that is read, also those with nothing new.
            others = engine.share.read - due.keys()
            done = sorted([*done, *(TopicPartition(*each) for each in others)])
        return done

    def committed(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """As the client's, with the metadata as it was committed: librdkafka reads on behind its end.

        Args:
            partitions: whose offsets.
            timeout: in seconds; without one it takes as long as it takes.

        Raises:
            KafkaException: nobody answered in time, or the group may not be read.
        """
        self._check_open()
        return self._engine.committed(partitions, timeout)

    def store_offsets(self, message: Any = None, offsets: Any = None) -> None:
        """As the client's."""
        self._check_open()
        engine = self._engine
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is None and offsets is None:
            raise ValueError("expected either message or offsets")
        if not engine.subscribed:
            _Native.store_offsets(self, **({"offsets": offsets} if message is None else {"message": message}))
            engine.alone.stored()
            return
        given = engine.commits.of_message(message) if offsets is None else engine.commits.of_offsets(offsets)
        code = KafkaError._INVALID_ARG if self._config.auto_store else KafkaError._STATE
        stored = [not self._config.auto_store and engine.share.store(*each) for each in given.items()]
        if not any(stored) and (stored or self._config.auto_store):
            raise KafkaException(KafkaError(code, f"StoreOffsets failed: {KafkaError(code).str()}"))

    # The end.

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """As the client's, for the membership's connections as well."""
        _Native.set_sasl_credentials(self, username, password)
        self._engine.silence.credentials = username, password
        sasl = self._config.client.sasl
        if sasl is not None and sasl.credentials is not None:
            sasl.credentials.replace(username, password)

    def close(self) -> None:
        """As the client's: `on_revoke`, a last commit unless `enable.auto.commit` is off, and out of the group.

        Takes 30 seconds at most where the coordinator does not answer. Within a callback: as soon as it returns.
        """
        if self._closed:
            return
        try:
            if not self._engine.close():
                return
        finally:
            if not self._engine.is_busy:
                self._end()

    def _end(self) -> None:
        if not self._engine.subscribed:
            self._engine.alone.end()
        with self._gate:
            self._closed = True
            self._switch.off(self)
        _Native.close(self)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, exc_type: object, exc_value: object, exc_traceback: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")


class _Summons:
    """How the membership's thread reaches the consumer, without keeping it alive."""

    def __init__(self, consumer: weakref.ref[Consumer]) -> None:
        self._consumer = consumer

    def __call__(self) -> float | None:
        consumer = self._consumer()
        return None if consumer is None else consumer._summoned()


class _Statistics:
    """The only callback that librdkafka serves inside a blocked call at times of our choosing; and the user's own."""

    def __init__(self, consumer: weakref.ref[Consumer], users: Callable[[str], object] | None, interval: float) -> None:
        self._consumer = consumer
        self._users = users if interval > 0 else None
        self._interval = interval
        self._last = time.monotonic()

    def __call__(self, statistics: str) -> None:
        consumer = self._consumer()
        if consumer is not None:
            consumer._look(statistics)
        now = time.monotonic()
        # Ours come at least as often; a tenth less than the interval is in time.
        if self._users is not None and now - self._last >= 0.9 * self._interval:
            self._last = now
            self._users(statistics)


def _settings(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The one configuration of all that the client's constructor takes."""
    if len(args) > 1:
        raise TypeError("expected tuple containing single dict")
    if args and not isinstance(args[0], dict):
        raise TypeError("expected configuration dict")
    return {**(args[0] if args else {}), **kwargs}


def _with_lags(assignor: Assignor, config: ConsumerConfig, given: dict[str, Any]) -> Assignor:
    """An assignor by lag that was given no source asks the cluster, one that was given no group this one."""
    if not isinstance(assignor, LagBasedAssignor):
        return assignor
    if assignor.lags is None:
        connecting = {name: value for name, value in given.items() if name.startswith(_CONNECTING)}
        assignor = dataclasses.replace(assignor, lags=_lag_source(config, connecting))
    return assignor if assignor.group_id else dataclasses.replace(assignor, group_id=config.group_id)


def _lag_source(config: ConsumerConfig, connecting: dict[str, Any]) -> ConfluentLagSource:
    isolation = str(config.data_path.get("isolation.level", "read_committed")).lower()
    return ConfluentLagSource(connecting, reset=config.reset, isolation_level=isolation)


def _checked(partitions: Any) -> list[TopicPartition]:
    if not isinstance(partitions, list) or not all(isinstance(each, TopicPartition) for each in partitions):
        raise TypeError("requires list of TopicPartition")
    return partitions
