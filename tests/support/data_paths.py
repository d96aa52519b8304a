"""The data paths that the member's test-suite runs on, one row each: consumers with the same few methods.

A test's thread polls the consumers of a group in turn. Another client is one more subclass of `Reader`, and one more
entry of `DATA_PATHS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
from aiokafka import ConsumerRebalanceListener
from confluent_kafka import TopicPartition

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.clients.kafka_python.commits import offsets_of
from kafka_assignors.member.config import MemberConfig
from kafka_assignors.member.data_path import Position
from kafka_assignors.member.strategies import strategies_of
from kafka_assignors.net.config import ClientConfig
from support.broker import unique
from support.confluent_group import Observed, fill
from support.fake_client import FakeConsumer
from support.fake_loop_client import FakeLoopConsumer
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable
    from types import TracebackType

    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import Event, Partition
    from support.broker import Kafka

SESSION_MS = 6000
HEARTBEAT_MS = 200
LOOP = "the tests' event loop"
# The records of the clients in memory.
LOG: dict[Partition, int] = defaultdict(int)


class Reader(ABC):
    """One consumer. `events` are the listener's calls, `read` the records, `errors` what was reported or raised.

    `tells_of_idleness` is whether an error is reported when the member has left because nobody polled, and
    `hears_of_all` whether its listener hears of each eager rebalance.
    """

    tells_of_idleness: ClassVar[bool] = True
    hears_of_all: ClassVar[bool] = False

    def __init__(self) -> None:
        self.events: list[tuple[Event, set[Partition]]] = []
        self.read: list[tuple[str, int, int]] = []
        self.errors: list[BaseException] = []
        self.during: dict[Event, Callable[[set[Partition]], object]] = {}

    def note(self, event: Event, partitions: Iterable[Partition]) -> None:
        """The listener. A function in `during` is called within it."""
        self.events.append((event, set(partitions)))
        if event in self.during:
            self.during[event](set(partitions))

    def told(self, event: Event) -> list[set[Partition]]:
        """The partitions of the calls for this event, in order."""
        return [partitions for kind, partitions in self.events if kind == event]

    @property
    @abstractmethod
    def side(self) -> ApplicationSide: ...
    @abstractmethod
    def follow(self, *topics: str) -> Self: ...
    @abstractmethod
    def unsubscribe(self) -> None: ...
    @abstractmethod
    def turn(self, timeout: float = 0.02) -> None: ...
    @abstractmethod
    def pause(self, partition: Partition) -> None: ...
    @abstractmethod
    def resume(self, partition: Partition) -> None: ...
    @abstractmethod
    def seek(self, partition: Partition, offset: int) -> None: ...
    @abstractmethod
    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        """Commits, by default what was read. Returns the partitions that were committed."""

    @abstractmethod
    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]: ...
    @abstractmethod
    def close(self) -> None: ...

    @property
    def held(self) -> set[Partition]:
        """The partitions that are read or wait for their start."""
        return self.side.assigned.read


class ConfluentReader(Reader):
    """Our consumer on confluent-kafka."""

    def __init__(self, kafka: Kafka, group: str, strategy: str, **settings: Any) -> None:
        super().__init__()
        self.consumer = Observed(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": settings.get("session_timeout_ms", SESSION_MS),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "max.poll.interval.ms": settings.get("max_poll_interval_ms", 300_000),
                "topic.metadata.refresh.interval.ms": 500,
                "enable.auto.commit": settings.get("auto_commit", False),
                "auto.commit.interval.ms": int(settings.get("auto_commit_interval", 5.0) * 1000),
                "socket.timeout.ms": 2000,
                "log_level": 0,
            }
        )

    @property
    def side(self) -> ApplicationSide:
        return self.consumer._group

    def follow(self, *topics: str) -> Self:
        def noting(event: Event) -> Callable[[Any, list[Any]], None]:
            return lambda _, partitions: self.note(event, [(each.topic, each.partition) for each in partitions])

        callbacks = {"on_assign": noting("assigned"), "on_revoke": noting("revoked"), "on_lost": noting("lost")}
        self.consumer.subscribe(list(topics), **callbacks)
        return self

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    def turn(self, timeout: float = 0.02) -> None:
        try:
            message = self.consumer.poll(timeout)
        except Exception as error:
            self.errors.append(error)
            return
        if message is not None and message.error() is not None:
            self.errors.append(confluent_kafka.KafkaException(message.error()))
        elif message is not None:
            self.read.append((message.topic() or "", message.partition() or 0, message.offset() or 0))

    def pause(self, partition: Partition) -> None:
        self.consumer.pause([TopicPartition(*partition)])

    def resume(self, partition: Partition) -> None:
        self.consumer.resume([TopicPartition(*partition)])

    def seek(self, partition: Partition, offset: int) -> None:
        self.consumer.seek(TopicPartition(*partition, offset))

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = {} if offsets is None else {"offsets": [TopicPartition(*each, at) for each, at in offsets.items()]}
        try:
            done = self.consumer.commit(asynchronous=False, **given)
        except confluent_kafka.KafkaException as error:
            self.errors.append(error)
            return set()
        return {(each.topic, each.partition) for each in done or () if each.error is None and each.offset >= 0}

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found = self.consumer.committed([TopicPartition(*each) for each in partitions], timeout=TIMEOUT)
        return {(each.topic, each.partition): max(-1, each.offset) for each in found}

    def close(self) -> None:
        self.consumer.close()

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        fill(kafka, topic, partitions, each)


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes the calls. The client's listeners hear of each eager rebalance, also if they have nothing to revoke."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(self, revoked: set[Any]) -> None:
        if revoked:
            self._reader.note("revoked", {tuple(each) for each in revoked})

    def on_partitions_assigned(self, assigned: set[Any]) -> None:
        self._reader.note("assigned", {tuple(each) for each in assigned})

    def on_partitions_lost(self, lost: set[Any]) -> None:
        self._reader.note("lost", {tuple(each) for each in lost})


class KafkaPythonReader(Reader):
    """Our consumer on kafka-python."""

    tells_of_idleness = False
    hears_of_all = True

    def __init__(self, kafka: Kafka, group: str, strategy: str, **settings: Any) -> None:
        super().__init__()
        self.consumer = KafkaConsumer(
            **{
                "bootstrap_servers": kafka.bootstrap_servers,
                "group_id": group,
                "partition_assignment_strategy": strategy,
                "auto_offset_reset": "earliest",
                "session_timeout_ms": settings.get("session_timeout_ms", SESSION_MS),
                "heartbeat_interval_ms": HEARTBEAT_MS,
                "max_poll_interval_ms": settings.get("max_poll_interval_ms", 300_000),
                "metadata_max_age_ms": 500,
                "enable_auto_commit": settings.get("auto_commit", False),
                "auto_commit_interval_ms": int(settings.get("auto_commit_interval", 5.0) * 1000),
                "request_timeout_ms": 15_000,
                **settings.get("further", {}),
            }
        )

    @property
    def side(self) -> ApplicationSide:
        side = self.consumer._group
        assert side is not None
        return side

    def follow(self, *topics: str) -> Self:
        self.consumer.subscribe(list(topics), listener=_Listener(self))
        return self

    def unsubscribe(self) -> None:
        held = self.held
        self.consumer.unsubscribe()
        # The client's listener does not hear of it.
        self.note("revoked", held)

    def turn(self, timeout: float = 0.02) -> None:
        try:
            found = self.consumer.poll(timeout * 1000)
        except Exception as error:
            # The client wraps what a listener raised.
            self.errors.append(error.__cause__ or error)
            return
        self.read += [(each.topic, each.partition, each.offset) for records in found.values() for each in records]

    def pause(self, partition: Partition) -> None:
        self.consumer.pause(kafka.TopicPartition(*partition))

    def resume(self, partition: Partition) -> None:
        self.consumer.resume(kafka.TopicPartition(*partition))

    def seek(self, partition: Partition, offset: int) -> None:
        self.consumer.seek(kafka.TopicPartition(*partition), offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = None
        if offsets is not None:
            given = offsets_of({each: Position(at) for each, at in offsets.items()})
        try:
            self.consumer.commit(given)
        except kafka.errors.KafkaError as error:
            self.errors.append(error)
            return self.committed_at(offsets or {})
        return set(offsets or self.held)

    def committed_at(self, offsets: dict[Partition, int]) -> set[Partition]:
        """Those of the partitions that are committed there: the client tells of a commit as a whole."""
        with contextlib.suppress(kafka.errors.KafkaTimeoutError):
            return {
                each
                for each, at in offsets.items()
                if self.consumer.committed(kafka.TopicPartition(*each), timeout_ms=2000) == at
            }
        return set()

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found = {each: self.consumer.committed(kafka.TopicPartition(*each)) for each in partitions}
        return {each: -1 if at is None else at for each, at in found.items()}

    def close(self) -> None:
        self.consumer.close()

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        fill(kafka, topic, partitions, each)


def fake_config(kafka: Kafka, group: str, strategy: str, **settings: Any) -> MemberConfig:
    """The settings of a membership, as the rows of this module want them."""
    return MemberConfig(
        **{
            "client": ClientConfig.from_confluent(
                {"bootstrap.servers": kafka.bootstrap_servers, "socket.timeout.ms": 2000}
            ),
            "group_id": group,
            "assignors": strategies_of(strategy, "range"),
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "metadata_refresh_ms": 500,
            "auto_commit": False,
            **settings,
        }
    )


class FakeReader(Reader):
    """The client in memory."""

    consumer: Any

    def __init__(self, kafka: Kafka, group: str, strategy: str, **settings: Any) -> None:
        super().__init__()
        self.make(fake_config(kafka, group, strategy, **settings))

    def make(self, config: MemberConfig) -> None:
        self.consumer = FakeConsumer(LOG, config)

    @property
    def side(self) -> ApplicationSide:
        side: ApplicationSide = self.consumer.side
        return side

    def follow(self, *topics: str) -> Self:
        self.consumer.subscribe(topics, self.note)
        return self

    def unsubscribe(self) -> None:
        member = self.side.member
        assert member is not None
        member.unsubscribe()

    def turn(self, timeout: float = 0.02) -> None:
        try:
            record = self.consumer.poll(timeout)
        except Exception as error:
            self.errors.append(error)
            return
        self.read += [record] * (record is not None)

    def pause(self, partition: Partition) -> None:
        self.consumer.pause(partition)

    def resume(self, partition: Partition) -> None:
        self.consumer.resume(partition)

    def seek(self, partition: Partition, offset: int) -> None:
        self.consumer.seek(partition, offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = None if offsets is None else {each: Position(at) for each, at in offsets.items()}
        outcome = self.consumer.commit(given)
        if outcome is None or outcome.error_code:
            self.errors.append(RuntimeError(outcome))
            return set()
        return set(outcome.asked.keys() - outcome.refused.keys() - outcome.dropped)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found: dict[Partition, int] = self.consumer.committed(partitions)
        return found

    def close(self) -> None:
        self.consumer.close()

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        for number in range(partitions):
            LOG[topic, number] += each


class _Loop:
    """An event loop in a thread, for all consumers of this process. `longest` is how long it was ever blocked."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name=LOOP, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine there, and waits for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(2 * TIMEOUT)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function there."""

        async def called() -> Any:
            return function(*args)

        return self.run(called())


