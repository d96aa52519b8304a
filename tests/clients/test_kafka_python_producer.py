"""kafka-python's producer with our partitioners, offline: the tests read its accumulator."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import kafka
import pytest
from kafka.errors import KafkaTimeoutError
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import TopicPartition

import kafka_assignors
from kafka_assignors.clients.kafka_python import (
    AdaptivePartitioner,
    DefaultPartitioner,
    KafkaProducer,
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    _internals,
)
from kafka_assignors.errors import (
    ClientReleaseWarning,
    IncompatibleClientError,
    OptionError,
    PartitionerError,
    StateError,
)
from support.logs import records_of_the_package
from support.offline_producers import offline_kafka_python
from support.producers import (
    BATCH_BYTES,
    VALUE,
    destination,
    queue,
    queued,
)

if TYPE_CHECKING:
    from kafka_assignors.embedded import EmbeddedKafka

TOPICS = {"t": 4}


def fill_first_batch(producer: Any, key: bytes | None = None) -> tuple[int, Any]:
    """Sends until a second batch is opened; returns the first one's partition, and the future of a record in it."""
    first = producer.send("t", VALUE, key=key)
    left = destination(first)
    for _ in range(100):
        if destination(producer.send("t", VALUE, key=key)) != left:
            return left, first
    raise AssertionError(f"the partitioner never left partition {left}: {queued(producer)}")


def sendable(producer: Any, now: float | None = None) -> tuple[set[int], float]:
    """The accumulator's answer to the sender: the brokers with a batch to send now, and the seconds until the next."""
    nodes, seconds, _ = producer._accumulator.ready(producer._metadata, now=now)
    return nodes, seconds


# The batch that the partitioner leaves.


def test_without_us_the_left_batch_waits_out_the_linger() -> None:
    """The reason for `attach`: kafka-python 3.0 neither closes the batch that is left nor counts it as full."""
    with offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=DefaultPartitioner()) as producer:
        left, _ = fill_first_batch(producer)
        assert not queue(producer, left)[-1].records.is_full()
        nodes, seconds = sendable(producer)
        assert nodes == set()
        assert seconds > 30, "of the linger of 60 s"


def test_attached_the_left_batch_is_closed_and_sendable() -> None:
    partitioner = DefaultPartitioner()
    with offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=partitioner) as producer:
        partitioner.attach(producer)
        left, _ = fill_first_batch(producer)
        (batch,) = queue(producer, left)
        assert batch.records.is_full()
        assert sendable(producer)[0] == {0}


def test_our_producer_attaches_by_itself() -> None:
    with offline_kafka_python(TOPICS) as producer:
        left, _ = fill_first_batch(producer)
        assert queue(producer, left)[-1].records.is_full()
        assert sendable(producer)[0] == {0}


def test_the_sender_is_woken_for_the_left_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next record may fit into an open batch of another partition. Then kafka-python does not wake its sender."""
    with offline_kafka_python({"t": 2}) as producer:
        for number in (0, 1):
            producer.send("t", VALUE, partition=number)
        woken: list[dict[int, list[int]]] = []
        monkeypatch.setattr(producer._link, "_wakeup", lambda: woken.append(queued(producer)))
        left, _ = fill_first_batch(producer)
        assert [len(batches) for batches in queued(producer).values()] == [1, 1], "no batch was opened"
        assert len(woken) == 1
        assert queue(producer, left)[0].records.is_full()


def test_a_closed_batch_takes_no_record_and_is_still_drained() -> None:
    """We do not `close` the batch's records: an idempotent producer must still write a sequence number into them."""
    with offline_kafka_python(TOPICS) as producer:
        assert producer._transaction_manager is not None, "idempotent, as by default"
        left, _ = fill_first_batch(producer)
        (batch,) = queue(producer, left)
        taken = batch.record_count
        assert batch.try_append(None, None, b"", []) is None
        batch.records.set_producer_state(7, 0, 0, False)
        batch.records.close()
        assert (batch.record_count, batch.records.producer_id) == (taken, 7)


