"""Medium-sized groups against a min-cost flow by OR-tools, with one node for each partition and one arc for each
subscriber of it.

The smallest balance score is the smallest sum of squared loads. The k-th partition of a member costs `2k - 1`, times a
number larger than all rack misses and moves together; these are the costs of the arcs. One flow minimizes all of them,
and every plan must be as good.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from ortools.graph.python import min_cost_flow  # type: ignore[import-untyped]

from kafka_assignors import Group, Member, Plan, StickyAssignor, Topic

Partition = tuple[str, int]

ASSIGNORS = {
    "default": StickyAssignor(),
    "racks after stickiness": StickyAssignor(racks="after-stickiness"),
    "sticky yet fair": StickyAssignor(mode="sticky-yet-fair"),
    "fair": StickyAssignor(mode="fair"),
}


@dataclass
class Problem:
    """A group in plain lists. Its claims are settled by the definition."""

    members: list[Member]
    racks: dict[Partition, frozenset[str]]
    subscribers: dict[Partition, list[int]]
    owner: dict[Partition, int] = field(default_factory=dict)
    racks_matter: bool = False

    @classmethod
    def of(cls, group: Group) -> "Problem":
        members = sorted(group.members, key=lambda member: member.id)
        racks: dict[Partition, frozenset[str]] = {}
        for name, topic in group.topics.items():
            count = topic if isinstance(topic, int) else topic.partitions
            known = None if isinstance(topic, int) else topic.racks
            for number in range(count):
                racks[name, number] = frozenset((known[number] if known else None) or ())
        subscribers = {p: [i for i, member in enumerate(members) if p[0] in member.topics] for p in racks}
        problem = cls(members, racks, subscribers)
        for partition in racks:
            problem._settle(partition)
        used = [racks[p] for p in racks if subscribers[p]]
        everywhere = frozenset().union(*used)
        at_home = any(member.rack in everywhere for member in members)
        problem.racks_matter = at_home and any(racks != everywhere for racks in used)
        return problem

    def _settle(self, partition: Partition) -> None:
        topic, number = partition
        claims = [
            (-1 if self.members[i].generation is None else self.members[i].generation, i)
            for i in self.subscribers[partition]
            if number in (self.members[i].owned or {}).get(topic, ())
        ]
        newest = max((generation for generation, _ in claims if generation is not None), default=None)
        best = [member for generation, member in claims if generation == newest]
        if len(best) == 1:
            self.owner[partition] = best[0]

    def is_miss(self, partition: Partition, member: int) -> bool:
        rack = self.members[member].rack
        return self.racks_matter and bool(rack) and rack not in self.racks[partition]

    def values(self, owners: Mapping[Partition, int]) -> tuple[int, int, int]:
        """Squared loads, rack misses, moves."""
        loads = [0] * len(self.members)
        for member in owners.values():
            loads[member] += 1
        moved = sum(owners[p] != before for p, before in self.owner.items())
        return sum(load * load for load in loads), sum(self.is_miss(p, m) for p, m in owners.items()), moved


def best(problem: Problem, objective: str) -> tuple[int, int, int]:
    """Squared loads, rack misses and moves of a best plan, by min-cost flow."""
    flow = min_cost_flow.SimpleMinCostFlow()
    count = sum(map(bool, problem.subscribers.values()))
    small, large = 1, count + 1
    miss, moved = (large, small) if objective == "default" else (small, large)
    square = large * large
    sink, first = len(problem.members), len(problem.members) + 1
    arcs: list[tuple[int, Partition, int]] = []
    capacity = [0] * len(problem.members)
    for node, (partition, subscribers) in enumerate(problem.subscribers.items(), first):
        if not subscribers:
            continue
        owner = problem.owner.get(partition)
        if objective == "sticky yet fair" and owner is not None:
            subscribers = [owner]
        flow.set_node_supply(node, 1)
        for member in subscribers:
            cost = miss * problem.is_miss(partition, member)
            cost += moved * (objective != "fair" and owner is not None and owner != member)
            arcs.append((flow.add_arc_with_capacity_and_unit_cost(node, member, 1, cost), partition, member))
            capacity[member] += 1
    for member, most in enumerate(capacity):
        for k in range(1, most + 1):
            flow.add_arc_with_capacity_and_unit_cost(member, sink, 1, square * (2 * k - 1))
    flow.set_node_supply(sink, -count)
    assert flow.solve() == flow.OPTIMAL
    return problem.values({partition: member for arc, partition, member in arcs if flow.flow(arc)})


def key(objective: str, values: tuple[int, int, int]) -> tuple[int, ...]:
    """The order of the objective."""
    squares, misses, moved = values
    if objective == "fair":
        return squares, misses
    if objective == "racks after stickiness":
        return squares, moved, misses
    return (moved, squares, misses) if objective == "sticky yet fair" else (squares, misses, moved)


def owners_of(problem: Problem, plan: Plan) -> dict[Partition, int]:
    places = {member.id: i for i, member in enumerate(problem.members)}
    owners: dict[Partition, int] = {}
    for member, topics in plan.assignment.items():
        for topic, numbers in topics.items():
            for number in numbers:
                assert (topic, number) not in owners, "a partition is in one list only"
                owners[topic, number] = places[member]
    return owners


def random_group(rng: random.Random) -> Group:
    names = [f"topic-{i}" for i in range(rng.randint(3, 25))]
    with_racks = rng.random() < 0.5
    topics: dict[str, int | Topic] = {}
    for rank, name in enumerate(names, 1):
        count = rng.choice([rng.randint(0, 12), int(30 * rank**-0.7)])
        racks = [rng.sample("xyz", rng.randint(1, 2)) for _ in range(count)]
        topics[name] = Topic(count, racks) if with_racks and rng.random() < 0.9 else count
    counts = {name: topic if isinstance(topic, int) else topic.partitions for name, topic in topics.items()}
    size = rng.randint(2, 18)
    members = [
        Member(
            f"member-{i}",
            rng.sample(names, rng.randint(1, len(names)) if rng.random() < 0.3 else rng.randint(1, 3)),
            owned=claims(rng, counts, size),
            generation=rng.choice([None, 3, 4, 4, 4]),
            rack=rng.choice(["x", "y", "z", None]) if with_racks else None,
        )
        for i in range(size)
    ]
    return Group(topics, members)


def claims(rng: random.Random, counts: Mapping[str, int], size: int) -> dict[str, Sequence[int]]:
    """Each member claims about one partition in `size`: most partitions have one claim, some two, some none."""
    return {topic: [n for n in range(count + 1) if rng.random() < 1.2 / size] for topic, count in counts.items()}


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("objective", ASSIGNORS)
def test_a_medium_group_is_as_good_as_the_flow(objective: str, seed: int) -> None:
    group = random_group(random.Random(seed))
    problem = Problem.of(group)
    plan = ASSIGNORS[objective].assign(group)
    values = problem.values(owners_of(problem, plan))
    assert key(objective, values) == key(objective, best(problem, objective))
    certificate = plan.verify(require_optimal=True)
    assert (
        (certificate.moved, certificate.kept) == (plan.moved, plan.kept) == (values[2], len(problem.owner) - values[2])
    )
    assert certificate.rack_misses == values[1]


def test_the_random_groups_are_worth_solving() -> None:
    groups = [random_group(random.Random(seed)) for seed in range(60)]
    problems = [Problem.of(group) for group in groups]
    assert sum(problem.racks_matter for problem in problems) > 15
    assert sum(best(problem, "default")[2] > 0 for problem in problems) > 40
    assert sum(len(problem.racks) > 100 for problem in problems) > 15


def test_the_flow_finds_what_no_single_move_improves() -> None:
    # Loads of 3, 4 and 5. Only a chain of moves leads to 4, 4 and 4.
    members = [
        Member("m1", ["A"], owned={"A": range(3)}),
        Member("m2", ["A", "B"], owned={"A": range(3, 6), "B": range(1)}),
        Member("m3", ["B"], owned={"B": range(1, 6)}),
    ]
    assert best(Problem.of(Group({"A": 6, "B": 6}, members)), "default") == (48, 0, 2)
