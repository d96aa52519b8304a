"""The measures of a rebalance, in one table, from which the metrics of each library are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = ["BYTES", "MEASURES", "SECONDS", "Measure"]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The bounds of the buckets of a time: up to the five minutes for which a group waits for a member by default."""
BYTES = (1e3, 1e4, 1e5, 2.5e5, 5e5, 7.5e5, 1e6, 2.5e6, 5e6, 1e7)
"""The bounds of the buckets of a record's size; brokers accept 1,048,588 bytes by default."""

Kind: TypeAlias = Literal["counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that is measured in each rebalance.

    Attributes:
        name: its name in OpenTelemetry.
        prometheus: its name in Prometheus, without the ending of a counter.
        kind: the kind of the metric.
        unit: in UCUM, as OpenTelemetry requires.
        description: one sentence.
        values: reads the values of a report, each with the value of `label`, or with an empty text without a label.
        label: the label that distinguishes the values of a report; None if there is only one value.
        leader: whether only the leader's report has it.
        buckets: of a histogram.
    """

    name: str
    prometheus: str
    kind: Kind
    unit: str
    description: str
    values: Callable[[RebalanceReport], Iterable[tuple[str, float]]]
    label: str | None = None
    leader: bool = False
    buckets: tuple[float, ...] = SECONDS


def _one(value: float | None) -> list[tuple[str, float]]:
    return [] if value is None else [("", float(value))]


def _partitions(report: RebalanceReport) -> list[tuple[str, float]]:
    changes: dict[str, Mapping[str, tuple[int, ...]]] = {
        "gained": report.gained,
        "lost": report.lost,
        "kept": report.kept,
        "rewound": report.rewound,
    }
    return [(change, sum(map(len, partitions.values()))) for change, partitions in changes.items()]


def _problems(report: RebalanceReport) -> list[tuple[str, float]]:
    problems = {
        "expelled": int(report.expelled),
        "faults": len(report.faults),
        "limited": int(report.limited is not None),
        "fallback": int(report.error is not None),
        "warnings": len(report.warnings),
    }
    return [(problem, count) for problem, count in problems.items() if count]


def _unowned(report: RebalanceReport) -> float:
    return sum(sum(seconds.values()) for seconds in report.without_owner.values())


MEASURES = (
    Measure(
        "kafka_assignors.rebalances",
        "kafka_assignors_rebalances",
        "counter",
        "{rebalance}",
        "Rebalances, by their first cause.",
        lambda report: [(report.cause, 1)],
        label="cause",
    ),
    Measure(
        "kafka_assignors.rebalance.duration",
        "kafka_assignors_rebalance_duration_seconds",
        "histogram",
        "s",
        "How long a rebalance took this member, from the moment at which it began to join.",
        lambda report: _one(report.seconds),
    ),
    Measure(
        "kafka_assignors.rebalance.without_partitions",
        "kafka_assignors_rebalance_without_partitions_seconds",
        "histogram",
        "s",
        "How long this member had no partition in a rebalance.",
        lambda report: _one(report.without_partitions),
    ),
    Measure(
        "kafka_assignors.rebalance.without_owner",
        "kafka_assignors_rebalance_without_owner_partition_seconds",
        "counter",
        "s",
        "For how long the partitions of this member's new assignment were without an owner, added up; at least.",
        lambda report: _one(_unowned(report)),
    ),
    Measure(
        "kafka_assignors.rebalance.partitions",
        "kafka_assignors_rebalance_partitions",
        "counter",
        "{partition}",
        "Partitions that this member gained, lost and kept, and those of the kept ones that it reads again.",
        _partitions,
        label="change",
    ),
    Measure(
        "kafka_assignors.rebalance.retries",
        "kafka_assignors_rebalance_retries",
        "counter",
        "{retry}",
        "How often this member asked again for an assignment.",
        lambda report: _one(report.retries),
    ),
    Measure(
        "kafka_assignors.rebalance.problems",
        "kafka_assignors_rebalance_problems",
        "counter",
        "{problem}",
        "Memberships that were lost, metadata that could not be read, searches that ended early, fallbacks, warnings.",
        _problems,
        label="problem",
    ),
    Measure(
        "kafka_assignors.plan.duration",
        "kafka_assignors_plan_duration_seconds",
        "histogram",
        "s",
        "How long this member planned as the leader.",
        lambda report: _one(report.planning_seconds),
        leader=True,
    ),
    Measure(
        "kafka_assignors.plan.moved",
        "kafka_assignors_plan_moved_partitions",
        "counter",
        "{partition}",
        "Partitions of the group that had an owner and change it, by this member's plans.",
        lambda report: _one(report.moved),
        leader=True,
    ),
    Measure(
        "kafka_assignors.plan.record",
        "kafka_assignors_plan_record_bytes",
        "histogram",
        "By",
        "The size of the group's record on the broker, with this member's plans.",
        lambda report: _one(report.record_bytes),
        leader=True,
        buckets=BYTES,
    ),
)
"""All measures. Each value also has the group and the strategy as labels."""
