"""A plan's own figures and texts."""

import copy
import os
import pickle
import random
import subprocess
import sys
import threading

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    Member,
    Plan,
    PlanError,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)

ALL = [StickyAssignor(), CooperativeStickyAssignor(), RangeAssignor(), RoundRobinAssignor()]


def random_group(seed: int, members: int = 12, topics: int = 9) -> Group:
    """A group with different subscriptions. Some claims overlap, and some are void."""
    rng = random.Random(seed)
    counts = {f"topic-{i}": rng.randrange(6) for i in range(topics)}
    return Group(
        counts,
        [
            Member(
                f"member-{i}",
                rng.sample(sorted(counts), rng.randrange(topics + 1)),
                owned={topic: [rng.randrange(-1, 7) for _ in range(3)] for topic in rng.sample(sorted(counts), 4)},
                generation=rng.choice([None, 1, 2, 3]),
            )
            for i in range(members)
        ],
    )


@pytest.fixture
def plan() -> Plan:
    members = [
        Member("c0", ["orders", "payments"], owned={"orders": [0, 1, 2, 3]}, generation=7),
        Member("c1", ["orders"]),
    ]
    return StickyAssignor().assign(Group({"orders": 4, "payments": 2, "audit": 1}, members))


def test_a_plan_is_a_mapping_of_every_member(plan: Plan) -> None:
    expected = {"c0": {"orders": [0], "payments": [0, 1]}, "c1": {"orders": [1, 2, 3]}}
    assert plan["c0"] == expected["c0"]
    assert dict(plan) == plan.assignment == expected
    assert plan["c0"] is plan.assignment["c0"]
    assert list(plan) == ["c0", "c1"]
    assert len(plan) == 2
    assert "c1" in plan
    assert "c2" not in plan
    assert 3 not in plan  # type: ignore[comparison-overlap]
    with pytest.raises(KeyError, match="c2"):
        plan["c2"]


def test_what_moved_and_what_did_not(plan: Plan) -> None:
    assert (plan.kept, plan.moved, plan.balance_score) == (1, 3, 0)
    assert plan.moves == [
        ("orders", 1, "c0", "c1"),
        ("orders", 2, "c0", "c1"),
        ("orders", 3, "c0", "c1"),
        ("payments", 0, None, "c0"),
        ("payments", 1, None, "c0"),
    ]
    assert plan.moves[0].target == "c1"
    assert plan.unassigned == [("audit", 0, "no subscriber")]
    assert plan.unassigned[0].reason == "no subscriber"
    assert plan.faults == {}
    assert plan.seconds >= 0


def test_what_is_derived_is_kept(plan: Plan) -> None:
    for name in ("assignment", "moves", "unassigned", "faults"):
        assert getattr(plan, name) is getattr(plan, name)


def test_a_plan_copies_as_itself_and_is_not_pickled(plan: Plan) -> None:
    assert copy.copy(plan) is plan
    assert copy.deepcopy(plan) is plan
    with pytest.raises(TypeError, match=r"pickle plan\.assignment"):
        pickle.dumps(plan)


def test_repr_is_a_summary(plan: Plan) -> None:
    assert repr(plan) == "<Plan of 2 members: balance score 0, 1 kept, 3 moved, 1 unassigned>"


def test_a_contested_partition_is_withheld_from_everyone() -> None:
    claim = {"t": [0]}
    members = [Member(f"c{i}", ["t"], owned=claim, generation=4) for i in range(2)]
    plan = CooperativeStickyAssignor().assign(Group({"t": 1}, members))
    assert plan.assignment == {"c0": {}, "c1": {}}
    assert plan.unassigned == [("t", 0, "withheld from 'c0' until the members that claim it have revoked it")]


def test_a_partition_held_without_a_subscription_is_withheld() -> None:
    members = [Member("c0", [], owned={"t": [0], "nobody's": [0]}, generation=4), Member("c1", ["t"])]
    plan = CooperativeStickyAssignor().assign(Group({"t": 1, "nobody's": 1}, members))
    assert plan.unassigned == [
        ("nobody's", 0, "no subscriber"),
        ("t", 0, "withheld from 'c1' until 'c0' revokes it"),
    ]


