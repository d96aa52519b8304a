"""The three examples of KIP-54, before and after each change, as complete tables."""

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    Member,
    Plan,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)

FOUR = ["t0", "t1", "t2", "t3"]
PAIRS = dict.fromkeys(FOUR, 2)
STEPS = {"t0": 1, "t1": 2, "t2": 3}
STICKY = [StickyAssignor(), StickyAssignor(racks="after-stickiness"), CooperativeStickyAssignor()]


def shares(plan: Plan) -> dict[str, str]:
    """Each member's partitions in the notation of the KIP: `t0p0 t1p1`."""
    return {
        member: " ".join(f"{topic}p{number}" for topic, numbers in share.items() for number in numbers)
        for member, share in plan.items()
    }


def after(plan: Plan, subscriptions: dict[str, list[str]]) -> list[Member]:
    """The members of the next round: each claims the partitions that the plan gave it."""
    return [
        Member(member, topics, owned=plan[member], generation=1) if member in plan else Member(member, topics)
        for member, topics in subscriptions.items()
    ]


@pytest.mark.parametrize("assignor", STICKY)
def test_example_1(assignor: StickyAssignor) -> None:
    """Equal subscriptions; C1 leaves."""
    fresh = assignor.assign(Group(PAIRS, [Member(f"C{i}", FOUR) for i in range(3)]))
    assert shares(fresh) == {"C0": "t0p0 t1p1 t3p0", "C1": "t0p1 t2p0 t3p1", "C2": "t1p0 t2p1"}
    assert (fresh.balance_score, fresh.kept, fresh.moved) == (2, 0, 0)

    left = assignor.assign(Group(PAIRS, after(fresh, {"C0": FOUR, "C2": FOUR})))
    assert shares(left) == {"C0": "t0p0 t1p1 t2p0 t3p0", "C2": "t0p1 t1p0 t2p1 t3p1"}
    assert (left.balance_score, left.kept, left.moved) == (0, 5, 0)
    assert {(move.topic, move.partition, move.target) for move in left.moves} == {
        ("t2", 0, "C0"),
        ("t0", 1, "C2"),
        ("t3", 1, "C2"),
    }


@pytest.mark.parametrize("assignor", STICKY)
def test_example_2(assignor: StickyAssignor) -> None:
    """Different subscriptions; C0 leaves."""
    subscriptions = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    fresh = assignor.assign(Group(STEPS, [Member(member, topics) for member, topics in subscriptions.items()]))
    assert shares(fresh) == {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}

    del subscriptions["C0"]
    left = assignor.assign(Group(STEPS, after(fresh, subscriptions)))
    assert shares(left) == {"C1": "t0p0 t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}
    assert (left.balance_score, left.kept, left.moved) == (0, 5, 0)


def test_example_3() -> None:
    """A member joins."""
    topics = {"t0": 2, "t1": 2}
    assignor = StickyAssignor()
    fresh = assignor.assign(Group(topics, [Member("C0", topics), Member("C1", topics)]))
    assert shares(fresh) == {"C0": "t0p0 t1p0", "C1": "t0p1 t1p1"}

    joined = assignor.assign(Group(topics, after(fresh, {member: ["t0", "t1"] for member in ("C0", "C1", "C2")})))
    assert shares(joined) == {"C0": "t0p0 t1p0", "C1": "t0p1", "C2": "t1p1"}
    assert (joined.balance_score, joined.kept, joined.moved) == (2, 3, 1)
    assert joined.moves == [("t1", 1, "C1", "C2")]


def test_example_3_in_two_phases() -> None:
    """The partition that moves has no owner until its old owner revoked it. The next rebalance moves nothing else."""
    topics = {"t0": 2, "t1": 2}
    subscriptions = {member: ["t0", "t1"] for member in ("C0", "C1", "C2")}
    assignor = CooperativeStickyAssignor()
    before = assignor.assign(Group(topics, [Member("C0", topics), Member("C1", topics)]))
    first = assignor.assign(Group(topics, after(before, subscriptions)))
    assert shares(first) == {"C0": "t0p0 t1p0", "C1": "t0p1", "C2": ""}
    assert first.unassigned == [("t1", 1, "withheld from 'C2' until 'C1' revokes it")]
    assert (first.kept, first.moved) == (3, 1)

    second = assignor.assign(Group(topics, after(first, subscriptions)))
    assert shares(second) == {"C0": "t0p0 t1p0", "C1": "t0p1", "C2": "t1p1"}
    assert (second.kept, second.moved, second.unassigned) == (3, 0, [])


def test_range_and_round_robin_on_the_examples() -> None:
    """The KIP prints these results for the assignors that it compares with."""
    equal = Group(PAIRS, [Member(f"C{i}", FOUR) for i in range(3)])
    assert shares(RoundRobinAssignor().assign(equal)) == {
        "C0": "t0p0 t1p1 t3p0",
        "C1": "t0p1 t2p0 t3p1",
        "C2": "t1p0 t2p1",
    }
    assert shares(RangeAssignor().assign(equal)) == {
        "C0": "t0p0 t1p0 t2p0 t3p0",
        "C1": "t0p1 t1p1 t2p1 t3p1",
        "C2": "",
    }
    without_c1 = Group(PAIRS, [Member("C0", FOUR), Member("C2", FOUR)])
    assert shares(RoundRobinAssignor().assign(without_c1)) == {
        "C0": "t0p0 t1p0 t2p0 t3p0",
        "C2": "t0p1 t1p1 t2p1 t3p1",
    }
    steps = Group(STEPS, [Member("C0", ["t0"]), Member("C1", ["t0", "t1"]), Member("C2", ["t0", "t1", "t2"])])
    assert shares(RoundRobinAssignor().assign(steps)) == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}
    assert RoundRobinAssignor().assign(steps).balance_score == 6
