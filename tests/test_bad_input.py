"""Bad descriptions of a group. Each has a defined result, or one error that names the mistake."""

import re
from typing import Any

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    GroupError,
    GroupTypeError,
    KafkaAssignorsError,
    Member,
    MemberState,
    OptionError,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Topic,
    UserDataError,
)

ALL = [StickyAssignor(), CooperativeStickyAssignor(), RangeAssignor(), RoundRobinAssignor()]


def refuses(error: type[Exception], message: str) -> "pytest.RaisesExc[Exception]":
    return pytest.raises(error, match=re.escape(message))


def test_values_are_checked_where_they_are_made() -> None:
    with refuses(GroupError, "partitions of a Topic is -1; a partition count cannot be negative"):
        Topic(-1)
    with refuses(GroupTypeError, "partitions of a Topic is of type str; give an integer"):
        Topic("3")  # type: ignore[arg-type]
    with refuses(GroupError, "a Topic has 2 partitions but racks for 1; give one set per partition"):
        Topic(2, racks=[{"a"}])
    with refuses(GroupTypeError, "racks[0] of a Topic is of type str; give a set of str"):
        Topic(1, racks=["abc"])
    with refuses(GroupTypeError, "a rack of a Topic is of type int; give a str"):
        Topic(1, racks=[{7}])  # type: ignore[arg-type]
    with refuses(GroupTypeError, "a member's id is of type int; give a str"):
        Member(3, ["t"])  # type: ignore[arg-type]
    with refuses(GroupTypeError, "topics of member 'c0' is of type str; give a list of topic names"):
        Member("c0", "orders")
    with refuses(GroupTypeError, "a topic of member 'c0' is of type int; give a str"):
        Member("c0", [1])  # type: ignore[list-item]
    with refuses(GroupTypeError, "owned of member 'c0' is of type list; give a mapping of topic to partition numbers"):
        Member("c0", ["t"], owned=[0])  # type: ignore[arg-type]
    with refuses(GroupTypeError, "owned['t'] of member 'c0' is of type int; give a list of partition numbers"):
        Member("c0", ["t"], owned={"t": 0})  # type: ignore[dict-item]
    with refuses(GroupTypeError, "generation of member 'c0' is of type str; give an integer"):
        Member("c0", ["t"], generation="7")  # type: ignore[arg-type]
    with refuses(GroupError, "generation of member 'c0' is 2147483648; generations are 32-bit integers"):
        Member("c0", ["t"], generation=2**31)
    with refuses(GroupTypeError, "rack of member 'c0' is of type bytes; give a str or None"):
        Member("c0", ["t"], rack=b"a")  # type: ignore[arg-type]
    with refuses(GroupError, "topic 't' has -3 partitions; a partition count cannot be negative"):
        Group({"t": -3}, [])
    with refuses(GroupTypeError, "the partition count of topic 't' is of type float; give an integer"):
        Group({"t": 3.0}, [])  # type: ignore[dict-item]
    with refuses(GroupTypeError, "topics is of type list; give a mapping of topic to partition count"):
        Group(["t"], [])  # type: ignore[arg-type]
    with refuses(GroupTypeError, "members[0] is of type str; give a Member"):
        Group({}, ["c0"])  # type: ignore[list-item]
    with refuses(GroupError, "member id 'c1' is given twice"):
        Group({}, [Member("c1", []), Member("c0", []), Member("c1", ["t"])])


@pytest.mark.parametrize("assignor", ALL)
def test_values_are_checked_where_they_are_used(assignor: StickyAssignor) -> None:
    with refuses(GroupTypeError, "group is of type dict; give a Group"):
        assignor.assign({})  # type: ignore[arg-type]
    with refuses(GroupError, "at most 100000000 are supported"):
        assignor.assign(Group({"t": 99_999_999, "u": 2}, []))
    with refuses(GroupError, 'the partition count of topic "t" cannot be represented'):
        assignor.assign(Group({"t": 10**30}, []))
    with refuses(GroupTypeError, 'a partition number in owned of member "c0" is of type str; give an integer'):
        assignor.assign(Group({"t": 2}, [Member("c0", ["t"], owned={"t": ["0"]})]))  # type: ignore[list-item]
    with refuses(GroupError, "a member's id cannot be represented"):
        assignor.assign(Group({"t": 2}, [Member("\udc80", ["t"])]))


def test_errors_are_what_callers_expect() -> None:
    with pytest.raises(ValueError, match="negative"):
        Topic(-1)
    with pytest.raises(TypeError, match="give an integer"):
        Topic("3")  # type: ignore[arg-type]
    with pytest.raises(KafkaAssignorsError):
        Topic("3")  # type: ignore[arg-type]