def test_no_partition_is_chosen_again_before_its_batch_is_full() -> None:
    with offline_kafka_python(TOPICS) as producer:
        choices = [destination(producer.send("t", VALUE)) for _ in range(200)]
        counts = queued(producer)
        full = max(max(batches) for batches in counts.values())
        batches = [count for batches in counts.values() for count in batches]
        assert sorted(batches, reverse=True) == [full] * (200 // full) + [200 % full] * (200 % full > 0)
        runs = [1 + index for index in range(199) if choices[index] != choices[index + 1]]
        assert runs == list(range(full, 200, full))


def test_one_partition_goes_on_with_a_second_batch() -> None:
    with offline_kafka_python({"t": 1}) as producer:
        assert {destination(producer.send("t", VALUE)) for _ in range(30)} == {0}
        (batches,) = queued(producer).values()
        assert len(batches) > 1
        assert sum(batches) == 30


# Records with a key.


def test_uniform_sticky_leaves_a_partition_for_keyed_records_too() -> None:
    with offline_kafka_python(TOPICS, partitioner=UniformStickyPartitioner()) as producer:
        left, _ = fill_first_batch(producer, key=b"always the same")
        assert queue(producer, left)[-1].records.is_full()


def test_without_our_producer_keyed_records_are_never_told_of() -> None:
    """The documentation of `attach` names this limit: the partitioner gets no call for a batch of keyed records."""
    partitioner = UniformStickyPartitioner()
    with offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=partitioner) as producer:
        partitioner.attach(producer)
        with pytest.raises(AssertionError, match="never left"):
            fill_first_batch(producer, key=b"k")


class Told(Partitioner):
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
def test_who_opens_a_batch_tells_and_asks_again(key: str | None) -> None:
    told = Told()
    config = {"key_serializer": Text(), "value_serializer": Text()}
    with offline_kafka_python(TOPICS, partitioner=told, **config) as producer:
        asked = ("t", key, None if key is None else b"k", "v", b"v")
        producer.send("t", "v", key=key)
        assert told.calls == [asked, ("t", 1), asked]
        producer.send("t", "v", key=key)
        assert told.calls[3:] == [asked], "the batch is open, and nothing is to be told"


class Text(kafka.serializer.Serializer):  # type: ignore[misc]
    """Encodes text, so that a key differs from its bytes."""

    def serialize(self, topic: str, headers: Any, data: str | None) -> bytes | None:
        return None if data is None else data.encode()


def test_an_explicit_partition_is_nobodys_choice() -> None:
    told = Told()
    with offline_kafka_python(TOPICS, partitioner=told) as producer:
        assert [destination(producer.send("t", VALUE, key=key, partition=3)) for key in (None, b"k")] == [3, 3]
        assert told.calls == []


def test_a_keyed_record_may_make_the_sticky_partition_change() -> None:
    with offline_kafka_python({"t": 2}) as producer:
        sticky = destination(producer.send("t", VALUE))
        key = next(b"%d" % number for number in range(100) if place(b"%d" % number, 2) == sticky)
        while len(queued(producer)[sticky]) == 1:
            assert destination(producer.send("t", VALUE, key=key)) == sticky
        record = ("t", None, None, None, VALUE, producer._metadata)
        assert producer.config["partitioner"].partition(*record) == 1 - sticky


def place(key: bytes, partitions: int) -> int:
    return (kafka_assignors.murmur2(key) & 0x7FFFFFFF) % partitions


def test_round_robin_skips_nobody() -> None:
    """Each of these records opens a batch, so that the partitioner is called twice for each (KAFKA-17632)."""
    with offline_kafka_python({"t": 5}, partitioner=RoundRobinPartitioner()) as producer:
        choices = [destination(producer.send("t", VALUE, key=key)) for key in (None, b"k") * 10]
        assert [(after - before) % 5 for before, after in itertools.pairwise(choices)] == [1] * 19


def test_transactions_know_the_partition_that_the_record_went_to() -> None:
    with offline_kafka_python(TOPICS, partitioner=UniformStickyPartitioner(), transactional_id="x") as producer:
        transactions = producer._transaction_manager
        added: list[Any] = []
        transactions.maybe_add_partition_to_transaction = added.append
        fill_first_batch(producer, key=b"k")
        assert {TopicPartition("t", number) for number in queued(producer)} <= set(added)


# Several threads.


