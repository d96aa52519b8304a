"""Rebalances as Prometheus metrics."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, Counter, Histogram

from kafka_assignors.metrics.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from kafka_assignors.member.rebalance_report import RebalanceReport
    from kafka_assignors.metrics.measures import Measure

__all__ = ["recorder"]

_COMMON = ("group", "assignor")

# A registry accepts each name only once, so the consumers of a process share one recorder for each registry.
_made: WeakKeyDictionary[CollectorRegistry, Callable[[RebalanceReport], None]] = WeakKeyDictionary()
_making = threading.Lock()


def recorder(registry: CollectorRegistry | None = None) -> Callable[[RebalanceReport], None]:
    """A callback that records reports with metrics of this registry; of the default one without it."""
    chosen = REGISTRY if registry is None else registry
    with _making:
        if chosen not in _made:
            _made[chosen] = _recorder(chosen)
        return _made[chosen]


def _recorder(registry: CollectorRegistry) -> Callable[[RebalanceReport], None]:
    families = [(measure, _family(measure, registry)) for measure in MEASURES]

    def record(report: RebalanceReport) -> None:
        common = (report.group_id, report.assignor)
        for measure, family in families:
            if measure.leader and not report.leader:
                continue
            for label, value in measure.values(report):
                child = family.labels(*common, *(() if measure.label is None else (label,)))
                if measure.kind == "counter":
                    child.inc(value)
                else:
                    child.observe(value)

    return record


def _family(measure: Measure, registry: CollectorRegistry) -> Any:
    labels = (*_COMMON, *(() if measure.label is None else (measure.label,)))
    if measure.kind == "histogram":
        return Histogram(measure.prometheus, measure.description, labels, registry=registry, buckets=measure.buckets)
    return Counter(measure.prometheus, measure.description, labels, registry=registry)
