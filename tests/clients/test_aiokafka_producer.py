"""aiokafka's producer with our partitioners, offline: the tests read its accumulator."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
import weakref
from functools import wraps
from typing import TYPE_CHECKING, Any

import aiokafka
import pytest
from aiokafka.errors import ProducerClosed
from aiokafka.producer.message_accumulator import MessageAccumulator, MessageBatch
from aiokafka.structs import TopicPartition

import kafka_assignors
from kafka_assignors import AdaptivePartitioner, DefaultPartitioner, RoundRobinPartitioner, UniformStickyPartitioner
from kafka_assignors.clients.aiokafka import AIOKafkaProducer, _internals
from kafka_assignors.errors import (
    ClientReleaseWarning,
    IncompatibleClientError,
    OptionError,
    PartitionerError,
    StateError,
)
from support.offline_producers import offline_aiokafka
from support.producers import (
    BATCH_BYTES,
    VALUE,
    queued,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kafka_assignors.embedded import EmbeddedKafka

TOPICS = {"t": 4}


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


async def send(producer: Any, key: Any = None, partition: int | None = None) -> int:
    """Sends one record; returns its partition."""
    before = {number: sum(batches) for number, batches in queued(producer).items()}
    await producer.send("t", VALUE, key=key, partition=partition)
    (gained,) = (number for number, batches in queued(producer).items() if sum(batches) > before.get(number, 0))
    return gained


async def fill_first_batch(producer: Any, key: Any = None) -> int:
    """Sends until a second batch is opened; returns the partition of the first one."""
    left = await send(producer, key)
    for _ in range(100):
        if await send(producer, key) != left:
            return left
    raise AssertionError(f"the partitioner never left partition {left}: {queued(producer)}")


def batch(producer: Any, partition: int) -> Any:
    return producer._message_accumulator._batches[TopicPartition("t", partition)][-1]


@on_a_loop
async def test_the_left_batch_is_closed_and_need_not_linger() -> None:
    async with offline_aiokafka(TOPICS) as producer:
        waiter = producer._message_accumulator.waiter()
        left = await fill_first_batch(producer)
        assert batch(producer, left)._builder.closed()
        assert batch(producer, left).remaining_linger() is None
        assert waiter.done(), "the sender is woken"
        (current,) = (number for number in queued(producer) if number != left)
        assert batch(producer, current).remaining_linger() > 30


@on_a_loop
async def test_no_partition_is_left_before_its_batch_is_full() -> None:
    # A partition with a closed batch has no room until the batch is drained, and here it never is. Therefore there are
    # many partitions, and a seed with which none is chosen twice.
    async with offline_aiokafka({"t": 1_000}, partitioner=DefaultPartitioner(seed=1)) as producer:
        choices = [await send(producer) for _ in range(100)]
        runs = [1 + index for index in range(99) if choices[index] != choices[index + 1]]
        assert runs == list(range(runs[0], 100, runs[0]))
        assert runs[0] > 5


@on_a_loop
async def test_topics_have_partitions_of_their_own() -> None:
    async with offline_aiokafka({"t": 1_000, "u": 1_000}) as producer:
        for _ in range(9):
            for topic in ("t", "u"):
                await producer.send(topic, VALUE[:40])
        assert [list(queued(producer, topic).values()) for topic in ("t", "u")] == [[[9]], [[9]]]


@on_a_loop
async def test_uniform_sticky_leaves_a_partition_for_keyed_records_too() -> None:
    async with offline_aiokafka(TOPICS, partitioner=UniformStickyPartitioner()) as producer:
        left = await fill_first_batch(producer, key=b"always the same")
        assert batch(producer, left)._builder.closed()


@on_a_loop
async def test_round_robin_skips_nobody() -> None:
    async with offline_aiokafka({"t": 5}, partitioner=RoundRobinPartitioner()) as producer:
        choices = [await send(producer, key) for key in (None, b"k") * 10]
        assert [(after - before) % 5 for before, after in itertools.pairwise(choices)] == [1] * 19


class Told(kafka_assignors.Partitioner):
    """Keeps the arguments of its calls, and chooses partition 1."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def partition(
        self, topic: Any, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
    ) -> Any:
        self.calls.append((topic, key, serialized_key, value, serialized_value))
        return 1

    def on_new_batch(self, topic: Any, cluster: Any, prev_partition: Any) -> None:
        self.calls.append((topic, prev_partition))


@pytest.mark.parametrize("key", [None, "k"])
@on_a_loop
async def test_who_opens_a_batch_tells_and_asks_again(key: str | None) -> None:
    told = Told()
    async with offline_aiokafka(TOPICS, partitioner=told, key_serializer=text, value_serializer=text) as producer:
        asked = ("t", key, None if key is None else b"k", "v", b"v")
        await producer.send("t", "v", key=key)
        assert told.calls == [asked, ("t", 1), asked]
        await producer.send("t", "v", key=key)
        assert told.calls[3:] == [asked], "the batch is open, and nothing is to be told"


