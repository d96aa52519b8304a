"""KIP-480's own cases, row by row, on a real broker: round robin, which was the default then, beside the sticky one.

Trogdor, with which the document was measured, sends the records of 100 ms at a time, to its active topics in turn. So
does this producer. In a row each contender sends for two minutes, in as many turns as there are rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from partitioners.live_kafka_python import EVEN, compare
from partitioners.report import Bar, Options, Result, Scenario

if TYPE_CHECKING:
    from partitioners.worker import Load

__all__ = ["SCENARIOS"]

ACTIVE_TOPICS = 4
PARTITIONS = 16
SECONDS = 120
STICKY = "sticky"
BURSTS = replace(EVEN, burst=0.1)


@dataclass(frozen=True)
class Row:
    """One case of the document.

    Attributes:
        name: for `--only`.
        case: for the title of the table.
        load: of one producer; the rest is the same in all rows.
        p99: bounds of sticky's p99 divided by the other partitioner's.
        broker_cpu: an upper bound of the same ratio for the broker's processor time; None is no bound.
        before: the other partitioner, as before KIP-480: round robin, or the hash of the key for records with keys.
    """

    name: str
    case: str
    load: Load
    p99: tuple[float, float]
    broker_cpu: float | None = None
    before: str = "round robin"

    def run(self, options: Options) -> Result:
        """Measures the row."""
        load = replace(self.load, seconds=SECONDS / options.rounds)
        result = compare((self.before, STICKY), load, PARTITIONS, options, active_topics=ACTIVE_TOPICS)

        def ratio(figure: str) -> float:
            return result.ratio(figure, STICKY, self.before)

        least, most = self.p99
        result.bars = [Bar(f"sticky's p99 over {self.before}'s", ratio("p99_ms"), at_least=least, at_most=most)]
        if self.broker_cpu is not None:
            what = f"processor time of the broker, sticky's over {self.before}'s"
            result.bars.append(Bar(what, ratio("broker_cpu_percent"), at_most=self.broker_cpu))
        result.notes = [f"sticky's p50 over {self.before}'s: {ratio('p50_ms'):.2f}"]
        return result

    @property
    def scenario(self) -> Scenario:
        """The row among the other cases."""
        topics = f"{ACTIVE_TOPICS} topics of {PARTITIONS} partitions"
        return Scenario(f"kip-480-{self.name}", f"KIP-480: {self.case}, {topics}, bursts of 100 ms", self.run)


# "On par" in the document's words is within a fifth here: these are latencies of single milliseconds.
NO_WORSE, HALVED = (0.0, 1.2), (0.0, 0.6)
ROWS = (
    Row("linger", "linger 1,000 ms, 1,000/s", replace(BURSTS, rate=1_000, linger_ms=1_000), (0.0, 0.75)),
    *(
        Row(f"{rate}", f"linger 0, {rate:,}/s", replace(BURSTS, rate=rate), p99, broker_cpu)
        for rate, p99, broker_cpu in ((100, NO_WORSE, None), (1_000, HALVED, None), (10_000, NO_WORSE, 0.8))
    ),
    *(
        Row(f"{rate}-flushed", f"linger 0, {rate:,}/s, flushed", replace(BURSTS, rate=rate, flush=True), p99)
        for rate, p99 in ((100, NO_WORSE), (1_000, HALVED), (10_000, NO_WORSE))
    ),
    Row(
        "keyed",
        "linger 0, 1,000/s, with keys",
        replace(BURSTS, rate=1_000, keys=1_000),
        (0.8, 1.2),
        before="kafka-python's default",
    ),
)
SCENARIOS = tuple(row.scenario for row in ROWS)
