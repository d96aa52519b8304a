"""`sticky_within`: compared with all plans of tiny groups, and with OR-tools' min-cost flow on medium ones."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest
from ortools.graph.python import min_cost_flow  # type: ignore[import-untyped]

from kafka_assignors import (
    CustomAssignor,
    Group,
    GroupError,
    Member,
    OptionError,
    Plan,
    StickyAssignor,
    balance_score,
    sticky_within,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Partition = tuple[str, int]


def scene(
    rng: random.Random, topics: int, most: int, members: int
) -> tuple[Group, dict[Any, list[str]], dict[str, int]]:
    """A group whose claims need no settling, with restrictions of all kinds."""
    counts = {f"t{i}": rng.randint(0, most) for i in range(topics)}
    ids = [f"m{i}" for i in range(members)]
    owned: dict[str, dict[str, list[int]]] = {id_: {} for id_ in ids}
    for topic, count in counts.items():
        for number in range(count):
            if rng.random() < 0.7:
                owned[rng.choice(ids[: rng.randint(1, members)])].setdefault(topic, []).append(number)
    group = Group(
        counts,
        [
            Member(
                id_, rng.sample(sorted(counts), rng.randint(max(0, topics - 2), topics)), owned=owned[id_], generation=3
            )
            for id_ in ids
        ],
    )
    allowed: dict[Any, list[str]] = {}
    for topic, count in counts.items():
        if rng.random() < 0.4:
            allowed[topic] = rng.sample(ids, rng.randint(0, members))
        for number in range(count):
            if rng.random() < 0.2:
                allowed[topic, number] = rng.sample(ids, rng.randint(0, members))
    limited = rng.random() < 0.8
    total = sum(counts.values())
    capacity = {id_: rng.randint(0, max(1, 2 * total // members)) for id_ in ids if limited and rng.random() < 0.7}
    return group, allowed, capacity


def able(group: Group, allowed: Mapping[Any, list[str]]) -> dict[Partition, list[str]]:
    """The members that may get each partition, by the definition."""
    found = {}
    for topic in sorted(group.topics):
        for number in range(group.partitions(topic)):
            named = allowed.get((topic, number), allowed.get(topic))
            found[topic, number] = [
                member.id
                for member in group.members
                if topic in member.topics and (named is None or member.id in named)
            ]
    return found


def before(group: Group) -> dict[Partition, str]:
    return {
        (topic, number): member.id
        for member in group.members
        for topic, numbers in (member.owned or {}).items()
        for number in numbers
        if topic in member.topics
    }


def owners(plan: Plan) -> dict[Partition, str]:
    return {
        (topic, number): member
        for member, share in plan.assignment.items()
        for topic, numbers in share.items()
        for number in numbers
    }


Value = tuple[int, int, int]


def value(group: Group, had: Mapping[Partition, str], has: Mapping[Partition, str | None], all_: int) -> Value:
    """Partitions left out, balance score, partitions not kept. They compare in this order, and less is better."""
    loads = dict.fromkeys((member.id for member in group.members), 0)
    for owner in has.values():
        if owner is not None:
            loads[owner] += 1
    kept = sum(has.get(partition) == owner for partition, owner in had.items())
    return all_ - sum(loads.values()), balance_score(loads), len(had) - kept


def check(group: Group, allowed: Mapping[Any, list[str]], capacity: Mapping[str, int]) -> tuple[Plan, Value]:
    """Checks restrictions, reasons of partitions left out, and the certificate; returns the plan and its value."""
    plan = sticky_within(group, allowed=allowed, capacity=capacity)
    may, has = able(group, allowed), owners(plan)
    assert all(owner in may[partition] for partition, owner in has.items())
    loads = {member: sum(map(len, share.values())) for member, share in plan.assignment.items()}
    assert all(loads[member] <= most for member, most in capacity.items())
    left = {(each.topic, each.partition): each.reason for each in plan.unassigned}
    assert has.keys() | left.keys() == may.keys()
    for partition, reason in left.items():
        subscribed = any(partition[0] in member.topics for member in group.members)
        full = all(loads[member] == capacity.get(member) for member in may[partition])
        assert full
        wanted = "at their capacity" if may[partition] else "is allowed" if subscribed else "no subscriber"
        assert wanted in reason
    certificate = plan.verify(require_optimal=True)
    found = value(group, before(group), has, len(may))
    assert (certificate.balance_score_bound, certificate.moved_bound) == found[1:]
    return plan, found


def test_no_plan_of_a_tiny_group_is_better() -> None:
    kinds = set()
    for seed in range(300):
        rng = random.Random(seed)
        group, allowed, capacity = scene(rng, 2, 3, 3)
        may, had = able(group, allowed), before(group)
        _, found = check(group, allowed, capacity)
        best = None
        for choice in itertools.product(*([*ids, None] for ids in may.values())):
            if any(choice.count(member) > most for member, most in capacity.items()):
                continue
            each = value(group, had, dict(zip(may, choice, strict=True)), len(may))
            best = each if best is None else min(best, each)
        assert found == best, seed
        kinds.add((found[0] > 0, found[1] > 0, found[2] > 0))
    assert len(kinds) == 8, "the scenes have everything"


def best_by_flow(group: Group, allowed: Mapping[Any, list[str]], capacity: Mapping[str, int]) -> Value:
    """The value of the cheapest flow: partition → member → sink, with one arc to the sink for each unit of load."""
    may, had = able(group, allowed), before(group)
    ids = [member.id for member in group.members]
    partitions = list(may)
    heavy = len(partitions) + 1
    beyond = heavy * (2 * len(partitions) + 1) * (len(partitions) + 1)
    flow = min_cost_flow.SimpleMinCostFlow()
    sink = len(partitions) + len(ids)
    for node, partition in enumerate(partitions):
        flow.set_node_supply(node, 1)
        flow.add_arc_with_capacity_and_unit_cost(node, sink, 1, beyond)
        for id_ in may[partition]:
            moved = had.get(partition) != id_
            flow.add_arc_with_capacity_and_unit_cost(node, len(partitions) + ids.index(id_), 1, int(moved))
    for at, id_ in enumerate(ids):
        for unit in range(min(capacity.get(id_, len(partitions)), len(partitions))):
            flow.add_arc_with_capacity_and_unit_cost(len(partitions) + at, sink, 1, heavy * (2 * unit + 1))
    flow.set_node_supply(sink, -len(partitions))
    assert flow.solve() == flow.OPTIMAL
    has: dict[Partition, str | None] = {}
    for arc in range(flow.num_arcs()):
        if flow.flow(arc) and flow.tail(arc) < len(partitions):
            head = flow.head(arc) - len(partitions)
            has[partitions[flow.tail(arc)]] = ids[head] if head < len(ids) else None
    return value(group, had, has, len(partitions))


@pytest.mark.parametrize("seed", range(25))
def test_no_flow_of_a_medium_group_is_better(seed: int) -> None:
    group, allowed, capacity = scene(random.Random(1_000 + seed), 8, 30, 12)
    assert check(group, allowed, capacity)[1] == best_by_flow(group, allowed, capacity)


def test_without_restrictions_it_is_the_sticky_plan() -> None:
    for seed in range(50):
        group, _, _ = scene(random.Random(seed), 5, 8, 5)
        plan = StickyAssignor().assign(group)
        assert sticky_within(group).assignment == plan.assignment
        assert sticky_within(group, allowed=lambda *_: True, capacity=lambda _: None).assignment == plan.assignment
        wide = sticky_within(group, capacity=10_000)
        assert (wide.balance_score, wide.moved) == (plan.balance_score, plan.moved)


def test_it_is_deterministic_and_the_forms_of_restrictions_agree() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        group, allowed, capacity = scene(rng, 4, 10, 5)
        plan = sticky_within(group, allowed=allowed, capacity=capacity)
        shuffled = Group(dict(reversed([*group.topics.items()])), rng.sample(list(group.members), len(group.members)))
        may = able(group, allowed)
        again = sticky_within(
            shuffled,
            allowed=lambda member, topic, number: member.id in may[topic, number],  # noqa: B023
            capacity=lambda member: capacity.get(member.id),  # noqa: B023
        )
        assert again.assignment == plan.assignment


def test_a_thousand_members_with_limits() -> None:
    topics = {f"t{i}": 50 for i in range(40)}
    members = [Member(f"m{i:03}", list(topics)) for i in range(100)]
    group = Group(topics, members)
    plan = sticky_within(group, capacity={f"m{i:03}": i for i in range(100)})
    loads = [sum(map(len, share.values())) for share in plan.assignment.values()]
    # Members with a capacity below the level are full. The loads of the others differ by at most one.
    assert sum(loads) == 2_000
    level = max(loads)
    assert loads == [min(i, level) if i < level else loads[i] for i in range(100)]
    assert min(loads[level:]) >= level - 1
    plan.verify(require_optimal=True)


class Capped(CustomAssignor):
    """A cap of two for each member."""

    name = "capped"

    def plan(self, group: Group) -> Plan:
        return sticky_within(group, capacity=2)


def test_an_own_assignor_may_return_it() -> None:
    group = Group({"t": 5}, [Member("a", ["t"], owned={"t": [0, 1, 2, 3, 4]}, generation=1), Member("b", ["t"])])
    plan = Capped().assign(group)
    assert {member: len(share["t"]) for member, share in plan.assignment.items()} == {"a": 2, "b": 2}
    assert (plan.kept, plan.moved, len(plan.unassigned)) == (2, 3, 1)
    assert "leaves out 1 partitions" in plan.warnings[0]


@pytest.mark.parametrize(
    "restrictions",
    [
        {"allowed": 3},
        {"allowed": {"x": ["a"]}},
        {"allowed": {"t": "a"}},
        {"allowed": {"t": 1}},
        {"allowed": {"t": ["z"]}},
        {"allowed": {("t", 5): ["a"]}},
        {"allowed": {("t", True): ["a"]}},
        {"allowed": {("t",): ["a"]}},
        {"allowed": {3: ["a"]}},
        {"capacity": -1},
        {"capacity": 1.5},
        {"capacity": True},
        {"capacity": {"z": 1}},
        {"capacity": {"a": "1"}},
        pytest.param({"capacity": lambda member: -1}, id="a capacity below 0 by a function"),
    ],
    ids=str,
)
def test_restrictions_that_cannot_be_are_refused(restrictions: Any) -> None:
    group = Group({"t": 5}, [Member("a", ["t"]), Member("b", ["t"])])
    with pytest.raises(OptionError):
        sticky_within(group, **restrictions)
    with pytest.raises((OptionError, GroupError)):
        sticky_within({"t": 5}, **restrictions)  # type: ignore[arg-type]


def test_extreme_capacities() -> None:
    group = Group({"t": 5}, [Member("a", ["t"]), Member("b", ["t"])])
    assert [each.reason for each in sticky_within(group, capacity=0).unassigned] == [
        "all members that may have it are at their capacity"
    ] * 5
    assert sticky_within(group, capacity=2**80).balance_score == 1
    assert sticky_within(group, allowed={"t": []}).assignment == {"a": {}, "b": {}}
    assert sticky_within(Group({}, []), capacity=1).assignment == {}
