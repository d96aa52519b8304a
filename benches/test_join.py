"""The stream join, bytes to bytes, against the codec floor of the same bytes, and beside Faust's assignor."""

import importlib.util
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import groups
import pytest
from floors import codec_floor
from ratios import BOUNDS, MISSING, Interleaved, Ratio, check_bounds

from kafka_assignors import MemberState, StickyStreamJoinAssignor, _core
from kafka_assignors.userdata import Assignment

pytestmark = pytest.mark.filterwarnings("ignore::kafka_assignors.RecordSizeWarning")

OPTIONS = ("sticky-join", "fair-yet-sticky", "before-stickiness")


@dataclass(frozen=True)
class Join:
    """A join before and after a change of members. A fresh one has no members before."""

    numbers: int
    topics: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        return dict.fromkeys(groups.names(self.topics), self.numbers)

    def owned(self) -> dict[str, list[int]]:
        """The numbers of each member before the change."""
        assignor = StickyStreamJoinAssignor()
        joined = [(member, assignor.metadata(["topic"], MemberState())) for member in self.before]
        shares = assignor.perform_assignment(joined, {"topic": self.numbers})
        return {member: list(Assignment.decode(share).partitions["topic"]) for member, share in shares.items()}

    def members(self) -> groups.JoinGroup:
        assignor, names, owned = StickyStreamJoinAssignor(), groups.names(self.topics), self.owned()
        states = {
            member: MemberState(dict.fromkeys(names, owned[member]), groups.GENERATION)
            if member in owned
            else MemberState()
            for member in self.after
        }
        return [(member, assignor.metadata(names, state)) for member, state in states.items()]


def _joins() -> dict[str, Join]:
    joins = {}
    for numbers, topics, members in ((1_000, 20, 100), (100_000, 10, 2_000)):
        ids = tuple(groups.ids(members))
        size = f"{numbers:,} numbers x {topics} topics, {members:,} members"
        joins[f"{size}: fresh"] = Join(numbers, topics, (), ids)
        joins[f"{size}: one leaves"] = Join(numbers, topics, ids, ids[1:])
        joins[f"{size}: one joins"] = Join(numbers, topics, ids, (*ids, "joiner"))
    return joins


JOINS = _joins()
QUICK = {name for name in JOINS if name.startswith("1,000 ")}
check_bounds("join-floor", JOINS)
check_bounds("faust", JOINS)

joined = cache(lambda name: JOINS[name].members())


def _mark(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.quick) if name in QUICK else name


@pytest.mark.parametrize("name", [_mark(name) for name in JOINS])
def test_floor(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    join, members = JOINS[name], joined(name)
    counts = join.counts
    _, plan = _core.perform_assignment(*OPTIONS, members, counts, None)
    kept, moved = plan.kept_and_moved()
    ours, floor = interleaved(
        lambda: _core.perform_assignment(*OPTIONS, members, counts, None),
        lambda: codec_floor(*OPTIONS, members, counts),
        groups.rounds(counts),
    )
    ratio.at_most("join-floor", name, ours, floor, f"kept {kept:,}, moved {moved:,}")


if importlib.util.find_spec("faust") is None:
    MISSING.append("Faust's co-partitioned assignor: faust-streaming is not installed (make peers)")
else:

    def _faust(join: Join) -> tuple[float, str]:
        """The seconds of Faust's assignor for the same change, from its own objects, and figures of its plan."""
        from faust.assignor.client_assignment import CopartitionedAssignment
        from faust.assignor.copartitioned_assignor import CopartitionedAssignor

        names, before = set(groups.names(join.topics)), join.owned()
        clients = {
            member: CopartitionedAssignment(actives=set(before.get(member, ())), topics=names) for member in join.after
        }
        start = perf_counter()
        plan = CopartitionedAssignor(names, clients, join.numbers, replicas=0).get_assignment()
        seconds = perf_counter() - start
        assert sum(len(share.actives) for share in plan.values()) == join.numbers
        kept = sum(len(share.actives.intersection(before.get(member, ()))) for member, share in plan.items())
        loads = [len(share.actives) for share in plan.values()]
        return seconds, f"its shares {min(loads)} to {max(loads)}, {kept:,} numbers kept"

    @pytest.mark.timeout(600)
    @pytest.mark.parametrize("name", [_mark(name) for name in BOUNDS.cases("faust")])
    def test_faust(name: str, ratio: Ratio, interleaved: Interleaved) -> None:
        join, members = JOINS[name], joined(name)
        counts, notes = join.counts, list[tuple[float, str]]()

        def faust() -> None:
            seconds, note = _faust(join)
            notes.append((seconds, note))

        # In turns and over rounds, since a single call of Faust's may run while the machine is busy.
        rounds = 20 if name in QUICK else 3
        ours, _ = interleaved(lambda: _core.perform_assignment(*OPTIONS, members, counts, None), faust, rounds)
        ratio.at_least("faust", name, ours, min(seconds for seconds, _ in notes), notes[-1][1])
