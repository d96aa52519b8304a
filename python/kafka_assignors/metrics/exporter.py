"""The groups of a cluster as Prometheus metrics, which a thread keeps up to date, and the answers to scrapes.

    one thread                                      a thread for each scrape
    read ── describe ── text of all metrics ──►  cache  ──►  GET /metrics

A scrape returns the text in the cache: it reads nothing of the cluster and waits for nothing, however many scrapes
there are at once.
"""

from __future__ import annotations

import gzip
import logging
import re
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_assignors.cluster import read_fleet
from kafka_assignors.errors import KafkaAssignorsError, MissingDependencyError, OptionError, SnapshotError
from kafka_assignors.planner.fleet import Limits, fleet
from kafka_assignors.planner.fleet_looks import rebalances_between
from kafka_assignors.planner.reading_window import Window
from kafka_assignors.printable import SENTENCE, listed, printable

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    from kafka_assignors.metrics.fleet_families import Rebalances, families
except ImportError as error:
    if (error.name or "").split(".")[0] != "prometheus_client":
        raise
    raise MissingDependencyError(
        "the exporter needs prometheus-client: pip install 'kafka-assignors[prometheus]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.core import Metric

    from kafka_assignors.cluster import Look, Snapshot
    from kafka_assignors.planner.fleet import Fleet

__all__ = ["Exporter", "Page", "Settings", "wanted_groups"]

logger = logging.getLogger("kafka_assignors")

_HOUR_S = 3_600.0
# The figures of the last reading that succeeded are shown for so many intervals. Otherwise one reading that fails would
# resolve all alerts, and the next one would fire them again.
_STALE_INTERVALS = 3
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """The groups that the exporter reads, and how often.

    Attributes:
        connection: as for `read_fleet`.
        interval: the seconds from one reading of the cluster to the next, 1 or more.
        timeout: the seconds that one reading may take.
        wanted: which groups, by id; all by default.
        most_groups: of how many groups there are series. The worst come first; the others are only counted.
        limits: as for `fleet`.
        reset: as for `fleet`.
        isolation_level: as for `read_fleet`.

    Raises:
        OptionError: a number that is too small.
    """

    connection: Mapping[str, Any]
    interval: float = 30.0
    timeout: float = 30.0
    wanted: Callable[[str], bool] | None = None
    most_groups: int = 2_000
    limits: Limits = field(default_factory=Limits)
    reset: str = "latest"
    isolation_level: str = "read_uncommitted"

    def __post_init__(self) -> None:
        if not self.interval >= 1:
            raise OptionError(f"interval is {self.interval:g}; give 1 second or more")
        if self.most_groups < 1:
            raise OptionError(f"most_groups is {self.most_groups}; give 1 or more")


def wanted_groups(include: Iterable[str], exclude: Iterable[str]) -> Callable[[str], bool] | None:
    """A function that chooses groups: those that any of `include` matches (if there is one), but none of `exclude`.

    Raises:
        OptionError: a text that is no regular expression.
    """
    yes, no = [_expression("--include", each) for each in include], [_expression("--exclude", each) for each in exclude]
    if not yes and not no:
        return None
    return lambda name: (
        (not yes or any(each.search(name) for each in yes)) and not any(each.search(name) for each in no)
    )


def _expression(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise OptionError(f"{option} is {text!r}, which is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a scrape.

    Attributes:
        plain: the text format of Prometheus, version 0.0.4.
        packed: the same with gzip.
    """

    plain: bytes
    packed: bytes


class _Generations:
    """How often each group rebalanced, from one reading to the next."""

    def __init__(self) -> None:
        self._before: Snapshot | None = None
        self._totals: dict[str, int] = {}
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def look(self, now: float, snapshot: Snapshot) -> dict[str, Rebalances]:
        """The rebalances of all groups of a snapshot. Groups that are gone for an hour are forgotten."""
        for group_id, group in snapshot.groups.items():
            before = None if self._before is None else self._before.groups.get(group_id)
            count = 0 if before is None else rebalances_between(before, group) or 0
            self._totals[group_id] = self._totals.get(group_id, 0) + count
            seen = self._seen.setdefault(group_id, deque())
            if count or not seen:
                seen.append((now, count))
        self._before = snapshot
        for group_id, seen in list(self._seen.items()):
            while seen and now - seen[0][0] > _HOUR_S:
                seen.popleft()
            if not seen and group_id not in snapshot.groups:
                del self._seen[group_id], self._totals[group_id]
        return {
            group_id: Rebalances(self._totals[group_id], sum(count for _, count in self._seen[group_id]))
            for group_id in snapshot.groups
        }


class Exporter:
    """The metrics of a cluster. Its methods may be called from any thread.

    Args:
        settings: the groups that it reads, and how often.
        read: reads the groups; `read_fleet` with the settings by default.
        clock: the present, in seconds; it never goes back.

    Raises:
        OptionError: a setting that cannot be used.
        MissingDependencyError: prometheus-client is not installed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        read: Callable[[], Look] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._read = read or self._read_fleet
        self._clock = clock
        self._looking = threading.Lock()
        self._stopped = threading.Event()
        self._window = Window()
        self._generations = _Generations()
        self._looks = self._failures = 0
        self._seconds = 0.0
        self._up = False
        # The last reading that succeeded: when it was made, by both clocks, its groups and their rebalances.
        self._last: tuple[float, float, Fleet, Mapping[str, Rebalances]] | None = None
        self._complaint = ""
        self._page = self._rendered()

    @property
    def page(self) -> Page:
        """The newest metrics."""
        return self._page

    def run(self) -> None:
        """Reads the cluster, again and again, until `stop`.

        Raises:
            OptionError: a setting that cannot be used.
        """
        while not self._stopped.is_set():
            began = self._clock()
            self.look()
            self._stopped.wait(max(0.0, self._settings.interval - (self._clock() - began)))

    def stop(self) -> None:
        """Ends `run` after the reading that is under way."""
        self._stopped.set()

    def look(self) -> bool:
        """Reads the cluster once, and renews the page. Only one thread at a time does so.

        Returns:
            Whether the cluster, or a part of it, was read. If not, the figures of the last reading stay for a while.

        Raises:
            OptionError: a setting that cannot be used.
        """
        with self._looking:
            began = self._clock()
            try:
                seen = self._read()
                before, seconds = self._window.before(began)
                found = fleet(seen, before, seconds=seconds, reset=self._settings.reset, limits=self._settings.limits)
            except OptionError:
                raise
            except KafkaAssignorsError as error:
                self._failed(error)
            else:
                self._window.add(began, seen.snapshot)
                self._last = began, time.time(), found, self._generations.look(began, seen.snapshot)
                self._up = True
                self._complain(_missing(found))
            self._looks += 1
            self._seconds = self._clock() - began
            self._page = self._rendered()
            return self._up

    def _read_fleet(self) -> Look:
        settings = self._settings
        return read_fleet(
            settings.connection,
            wanted=settings.wanted,
            isolation_level=settings.isolation_level,
            timeout=settings.timeout,
        )

    def _failed(self, error: Exception) -> None:
        self._up = False
        self._failures += 1
        if isinstance(error, SnapshotError):
            # The addresses now lead to another cluster, with which earlier readings must not be compared.
            self._window, self._generations, self._last = Window(), _Generations(), None
        self._complain(str(error))
        if self._last is not None:
            patience = _STALE_INTERVALS * self._settings.interval + self._settings.timeout
            if self._clock() - self._last[0] > patience:
                self._last = None

    def _complain(self, text: str) -> None:
        """Logs a problem when its text changes. An empty text is no problem; the end of a problem is logged, too."""
        if text and text != self._complaint:
            logger.warning("%s", printable(text, SENTENCE))
        elif self._complaint and not text:
            logger.warning("the whole cluster can be read again")
        self._complaint = text

    def _rendered(self) -> Page:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected(self))
        plain = generate_latest(registry)
        return Page(plain, gzip.compress(plain, compresslevel=1))

    def _families(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("kafka_assignors_up", "1 if the last reading of the cluster succeeded.", int(self._up))
        yield CounterMetricFamily("kafka_assignors_looks", "Readings of the cluster.", self._looks)
        yield CounterMetricFamily("kafka_assignors_failed_looks", "Readings that failed.", self._failures)
        yield GaugeMetricFamily("kafka_assignors_look_seconds", "How long the last reading took.", self._seconds)
        if self._last is None:
            return
        _, taken, found, rebalances = self._last
        yield GaugeMetricFamily(
            "kafka_assignors_look_timestamp_seconds", "When the groups were read, in seconds since 1970.", taken
        )
        cluster = GaugeMetricFamily("kafka_assignors_cluster_info", "1, with the cluster's id.", labels=("cluster",))
        cluster.add_metric((found.cluster,), 1)
        yield cluster
        yield from families(found, rebalances, self._settings.most_groups)


class _Collected(Collector):
    """The metrics of the exporter, for one rendering."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def collect(self) -> Iterator[Metric]:
        return self._exporter._families()


def _missing(found: Fleet) -> str:
    gone = [f"{each.kind} {each.name}: {each.reason}" for each in found.missing if each.kind != "gone"]
    return f"not all of the cluster can be read: {listed(gone, _NAMED)}" if gone else ""
