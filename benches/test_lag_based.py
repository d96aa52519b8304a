"""The lag-based strategy and its options, bytes to bytes, against the codec floor and against plain Python."""

import random
from collections.abc import Mapping
from functools import cache
from heapq import heapify, heapreplace
from time import perf_counter
from typing import Any

import groups
import pytest
from floors import codec_floor
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import BOUNDS, Interleaved, Ratio, check_bounds, measured, rounds_of

from kafka_assignors import _core

pytestmark = pytest.mark.filterwarnings("ignore::kafka_assignors.RecordSizeWarning")

# A member of `lag` sends the bytes of a sticky member, so both have the same floor. The floor does not include the
# lags, which ours reads from Python's integers.
FLOOR = ("sticky", "fair-yet-sticky", "before-stickiness")

Options = tuple[str, int | None, int | None]
Lags = Mapping[str, list[int]]

# Scope, max_skew and, with keep=owners, the threshold.
OPTIONS: dict[str, Options] = {
    "the rule": ("topic", 0, None),
    "max_skew=2": ("topic", 2, None),
    "max_skew=None": ("topic", None, None),
    "scope=group": ("group", 0, None),
    "scope=group, max_skew=2": ("group", 2, None),
    "scope=group, max_skew=None": ("group", None, None),
    "keep=owners": ("topic", 0, 0),
    "scope=group, max_skew=None, keep=owners, threshold=0": ("group", None, 0),
    "scope=group, max_skew=2, keep=owners, threshold=10,000": ("group", 2, 10_000),
    "scope=group, max_skew=None, keep=owners, threshold=10,000": ("group", None, 10_000),
}
# Topics, partitions of each, members.
SMALL, LARGE = "100,000 over 100 topics, 200 members", "1,000,000 over 1,000 topics, 2,000 members"
SIZES = {SMALL: (100, 1_000, 200), LARGE: (1_000, 1_000, 2_000)}
SMALL_OPTIONS = {"the rule", "scope=group, max_skew=2", "scope=group, max_skew=2, keep=owners, threshold=10,000"}
CASES = {
    f"{size}: {options}": (size, options)
    for size in SIZES
    for options in OPTIONS
    if size == LARGE or options in SMALL_OPTIONS
}
QUICK = {name for name, (size, _) in CASES.items() if size == SMALL}
check_bounds("lag-floor", CASES)
check_bounds("lag-python", CASES)
check_bounds("lag-python-heap", CASES)


@cache
def lags(size: str) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The lags at the last rebalance and now: 0 for a fifth of the partitions, 10,000 on average for the others."""
    pick = random.Random(5337)
    topics, partitions, _ = SIZES[size]

    def draw() -> int:
        return 0 if pick.random() < 0.2 else int(pick.expovariate(1e-4))

    before = {topic: [draw() for _ in range(partitions)] for topic in groups.names(topics)}
    now = {topic: [int(lag * pick.uniform(0.8, 1.2)) for lag in row] for topic, row in before.items()}
    return before, now


@cache
def joined(size: str, options: Options) -> groups.JoinGroup:
    """A group after one member left. The others own the assignments that were made with the lags of that time."""
    before, _ = lags(size)
    ids, counts = groups.ids(SIZES[size][2]), {topic: len(row) for topic, row in before.items()}
    fresh = [(member, groups.subscription(counts)) for member in ids]
    owned, _ = _core.perform_assignment_by_lag((*options[:2], None), fresh, counts, before, None)
    return [(member, groups.subscription(counts, owned[member])) for member in ids[1:]]


def _mark(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.quick) if name in QUICK else name


@pytest.mark.parametrize("name", [_mark(name) for name in CASES])
def test_floor(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    size, options = CASES[name][0], OPTIONS[CASES[name][1]]
    now, members = lags(size)[1], joined(size, options)
    counts = {topic: len(row) for topic, row in now.items()}
    _, plan = _core.perform_assignment_by_lag(options, members, counts, now, None)
    kept, moved = plan.kept_and_moved()
    heaviest = max(plan.lag_by_member() or [])
    ours, floor = interleaved(
        lambda: _core.perform_assignment_by_lag(options, members, counts, now, None),
        lambda: codec_floor(*FLOOR, members, counts),
        groups.rounds(counts),
    )
    note = f"kept {kept:,}, moved {moved:,}, heaviest {heaviest:,}"
    ratio.at_most("lag-floor", name, ours, floor, note)


def by_scanning(members: list[str], now: Lags) -> dict[str, dict[str, list[int]]]:
    """A direct implementation of the rule, for members that subscribe to all topics."""
    plan: dict[str, dict[str, list[int]]] = {member: {} for member in members}
    for topic, row in now.items():
        loads: list[list[Any]] = [[0, 0, member] for member in members]
        for number in sorted(range(len(row)), key=lambda number: -row[number]):
            least = min(loads)
            least[0] += 1
            least[1] += row[number]
            plan[least[2]].setdefault(topic, []).append(number)
    return plan


def by_heap(members: list[str], now: Lags) -> dict[str, dict[str, list[int]]]:
    """The rule with a heap instead of the scan."""
    plan: dict[str, dict[str, list[int]]] = {member: {} for member in members}
    for topic, row in now.items():
        loads = [(0, 0, member) for member in members]
        heapify(loads)
        for number in sorted(range(len(row)), key=lambda number: -row[number]):
            count, lag, member = loads[0]
            heapreplace(loads, (count + 1, lag + row[number], member))
            plan[member].setdefault(topic, []).append(number)
    return plan


PYTHON = {"lag-python": by_scanning, "lag-python-heap": by_heap}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=[pytest.mark.quick] if name in QUICK else [])
        for kind in PYTHON
        for name in BOUNDS.cases(kind)
    ],
)
def test_plain_python(kind: str, name: str, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """From member names to lists in dictionaries. Only our side decodes and encodes bytes."""
    size, options = CASES[name][0], OPTIONS[CASES[name][1]]
    now, members = lags(size)[1], joined(size, options)
    counts = {topic: len(row) for topic, row in now.items()}
    ids = sorted(member for member, _ in members)
    start = perf_counter()
    plan = PYTHON[kind](ids, now)
    seconds = perf_counter() - start
    for share in plan.values():
        for numbers in share.values():
            numbers.sort()
    _, ours = rounds_of(
        benchmark, lambda: _core.perform_assignment_by_lag(options, members, counts, now, None), 5, warm=True
    )
    assert ours.assignment() == plan
    ratio.at_least(kind, name, measured(benchmark).median, seconds)
