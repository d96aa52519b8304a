"""Rates between two snapshots: in `describe`, in `plan`, and as weights of the weighted strategy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kafka_assignors import OptionError, WeightedAssignor
from kafka_assignors.cli.app import app
from kafka_assignors.planner.change import Change, Situation
from kafka_assignors.planner.describe import describe
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.plan import plan_change
from kafka_assignors.planner.rates import rates_between, total_rate
from support.snapshots import orders

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_assignors.cluster import Snapshot


def pair() -> tuple[Snapshot, Snapshot]:
    """A group ten seconds ago, and now. In between, partition `n` of each topic got `10 × n` records."""
    found = orders()

    def ended(more: int) -> dict[str, Any]:
        topics = found.topics.items()
        return {
            name: replace(topic, end=tuple(1_000 + more * number for number in range(topic.partitions)))
            for name, topic in topics
        }

    return replace(found, topics=ended(0), taken_ms=found.taken_ms - 10_000), replace(found, topics=ended(10))


def test_rates_are_between_two_snapshots_of_a_cluster() -> None:
    earlier, now = pair()
    rates = rates_between(earlier, now)
    for name, topic in now.topics.items():
        assert rates[name] == [float(number) for number in range(topic.partitions)]
    assert total_rate(rates, {"orders": [1, 2]}) == 3.0
    assert total_rate(None, {}) is None
    assert total_rate(rates, {"orders": [1, 99]}) is None
    fewer = replace(earlier, topics={name: replace(topic, end=None) for name, topic in earlier.topics.items()})
    assert set(rates_between(fewer, now)["orders"]) == {None}
    other = replace(earlier, topics={name: replace(topic, id="x" * 22) for name, topic in earlier.topics.items()})
    renamed = replace(now, topics={name: replace(topic, id="y" * 22) for name, topic in now.topics.items()})
    assert set(rates_between(other, renamed)["orders"]) == {None}
    with pytest.raises(OptionError, match="not older"):
        rates_between(now, earlier)
    with pytest.raises(OptionError, match="of cluster 'else'"):
        rates_between(replace(earlier, cluster="else"), now)


def test_members_and_topics_have_rates() -> None:
    earlier, now = pair()
    observed = ObservedGroup(now)
    found = describe(observed, rates=rates_between(earlier, now))
    for member in found.members:
        assert member.rate == sum(number for numbers in member.partitions.values() for number in numbers)
    assert all(topic.rates == tuple(map(float, range(topic.partitions))) for topic in found.topics)
    assert {member.rate for member in describe(observed).members} == {None}


def test_the_weighted_strategy_takes_rates_as_weights() -> None:
    earlier, now = pair()
    rates = rates_between(earlier, now)
    situation = Situation(ObservedGroup(now), Change())
    planned = plan_change(situation, WeightedAssignor(tolerance=0), rates=rates)
    after = [member.rate_after or 0.0 for member in planned.members]
    assert planned.load == max(after)
    assert planned.load_bound is not None
    assert planned.load_bound <= planned.load <= 1.25 * planned.load_bound
    # The strategy's own weights take precedence over rates.
    assert plan_change(situation, WeightedAssignor(dict.fromkeys(rates, 1.0)), rates=rates).load != planned.load
    assert plan_change(situation, WeightedAssignor(), rates=None).members[0].rate_after is None


def said(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def test_commands_show_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    earlier, now = pair()
    earlier.save("before.json")
    now.save("now.json")
    described = said("describe", "--snapshot", "now.json", "--rates", "before.json", "--wide")
    assert described.exit_code in (0, 3), described.output
    assert "records/s" in described.output
    assert "records/s" not in said("describe", "--snapshot", "now.json", "--wide").output
    rows = said("describe", "--snapshot", "now.json", "--rates", "before.json", "--format", "csv").output.splitlines()
    assert rows[0].endswith(",rate")
    assert rows[2].endswith(",1.0")
    planned = said("plan", "--snapshot", "now.json", "--rates", "before.json", "--strategy", "weighted", "--wide")
    assert planned.exit_code in (0, 3), planned.output
    assert "records/s after" in planned.output
    assert "the heaviest member carries" in planned.output
    form = said(
        "plan", "--snapshot", "now.json", "--rates", "before.json", "--strategy", "weighted", "--format", "json"
    )
    assert json.loads(form.output)["load"] >= json.loads(form.output)["load_bound"] > 0


@pytest.mark.parametrize(
    ("rates", "text"),
    [("5", "give an earlier file"), ("0", "give 0.1 to 3,600 seconds"), ("missing.json", "cannot be read")],
)
def test_rates_that_cannot_be_had_are_one_sentence(
    rates: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    orders().save("now.json")
    found = said("describe", "--snapshot", "now.json", "--rates", rates)
    assert found.exit_code == 2
    assert text in found.output.replace("\n", " ")