def test_threads_lose_no_record_and_share_the_batches() -> None:
    with offline_kafka_python(TOPICS) as producer:
        start = threading.Barrier(4)

        def send(keyed: bool) -> list[Any]:
            start.wait()
            return [producer.send("t", VALUE, key=b"%d" % each if keyed else None) for each in range(250)]

        with ThreadPoolExecutor(4) as threads:
            futures = [each for sent in threads.map(send, (False, False, True, False)) for each in sent]
        counts = queued(producer)
        assert sum(count for batches in counts.values() for count in batches) == len(futures) == 1_000
        places = [destination(each) for each in futures]
        assert {number: places.count(number) for number in counts} == {
            number: sum(batches) for number, batches in counts.items()
        }


def test_a_record_goes_into_the_batch_that_another_thread_has_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accumulator releases its lock before it returns that a new batch would be opened."""
    with offline_kafka_python({"t": 1}) as producer:
        own = producer._link._append
        refused: list[Any] = []

        def append(tp: Any, *record: Any, abort_on_new_batch: bool = False, **more: Any) -> Any:
            result = own(tp, *record, abort_on_new_batch=abort_on_new_batch, **more)
            if result[3] and not refused:
                refused.append(tp)
                own(tp, *record)
            return result

        monkeypatch.setattr(producer._link, "_append", append)
        producer.send("t", VALUE)
        assert refused
        assert queued(producer) == {0: [2]}
        assert not queue(producer, 0)[0].records.is_full()


# Load.


class Recorder(AdaptivePartitioner):
    """Keeps the reports on the load that it receives."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.told: list[Any] = []

    def update_load(self, topic: Any, queue_lengths: Any, unavailable: Any = ()) -> None:
        self.told.append((topic, dict(queue_lengths), set(unavailable)))
        super().update_load(topic, queue_lengths, unavailable)


@pytest.mark.parametrize("ours", [True, False])
def test_adaptive_is_told_the_queues(ours: bool) -> None:
    recorder = Recorder()
    kind = KafkaProducer if ours else kafka.KafkaProducer
    with offline_kafka_python(TOPICS | {"u": 1}, kind, partitioner=recorder) as producer:
        if not ours:
            recorder.attach(producer)
        for _ in range(30):
            producer.send("t", VALUE, partition=1)
        producer.send("u", VALUE)
        sendable(producer)
        assert sorted(recorder.told) == [("t", {1: len(queue(producer, 1))}, set()), ("u", {0: 1}, set())]
        assert len(queue(producer, 1)) > 2


def test_adaptive_prefers_short_queues() -> None:
    with offline_kafka_python({"t": 2}, partitioner=AdaptivePartitioner(batch_size=1, seed=1)) as producer:
        for _ in range(400):
            producer.send("t", VALUE, partition=0)
        sendable(producer)
        # A batch size of one byte leads to a choice for each record. The queue of partition 1 is empty, so partition 1
        # has about 41 of 42 of the weight.
        choices = [destination(producer.send("t", VALUE)) for _ in range(100)]
        assert choices.count(1) > 80


def test_a_broker_that_takes_nothing_is_left_out_after_the_timeout() -> None:
    recorder = Recorder()
    config: dict[str, Any] = {"partitioner_availability_timeout_ms": 500, "linger_ms": 0}
    with offline_kafka_python({"t": 3}, leaders=lambda number: number % 2, partitioner=recorder, **config) as producer:
        for number in (0, 1):
            producer.send("t", VALUE, partition=number)
        turn = producer._accumulator
        start = queue(producer, 0)[0].created
        seen = []
        # Broker 1 can accept a request in every turn of the sender, broker 0 only in some. No batch is really drained.
        for after, nodes in ((1, {0, 1}), (1.3, {1}), (1.8, {1}), (1.9, {1}), (2, {0, 1}), (2.1, {1})):
            assert turn.ready(producer._metadata, now=start + after)[0] == {0, 1}
            turn.drain(producer._metadata, set(), 0, now=start + after)
            producer._link._feed.delays.swept({0, 1}, nodes, start + after)
            seen.append(recorder.told[-1][2])
        assert seen == [set(), set(), set(), {0}, {0}, set()]


