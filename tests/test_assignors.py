"""The assignors as clients use them: bytes to bytes, with a state for each consumer."""

import pickle
import random
import re
import warnings
from typing import Any

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    LagBasedAssignor,
    Member,
    MemberState,
    OptionError,
    RangeAssignor,
    RecordSizeWarning,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
    Topic,
    UserDataError,
)
from kafka_assignors.assignors import Assignor, by_name

STICKY: list[Assignor] = [
    StickyAssignor(),
    StickyAssignor(mode="sticky-yet-fair"),
    StickyAssignor(mode="fair"),
    StickyAssignor(racks="after-stickiness"),
    CooperativeStickyAssignor(),
]
ALL: list[Assignor] = [*STICKY, RangeAssignor(), RoundRobinAssignor()]


def random_group(seed: int) -> Group:
    """Different subscriptions, racks and static members; some claims overlap, and some are void."""
    rng = random.Random(seed)
    racks = ["a", "b", "c"]
    counts = {f"topic-{i}": rng.randrange(6) for i in range(7)}
    topics = {
        name: Topic(count, racks=[rng.sample(racks, 2) for _ in range(count)]) if rng.random() < 0.7 else count
        for name, count in counts.items()
    }
    members = [
        Member(
            f"member-{i}",
            rng.sample(sorted(counts), rng.randrange(8)),
            owned={topic: range(rng.randrange(1, 7)) for topic in rng.sample(sorted(counts), 3)},
            generation=rng.choice([None, 0, 1, 2]),
            instance_id=rng.choice([None, f"static-{9 - i}"]),
            rack=rng.choice([None, *racks]),
        )
        for i in range(9)
    ]
    return Group(topics, members)


def joined(assignor: Assignor, group: Group) -> list[tuple[str, str | None, bytes]]:
    """The metadata that the members of a group send."""
    return [
        (
            member.id,
            member.instance_id,
            assignor.metadata(
                member.topics,
                MemberState({t: list(n) for t, n in (member.owned or {}).items()}, member.generation, member.rack),
            ),
        )
        for member in group.members
    ]


def received(assignor: Assignor, assignments: dict[str, bytes]) -> dict[str, dict[str, list[int]]]:
    """The assigned partitions that the members of a group decode."""
    states = {member: MemberState() for member in assignments}
    for member, state in states.items():
        assignor.on_assignment(assignments[member], 1, state)
    return {member: state.owned for member, state in states.items()}


@pytest.mark.parametrize("assignor", ALL, ids=repr)
@pytest.mark.parametrize("seed", range(25))
def test_objects_and_bytes_give_the_same_plan(assignor: Assignor, seed: int) -> None:
    group = random_group(seed)
    plan = assignor.assign(group, generation=3)
    assignments, other = assignor.plan_assignment(joined(assignor, group), dict(group.topics), generation=3)
    assert other.assignment == plan.assignment
    assert (other.unassigned, other.faults) == (plan.unassigned, {})
    if assignor in STICKY:
        assert other.moves == plan.moves
    else:
        assert {move.source for move in other.moves} == {None}, "members of a strategy without memory claim nothing"
    assert received(assignor, assignments) == plan.assignment
    assert assignor.perform_assignment(joined(assignor, group), dict(group.topics), generation=3) == assignments


@pytest.mark.parametrize("assignor", ALL, ids=repr)
def test_the_order_of_the_members_carries_no_meaning(assignor: Assignor) -> None:
    group = random_group(99)
    members = joined(assignor, group)
    partitions = dict(group.topics)
    expected = assignor.perform_assignment(members, partitions)
    members.reverse()
    assert assignor.perform_assignment(members, dict(reversed(partitions.items()))) == expected


@pytest.mark.parametrize("assignor", STICKY[:1] + STICKY[4:], ids=repr)
def test_a_group_lives_on_what_its_members_remember(assignor: Assignor) -> None:
    """Only bytes and states connect the rounds. A member leaves, one joins, and no partition moves without need."""
    states = {f"c{i}": MemberState(rack="a") for i in range(4)}

    def rebalance(generation: int) -> tuple[int, int]:
        members = [(member, assignor.metadata(["t", "u"], state)) for member, state in states.items()]
        assignments, plan = assignor.plan_assignment(members, {"t": 10, "u": 2}, generation=generation)
        for member, state in states.items():
            assignor.on_assignment(assignments[member], None, state)
            assert state.owned == plan[member]
            assert state.generation == generation
        return plan.kept, plan.moved

    assert rebalance(1) == (0, 0)
    assert rebalance(2) == (12, 0)
    del states["c1"]
    assert rebalance(3) == (9, 0)
    states["c9"] = MemberState()
    assert rebalance(4) == (9, 3)
    kept_and_moved = rebalance(5)
    assert kept_and_moved == ((9, 0) if assignor.cooperative else (12, 0))
    assert sorted(len(state.owned["t"]) + len(state.owned.get("u", [])) for state in states.values()) == [3] * 4


