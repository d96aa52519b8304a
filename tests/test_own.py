"""A user's own assignor as its leader runs it: what it gets, what is checked, and what happens when it fails."""

from __future__ import annotations

import itertools
import logging
import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_assignors import (
    CooperativeStickyAssignor,
    CustomAssignor,
    Group,
    GroupTypeError,
    Member,
    MemberState,
    OptionError,
    PlanError,
    RangeAssignor,
    StickyAssignor,
    Topic,
    UniformAssignor,
)
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.member.strategies import Strategies, strategies_of
from kafka_assignors.strategies import parse_strategy, strategy_text
from kafka_assignors.userdata import Assignment, CustomUserData, StickyUserData, Subscription
from support.logs import records_of_the_package
from support.offline import AiokafkaMember, KafkaPythonMember
from support.offline import Group as OfflineGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.assignors import Assignor

TOPICS = {"orders": 4, "audit": 2}


class Failover(CustomAssignor):
    """The first member alphabetically reads everything; the others wait."""

    name = "failover"

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        first, *_ = sorted(group.members, key=lambda member: member.id)
        return {first.id: {topic: range(group.partitions(topic)) for topic in first.topics}}


class Lifted(CustomAssignor):
    """Plans with any function, and keeps the groups that it got."""

    name = "lifted"
    fallback: ClassVar[Assignor | None] = StickyAssignor()

    def __init__(self, does: Callable[[Group], Any], data: Any = b"") -> None:
        self.does = does
        self.data = data
        self.groups: list[Group] = []

    def plan(self, group: Group) -> Any:
        self.groups.append(group)
        return self.does(group)

    def member_data(self) -> Any:
        return self.data() if callable(self.data) else self.data


class Cooperating(Lifted):
    name = "lifted-cooperatively"
    cooperative = True


class Strict(Lifted):
    name = "strict"
    fallback = None


def joined(
    assignor: CustomAssignor, *states: tuple[str, list[str], MemberState], **data: bytes
) -> list[tuple[str, str | None, bytes]]:
    return [(member, None, assignor.metadata(topics, state)) for member, topics, state in states]


def pair(assignor: CustomAssignor) -> list[tuple[str, str | None, bytes]]:
    return joined(assignor, ("a", ["orders", "audit"], MemberState()), ("b", ["orders"], MemberState()))


# ---- what it gets ---------------------------------------------------------------------------------------------------


def test_the_leader_plans_with_the_users_code() -> None:
    assignor = Failover()
    assignments, plan = assignor.plan_assignment(pair(assignor), TOPICS, generation=3)
    assert plan.assignment == {"a": {"audit": [0, 1], "orders": [0, 1, 2, 3]}, "b": {}}
    assert Assignment.decode(assignments["a"]).generation == 3
    assert (plan.error, plan.warnings, plan.unassigned) == (None, (), [])
    certificate = plan.verify()
    # The best plan of all gives `b` three of `orders`, and `a` the rest.
    assert (certificate.balance_score, certificate.balance_score_bound, certificate.optimal) == (6, 0, False)


@pytest.mark.parametrize("kind", [Lifted, Cooperating])
def test_members_come_with_all_that_they_said(kind: type[Lifted]) -> None:
    assignor = kind(lambda group: {}, b"\x00big\xff")
    states = {
        "new": MemberState({"orders": [0, 1], "audit": [0]}, 7, "rack-a"),
        "old": MemberState({"orders": [1, 2]}, 6),
        "same": MemberState({"orders": [0]}, 7),
    }
    members = [(name, f"static-{name}", assignor.metadata(["orders"], state)) for name, state in states.items()]
    assignor.plan_assignment([*members, ("mad", None, b"\x00")], {"orders": Topic(4, racks=[{"rack-a"}] * 4)})
    group = assignor.groups[0]
    assert [member.id for member in group.members] == ["mad", "new", "old", "same"]
    mad, new, old, same = group.members
    # Number 0 is claimed twice with the newest generation; the older claim of number 1 does not count; `audit` is not
    # subscribed to.
    assert (new.owned, old.owned, same.owned, mad.owned) == ({"orders": [1]}, {"orders": [2]}, {}, {})
    assert (new.generation, old.generation, mad.generation) == (7, 6, None)
    assert (new.rack, new.instance_id, new.data, list(new.topics)) == (
        "rack-a",
        "static-new",
        b"\x00big\xff",
        ["orders"],
    )
    assert (mad.topics, mad.data) == ((), b"")
    assert group.partitions("orders") == 4


