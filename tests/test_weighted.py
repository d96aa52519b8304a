"""The weighted assignor: the objective, the bytes, sources of weights, and wrong weights and capacities."""

from __future__ import annotations

import logging
import math
import pickle
import random
import re
import struct
import threading
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    GroupError,
    GroupTypeError,
    Member,
    MemberState,
    OptionError,
    PlanError,
    StickyAssignor,
    WeightedAssignor,
    WeightError,
    WeightSource,
    by_name,
)
from kafka_assignors.member.rebalance_report import Planned, RebalanceReporter, publish
from kafka_assignors.strategies import parse_strategy, strategy_text
from kafka_assignors.userdata import Assignment, CustomUserData, Subscription
from kafka_assignors.weighted import decode_capacity, encode_capacity
from support.logs import records_of_the_package

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors import Plan

TOPICS = {"orders": 4, "audit": 2}
WEIGHTS: dict[str, Any] = {"orders": [90.0, 40.0, 30.0, 20.0], "audit": 10.0}


def group(topics: dict[str, int], *members: str) -> Group:
    return Group(topics, [Member(each, list(topics)) for each in members])


def after(plan: Plan, before: Group, **changes: Any) -> Group:
    """The group of the next rebalance: its members own the partitions that the plan assigned."""
    members = [Member(each.id, each.topics, plan[each.id], 1, data=each.data) for each in before.members]
    return Group(changes.get("topics", before.topics), [*members, *changes.get("joined", ())])


def drawn(seed: int) -> tuple[Group, dict[str, list[float]], dict[str, float]]:
    """A group with owners, weights and capacities of every kind."""
    pick = random.Random(seed)
    topics = {f"t{i}": pick.randint(0, 12) for i in range(pick.randint(1, 4))}
    capacities = {f"m{i}": pick.choice([0.5, 1.0, 1.0, 4.0]) for i in range(pick.randint(1, 6))}
    members = []
    free = {(topic, number) for topic, count in topics.items() for number in range(count)}
    for each, capacity in capacities.items():
        subscribed = [topic for topic in topics if pick.random() < 0.8]
        owned: dict[str, list[int]] = {}
        for topic, number in sorted(free):
            if pick.random() < 0.2:
                owned.setdefault(topic, []).append(number)
                free.discard((topic, number))
        members.append(Member(each, subscribed, owned, 3, data=encode_capacity(capacity)))
    weights = {topic: [round(pick.paretovariate(1), 3) for _ in range(count)] for topic, count in topics.items()}
    return Group(topics, members), weights, capacities


@pytest.mark.parametrize("seed", range(60))
def test_figures_are_those_of_the_assignment(seed: int) -> None:
    drawn_group, weights, capacities = drawn(seed)
    plan = WeightedAssignor(weights).assign(drawn_group)
    loads = {
        member: sum(weights[topic][number] for topic, numbers in share.items() for number in numbers)
        for member, share in plan.assignment.items()
    }
    assert plan.load_by_member == pytest.approx(loads)
    assert plan.worst_load == pytest.approx(max(loads[each] / capacities[each] for each in loads))
    assert plan.load_bound is not None
    assert plan.worst_load is not None
    assert plan.load_bound <= plan.worst_load
    certificate = plan.verify()
    assert (certificate.load, certificate.load_bound) == (plan.worst_load, plan.load_bound)
    assert certificate.moved_bound is not None
    assert certificate.moved_bound <= certificate.moved == plan.moved
    assert {each.reason for each in plan.unassigned} <= {"no subscriber"}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("weights", [None, {f"t{i}": 2.5 for i in range(4)}, {f"t{i}": 0 for i in range(4)}])
def test_equal_weights_and_capacities_are_the_sticky_plan(seed: int, weights: Any) -> None:
    given, _, _ = drawn(seed)
    equal = Group(given.topics, [Member(each.id, each.topics, each.owned, each.generation) for each in given.members])
    for ours, sticky in (
        (WeightedAssignor(weights, protocol="eager"), StickyAssignor()),
        (WeightedAssignor(weights, protocol="cooperative"), CooperativeStickyAssignor()),
    ):
        plan, expected = ours.assign(equal), sticky.assign(equal)
        assert plan.assignment == expected.assignment
        assert plan.unassigned == expected.unassigned
        certificate = plan.verify(require_optimal=True)
        assert certificate.balance_score_bound == expected.verify().balance_score_bound


def test_a_plan_of_other_strategies_has_no_loads() -> None:
    plan = StickyAssignor().assign(group(TOPICS, "a"))
    assert (plan.load_by_member, plan.worst_load, plan.load_bound) == (None, None, None)
    assert (plan.verify().load, plan.verify().load_bound) == (None, None)


