"""Rebalances as OpenTelemetry metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import metrics

from kafka_assignors.metrics.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.member.rebalance_report import RebalanceReport
    from kafka_assignors.metrics.measures import Measure

__all__ = ["recorder"]

# The names of the semantic conventions of messaging; they have none for a strategy or a rebalance.
_SYSTEM, _GROUP = "messaging.system", "messaging.consumer.group.name"
_OWN = "kafka_assignors."


def recorder(meter_provider: Any = None) -> Callable[[RebalanceReport], None]:
    """A callback that records reports with instruments of this provider; of the global one by default."""
    meter = metrics.get_meter("kafka_assignors", meter_provider=meter_provider)
    instruments = [(measure, _recording(measure, meter)) for measure in MEASURES]

    def record(report: RebalanceReport) -> None:
        common = {_SYSTEM: "kafka", _GROUP: report.group_id, f"{_OWN}assignor": report.assignor}
        for measure, put in instruments:
            if measure.leader and not report.leader:
                continue
            for label, value in measure.values(report):
                put(value, common if measure.label is None else {**common, f"{_OWN}{measure.label}": label})

    return record


def _recording(measure: Measure, meter: metrics.Meter) -> Any:
    """The method of a new instrument that takes a value with its attributes."""
    name, about = measure.name, {"unit": measure.unit, "description": measure.description}
    if measure.kind == "counter":
        return meter.create_counter(name, **about).add
    return meter.create_histogram(name, **about, explicit_bucket_boundaries_advisory=measure.buckets).record
