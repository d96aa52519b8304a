"""Our producers for kafka-python and aiokafka, on the embedded Kafka and on the real one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import groupby, pairwise
from typing import Any

import kafka
import pytest

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)
from kafka_assignors.clients import kafka_python
from kafka_assignors.errors import PartitionerError
from support.broker import Kafka, unique
from support.features import has, release_has
from support.producers import (
    BATCH_BYTES,
    FOREVER_MS,
    VALUE,
    Record,
    Sent,
    destination,
    send_aiokafka,
    send_kafka_python,
)

Send = Callable[..., Sent]

# The choice of Java's producer among ten partitions. Reference: the hashes in its own test, modulo 10.
JAVA_OF_TEN = {
    b"21": 0,
    b"foobar": 6,
    b"a-little-bit-long-string": 2,
    b"a-little-bit-longer-string": 9,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": 7,
    b"abc": 7,
    b"": 1,
}


@pytest.fixture(params=[send_kafka_python, send_aiokafka], ids=["kafka-python", "aiokafka"])
def send(request: pytest.FixtureRequest) -> Send:
    which: Send = request.param
    return which


def test_keys_go_where_java_sends_them(any_kafka: Kafka, send: Send) -> None:
    topic = any_kafka.create_topic(unique("keyed"), 10)
    records = [Record(topic, key=key) for key in JAVA_OF_TEN for _ in range(3)]
    for partitioner in (DefaultPartitioner(), AdaptivePartitioner(batch_size=BATCH_BYTES)):
        sent = send(any_kafka, records, partitioner=partitioner)
        assert sent.partitions == [JAVA_OF_TEN[key] for key in JAVA_OF_TEN for _ in range(3)]


def test_explicit_partitions_are_honoured(any_kafka: Kafka, send: Send) -> None:
    topic = any_kafka.create_topic(unique("explicit"), 4)
    records = [Record(topic, key=key, partition=number) for number in (3, 0, 2) for key in (None, b"k")]
    assert send(any_kafka, records).partitions == [3, 3, 0, 0, 2, 2]


@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(True, id="KafkaProducer"),
        pytest.param(False, id="attach", marks=release_has("kafka-python 3")),
    ],
)
def test_the_left_batch_is_delivered_long_before_its_linger(any_kafka: Kafka, ours: bool) -> None:
    topic = any_kafka.create_topic(unique("left"), 4)
    partitioner = kafka_python.DefaultPartitioner()
    kind = kafka_python.KafkaProducer if ours else kafka.KafkaProducer
    config = {"bootstrap_servers": any_kafka.bootstrap_servers, "linger_ms": FOREVER_MS, "batch_size": BATCH_BYTES}
    with closing(kind(partitioner=partitioner, **config)) as producer:
        if not ours:
            partitioner.attach(producer)
        first = producer.send(topic, VALUE)
        left = destination(first)
        while destination(producer.send(topic, VALUE)) == left:
            pass
        assert first.get(timeout=FOREVER_MS / 2_000).partition == left


@pytest.mark.parametrize("kind", [DefaultPartitioner, UniformStickyPartitioner])
def test_batches_stick_and_records_spread(any_kafka: Kafka, send: Send, kind: type[Any]) -> None:
    """The linger is a minute: a batch that is sent is full, or is sent together with a full batch to its broker."""
    topic = any_kafka.create_topic(unique("sticky"), 4)
    keys = (None,) if kind is DefaultPartitioner else (None, b"k", b"l")
    records = [Record(topic, key=keys[number % len(keys)], header=("n", b"%d" % number)) for number in range(2_000)]
    places = send(any_kafka, records, partitioner=kind(seed=5)).partitions
    runs = [len(list(run)) for _, run in groupby(places)]
    room = max(runs)
    assert BATCH_BYTES // 110 <= room <= BATCH_BYTES // 80
    # With a full batch, other batches of its broker may be sent before they are full: at most one for each full one.
    assert len(runs) <= 2 * (2_000 // (room - 1)) + 1
    assert min(places.count(number) for number in range(4)) > 200


def test_round_robin_takes_turns(any_kafka: Kafka, send: Send) -> None:
    topic = any_kafka.create_topic(unique("turns"), 4)
    places = send(any_kafka, [Record(topic)] * 400, partitioner=RoundRobinPartitioner()).partitions
    assert {(after - before) % 4 for before, after in pairwise(places)} == {1}


def test_adaptive_spreads(any_kafka: Kafka, send: Send) -> None:
    topic = any_kafka.create_topic(unique("adaptive"), 4)
    partitioner = AdaptivePartitioner(batch_size=BATCH_BYTES, seed=5)
    places = send(any_kafka, [Record(topic)] * 2_000, partitioner=partitioner).partitions
    assert min(places.count(number) for number in range(4)) > 100
    # The partition changes after twice the batch size at the latest.
    assert max(len(list(run)) for _, run in groupby(places)) <= 1_000


def test_transactions_go_on_as_ever(kafka_broker: Kafka, send: Send) -> None:
    """The batches that the partitioner left belong to the transaction, too."""
    topic = kafka_broker.create_topic(unique("transaction"), 4)
    places = send(kafka_broker, [Record(topic)] * 200, transactional=True).partitions
    assert len(set(places)) > 1


@pytest.mark.parametrize("nonsense", [-1, 4, 2**31, None, "0", True, 0.0, [1]])
def test_nonsense_is_one_clear_error_and_the_next_record_is_sent(any_kafka: Kafka, send: Send, nonsense: Any) -> None:
    class Nonsense(Partitioner):
        def partition(self, topic: str, key: Any, *rest: Any) -> Any:
            return nonsense if key == b"bad" else 2

    topic = any_kafka.create_topic(unique("nonsense"), 4)
    good, bad = Record(topic), Record(topic, key=b"bad")
    first, refused, *others = send(any_kafka, [good, bad, good, good], partitioner=Nonsense()).outcomes
    assert [first, *others] == [2, 2, 2]
    assert isinstance(refused, PartitionerError)
    assert str(refused).startswith(
        "test_nonsense_is_one_clear_error_and_the_next_record_is_sent.<locals>.Nonsense return"
    )
    assert repr(topic) in str(refused)
    assert repr(nonsense) in str(refused)
    assert "was not sent" in str(refused)


def test_a_partitioner_that_raises_is_one_clear_error(any_kafka: Kafka, send: Send) -> None:
    class Raising(Partitioner):
        def partition(self, topic: str, key: Any, *rest: Any) -> int:
            return {None: 3, b"good": 1}[key]

    topic = any_kafka.create_topic(unique("raising"), 4)
    records = [Record(topic, key=key) for key in (None, b"bad", b"good")]
    first, refused, last = send(any_kafka, records, partitioner=Raising()).outcomes
    assert (first, last) == (3, 1)
    assert isinstance(refused, PartitionerError)
    assert isinstance(refused.__cause__, KeyError)
    assert str(refused).endswith(
        f"Raising failed for a record to topic {topic!r}, which was not sent: KeyError: b'bad'"
    )


def test_a_wrong_key_is_one_clear_error(any_kafka: Kafka, send: Send) -> None:
    topic = any_kafka.create_topic(unique("wrong"), 4)
    good, bad = Record(topic), Record(topic, key="no bytes")  # type: ignore[arg-type]
    first, refused, last = send(any_kafka, [good, bad, good]).outcomes
    assert isinstance(first, int)
    assert isinstance(last, int)
    if has("kafka-python 3") or send is send_aiokafka:
        assert isinstance(refused, TypeError)
        assert "key" in str(refused)
    else:
        # The client's own error, which it raises before it calls the partitioner.
        assert isinstance(refused, AssertionError)


def test_a_partition_out_of_range_is_refused(any_kafka: Kafka, send: Send) -> None:
    topic = any_kafka.create_topic(unique("range"), 4)
    first, refused, last = send(any_kafka, [Record(topic), Record(topic, partition=4), Record(topic)]).outcomes
    assert isinstance(first, int)
    assert isinstance(last, int)
    assert isinstance(refused, ValueError | AssertionError)
    assert "Unrecognized partition" in str(refused)
