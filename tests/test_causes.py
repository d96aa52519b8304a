"""The causes of a rebalance in its leader's report, and the times of a report: with the classes alone, no broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, get_args

import pytest

from kafka_assignors import CooperativeStickyAssignor, MemberState, StickyAssignor
from kafka_assignors.member.causes import CAUSES, Cause, PlannedGeneration, causes_of
from kafka_assignors.member.rebalance_report import Course, RebalanceReporter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STICKY = StickyAssignor()
TWO = {"a": ["orders"], "b": ["orders"]}


class Leader:
    """A leader that plans generation after generation."""

    def __init__(self, assignor: Any = STICKY) -> None:
        self._assignor = assignor
        self._last_planned = PlannedGeneration()
        self._states: dict[str, MemberState] = {}

    def plan(
        self,
        generation: int | None,
        topics: Mapping[str, Sequence[str]],
        partitions: Mapping[str, int],
        static: Mapping[str, str] | None = None,
        *,
        broken: str = "",
    ) -> set[Cause] | None:
        """Plans for members with these topics; `static` are their instance ids."""
        members: list[tuple[str, str | None, bytes]] = []
        for name, wanted in topics.items():
            metadata = self._assignor.metadata(sorted(wanted), self._states.get(name, MemberState()))
            members.append((name, (static or {}).get(name), metadata if name != broken else b"\0\0\xff"))
        assignments, plan = self._assignor.plan_assignment(members, dict(partitions), generation=generation)
        for name, assignment in assignments.items():
            state = self._states.setdefault(name, MemberState())
            self._assignor.on_assignment(assignment, generation, state)
        return self._last_planned.compare(generation, members, partitions, plan)


def test_there_is_a_sentence_for_each_cause() -> None:
    assert tuple(CAUSES) == get_args(Cause)


def test_the_first_generation_of_a_leader_compares_with_nothing() -> None:
    leader = Leader()
    assert leader.plan(4, TWO, {"orders": 4}) is None
    assert leader.plan(6, TWO, {"orders": 4}) is None, "another member led generation 5"
    assert leader.plan(7, TWO, {"orders": 4}) == set()
    assert leader.plan(None, TWO, {"orders": 4}) is None
    assert leader.plan(8, TWO, {"orders": 4}) is None


@pytest.mark.parametrize(
    ("topics", "partitions", "causes"),
    [
        ({**TWO, "c": ["orders"]}, {"orders": 4}, {"member-joined"}),
        ({"a": ["orders"]}, {"orders": 4}, {"member-left"}),
        ({"a": ["orders"], "c": ["orders"]}, {"orders": 4}, {"member-joined", "member-left"}),
        ({"a": ["orders"], "b": ["clicks", "orders"]}, {"orders": 4, "clicks": 2}, {"subscription-changed"}),
        ({"a": ["orders"], "b": []}, {"orders": 4}, {"subscription-changed"}),
        (TWO, {"orders": 6}, {"partitions-added"}),
        (TWO, {"orders": 2}, {"partitions-removed"}),
        (TWO, {}, {"partitions-removed"}),
        ({"a": ["orders"]}, {"orders": 6}, {"member-left", "partitions-added"}),
        (TWO, {"orders": 4}, set()),
    ],
)
def test_what_differs_is_the_cause(
    topics: Mapping[str, Sequence[str]], partitions: Mapping[str, int], causes: set[str]
) -> None:
    leader = Leader()
    leader.plan(1, TWO, {"orders": 4})
    assert leader.plan(2, topics, partitions) == causes
    assert leader.plan(3, topics, partitions) == set(), "it compares with the latest"


def test_a_topic_that_a_member_reads_already_may_come_into_being() -> None:
    leader = Leader()
    both = {"a": ["orders", "clicks"]}
    leader.plan(1, both, {"orders": 4})
    assert leader.plan(2, both, {"orders": 4, "clicks": 1}) == {"partitions-added"}


def test_a_static_member_is_the_same_under_another_id_and_leaves_only_by_expiry() -> None:
    leader = Leader()
    leader.plan(1, TWO, {"orders": 4}, {"b": "box-1"})
    assert leader.plan(2, {"a": ["orders"], "b2": ["orders"]}, {"orders": 4}, {"b2": "box-1"}) == set()
    assert leader.plan(3, {"a": ["orders"]}, {"orders": 4}) == {"member-expelled"}


def test_a_cooperative_rebalance_goes_on_for_what_was_withheld() -> None:
    leader = Leader(CooperativeStickyAssignor())
    leader.plan(1, {"a": ["orders"]}, {"orders": 4})
    assert leader.plan(2, TWO, {"orders": 4}) == {"member-joined"}
    assert leader.plan(3, TWO, {"orders": 4}) == {"partitions-revoked"}
    assert leader.plan(4, TWO, {"orders": 4}) == set()


def test_topics_in_another_order_are_the_same() -> None:
    members = [[("a", None, STICKY.metadata(names, MemberState()))] for names in (["t", "u"], ["u", "t"])]
    backwards = members[0][0][2].replace(b"\0\1t\0\1u", b"\0\1u\0\1t")
    assert backwards != members[0][0][2]
    last_planned = PlannedGeneration()
    _, plan = STICKY.plan_assignment(members[0], {"t": 1, "u": 1}, generation=1)
    last_planned.compare(1, members[0], {"t": 1, "u": 1}, plan)
    assert last_planned.compare(2, [("a", None, backwards)], {"t": 1, "u": 1}, plan) == set()


def test_bytes_that_cannot_be_read_cost_nothing() -> None:
    """Some of these bytes claim billions of topics, and none follows."""
    leader = Leader()
    leader.plan(1, TWO, {"orders": 4})
    assert leader.plan(2, TWO, {"orders": 4}, broken="b") == {"subscription-changed"}
    assert leader.plan(3, TWO, {"orders": 4}, broken="b") == set()
    _, plan = STICKY.plan_assignment([("a", b"")], {}, generation=1)
    for hostile in (b"", b"\0\0", b"\0\0\xff\xff\xff\xff", b"\0\0\x7f\xff\xff\xff" + bytes(1000)):
        assert PlannedGeneration().compare(1, [("a", hostile)], {}, plan) is None


@pytest.mark.parametrize(
    ("trigger", "compared", "causes"),
    [
        ("group", None, ()),
        ("group", set(), ()),
        ("group", {"member-left", "member-joined"}, ("member-joined", "member-left")),
        ("joined", None, ("member-joined",)),
        ("expelled", {"member-left"}, ("member-left", "member-expelled")),
        ("subscription", set(), ("subscription-changed",)),
        ("revoked", None, ("partitions-revoked",)),
        ("topics", set(), ("replicas-moved",)),
        ("topics", {"partitions-added"}, ("partitions-added",)),
        ("topics", None, ()),
        ("asked", set(), ("leader-returned",)),
        ("leader-returned", None, ("leader-returned",)),
    ],
)
def test_what_made_a_member_join_counts_too(trigger: str, compared: Any, causes: tuple[str, ...]) -> None:
    assert causes_of(trigger, compared) == causes


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0 + self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_times_of_an_eager_rebalance(clock: Clock) -> None:
    reporter = RebalanceReporter("billing")
    first = reporter.report("sticky", 1, {"t": (0, 1)}, course=Course(90.0, joined=97.0, attempts=3, trigger="joined"))
    assert (first.group_id, first.seconds, first.without_partitions, first.retries) == ("billing", 10.0, 10.0, 2)
    assert (first.began, first.ended) == (1_800_000_090.0, 1_800_000_100.0)
    assert first.without_owner == {"t": {0: 3.0, 1: 3.0}}, "at least since JoinGroup was answered"
    clock.now = 202.0
    reporter.give_up([("t", 0), ("t", 1)])
    clock.now = 205.0
    second = reporter.report("sticky", 2, {"t": (1, 2)}, course=Course(200.0, joined=204.0))
    assert (second.seconds, second.without_partitions, second.retries) == (5.0, 3.0, 0)
    assert second.without_owner == {"t": {1: 3.0, 2: 1.0}}
    assert second.cause == "unknown"


def test_times_of_a_cooperative_rebalance(clock: Clock) -> None:
    reporter = RebalanceReporter()
    reporter.report("cooperative-sticky", 1, {"t": (0, 1)}, course=Course(90.0))
    clock.now = 202.0
    reporter.give_up([("t", 0)])
    clock.now = 203.0
    second = reporter.report("cooperative-sticky", 2, {"t": (1,)}, course=Course(200.0, joined=201.0))
    assert (second.without_partitions, second.without_owner) == (0.0, {"t": {1: 0.0}})
    clock.now = 300.0
    reporter.give_up([("t", 1)])
    clock.now = 304.0
    third = reporter.report("cooperative-sticky", 3, {}, course=Course(299.0, joined=301.0))
    assert (third.without_partitions, third.without_owner) == (4.0, {})


def test_an_expelled_member_had_nothing_since_it_lost_its_membership(clock: Clock) -> None:
    reporter = RebalanceReporter()
    reporter.report("sticky", 1, {"t": (0,)}, course=Course(90.0))
    reporter.expel()
    clock.now = 230.0
    report = reporter.report("sticky", 5, {"t": (0,)}, course=Course(200.0, joined=229.0, trigger="expelled"))
    assert (report.without_partitions, report.without_owner) == (30.0, {"t": {0: 1.0}})
    assert (report.cause, report.kept, report.gained) == ("member-expelled", {}, {"t": (0,)})


def test_one_that_had_left_and_subscribes_again_does_not_know_who_had_its_partitions(clock: Clock) -> None:
    reporter = RebalanceReporter()
    reporter.report("sticky", 1, {"t": (0,)}, course=Course(90.0))
    clock.now = 110.0
    reporter.give_up([("t", 0)])
    clock.now = 210.0
    report = reporter.report("sticky", 5, {"t": (0,)}, course=Course(200.0, joined=208.0, trigger="joined"))
    assert (report.without_partitions, report.without_owner) == (10.0, {"t": {0: 2.0}})


def test_without_a_course_no_time_is_made_up() -> None:
    report = RebalanceReporter().report("sticky", 1, {"t": (0,)})
    assert (report.began, report.ended, report.seconds, report.without_partitions) == (None, None, None, None)
    assert (report.without_owner, report.retries, report.cause) == ({}, 0, "unknown")