def text(data: str | None) -> bytes | None:
    return None if data is None else data.encode()


@on_a_loop
async def test_explicit_partitions_and_batches_are_nobodys_choice() -> None:
    told = Told()
    async with offline_aiokafka(TOPICS, partitioner=told) as producer:
        assert [await send(producer, key, partition=3) for key in (None, b"k")] == [3, 3]
        own = producer.create_batch()
        own.append(key=None, value=VALUE, timestamp=None)
        await producer.send_batch(own, "t", partition=2)
        assert told.calls == []
        assert queued(producer) == {2: [1], 3: [2]}


@on_a_loop
async def test_a_record_is_not_taken_for_the_one_before() -> None:
    """A record with a given partition must not get the choice that was made for the previous record, which failed."""
    told = Told()
    async with offline_aiokafka(TOPICS, partitioner=told) as producer:
        with pytest.raises(TypeError):
            await producer.send("t", "no bytes")
        asked = len(told.calls)
        await producer.send("t", VALUE, partition=0)
        assert len(told.calls) == asked


@on_a_loop
async def test_a_callable_as_aiokafka_wants_it_works_as_in_aiokafka() -> None:
    async with offline_aiokafka(TOPICS, partitioner=lambda key, everything, available: everything[2]) as producer:
        assert [await send(producer, key) for key in (None, b"k")] == [2, 2]


# Load.