def test_nothing_moves_within_the_tolerance() -> None:
    before = group(TOPICS, "a", "b")
    plan = WeightedAssignor(WEIGHTS).assign(before)
    assert (plan.worst_load, plan.load_bound) == (100.0, 100.0)
    heavier = WEIGHTS | {"orders": [90.0, 40.0, 50.0, 20.0]}
    assert WeightedAssignor(heavier).assign(after(plan, before)).moved == 0
    moved = WeightedAssignor(heavier, tolerance=0).assign(after(plan, before))
    assert moved.worst_load == moved.load_bound == 110.0
    much = WEIGHTS | {"orders": [90.0, 40.0, 90.0, 20.0]}
    assert WeightedAssignor(much).assign(after(plan, before)).verify(require_optimal=True).moved > 0


def test_a_larger_member_carries_more() -> None:
    members = [Member("a", TOPICS, data=encode_capacity(3)), Member("b", TOPICS)]
    plan = WeightedAssignor(WEIGHTS).assign(Group(TOPICS, members))
    assert plan.load_by_member == {"a": 150.0, "b": 50.0}
    assert plan.worst_load == plan.load_bound == 50.0
    # Without weights, capacities apply to numbers of partitions.
    counts = WeightedAssignor().assign(Group({"t": 8}, [Member(each.id, ["t"], data=each.data) for each in members]))
    assert {each: len(share["t"]) for each, share in counts.assignment.items()} == {"a": 6, "b": 2}


def joined(capacities: dict[str, bytes], assignor: WeightedAssignor) -> list[tuple[str, bytes]]:
    """Members as a leader gets them, each with these bytes as its data."""
    found = []
    for each, data in capacities.items():
        sent = Subscription.decode(assignor.metadata(list(TOPICS), MemberState()))
        user_data = CustomUserData(data, {}, -1).encode()
        found.append((each, Subscription(sent.topics, user_data, rack=sent.rack).encode()))
    return found


