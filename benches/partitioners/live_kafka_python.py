"""The published cases on real brokers, with kafka-python's producer.

The contenders take turns, in another order in each round, on a warm broker that serves nothing else. Figures are
medians over the rounds, and a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Any

from partitioners.brokers import cpu_seconds, one_broker, three_brokers, with_benches
from partitioners.report import POINTS, Bar, Measured, Options, Result, Scenario
from partitioners.worker import Load
from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.broker import ApacheKafka

__all__ = ["EVEN", "SCENARIOS", "compare"]

PATIENCE = 180.0


class _Worker:
    """A producer's process."""

    def __init__(self, load: Load) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "partitioners.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=with_benches(),
        )
        self._tell(load.json())

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def ready(self) -> None:
        """Waits until the producer is warm."""
        if self._hear() != "ready":
            raise RuntimeError("a producer ended while it warmed up; what it said is above")

    def go(self) -> None:
        """Starts the measurement."""
        self._tell("go")

    def answer(self) -> dict[str, Any]:
        """Waits for the measurement."""
        line = self._hear()
        if not line:
            raise RuntimeError("a producer ended without an answer; what it said is above")
        answer: dict[str, Any] = json.loads(line)
        self._process.wait(PATIENCE)
        return answer

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """Kills the process and closes the pipes."""
        self._process.kill()
        self._process.communicate()


def run(loads: Sequence[Load], brokers: Sequence[ApacheKafka]) -> Measured:
    """One run of one contender, with one producer for each load."""
    with contextlib.ExitStack() as stack:
        workers = []
        for load in loads:
            worker = _Worker(load)
            stack.callback(worker.kill)
            workers.append(worker)
        for worker in workers:
            worker.ready()
        before = cpu_seconds(*brokers)
        for worker in workers:
            worker.go()
        answers = [worker.answer() for worker in workers]
        used = cpu_seconds(*brokers) - before
    # All producers sent equally much, so the points of all distributions together are the distribution of all records.
    points = sorted(point for answer in answers for point in answer["latencies"])
    return Measured(
        latencies=[points[len(answers) * number + len(answers) - 1] for number in range(POINTS)],
        records=sum(answer["records"] for answer in answers),
        batches=sum(answer["batches"] for answer in answers),
        requests=sum(answer["requests"] for answer in answers),
        seconds=fmean(answer["seconds"] for answer in answers),
        producer_cpu=sum(answer["producer_cpu"] for answer in answers),
        broker_cpu=used,
    )


# The addresses of brokers that are warm.
_warm: set[str] = set()


def warm_up(brokers: Sequence[ApacheKafka], options: Options) -> None:
    """Sends records one by one, which is the most work for the brokers, so that their JVMs compile their code."""
    address = brokers[0].bootstrap_servers
    if address in _warm:
        return
    _warm.add(address)
    topic = brokers[0].create_topic(unique("warm"), 64)
    seconds = 1 if options.quick else 15
    run([Load("round robin", address, [topic], rate=0, seconds=seconds, warm_up=0)], brokers)
    brokers[0].delete_topic(topic)


def warm_up_topics(brokers: Sequence[ApacheKafka], topics: Sequence[Sequence[str]], options: Options) -> None:
    """Writes to every partition many times. A sticky producer does not reach all 64 in its own warm-up, and on a new
    topic single appends took up to 50 ms.
    """
    seconds = 0.5 if options.quick else 3
    for each in topics:
        run([Load("round robin", brokers[0].bootstrap_servers, each, rate=0, seconds=seconds, warm_up=0)], brokers)


def compare(
    contenders: Sequence[str],
    load: Load,
    partitions: int,
    options: Options,
    producers: int = 1,
    brokers: Sequence[ApacheKafka] = (),
    active_topics: int = 1,
) -> Result:
    """All contenders under one load, in turns. Each has its own topics, and all topics are warmed up alike."""
    brokers = brokers or [one_broker()]
    warm_up(brokers, options)
    topics = {
        name: [brokers[0].create_topic(unique("bench"), partitions) for _ in range(active_topics)]
        for name in contenders
    }
    warm_up_topics(brokers, list(topics.values()), options)
    shared = replace(
        load,
        bootstrap=brokers[0].bootstrap_servers,
        rate=load.rate / producers,
        seconds=min(load.seconds, 2.0) if options.quick else load.seconds,
    )
    runs: dict[str, list[Measured]] = {name: [] for name in contenders}
    for number in range(options.rounds):
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            own = replace(shared, contender=name, topics=topics[name])
            runs[name].append(run([own] * producers, brokers))
    for topic in chain.from_iterable(topics.values()):
        brokers[0].delete_topic(topic)
    return Result(runs)


EVERYBODY = ("round robin", "random", "sticky")
# `compare` sets the topics.
EVEN = Load(contender="", bootstrap="", topics=(), rate=1_000, seconds=5)


def lingering(partitions: int, producers: int = 1) -> Callable[[Options], Result]:
    """KIP-480: linger 1,000, 1,000 records a second."""

    def scenario(options: Options) -> Result:
        load = replace(EVEN, linger_ms=1_000, seconds=8)
        others = ("kafka-python's sticky",) if (partitions, producers) == (16, 1) else ()
        result = compare([*EVERYBODY[:2], *others, "sticky"], load, partitions, options, producers)
        for other in EVERYBODY[:2]:
            ratio = result.ratio("p99_ms", "sticky", other)
            what = f"sticky's p99 over {other}'s"
            if partitions == 1:
                result.bars.append(Bar(what, ratio, at_most=1.1, at_least=0.9))
            elif producers == 1:
                result.bars.append(Bar(what, ratio, at_most=0.5))
            else:
                # With a third of the records a batch fills in 540 ms, which is more than half of the linger.
                result.bars.append(Bar(what, ratio, at_most=0.6))
        if partitions >= 16:
            ratio = result.ratio("batches_per_1000", "sticky", "round robin")
            result.bars.append(Bar("sticky's batches over round robin's", ratio, at_most=0.999))
        return result

    return scenario


