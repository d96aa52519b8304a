"""The confluent producer with our partitioners, on both Kafkas: the partitions in which records arrive."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka.serialization import IntegerSerializer, StringSerializer
from kafka.partitioner.default import murmur2

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)
from kafka_assignors.clients.confluent import Producer, SerializingProducer
from kafka_assignors.clients.confluent.queue_feedback import QueueFeedback
from support.broker import unique
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from support.broker import Kafka

# A linger that is longer than any test: only a flush or a full batch sends records.
LONG = 60_000
# Keys of the reference vectors of Java's murmur2, and also empty keys, text that is not ASCII, and other bytes.
KEYS: list[str | bytes] = [
    b"21", "foobar", "a-little-bit-long-string", b"a-little-bit-longer-string", "abc", "", b"", "é", b"\x00\xff",
    *(f"key-{number}" for number in range(100)),
]  # fmt: skip
# Computed once by Java: Utils.toPositive(Utils.murmur2(key)) % 16.
JAVA = {b"21": 12, "foobar": 14, "a-little-bit-long-string": 0, b"a-little-bit-longer-string": 3, "abc": 11, "": 9}


def settings(kafka: Kafka, **config: Any) -> dict[str, Any]:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0, "linger.ms": LONG, **given}


class Sent:
    """The partition of each record, from its delivery report, by the value that the test sent."""

    def __init__(self) -> None:
        self.to: dict[Any, int] = {}
        self.errors: list[object] = []

    def report(self, record: Any) -> Callable[[object, confluent_kafka.Message], None]:
        def note(error: object, message: confluent_kafka.Message) -> None:
            if error is not None:
                self.errors.append(error)
            else:
                partition = message.partition()
                assert partition is not None
                self.to[record] = partition

        return note

    def done(self, producer: confluent_kafka.Producer) -> dict[Any, int]:
        assert producer.flush(30) == 0
        assert self.errors == []
        return self.to


def places(producer: confluent_kafka.Producer, topic: str, keys: Iterable[str | bytes | None]) -> dict[Any, int]:
    sent = Sent()
    for number, key in enumerate(keys):
        producer.produce(topic, b"value", key, on_delivery=sent.report((number, key)))
    return sent.done(producer)


def stored(kafka: Kafka, topic: str, partitions: int, **config: Any) -> list[confluent_kafka.Message]:
    """All records of a topic that a consumer can read."""
    given = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": unique("reader"), "log_level": 0}
    consumer = confluent_kafka.Consumer(given | {"enable.partition.eof": True, **config})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        found: list[confluent_kafka.Message] = []
        ended: set[int | None] = set()
        deadline = time.monotonic() + 60
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"{topic} was not read to its end: {ended}"
            for message in consumer.consume(1_000, 0.2):
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:  # type: ignore[union-attr]
                    ended.add(message.partition())
        return found
    finally:
        consumer.close()


def _past(moment: float) -> bool:
    return time.monotonic() > moment


# ---- keys -----------------------------------------------------------------------------------------------------------


def test_keys_go_where_java_and_kafka_python_put_them(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 16)
    went = places(Producer(settings(any_kafka), partitioner=DefaultPartitioner()), topic, KEYS)
    expected = {
        (number, key): (murmur2(key.encode() if isinstance(key, str) else key) & 0x7FFFFFFF) % 16
        for number, key in enumerate(KEYS)
    }
    assert went == expected
    assert {key: went[number, key] for number, key in enumerate(KEYS) if key in JAVA} == JAVA
    found = {(message.partition(), message.key()) for message in stored(any_kafka, topic, 16)}
    assert found == {(to, key.encode() if isinstance(key, str) else key) for (_, key), to in expected.items()}, (
        "what was placed by a key was sent with other bytes"
    )


def test_no_key_and_an_empty_key_stay_apart(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 4)
    producer = Producer(settings(any_kafka), partitioner=DefaultPartitioner())
    for key in (None, b"", ""):
        producer.produce(topic, b"value", key)
    assert producer.flush(30) == 0
    assert sorted((message.key() or b"-") + str(message.key()).encode() for message in stored(any_kafka, topic, 4)) == [
        b"-None", b"-b''", b"-b''"
    ]  # fmt: skip


@pytest.mark.parametrize("partitioner", [None, "murmur2_random", "fnv1a_random", "consistent_random"])
def test_without_a_partitioner_of_ours_no_key_moves(any_kafka: Kafka, partitioner: str | None) -> None:
    topic = any_kafka.create_topic(unique("orders"), 16)
    config = settings(any_kafka) if partitioner is None else settings(any_kafka, partitioner=partitioner)
    # For an empty key, all of librdkafka's partitioners but one choose a partition at random.
    keys = [key for key in KEYS if key]
    before = places(confluent_kafka.Producer(config), topic, keys)
    assert places(Producer(config), topic, keys) == before
    assert places(Producer(config, partitioner=partitioner), topic, keys) == before


# ---- stickiness -----------------------------------------------------------------------------------------------------


def produce_requests(producer: confluent_kafka.Producer, statistics: list[str]) -> int:
    """The number of produce requests in librdkafka's statistics. All records must have been delivered before."""

    def told() -> bool:
        producer.poll(0)
        return len(statistics) > 1

    statistics.clear()
    # The first statistics may be from before the last delivery.
    wait_until(told, "statistics")
    return sum(broker["req"]["Produce"] for broker in json.loads(statistics[-1])["brokers"].values())