@pytest.mark.parametrize("assignor", ALL)
@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_input_carries_no_meaning(assignor: StickyAssignor, seed: int) -> None:
    group = random_group(seed)
    rng = random.Random(seed)
    topics = list(group.topics.items())
    members = [
        Member(member.id, member.topics, dict(reversed(list((member.owned or {}).items()))), member.generation)
        for member in group.members
    ]
    rng.shuffle(topics)
    rng.shuffle(members)
    plan, other = assignor.assign(group), assignor.assign(Group(dict(topics), members))
    assert other.assignment == plan.assignment
    assert (other.moves, other.unassigned) == (plan.moves, plan.unassigned)


@pytest.mark.parametrize("assignor", ALL)
@pytest.mark.parametrize("seed", range(20))
def test_what_a_plan_says_fits_together(assignor: StickyAssignor, seed: int) -> None:
    group = random_group(seed)
    plan = assignor.assign(group)
    partitions = {(topic, number) for topic, count in group.topics.items() for number in range(int(str(count)))}
    given = [(topic, number) for share in plan.values() for topic, numbers in share.items() for number in numbers]
    missing = [(topic, number) for topic, number, _ in plan.unassigned]
    assert sorted(given + missing) == sorted(partitions)
    assert all(numbers == sorted(numbers) for share in plan.values() for numbers in share.values())
    subscriptions = {member.id: set(member.topics) for member in group.members}
    assert all(set(share) <= subscriptions[member] for member, share in plan.items())
    assert plan.moved == sum(move.source is not None for move in plan.moves)
    assert plan.kept + len(plan.moves) + sum("no sub" in reason for *_, reason in plan.unassigned) == len(partitions)


@pytest.mark.parametrize(
    "assignor",
    [
        *ALL[:2],
        StickyAssignor(mode="sticky-yet-fair"),
        StickyAssignor(mode="fair"),
        StickyAssignor(racks="after-stickiness"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("seed", range(20))
def test_sticky_plans_are_the_best_there_are(assignor: StickyAssignor, seed: int) -> None:
    plan = assignor.assign(random_group(seed))
    certificate = plan.verify(require_optimal=True)
    assert certificate.optimal
    assert certificate.balance_score == certificate.balance_score_bound
    assert (certificate.kept, certificate.moved) == (plan.kept, plan.moved)
    assert isinstance(assignor, CooperativeStickyAssignor) or certificate.balance_score == plan.balance_score
    assert plan.verify() is certificate


def test_a_valid_plan_that_is_not_the_best_is_told_what_it_lacks() -> None:
    topics = {f"t{i}": 1 for i in range(4)}
    owned = {topic: [0] for topic in topics}
    members = [Member("c0", topics, owned=owned, generation=1), Member("c1", topics)]
    group = Group(topics, members)
    plan = RangeAssignor().assign(group)
    certificate = plan.verify()
    assert not certificate.optimal
    assert (certificate.balance_score, certificate.balance_score_bound) == (4, 0)
    assert (certificate.moved, certificate.moved_bound, certificate.kept) == (0, 2, 4)
    with pytest.raises(PlanError, match="not optimal: balance score 4 where 0 is possible; assign"):
        plan.verify(require_optimal=True)
    assert StickyAssignor().assign(group).verify(require_optimal=True).moved == 2


HASH_SEED_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_plan import ALL, random_group
for seed in range(5):
    for assignor in ALL:
        plan = assignor.assign(random_group(seed))
        print(plan.assignment, plan.moves, plan.unassigned)
"""


def test_another_hash_seed_and_process_give_the_same_plan() -> None:
    command = [sys.executable, "-c", HASH_SEED_SCRIPT, os.path.dirname(__file__)]
    outputs = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000


def test_one_assignor_serves_many_threads() -> None:
    groups = [random_group(seed, members=40, topics=30) for seed in range(8)]
    assignor = StickyAssignor()
    expected = [assignor.assign(group).assignment for group in groups]
    wrong: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(10):
            wrong.extend(i for i, group in enumerate(groups) if assignor.assign(group).assignment != expected[i])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_plan_is_read_by_many_threads() -> None:
    plan = StickyAssignor().assign(random_group(1, members=60, topics=60))
    expected = {member: plan[member] for member in plan}
    start = threading.Barrier(4)
    seen: list[object] = []

    def work() -> None:
        start.wait()
        seen.append(plan.assignment)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 4
