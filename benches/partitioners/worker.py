"""A process with a producer of kafka-python under load. `live_kafka_python` starts it and writes a `Load` to its
standard input; the process writes the results to its standard output.

It prints `ready` when its producer, its topic and its own code are warm, and starts to measure when it reads `go`.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import kafka
from kafka.structs import TopicPartition

from kafka_assignors.clients.kafka_python import (
    AdaptivePartitioner,
    DefaultPartitioner,
    KafkaProducer,
    RoundRobinPartitioner,
)
from partitioners.baselines import RandomPartitioner
from partitioners.report import quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CONTENDERS", "Load"]

# Our producer, or kafka-python's with one of the partitioners.
CONTENDERS: dict[str, Any] = {
    "sticky": lambda load: KafkaProducer(partitioner=DefaultPartitioner(), **load.settings),
    "adaptive": lambda load: KafkaProducer(
        partitioner=AdaptivePartitioner(batch_size=load.batch_size), **load.settings
    ),
    "round robin": lambda load: kafka.KafkaProducer(partitioner=RoundRobinPartitioner(), **load.settings),
    "random": lambda load: kafka.KafkaProducer(partitioner=RandomPartitioner(), **load.settings),
    "kafka-python's sticky": lambda load: kafka.KafkaProducer(
        partitioner=kafka.partitioner.StickyPartitioner(), **load.settings
    ),
    "kafka-python's default": lambda load: kafka.KafkaProducer(**load.settings),
}

# The largest number of unanswered records of a saturated producer. kafka-python itself has no limit.
WINDOW = 5_000


@dataclass(frozen=True)
class Load:
    """The load of one producer.

    Attributes:
        contender: one of `CONTENDERS`.
        bootstrap: the brokers' addresses.
        topics: that exist; the records go to one after the other.
        rate: records a second; 0 is as many as it can.
        seconds: for how long, after the warm-up.
        burst: seconds between bursts; 0 is one record at a time, evenly.
        flush: whether each burst is flushed.
        linger_ms: as kafka-python's.
        value_bytes: of each record.
        keys: of how many different ones each record has one; 0 is none.
        batch_size: as kafka-python's.
        warm_up: seconds of the same load before.
    """

    contender: str
    bootstrap: str
    topics: Sequence[str]
    rate: float
    seconds: float
    burst: float = 0.0
    flush: bool = False
    linger_ms: int = 0
    value_bytes: int = 80
    keys: int = 0
    batch_size: int = 16_384
    warm_up: float = 1.5

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the producer."""
        return {
            "bootstrap_servers": self.bootstrap.split(","),
            "linger_ms": self.linger_ms,
            "batch_size": self.batch_size,
        }

    def json(self) -> str:
        """The line for the worker's standard input."""
        return json.dumps(asdict(self))


class _Counter:
    """Counts requests and batches when the sender takes them from the accumulator."""

    def __init__(self, producer: Any) -> None:
        self.requests = self.batches = 0
        self._drain = producer._accumulator.drain
        producer._accumulator.drain = self.drain

    def drain(self, *arguments: Any, **named: Any) -> Any:
        drained = self._drain(*arguments, **named)
        for batches in drained.values():
            if batches:
                self.requests += 1
                self.batches += len(batches)
        return drained


class _Sending:
    def __init__(self, load: Load, producer: Any) -> None:
        self.load = load
        self.producer = producer
        self.value = bytes(load.value_bytes)
        self.keys: list[bytes | None] = [b"key-%d" % number for number in range(load.keys)] or [None]
        self.latencies: list[float] = []
        self.errors: list[BaseException] = []
        self.sent = 0
        self.room = threading.BoundedSemaphore(WINDOW) if not load.rate else None

    def run(self, seconds: float) -> None:
        """Sends for a number of seconds and waits for all answers."""
        load, start = self.load, time.perf_counter()
        if not load.rate:
            while time.perf_counter() < start + seconds:
                self.room.acquire()  # type: ignore[union-attr]
                self.send()
        else:
            total, step = round(load.rate * seconds), load.burst or 1 / load.rate
            while self.sent < total:
                elapsed = time.perf_counter() - start
                due = min(total, (int(elapsed / step) + 1) * round(load.rate * step))
                if due > self.sent:
                    while self.sent < due:
                        self.send()
                    if load.flush:
                        self.producer.flush()
                else:
                    time.sleep((int(elapsed / step) + 1) * step - elapsed)
        self.producer.flush()

    def send(self) -> None:
        key = self.keys[self.sent % len(self.keys)]
        topic = self.load.topics[self.sent % len(self.load.topics)]
        self.sent += 1
        before = time.perf_counter()
        self.producer.send(topic, self.value, key=key).add_callback(self.answered, before).add_errback(
            self.errors.append
        )

    def answered(self, before: float, metadata: object) -> None:
        self.latencies.append(time.perf_counter() - before)
        if self.room is not None:
            self.room.release()


def main() -> None:
    """Reads a `Load`, warms up, prints `ready`, and measures after `go`."""
    load = Load(**json.loads(sys.stdin.readline()))
    with CONTENDERS[load.contender](load) as producer:
        counter = _Counter(producer)
        for topic in load.topics:
            partitions = sorted(producer.partitions_for(topic))
            # For the first record of a partition the broker creates files.
            for future in [producer.send(topic, b"", partition=number) for number in partitions]:
                producer.flush()
                future.get(timeout=60)
            assert TopicPartition(topic, 0) in producer._accumulator._batches
        _Sending(load, producer).run(load.warm_up)
        print("ready", flush=True)
        sys.stdin.readline()
        sending = _Sending(load, producer)
        # A full garbage collection takes longer than a burst, and does not depend on the partitioner.
        gc.collect()
        gc.freeze()
        counter.requests = counter.batches = 0
        cpu, start = time.process_time(), time.perf_counter()
        sending.run(load.seconds)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    if sending.errors or len(sending.latencies) != sending.sent:
        raise RuntimeError(f"{sending.sent - len(sending.latencies)} records were lost: {sending.errors[:1]}")
    answer = {
        "latencies": quantiles(sending.latencies),
        "records": sending.sent,
        "batches": counter.batches,
        "requests": counter.requests,
        "seconds": seconds,
        "producer_cpu": cpu,
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
