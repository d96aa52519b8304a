"""The time of reading: each contender in turn reads the same topic from its beginning."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import enumerate as living_threads
from typing import TYPE_CHECKING, Any

import confluent_kafka

from kafka_assignors.clients.confluent import Consumer
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.broker import Kafka

__all__ = ["BARE", "OURS", "Cost", "compare", "fill", "idle_membership"]

OURS, BARE = "ours", "confluent_kafka.Consumer"
MESSAGE = bytes(100)
PARTITIONS = 6
PATIENCE = 120.0
_CLASSES: Mapping[str, type[confluent_kafka.Consumer]] = {OURS: Consumer, BARE: confluent_kafka.Consumer}


@dataclass(frozen=True)
class Cost:
    """Seconds from the first message to the last."""

    cpu: float
    """CPU time of the reading thread."""
    wall: float


def fill(kafka: Kafka, messages: int) -> str:
    """A topic with this number of messages."""
    topic = kafka.create_topic(unique("bench"), PARTITIONS)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0, "linger.ms": 50}
    producer = confluent_kafka.Producer(settings)
    for number in range(messages):
        while True:
            try:
                producer.produce(topic, MESSAGE, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(PATIENCE):
        raise TimeoutError(f"the broker did not take {messages} messages within {PATIENCE} s")
    return topic


def read_by_consume(consumer: confluent_kafka.Consumer, messages: int) -> Cost:
    """Reads with `consume(500)`."""
    consume = consumer.consume
    batch: list[confluent_kafka.Message] = []
    while not batch:
        batch = consume(500, 1.0)
    left = messages - len(batch)
    cpu, wall = time.thread_time(), time.perf_counter()
    late = wall + PATIENCE
    while left > 0:
        left -= len(consume(500, 1.0))
        if time.perf_counter() > late:
            raise TimeoutError(f"{left} of {messages} messages were not read within {PATIENCE} s")
    return Cost(time.thread_time() - cpu, time.perf_counter() - wall)


def read_by_poll(consumer: confluent_kafka.Consumer, messages: int) -> Cost:
    """Reads with `poll()`, which is looked up on the consumer for each message, as in applications."""
    while consumer.poll(1.0) is None:
        pass
    left = messages - 1
    cpu, wall = time.thread_time(), time.perf_counter()
    late = wall + PATIENCE
    while left > 0:
        if consumer.poll(1.0) is not None:
            left -= 1
        elif time.perf_counter() > late:
            raise TimeoutError(f"{left} of {messages} messages were not read within {PATIENCE} s")
    return Cost(time.thread_time() - cpu, time.perf_counter() - wall)


def compare(
    kafka: Kafka,
    topic: str,
    messages: int,
    read: Callable[[confluent_kafka.Consumer, int], Cost],
    rounds: int,
) -> dict[str, Cost]:
    """The medians of both contenders, in turns; each is first in half of the rounds. The first round does not count."""
    costs: dict[str, list[Cost]] = {OURS: [], BARE: []}
    for number in range(rounds + 1):
        for name in list(costs) if number % 2 == 0 else reversed(list(costs)):
            with _CLASSES[name](_settings(kafka)) as consumer:
                consumer.subscribe([topic])
                cost = read(consumer, messages)
            if number:
                costs[name].append(cost)
    return {
        name: Cost(median(each.cpu for each in found), median(each.wall for each in found))
        for name, found in costs.items()
    }


def idle_membership(kafka: Kafka, topic: str, seconds: float) -> tuple[float, float]:
    """CPU time of the membership's thread while a consumer polls without messages, and the elapsed time.

    It needs Linux, where the CPU time of another thread is in /proc.
    """
    group = unique("bench")
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "latest"}
    with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        late = time.perf_counter() + PATIENCE
        while not consumer.assignment():
            consumer.poll(0.1)
            if time.perf_counter() > late:
                raise TimeoutError(f"a group of one has not been given its share within {PATIENCE} s")
        (thread,) = (each for each in living_threads() if each.name == f"kafka-assignors-member-{group}")
        status = Path(f"/proc/self/task/{thread.native_id}/schedstat")
        cpu, start = int(status.read_text().split()[0]), time.perf_counter()
        while time.perf_counter() - start < seconds:
            consumer.poll(1.0)
        return (int(status.read_text().split()[0]) - cpu) / 1e9, time.perf_counter() - start


def _settings(kafka: Kafka) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": unique("bench"),
        "auto.offset.reset": "earliest",
        # With the default the bare consumer would wait for most of the time.
        "fetch.queue.backoff.ms": 5,
        "log_level": 0,
    }