class Recorder(AdaptivePartitioner):
    """Keeps the reports on the load that it receives."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.told: list[Any] = []

    def update_load(self, topic: Any, queue_lengths: Any, unavailable: Any = ()) -> None:
        self.told.append((topic, dict(queue_lengths), set(unavailable)))
        super().update_load(topic, queue_lengths, unavailable)


@on_a_loop
async def test_adaptive_is_told_the_queues_and_what_waits_for_them() -> None:
    recorder = Recorder()
    async with offline_aiokafka(TOPICS | {"u": 1}, partitioner=recorder) as producer:
        await producer.send("u", VALUE)
        for _ in range(9):
            await producer.send("t", VALUE, partition=1)
        waiting = [asyncio.ensure_future(producer.send("t", b"w" * (BATCH_BYTES // 2), partition=1)) for _ in range(5)]
        await asyncio.sleep(0)
        turn = producer._message_accumulator
        turn.drain_by_nodes({0})
        assert sorted(recorder.told) == [("t", {1: 1 + 3}, set()), ("u", {0: 1}, set())]
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        recorder.told.clear()
        turn.drain_by_nodes({0})
        assert ("t", {1: 1}, set()) in recorder.told


@on_a_loop
async def test_a_broker_that_takes_nothing_is_left_out_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    config = {"partitioner": recorder, "partitioner_availability_timeout_ms": 500, "linger_ms": 0}
    async with offline_aiokafka({"t": 3}, leaders=lambda number: number % 2, **config) as producer:
        await producer.send("t", VALUE, partition=0)
        start, seen = time.monotonic(), []
        for after in (1, 1.3, 1.8, 1.9):
            monkeypatch.setattr(time, "monotonic", lambda after=after: start + after)
            producer._message_accumulator.drain_by_nodes({0})
            seen.append(recorder.told[-1][2])
        assert seen == [set(), set(), set(), {0}]


# One producer for a partitioner.


@on_a_loop
async def test_one_partitioner_in_two_producers_is_refused() -> None:
    shared = DefaultPartitioner()
    async with offline_aiokafka(TOPICS, partitioner=shared):
        with pytest.raises(StateError, match="one DefaultPartitioner was given to two producers"):
            AIOKafkaProducer(partitioner=shared)
    async with offline_aiokafka(TOPICS, partitioner=shared) as third:
        await fill_first_batch(third)


@on_a_loop
async def test_the_partitioner_does_not_keep_its_producer() -> None:
    partitioner = DefaultPartitioner()
    async with offline_aiokafka(TOPICS, partitioner=partitioner) as producer:
        await fill_first_batch(producer)
        reference = weakref.ref(producer)
    del producer
    gc.collect()
    assert reference() is None


@on_a_loop
async def test_a_closed_accumulator_takes_no_record() -> None:
    told = Told()
    async with offline_aiokafka(TOPICS, partitioner=told) as producer:
        await producer.send("t", VALUE)
        producer._message_accumulator._closed = True
        with pytest.raises(ProducerClosed):
            await producer.send("t", VALUE)
        assert queued(producer) == {1: [1]}


@on_a_loop
async def test_where_batches_are_not_shown_records_are_partitioned_all_the_same(
    embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded_kafka.create_topic("t", 4)

    def unknown() -> None:
        raise IncompatibleClientError("the producer of aiokafka 99 is not one that this package knows: no")

    monkeypatch.setattr(_internals, "check_producer", unknown)
    with pytest.warns(ClientReleaseWarning, match="records are partitioned all the same") as seen:
        producer = AIOKafkaProducer(
            bootstrap_servers=embedded_kafka.bootstrap_servers, max_batch_size=BATCH_BYTES, key_serializer=None
        )
    # Only these warnings: the garbage collector may warn of other tests' sockets at the same time.
    assert [each.category for each in seen].count(ClientReleaseWarning) == 1
    async with producer:
        keyed = [(await producer.send_and_wait("t", VALUE, key=b"21")).partition for _ in range(2)]
        named = (await producer.send_and_wait("t", VALUE, partition=3)).partition
        sent = [await producer.send("t", VALUE) for _ in range(400)]
        places = [(await each).partition for each in sent]
    assert len(set(keyed)) == 1
    assert named == 3
    assert set(places) == {0, 1, 2, 3}


def test_changed_internals_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageBatch, "append", lambda self, record: None)
    reason = r"the producer of aiokafka 0\.14.* is not one that this package knows \(MessageBatch\.append changed\)"
    with pytest.raises(IncompatibleClientError, match=reason):
        _internals.check_producer()


@pytest.mark.parametrize("name", ["add_message", "drain_by_nodes"])
def test_a_missing_method_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delattr(MessageAccumulator, name)
    with pytest.raises(IncompatibleClientError, match=rf"the producer of aiokafka .*'{name}'"):
        _internals.check_producer()


@on_a_loop
async def test_without_the_attribute_of_the_serializer_its_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def serialize(*_: Any) -> Any:
        raise TypeError("of another release")

    async with offline_aiokafka(TOPICS, partitioner=Told()) as producer:
        monkeypatch.setattr(aiokafka.AIOKafkaProducer, "_serialize", serialize)
        monkeypatch.delattr(producer, "_key_serializer")
        with pytest.raises(TypeError, match="of another release"):
            await producer.send("t", VALUE, key=1)


# Bad input.


@pytest.mark.parametrize(
    ("bad", "message"), [(object(), "give a kafka_assignors.Partitioner"), (DefaultPartitioner, "give an instance")]
)
@on_a_loop
async def test_what_is_no_partitioner_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        AIOKafkaProducer(partitioner=bad)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True, None])
@on_a_loop
async def test_an_availability_timeout_is_milliseconds(timeout: Any) -> None:
    with pytest.raises(OptionError, match=r"availability timeout is .*; give milliseconds"):
        AIOKafkaProducer(partitioner_availability_timeout_ms=timeout)


@pytest.mark.parametrize("key", [None, b"k"])
@on_a_loop
async def test_a_second_choice_that_fails_takes_no_record(key: bytes | None) -> None:
    class Fickle(Told):
        def partition(self, *record: Any) -> Any:
            super().partition(*record)
            return 1 if len(self.calls) != 3 else 99

    async with offline_aiokafka(TOPICS, partitioner=Fickle()) as producer:
        with pytest.raises(PartitionerError, match=r"returned 99 .* which was not sent: .* partitions 0 to 3"):
            await producer.send("t", VALUE, key=key)
        assert queued(producer) == {}
        assert await send(producer, key) == 1


@pytest.mark.parametrize("key", [None, b"k"])
@on_a_loop
async def test_a_hook_that_fails_takes_no_record(key: bytes | None) -> None:
    class Broken(Told):
        def on_new_batch(self, *told: Any) -> None:
            if not self.calls[1:]:
                raise ZeroDivisionError("in the hook")

    async with offline_aiokafka(TOPICS, partitioner=Broken()) as producer:
        with pytest.raises(PartitionerError, match=r"on_new_batch failed .* not sent: ZeroDivisionError: in the hook"):
            await producer.send("t", VALUE, key=key)
        assert queued(producer) == {}
        assert await send(producer, key) == 1


@on_a_loop
async def test_a_topic_that_is_gone_is_one_clear_error() -> None:
    async with offline_aiokafka(TOPICS) as producer:
        with pytest.raises(PartitionerError, match=r"topic .gone. is not in the cluster's metadata"):
            producer._partition("gone", None, None, VALUE, None, VALUE)
        producer._metadata._partitions["none"] = {}
        with pytest.raises(PartitionerError, match="0 partitions"):
            await producer.send("none", VALUE)
        await fill_first_batch(producer)


@on_a_loop
async def test_a_key_that_is_no_bytes_is_one_clear_error() -> None:
    async with offline_aiokafka(TOPICS) as producer:
        with pytest.raises(PartitionerError, match="the key of a record is of type"):
            await producer.send("t", VALUE, key=b"k".hex)
        await fill_first_batch(producer)


@on_a_loop
async def test_aiokafkas_own_stays_as_it_was() -> None:
    """Ours is a subclass, and does not change aiokafka's class."""
    assert aiokafka.AIOKafkaProducer._partition is not AIOKafkaProducer._partition
    producer = aiokafka.AIOKafkaProducer()
    assert type(producer._message_accumulator).add_message == producer._message_accumulator.add_message.__func__
    await producer.stop()
