"""A user's own assignor returns a value that is no plan: the fallback plans, and no wrong plan is sent."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    Member,
    OptionError,
    PlanError,
    RangeAssignor,
    UniformAssignor,
)
from kafka_assignors.userdata import Assignment
from support.logs import records_of_the_package
from support.own import TOPICS, Cooperating, Failover, Lifted, Strict, pair, raising

if TYPE_CHECKING:
    from collections.abc import Callable


class Odd(str):
    """Equal to everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Raising:
    def __index__(self) -> int:
        raise ZeroDivisionError("no number")


class Endless(dict[str, Any]):
    def items(self) -> Any:
        return ((f"m{i}", {}) for i in itertools.count())


WRONG: dict[str, Callable[[Group], Any]] = {
    "nothing": lambda group: None,
    "a list": lambda group: [("a", {"orders": [0]})],
    "a member that is not there": lambda group: {"z": {}},
    "a number as member": lambda group: {0: {"orders": [0]}},
    "a topic that is not there": lambda group: {"a": {"other": [0]}},
    "a topic that the member does not read": lambda group: {"b": {"audit": [0]}},
    "a partition that is not there": lambda group: {"a": {"orders": [4]}},
    "a negative partition": lambda group: {"a": {"orders": [-1]}},
    "a huge partition": lambda group: {"a": {"orders": [2**70]}},
    "a text": lambda group: {"a": {"orders": "0123"}},
    "bytes": lambda group: {"a": {"orders": b"\x00"}},
    "a float": lambda group: {"a": {"orders": [0.0]}},
    "a bool": lambda group: {"a": {"orders": [True]}},
    "a number": lambda group: {"a": {"orders": 1}},
    "a mapping of numbers": lambda group: {"a": {"orders": {0: 0}}},
    "a list of topics": lambda group: {"a": ["orders"]},
    "twice to one": lambda group: {"a": {"orders": [0, 0]}},
    "twice to two": lambda group: {"a": {"orders": [0]}, "b": {"orders": [0]}},
    "without end": lambda group: {"a": {"orders": itertools.count()}},
    "members without end": lambda group: Endless(),
    "a surrogate": lambda group: {"a": {"\ud800": [0]}},
    "a text that is equal to everything": lambda group: {Odd("z"): {"orders": [0]}},
    "a number that raises": lambda group: {"a": {"orders": [Raising()]}},
    "an exception": raising(RuntimeError("a bug of the user's")),
    "an exit": raising(SystemExit(3)),
    "an end of a generator": raising(GeneratorExit()),
    "too deep": lambda group: WRONG["too deep"](group),
}


@pytest.mark.parametrize("kind", [Lifted, Cooperating])
@pytest.mark.parametrize("wrong", WRONG)
def test_the_fallback_plans_where_the_assignor_fails(
    wrong: str, kind: type[Lifted], caplog: pytest.LogCaptureFixture
) -> None:
    assignor = kind(WRONG[wrong])
    assignments, plan = assignor.plan_assignment(pair(assignor), TOPICS, generation=2)
    assert plan.balance_score == 0
    assert plan.verify(require_optimal=True).optimal
    assert plan.error is not None
    assert "its fallback 'sticky' has planned" in plan.error
    assert {member: Assignment.decode(share).generation for member, share in assignments.items()} == {"a": 2, "b": 2}
    (error,) = [record for record in records_of_the_package(caplog) if record.levelno >= logging.WARNING]
    assert (error.levelno, error.exc_info is not None) == (logging.ERROR, True)
    with pytest.raises((Exception, SystemExit, GeneratorExit)):
        assignor.assign(Group(TOPICS, [Member("a", ["orders", "audit"]), Member("b", ["orders"])]))


def test_without_a_fallback_the_rebalance_fails() -> None:
    assignor = Strict(raising(RuntimeError("a bug")))
    with pytest.raises(PlanError, match=r"RuntimeError: a bug\); the rebalance is tried again"):
        assignor.plan_assignment(pair(assignor), TOPICS)