def bursts(rate: int, burst: float, flush: bool = False, cpu: bool = False) -> Callable[[Options], Result]:
    """Linger 0 and 64 partitions. The records of each `burst` seconds are sent at once.

    Trogdor, with which KIP-480 was measured, sends a burst each 100 ms. At high rates such a burst fills batches with
    any partitioner. Bursts of 10 ms are those of a program that sends the records that it has just read.
    """

    def scenario(options: Options) -> Result:
        # With fewer bursts, p99 would be the latency of the slowest one.
        load = replace(EVEN, rate=rate, burst=burst, flush=flush, seconds=150 * burst if burst >= 0.1 else 5)
        result = compare(EVERYBODY, load, 64, options)
        result.bars = [
            Bar("sticky's p99 over round robin's", result.ratio("p99_ms", "sticky", "round robin"), at_most=2 / 3)
        ]
        for whose in ("broker", "producer") if cpu else ():
            points = result.difference(f"{whose}_cpu_percent", "sticky", "round robin")
            result.bars.append(Bar(f"points of {whose} CPU, sticky less round robin", points, at_most=-5))
        return result

    return scenario


def slow(options: Options) -> Result:
    """Linger 0, 1,000 evenly paced records a second: each batch has one record, so no partitioner is faster."""
    result = compare(EVERYBODY, EVEN, 16, options)
    result.bars = [Bar("sticky's p50 over round robin's", result.ratio("p50_ms", "sticky", "round robin"), at_most=1.1)]
    return result


def saturated(linger_ms: int) -> Callable[[Options], Result]:
    """As many records as the producer can send, with at most 5,000 unanswered."""

    def scenario(options: Options) -> Result:
        result = compare(EVERYBODY, replace(EVEN, rate=0, linger_ms=linger_ms), 16, options)
        ratio = result.ratio("records_per_second", "sticky", "round robin")
        result.bars = [
            Bar("sticky's p99 over round robin's", result.ratio("p99_ms", "sticky", "round robin"), at_most=1.0)
        ]
        if linger_ms:
            result.bars.append(Bar("sticky's records a second over round robin's", ratio, at_least=0.9))
        else:
            result.notes = [f"sticky's records a second over round robin's: {ratio:.2f}"]
        return result

    return scenario


def keyed(options: Options) -> Result:
    """Records with keys: both producers hash them; ours also calls `on_new_batch` for each batch."""
    result = compare(("kafka-python's default", "sticky"), replace(EVEN, keys=1_000), 16, options)
    ratio = result.ratio("p50_ms", "sticky", "kafka-python's default")
    result.bars = [Bar("p50 of keyed records over kafka-python's", ratio, at_most=1.1)]
    return result


def slow_broker(options: Options) -> Result:
    """KIP-794: three brokers, of which one delays each response by 20 ms."""
    load = replace(EVEN, rate=2_600, seconds=15, value_bytes=512)
    with three_brokers(0.020) as brokers:
        result = compare(("random", "sticky", "adaptive"), load, 3, options, brokers=brokers)
    result.bars = [Bar("KIP-480's p99 over adaptive's", result.ratio("p99_ms", "sticky", "adaptive"), at_least=10)]
    return result


_RECORDS = "records of 80 bytes a second"
SCENARIOS = (
    *(
        Scenario(
            f"kafka-python-linger-1000-{partitions}",
            f"kafka-python: linger 1,000 ms, 1,000 {_RECORDS}, partitions: {partitions}",
            lingering(partitions),
        )
        for partitions in (1, 4, 16, 64)
    ),
    Scenario(
        "kafka-python-linger-1000-three-producers",
        f"kafka-python: linger 1,000 ms, 3 producers of 333 {_RECORDS}, 16 partitions",
        lingering(16, producers=3),
    ),
    Scenario(
        "kafka-python-bursts",
        f"kafka-python: linger 0, 1,000 {_RECORDS} in bursts of 100 ms, 64 partitions",
        bursts(1_000, 0.1),
    ),
    Scenario(
        "kafka-python-bursts-flushed",
        f"kafka-python: linger 0, 1,000 {_RECORDS} in bursts of 100 ms, each flushed, 64 partitions",
        bursts(1_000, 0.1, flush=True),
    ),
    Scenario(
        "kafka-python-5000",
        f"kafka-python: linger 0, 5,000 {_RECORDS} in bursts of 10 ms, 64 partitions",
        bursts(5_000, 0.01),
    ),
    Scenario(
        "kafka-python-10000",
        f"kafka-python: linger 0, 10,000 {_RECORDS} in bursts of 10 ms, 64 partitions",
        bursts(10_000, 0.01, cpu=True),
    ),
    Scenario("kafka-python-1000", f"kafka-python: linger 0, 1,000 {_RECORDS}, evenly, 16 partitions", slow),
    Scenario("kafka-python-saturated", "kafka-python: linger 0, saturated, 16 partitions", saturated(0)),
    Scenario("kafka-python-saturated-linger-5", "kafka-python: linger 5 ms, saturated, 16 partitions", saturated(5)),
    Scenario("kafka-python-keyed", f"kafka-python: linger 0, 1,000 keyed {_RECORDS}, 16 partitions", keyed),
    Scenario(
        "kafka-python-slow-broker",
        "kafka-python: 2,600 records of 512 bytes a second, 3 brokers, one holds each response for 20 ms",
        slow_broker,
    ),
)