def test_where_each_strategy_keeps_what_it_claims() -> None:
    state = MemberState({"t": [2, 0]}, 5)
    # KIP-54: the user data contain partitions and generation; the field `owned_partitions` is empty.
    assert StickyAssignor().metadata(["t"], state).hex() == (
        "00030000000100017400000017000000010001740000000200000000000000020000000500000000ffffffffffff"
    )
    # KIP-429 and KIP-792: fields contain partitions and generation. The user data contain only the generation.
    assert CooperativeStickyAssignor().metadata(["t"], state).hex() == (
        "00030000000100017400000004000000050000000100017400000002000000000000000200000005ffff"
    )
    # These two strategies have no history.
    for assignor in (RangeAssignor(), RoundRobinAssignor()):
        assert assignor.metadata(["t"], state).hex() == "000300000001000174ffffffff00000000ffffffffffff"


def test_before_the_first_assignment() -> None:
    assert StickyAssignor().metadata(["t"], MemberState()).hex() == "000300000001000174ffffffff00000000ffffffffffff"
    assert CooperativeStickyAssignor().metadata(["t"], MemberState()).hex() == (
        "00030000000100017400000004ffffffff00000000ffffffffffff"
    )


@pytest.mark.parametrize("assignor", ALL, ids=repr)
def test_the_same_state_gives_the_same_bytes(assignor: Assignor) -> None:
    first = assignor.metadata(["a", "b"], MemberState({"b": [1, 0], "a": [3]}, 2, "r"))
    assert assignor.metadata(["b", "a", "b"], MemberState({"a": [3], "b": [0, 1, 1]}, 2, "r")) == first


