"""Our confluent producer, which estimates the ends of librdkafka's batches, beside librdkafka's sticky partitioner.

Both contenders send evenly paced records without a key, in turns, in another order in each round. librdkafka counts the
requests, one for each batch, and measures the latency of each record, from `produce` to the broker's answer.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka

from kafka_assignors import DefaultPartitioner
from kafka_assignors.clients.confluent import Producer
from partitioners.report import Bar, Measured, Options, Result, Scenario, quantiles
from support.broker import ApacheKafka, unique

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SCENARIOS"]

NATIVE, OURS = "librdkafka's sticky", "our sticky"
VALUE = bytes(80)
PARTITIONS = 16
PATIENCE = 60.0
# Seconds of the same load before the measurement.
WARM_UP = 1.0
STATISTICS_MS = 50


@dataclass(frozen=True)
class Load:
    """The load of one producer.

    Attributes:
        linger_ms: as librdkafka's.
        rate: records a second.
        batch_size: as librdkafka's; None is its default, a million bytes.
    """

    linger_ms: int
    rate: int
    batch_size: int | None

    @property
    def size_ends_batches(self) -> bool:
        """Whether a batch is full before the end of its linger."""
        return self.batch_size is not None and self.rate * self.linger_ms / 1_000 * len(VALUE) >= self.batch_size

    @property
    def name(self) -> str:
        """The name for `--only`."""
        size = f"-{self.batch_size}" if self.size_ends_batches else ""
        return f"librdkafka-linger-{self.linger_ms}-{self.rate}{size}"

    @property
    def title(self) -> str:
        """The title of the table."""
        size = "librdkafka's default" if self.batch_size is None else f"{self.batch_size:,}"
        ended = "batch.size" if self.size_ends_batches else "the linger"
        return (
            f"librdkafka: linger {self.linger_ms:,} ms, {self.rate:,} records of {len(VALUE)} bytes a second, "
            f"batch.size {size}, partitions: {PARTITIONS}; {ended} ends batches"
        )

    def settings(self, bootstrap: str) -> dict[str, Any]:
        """The settings of the producer."""
        settings = {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": self.linger_ms}
        return settings if self.batch_size is None else settings | {"batch.size": self.batch_size}


# The published results have 16,384 bytes. Where this size, and not the linger, would end the batches, there is a second
# load with a larger size.
LOADS = (
    *(Load(linger, 1_000, 16_384) for linger in (5, 20, 100)),
    Load(5, 20_000, 16_384),
    *(Load(linger, 20_000, size) for linger in (20, 100) for size in (None, 16_384)),
    Load(1_000, 1_000, 16_384),
)


class _Sending:
    """One producer with its counts. Statistics and delivery reports come in the order of the events."""

    def __init__(self, load: Load, bootstrap: str, ours: bool) -> None:
        self.latencies: list[float] = []
        self.failures: list[object] = []
        self._rate = load.rate
        self._statistics: list[str] = []
        settings = load.settings(bootstrap)
        settings |= {"stats_cb": self._statistics.append, "statistics.interval.ms": STATISTICS_MS}
        self.producer: confluent_kafka.Producer
        if ours:
            self.producer = Producer(settings, partitioner=DefaultPartitioner())
        else:
            self.producer = confluent_kafka.Producer(settings)

    def run(self, topic: str, seconds: float) -> None:
        """Sends for a number of seconds, and waits until the linger is over: a flush would end it early."""
        produce, poll, clock = self.producer.produce, self.producer.poll, time.perf_counter
        start = clock()
        for number in range(int(self._rate * seconds)):
            due = start + number / self._rate
            while (early := due - clock()) > 0:
                poll(0)
                time.sleep(min(early, 0.001))
            produce(topic, VALUE, on_delivery=self._delivered)
        late = clock() + PATIENCE
        while self._read(1)["msg_cnt"]:
            if clock() > late:
                raise TimeoutError(f"records were not answered within {PATIENCE} s")

    def requests(self) -> int:
        """The produce requests so far, from the second statistics from now on: the first may be older than the call."""
        return sum(broker["req"]["Produce"] for broker in self._read(2)["brokers"].values())

    def _read(self, nth: int) -> Any:
        self._statistics.clear()
        late = time.perf_counter() + PATIENCE
        while len(self._statistics) < nth:
            if time.perf_counter() > late:
                raise TimeoutError(f"librdkafka gave no statistics within {PATIENCE} s")
            self.producer.poll(STATISTICS_MS / 1_000)
        return json.loads(self._statistics[-1])

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        latency = message.latency()
        if error is not None or latency is None:
            self.failures.append(error)
        else:
            self.latencies.append(latency)


def measure(load: Load, bootstrap: str, topic: str, ours: bool, seconds: float) -> Measured:
    """One run of one contender."""
    sending = _Sending(load, bootstrap, ours)
    with sending.producer:
        sending.run(topic, max(WARM_UP, 2 * load.linger_ms / 1_000))
        before = sending.requests()
        sending.latencies.clear()
        cpu, start = time.process_time(), time.perf_counter()
        sending.run(topic, seconds)
        cpu, elapsed = time.process_time() - cpu, time.perf_counter() - start
        requests = sending.requests() - before
    if sending.failures:
        raise RuntimeError(f"{len(sending.failures)} records were lost: {sending.failures[:1]}")
    return Measured(
        latencies=quantiles(sending.latencies),
        records=len(sending.latencies),
        batches=requests,
        requests=requests,
        seconds=elapsed,
        producer_cpu=cpu,
    )


@cache
def broker() -> ApacheKafka:
    """A broker for all scenarios of this module. It ends with the process."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-librdkafka-"))
    return stack.enter_context(ApacheKafka(Path(directory) / "broker"))


@cache
def warm_topic() -> str:
    """A topic with records in all partitions: for the first record of a partition the broker creates files."""
    kafka = broker()
    topic = kafka.create_topic(unique("bench"), PARTITIONS)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for _ in range(50):
        for number in range(PARTITIONS):
            producer.produce(topic, VALUE, partition=number)
        if producer.flush(PATIENCE):
            raise TimeoutError(f"the broker did not take its first records within {PATIENCE} s")
    return topic


def beside_librdkafka(load: Load) -> Callable[[Options], Result]:
    """Both contenders under one load."""

    def scenario(options: Options) -> Result:
        bootstrap, topic = broker().bootstrap_servers, warm_topic()
        # At least ten lingers, so that the last one has little effect.
        seconds = max(1.0 if options.quick else 5.0, (3 if options.quick else 10) * load.linger_ms / 1_000)
        runs: dict[str, list[Measured]] = {NATIVE: [], OURS: []}
        for number in range(options.rounds):
            for name in list(runs) if number % 2 == 0 else reversed(list(runs)):
                runs[name].append(measure(load, bootstrap, topic, name == OURS, seconds))
        result = Result(runs)
        result.bars = [
            Bar(
                "our requests per record over librdkafka's",
                result.ratio("batches_per_1000", OURS, NATIVE),
                at_most=1.05,
            ),
            Bar("our p50 over librdkafka's", result.ratio("p50_ms", OURS, NATIVE), at_most=1.1),
        ]
        return result

    return scenario


SCENARIOS = tuple(Scenario(load.name, load.title, beside_librdkafka(load)) for load in LOADS)
