"""The planner's commands with a user's own assignor, named by its module and class."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kafka_assignors import CustomAssignor, MemberState, StickyAssignor, WeightedAssignor
from kafka_assignors.cli.app import app
from kafka_assignors.cluster import ClassicMember
from kafka_assignors.planner.change import Change, Join, Situation
from kafka_assignors.planner.cost import rebalance_cost, rolling_restart
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.plan import plan_change
from kafka_assignors.strategies import parse_strategy
from kafka_assignors.userdata import Assignment
from support.snapshots import orders, snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kafka_assignors.assignors import Assignor

PROGRAM = """
from kafka_assignors import CustomAssignor

class First(CustomAssignor):
    name = "first"

    def __init__(self, at=0):
        self.at = at

    def plan(self, group):
        member = group.members[self.at]
        return {member.id: {topic: range(group.partitions(topic)) for topic in member.topics}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and a snapshot, from which a command runs."""
    (tmp_path / "mine_of_this_test.py").write_text(PROGRAM)
    orders().save(tmp_path / "billing.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.delitem(sys.modules, "mine_of_this_test", raising=False)
    return tmp_path


CHANGES = {"plan": ["--join", "1"], "compare": ["--join", "1"], "rebalance-cost": ["--scale", "+1"]}


@pytest.mark.parametrize("command", CHANGES)
@pytest.mark.usefixtures("folder")
def test_a_command_plans_with_a_program_of_the_current_folder(command: str) -> None:
    text = "mine_of_this_test:First(at=1)"
    arguments = [command, "--snapshot", "billing.json", "--strategy", text, *CHANGES[command], "--format", "json"]
    result = CliRunner().invoke(app, arguments)
    # 3: the plan has warnings.
    assert result.exit_code in (0, 3), (result.output, result.exception)
    found = json.loads(result.stdout)
    assert "mine_of_this_test:First" in json.dumps(found)


@pytest.mark.usefixtures("folder")
def test_its_plan_is_what_the_command_shows() -> None:
    """`First` gives everything to one member."""
    words = ["plan", "--snapshot", "billing.json", "--strategy", "mine_of_this_test:First(at=1)", "--format", "json"]
    result = CliRunner().invoke(app, words)
    members = json.loads(result.stdout)["members"]
    assert [bool(each["partitions"]) for each in members].count(True) == 1, members


def test_what_it_leaves_out_is_found(caps: Any) -> None:
    planned = plan_change(group_of({"a": caps(1)}, 3, joins=0), caps(1))
    rules = {each.rule: each for each in planned.findings}
    assert "not-planned" in rules["every-partition-read"].text
    assert "known-weights" not in rules
    unknown = plan_change(group_of({"a": WeightedAssignor()}, 3, joins=0), WeightedAssignor({}))
    assert "known-weights" in {each.rule for each in unknown.findings}


@pytest.mark.usefixtures("folder")
def test_a_program_that_is_not_there_is_one_sentence() -> None:
    result = CliRunner().invoke(app, ["plan", "--snapshot", "billing.json", "--strategy", "mine_of_this_test:Second"])
    assert result.exit_code == 2
    assert "Second" in result.output
    assert "Traceback" not in result.output


CAPS = """
from dataclasses import dataclass
from typing import ClassVar
from kafka_assignors import CustomAssignor, sticky_within

@dataclass(frozen=True)
class Caps(CustomAssignor):
    most: int = 4
    name: ClassVar[str] = "caps"

    def member_data(self):
        return str(self.most).encode()

    def plan(self, group):
        return sticky_within(group, capacity=lambda member: int(member.data))

class Broken(CustomAssignor):
    name = "broken"

    def plan(self, group):
        return group.nothing
"""


@pytest.fixture
def caps(folder: Path) -> type[CustomAssignor]:
    """The class of another program in that folder."""
    (folder / "caps_of_this_test.py").write_text(CAPS)
    sys.modules.pop("caps_of_this_test", None)
    sys.path.insert(0, str(folder))
    found = parse_strategy("caps_of_this_test:Caps(most=1)")
    assert isinstance(found, CustomAssignor)
    return type(found)


def group_of(assignors: Mapping[str, CustomAssignor], partitions: int, joins: int = 1) -> Situation:
    """A live group whose members joined with these assignors and own nothing yet; `joins` members will join."""
    members = [
        ClassicMember(name, None, assignor.metadata(["t"], MemberState()), Assignment({}).encode())
        for name, assignor in assignors.items()
    ]
    found = snapshot({"t": partitions}, members, assignor=next(iter(assignors.values())).name)
    return Situation(ObservedGroup(found), Change(join=(Join(joins),) if joins else ()))


def sizes(situation: Situation, assignor: Assignor) -> dict[str, int]:
    planned = plan_change(situation, assignor)
    return {member.id: sum(map(len, member.partitions.values())) for member in planned.members}


def test_members_say_to_a_plan_what_they_said_to_their_leader(caps: Any) -> None:
    situation = group_of({"a": caps(3), "b": caps(1)}, 20)
    (joins,) = situation.joined
    # The new member has the options of the planned strategy.
    assert sizes(situation, caps(5)) == {"a": 3, "b": 1, joins: 5}
    # The members have sent no data for an assignor of another name: all have the options of the planned strategy.
    other = type("Other", (caps,), {"name": "other-caps"})
    assert sizes(situation, other(2)) == {"a": 2, "b": 2, joins: 2}
    assert set(sizes(situation, StickyAssignor()).values()) == {6, 7}
    assert set(sizes(situation, WeightedAssignor()).values()) == {6, 7}


def test_a_joiner_brings_the_capacity_of_the_text() -> None:
    situation = group_of({"a": WeightedAssignor(capacity=2), "b": WeightedAssignor()}, 16)
    (joins,) = situation.joined
    assert sizes(situation, WeightedAssignor(protocol="cooperative", capacity=5)) == {"a": 4, "b": 2, joins: 10}


def test_capacities_last_through_the_steps_of_a_cost() -> None:
    situation = group_of({"a": WeightedAssignor(capacity=3), "b": WeightedAssignor()}, 8, joins=0)
    (row,) = rebalance_cost(situation, rolling_restart(situation), [WeightedAssignor()]).strategies
    assert (row.fewest, row.most) == (2, 6), row


@pytest.mark.usefixtures("caps")
def test_a_program_that_fails_is_one_sentence_with_the_place() -> None:
    text = "caps_of_this_test:Broken"
    result = CliRunner().invoke(app, ["plan", "--snapshot", "billing.json", "--strategy", text])
    assert result.exit_code == 2
    shown = " ".join(result.output.split())
    assert "the assignor 'broken' failed (AttributeError:" in shown
    assert "at line 21 of" in shown
    words = ["--snapshot", "billing.json", "--strategy", "sticky", "--strategy", text, "--format", "json"]
    for command, change in (("compare", ["--join", "1"]), ("rebalance-cost", ["--scale", "+1"])):
        result = CliRunner().invoke(app, [command, *words, *change])
        sticky, broken = json.loads(result.stdout)["strategies"]
        assert sticky["error"] is None
        assert "AttributeError" in broken["error"]
