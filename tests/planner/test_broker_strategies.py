"""The broker's assignors in the planner's commands."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kafka_assignors import UniformAssignor
from kafka_assignors.cli.app import app
from kafka_assignors.planner.change import Situation
from kafka_assignors.planner.cost import rebalance_cost, rolling_restart
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.report.model import GroupFigures, StrategyFigures
from kafka_assignors.report.recommend import KEEP, recommend, today
from kafka_assignors.strategies import parse_strategy
from support.snapshots import classic, orders, snapshot

if TYPE_CHECKING:
    from pathlib import Path

BROKERS = ("uniform", "uniform(broker=4.0.0)", "server-side-range")


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    path = tmp_path / "billing.json"
    orders().save(path)
    return path


def run(*arguments: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == status, (result.output, result.exception)
    return result.stdout


def test_plan(billing: Path) -> None:
    found = json.loads(run("plan", "--snapshot", billing, "--join", "1", "--strategy", "uniform", "--format", "json"))
    assert (found["strategy"], found["moved"], found["least_moved"]) == ("uniform", 4, 4)
    text = run("plan", "--snapshot", billing, "--join", "1", "--strategy", "server-side-range", status=3)
    assert "the plan of server-side-range depends on the order of member ids" in text
    result = CliRunner().invoke(app, ["plan", "--snapshot", str(billing), "--strategy", "uniform(broker=3.9)"])
    assert result.exit_code == 2
    assert "preview" in result.stderr


def test_compare(billing: Path) -> None:
    strategies = [part for name in BROKERS for part in ("--strategy", name)]
    table = list(csv.DictReader(io.StringIO(run("compare", "--snapshot", billing, *strategies, "--format", "csv"))))
    assert [row["strategy"] for row in table] == ["now", *BROKERS]


def test_uniform_that_misses_the_best_plan_is_told(tmp_path: Path) -> None:
    """Three members with overlapping subscriptions, which the broker levels topic by topic."""
    members = [
        classic("a", ["x"], {"x": list(range(9))}),
        classic("b", ["x", "y"], {"x": [9], "y": list(range(9))}),
        classic("c", ["y"], {"y": list(range(9, 20))}),
    ]
    path = tmp_path / "chain.json"
    snapshot({"x": 10, "y": 20}, members).save(path)
    found = json.loads(run("plan", "--snapshot", path, "--strategy", "uniform", "--format", "json", status=3))
    assert found["balance_score"] > found["least_balance_score"]
    rules = {finding["rule"] for finding in found["findings"] if finding["warning"]}
    assert "least-balance-score" in rules


def test_rebalance_cost() -> None:
    """The broker stops only partitions that move, as a cooperative rebalance does, but needs no second rebalance."""
    situation = Situation(ObservedGroup(orders(), "billing"))
    assignors = [parse_strategy(name) for name in ("uniform", "cooperative-sticky", "sticky")]
    uniform, cooperative, eager = rebalance_cost(situation, rolling_restart(situation), assignors).strategies
    assert uniform.rebalances == eager.rebalances < cooperative.rebalances
    assert uniform.moves == cooperative.moves
    assert uniform.stopped == cooperative.stopped < eager.stopped


def strategy(moved: int) -> StrategyFigures:
    return StrategyFigures(20, moved, 40, 1.0, 4.0, 1.2, 0, 0)


def test_reports_compare_with_the_broker_and_never_recommend_it() -> None:
    figures = {"range": strategy(400), "sticky": strategy(60), "uniform": strategy(40)}
    found = recommend(GroupFigures("c", "g", 8, 100, figures, running="range"))
    assert found.strategy == "sticky"
    only = recommend(GroupFigures("c", "g", 8, 100, {"uniform": strategy(40)}, running="range"))
    assert (only.strategy, only.reason) == (KEEP, "only the broker's assignors were replayed")
    # A group of the new protocol runs the broker's `range`, not the client's.
    figures["server-side-range"] = strategy(900)
    broker = GroupFigures("c", "g", 8, 100, figures, running="range", by_broker=True)
    assert today(broker) == "server-side-range"
    assert recommend(broker).strategy == "sticky"
    assert str(UniformAssignor()) == "UniformAssignor(broker='4.3')"