@cache
def running_loop() -> _Loop:
    """The event loop of all consumers of this process."""
    return _Loop()


class FakeLoopReader(FakeReader):
    """The client in memory on an event loop. Its listener is a coroutine function."""

    @property
    def loop(self) -> _Loop:
        return running_loop()

    def make(self, config: MemberConfig) -> None:
        self.consumer = self.loop.call(FakeLoopConsumer, LOG, config)

    async def listen(self, event: Event, partitions: Iterable[Partition]) -> None:
        await asyncio.sleep(0.01)
        self.note(event, partitions)

    def follow(self, *topics: str) -> Self:
        self.loop.call(self.consumer.subscribe, topics, self.listen)
        return self

    def turn(self, timeout: float = 0.02) -> None:
        try:
            record = self.loop.run(self.consumer.getone(timeout))
        except Exception as error:
            self.errors.append(error)
            return
        self.read += [record] * (record is not None)

    def pause(self, partition: Partition) -> None:
        self.loop.call(self.consumer.pause, partition)

    def resume(self, partition: Partition) -> None:
        self.loop.call(self.consumer.resume, partition)

    def seek(self, partition: Partition, offset: int) -> None:
        self.loop.call(self.consumer.seek, partition, offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = None if offsets is None else {each: Position(at) for each, at in offsets.items()}
        outcome = self.loop.run(self.consumer.commit(given))
        if outcome is None or outcome.error_code:
            self.errors.append(RuntimeError(outcome))
            return set()
        return set(outcome.asked.keys() - outcome.refused.keys() - outcome.dropped)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found: dict[Partition, int] = self.loop.run(self.consumer.committed(partitions))
        return found

    def close(self) -> None:
        if threading.current_thread().name == LOOP:
            # Within the listener: nobody may wait there for the end.
            self.side.leaves_later = True
        else:
            self.loop.run(self.consumer.stop())


class AiokafkaReader(Reader):
    """Our consumer on aiokafka. Its listener is a coroutine function."""

    tells_of_idleness = False
    hears_of_all = True
    consumer: AIOKafkaConsumer

    def __init__(self, kafka: Kafka, group: str, strategy: str, **settings: Any) -> None:
        super().__init__()
        self.loop = running_loop()
        self.loop.run(self._start(kafka, group, strategy, settings))

    async def _start(self, kafka: Kafka, group: str, strategy: str, settings: dict[str, Any]) -> None:
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=group,
            partition_assignment_strategy=strategy,
            auto_offset_reset="earliest",
            session_timeout_ms=settings.get("session_timeout_ms", SESSION_MS),
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=settings.get("max_poll_interval_ms", 300_000),
            metadata_max_age_ms=500,
            enable_auto_commit=settings.get("auto_commit", False),
            auto_commit_interval_ms=int(settings.get("auto_commit_interval", 5.0) * 1000),
            request_timeout_ms=2000,
        )
        await self.consumer.start()
        leftovers = weakref.finalize(self, self._close_leftovers, self.consumer._fetcher, self.consumer._client)
        leftovers.atexit = False

    @staticmethod
    def _close_leftovers(*parts: Any) -> None:
        """What the client leaves behind of a consumer that nobody stops would fetch for ever."""

        async def close() -> None:
            for part in parts:
                await part.close()

        asyncio.run_coroutine_threadsafe(close(), running_loop().loop)

    @property
    def side(self) -> ApplicationSide:
        return self.consumer._group_side

    def follow(self, *topics: str) -> Self:
        async def noting(event: Event, partitions: Iterable[Partition]) -> None:
            await asyncio.sleep(0.01)
            try:
                if partitions or event == "assigned":
                    self.note(event, partitions)
            except Exception as error:
                # The client logs it.
                self.errors.append(error)
                raise

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: set[Partition]) -> None:
                await noting("revoked", revoked)

            async def on_partitions_assigned(self, assigned: set[Partition]) -> None:
                await noting("assigned", assigned)

            async def on_partitions_lost(self, lost: set[Partition]) -> None:
                await noting("lost", lost)

        self.loop.call(self.consumer.subscribe, topics, None, Listener())
        return self

    def unsubscribe(self) -> None:
        held = self.held
        self.loop.call(self.consumer.unsubscribe)
        wait_until(lambda: not self.held, "the next turn has given them up")
        # The client's listener does not hear of it.
        self.note("revoked", held)

    def turn(self, timeout: float = 0.02) -> None:
        async def take() -> Any:
            getting = asyncio.ensure_future(self.consumer.getmany(timeout_ms=int(timeout * 1000), max_records=1))
            await asyncio.wait([getting], timeout=timeout)
            # During an eager rebalance the client's gets wait without regard to their timeout.
            return {} if getting.cancel() else getting.result()

        try:
            records = self.loop.run(take())
        except Exception as error:
            self.errors.append(error)
            return
        for found in records.values():
            self.read += [(each.topic, each.partition, each.offset) for each in found]

    def pause(self, partition: Partition) -> None:
        self.loop.call(self.consumer.pause, aiokafka.TopicPartition(*partition))

    def resume(self, partition: Partition) -> None:
        self.loop.call(self.consumer.resume, aiokafka.TopicPartition(*partition))

    def seek(self, partition: Partition, offset: int) -> None:
        self.loop.call(self.consumer.seek, aiokafka.TopicPartition(*partition), offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        if offsets is None:
            held = set(self.loop.call(self.consumer._group_path.positions, self.side.assigned.held))
            return held if self._commit(None) else set()
        # The client refuses a call in which one partition is another member's.
        return {each for each, at in offsets.items() if self._commit({aiokafka.TopicPartition(*each): at})}

    def _commit(self, offsets: Any) -> bool:
        try:
            self.loop.run(self.consumer.commit(offsets))
        except Exception as error:
            self.errors.append(error)
            return False
        return True

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found = {}
        for each in partitions:
            offset = self.loop.run(self.consumer.committed(aiokafka.TopicPartition(*each)))
            found[each] = -1 if offset is None else offset
        return found

    def close(self) -> None:
        if self.held and not self.side.has_left:
            # Nor of this.
            self.events.append(("revoked", self.held))
        if threading.current_thread().name == LOOP:
            # Within the listener: nobody may wait there for the end.
            self.stopping = asyncio.ensure_future(self.consumer.stop())
        else:
            self.loop.run(self.consumer.stop())

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        fill(kafka, topic, partitions, each)


Kind: TypeAlias = type[ConfluentReader] | type[KafkaPythonReader] | type[AiokafkaReader] | type[FakeReader]

DATA_PATHS: dict[str, Kind] = {
    "confluent": ConfluentReader,
    "kafka-python": KafkaPythonReader,
    "aiokafka": AiokafkaReader,
    "in memory": FakeReader,
    "in memory, on a loop": FakeLoopReader,
}


class Readers:
    """Several consumers of one group on one Kafka. They are closed at the end."""

    def __init__(self, kafka: Kafka, kind: Kind, strategy: str) -> None:
        self.kafka = kafka
        self.kind = kind
        self.strategy = strategy
        self.group = unique("member")
        self.all: list[Reader] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for reader in self.all:
            reader.during.clear()
            reader.close()

    @property
    def is_cooperative(self) -> bool:
        return self.strategy.startswith("cooperative")

    def add(self, **settings: Any) -> Reader:
        """A consumer without a subscription."""
        self.all.append(self.kind(self.kafka, self.group, self.strategy, **settings))
        return self.all[-1]

    def topic(self, partitions: int, records: int = 0) -> tuple[str, set[Partition]]:
        """A new topic with `records` records in each partition; returns its name and its partitions."""
        name = self.kafka.create_topic(unique("topic"), partitions)
        self.fill(name, partitions, records)
        return name, {(name, number) for number in range(partitions)}

    def fill(self, topic: str, partitions: int, records: int) -> None:
        """Adds records to each partition."""
        if records:
            self.kind.fill(self.kafka, topic, partitions, records)

    def until(self, true: Callable[[], object], what: str, *readers: Reader, within: float = TIMEOUT) -> None:
        """Takes turns until `true()` holds."""
        deadline = time.monotonic() + within
        while not true():
            if time.monotonic() > deadline:
                state = [(each.events[-4:], each.errors, len(each.read)) for each in self.all]
                raise AssertionError(f"not within {within} s: {what}; events, errors and numbers read: {state}")
            for reader in readers or self.all:
                reader.turn()

    def for_a_while(self, seconds: float, *readers: Reader) -> None:
        """Takes turns for so long."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end, "time passes", *readers)

    def settle(self, partitions: set[Partition], *readers: Reader) -> None:
        """Takes turns until these consumers hold the partitions, each partition once, in one generation."""
        members = readers or tuple(self.all)

        def settled() -> bool:
            if len({each.side.latest[1] for each in members}) > 1:
                return False
            held = [each.held for each in members]
            return all(held) and sum(map(len, held)) == len(partitions) and set().union(*held) == partitions

        self.until(settled, f"{len(members)} members hold {len(partitions)} partitions", *members)
