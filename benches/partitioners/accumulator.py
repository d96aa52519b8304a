"""A producer's accumulator, sender and brokers as a discrete-event simulation, without clock or randomness of its own.

It follows Java's producer, and calls the partitioner as `Partitioner` documents:

- A record is appended to the last batch of its partition. If this batch has no room, it is closed. After that, or if no
  batch is open, `on_new_batch` is called and the partitioner is called again.
- A batch is full when its bytes reach the batch size, or when a record did not fit. As in the real producer, a batch
  without room for the next record is not full before this record comes.
- A batch may be sent when it is full, when another waits behind it, or when its linger is over. The request with such a
  batch also takes the first batch of each other partition of the broker.
- A broker answers its requests one after the other, each after its delay, and has at most `in_flight` of them.
- A partitioner with `update_load` gets the queues at each turn of the sender.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_assignors import Partitioner

__all__ = ["Cluster", "Outcome", "Setting", "run"]

TOPIC = "t"

# The bytes of a batch in the format (version 2), and about those of a record without key and headers, less its value.
BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 9


@dataclass(frozen=True)
class Setting:
    """One producer, its topic and its brokers.

    Attributes:
        partitions: of the topic; partition p is led by broker p modulo their number.
        delays: seconds that each broker takes for a request.
        rate: records a second, evenly spaced.
        seconds: for how long.
        value_bytes: of each record.
        linger: seconds.
        batch_size: bytes.
        in_flight: requests that a broker may have at a time.
        load: whether `update_load` of an adaptive partitioner is called.
    """

    partitions: int
    delays: Sequence[float]
    rate: float
    seconds: float
    value_bytes: int = 80
    linger: float = 0.0
    batch_size: int = 16_384
    in_flight: int = 5
    load: bool = True

    def __post_init__(self) -> None:
        for name in ("partitions", "rate", "seconds", "batch_size", "in_flight"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; give more than 0")
        if not self.delays or min(self.delays) < 0 or self.linger < 0:
            raise ValueError("give the delay of at least one broker; neither delays nor the linger are negative")


@dataclass
class Outcome:
    """The result of a run.

    Attributes:
        latencies: seconds from `send` to the answer, in the order of sending.
        batches: how many were sent.
        requests: in how many requests.
        records: by partition.
    """

    latencies: list[float] = field(default_factory=list)
    batches: int = 0
    requests: int = 0
    records: list[int] = field(default_factory=list)

    def percentile(self, percent: float) -> float:
        """The least latency that this percentage of the records does not exceed."""
        ordered = sorted(self.latencies)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Cluster:
    """The metadata for partitioners: all partitions have a leader."""

    def __init__(self, partitions: int) -> None:
        self._numbers = frozenset(range(partitions))

    def partitions_for_topic(self, topic: str, /) -> frozenset[int] | None:
        """All partitions of the only topic."""
        return self._numbers if topic == TOPIC else None

    def available_partitions_for_topic(self, topic: str, /) -> frozenset[int] | None:
        """All partitions."""
        return self.partitions_for_topic(topic)


@dataclass
class _Batch:
    opened: float
    size: int = BATCH_OVERHEAD
    closed: bool = False
    # The numbers of the records in the batch.
    records: list[int] = field(default_factory=list)


@dataclass
class _Broker:
    delay: float
    partitions: list[int]
    # The time at which the broker has answered all its requests.
    free: float = 0.0
    in_flight: int = 0


class _Simulation:
    def __init__(self, partitioner: Partitioner, setting: Setting) -> None:
        self.setting = setting
        self.partitioner: Any = partitioner
        self.tell = setting.load and hasattr(partitioner, "update_load")
        self.cluster = Cluster(setting.partitions)
        self.value = bytes(setting.value_bytes)
        self.queues: list[deque[_Batch]] = [deque() for _ in range(setting.partitions)]
        count = len(setting.delays)
        self.brokers = [
            _Broker(delay, list(range(number, setting.partitions, count)))
            for number, delay in enumerate(setting.delays)
        ]
        self.sent = math.floor(setting.rate * setting.seconds)
        self.outcome = Outcome([math.nan] * self.sent, records=[0] * setting.partitions)
        # (time, order of insertion, action). The order of insertion makes runs with equal times repeatable.
        self.events: list[tuple[float, int, _Broker | None, list[_Batch]]] = []
        self.inserted = 0

    def run(self) -> Outcome:
        number, period = 0, 1 / self.setting.rate
        while number < self.sent or self.events:
            arrival = number * period if number < self.sent else math.inf
            if self.events and self.events[0][0] <= arrival:
                now, _, broker, batches = heapq.heappop(self.events)
                if broker is not None:
                    self.answered(now, broker, batches)
            else:
                now = arrival
                self.append(now, number)
                number += 1
            self.send(now)
        return self.outcome

    def at(self, time: float, broker: _Broker | None = None, batches: Sequence[_Batch] = ()) -> None:
        self.inserted += 1
        heapq.heappush(self.events, (time, self.inserted, broker, list(batches)))

    def append(self, now: float, number: int) -> None:
        partition = self.ask()
        if not self.fits(partition):
            self.partitioner.on_new_batch(TOPIC, self.cluster, partition)
            partition = self.ask()
            if not self.fits(partition):
                self.queues[partition].append(_Batch(now))
                if self.setting.linger:
                    self.at(now + self.setting.linger)
        batch = self.queues[partition][-1]
        batch.records.append(number)
        batch.size += self.setting.value_bytes + RECORD_OVERHEAD
        batch.closed = batch.closed or batch.size >= self.setting.batch_size
        self.outcome.records[partition] += 1

    def ask(self) -> int:
        partition: int = self.partitioner.partition(TOPIC, None, None, None, self.value, self.cluster)
        return partition

    def fits(self, partition: int) -> bool:
        """Whether a record fits into the partition's last batch. If not, the batch is closed."""
        queue = self.queues[partition]
        if not queue or queue[-1].closed:
            return False
        last = queue[-1]
        last.closed = last.size + self.setting.value_bytes + RECORD_OVERHEAD > self.setting.batch_size
        return not last.closed

    def send(self, now: float) -> None:
        if self.tell:
            self.partitioner.update_load(TOPIC, [len(queue) for queue in self.queues], ())
        for broker in self.brokers:
            while broker.in_flight < self.setting.in_flight and self.ready(now, broker):
                batches = [self.queues[each].popleft() for each in broker.partitions if self.queues[each]]
                broker.in_flight += 1
                broker.free = max(now, broker.free) + broker.delay
                self.at(broker.free, broker, batches)
                self.outcome.batches += len(batches)
                self.outcome.requests += 1

    def ready(self, now: float, broker: _Broker) -> bool:
        for partition in broker.partitions:
            queue = self.queues[partition]
            if queue and (len(queue) > 1 or queue[0].closed or now >= queue[0].opened + self.setting.linger):
                return True
        return False

    def answered(self, now: float, broker: _Broker, batches: Sequence[_Batch]) -> None:
        broker.in_flight -= 1
        for batch in batches:
            for number in batch.records:
                self.outcome.latencies[number] = now - number / self.setting.rate


def run(partitioner: Partitioner, setting: Setting) -> Outcome:
    """Sends all records of a setting, and waits for all answers.

    Args:
        partitioner: a fresh one, seeded, if the outcome is to be repeatable.
        setting: producer, topic and brokers.
    """
    return _Simulation(partitioner, setting).run()