def test_a_member_that_cannot_be_read_is_a_fault_and_gets_nothing() -> None:
    assignor = Failover()
    bad = [("a", None, b""), ("c", None, Subscription(["orders"], b"\x00\x00\x01").encode())]
    assignments, plan = assignor.plan_assignment([*pair(assignor)[1:], *bad], TOPICS)
    assert set(plan.faults) == {"a", "c"}
    assert Assignment.decode(assignments["a"]).partitions == {}
    # `a` comes first and has no topics, so it gets nothing and everything is left out.
    assert plan.assignment == {"a": {}, "b": {}, "c": {}}
    assert {each.reason for each in plan.unassigned if each.topic == "orders"} == {"not-planned"}


def test_data_that_is_too_long_does_not_count_and_costs_nothing_else() -> None:
    assignor = Lifted(lambda group: {})
    told = b"x" * (CustomUserData.MOST + 1)
    user_data = CustomUserData(told[1:], {"orders": [1]}, 4).encode()
    grown = user_data[: -len(told) + 1 - 4] + len(told).to_bytes(4) + told
    members = [
        ("a", None, Subscription(["orders"], grown).encode()),
        ("b", None, Subscription(["orders"], user_data).encode()),
    ]
    _, plan = assignor.plan_assignment(members, TOPICS)
    long, fits = assignor.groups[0].members
    assert (long.data, len(fits.data)) == (b"", CustomUserData.MOST)
    assert "65537 bytes" in plan.faults["a"]
    assert set(plan.faults) == {"a"}


def test_cooperative_plans_have_two_phases_and_keep_over_a_change_of_leader() -> None:
    def all_to_last(group: Group) -> Any:
        return {group.members[-1].id: {"orders": [0, 1, 2, 3]}}

    assignor = Cooperating(all_to_last)
    held = MemberState({"orders": [0, 1]}, 4)
    first = joined(assignor, ("a", ["orders"], held), ("b", ["orders"], MemberState({"orders": [2]}, 4)))
    assignments, plan = assignor.plan_assignment(first, {"orders": 4}, generation=5)
    assert plan.assignment == {"a": {}, "b": {"orders": [2, 3]}}
    assert [each.reason for each in plan.unassigned] == ["withheld from 'b' until 'a' revokes it"] * 2
    assert (plan.kept, plan.moved) == (1, 2)
    plan.verify()
    # The next leader knows nothing but what the members bring.
    next_leader = Cooperating(all_to_last)
    states = {}
    for member, share in assignments.items():
        states[member] = MemberState()
        next_leader.on_assignment(share, 5, states[member])
    again = joined(next_leader, *((member, ["orders"], state) for member, state in states.items()))
    _, plan = next_leader.plan_assignment(again, {"orders": 4}, generation=6)
    assert plan.assignment == {"a": {}, "b": {"orders": [0, 1, 2, 3]}}
    assert (next_leader.groups[0].members[1].owned, plan.kept, plan.moved) == ({"orders": [2, 3]}, 2, 0)


def test_a_group_without_a_client_is_planned_alike() -> None:
    assignor = Lifted(lambda group: {member.id: member.owned for member in group.members})
    group = Group(
        {"orders": 3},
        [
            Member("a", ["orders"], owned={"orders": [0, 1]}, generation=3, data=b"d"),
            Member("b", ["orders"], owned={"orders": [1, 2, 9]}, generation=2),
        ],
    )
    plan = assignor.assign(group)
    assert plan.assignment == {"a": {"orders": [0, 1]}, "b": {"orders": [2]}}
    assert (plan.kept, plan.moved, plan.verify(require_optimal=True).optimal) == (3, 0, True)
    assert assignor.groups[0].members[0].data == b"d"
    with pytest.raises(GroupTypeError):
        assignor.assign({"orders": 3})  # type: ignore[arg-type]


# ---- what it leaves out ---------------------------------------------------------------------------------------------


def test_what_is_left_out_has_a_reason_and_is_never_optimal() -> None:
    assignor = Lifted(lambda group: {"a": {"orders": [1]}})
    _, plan = assignor.plan_assignment(pair(assignor), TOPICS | {"nobody": 1})
    assert [(each.topic, each.partition, each.reason) for each in plan.unassigned] == [
        ("audit", 0, "not-planned"),
        ("audit", 1, "not-planned"),
        ("nobody", 0, "no subscriber"),
        ("orders", 0, "not-planned"),
        ("orders", 2, "not-planned"),
        ("orders", 3, "not-planned"),
    ]
    assert len(plan.warnings) == 1
    assert "leaves out 5 partitions" in plan.warnings[0]
    certificate = plan.verify()
    assert (certificate.left_out, certificate.optimal) == (5, False)
    with pytest.raises(PlanError, match="5 partitions left out"):
        plan.verify(require_optimal=True)