def test_options() -> None:
    with refuses(OptionError, "mode is 'fairest'; give one of 'fair-yet-sticky', 'sticky-yet-fair', 'fair'"):
        StickyAssignor(mode="fairest")  # type: ignore[arg-type]
    with refuses(OptionError, "racks is None; give one of 'before-stickiness', 'after-stickiness'"):
        CooperativeStickyAssignor(racks=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("assignor", ALL)
def test_what_is_odd_but_defined(assignor: StickyAssignor) -> None:
    empty = assignor.assign(Group({}, []))
    assert (empty.assignment, empty.balance_score, empty.moves, empty.unassigned) == ({}, 0, [], [])

    nobody = assignor.assign(Group({"t": 2}, []))
    assert nobody.assignment == {}
    assert nobody.unassigned == [("t", 0, "no subscriber"), ("t", 1, "no subscriber")]

    idle = assignor.assign(Group({"t": 2, "nobody's": 1, "empty": 0}, [Member("c0", []), Member("c1", ["t", "empty"])]))
    assert idle.assignment == {"c0": {}, "c1": {"t": [0, 1]}}
    assert idle.unassigned == [("nobody's", 0, "no subscriber")]

    unknown = assignor.assign(Group({"t": 1}, [Member("c0", ["t", "gone"], owned={"gone": [0]}, generation=1)]))
    assert unknown.assignment == {"c0": {"t": [0]}}
    assert unknown.unassigned == []


@pytest.mark.parametrize("assignor", ALL[:2])
@pytest.mark.parametrize("numbers", [[-1, 2, 2**31, 2**70, -(2**70)], [0, 0, 1, -5], []])
def test_claims_that_cannot_be_true_do_not_count(assignor: StickyAssignor, numbers: list[int]) -> None:
    plan = assignor.assign(Group({"t": 2}, [Member("c0", ["t"], owned={"t": numbers}, generation=1)]))
    assert plan.assignment == {"c0": {"t": [0, 1]}}
    assert (plan.kept, plan.moved) == (len({0, 1} & set(numbers)), 0)


def test_a_claim_as_new_as_the_generation_being_formed_is_false() -> None:
    group = Group({"t": 2}, [Member("c0", ["t"], owned={"t": [0]}, generation=5), Member("c1", ["t"])])
    assert StickyAssignor().assign(group, generation=6).kept == 1
    assert StickyAssignor().assign(group, generation=5).kept == 0
    assert StickyAssignor().assign(group, generation=-1).kept == 1


@pytest.mark.parametrize("assignor", ALL, ids=repr)
def test_what_a_leader_hands_over_is_checked(assignor: StickyAssignor) -> None:
    shape = "(member id, metadata) or (member id, instance id, metadata)"
    anything: Any = assignor.perform_assignment
    with refuses(GroupTypeError, f"members[1] is of type str; give a tuple {shape}"):
        anything([("c0", b""), "c1"], {})
    with refuses(GroupTypeError, f"members[0] is a tuple of 1; give {shape}"):
        anything([("c0",)], {})
    with refuses(GroupTypeError, "the member id of members[0] is of type bytes; give a string"):
        anything([(b"c0", b"")], {})
    with refuses(GroupTypeError, "the instance id of members[0] is of type int; give a string"):
        anything([("c0", 1, b"")], {})
    with refuses(GroupTypeError, "the metadata of members[0] is of type str; give bytes"):
        anything([("c0", None, "")], {})
    with refuses(GroupError, "the member id of members[0] cannot be represented"):
        anything([("\ud800", b"")], {})
    with refuses(GroupError, 'topic "t" has -1 partitions; a partition count cannot be negative'):
        anything([], {"t": -1})
    with refuses(GroupError, "at most 100000000 are supported"):
        anything([], {"t": 2**62, "u": 2**62})
    with refuses(GroupError, 'the partition count of topic "t" cannot be represented'):
        anything([], {"t": 2**64})
    with refuses(GroupTypeError, 'the partition count of topic "t" is of type str; give an integer'):
        anything([], {"t": "3"})
    with refuses(GroupTypeError, "a topic's name is of type int; give a string"):
        anything([], {3: 3})
    with refuses(GroupTypeError, "topics is of type list; give a mapping of topic to partition count"):
        anything([], ["t"])
    assert anything([], {"t": 3}) == {}


@pytest.mark.parametrize("assignor", ALL, ids=repr)
def test_what_a_member_says_is_checked(assignor: StickyAssignor) -> None:
    anything: Any = assignor.metadata
    with refuses(GroupTypeError, "topics of a subscription is of type str; give a list of topic names"):
        anything("orders", MemberState())
    with refuses(GroupTypeError, "a topic of a subscription is of type int; give a str"):
        anything([1], MemberState())
    with refuses(UserDataError, "at most 32767"):
        anything(["x" * 32_768], MemberState())
    with refuses(UserDataError, "32 bits"):
        StickyAssignor().metadata(["t"], MemberState({"t": [2**31]}))


class Three:
    """An integer of another library."""

    def __index__(self) -> int:
        return 3


def test_integers_of_other_libraries_are_integers() -> None:
    three: Any = Three()
    member = Member("c0", ["t"], owned={"t": [three]}, generation=three)
    for partitions in (4, three, Topic(three, racks=[{"a"}] * 3)):
        plan = StickyAssignor().assign(Group({"t": partitions}, [member]))
        assert plan.kept == (1 if partitions == 4 else 0)
        assert len(plan["c0"]["t"]) == (4 if partitions == 4 else 3)
