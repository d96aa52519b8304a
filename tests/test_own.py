"""A user's own assignor at its leader: the group that it gets, the checks of its plan, and the fallback."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from typing import Any

import pytest

from kafka_assignors import (
    CustomAssignor,
    Group,
    GroupError,
    GroupTypeError,
    Member,
    MemberState,
    OptionError,
    PlanError,
    StickyAssignor,
    Topic,
)
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.member.strategies import Strategies, strategies_of
from kafka_assignors.strategies import parse_strategy, strategy_text
from kafka_assignors.userdata import Assignment, CustomUserData, StickyUserData, Subscription
from support.commanded_members import AiokafkaMember, KafkaPythonMember, Stage
from support.commanded_members import Group as CommandedGroup
from support.logs import records_of_the_package
from support.own import TOPICS, Cooperating, Failover, Lifted, Zoned, joined, pair, raising

# ---- the group that it gets -----------------------------------------------------------------------------------------


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
    # The plan gives everything to the first member, `a`. Its topics cannot be read, so that everything is left out.
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


def test_a_group_without_a_client_has_no_longer_data_than_one_with_a_client() -> None:
    assert len(Member("a", ["t"], data=bytes(CustomUserData.MOST)).data) == CustomUserData.MOST
    with pytest.raises(GroupError, match="data of member 'a' has 65,537 bytes; give at most 65,536"):
        Member("a", ["t"], data=bytes(CustomUserData.MOST + 1))


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
    # The next leader has only the members' subscriptions.
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


# ---- partitions that it leaves out ----------------------------------------------------------------------------------


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


# ---- plans that change, and plans that take long --------------------------------------------------------------------


def test_a_plan_that_changes_between_equal_calls_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    turns = itertools.cycle("ab")
    assignor = Lifted(lambda group: {next(turns): {"t": range(4)}})
    reports: list[Any] = []
    strategies = Strategies([assignor], None, reports.append)
    metadata = dict(strategies.metadata(["t"], {}))[assignor.name]
    for generation in range(1, 6):
        shares = strategies.plan(
            assignor.name, [("a", None, metadata), ("b", None, metadata)], {"t": (4, [])}, generation
        )
        strategies.take(assignor.name, shares["a"], generation, {})
    assert [len(report.warnings) for report in reports] == [1, 0, 0, 0, 0]
    assert "gives another plan for the same group" in reports[0].warnings[0]
    told = [record for record in records_of_the_package(caplog) if "gives another plan" in record.getMessage()]
    assert len(told) == 1
    # The leader repeats each of its first three plans. Here the repetition of the third one differs.
    late = Lifted(lambda group: {"ab"[len(late.groups) > 5]: {"orders": range(4)}})
    plans = [late.plan_assignment(pair(late), {"orders": 4})[1] for _ in range(5)]
    assert [len(plan.warnings) for plan in plans] == [0, 0, 1, 0, 0]


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
    # On this clock, planning takes 1.01 s of a session of 3 s.
    ticks = itertools.count(step=1.01)
    monkeypatch.setattr("kafka_assignors.member.strategies.time.perf_counter", lambda: next(ticks))
    metadata = dict(strategies.metadata(["orders"], {}))["failover"]
    shares = strategies.plan("failover", [("a", None, metadata)], {"orders": (2, [])}, 1)
    strategies.take("failover", shares["a"], 1, {"orders": [0, 1]})
    assert len(reports[0].warnings) == 1
    assert "session timeout of 3 s" in reports[0].warnings[0]


# ---- the data of members --------------------------------------------------------------------------------------------


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
        "RoundRobinAssigner",
        "rack-affinity",
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


def test_an_assignor_is_a_value_that_can_be_named_in_text_and_pickled() -> None:
    text = "support.own:Zoned(zone=b, most=none)"
    assignor = parse_strategy(text)
    assert assignor == Zoned("b", None)
    assert strategy_text(assignor) == text
    assert strategy_text(Failover()) == "support.own:Failover"
    assignor.plan_assignment([("a", None, assignor.metadata(["t"], MemberState()))], {"t": 1})
    assert pickle.loads(pickle.dumps(assignor)) == assignor
    failover = Failover()
    failover.plan_assignment(pair(failover), TOPICS)
    again = pickle.loads(pickle.dumps(failover))
    assert (again.name, vars(again)) == ("failover", {})
    assert [each.name for each in strategies_of("support.own:Failover, range", "sticky")] == ["failover", "range"]


@pytest.mark.parametrize(
    "text",
    [
        "support.own:Missing",
        "no_such_module:Mine",
        "support.own:TOPICS",
        "support.own:Zoned(zone)",
        "support.own:Zoned(other=1)",
        "support.own:Zoned(zone=a, zone=b)",
        "kafka_assignors:StickyAssignor",
        "sticky:mode",
        "support.own:Failover(",
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
    def first_takes_all(group: Group) -> Any:
        return {group.members[0].id: {"t": range(group.partitions("t"))}}

    own = (Cooperating if "cooperative" in kind else Lifted)(first_takes_all, b"zone")

    def member(name: str) -> Any:
        room, member_class = (aiokafka, AiokafkaMember) if kind == "aiokafka" else (kafka_python, KafkaPythonMember)
        return stage.add(member_class, name, [room.CustomAssignor(own)], {"t": 4})

    with Stage() as stage:
        a, b, group = member("a"), member("b"), CommandedGroup()
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


@pytest.mark.parametrize("kind", [KafkaPythonMember, AiokafkaMember])
def test_the_plug_ins_report_planning_that_takes_long_too(kind: type[KafkaPythonMember] | type[AiokafkaMember]) -> None:
    def slow(group: Group) -> Any:
        time.sleep(0.6)
        return {group.members[0].id: {"t": [0]}}

    room: Any = kafka_python if kind is KafkaPythonMember else aiokafka
    timeouts: Any = {"session_timeout_ms": 1_500, "heartbeat_interval_ms": 400}
    with Stage() as stage:
        member = stage.add(kind, "a", [room.CustomAssignor(Lifted(slow))], {"t": 1}, **timeouts)
        CommandedGroup().rebalance(member)
        (warning,) = member.assignor.last_report.warnings
        assert "session timeout of 1.5 s" in warning


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
