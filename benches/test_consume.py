"""What our confluent consumer adds to reading: against confluent-kafka's own, on the same records."""

from __future__ import annotations

import statistics
import subprocess
import sys
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import confluent_kafka
import pytest

from kafka_assignors.clients.confluent import Consumer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

    from conftest import Ratio

RECORDS, PARTITIONS, VALUE = 1_000_000, 6, bytes(100)
ROUNDS = 7
BATCH = 500
TIMEOUT = 60.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """An embedded Kafka in a process of its own, so that it takes nothing of what is measured, with all records."""
    arguments = ["--port", "0", "--topic", f"orders={PARTITIONS}"]
    command = [sys.executable, "-P", "-m", "kafka_assignors.embedded", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "linger.ms": 50,
                "queue.buffering.max.messages": RECORDS,
                "queue.buffering.max.kbytes": 1 << 20,
                "log_level": 0,
            }
        )
        for number in range(RECORDS):
            producer.produce("orders", VALUE, partition=number % PARTITIONS)
        assert producer.flush(TIMEOUT) == 0
        yield address
        process.terminate()


def read(kind: type[confluent_kafka.Consumer], address: str, how: str) -> tuple[float, float]:
    """Wall and thread time of reading everything, from the first record on."""
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": str(uuid4()),
        "auto.offset.reset": "earliest",
        # With the default of a second a consumer waits most of the time.
        "fetch.queue.backoff.ms": 5,
        "log_level": 0,
    }
    consumer = kind(settings)
    consumer.subscribe(["orders"])
    count = 0
    while count == 0:
        count += len(consumer.consume(1, 1.0))
    wall, cpu = perf_counter(), thread_time()
    if how == "consume":
        while count < RECORDS:
            count += len(consumer.consume(BATCH, 1.0))
    else:
        while count < RECORDS:
            if consumer.poll(1.0) is not None:
                count += 1
    taken = perf_counter() - wall, thread_time() - cpu
    consumer.close()
    assert count == RECORDS
    return taken


@pytest.mark.parametrize(("how", "name"), [("consume", "consume(500)"), ("poll", "poll()")])
def test_reading(benchmark: BenchmarkFixture, ratio: Ratio, address: str, how: str, name: str) -> None:
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []

    def round_of_ours() -> None:
        ours.append(read(Consumer, address, how))

    benchmark.pedantic(
        round_of_ours, setup=lambda: theirs.append(read(confluent_kafka.Consumer, address, how)), rounds=ROUNDS
    )
    for what, at in (("thread time", 1), ("wall time", 0)):
        mine, bare = (statistics.median(each[at] for each in taken) for taken in (ours, theirs))
        ratio.at_most("bare-consumer", f"{name}, {what}", mine, bare, f"{RECORDS:,} records of {len(VALUE)} bytes")