# ---- nonsense -------------------------------------------------------------------------------------------------------


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


def raising(error: BaseException) -> Callable[[Group], Any]:
    def plan(group: Group) -> Any:
        raise error

    return plan


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


# ---- plans that change, and plans that take long --------------------------------------------------------------------


def test_a_plan_that_changes_between_equal_calls_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    turns = itertools.cycle("ab")
    assignor = Lifted(lambda group: {next(turns): {"orders": range(4)}})
    plans = [assignor.plan_assignment(pair(assignor), {"orders": 4})[1] for _ in range(5)]
    assert ["gives another plan" in " ".join(plan.warnings) for plan in plans] == [True] * 3 + [False] * 2
    told = [record for record in records_of_the_package(caplog) if "gives another plan" in record.getMessage()]
    assert len(told) == 1


def test_a_plan_that_changes_its_group_changes_only_its_own() -> None:
    def greedy(group: Group) -> Any:
        share = {member.id: dict(member.owned or {}) for member in group.members}
        for member in group.members:
            dict.clear(member.owned)  # type: ignore[arg-type]
        return share

    assignor = Lifted(greedy)
    held = joined(assignor, ("a", ["orders"], MemberState({"orders": [0, 1, 2, 3]}, 3)))
    _, plan = assignor.plan_assignment(held, {"orders": 4})
    assert (plan.warnings, plan.kept) == ((), 4)


def test_planning_that_takes_a_third_of_the_session_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    strategies = Strategies([Failover()], None, reports.append, planning_seconds=0.75)
    # 1.01 s of a session of 3 s, by the clock that the report is made with.
    ticks = itertools.count(step=1.01)
    monkeypatch.setattr("kafka_assignors.member.strategies.time.perf_counter", lambda: next(ticks))
    metadata = dict(strategies.metadata(["orders"], {}))["failover"]
    shares = strategies.plan("failover", [("a", None, metadata)], {"orders": (2, [])}, 1)
    strategies.take("failover", shares["a"], 1, {"orders": [0, 1]})
    assert len(reports[0].warnings) == 1
    assert "session timeout of 3 s" in reports[0].warnings[0]


# ---- what a member says of itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [lambda: 1 / 0, lambda: "text", lambda: None, lambda: b"x" * 65_537, raising(SystemExit(1)).__get__(None, object)],
    ids=["raises", "text", "none", "too long", "exits"],
)
def test_member_data_that_fails_is_told_once_and_the_member_joins_without(
    data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def say() -> Any:
        return data() if data.__name__ == "<lambda>" else data(None)

    assignor = Lifted(lambda group: {}, say)
    written = {assignor.metadata(["orders"], MemberState()) for _ in range(3)}
    assert [CustomUserData.decode(Subscription.decode(each).user_data).data for each in written] == [b""]
    (error,) = records_of_the_package(caplog)
    assert "joins without data" in error.getMessage()


def test_user_data_is_read_whatever_it_is() -> None:
    whole = CustomUserData(b"zone=a", {"orders": [2, 0], "audit": []}, 5)
    assert CustomUserData.decode(whole.encode(), strict=True) == whole
    assert whole.assignments == {"orders": (0, 2)}
    newer = b"\x00\x09" + whole.encode()[2:] + b"more"
    assert CustomUserData.decode(newer, strict=True) == whole
    for cut in range(1, len(whole.encode())):
        assert CustomUserData.decode(whole.encode()[:cut]) == CustomUserData()
    assert CustomUserData.decode(None) == CustomUserData.decode(b"") == CustomUserData()
    assert StickyUserData.decode(CustomUserData(b"x").encode()) == StickyUserData()


# ---- names, texts, values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "sticky",
        "range",
        "lag",
        "uniform",
        "weighted",
        "StickyAssignor",
        "stream",
        "",
        " a",
        "a,b",
        "f(x)",
        "a\n",
        "x" * 250,
        "ü" * 125,
        3,
        None,
        b"x",
        "\ud800",
    ],
)
def test_names_that_no_group_may_agree_on_are_refused(name: Any) -> None:
    with pytest.raises(OptionError):
        type("Mine", (Lifted,), {"name": name})

    class Late(Lifted):
        @property
        def name(self) -> Any:  # type: ignore[override]
            return name

    late = Late(lambda group: {})
    with pytest.raises(OptionError):
        late.metadata(["orders"], MemberState())
    with pytest.raises(OptionError):
        strategies_of([late], "range")
    with pytest.raises(OptionError):
        kafka_python.CustomAssignor(late)


