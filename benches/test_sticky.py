"""perform_assignment, bytes to bytes: against the codec floor, kafka-python, itself at twice the size; its memory."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import groups
import pytest
from floors import boundary_floor, codec_floor
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import BOUNDS, Interleaved, InTurns, Ratio, check_bounds, measured, rounds_of

from kafka_assignors import Group, Member, StickyAssignor, _core

OPTIONS = ("sticky", "fair-yet-sticky", "before-stickiness")

QUICK = {
    "3,000 x 1 topic, 450 members: one leaves",
    "500 over 10 topics, 100 members on 5 each: 10 % replaced",
    "100 x 100, 100 members on a random half: fresh",
    "500 x 2,000, 2,000 members: one leaves",
    "99,000 over 1,000 topics, 500 members on 5 each: doubled",
}
# kafka-python takes seconds in this case, and half a minute in the other.
QUICK_PEER = {"3,000 x 1 topic, 450 members: one leaves"}

# Groups of this size raise a warning, since they need a configured broker. These benchmarks use no broker.
pytestmark = pytest.mark.filterwarnings("ignore::kafka_assignors.RecordSizeWarning")


def _mark(name: str, quick: set[str] = QUICK) -> object:
    return pytest.param(name, marks=pytest.mark.quick) if name in quick else name


GROWTH = ("500 topics, 2,000 members: one leaves",)

BOUNDARY = ("10,000 members x 2 over 10 topics",)

# Groups with the seconds that one rebalance of them may take.
PACE: dict[str, tuple[float, Callable[[], tuple[dict[str, int], groups.JoinGroup]]]] = {
    "a chain of 50,000 members over topics of 1 to 20: fresh": (0.15, lambda: groups.chain(50_000, 20)),
    "1,000,000 over 10,000 topics, 10,000 members on 500 each, scattered": (
        0.4,
        lambda: groups.scattered(10_000, 100, 10_000, 500),
    ),
}

check_bounds("growth", GROWTH)
check_bounds("pace", PACE)
check_bounds("boundary", BOUNDARY)
for kind in ("floor", "kafka-python", "objects", "memory"):
    check_bounds(kind, groups.cases())


@pytest.mark.parametrize("name", [_mark(name) for name in groups.cases()])
def test_floor(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    case, members = groups.cases()[name], groups.joined(name)

    def ours() -> object:
        return _core.perform_assignment(*OPTIONS, members, case.topics, None)

    def floor() -> object:
        return codec_floor(*OPTIONS, members, case.topics)

    _, plan = _core.perform_assignment(*OPTIONS, members, case.topics, None)
    kept, moved = plan.kept_and_moved()
    seconds, floor_seconds = interleaved(ours, floor, groups.rounds(case.topics))
    ratio.at_most(
        "floor", name, seconds, floor_seconds, f"kept {kept:,}, moved {moved:,}, score {plan.balance_score:,}"
    )


class _Cluster(ClusterMetadata):  # type: ignore[misc]
    """The part of kafka-python's cluster metadata that its assignor reads."""

    def __init__(self, topics: dict[str, int]) -> None:
        super().__init__()
        self.counts = topics

    def topics(self, *_: object) -> set[str]:
        return set(self.counts)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(self.counts[topic]))


def _kafka_python(members: groups.JoinGroup, topics: dict[str, int]) -> float:
    """The seconds of kafka-python's leader, bytes to bytes. It reads only its own form of the user data."""
    cluster = _Cluster(topics)
    start = perf_counter()
    joined = []
    for member, metadata in members:
        decoded = ConsumerProtocolSubscription.decode(metadata)
        if decoded.user_data:
            decoded.user_data = b"\0\1" + decoded.user_data
        joined.append(
            JoinGroupResponse.JoinGroupResponseMember(member_id=member, group_instance_id=None, metadata=decoded)
        )
    plan = StickyPartitionAssignor().assign(cluster, joined)
    encoded = {member: assignment.encode() for member, assignment in plan.items()}
    seconds = perf_counter() - start
    assert encoded.keys() == dict(members).keys()
    return seconds