class OddId(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise AssertionError("a key of the result is a plain string")


def test_the_keys_of_the_result_are_plain_strings() -> None:
    """They are the ids that were given, unless their class is not `str` itself."""
    assignor, plain = StickyAssignor(), "c1"
    metadata = assignor.metadata(["t"], MemberState())
    keys = list(assignor.perform_assignment([(OddId("c0"), metadata), (plain, metadata)], {"t": 2}))
    assert keys == ["c0", "c1"]
    assert [type(key) for key in keys] == [str, str]
    assert keys[1] is plain


def test_generations() -> None:
    assignor = StickyAssignor()
    state = MemberState({"t": [0]}, 4)
    bytes_of = dict.fromkeys(["c0"], assignor.metadata(["t"], state)).items()
    assignments = assignor.perform_assignment(list(bytes_of), {"t": 1})
    assignor.on_assignment(assignments["c0"], None, state)
    assert state.generation == 5, "without the client's word, one more than the newest claim"
    assignor.on_assignment(assignments["c0"], 9, state)
    assert state.generation == 9, "the client knows better than the leader"
    assignor.on_assignment(assignments["c0"], -1, state)
    assert state.generation == 5, "a negative generation is none"
    java = bytes.fromhex("0003000000010001740000000100000000ffffffff")
    assignor.on_assignment(java, None, state)
    assert state == MemberState({"t": [0]}, None), "Java's leaders tell no generation"


@pytest.mark.parametrize("data", [b"", b"\x00", bytes.fromhex("0003000000020001"), bytes.fromhex("0003ffffffff")])
def test_an_assignment_that_cannot_be_read_changes_nothing(data: bytes) -> None:
    state = MemberState({"t": [0]}, 4)
    for assignor in ALL:
        with pytest.raises(UserDataError):
            assignor.on_assignment(data, 7, state)
    assert state == MemberState({"t": [0]}, 4)


def test_one_bad_member_costs_only_itself() -> None:
    assignor = StickyAssignor()
    good = assignor.metadata(["t"], MemberState({"t": [1]}, 3))
    members = [
        ("whole", good),
        ("empty", b""),
        ("cut", good[:5]),
        ("foreign", bytes.fromhex("00000000000100017400000003deadbe")),
        ("whole", assignor.metadata(["t"], MemberState({"t": [0]}, 9))),
    ]
    assignments, plan = assignor.plan_assignment(members, {"t": 2})
    assert plan.assignment == {"cut": {}, "empty": {}, "foreign": {"t": [0]}, "whole": {"t": [1]}}
    assert received(assignor, assignments) == plan.assignment
    assert {member: reason.split(":")[0] for member, reason in plan.faults.items()} == {
        "cut": "its subscription is unreadable, so it gets no partitions",
        "empty": "its subscription is unreadable, so it gets no partitions",
        "foreign": "it counts as without history",
        "whole": "it is listed twice; the first entry counts",
    }
    assert "deadbe" not in str(plan.faults)


def test_a_claim_as_new_as_the_generation_being_formed_starves_nobody() -> None:
    """A member that claims all partitions, with an impossible generation, gets only its fair number of them."""
    assignor = CooperativeStickyAssignor()
    members = [
        ("liar", assignor.metadata(["t"], MemberState({"t": [0, 1, 2, 3]}, 6))),
        ("owner", assignor.metadata(["t"], MemberState({"t": [0, 1, 2, 3]}, 5))),
    ]
    _, believed = assignor.plan_assignment(members, {"t": 4})
    assert believed["owner"] == {}
    _, plan = assignor.plan_assignment(members, {"t": 4}, generation=6)
    assert plan["owner"] == {"t": [0, 1]}
    assert [reason for *_, reason in plan.unassigned] == ["withheld from 'liar' until 'owner' revokes it"] * 2


def test_a_record_near_the_brokers_limit_is_warned_of() -> None:
    assignor = StickyAssignor()
    sizes = {}
    for partitions in (100_000, 125_000, 140_000):
        members = [("c0", assignor.metadata(["t"], MemberState({"t": list(range(partitions))}, 1)))]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, plan = assignor.plan_assignment(members, {"t": partitions})
            by_objects = assignor.assign(Group({"t": partitions}, [Member("c0", ["t"])]))
        assert [warning.category for warning in caught] == [RecordSizeWarning] * (0 if partitions == 100_000 else 2)
        assert all(warning.filename == __file__ for warning in caught)
        assert by_objects.record_bytes == plan.record_bytes
        sizes[partitions] = plan.record_bytes
    assert 800_000 < sizes[100_000] < 900_000
    assert 1_000_000 < sizes[125_000] < 1_048_588 < sizes[140_000]


def test_assignors_are_values() -> None:
    assert StickyAssignor() == StickyAssignor(mode="fair-yet-sticky")
    assert StickyAssignor() != StickyAssignor(mode="fair")
    assert len({StickyAssignor(), StickyAssignor(), CooperativeStickyAssignor()}) == 2
    for assignor in ALL:
        assert pickle.loads(pickle.dumps(assignor)) == assignor
    assert repr(RangeAssignor()) == "RangeAssignor()"
    assert [assignor.name for assignor in ALL[3:]] == ["sticky", "cooperative-sticky", "range", "roundrobin"]
    assert [assignor.cooperative for assignor in ALL[3:]] == [False, True, False, False]


APACHE = "org.apache.kafka.clients.consumer."


@pytest.mark.parametrize(
    ("names", "assignor"),
    [
        (["sticky", "StickyAssignor", f"{APACHE}StickyAssignor"], StickyAssignor()),
        (
            ["cooperative-sticky", "CooperativeStickyAssignor", f"{APACHE}CooperativeStickyAssignor"],
            CooperativeStickyAssignor(),
        ),
        (
            ["sticky-join", "StickyStreamJoinAssignor", f"{APACHE}StickyStreamJoinAssignor"],
            StickyStreamJoinAssignor(),
        ),
        (["cooperative-sticky-join"], StickyStreamJoinAssignor(protocol="cooperative")),
        (["lag", "LagBasedAssignor", "com.github.grantneale.kafka.LagBasedPartitionAssignor"], LagBasedAssignor()),
        (["range", "RangeAssignor", f"{APACHE}RangeAssignor"], RangeAssignor()),
        (["roundrobin", "RoundRobinAssignor", f"{APACHE}RoundRobinAssignor"], RoundRobinAssignor()),
    ],
)
def test_strategies_by_name(names: list[str], assignor: Assignor) -> None:
    assert [by_name(name) for name in names] == [assignor] * len(names)
    assert by_name(assignor.name).name == assignor.name


@pytest.mark.parametrize(
    "name", ["", "Sticky", "sticky ", "org.example.StickyAssignor", None, 7, ["sticky"], StickyAssignor]
)
def test_unknown_names(name: Any) -> None:
    known = (
        "'sticky', 'cooperative-sticky', 'sticky-join', 'cooperative-sticky-join', 'lag', 'range', "
        "'roundrobin', 'uniform', 'server-side-range', 'weighted', 'cooperative-weighted', or a class name such as "
        "'StickyAssignor'"
    )
    with pytest.raises(OptionError, match=re.escape(f"the strategy is {name!r}; give one of {known}")):
        by_name(name)
