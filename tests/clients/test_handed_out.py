"""Leaders that remember their plans, and members that claim partitions that no plan gave them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import CooperativeStickyAssignor, LagBasedAssignor, MemberState, StickyAssignor
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.clients.kafka_python._internals import refreshed_ms
from kafka_assignors.member.handed_out import HandedOut
from kafka_assignors.member.strategies import Strategies
from kafka_assignors.userdata import Assignment, StickyUserData, Subscription
from support.commanded import until
from support.commanded_members import AiokafkaMember, Group, Joined, KafkaPythonMember, Stage

if TYPE_CHECKING:
    from kafka_assignors.assignors import Assignor

LEADERS: dict[str, tuple[Any, Any, Assignor]] = {
    "kafka-python": (KafkaPythonMember, kafka_python.StickyAssignor, StickyAssignor()),
    "kafka-python cooperative": (
        KafkaPythonMember,
        kafka_python.CooperativeStickyAssignor,
        CooperativeStickyAssignor(),
    ),
    "kafka-python lag": (
        KafkaPythonMember,
        lambda: kafka_python.LagBasedAssignor(lags={}, keep="owners"),
        LagBasedAssignor(),
    ),
    "aiokafka": (AiokafkaMember, aiokafka.StickyAssignor, StickyAssignor()),
    "aiokafka lag": (AiokafkaMember, lambda: aiokafka.LagBasedAssignor(lags={}, keep="owners"), LagBasedAssignor()),
}
EVERYTHING = list(range(60))
Build = Callable[[str], Any]


@pytest.fixture(params=LEADERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


@pytest.fixture
def build(kind: str, stage: Stage) -> Build:
    made, strategy, _ = LEADERS[kind]
    return lambda name: stage.add(made, name, [strategy()], {"t": 60})


def liar(kind: str, generation: int) -> tuple[str, str | None, bytes]:
    return "liar", None, LEADERS[kind][2].metadata(["t"], MemberState({"t": EVERYTHING}, generation))


def test_who_claims_everything_takes_nothing_from_its_owners(kind: str, build: Build) -> None:
    a, b, c, group = build("a"), build("b"), build("c"), Group()
    for _ in range(3):
        group.rebalance(a, b, c)
    for _ in range(3):
        before = [member.held() for member in (a, b, c)]
        group.rebalance(a, b, c, others=[liar(kind, group.generation)])
        held = [member.held() for member in (a, b, c)]
        assert all(now <= past for past, now in zip(before, held, strict=True)), "nobody gets what was another's"
        # Without lags all members keep their partitions, however many members join.
        keeps_all = "lag" in kind
        assert [len(each) for each in held] == [20 if keeps_all else 15] * 3
        report = a.assignor.last_report
        assert report.faults["liar"].endswith("the leader knows that it did not hand these partitions to it")
        assert report.moved == (15 if len(before[0]) > len(held[0]) else 0)


def test_what_it_was_given_it_may_claim(kind: str, build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    group.rebalance(a, b)
    for _ in range(3):
        group.rebalance(a, b)
        assert (a.assignor.last_report.faults, a.assignor.last_report.moved) == ({}, 0)


def test_a_leader_that_lost_its_membership_knows_nothing(kind: str, build: Build) -> None:
    """The group may have been deleted meanwhile, and its generations begin at 1 again: an old plan is worthless."""
    a, group = build("a"), Group()
    group.rebalance(a)
    a.expel()
    group = Group(generation=1)
    a.metadata()
    assert a.assignor._handed_out.earlier_plans() is None
    claims = LEADERS[kind][2].metadata(["t"], MemberState({"t": EVERYTHING}, 1))
    group.rebalance(a, others=[("z", None, claims)])
    assert a.assignor.last_report.faults == {}


def test_a_follower_believes_the_leader_of_its_generation(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    group.rebalance(a, b)
    group.rebalance(b, a)
    # `a` leads again and did not see the plan of `b`.
    group.rebalance(a, b)
    assert a.assignor.last_report.faults == {}


def test_a_static_member_of_aiokafka_comes_back_under_another_id(stage: Stage) -> None:
    """aiokafka gives an assignor no instance ids: a new member's claim to a gone member's partitions is accepted."""
    a, group = stage.add(AiokafkaMember, "a", [aiokafka.StickyAssignor()], {"t": 60}), Group()
    group.rebalance(a, others=[("i-1", "i", StickyAssignor().metadata(["t"], MemberState()))])
    mine = {number for _, number in a.held()}
    theirs = sorted(set(EVERYTHING) - mine)
    told = StickyAssignor().metadata(["t"], MemberState({"t": theirs}, 1))
    group.rebalance(a, others=[("i-2", "i", told)])
    assert (a.assignor.last_report.faults, a.assignor.last_report.moved) == ({}, 0)
    # A claim to the partitions of a present member is refused.
    told = StickyAssignor().metadata(["t"], MemberState({"t": EVERYTHING}, 2))
    group.rebalance(a, others=[("i-3", "i", told)])
    assert {number for _, number in a.held()} == mine
    assert set(a.assignor.last_report.faults) == {"i-3"}


# ---- confluent's consumer -------------------------------------------------------------------------------------------


class Confluent:
    """A leader's assignors, and a group around them."""

    def __init__(self, assignor: Assignor) -> None:
        self.assignor = assignor
        self.strategies = Strategies([assignor], None, None)
        self.generation = 0
        self.owned: dict[str, list[int]] = {}

    def plan(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        self.generation += 1
        ((_, mine),) = self.strategies.metadata(["t"], {"t": self.owned.get("me", [])})
        members = [("me", None, mine), *((name, None, told) for name, told in others.items())]
        return self.strategies.plan(self.assignor.name, members, {"t": (60, ())}, self.generation)

    def take(self, assigned: Mapping[str, bytes], mine: bytes | None = None) -> None:
        self.owned = {name: list(Assignment.decode(told).partitions.get("t", [])) for name, told in assigned.items()}
        own = assigned["me"] if mine is None else mine
        self.strategies.take(self.assignor.name, own, self.generation, {"t": self.owned["me"]})

    def told(self, name: str, numbers: Sequence[int], generation: int) -> bytes:
        return self.assignor.metadata(["t"], MemberState({"t": list(numbers)}, generation))

    def honest(self) -> dict[str, bytes]:
        return {name: self.told(name, self.owned.get(name, []), self.generation) for name in ("b", "c")}


@pytest.mark.parametrize("assignor", [CooperativeStickyAssignor(), StickyAssignor()], ids=lambda each: each.name)
def test_confluents_leader_remembers(assignor: Assignor) -> None:
    group = Confluent(assignor)
    group.take(group.plan(group.honest()))
    for _ in range(4):
        liar = group.told("liar", EVERYTHING, group.generation)
        before = group.owned
        group.take(group.plan({**group.honest(), "liar": liar}))
        for name in ("me", "b", "c"):
            assert set(group.owned[name]) <= set(before[name])
            assert len(group.owned[name]) == 15
    assert len(group.owned["liar"]) == 15


def test_a_plan_that_the_group_did_not_get_is_all_that_can_be_claimed_of_its_generation() -> None:
    """A member that joins again at once prevents the storing of a plan. Only that plan's partitions can be claimed."""
    group = Confluent(CooperativeStickyAssignor())
    group.take(group.plan(group.honest()))
    honest, owned = group.honest(), group.owned
    group.plan({**honest, "liar": group.told("liar", [], -1)})
    group.take(group.plan({**honest, "liar": group.told("liar", EVERYTHING, group.generation)}))
    for name in ("me", "b", "c"):
        assert set(group.owned[name]) <= set(owned[name])
        assert len(group.owned[name]) == 15


def test_somebody_elses_plan_of_the_same_generation_counts() -> None:
    """The coordinator moved before the plan was stored. The generation was formed again, with another leader."""
    group = Confluent(CooperativeStickyAssignor())
    group.take(group.plan(group.honest()))
    group.plan(group.honest())
    theirs = {"b": list(range(40)), "c": list(range(40, 60)), "me": []}
    assigned = {name: Assignment({"t": numbers}, struct.pack(">i", 2)).encode() for name, numbers in theirs.items()}
    group.take(assigned)
    last = group.plan(group.honest())
    assert group.strategies.last_plan is not None
    assert group.strategies.last_plan.faults == {}
    assert len(Assignment.decode(last["me"]).partitions.get("t", [])) == 0, "withheld until `b` gives it up"


# ---- the memory -----------------------------------------------------------------------------------------------------


def planned(number: int) -> Any:
    return StickyAssignor().plan_assignment([("a", StickyAssignor().metadata(["t"], MemberState()))], {"t": number})[1]


def generations(memory: HandedOut) -> list[int | None]:
    told = memory.earlier_plans()
    return [] if told is None else [generation for generation, _ in told[0]]


def test_a_stored_plan_takes_the_place_of_all_before_it() -> None:
    memory = HandedOut()
    assert memory.earlier_plans() is None
    memory.planned(3, planned(1))
    memory.taken(3, led=True)
    memory.planned(4, planned(1))
    memory.planned(5, planned(1), planned(2))
    assert generations(memory) == [3, 4, 5, 5]
    memory.taken(5, led=True)
    assert generations(memory) == [5, 5]
    memory.taken(6, led=False)
    assert generations(memory) == [5, 5]
    memory.forget()
    assert memory.earlier_plans() is None


def test_a_plan_made_again_takes_the_place_of_the_one_before() -> None:
    memory = HandedOut(anonymous=True)
    first, second = planned(1), planned(2)
    memory.planned(3, first)
    memory.planned(3, second)
    assert memory.earlier_plans() == ([(3, second._core)], True, False)
    memory.taken(3, led=False)
    assert memory.earlier_plans() is None


def test_plans_that_never_reach_the_group_do_not_pile_up() -> None:
    memory = HandedOut()
    memory.planned(0, planned(1))
    memory.taken(0, led=True)
    for generation in range(1, 30):
        memory.planned(generation, planned(1))
    assert generations(memory) == [0, *range(22, 30)]


# ---- topics that the leader does not know yet -----------------------------------------------------------------------


def _lists(assigned: Assignment) -> dict[str, list[int]]:
    return {topic: list(numbers) for topic, numbers in assigned.partitions.items()}


@pytest.mark.parametrize(
    ("strategy", "assignor"),
    [
        (kafka_python.StickyAssignor, StickyAssignor()),
        (kafka_python.CooperativeStickyAssignor, CooperativeStickyAssignor()),
        (lambda: kafka_python.LagBasedAssignor(lags={}), LagBasedAssignor()),
    ],
)
def test_a_topic_that_the_leader_does_not_know_yet_stays_with_its_owners(
    stage: Stage, strategy: Any, assignor: Assignor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a metadata answer without the topic may arrive before the second plan. No member would then get
    # the topic. Therefore the plug-in reads the time of the first metadata only.
    monkeypatch.setattr("kafka_assignors.clients.kafka_python.assignors.refreshed_ms", cache(refreshed_ms))
    a, group = stage.add(KafkaPythonMember, "a", [strategy()], {"t": 4}), Group(generation=6)
    others: Joined = [
        ("b", None, assignor.metadata(["u"], MemberState({"u": [0, 1, 2]}, 6))),
        ("c", None, assignor.metadata(["u"], MemberState({"u": [3, 5]}, 6))),
        ("d", None, assignor.metadata(["u"], MemberState({"u": [3]}, 5))),
        # A partition number that no topic has does not create a topic of two billion partitions.
        ("e", None, assignor.metadata(["u"], MemberState({"u": [2**31 - 1]}, 6))),
    ]
    assigned = {name: Assignment.decode(each) for name, each in group.rebalance(a, others=others).items()}
    shares = {name: _lists(each) for name, each in assigned.items()}
    assert shares == {"a": {"t": [0, 1, 2, 3]}, "b": {"u": [0, 1, 2]}, "c": {"u": [3, 5]}, "d": {}, "e": {}}
    assert {each.generation for each in assigned.values()} == {7}
    report = a.assignor.last_report
    assert (report.moved, report.least_moves, report.faults) == (0, 0, {})
    # In the next generation, the partitions that stayed count as assigned by this leader.
    others = [(name, None, assignor.metadata(["u"], MemberState(shares[name], 7))) for name in "bcd"]
    again = group.rebalance(a, others=others)
    assert {name: _lists(Assignment.decode(again[name])) for name in "abcd"} == {name: shares[name] for name in "abcd"}
    assert a.assignor.last_report.faults == {}


def test_a_topic_that_is_not_there_stays_with_nobody(stage: Stage) -> None:
    """After a metadata response without the topic, the topic does not exist."""
    a, group = stage.add(KafkaPythonMember, "a", [kafka_python.StickyAssignor()], {"t": 4}), Group(generation=5)
    told = StickyAssignor().metadata(["u"], MemberState({"u": [0, 1]}, 4))

    def given() -> dict[str, list[int]]:
        return _lists(Assignment.decode(group.rebalance(a, others=[("b", None, told)])["b"]))

    group.rebalance(a)
    assert given() == {"u": [0, 1]}
    # The client has sent a metadata request for the topic meanwhile.
    until(lambda: given() == {}, "the answer without the topic counts")
    # A member that subscribes to the topic again after a while leads to a new request.
    group.rebalance(a)
    assert given() == {"u": [0, 1]}


def test_the_record_is_as_long_as_it_is_written(stage: Stage) -> None:
    a, group = stage.add(KafkaPythonMember, "a", [kafka_python.StickyAssignor()], {"t": 4}), Group(generation=6)
    told: Joined = [("b", None, StickyAssignor().metadata(["u"], MemberState({"u": list(range(100))}, 6)))]
    group.rebalance(a, others=told)
    without = a.assignor.last_report.plan.record_bytes
    assert a.assignor.last_report.record_bytes == without + 4 * 100 + 4 + 3


def test_false_claims_make_no_large_topics() -> None:
    from kafka_assignors.clients.common.unknown_topics import _counts

    def told(numbers: list[int]) -> tuple[str, bytes]:
        return "m", Subscription(["u"], StickyUserData({"u": numbers}, 1).encode()).encode()

    assert _counts([told([0, 2])], {"u"}, cooperative=False) == {"u": 3}
    assert _counts([told([2**31 - 1])], {"u"}, cooperative=False) == {}
    assert _counts([told([0, 10**6]), ("x", b"?")], {"u"}, cooperative=False) == {"u": 1}
    assert _counts([told([0])], {"v"}, cooperative=False) == {}


# ---- positions of a client -------------------------------------------------------------------------------------------


def test_aiokafka_reads_on_from_the_commits(stage: Stage) -> None:
    a, group = stage.add(AiokafkaMember, "a", [aiokafka.StickyAssignor()], {"t": 4}), Group()
    group.rebalance(a)
    assert a.assignor.last_report.rewound == {}
    group.rebalance(a)
    report = a.assignor.last_report
    assert report.rewound == report.kept == {"t": (0, 1, 2, 3)}


def test_kafka_python_reads_on_where_it_was_unless_a_generation_was_missed(stage: Stage) -> None:
    a, group = stage.add(KafkaPythonMember, "a", [kafka_python.StickyAssignor()], {"t": 4}), Group()
    group.rebalance(a)
    group.rebalance(a)
    assert a.assignor.last_report.kept
    assert a.assignor.last_report.rewound == {}
    group.generation += 1
    group.rebalance(a)
    report = a.assignor.last_report
    assert report.rewound == report.kept == {"t": (0, 1, 2, 3)}
