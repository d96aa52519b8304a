"""`Consumer`: confluent-kafka's, with any assignor of this package.

    application ──► Consumer ──────────────────► librdkafka          records: a `confluent_kafka.Consumer` that
                        │                                            never subscribes
                        ├─ polling              poll and consume
                        └─ application_side     callbacks, commits, the data path
                               ▲ Mailbox │ calls
                               │         ▼
                           membership ──────► brokers                its own thread: heartbeats, rebalances, commits

The two sides meet in the application's thread, inside `poll`, `consume`, `close` and the callbacks.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from kafka_assignors.errors import MissingDependencyError

try:
    import confluent_kafka
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.confluent needs confluent-kafka 2: pip install kafka-assignors[confluent]"
    ) from error

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_assignors.clients.confluent import times
from kafka_assignors.clients.confluent.commits import (
    as_partitions,
    checked,
    of_message,
    of_offsets,
    position_of,
    positions_of,
)
from kafka_assignors.clients.confluent.config import ConsumerConfig
from kafka_assignors.clients.confluent.consumer_protocol import is_asked_for, librdkafkas
from kafka_assignors.clients.confluent.data_path import Callbacks
from kafka_assignors.clients.confluent.errors import as_the_client
from kafka_assignors.clients.confluent.group_metadata import group_metadata_of
from kafka_assignors.clients.confluent.lag_source import with_lags
from kafka_assignors.clients.confluent.polling import PollingConsumer
from kafka_assignors.clients.confluent.subscription import expression, unsubscribable

if TYPE_CHECKING:
    from kafka_assignors.group import Plan

__all__ = ["Consumer"]

_Native = confluent_kafka.Consumer


class Consumer(PollingConsumer):
    """`confluent_kafka.Consumer`, in whose group the assignors of this package decide.

    Methods, settings, callbacks and errors are the client's own. What differs:

    Args:
        *args: the client's: the configuration as a dict.
        **kwargs: likewise, settings by keyword.

    The setting `partition.assignment.strategy` takes the names `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
    `sticky-join`, `cooperative-sticky-join`, `weighted`, `cooperative-weighted` and `lag`, separated by commas, or an
    assignor of `kafka_assignors`, or a list of both; several in order of preference, for rolling upgrades. The default
    is the client's: `range,roundrobin`. `lag` by name reads the lags of the group from the cluster.

    Two more settings:

    - `on_rebalance`: a function that every member calls with a
      [`RebalanceReport`][kafka_assignors.clients.confluent.RebalanceReport] after each rebalance, in the application's
      thread. Its errors are logged.
    - `on_broker_assignor`: the reaction to the broker's own assignor, which serves the group once a member with
      `group.protocol=consumer` has joined (KIP-848). `fail`, the default, is an error; `carry-on` takes the broker's
      plan and logs a warning; so does `migrate`, with which a leader's assignments have no user data, so that a broker
      converts the group while it works ([the way over](kip-848.md#the-way-over)).

    With `group.protocol=consumer` (KIP-848) the constructor gives librdkafka's own consumer, a
    `confluent_kafka.Consumer`, and the log says so: librdkafka speaks that protocol. A subclass is refused.

    Partitions that stay with a consumer are read without a break, also in eager rebalances. Their positions stay, and
    so do the records that librdkafka has fetched for them.

    Raises:
        MissingDependencyError: on import, if confluent-kafka is not installed.
        ValueError: there is no `group.id`.
        OptionError: a setting with a bad value, or one that the membership cannot honour, such as
            `group.remote.assignor` in the classic protocol. It is a `KafkaException` with `_INVALID_ARG` as well.
        KafkaException: as the client, for settings that librdkafka refuses.

    >>> from kafka_assignors import StickyAssignor
    >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "billing"}
    >>> consumer = Consumer({**settings, "partition.assignment.strategy": [StickyAssignor(), "range"]})
    >>> consumer.close()
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """This consumer, or librdkafka's own with `group.protocol=consumer`."""
        given = _settings(args, kwargs)
        # The methods that a subclass overrides would be lost, so its constructor refuses the setting.
        if cls is Consumer and is_asked_for(given):
            with as_the_client():
                return librdkafkas(given)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _settings(args, kwargs)
        with as_the_client():
            super().__init__(with_lags(ConsumerConfig.read(given), given))

    # The group.

    def subscribe(self, topics: list[str], on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        """As the client's: names, and regular expressions that begin with `^`; replaces the previous subscription.

        Args:
            topics: at least one.
            on_assign: called with the consumer and partitions: all of them after an eager rebalance, the new ones after
                a cooperative one. The partitions that it assigns, with offsets or without, are read.
            on_revoke: called with the partitions that are about to be revoked.
            on_lost: called with partitions that other members may own already; by default `on_revoke` is called.

        Raises:
            KafkaException: there are no topics, or an expression is invalid, or has a back-reference.
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
                # The request for its metadata creates the topic, if the broker allows it.
                with contextlib.suppress(KafkaException):
                    self.list_topics(name, timeout=times.CREATE_TOPIC)
        self._group.subscribe(names, expressions, callbacks)

    def unsubscribe(self) -> None:
        """As the client's; `on_revoke` is called by a later `poll`."""
        self._check_open()
        if self._group.member is not None:
            self._group.member.unsubscribe()

    def assignment(self) -> list[TopicPartition]:
        """As the client's."""
        if self._closed or not self._group.subscribed:
            return _Native.assignment(self)
        return self._group.assignment()

    def assign(self, partitions: list[TopicPartition]) -> None:
        """As the client's. Within `on_assign`: the partitions to read, and their offsets."""
        if self._group.within is None:
            if self._group.subscribed:
                self._group.assign(checked(partitions))
                return
            self._group.unsubscribed_commits.before_change()
            _Native.assign(self, partitions)
            self._commit_on_interval()
        elif self._group.within == "assigned":
            self._group.choose(positions_of(checked(partitions)))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """As the client's. Within `on_assign`: the new partitions to read, and their offsets."""
        if self._group.within is None:
            if self._group.subscribed:
                self._group.assign(checked(partitions), incremental=1)
                return
            _Native.incremental_assign(self, partitions)
            self._commit_on_interval()
        elif self._group.within == "assigned":
            self._group.choose(positions_of(checked(partitions)))

    def unassign(self) -> None:
        """As the client's. Within a callback it does nothing: revoked partitions are removed without it."""
        if self._group.within is None:
            if self._group.subscribed:
                self._group.assign(None)
                return
            self._group.unsubscribed_commits.before_change()
            _Native.unassign(self)
        elif self._group.within == "assigned":
            self._group.choose({})

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """As the client's. Within a callback it does nothing: revoked partitions are removed without it."""
        if self._group.within is None:
            if self._group.subscribed:
                self._group.assign(checked(partitions), incremental=-1)
                return
            self._group.unsubscribed_commits.before_change()
            _Native.incremental_unassign(self, partitions)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """As the client's."""
        # Up to 2.15 the client's own method crashes the process if the consumer is closed.
        self._check_open()
        _Native.pause(self, partitions)
        self._group.assigned.pause(as_partitions(partitions))

    def resume(self, partitions: list[TopicPartition]) -> None:
        """As the client's."""
        self._check_open()
        _Native.resume(self, partitions)
        self._group.assigned.resume(as_partitions(partitions))

    def seek(self, partition: TopicPartition) -> None:
        """As the client's; also for a partition that is not read yet."""
        group = self._group
        sought = partition.topic, partition.partition
        if not group.assigned.start_at(sought, position_of(partition)):
            if group.subscribed:
                group.assigned.leaves(sought)
            _Native.seek(self, partition)
            group.path.sought(partition)

    def memberid(self) -> str | None:  # type: ignore[override]
        """As the client's."""
        member = self._group.member
        if self._closed or member is None:
            return _Native.memberid(self)
        return member.identity[0] or None

    def consumer_group_metadata(self) -> Any:
        """As the client's, for `Producer.send_offsets_to_transaction`.

        The metadata name this member, so that a zombie's transaction is fenced. Between two memberships they name the
        last one, whose transactions are refused.

        Raises:
            KafkaException: `_STATE`: the consumer is subscribed and has never been a member.
            StateError: librdkafka uses another format.
        """
        native = _Native.consumer_group_metadata(self)
        member = self._group.member
        if self._closed or member is None:
            return native
        return group_metadata_of(member, native, self._config.group_id, self._config.group_instance_id)

    def plan(self) -> Plan | None:
        """The plan that this consumer made when it last led its group; None if it never did."""
        return self._group.strategies.last_plan

    # Offsets.

    def commit(  # type: ignore[override]
        self, message: Any = None, offsets: Any = None, asynchronous: Any = True, **kwargs: Any
    ) -> list[TopicPartition] | None:
        """As the client's. The commit is refused if this consumer is no longer a member.

        Args:
            message: its offset + 1 is committed.
            offsets: these are committed. With neither argument: the offsets read or stored that are not committed yet.
            asynchronous: return at once; `on_commit` gets the result.
            **kwargs: `async`, the older name.

        Returns:
            None, or with `asynchronous=False` each partition with its offset, and with its own error if it was refused.
            Partitions that the consumer no longer owns are refused.

        Raises:
            KafkaException: with `asynchronous=False`: nothing was committed. Without anything to commit `_NO_OFFSET`.
        """
        if kwargs.keys() - {"async"}:
            raise TypeError(f"commit() got an unexpected keyword argument {min(kwargs.keys() - {'async'})!r}")
        waits = not kwargs.get("async", asynchronous)
        self._check_open()
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        engine = self._group
        if not engine.subscribed:
            given: dict[str, Any] = {"asynchronous": not waits}
            given |= {name: each for name, each in (("message", message), ("offsets", offsets)) if each is not None}
            committed: list[TopicPartition] | None = _Native.commit(self, **given)
            if message is None and offsets is None:
                engine.unsubscribed_commits.committed()
            return committed
        everything = message is None and offsets is None
        if everything:
            due = engine.assigned.due()
        elif offsets is None:
            due = of_message(message)
        else:
            due = of_offsets(offsets)
        if not due:
            if waits:
                raise KafkaException(KafkaError(KafkaError._NO_OFFSET, "Commit failed: Local: No offset stored"))
            engine.nothing_to_commit()
            self._summoned()
            return None
        if not waits:
            engine.commits.send(due)
            return None
        done = engine.path.outcomes.returned(engine.commits.send_and_wait(due))
        if everything:
            # As librdkafka, return every partition that is read, also without a new offset.
            others = engine.assigned.read - due.keys()
            done = sorted([*done, *(TopicPartition(*each) for each in others)])
        return done

    def committed(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """As the client's, with the metadata as it was committed: librdkafka reads beyond the end of the metadata.

        Args:
            partitions: the partitions.
            timeout: in seconds; no limit by default.

        Raises:
            KafkaException: no answer came in time, or the user may not read the group.
        """
        self._check_open()
        return self._group.committed(partitions, timeout)

    def store_offsets(self, message: Any = None, offsets: Any = None) -> None:
        """As the client's."""
        self._check_open()
        engine = self._group
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is None and offsets is None:
            raise ValueError("expected either message or offsets")
        if not engine.subscribed:
            _Native.store_offsets(self, **({"offsets": offsets} if message is None else {"message": message}))
            engine.unsubscribed_commits.stored()
            return
        given = of_message(message) if offsets is None else of_offsets(offsets)
        code = KafkaError._INVALID_ARG if self._config.auto_store else KafkaError._STATE
        stored = [not self._config.auto_store and engine.assigned.store(*each) for each in given.items()]
        if not any(stored) and (stored or self._config.auto_store):
            raise KafkaException(KafkaError(code, f"StoreOffsets failed: {KafkaError(code).str()}"))

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """As the client's."""
        self._check_handle()
        return self._group.list_topics(topic, timeout)

    # The end.

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """As the client's, for the membership's connections as well."""
        self._check_handle()
        if not self._group.set_sasl_credentials(username, password):
            self._attend_next()
        sasl = self._config.client.sasl
        if sasl is not None and sasl.credentials is not None:
            sasl.credentials.replace(username, password)

    def close(self) -> None:
        """As the client's: calls `on_revoke`, commits unless `enable.auto.commit` is off, and leaves the group.

        If the coordinator does not answer, this takes 30 seconds at most. Within a callback, the consumer closes when
        the callback returns.
        """
        if self._closed:
            return
        try:
            if not self._group.close():
                return
        finally:
            if not self._group.is_busy:
                self._end()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, exc_type: object, exc_value: object, exc_traceback: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")

    def _check_handle(self) -> None:
        # Without this check `set_sasl_credentials` crashes the process up to 2.15, and `list_topics` up to 2.11.
        if self._closed:
            raise RuntimeError("Handle has been closed")


def _settings(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The configuration, from all arguments of the client's constructor."""
    if len(args) > 1:
        raise TypeError("expected tuple containing single dict")
    if args and not isinstance(args[0], dict):
        raise TypeError("expected configuration dict")
    return {**(args[0] if args else {}), **kwargs}
