"""The weighted plan against a second solver, OR-tools' CP-SAT, on groups that are too large for all assignments."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import pytest

from kafka_assignors import Group, Member, WeightedAssignor
from kafka_assignors.weighted import encode_capacity
from support.needs import rest

# Capacities in quarters, so that all of the model is in integers.
QUARTER = 4


@dataclass(frozen=True)
class Case:
    """A group with owners, integer weights, and capacities in quarters."""

    group: Group
    weights: dict[str, list[int]]
    quarters: dict[str, int]
    owner: dict[tuple[str, int], str]


def drawn(seed: int) -> Case:
    pick = random.Random(seed)
    topics = {f"t{i}": pick.randint(3, 9) for i in range(4)}
    equal, fresh = pick.random() < 0.4, pick.random() < 0.3
    quarters = {f"m{i}": 4 if equal else pick.choice([2, 4, 4, 6, 8]) for i in range(pick.randint(3, 6))}
    subscribed = {each: [t for t in topics if equal or pick.random() < 0.75] for each in quarters}
    exponent = pick.uniform(0.2, 1.4)
    places = list(range(1, sum(topics.values()) + 1))
    pick.shuffle(places)
    rank = iter(places)
    weights = {topic: [round(1_000 / next(rank) ** exponent) + 1 for _ in range(n)] for topic, n in topics.items()}
    owner: dict[tuple[str, int], str] = {}
    for topic, count in topics.items():
        able = [each for each in quarters if topic in subscribed[each]]
        for number in range(count):
            if able and not fresh and pick.random() < 0.9:
                owner[topic, number] = pick.choice(able)
    members = []
    for each, topics_of in subscribed.items():
        owned: dict[str, list[int]] = {}
        for (topic, number), member in owner.items():
            if member == each:
                owned.setdefault(topic, []).append(number)
        members.append(Member(each, topics_of, owned, 1, data=encode_capacity(quarters[each] / QUARTER)))
    return Case(Group(topics, members), weights, quarters, owner)


def solved(case: Case, most: dict[str, int] | None) -> tuple[Fraction, Fraction]:
    """The least worst relative load; or, where `most` limits the load of each member, the fewest moves.

    Returns two numbers: a proven lower bound, and the best value that was found.
    """
    # Imported here: ortools loads pandas, which would take half a second in each process that collects the tests.
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    gets: dict[str, list[tuple[int, cp_model.IntVar]]] = {each: [] for each in case.quarters}
    stays = []
    for topic, weights in case.weights.items():
        able = [member.id for member in case.group.members if topic in member.topics]
        for number, weight in enumerate(weights):
            chosen = {each: model.new_bool_var(f"{topic}-{number}-{each}") for each in able}
            if chosen:
                model.add_exactly_one(chosen.values())
            for each, variable in chosen.items():
                gets[each].append((weight, variable))
            if (topic, number) in case.owner:
                stays.append(chosen[case.owner[topic, number]])
    loads = {each: sum(weight * variable for weight, variable in items) for each, items in gets.items()}
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    # A limit in deterministic time, not in seconds: the solver stops at the same point on every machine.
    solver.parameters.max_deterministic_time = 1.0
    if most is not None:
        for each, load in loads.items():
            model.add(load <= most[each])
        model.maximize(sum(stays))
        assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return Fraction(len(stays) - round(solver.best_objective_bound)), Fraction(
            len(stays) - round(solver.objective_value)
        )
    # `worst` is at least each load divided by its capacity, in units of 1/24: 2, 4, 6 and 8 divide 24.
    worst = model.new_int_var(0, 24 * sum(map(sum, case.weights.values())), "worst")
    for each, load in loads.items():
        model.add(worst >= 24 * QUARTER // case.quarters[each] * load)
    model.minimize(worst)
    assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Fraction(round(solver.best_objective_bound), 24), Fraction(round(solver.objective_value), 24)


@pytest.mark.parametrize("seed", [*range(5), *rest(*range(5, 20))])
def test_a_second_solver_finds_no_better_plan(seed: int) -> None:
    case = drawn(seed)
    plan = WeightedAssignor(dict(case.weights)).assign(case.group)
    certificate = plan.verify()
    bound, worst = plan.load_bound, plan.worst_load
    assert bound is not None
    assert worst is not None
    proven, found = map(float, solved(case, None))
    assert bound <= found * (1 + 1e-9)
    assert worst >= proven * (1 - 1e-9)
    # The worst load is within the tolerance, or close to the best one that the second solver finds.
    assert worst <= max(1.1 * bound, 1.03 * found) * (1 + 1e-9)
    most = max(1.1 * bound, worst)
    allowed = {each: int(most * quarters / QUARTER + 1e-6) for each, quarters in case.quarters.items()}
    proven, found = map(float, solved(case, allowed))
    assert certificate.moved_bound is not None
    assert certificate.moved_bound <= found
    assert plan.moved >= proven
    assert plan.moved <= found + max(1, 0.1 * len(case.owner))
