"""The stream-join assignor in Python: reasons, notices, and bytes to bytes. The oracle is in the core's tests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from kafka_assignors import (
    Group,
    GroupError,
    Member,
    MemberState,
    OptionError,
    RangeAssignor,
    StickyStreamJoinAssignor,
    _core,
)
from kafka_assignors.member.rebalance_report import RebalanceReport, publish
from kafka_assignors.userdata import Assignment, StreamJoinUserData, Subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors import Plan, Topic

EAGER, COOPERATIVE = StickyStreamJoinAssignor(), StickyStreamJoinAssignor(protocol="cooperative")
TOPICS = ["clicks", "views"]


def holding(name: str, numbers: Iterable[int], epoch: int | None = 1, topics: list[str] = TOPICS) -> Member:
    held = list(numbers)
    return Member(name, topics, owned=dict.fromkeys(topics, held) if held else None, generation=epoch)


def numbers(plan: Plan, topic: str = "clicks") -> dict[str, list[int]]:
    plan.verify(require_optimal=True)
    return {member: share.get(topic, []) for member, share in plan.items()}


def plan(members: list[Member], **counts: int) -> Plan:
    return EAGER.assign(Group(counts or {"clicks": 4, "views": 4}, members))


def rebalance(
    assignor: StickyStreamJoinAssignor, states: Mapping[str, MemberState], counts: Mapping[str, int], generation: int
) -> Plan:
    members = [(name, assignor.metadata(list(counts), state)) for name, state in states.items()]
    assignments, made = assignor.plan_assignment(members, counts, generation=generation)
    made.verify(require_optimal=True)
    for name, state in states.items():
        assignor.on_assignment(assignments[name], generation, state)
    return made


def test_the_wire_name_says_the_protocol() -> None:
    assert (EAGER.name, EAGER.cooperative) == ("sticky-join", False)
    assert (COOPERATIVE.name, COOPERATIVE.cooperative) == ("cooperative-sticky-join", True)
    with pytest.raises(OptionError, match="protocol is 'both'; give one of 'eager', 'cooperative'"):
        StickyStreamJoinAssignor(protocol="both")  # type: ignore[arg-type]


def test_the_name_of_the_kip_is_a_name_of_the_strategy() -> None:
    members = [Member("a", ["t"])]
    counts: dict[str, int | Topic] = {"t": 2}
    args = "fair-yet-sticky", "before-stickiness", counts, members, None
    by_class = _core.assign("StickyStreamJoinAssignor", *args)
    assert by_class.joins
    assert by_class.assignment() == _core.assign("sticky-join", *args).assignment() == {"a": {"t": [0, 1]}}


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_numbers_stay_through_joins_and_leaves(assignor: StickyStreamJoinAssignor) -> None:
    counts = {"clicks": 10, "views": 10}
    states = {name: MemberState() for name in "abcd"}
    for generation in (1, 2):
        rebalance(assignor, states, counts, generation)
    assert [state.generation for state in states.values()] == [2] * 4, "the epoch"
    assert all(state.owned["clicks"] == state.owned["views"] for state in states.values())
    gone = states.pop("d")
    before = {name: set(state.owned["clicks"]) for name, state in states.items()}
    rebalance(assignor, states, counts, 30)
    assert all(before[name] <= set(state.owned["clicks"]) for name, state in states.items())
    assert sorted(len(state.owned["views"]) for state in states.values()) == [3, 3, 4]
    assert {state.generation for state in states.values()} == {3}, "the group's generation is no epoch"
    # The zombie comes back with its partitions of two epochs ago. The other members keep theirs.
    states["d"] = gone
    made = rebalance(assignor, states, counts, 31)
    assert made.verify().moved == 2
    assert bool(made.unassigned) is assignor.cooperative
    rebalance(assignor, states, counts, 32)
    assert sorted(len(state.owned["views"]) for state in states.values()) == [2, 2, 3, 3]
    assert rebalance(assignor, states, counts, 33).unassigned == []


def test_metadata_carries_numbers_and_epoch() -> None:
    state = MemberState(owned={"clicks": [2, 0], "views": [0, 3]}, generation=7)
    eager = Subscription.decode(EAGER.metadata(TOPICS, state))
    assert StreamJoinUserData.decode(eager.user_data, strict=True) == StreamJoinUserData([0, 2, 3], 7)
    assert eager.owned == {}
    cooperative = Subscription.decode(COOPERATIVE.metadata(TOPICS, state))
    assert cooperative.user_data == eager.user_data
    assert cooperative.owned == {"clicks": (0, 2), "views": (0, 3)}
    assert Subscription.decode(EAGER.metadata(TOPICS, MemberState())).user_data is None


@pytest.mark.parametrize("generation", [9, None])
def test_without_user_data_in_the_assignment_the_epoch_is_the_groups_generation(generation: int | None) -> None:
    """A leader may write no user data, so that a broker can convert the group. The broker itself writes none."""
    state = MemberState(generation=4)
    EAGER.on_assignment(Assignment({"t": [1]}).encode(), generation, state)
    assert (state.owned, state.generation) == ({"t": [1]}, generation)


def test_a_topic_added_on_one_member_gives_only_that_members_numbers() -> None:
    made = plan([holding("a", [0, 1]), holding("b", [2, 3], topics=[*TOPICS, "new"])], clicks=4, views=4, new=6)
    assert numbers(made) == {"a": [0, 1], "b": [2, 3]}
    assert numbers(made, "new") == {"a": [], "b": [2, 3]}
    not_subscribed = "its number belongs to 'a', which does not subscribe to the topic"
    beyond = "its number is beyond the partition count of 'clicks', the smallest topic of the join"
    assert [tuple(entry) for entry in made.unassigned] == [
        ("new", 0, not_subscribed),
        ("new", 1, not_subscribed),
        ("new", 4, beyond),
        ("new", 5, beyond),
    ]


def test_a_tiny_topic_is_reported_as_what_cuts_the_join() -> None:
    made = plan([holding("a", range(4), topics=[*TOPICS, "tiny"])], clicks=4, views=4, tiny=1)
    assert numbers(made) == {"a": [0]}
    assert {entry.topic: len([e for e in made.unassigned if e.topic == entry.topic]) for entry in made.unassigned} == {
        "clicks": 3,
        "views": 3,
    }
    assert [(topic, count, text.split(":")[0].split(",")[0]) for topic, count, text in made.notices] == [
        ("tiny", 1, "members held partition numbers that it does not have"),
        ("tiny", 1, "it has fewer partitions than other topics of the join"),
    ]


def test_a_topic_that_lost_partitions_is_reported_from_objects_and_from_bytes() -> None:
    made = plan([holding("a", range(4))], clicks=3, views=3)
    assert [notice.topic for notice in made.notices] == ["clicks", "views"]
    metadata = EAGER.metadata(TOPICS, MemberState(owned={"clicks": [0, 3], "views": [0, 3]}, generation=1))
    _, from_bytes = EAGER.plan_assignment([("a", metadata)], {"clicks": 3, "views": 4})
    assert [notice.topic for notice in from_bytes.notices] == ["clicks", "clicks"]
    assert numbers(from_bytes) == {"a": [0, 1, 2]}


def test_other_strategies_have_no_notices() -> None:
    assert RangeAssignor().assign(Group({"t": 1}, [Member("a", ["t", "gone"])])).notices == []


def test_epochs_at_their_limits_and_unusable_claims() -> None:
    last = 2**31 - 2
    assert numbers(plan([holding("a", [0, 1], last), holding("b", range(4), 3)])) == {"a": [0, 1], "b": [2, 3]}
    tied = plan([holding("a", range(4), last), holding("b", range(4), last)])
    assert tied.kept == tied.moved == 0
    false = plan([holding("a", range(4), last + 1), holding("b", [0, 1], 3)])
    assert numbers(false) == {"a": [2, 3], "b": [0, 1]}, "it could not be exceeded"
    none = plan([holding("a", [0, 1], -7), holding("b", [0], 0)])
    assert {move.source for move in none.moves if move.partition == 1} <= {"a", None}
    assert numbers(none)["b"][0] == 0, "no epoch loses to epoch 0"
    repeated = plan([holding("a", [1, 1, 1, -1, 99, 2**70]), holding("b", [])])
    assert repeated.kept == 2
    with pytest.raises(GroupError, match="generation of member 'a' is 2147483648"):
        holding("a", [], 2**31)


def test_nobody_to_give_to() -> None:
    assert plan([]).assignment == {}
    made = plan([Member("a", ["gone"]), Member("b", [])], clicks=2)
    assert made.assignment == {"a": {}, "b": {}}
    assert [entry.reason for entry in made.unassigned] == ["no subscriber"] * 2
    assert [(notice.topic, notice.partitions) for notice in made.notices] == [("gone", 0)]
    assert numbers(plan([Member("a", ["t", "u"])], t=2, u=0), "t") == {"a": [0, 1]}


def test_an_unreadable_member_costs_only_itself() -> None:
    good = EAGER.metadata(["t"], MemberState(owned={"t": [0]}, generation=1))
    odd = Subscription(["t"], user_data=b"\x7f\xff\xff\xff", owned={"t": [0, 1]}, generation=5).encode()
    assignments, made = EAGER.plan_assignment([("good", good), ("odd", odd), ("bad", b"?")], {"t": 4})
    assert set(made.faults) == {"odd", "bad"}
    assert numbers(made, "t") == {"bad": [], "good": [0, 2], "odd": [1, 3]}
    assert Assignment.decode(assignments["bad"]).partitions == {}
    assert {Assignment.decode(data).generation for data in assignments.values()} == {2}


def test_leaders_log_leftovers_once(caplog: pytest.LogCaptureFixture) -> None:
    made = plan([Member("a", [*TOPICS, "gone"]), Member("b", ["views"])], clicks=4, views=7)
    report = RebalanceReport("sticky-join", 1, {}, {}, {}, leader=True, plan=made)
    with caplog.at_level(logging.WARNING, "kafka_assignors"):
        publish(report, None)
    (message,) = [record.getMessage() for record in caplog.records if "unassigned=" in record.getMessage()]
    assert message.startswith("unassigned=5: gone (0 partitions): members subscribe to it")
    assert "clicks 1,3: its number belongs to 'b'" in message
    assert "views 4-6: its number is beyond the partition count of 'clicks'" in message
