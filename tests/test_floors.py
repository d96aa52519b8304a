"""The floor that benchmarks compare with. Wheels with the feature `bench` have it; published wheels do not."""

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    MemberState,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.assignors import Assignor

# Each test imports the floors by itself: pytest collects this module also with a wheel that has none.
pytestmark = pytest.mark.floors

ASSIGNORS: list[Assignor] = [
    StickyAssignor(),
    StickyAssignor(mode="sticky-yet-fair"),
    StickyAssignor(mode="fair"),
    StickyAssignor(racks="after-stickiness"),
    CooperativeStickyAssignor(),
    RangeAssignor(),
    RoundRobinAssignor(),
]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=repr)
def test_the_codec_floor_reads_and_writes_as_much(assignor: Assignor) -> None:
    """The floor makes all steps of an assignment except the balancing."""
    from floors import codec_floor

    counts = {f"t{number}": 6 for number in range(5)}
    members = [(f"c{number}", assignor.metadata(list(counts), MemberState())) for number in range(3)]
    floor = codec_floor(*assignor._options(), members, counts)
    ours = assignor.perform_assignment(members, counts, generation=3)
    assert floor.keys() == ours.keys()
    assert sum(map(len, floor.values())) == sum(map(len, ours.values()))
    assigned = []
    for assignment in floor.values():
        state = MemberState()
        assignor.on_assignment(assignment, 1, state)
        assigned += [(topic, number) for topic, numbers in state.owned.items() for number in numbers]
    assert sorted(assigned) == [(topic, number) for topic in counts for number in range(6)]


def test_the_floor_of_the_boundary_takes_and_makes_the_same_objects() -> None:
    from floors import boundary_floor

    members = [(f"c{number}", b"%d" % number) for number in (2, 0, 1)]
    assert boundary_floor(members, {"t": 3}) == dict(members)


def test_the_floor_of_a_partitioner_takes_the_same_arguments() -> None:
    from floors import partition_floor

    assert partition_floor("t", None, None, None, b"value", object()) == 0
