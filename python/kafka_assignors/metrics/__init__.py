"""Metrics of a consumer about its rebalances; and, in the exporter, metrics of the groups of a cluster.

`on_rebalance=prometheus_metrics()` or `on_rebalance=opentelemetry_metrics()` switches the consumer's metrics on. Before
one of the two is called, nothing is counted, and neither library is imported. The exporter is the command
`kafka-assignors exporter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.member.rebalance_report import RebalanceReport

    Callback = Callable[[RebalanceReport], object]

__all__ = ["opentelemetry_metrics", "prometheus_metrics"]


def prometheus_metrics(*then: Callback, registry: Any = None) -> Callback:
    """A callback for `on_rebalance` that counts rebalances as Prometheus metrics.

    Consumers of one process may share a callback, or have one each; the metrics have the group as a label.

    Args:
        then: your own callbacks, called after it with the same report, each of them even if one before it fails.
        registry: the `prometheus_client.CollectorRegistry` of the metrics; its default registry by default.

    Raises:
        MissingDependencyError: prometheus-client is not installed.
    """
    try:
        from kafka_assignors.metrics.prometheus import recorder
    except ImportError as error:
        raise _missing(error, "prometheus_client", "prometheus-client", "prometheus") from error
    return _chain(recorder(registry), *then)


def opentelemetry_metrics(*then: Callback, meter_provider: Any = None) -> Callback:
    """A callback for `on_rebalance` that counts rebalances as OpenTelemetry metrics.

    Consumers of one process may share a callback, or have one each; the metrics have the group as an attribute.

    Args:
        then: your own callbacks, called after it with the same report, each of them even if one before it fails.
        meter_provider: as for `opentelemetry.metrics.get_meter`; the global one by default.

    Raises:
        MissingDependencyError: opentelemetry-api is not installed.
    """
    try:
        from kafka_assignors.metrics.opentelemetry import recorder
    except ImportError as error:
        raise _missing(error, "opentelemetry", "opentelemetry-api", "otel") from error
    return _chain(recorder(meter_provider), *then)


def _chain(*callbacks: Callback) -> Callback:
    def call(report: RebalanceReport) -> None:
        failures: list[Exception] = []
        for callback in callbacks:
            try:
                callback(report)
            except Exception as error:
                failures.append(error)
        if len(failures) > 1:
            raise ExceptionGroup("several callbacks of on_rebalance failed", failures)
        if failures:
            raise failures[0]

    return call


def _missing(error: ImportError, module: str, package: str, extra: str) -> ImportError:
    if (error.name or "").split(".")[0] != module:
        return error
    return MissingDependencyError(f"these metrics need {package}: pip install 'kafka-assignors[{extra}]'")