def test_a_load_that_cannot_be_told_does_not_stop_the_sender(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(AdaptivePartitioner):
        def update_load(self, *load: Any) -> None:
            raise ZeroDivisionError

    with offline_kafka_python(TOPICS, partitioner=Broken()) as producer:
        producer.send("t", VALUE)
        for _ in range(3):
            assert sendable(producer)[0] == set()
    assert [record.getMessage() for record in records_of_the_package(caplog)] == [
        "the producer's load does not reach its partitioner, which continues with the last load"
    ]


# One producer for each partitioner, and the end of the link between them.


def test_one_partitioner_in_two_producers_is_refused() -> None:
    shared = DefaultPartitioner()
    with offline_kafka_python(TOPICS, partitioner=shared) as producer:
        threads = threading.active_count()
        with pytest.raises(StateError, match="one DefaultPartitioner was given to two producers"):
            KafkaProducer(partitioner=shared)
        with (
            pytest.raises(StateError, match="two producers"),
            offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=shared) as second,
        ):
            shared.attach(second)
        assert threading.active_count() == threads
        producer.send("t", VALUE)
    with offline_kafka_python(TOPICS, partitioner=shared) as third:
        fill_first_batch(third)


def test_attaching_twice_is_attaching_once() -> None:
    partitioner = DefaultPartitioner()
    with offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=partitioner) as producer:
        partitioner.attach(producer)
        append = producer._accumulator.append
        partitioner.attach(producer)
        assert producer._accumulator.append == append
    with offline_kafka_python(TOPICS, partitioner=partitioner) as producer:
        append = producer._accumulator.append
        partitioner.attach(producer)
        assert producer._accumulator.append == append


def test_attaching_to_the_wrong_producer_is_refused() -> None:
    partitioner = DefaultPartitioner()
    with (
        offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=DefaultPartitioner()) as producer,
        pytest.raises(StateError, match="was not built with this DefaultPartitioner: give it as partitioner="),
    ):
        partitioner.attach(producer)
    with pytest.raises(StateError, match="was not built with this"):
        partitioner.attach(None)
    with offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=partitioner) as producer:
        pass
    with pytest.raises(StateError, match="the producer is closed"):
        partitioner.attach(producer)


def test_the_partitioner_does_not_keep_its_producer() -> None:
    partitioner = DefaultPartitioner()
    with offline_kafka_python(TOPICS, partitioner=partitioner) as producer:
        fill_first_batch(producer)
        reference = weakref.ref(producer)
    del producer
    gc.collect()
    assert reference() is None


def test_a_closed_producer_takes_no_record() -> None:
    with offline_kafka_python(TOPICS) as producer:
        pass
    with pytest.raises(kafka.errors.IllegalStateError, match="closed"):
        producer.send("t", VALUE)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ("append", "RecordAccumulator.append"),
        ("builder", "MemoryRecordsBuilder._batch_size"),
        ("lock", "RecordAccumulator._tp_lock"),
    ],
)
def test_changed_internals_are_one_clear_error(change: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    partitioner = DefaultPartitioner()
    with offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=partitioner) as producer:
        accumulator = producer._accumulator
        with monkeypatch.context() as changed:
            if change == "append":
                changed.setattr(accumulator, "append", lambda tp, record: None)
            elif change == "builder":
                changed.delattr(MemoryRecordsBuilder, "_batch_size")
            else:
                changed.setattr(accumulator, "_tp_lock", None)
            with pytest.raises(
                IncompatibleClientError, match=rf"can close \({re.escape(missing)} changed or missing\)"
            ):
                partitioner.attach(producer)
        partitioner.attach(producer)
        fill_first_batch(producer)


