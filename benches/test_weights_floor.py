"""The weighted strategy, bytes to bytes, against the codec floor of a sticky group with the same claims."""

import random
from dataclasses import replace
from functools import cache

import groups
import pytest
from floors import codec_floor
from ratios import Interleaved, Ratio, check_bounds

from kafka_assignors import Member, MemberState, StickyAssignor, WeightedAssignor
from kafka_assignors.group import Group

pytestmark = pytest.mark.filterwarnings("ignore::kafka_assignors.RecordSizeWarning")

FLOOR = ("sticky", "fair-yet-sticky", "before-stickiness")

TOPICS = dict.fromkeys(groups.names(100), 1_000)
SIZE = "100,000 over 100 topics, 1,000 members, Zipf weights"
# The exponent of the weights, the tolerance, and whether the group is fresh; else one member joins. With the exponent 1
# one partition weighs far more than the mean load of a member, so that few loads can be levelled; with 0.3 all can.
CASES: dict[str, tuple[float, float, bool]] = {
    f"{SIZE}: fresh": (1.0, 0.1, True),
    f"{SIZE}: one joins": (1.0, 0.1, False),
    f"{SIZE}: one joins, tolerance=0": (1.0, 0.0, False),
    f"{SIZE} of exponent 0.3: one joins": (0.3, 0.1, False),
}
QUICK = f"{SIZE}: one joins"
check_bounds("weighted-floor", CASES)


@cache
def weights(exponent: float) -> dict[str, list[float]]:
    places = list(range(1, sum(TOPICS.values()) + 1))
    random.Random(18).shuffle(places)
    rank = iter(places)
    return {topic: [1e6 / next(rank) ** exponent for _ in range(count)] for topic, count in TOPICS.items()}


@cache
def states(exponent: float, fresh: bool) -> dict[str, MemberState]:
    """The members' states: empty in a fresh group, else of a plan with the same weights, before one more joined."""
    ids = groups.ids(1_000)
    if fresh:
        return {member: MemberState() for member in ids}
    plan = WeightedAssignor(weights(exponent)).assign(Group(TOPICS, [Member(member, TOPICS) for member in ids]))
    return {member: MemberState(plan[member], groups.GENERATION) for member in ids} | {"joiner": MemberState()}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.quick) if n == QUICK else n for n in CASES])
def test_floor(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    exponent, tolerance, fresh = CASES[name]
    given = states(exponent, fresh)
    assignor = replace(WeightedAssignor(weights(exponent)), tolerance=tolerance)
    ours = [(member, assignor.metadata(list(TOPICS), state)) for member, state in given.items()]
    sticky = [(member, StickyAssignor().metadata(list(TOPICS), state)) for member, state in given.items()]
    _, plan = assignor.plan_assignment(ours, TOPICS)
    assert plan.worst_load is not None
    assert plan.load_bound is not None
    note = f"kept {plan.kept:,}, moved {plan.moved:,}, {plan.worst_load / plan.load_bound:.4f} of the bound"
    seconds, floor = interleaved(
        lambda: assignor.perform_assignment(ours, TOPICS), lambda: codec_floor(*FLOOR, sticky, TOPICS), 15
    )
    ratio.at_most("weighted-floor", name, seconds, floor, note)