@pytest.mark.parametrize("name", [_mark(name, QUICK_PEER) for name in BOUNDS.cases("kafka-python")])
def test_kafka_python(name: str, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    case, members = groups.cases()[name], groups.joined(name)
    rounds_of(
        benchmark,
        lambda: _core.perform_assignment(*OPTIONS, members, case.topics, None),
        groups.rounds(case.topics),
        warm=True,
    )
    ratio.at_least("kafka-python", name, measured(benchmark).median, _kafka_python(members, case.topics))


@pytest.mark.quick
def test_growth(in_turns: InTurns, ratio: Ratio) -> None:
    """The larger group leaves the processor's cache, which slows the codec floor too: both growths are compared."""
    (name,) = GROWTH
    group = dict.fromkeys(groups.ids(2_000), groups.names(500))

    def calls(partitions: int) -> list[Callable[[], object]]:
        case = groups.Case("", dict.fromkeys(groups.names(500), partitions), group, dict(list(group.items())[1:]))
        members, topics = case.members(), case.topics
        return [
            lambda: _core.perform_assignment(*OPTIONS, members, topics, None),
            lambda: codec_floor(*OPTIONS, members, topics),
        ]

    twice, twice_floor, once, once_floor = in_turns([*calls(2_000), *calls(1_000)], 7)
    note = f"ours {once * 1e3:.1f} to {twice * 1e3:.1f} ms, the floor {once_floor * 1e3:.1f} to {twice_floor * 1e3:.1f}"
    ratio.at_most("growth", name, twice / once, twice_floor / once_floor, note)


@pytest.mark.parametrize("name", PACE)
def test_pace(name: str, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """The seconds are absolute: they hold on a machine that is not much slower than that of docs/benchmarks.md."""
    allowed, make = PACE[name]
    topics, members = make()
    plan = rounds_of(benchmark, lambda: _core.perform_assignment(*OPTIONS, members, topics, None)[1], 5, warm=True)
    kept, moved = plan.kept_and_moved()
    ratio.at_most("pace", name, measured(benchmark).min, allowed, f"kept {kept:,}, moved {moved:,}")


@pytest.mark.quick
def test_boundary(in_turns: InTurns, ratio: Ratio) -> None:
    """Each member's id and metadata in, its id and as many bytes out; beside a dictionary that Python makes of them.

    The bound is a ratio, since a bound in microseconds fails on a slow machine.
    """
    (name,) = BOUNDARY
    topics = dict.fromkeys(groups.names(10), 2_000)
    group = dict.fromkeys(groups.ids(10_000), tuple(topics))
    members = groups.Case(name, topics, group, group).members()

    def whole() -> object:
        return _core.perform_assignment(*OPTIONS, members, topics, None)

    def copies() -> object:
        return {member: bytes(memoryview(metadata)) for member, metadata in members}

    seconds, by_python, of_all = in_turns((lambda: boundary_floor(members, topics), copies, whole), 50)
    note = f"{seconds / len(members) * 1e6:.2f} us a member, of {of_all / len(members) * 1e6:.2f} in all"
    ratio.at_most("boundary", name, seconds, by_python, note)


@pytest.mark.parametrize("name", BOUNDS.cases("objects"))
def test_objects(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    case, joined = groups.cases()[name], groups.joined(name)
    before = StickyAssignor().assign(
        Group(case.topics, [Member(member, topics) for member, topics in case.before.items()])
    )
    members = [Member(member, topics, owned=before[member], generation=5) for member, topics in case.after.items()]
    group = Group(case.topics, members)
    objects, bytes_ = interleaved(
        lambda: StickyAssignor().assign(group).assignment,
        lambda: _core.perform_assignment(*OPTIONS, joined, case.topics, None),
        5,
    )
    ratio.at_most("objects", name, objects, bytes_)


@pytest.mark.parametrize("name", BOUNDS.cases("memory"))
def test_memory(name: str, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """In a separate process, since memory that earlier tests left free would hide a part of the peak."""
    command = [sys.executable, "-P", str(Path(__file__).parent / "peak.py"), name]
    output = rounds_of(benchmark, lambda: subprocess.check_output(command, text=True))
    figures = json.loads(output)
    ratio.at_most("memory", name, figures["peak"], figures["input"] + figures["output"])