def test_where_no_batch_can_be_closed_records_are_partitioned_all_the_same(
    embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded_kafka.create_topic("t", 4)
    monkeypatch.setattr(_internals, "accumulator_of", unknown)
    with pytest.warns(ClientReleaseWarning, match="are not such as this package can close") as seen:
        producer = KafkaProducer(bootstrap_servers=embedded_kafka.bootstrap_servers, batch_size=BATCH_BYTES)
    # Only these warnings: the garbage collector may warn of other tests' sockets at the same time.
    assert [each.category for each in seen].count(ClientReleaseWarning) == 1
    with producer:
        keyed = [producer.send("t", VALUE, key=b"21").get(timeout=10).partition for _ in range(2)]
        places = [producer.send("t", VALUE) for _ in range(400)]
        named = producer.send("t", VALUE, partition=3).get(timeout=10).partition
        producer.flush()
        found = [each.get(timeout=10).partition for each in places]
    assert len(set(keyed)) == 1
    assert named == 3
    assert set(found) == {0, 1, 2, 3}


def unknown(producer: object) -> object:
    raise IncompatibleClientError("the batches of kafka-python 99 are not such as this package can close: no")


# Bad input.


class OfVersion1:
    def partition(self, key: Any, everything: Any, available: Any) -> int:
        return 0


@pytest.mark.parametrize("bad", [object(), lambda key, everything, available: 0, "murmur2", OfVersion1()])
def test_what_is_no_partitioner_is_refused(bad: Any) -> None:
    with pytest.raises(OptionError, match=r"has no method partition\(topic"):
        KafkaProducer(partitioner=bad)


def test_a_class_for_a_partitioner_is_refused() -> None:
    with pytest.raises(OptionError, match=r"give an instance: DefaultPartitioner\(\)"):
        KafkaProducer(partitioner=DefaultPartitioner)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True, None])
def test_an_availability_timeout_is_milliseconds(timeout: Any) -> None:
    with pytest.raises(OptionError, match=r"availability timeout is .*; give milliseconds"):
        KafkaProducer(partitioner_availability_timeout_ms=timeout)
    partitioner = AdaptivePartitioner()
    with (
        offline_kafka_python(TOPICS, kafka.KafkaProducer, partitioner=partitioner) as plain,
        pytest.raises(OptionError, match="give milliseconds"),
    ):
        partitioner.attach(plain, availability_timeout_ms=timeout)


@pytest.mark.parametrize("key", [None, b"k"])
def test_a_second_choice_that_fails_takes_no_record(key: bytes | None) -> None:
    class Fickle(Told):
        def partition(self, *record: Any) -> Any:
            super().partition(*record)
            return 1 if len(self.calls) != 3 else 99

    with offline_kafka_python(TOPICS, partitioner=Fickle()) as producer:
        with pytest.raises(PartitionerError, match=r"returned 99 .* which was not sent: .* partitions 0 to 3"):
            producer.send("t", VALUE, key=key)
        assert queued(producer) == {}
        producer.send("t", VALUE, key=key)
        assert queued(producer) == {1: [1]}


@pytest.mark.parametrize("key", [None, b"k"])
def test_a_hook_that_fails_takes_no_record(key: bytes | None) -> None:
    class Broken(Told):
        def on_new_batch(self, *told: Any) -> None:
            if not self.calls[1:]:
                raise ZeroDivisionError("in the hook")

    with offline_kafka_python(TOPICS, partitioner=Broken()) as producer:
        with pytest.raises(PartitionerError, match=r"on_new_batch failed .* not sent: ZeroDivisionError: in the hook"):
            producer.send("t", VALUE, key=key)
        assert queued(producer) == {}
        producer.send("t", VALUE, key=key)
        assert queued(producer) == {1: [1]}


def test_a_topic_that_is_gone_is_one_clear_error() -> None:
    """`send` waits for the topic's metadata first, but they may change before it reads the partitions."""
    with offline_kafka_python(TOPICS) as producer:
        with pytest.raises(PartitionerError, match=r"topic .gone. is not in the cluster's metadata"):
            producer._partition("gone", None, None, VALUE, None, VALUE)
        producer._metadata._partitions["none"] = {}
        with pytest.raises(PartitionerError, match="0 partitions"):
            producer.send("none", VALUE)
        fill_first_batch(producer)


def test_an_unknown_topic_is_the_clients_own_error() -> None:
    with offline_kafka_python(TOPICS, max_block_ms=1) as producer, pytest.raises(KafkaTimeoutError):
        producer.send("unknown", VALUE)


def test_a_partitioner_of_kafka_python_works_too() -> None:
    with offline_kafka_python(TOPICS, partitioner=kafka.partitioner.StickyPartitioner()) as producer:
        left, _ = fill_first_batch(producer)
        assert queue(producer, left)[-1].records.is_full()
        assert destination(producer.send("t", VALUE, key=b"foobar")) == place(b"foobar", 4)