def test_a_fallback_may_be_any_assignor_that_a_member_can_have() -> None:
    class Range(Lifted):
        name = "falls-to-range"
        fallback = RangeAssignor()

    class Cooperative(Cooperating):
        name = "falls-to-cooperative"
        fallback = CooperativeStickyAssignor()

    class Own(Lifted):
        name = "falls-to-own"
        fallback = Failover()

    class Broken(Lifted):
        name = "falls-to-broken"
        fallback = Strict(raising(SystemExit(1)))

    planned = {}
    for kind in (Range, Cooperative, Own):
        assignor = kind(lambda group: 1 / 0)
        _, plan = assignor.plan_assignment(pair(assignor), TOPICS)
        planned[kind.name] = plan.assignment
    assert planned["falls-to-range"] == {"a": {"audit": [0, 1], "orders": [0, 1]}, "b": {"orders": [2, 3]}}
    assert planned["falls-to-own"] == {"a": {"audit": [0, 1], "orders": [0, 1, 2, 3]}, "b": {}}
    assert sorted(map(len, planned["falls-to-cooperative"]["a"].values())) == [1, 2]
    broken = Broken(lambda group: 1 / 0)
    with pytest.raises(PlanError, match="failed as well"):
        broken.plan_assignment(pair(broken), TOPICS)
    with pytest.raises(OptionError, match="uniform"):
        type("Wrong", (Lifted,), {"name": "w", "fallback": UniformAssignor()})
    with pytest.raises(OptionError, match="give an assignor, or None"):
        type("Wrong", (Lifted,), {"name": "w", "fallback": "sticky"})


names = st.sampled_from(["a", "b", "z", "", "a ", "orders", "audit", "other", "\x00", "\ud800"])
wrong_numbers = st.one_of(
    st.lists(st.integers(-2, 6), max_size=6),
    st.lists(st.one_of(st.integers(-(2**80), 2**80), st.floats(), st.text(max_size=2), st.none()), max_size=3),
    st.integers(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([range(10**12), range(4), {0, 1}, (2,), {0: 1}, None, iter([3])]),
)
wrong_returns = st.one_of(
    st.dictionaries(names, st.dictionaries(names, wrong_numbers, max_size=3), max_size=3),
    st.dictionaries(st.one_of(names, st.integers(), st.none()), st.one_of(wrong_numbers, st.none()), max_size=3),
    wrong_numbers,
    st.none(),
    st.booleans(),
    st.builds(object),
)


@settings(max_examples=200, deadline=None)
@given(returned=wrong_returns, cooperative=st.booleans())
def test_no_wrong_plan_reaches_the_wire(returned: Any, cooperative: bool) -> None:
    _stays_off_the_wire(returned, cooperative)


@pytest.mark.needs("time")
@settings(max_examples=2_000, deadline=None)
@given(returned=wrong_returns, cooperative=st.booleans())
def test_none_of_many_wrong_plans_reaches_the_wire(returned: Any, cooperative: bool) -> None:
    _stays_off_the_wire(returned, cooperative)


def _stays_off_the_wire(returned: Any, cooperative: bool) -> None:
    assignor = (Cooperating if cooperative else Lifted)(lambda group: returned)
    logging.getLogger("kafka_assignors").disabled = True
    try:
        assignments, plan = assignor._plan_assignment(pair(assignor), TOPICS, 5)
    finally:
        logging.getLogger("kafka_assignors").disabled = False
    sent = {member: Assignment.decode(share, strict=True).partitions for member, share in assignments.items()}
    given_away = [(topic, number) for share in sent.values() for topic in share for number in share[topic]]
    assert sent.keys() == {"a", "b"}
    assert len(given_away) == len(set(given_away))
    assert all(0 <= number < TOPICS[topic] for topic, number in given_away)
    assert "audit" not in sent["b"]
    left = [(each.topic, each.partition) for each in plan.unassigned]
    assert sorted(given_away + left) == [(topic, n) for topic in sorted(TOPICS) for n in range(TOPICS[topic])]
    assert plan.error is None or not left
    plan.verify()
