"""The groups of a cluster as families of Prometheus metrics."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from kafka_assignors.planner.fleet import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prometheus_client.core import Metric

    from kafka_assignors.planner.fleet import Fleet, FleetGroup

__all__ = ["GROUP_GAUGES", "MISSING_KINDS", "Rebalances", "families", "label"]

# A group's id may have 32,767 characters, and every series repeats it.
_LONGEST = 200
MISSING_KINDS = ("broker", "group", "gone", "offsets", "topic")
"""The kinds of parts that may be missing in a reading of the cluster, as in `kafka_assignors.cluster.Missing`."""


def label(text: str) -> str:
    """A name as the value of a label: a long one ends with a hash of itself, so that it stays unique."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: _LONGEST - 17]}~{digest}"


@dataclass(frozen=True, slots=True)
class Rebalances:
    """The rebalances of a group that the exporter has seen.

    Attributes:
        total: since it began.
        in_last_hour: within the last hour, or since it began.
    """

    total: int = 0
    in_last_hour: int = 0


def _spread(group: FleetGroup) -> int | None:
    return None if group.most is None or group.fewest is None else group.most - group.fewest


GROUP_GAUGES: tuple[tuple[str, str, Callable[[FleetGroup], float | None]], ...] = (
    ("members", "Members of the group.", lambda group: group.members),
    ("idle_members", "Members without a partition.", lambda group: group.idle),
    ("partitions", "Partitions of the group's topics.", lambda group: group.partitions),
    ("unowned_partitions", "Partitions of subscribed topics without an owner.", lambda group: group.unowned),
    ("uncommitted_partitions", "Partitions without a commit.", lambda group: group.uncommitted),
    (
        "stuck_partitions",
        "Partitions whose commit stands still while records wait; from the second reading on.",
        lambda group: group.stuck,
    ),
    ("lag_records", "Records that wait; absent if it is not known.", lambda group: group.lag),
    (
        "lag_seconds",
        "How long the record has waited that has waited longest; absent if it is not known.",
        lambda group: group.lag_seconds,
    ),
    (
        "lag_growth_records_per_second",
        "By how many records a second the lag grows; from the second reading on.",
        lambda group: group.growth,
    ),
    (
        "arrivals_records_per_second",
        "How many records a second are written to the partitions; from the second reading on.",
        lambda group: group.arrivals,
    ),
    (
        "commits_records_per_second",
        "By how many records a second the commits advance; from the second reading on.",
        lambda group: group.commits,
    ),
    ("fewest_partitions", "The fewest partitions of a member.", lambda group: group.fewest),
    ("most_partitions", "The most partitions of a member.", lambda group: group.most),
    ("spread_partitions", "The most partitions of a member less the fewest.", _spread),
    ("balance_score", "KIP-54's balance score; 0 is perfect.", lambda group: group.balance_score),
    (
        "least_balance_score",
        "The least balance score that a plan can have; absent if it is not known.",
        lambda group: group.least_balance_score,
    ),
    (
        "moves_on_join_partitions",
        "Partitions that change their owner when the next member joins; absent if it is not known.",
        lambda group: group.moves,
    ),
    (
        "least_moves_on_join_partitions",
        "The same under the strategy sticky.",
        lambda group: group.least_moves,
    ),
    ("warnings", "Rules that are not met, each as often as it is broken.", lambda group: len(group.warnings)),
)
"""Name, help and value of the gauges of a group."""


def families(found: Fleet, rebalances: Mapping[str, Rebalances], most: int) -> Iterator[Metric]:
    """The metrics of a reading of the cluster.

    Args:
        found: the groups, the worst first.
        rebalances: of each group, by its id.
        most: of how many groups there are series; the others are only counted.
    """
    shown = [(label(group.group_id), group) for group in found.groups[:most]]
    yield _information(shown)
    verdict = GaugeMetricFamily(
        "kafka_assignors_group_verdict", "1 for the verdict of the group; docs/fleet.md.", labels=("group", "verdict")
    )
    broken = GaugeMetricFamily(
        "kafka_assignors_group_broken_rule", "1 for each rule that is not met.", labels=("group", "rule")
    )
    for name, group in shown:
        verdict.add_metric((name, group.verdict), 1)
        for rule in sorted({finding.rule for finding in group.warnings}):
            broken.add_metric((name, rule), 1)
    yield verdict
    yield broken
    for suffix, about, value_of in GROUP_GAUGES:
        gauge = GaugeMetricFamily(f"kafka_assignors_group_{suffix}", about, labels=("group",))
        for name, group in shown:
            value = value_of(group)
            if value is not None:
                gauge.add_metric((name,), value)
        yield gauge
    yield from _of_rebalances(shown, rebalances)
    counts = GaugeMetricFamily("kafka_assignors_groups", "Groups with this verdict.", labels=("verdict",))
    verdicts = found.verdicts
    for each in VERDICTS:
        counts.add_metric((each,), verdicts.get(each, 0))
    yield counts
    yield GaugeMetricFamily(
        "kafka_assignors_groups_without_series",
        "Groups beyond the most for which there are series: those with the least trouble.",
        value=len(found.groups) - len(shown),
    )
    missing = GaugeMetricFamily("kafka_assignors_missing", "Parts that could not be read.", labels=("kind",))
    for kind in MISSING_KINDS:
        missing.add_metric((kind,), sum(each.kind == kind for each in found.missing))
    yield missing


def _information(shown: Sequence[tuple[str, FleetGroup]]) -> Metric:
    found = GaugeMetricFamily(
        "kafka_assignors_group_info",
        "1, with what the group is.",
        labels=("group", "state", "protocol", "strategy", "kip848"),
    )
    for name, group in shown:
        found.add_metric((name, label(group.state), group.protocol, label(group.strategy), group.kip848), 1)
    return found


def _of_rebalances(
    shown: Sequence[tuple[str, FleetGroup]], rebalances: Mapping[str, Rebalances]
) -> tuple[Metric, Metric]:
    total = CounterMetricFamily(
        "kafka_assignors_group_rebalances", "Rebalances since the exporter began, at least.", labels=("group",)
    )
    hourly = GaugeMetricFamily(
        "kafka_assignors_group_generations_per_hour",
        "Generations that began within the last hour, or since the exporter began; at least.",
        labels=("group",),
    )
    for name, group in shown:
        seen = rebalances.get(group.group_id, Rebalances())
        total.add_metric((name,), seen.total)
        hourly.add_metric((name,), seen.in_last_hour)
    return total, hourly
