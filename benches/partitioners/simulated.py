"""The published cases in the simulator. They are seeded, so the results are the same on every machine."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from kafka_assignors import AdaptivePartitioner, DefaultPartitioner, RoundRobinPartitioner
from partitioners.accumulator import Setting, run
from partitioners.baselines import RandomPartitioner
from partitioners.report import Bar, Measured, Options, Result, Scenario, quantiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors import Partitioner

__all__ = ["SCENARIOS"]

SEED = 794

# The time of a request to a healthy broker, with the round trip.
WELL = 0.001


def measure(partitioner: Partitioner, setting: Setting) -> Measured:
    """One run, in the form of the other benchmarks."""
    outcome = run(partitioner, setting)
    seconds = setting.seconds + max(outcome.latencies)
    return Measured(quantiles(outcome.latencies), len(outcome.latencies), outcome.batches, outcome.requests, seconds)


def slow_broker(options: Options) -> Result:
    """The case of KIP-794: three brokers, of which one takes 20 ms for each response, and a megabyte a second."""
    setting = Setting(
        partitions=3, delays=(0.020, WELL, WELL), rate=2_048, seconds=10 if options.quick else 60, value_bytes=512
    )
    untold = dataclasses.replace(setting, load=False)
    contenders: dict[str, tuple[Partitioner, Setting]] = {
        "random": (RandomPartitioner(SEED), setting),
        "KIP-480 sticky": (DefaultPartitioner(seed=SEED), setting),
        "KIP-794 uniform": (AdaptivePartitioner(seed=SEED), untold),
        "KIP-794 adaptive": (AdaptivePartitioner(seed=SEED), setting),
    }
    result = Result({name: [measure(*contender)] for name, contender in contenders.items()})
    result.bars = [
        Bar("KIP-480's p99 over adaptive's", result.ratio("p99_ms", "KIP-480 sticky", "KIP-794 adaptive"), at_least=30),
        Bar("adaptive's p99 over random's", result.ratio("p99_ms", "KIP-794 adaptive", "random"), at_most=1.3),
    ]
    return result


def lingering(partitions: int) -> Callable[[Options], Result]:
    """The case of KIP-480 with a linger of 1,000: 1,000 records a second, one producer, one broker."""

    def scenario(options: Options) -> Result:
        setting = Setting(
            partitions=partitions, delays=(WELL,), rate=1_000, seconds=5 if options.quick else 60, linger=1.0
        )
        contenders: dict[str, Partitioner] = {
            "round robin": RoundRobinPartitioner(),
            "random": RandomPartitioner(SEED),
            "sticky": DefaultPartitioner(seed=SEED),
            "adaptive": AdaptivePartitioner(seed=SEED),
        }
        result = Result({name: [measure(partitioner, setting)] for name, partitioner in contenders.items()})
        against = result.ratio("p99_ms", "sticky", "round robin")
        if partitions == 1:
            result.bars = [Bar("sticky's p99 over round robin's", against, at_most=1.01, at_least=0.99)]
        else:
            result.bars = [Bar("sticky's p99 over round robin's", against, at_most=0.5)]
        if partitions >= 16:
            batches = result.ratio("batches_per_1000", "sticky", "round robin")
            result.bars.append(Bar("sticky's batches over round robin's", batches, at_most=0.999))
        return result

    return scenario


SCENARIOS = (
    Scenario(
        "simulated-slow-broker",
        "Simulated: 2,048 records of 512 bytes a second, 3 partitions, 20 ms for each response of one broker",
        slow_broker,
    ),
    *(
        Scenario(
            f"simulated-linger-1000-{partitions}",
            f"Simulated: linger 1,000 ms, 1,000 records of 80 bytes a second, partitions: {partitions}",
            lingering(partitions),
        )
        for partitions in (1, 4, 16, 64)
    ),
)