def test_a_name_may_be_as_long_as_a_topics() -> None:
    long = "ü" * 124
    assert vars(type("Mine", (Lifted,), {"name": long}))["name"] == long


@dataclass(frozen=True)
class Zoned(CustomAssignor):
    zone: str = "a"
    most: int | None = 3
    name: ClassVar[str] = "zoned"

    def plan(self, group: Group) -> Any:
        return Failover().plan(group)


def test_an_assignor_is_a_value_that_can_be_named_in_text_and_pickled() -> None:
    text = "test_own:Zoned(zone=b, most=none)"
    assignor = parse_strategy(text)
    assert assignor == Zoned("b", None)
    assert strategy_text(assignor) == text
    assert strategy_text(Failover()) == "test_own:Failover"
    assignor.plan_assignment([("a", None, assignor.metadata(["t"], MemberState()))], {"t": 1})
    assert pickle.loads(pickle.dumps(assignor)) == assignor
    failover = Failover()
    failover.plan_assignment(pair(failover), TOPICS)
    again = pickle.loads(pickle.dumps(failover))
    assert (again.name, vars(again)) == ("failover", {})
    assert [each.name for each in strategies_of("test_own:Failover, range", "sticky")] == ["failover", "range"]


@pytest.mark.parametrize(
    "text",
    [
        "test_own:Missing",
        "no_such_module:Mine",
        "test_own:TOPICS",
        "test_own:Zoned(zone)",
        "test_own:Zoned(other=1)",
        "test_own:Zoned(zone=a, zone=b)",
        "kafka_assignors:StickyAssignor",
        "sticky:mode",
        "test_own:Failover(",
    ],
)
def test_texts_that_name_no_own_assignor_are_refused(text: str) -> None:
    with pytest.raises(OptionError):
        parse_strategy(text)


def test_a_class_without_a_plan_cannot_be_made() -> None:
    class Planless(CustomAssignor):
        name = "planless"

    with pytest.raises(TypeError, match="plan"):
        Planless()  # type: ignore[abstract]


# ---- in the clients' lists ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kafka-python", "kafka-python cooperative", "aiokafka"])
def test_the_clients_lists_take_it(kind: str) -> None:
    made: list[Any] = []

    def first_takes_all(group: Group) -> Any:
        return {group.members[0].id: {"t": range(group.partitions("t"))}}

    own = (Cooperating if "cooperative" in kind else Lifted)(first_takes_all, b"zone")

    def member(name: str) -> Any:
        room, member_class = (aiokafka, AiokafkaMember) if kind == "aiokafka" else (kafka_python, KafkaPythonMember)
        made.append(member_class(name, [room.CustomAssignor(own)], {"t": 4}))
        return made[-1]

    try:
        a, b, group = member("a"), member("b"), OfflineGroup()
        group.rebalance(b)
        group.rebalance(b, a)
        if "cooperative" in kind:
            group.rebalance(b, a)
        assert a.assignor.state.owned == {"t": [0, 1, 2, 3]}
        assert b.assignor.state.owned == {}
        assert b.assignor.last_report.assignor == own.name
        assert {each.data for each in own.groups[-1].members} == {b"zone"}
        own.does = lambda group: 1 / 0
        group.rebalance(b, a)
        assert "ZeroDivisionError" in b.assignor.last_report.error
    finally:
        for each in made:
            each.close()


def test_aiokafka_refuses_a_cooperative_one() -> None:
    with pytest.raises(OptionError, match="cooperative"):
        aiokafka.CustomAssignor(Cooperating(lambda group: {}))
    with pytest.raises(OptionError, match=r"give a kafka_assignors\.CustomAssignor"):
        aiokafka.CustomAssignor(StickyAssignor())  # type: ignore[arg-type]


def test_several_leaders_may_share_one_object() -> None:
    assignor, plans = Failover(), []
    members = pair(assignor)

    def lead() -> None:
        plans.append(assignor.plan_assignment(members, TOPICS)[1].assignment)

    threads = [threading.Thread(target=lead) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert plans == [plans[0]] * 8
