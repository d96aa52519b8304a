"""Rebalances as Prometheus and as OpenTelemetry metrics: the figures are those of the reports."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kafka_assignors import Group, Member, StickyAssignor
from kafka_assignors.member.rebalance_report import RebalanceReport
from kafka_assignors.metrics import opentelemetry_metrics, prometheus_metrics
from kafka_assignors.metrics.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

FOLLOWED = RebalanceReport(
    "sticky",
    3,
    gained={"t": (0, 1)},
    lost={"t": (4,)},
    kept={"t": (2, 3)},
    rewound={"t": (2,)},
    group_id="billing",
    began=1_800_000_000.0,
    ended=1_800_000_002.0,
    without_partitions=0.5,
    without_owner={"t": {0: 1.5, 1: 1.5, 2: 0.5, 3: 0.5}},
    causes=("member-left", "partitions-added"),
    retries=1,
)


def led() -> RebalanceReport:
    """A leader's report of a group with two members."""
    plan = StickyAssignor().assign(
        Group({"t": 4}, [Member("a", ["t"], owned={"t": [0, 1, 2, 3]}, generation=1), Member("b", ["t"])])
    )
    return RebalanceReport(
        "sticky",
        2,
        gained={},
        lost={"t": (2, 3)},
        kept={"t": (0, 1)},
        expelled=True,
        group_id="billing",
        leader=True,
        planning_seconds=0.002,
        record_bytes=500,
        plan=plan,
    )


EXPECTED = {
    ("rebalances", "cause", "member-left"): 1,
    ("rebalances", "cause", "unknown"): 1,
    ("rebalance.duration", "", ""): 2.0,
    ("rebalance.without_partitions", "", ""): 0.5,
    ("rebalance.without_owner", "", ""): 4.0,
    ("rebalance.partitions", "change", "gained"): 2,
    ("rebalance.partitions", "change", "lost"): 3,
    ("rebalance.partitions", "change", "kept"): 4,
    ("rebalance.partitions", "change", "rewound"): 1,
    ("rebalance.retries", "", ""): 1,
    ("rebalance.problems", "problem", "expelled"): 1,
    ("plan.duration", "", ""): 0.002,
    ("plan.moved", "", ""): 2,
    ("plan.record", "", ""): 500,
}


def prometheus_figures(*reports: RebalanceReport) -> dict[tuple[str, str, str], float]:
    registry = CollectorRegistry()
    callback = prometheus_metrics(registry=registry)
    for report in reports:
        callback(report)
    names = {measure.prometheus: measure for measure in MEASURES}
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            measure = names.get(sample.name.removesuffix("_sum").removesuffix("_total"))
            if measure is None:
                continue
            labels = dict(sample.labels)
            assert (labels.pop("group"), labels.pop("assignor")) == ("billing", "sticky")
            ((label, value),) = labels.items() or [("", "")]
            found[measure.name.removeprefix("kafka_assignors."), label, value] = sample.value
    return found


def opentelemetry_figures(*reports: RebalanceReport) -> dict[tuple[str, str, str], float]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    callback = opentelemetry_metrics(meter_provider=provider)
    for report in reports:
        callback(report)
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    found: dict[tuple[str, str, str], float] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        points: Any = metric.data.data_points
        for point in points:
            attributes = dict(point.attributes)
            assert attributes.pop("messaging.system") == "kafka"
            assert attributes.pop("messaging.consumer.group.name") == "billing"
            assert attributes.pop("kafka_assignors.assignor") == "sticky"
            ((label, value),) = attributes.items() or [("", "")]
            key = metric.name.removeprefix("kafka_assignors."), label.removeprefix("kafka_assignors."), str(value)
            found[key] = point.sum if hasattr(point, "sum") else point.value
    return found


@pytest.mark.parametrize("figures", [prometheus_figures, opentelemetry_figures])
def test_the_figures_are_those_of_the_reports(
    figures: Callable[..., dict[tuple[str, str, str], float]],
) -> None:
    assert figures(FOLLOWED, led()) == pytest.approx(EXPECTED)


def test_units_and_buckets_are_told() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    opentelemetry_metrics(meter_provider=provider)(FOLLOWED)
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    metrics = {each.name: each for each in data.resource_metrics[0].scope_metrics[0].metrics}
    duration: Any = metrics["kafka_assignors.rebalance.duration"]
    assert duration.unit == "s"
    assert duration.data.data_points[0].explicit_bounds[-1] == 300.0


def test_consumers_of_one_process_may_have_a_callback_each() -> None:
    registry = CollectorRegistry()
    first, second = prometheus_metrics(registry=registry), prometheus_metrics(registry=registry)
    first(FOLLOWED)
    second(FOLLOWED)
    value = registry.get_sample_value(
        "kafka_assignors_rebalance_retries_total", {"group": "billing", "assignor": "sticky"}
    )
    assert value == 2


@pytest.mark.parametrize("switched_on", [prometheus_metrics, opentelemetry_metrics])
def test_callbacks_of_ones_own_are_called_too(switched_on: Any) -> None:
    seen: list[RebalanceReport] = []

    def fails(_: RebalanceReport) -> None:
        raise LookupError("no such pager")

    options = {"registry": CollectorRegistry()} if switched_on is prometheus_metrics else {}
    switched_on(seen.append, **options)(FOLLOWED)
    with pytest.raises(LookupError, match="no such pager"):
        switched_on(fails, seen.append, **options)(FOLLOWED)
    with pytest.raises(ExceptionGroup, match="several callbacks"):
        switched_on(fails, fails, **options)(FOLLOWED)
    assert seen == [FOLLOWED, FOLLOWED]


def test_without_metrics_nothing_of_them_is_there() -> None:
    """A consumer with the user's own callback imports no library for metrics, and no module of `metrics`."""
    script = """
import sys
from kafka_assignors.clients import RebalanceReport
from kafka_assignors.member.rebalance_report import RebalanceReporter, publish
reports = []
publish(RebalanceReporter("g").report("sticky", 1, {"t": (0,)}), reports.append)
assert reports[0].group_id == "g"
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("prometheus_client", "opentelemetry")
              or name.startswith("kafka_assignors.metrics")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("function", "module", "extra"),
    [("prometheus_metrics", "prometheus_client", "prometheus"), ("opentelemetry_metrics", "opentelemetry", "otel")],
)
def test_a_missing_library_is_one_sentence(function: str, module: str, extra: str) -> None:
    script = f"""
import sys
sys.modules[{module!r}] = None
from kafka_assignors import MissingDependencyError, metrics
try:
    metrics.{function}()
except MissingDependencyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install 'kafka-assignors[{extra}]'" in done.stdout