@pytest.mark.parametrize(
    ("partitioner", "requests"),
    [
        (DefaultPartitioner, 1),
        (UniformStickyPartitioner, 1),
        (partial(AdaptivePartitioner, batch_size=1_000_000), 1),
        (RoundRobinPartitioner, 16),
    ],
    ids=["default", "uniform", "adaptive", "round robin"],
)
def test_records_without_a_key_share_a_batch(
    any_kafka: Kafka, partitioner: Callable[[], Partitioner], requests: int
) -> None:
    topic = any_kafka.create_topic(unique("orders"), 16)
    # The leaders of a new topic may refuse the first records for a moment, and each retry would count as a request.
    warm_up = confluent_kafka.Producer(settings(any_kafka))
    for number in range(16):
        warm_up.produce(topic, b"value", partition=number)
    assert warm_up.flush(30) == 0
    statistics: list[str] = []
    config = settings(any_kafka) | {"stats_cb": statistics.append, "statistics.interval.ms": 50}
    producer = Producer(config, partitioner=partitioner())
    assert len(set(places(producer, topic, [None] * 320).values())) == requests
    assert produce_requests(producer, statistics) == requests


def test_the_next_batch_goes_to_another_partition_and_all_get_some(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 4)
    producer = Producer(settings(any_kafka, linger_ms=2), partitioner=DefaultPartitioner())
    used: list[int] = []
    for _ in range(60):
        used.append(places(producer, topic, [None])[0, None])
        late = time.monotonic() + 0.002
        wait_until(partial(_past, late), "the linger")
    assert all(one != another for one, another in pairwise(used))
    assert set(used) == {0, 1, 2, 3}


def test_after_a_flush_no_batch_is_open(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 4)
    producer = Producer(settings(any_kafka), partitioner=DefaultPartitioner())
    used = [places(producer, topic, [None])[0, None] for _ in range(10)]
    assert all(one != another for one, another in pairwise(used))


def test_keyed_records_stick_as_well_with_uniform_sticky(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 16)
    producer = Producer(settings(any_kafka), partitioner=UniformStickyPartitioner())
    assert len(set(places(producer, topic, KEYS).values())) == 1


