"""The files for other programs: Grafana's dashboard and Prometheus' alert rules, as the command prints them."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.metrics.fleet_families import GROUP_GAUGES
from kafka_assignors.metrics.measures import MEASURES

METRIC = re.compile(r"\bkafka_assignors_[a-z0-9_]+")
# The series of the exporter itself, and those of the fleet and of a group that are not in GROUP_GAUGES.
OTHERS = {
    "up", "looks_total", "failed_looks_total", "look_seconds", "look_timestamp_seconds", "cluster_info", "groups",
    "groups_without_series", "missing", "group_info", "group_verdict", "group_broken_rule", "group_rebalances_total",
    "group_generations_per_hour",
}  # fmt: skip


def printed(option: str) -> str:
    done = CliRunner().invoke(app, ["exporter", option])
    assert done.exit_code == 0, done.output
    return done.output


def known() -> set[str]:
    """Every name of a series that the exporter and the consumers have."""
    names = {f"kafka_assignors_{name}" for name in OTHERS}
    names |= {f"kafka_assignors_group_{suffix}" for suffix, _, _ in GROUP_GAUGES}
    for measure in MEASURES:
        endings = ("_total",) if measure.kind == "counter" else ("_bucket", "_sum", "_count")
        names |= {measure.prometheus + ending for ending in endings}
    return names


def panels(dashboard: Any) -> list[Any]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize(("option", "file"), [("--dashboard", "dashboard.json"), ("--rules", "alerts.yml")])
def test_the_command_prints_the_file(option: str, file: str) -> None:
    text = printed(option)
    assert text == resources.files("kafka_assignors.metrics").joinpath(file).read_text()
    named = set(METRIC.findall(text))
    assert len(named) >= 10
    assert named <= known()


def test_the_dashboard_shows_every_gauge_of_a_group() -> None:
    """A new gauge must get a panel. Partitions of topics and commits are exempt: they are on the fleet's page."""
    shown = {
        name.removeprefix("kafka_assignors_group_")
        for panel in panels(json.loads(printed("--dashboard")))
        for target in panel["targets"]
        for name in METRIC.findall(target["expr"])
    }
    unseen = {suffix for suffix, _, _ in GROUP_GAUGES} - shown
    assert unseen == {"partitions", "uncommitted_partitions", "fewest_partitions", "most_partitions", "warnings"}


def lost(given: Any, read: Any, at: str = "") -> list[str]:
    """The places of the document `given` that `read` lacks or has with another value."""
    if isinstance(given, dict):
        if not isinstance(read, dict):
            return [at]
        return [place for key, value in given.items() for place in lost(value, read.get(key), f"{at}.{key}")]
    if isinstance(given, list):
        if not isinstance(read, list) or len(read) != len(given):
            return [at]
        return [place for number, value in enumerate(given) for place in lost(value, read[number], f"{at}[{number}]")]
    return [] if given == read else [at]


def test_the_dashboard_is_one_of_grafanas() -> None:
    """Grafana's own types read and write the dashboard. A field that they do not know would be lost."""
    document = json.loads(printed("--dashboard"))
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(document)))
    # The types leave out empty fields.
    assert [place for place in lost(document, read) if not place.endswith(("options", "current", "panels"))] == []


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    dashboard = json.loads(printed("--dashboard"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert all(panel["title"] and panel["description"] for panel in panels(dashboard))
