"""Two consumers of kafka-python share a topic on the embedded Kafka, and one reads on where the other stopped.

Needs the wheel and kafka-python alone: the release's wheels run this test on every platform where this machine can
run them (.github/release/try_wheels.py).
"""

import time
from collections.abc import Callable
from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kafka_assignors.clients.kafka_python import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors.embedded import EmbeddedKafka

PARTITIONS = 6
# An emulated processor takes a while to import a client.
WAIT = 60.0


def consumer(kafka: EmbeddedKafka, assignor: type) -> KafkaConsumer:
    return KafkaConsumer(
        "orders",
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="shipping",
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
    )


def produce(kafka: EmbeddedKafka, first: int, count: int) -> None:
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)) as producer:
        for number in range(first, first + count):
            producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
        producer.flush(timeout=WAIT)


def poll_until(consumers: list[KafkaConsumer], seen: list[int], done: Callable[[], bool]) -> None:
    """Poll all consumers in turn, and add the records' numbers to `seen`."""
    until = time.monotonic() + WAIT
    while not done():
        assert time.monotonic() < until, (seen, [each.assignment() for each in consumers])
        for each in consumers:
            for records in each.poll(timeout_ms=50).values():
                seen += [int(record.value) for record in records]


@pytest.mark.timeout(4 * WAIT)
@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
def test_two_consumers_share_and_one_takes_over(assignor: type) -> None:
    seen: list[int] = []
    with EmbeddedKafka(topics={"orders": PARTITIONS}) as kafka, closing(consumer(kafka, assignor)) as one:
        with closing(consumer(kafka, assignor)) as two:
            both = [one, two]
            poll_until(both, seen, lambda: [len(each.assignment()) for each in both] == [3, 3])
            assert one.assignment() | two.assignment() == set(one.assignment()) ^ set(two.assignment())
            kept = set(one.assignment())
            produce(kafka, 0, 60)
            poll_until(both, seen, lambda: len(seen) >= 60)
        poll_until([one], seen, lambda: len(one.assignment()) == PARTITIONS)
        assert kept < set(one.assignment())
        produce(kafka, 60, 60)
        poll_until([one], seen, lambda: set(range(120)) <= set(seen))
    # The consumer that left committed what it had read, so that no record came twice.
    assert sorted(seen) == list(range(120))