def test_capacities_travel_in_the_members_data() -> None:
    assignors = {"a": WeightedAssignor(WEIGHTS, capacity=3), "b": WeightedAssignor(WEIGHTS)}
    members = [(each, assignor.metadata(list(TOPICS), MemberState())) for each, assignor in assignors.items()]
    assignments, plan = assignors["b"].plan_assignment(members, TOPICS, generation=4)
    assert plan.load_by_member == {"a": 150.0, "b": 50.0}
    assert plan.warnings == ()
    assert Assignment.decode(assignments["a"]).generation == 4
    assert plan.verify().load == 50.0


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\0" * 9,
        struct.pack(">hd", 0, 0.0),
        struct.pack(">hd", 0, -1.0),
        struct.pack(">hd", 0, math.nan),
        struct.pack(">hd", 0, math.inf),
        struct.pack(">hd", 0, 1e300),
        struct.pack(">hd", 0, 5e-324),
        struct.pack(">hd", -1, 2.0),
        b"\xff" * 65_536,
    ],
)
def test_hostile_data_is_a_capacity_of_one_and_a_warning(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assignor = WeightedAssignor(WEIGHTS)
    with caplog.at_level(logging.WARNING):
        _, plan = assignor.plan_assignment(joined({"a": data, "b": b""}, assignor), TOPICS)
    assert plan.load_by_member == {"a": 100.0, "b": 100.0}
    (warning,) = plan.warnings
    assert warning.startswith("the capacity of 1 members cannot be read and counts as 1: a (")
    assert [record.levelname for record in records_of_the_package(caplog)] == ["WARNING"]
    with pytest.raises(OptionError, match="data of member 'a': "):
        assignor.assign(Group(TOPICS, [Member("a", TOPICS, data=data)]))


def test_a_newer_version_begins_with_the_same_fields() -> None:
    assert decode_capacity(struct.pack(">hd", 7, 2.5) + b"more") == 2.5


# ---- weights ------


class Broken(dict[str, Any]):
    """A mapping of the user's that fails when it is read."""

    def __getitem__(self, topic: str) -> Any:
        raise ZeroDivisionError(f"no weights of {topic}")


class Unhappy:
    """An object of the user's whose conversion to a number fails."""

    def __float__(self) -> float:
        raise ZeroDivisionError("no number")


class Speechless(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ZeroDivisionError("no text")


def speechless(_: Iterable[str]) -> Any:
    raise Speechless


WRONG: list[tuple[Any, type[Exception], str]] = [
    ({"orders": [1, -1.0, 1, 1]}, GroupError, 'weights["orders"][1] is -1; give a finite number of at least 0'),
    ({"orders": [1, 1, math.nan, 1]}, GroupError, 'weights["orders"][2] is NaN; give a finite number of at least 0'),
    ({"orders": math.inf}, GroupError, 'weights["orders"][0] is inf; give a finite number of at least 0'),
    ({"orders": ["1", 1, 1, 1]}, GroupTypeError, 'weights["orders"][0] is of type str; give a number'),
    ({"orders": [[1]]}, GroupTypeError, 'weights["orders"][0] is of type list; give a number'),
    ({"orders": 10**400}, GroupError, 'weights["orders"][0] cannot be represented'),
    ({"orders": "1"}, WeightError, "weights['orders'] is of type str; give a number for all partitions, or a list"),
    ({"orders": {0: 1}}, WeightError, "weights['orders'] is of type dict"),
    ({"orders": True}, WeightError, "weights['orders'] is of type bool"),
    (lambda _: [1], WeightError, "the source of weights answered with a list; give topic to weights"),
    (lambda _: 1 / 0, WeightError, "the source of weights failed: ZeroDivisionError: division by zero"),
    (speechless, WeightError, "the source of weights failed: Speechless"),
    # Weights that fail only when they are read.
    (lambda _: {"orders": (1 / n for n in (1, 0))}, WeightError, "the source of weights failed: ZeroDivisionError"),
    (Broken(orders=1), WeightError, "the source of weights failed: ZeroDivisionError: no weights of orders"),
    ({"orders": [Unhappy()]}, GroupError, 'weights["orders"][0] cannot be represented (ZeroDivisionError: no number)'),
]


@pytest.mark.parametrize(("weights", "error", "text"), WRONG)
def test_what_is_no_weight_is_one_clear_error(
    weights: Any, error: type[Exception], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    assignor = WeightedAssignor(weights)
    with pytest.raises(error, match=re.escape(text)):
        assignor.assign(group(TOPICS, "a", "b"))
    # A leader goes on with equal weights, and says why once in the log and in each report.
    with caplog.at_level(logging.WARNING):
        plans = [assignor.plan_assignment(joined({"a": b"", "b": b""}, assignor), TOPICS)[1] for _ in range(3)]
    expected = StickyAssignor().assign(group(TOPICS, "a", "b"))
    for plan in plans:
        assert plan.assignment == expected.assignment
        (warning,) = plan.warnings
        assert warning.startswith("the weights are not known (")
        assert text[:40] in warning
    assert len(records_of_the_package(caplog)) == 1


def test_a_source_that_is_late_is_not_waited_for() -> None:
    told = threading.Event()

    def late(_: Iterable[str]) -> Any:
        told.wait(60)
        return WEIGHTS

    assignor = WeightedAssignor(late, deadline=0.05)
    with pytest.raises(WeightError, match=r"did not answer within 0\.05 s"):
        assignor.assign(group(TOPICS, "a"))
    _, plan = assignor.plan_assignment(joined({"a": b""}, assignor), TOPICS)
    told.set()
    assert "did not answer within 0.05 s" in plan.warnings[0]


def test_a_list_that_is_late_is_not_waited_for_either() -> None:
    told = threading.Event()

    def late(_: Iterable[str]) -> Any:
        return {"orders": (told.wait(60) for _ in range(4))}

    _, plan = WeightedAssignor(late, deadline=0.05).plan_assignment(joined({"a": b""}, WeightedAssignor()), TOPICS)
    told.set()
    assert "did not answer within 0.05 s" in plan.warnings[0]


def test_numbers_of_other_libraries_are_weights() -> None:
    weights: dict[str, Any] = {"orders": [Fraction(90), Decimal(40), 30, 20.0], "audit": Fraction(10)}
    plan = WeightedAssignor(weights).assign(group(TOPICS, "a", "b"))
    assert plan.load_by_member == {"a": 100.0, "b": 100.0}


def test_the_error_of_a_plan_that_is_not_the_best_says_what_is_proven() -> None:
    plan = WeightedAssignor({"t": [5, 5, 5, 3, 3, 3]}, tolerance=0).assign(group({"t": 6}, "a", "b"))
    # The best loads are 13 and 11. The proven bound is their mean, 12.
    assert plan.worst_load == 13.0
    with pytest.raises(PlanError, match=r"not proven optimal: worst load 13\.0 where 12\.0 is the bound"):
        plan.verify(require_optimal=True)


def test_unknown_weights_are_the_mean_of_the_known() -> None:
    unknown = WeightedAssignor({"orders": [60.0, None, 20.0]}).assign(group(TOPICS, "a", "b"))
    assert sum((unknown.load_by_member or {}).values()) == pytest.approx(60 + 20 + 2 * 40 + 2 * 40)
    (warning,) = unknown.warnings
    assert warning.startswith("the weights of 4 partitions are not known")
    assert WeightedAssignor({}).assign(group(TOPICS, "a", "b")).warnings[0].startswith("the weights of 6 partitions")
    assert WeightedAssignor({"else": -1}).assign(group({}, "a")).warnings == ()


class Told:
    """A source that returns all weights, and keeps the topics of its calls."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def weights(self, topics: Iterable[str]) -> Any:
        self.asked.append(list(topics))
        return {"orders": (90, 40, 30, 20, 999), "audit": 10, "else": -1}


def test_a_source_and_a_function_and_a_mapping_are_the_same() -> None:
    source = Told()
    assert isinstance(source, WeightSource)
    expected = WeightedAssignor(WEIGHTS).assign(group(TOPICS, "a", "b"))
    given: list[Any] = [source, source.weights, WEIGHTS]
    for weights in given:
        plan = WeightedAssignor(weights).assign(group(TOPICS, "a", "b"))
        assert plan.assignment == expected.assignment
        assert plan.load_by_member == expected.load_by_member
    assert source.asked == [["orders", "audit"]] * 2


# ---- the object ------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"weights": 3}, "weights is of type int; give a mapping of topic to weights, a WeightSource or a function"),
        *(({"capacity": each}, "capacity is ") for each in (0, -1, math.nan, math.inf, 1e-9, 1e9, True, "2", None)),
        *(({"tolerance": each}, "tolerance is ") for each in (-0.1, math.nan, 11, True, "1", None)),
        *(({"deadline": each}, "deadline is ") for each in (0, -1, math.nan, math.inf, True, "1", None)),
        ({"protocol": "lazy"}, "protocol is 'lazy'; give one of 'eager', 'cooperative'"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=re.escape(text)):
        WeightedAssignor(**options)


def test_names_texts_and_copies() -> None:
    eager, cooperative = WeightedAssignor(), WeightedAssignor(protocol="cooperative")
    assert (eager.name, eager.cooperative) == ("weighted", False)
    assert (cooperative.name, cooperative.cooperative) == ("cooperative-weighted", True)
    assert by_name("weighted") == by_name("WeightedAssignor") == eager
    assert by_name("cooperative-weighted") == cooperative
    for text in ("weighted", "weighted(capacity=2.5)", "cooperative-weighted(capacity=2.0, tolerance=0.25)"):
        assert strategy_text(parse_strategy(text)) == text
    with pytest.raises(OptionError, match="capacity is '2x'; give a number"):
        parse_strategy("weighted(capacity=2x)")
    with pytest.raises(OptionError, match="capacity is 0"):
        parse_strategy("weighted(capacity=0)")
    given = WeightedAssignor(WEIGHTS, capacity=2)
    given.plan_assignment(joined({"a": b""}, given), TOPICS)
    assert pickle.loads(pickle.dumps(given)) == given
    with pytest.raises(GroupTypeError, match="group is of type str; give a Group"):
        given.assign("x")  # type: ignore[arg-type]


def test_a_cooperative_plan_withholds_and_shows_the_loads_to_come() -> None:
    before = group({"t": 4}, "a")
    weights = {"t": [4.0, 3.0, 2.0, 1.0]}
    plan = WeightedAssignor(weights, protocol="cooperative").assign(before)
    joining = after(plan, before, joined=[Member("b", ["t"])])
    plan = WeightedAssignor(weights, protocol="cooperative").assign(joining)
    assert plan["b"] == {}
    assert {each.reason for each in plan.unassigned} == {"withheld from 'b' until 'a' revokes it"}
    assert plan.load_by_member == {"a": 5.0, "b": 5.0}
    assert plan.verify().load == 5.0


def test_the_leaders_report_says_what_the_heaviest_member_carries(caplog: pytest.LogCaptureFixture) -> None:
    assignor = WeightedAssignor(WEIGHTS)
    _, plan = assignor.plan_assignment(joined({"a": b"", "b": b""}, assignor), TOPICS)
    reporter = RebalanceReporter()
    reporter.planned = Planned(plan, plan.record_bytes, 0.1)
    report = reporter.report(assignor.name, 3, plan["a"])
    assert (report.worst_load, report.load_bound) == (100.0, 100.0)
    with caplog.at_level(logging.INFO):
        publish(report, None)
    assert "worst_load=100.0 load_bound=100.0" in caplog.text
    follower = reporter.report(assignor.name, 4, plan["a"])
    assert (follower.worst_load, follower.load_bound) == (None, None)
