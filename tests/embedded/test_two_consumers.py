"""Two consumers of kafka-python share a topic on the embedded Kafka, and one reads on where the other stopped.

Needs the wheel and kafka-python alone: the release's wheels run this test on every platform where this machine can
run them (.github/release/try_wheels.py).
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

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


class Polled:
    """A consumer that a thread of its own polls.

    kafka-python joins again if a poll ends between JoinGroup and SyncGroup. So two consumers that one thread polled in
    turn would now and then rebalance without end: the poll of one ends while the group waits for the other.
    """

    def __init__(self, consumer: KafkaConsumer, seen: list[int]) -> None:
        self.assigned: set[TopicPartition] = set()
        self._consumer, self._seen = consumer, seen

    def poll_until(self, stopped: Event) -> None:
        while not stopped.is_set():
            for records in self._consumer.poll(timeout_ms=500).values():
                self._seen += [int(record.value) for record in records]
            self.assigned = self._consumer.assignment()


@contextmanager
def polled(kafka: EmbeddedKafka, assignor: type, seen: list[int]) -> Iterator[Polled]:
    """A consumer of the group. It leaves the group at the end."""
    stopped = Event()
    with closing(consumer(kafka, assignor)) as client, ThreadPoolExecutor(1) as pool:
        running = Polled(client, seen)
        polling = pool.submit(running.poll_until, stopped)
        try:
            yield running
        finally:
            stopped.set()
        polling.result(WAIT)


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT
    while not done():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.timeout(4 * WAIT)
@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
def test_two_consumers_share_and_one_takes_over(assignor: type) -> None:
    seen: list[int] = []
    with EmbeddedKafka(topics={"orders": PARTITIONS}) as kafka, polled(kafka, assignor, seen) as one:
        with polled(kafka, assignor, seen) as two:
            both = [one, two]
            wait_until(lambda: [len(each.assigned) for each in both] == [3, 3])
            assert one.assigned.isdisjoint(two.assigned)
            kept = one.assigned
            produce(kafka, 0, 60)
            wait_until(lambda: len(seen) >= 60)
        wait_until(lambda: len(one.assigned) == PARTITIONS)
        assert kept < one.assigned
        produce(kafka, 60, 60)
        wait_until(lambda: set(range(120)) <= set(seen))
    # The consumer that left committed what it had read, so that no record came twice.
    assert sorted(seen) == list(range(120))
