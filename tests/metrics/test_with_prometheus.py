"""The alert rules and the dashboard with a real Prometheus, which scrapes the exporter of an embedded Kafka."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.member.rebalance_report import RebalanceReport
from kafka_assignors.metrics import prometheus_metrics
from support.planned_group import commit, standing_group
from support.prometheus import Prometheus, promtool

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs("prometheus")

FILES = Path(str(resources.files("kafka_assignors.metrics")))
ALERTS = FILES / "alerts.yml"


def test_the_rules_are_rules_and_fire_for_what_they_are_about() -> None:
    assert "14 rules found" in promtool("check", "rules", ALERTS)
    assert "SUCCESS" in promtool("test", "rules", Path(__file__).with_name("alerts_test.yml"))


@contextmanager
def exporting(kafka: EmbeddedKafka) -> Iterator[str]:
    """The command as a process; yields HOST:PORT."""
    command = [sys.executable, "-m", "kafka_assignors.cli", "exporter", "--bootstrap-server", kafka.bootstrap_servers]
    command += ["--listen", "127.0.0.1:0", "--interval", "1", "--exclude", "^unseen"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r"listening on http://(127\.0\.0\.1:\d+)/metrics\n", line)
            assert found, line
            yield found[1]
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.communicate(timeout=120)[1]
    assert (process.returncode, rest) == (0, "")


def report(causes: tuple[str, ...]) -> RebalanceReport:
    now = time.time()
    return RebalanceReport(
        "sticky", 1, {"t": (0,)}, {}, {}, group_id="standing", began=now - 2, ended=now, without_partitions=1.0,
        without_owner={"t": {0: 1.0}}, leader=True, planning_seconds=0.1, record_bytes=500,
        causes=causes,  # type: ignore[arg-type]
    )  # fmt: skip


def expressions() -> list[tuple[str, str]]:
    """Title and expression of everything on the dashboard, with its variables filled in."""
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    found = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"].replace("$__rate_interval", "1m")
            expression = expression.replace("$instance", ".*").replace("$group", ".*")
            assert "$" not in expression
            found.append((panel["title"], expression))
    return found


# Panels that have data only if something is wrong, after half a minute, or after the second reading of a group.
MAY_BE_EMPTY = {
    "Rules that are not met",
    "Partitions that stand still",
    "Partitions without an owner",
    "Groups that are not well",
    "Members",
    "Moves",
}


def test_every_expression_of_the_dashboard_and_of_the_rules_works(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    server, serving = start_http_server(0, "127.0.0.1", registry=registry)
    on_rebalance = prometheus_metrics(registry=registry)
    on_rebalance(report(("member-joined",)))
    with EmbeddedKafka(topics={"t": 4, "u": 2}) as kafka:
        servers = kafka.bootstrap_servers
        for group, topic in (("standing", "t"), ("dead", "u"), ("unseen-group", "u")):
            commit(servers, group, {(topic, 0): 0})
        with standing_group(servers, "standing", {"t": 4}, ["a", "b"]), exporting(kafka) as exporter:
            targets = {"groups": exporter, "consumers": f"127.0.0.1:{server.server_port}"}
            with Prometheus(tmp_path, targets, ALERTS) as prometheus:
                prometheus.until("kafka_assignors_group_lag_growth_records_per_second")
                prometheus.until("kafka_assignors_rebalances_total")
                on_rebalance(report(("member-left",)))
                prometheus.until("rate(kafka_assignors_rebalance_duration_seconds_count[1m]) > 0")
                names = {each["metric"]["group"] for each in prometheus.query("kafka_assignors_group_info")}
                assert names == {"standing", "dead"}
                empty = {title for title, expression in expressions() if not prometheus.query(expression)}
                assert empty <= MAY_BE_EMPTY
                groups = prometheus.ask("rules")["groups"]
                rules = [rule for group in groups for rule in group["rules"]]
                assert len(rules) == 14
                assert {rule["health"] for rule in rules} == {"ok"}
    server.shutdown()
    server.server_close()
    serving.join(10)