def test_a_slow_partition_gets_less_of_what_an_adaptive_partitioner_spreads(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    producer = Producer(settings(any_kafka), partitioner=AdaptivePartitioner(batch_size=100, seed=5))
    places(producer, topic, [None])
    assert producer._partitioning is not None
    assert producer._partitioning.feedback is not None
    known = producer._partitioning.topics.known[topic]
    with producer._partitioning.feedback.lock:
        # Ten batches wait for partition 0, without delivery reports.
        for _ in range(10):
            batch = producer._partitioning.feedback.batch(0.0, producer._partitioning._rule, known, 0)
            producer._partitioning.feedback.sent(known, 0, batch)
        # The partitioner gets the new queue lengths with the next record.
        producer._partitioning.feedback._queues(known).updated = float("-inf")
    sent = Sent()
    for number in range(300):
        # A record is larger than two batches of the partitioner. Its report arrives before the next record is sent.
        producer.produce(topic, b"x" * 250, on_delivery=sent.report(number))
        assert producer.flush(30) == 0
    counts = Counter(sent.to.values())
    assert sent.errors == []
    assert counts[0] < 50 < min(counts[1], counts[2])


# ---- the user's own -------------------------------------------------------------------------------------------------


def test_a_function_sees_the_record_as_given_and_as_sent(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    seen: list[tuple[object, ...]] = []

    def last(name: str, key: object, sent_key: object, value: object, sent_value: object, cluster: Any) -> int:
        assert set(cluster.available_partitions_for_topic(name)) == set(cluster.partitions_for_topic(name))
        seen.append((name, key, sent_key, value, sent_value))
        return int(max(cluster.partitions_for_topic(name)))

    producer = Producer(settings(any_kafka), partitioner=last)
    sent = Sent()
    producer.produce(topic, "é", "ü", on_delivery=sent.report(1))
    producer.produce(topic, None, on_delivery=sent.report(2))
    producer.produce(topic, b"v", b"k", partition=1, on_delivery=sent.report(3))
    assert sent.done(producer) == {1: 2, 2: 2, 3: 1}
    assert seen == [(topic, "ü", "ü".encode(), "é", "é".encode()), (topic, None, None, None, None)]


class ByRegion(Partitioner):
    def __init__(self) -> None:
        self.batches: list[int] = []

    def partition(self, topic: str, key: object, *_: Any) -> int:
        return 1 if key == "eu" else 2

    def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:
        self.batches.append(prev_partition)


def test_a_partitioner_of_the_user_s_own_is_told_of_batches(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    partitioner = ByRegion()
    producer = Producer(settings(any_kafka, partitioner=partitioner))
    assert places(producer, topic, ["eu", "us", "eu", "us"]) == {(0, "eu"): 1, (1, "us"): 2, (2, "eu"): 1, (3, "us"): 2}
    assert partitioner.batches == [1, 2]


# ---- everything else stays the client's -----------------------------------------------------------------------------


def test_headers_timestamps_and_tombstones_arrive(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    with Producer(settings(any_kafka), partitioner=DefaultPartitioner()) as producer:
        headers = [("a", b"1"), ("a", None), ("b", b"")]
        producer.produce(topic, None, b"k", timestamp=1_600_000_000_123, headers=headers)
    (message,) = stored(any_kafka, topic, 3)
    assert (message.key(), message.value(), message.headers()) == (b"k", None, headers)
    assert message.timestamp() == (confluent_kafka.TIMESTAMP_CREATE_TIME, 1_600_000_000_123)


@pytest.mark.parametrize("partitioner", [DefaultPartitioner, AdaptivePartitioner])
def test_all_ways_to_give_a_callback_work(any_kafka: Kafka, partitioner: Callable[[], Partitioner]) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    called: list[tuple[str, object, bytes | None]] = []

    def note(name: str) -> Callable[[object, confluent_kafka.Message], None]:
        return lambda error, message: called.append((name, error, message.value()))

    config = settings(any_kafka) | {"on_delivery": note("default")}
    producer = Producer(config, partitioner=partitioner())
    producer.produce(topic, b"1")
    producer.produce(topic, b"2", callback=note("callback"))
    producer.produce(topic, b"3", on_delivery=note("on_delivery"))
    producer.produce(topic, b"4", partition=2, on_delivery=note("on_delivery"))
    producer.produce(topic, b"5", None, -1, note("callback"), note("on_delivery"))
    messages: list[dict[str, Any]] = [
        {"value": b"6"},
        {"value": b"7", "callback": note("own")},
        {"value": b"8", "partition": 1},
    ]
    assert producer.produce_batch(topic, messages, on_delivery=note("batch")) == 3
    assert producer.produce_batch(topic, [{"value": b"9"}]) == 1
    assert producer.flush(30) == 0
    assert sorted(called, key=lambda each: each[2] or b"") == [
        ("default", None, b"1"),
        ("callback", None, b"2"),
        ("on_delivery", None, b"3"),
        ("on_delivery", None, b"4"),
        ("callback", None, b"5"),
        ("batch", None, b"6"),
        ("own", None, b"7"),
        ("batch", None, b"8"),
        ("default", None, b"9"),
    ]


def test_a_batch_of_messages_is_placed_one_by_one(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 16)
    sent = Sent()
    messages: list[dict[str, Any]] = [
        {"key": key, "value": str(n), "callback": sent.report((n, key))} for n, key in enumerate(KEYS)
    ]
    messages.append({"partition": 5, "callback": sent.report("explicit")})
    copies = [dict(message) for message in messages]
    producer = Producer(settings(any_kafka), partitioner=DefaultPartitioner())
    assert producer.produce_batch(topic, messages) == len(messages)
    assert messages == copies
    assert producer.produce_batch(topic, [{"callback": sent.report("all")}], partition=7) == 1
    went = sent.done(producer)
    assert (went.pop("explicit"), went.pop("all")) == (5, 7)
    assert went == places(producer, topic, KEYS)


def test_only_failures_are_reported_where_that_is_asked_for(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    called: list[object] = []
    config = settings(any_kafka) | {"delivery.report.only.error": True}
    producer = Producer(config, partitioner=AdaptivePartitioner())
    producer.produce(topic, b"1", on_delivery=lambda error, _: called.append(error))
    assert producer.flush(30) == 0
    assert called == []
    producer.produce(topic, b"2", on_delivery=lambda error, _: called.append(error))
    producer.purge()
    producer.poll(1)
    assert len(called) == 1


def test_statistics_reach_the_user_who_asked_for_them_and_nobody_else(
    any_kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    asked: list[str] = []
    config: dict[str, Any] = settings(any_kafka) | {"stats_cb": asked.append, "statistics.interval.ms": 50}
    producer = Producer(config, partitioner=AdaptivePartitioner())
    producer.produce(topic, b"1")

    def told() -> bool:
        producer.poll(0)
        return len(asked) > 2

    wait_until(told, "statistics")
    unasked: list[str] = []
    heard: list[str] = []
    statistics = QueueFeedback.statistics

    def hear(feedback: QueueFeedback, text: str) -> None:
        heard.append(text)
        statistics(feedback, text)

    monkeypatch.setattr(QueueFeedback, "statistics", hear)
    producer = Producer(settings(any_kafka) | {"stats_cb": unasked.append}, partitioner=AdaptivePartitioner())
    producer.produce(topic, b"1")
    assert producer.flush(30) == 0

    def told_of_the_topic() -> bool:
        producer.poll(0)
        return any(topic in text for text in heard)

    wait_until(told_of_the_topic, "statistics for the partitioner")
    assert unasked == []


def test_a_topic_that_grows_is_noticed_beside_the_work(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 2)
    config = settings(any_kafka, linger_ms=0) | {"topic.metadata.refresh.interval.ms": 100}
    producer = Producer(config, partitioner=RoundRobinPartitioner())
    assert set(places(producer, topic, [None] * 8).values()) == {0, 1}
    any_kafka.grow_topic(topic, 5)

    def all_used() -> bool:
        return set(places(producer, topic, [None] * 10).values()) == {0, 1, 2, 3, 4}

    wait_until(all_used, "all five partitions are used")


def test_a_topic_made_anew_with_fewer_partitions_gets_its_records(kafka_broker: Kafka) -> None:
    topic = kafka_broker.create_topic(unique("orders"), 4)
    producer = Producer(
        settings(kafka_broker), partitioner=lambda *arguments: max(arguments[5].partitions_for_topic(topic))
    )
    assert places(producer, topic, [None])[0, None] == 3
    kafka_broker.delete_topic(topic)
    wait_until(lambda: topic not in kafka_broker.describe_topics(), "the topic is gone")
    kafka_broker.create_topic(topic, 2)
    # librdkafka's new metadata contain two partitions; the metadata that our producer keeps are old.
    wait_until(lambda: len(producer.list_topics(topic, 5).topics[topic].partitions) == 2, "the topic is back")
    assert places(producer, topic, [None])[0, None] == 1


def test_threads_share_a_producer_and_lose_nothing(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 8)
    sent = Sent()
    producer = Producer(settings(any_kafka, linger_ms=1), partitioner=AdaptivePartitioner(batch_size=500))
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(500):
                producer.produce(topic, b"value", on_delivery=sent.report((thread, number)))
                producer.poll(0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert set(sent.done(producer)) == {(thread, number) for thread in range(4) for number in range(500)}
    assert len(set(sent.to.values())) > 1
    assert producer._partitioning is not None
    assert producer._partitioning.feedback is not None
    waiting = producer._partitioning.feedback._topics[topic].waiting
    assert sum(batch.pending for batches in waiting for batch in batches) == 0


def test_a_serializing_producer_places_what_its_serializers_make(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 16)
    config = settings(any_kafka) | {
        "key.serializer": IntegerSerializer(),
        "value.serializer": StringSerializer(),
        "partitioner": DefaultPartitioner(),
    }
    sent = Sent()
    with SerializingProducer(config) as producer:
        for number in range(50):
            producer.produce(topic, key=number, value=f"value {number}", on_delivery=sent.report(number))
        went = sent.done(producer)
    assert went == {number: (murmur2(number.to_bytes(4, "big")) & 0x7FFFFFFF) % 16 for number in range(50)}


def test_transactions_are_the_client_s(kafka_broker: Kafka) -> None:
    topic = kafka_broker.create_topic(unique("orders"), 4)
    group = unique("readers")
    config = settings(kafka_broker) | {"transactional.id": unique("transactions"), "linger.ms": 100}
    producer = Producer(config, partitioner=DefaultPartitioner())
    producer.init_transactions(30)
    with pytest.raises(confluent_kafka.KafkaException):
        producer.produce(topic, b"outside of a transaction")
    for value, keep in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.produce(topic, value, b"key")
        if keep:
            consumer = confluent_kafka.Consumer(
                {"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": group, "log_level": 0}
            )
            position = [confluent_kafka.TopicPartition(topic, 0, 7)]
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
            assert [each.offset for each in consumer.committed(position, 30)] == [7]
            consumer.close()
        else:
            producer.abort_transaction(30)
    read = stored(kafka_broker, topic, 4, **{"isolation.level": "read_committed"})
    assert [message.value() for message in read] == [b"committed"] * 2
