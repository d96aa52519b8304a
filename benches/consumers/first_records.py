"""How long it takes, while records arrive, until the new owner of a partition returns the first record of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from statistics import fmean, median
from typing import TYPE_CHECKING

import confluent_kafka

from consumers.group import Group, spread
from consumers.member import Spec
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from consumers.group import Phases
    from support.broker import Kafka

__all__ = ["compare", "typical"]

PARTITIONS = 12
# The seconds between two records of a partition.
INTERVAL = 0.01

Delays = dict[str, list[float]]
"""By `joins` and `leaves`, for each event the mean over the gained partitions, in seconds."""


@contextlib.contextmanager
def written(kafka: Kafka, topic: str) -> Iterator[None]:
    """Writes records to every partition, again and again."""
    stopped = threading.Event()

    def write() -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        while not stopped.wait(INTERVAL):
            for partition in range(PARTITIONS):
                producer.produce(topic, b"v", partition=partition)
            producer.poll(0)
        producer.flush(30)

    writing = threading.Thread(target=write, name="written")
    writing.start()
    try:
        yield
    finally:
        stopped.set()
        writing.join()


def measure(spec: Spec, phases: Phases) -> Delays:
    """Measures a group of one member, which a second member joins and leaves once for each pair of phases.

    Half of the partitions move to the second member, and back when it leaves.
    """
    delays: Delays = defaultdict(list)
    interval = spec.heartbeat_ms / 1000
    with Group(spec, members=1, partitions=PARTITIONS, processes=1) as group:
        group.first_records(PARTITIONS)
        for pair in phases:
            for name, change, phase in zip(("joins", "leaves"), (group.join, group.leave), pair, strict=True):
                time.sleep(interval * (1 + phase))
                change()
                delays[name].append(fmean(group.first_records(PARTITIONS // 2)))
    return delays


def compare(kafka: Kafka, contenders: Sequence[str], heartbeat_ms: int, rounds: int, events: int) -> dict[str, Delays]:
    """The contenders in turns, in another order in each round, all with the same phases of the heartbeat interval.

    A first group of each contender is not measured.

    Returns:
        By contender the delays, in the order of the phases, which is the same for all.
    """
    topic = kafka.create_topic(unique("bench"), PARTITIONS)
    found: dict[str, Delays] = {name: defaultdict(list) for name in contenders}

    def group(name: str, phases: Phases) -> Delays:
        return measure(Spec(name, kafka.bootstrap_servers, unique("bench"), topic, heartbeat_ms, commits=True), phases)

    with written(kafka, topic):
        for name in contenders:
            group(name, [(0.0, 0.0)])
        for number, phases in enumerate(spread(rounds, events, seed=heartbeat_ms)):
            for name in contenders if number % 2 == 0 else reversed(contenders):
                for change, delays in group(name, phases).items():
                    found[name][change] += delays
    return found


def typical(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """A delay of ours and one of theirs, of delays with the same phases of the heartbeat interval.

    Most of a delay is the wait for the next heartbeat, which the phase sets; the client adds one hundredth of it. After
    a join just before a heartbeat, chance decides whether this heartbeat or only the next one reports the rebalance.
    This moves the median of twenty delays by several hundredths, but not the median of the differences at one phase.

    Returns:
        Ours and theirs, in seconds: theirs is the median of `theirs`, ours is this median plus the median difference.

    >>> typical([0.5, 0.375, 0.25], [0.0, 0.25, 0.125])
    (0.25, 0.125)
    """
    reference = median(theirs)
    return reference + median(a - b for a, b in zip(ours, theirs, strict=True)), reference
