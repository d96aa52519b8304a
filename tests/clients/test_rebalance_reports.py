"""Information on a rebalance from its members: the report, the callback and the log."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_assignors.clients import RebalanceReport, aiokafka, kafka_python
from support.logs import records_of_the_package
from support.offline import AiokafkaMember, Group, KafkaPythonMember

KINDS: dict[str, tuple[Any, Any]] = {
    "kafka-python": (KafkaPythonMember, kafka_python.StickyAssignor),
    "kafka-python cooperative": (KafkaPythonMember, kafka_python.CooperativeStickyAssignor),
    "aiokafka": (AiokafkaMember, aiokafka.StickyAssignor),
}
Build = Callable[..., Any]


@pytest.fixture(params=KINDS)
def build(request: pytest.FixtureRequest) -> Iterator[Build]:
    kind, strategy = KINDS[request.param]
    built: list[Any] = []

    def make(name: str, **options: Any) -> Any:
        built.append(kind(name, [strategy(**options)], {"t": 4}))
        return built[-1]

    yield make
    for each in built:
        each.close()


def test_every_member_reports_its_share_and_the_leader_the_plan(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    assert not a.assignor.last_report
    group.rebalance(a)
    report = a.assignor.last_report
    assert (report.generation, report.gained, report.lost, report.kept) == (1, {"t": (0, 1, 2, 3)}, {}, {})
    assert (report.leader, report.moved, report.least_moves, report.balance_score) == (True, 0, 0, 0)
    group.rebalance(a, b)
    ours, theirs = a.assignor.last_report, b.assignor.last_report
    assert ours.generation == theirs.generation == 2
    assert sum(map(len, ours.kept.values())) == sum(map(len, ours.lost.values())) == 2
    assert (ours.moved, ours.least_moves) == (2, 2)
    assert ours.planning_seconds > 0
    assert ours.record_bytes > 100
    assert (theirs.leader, theirs.moved, theirs.least_moves, theirs.balance_score) == (False, None, None, None)
    assert (theirs.planning_seconds, theirs.record_bytes) == (None, None)
    assert {ours.assignor, theirs.assignor} == {a.assignor.name}


def test_a_follower_that_led_before_reports_as_a_follower(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    group.rebalance(a, b)
    group.rebalance(b, a)
    assert not a.assignor.last_report.leader
    assert b.assignor.last_report.leader


def test_members_that_cannot_be_read_are_reported(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    a, group = build("a"), Group()
    # Sticky: the history is unreadable. Cooperative: the generation is unreadable, which has no effect and is no fault.
    broken = bytes.fromhex("00000000000100017400000005") + b"\xff\xff\xff\xff\x00"
    with caplog.at_level(logging.INFO, "kafka_assignors"):
        group.rebalance(a, others=[("b", None, broken)])
    if a.assignor.name == "sticky":
        assert set(a.assignor.last_report.faults) == {"b"}
        assert records_of_the_package(caplog)[-1].levelno == logging.WARNING


def test_reports_are_frozen(build: Build) -> None:
    a = build("a")
    Group().rebalance(a)
    report = a.assignor.last_report
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.generation = 5
    with pytest.raises(TypeError):
        report.gained["t"] = ()


def test_the_callback_is_called_and_cannot_do_harm(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[RebalanceReport] = []

    def callback(report: RebalanceReport) -> None:
        seen.append(report)
        raise RuntimeError("a bug of the user's")

    a, b, group = build("a", on_rebalance=callback), build("b"), Group()
    group.rebalance(a)
    group.rebalance(a, b)
    assert [report.generation for report in seen] == [1, 2]
    assert seen[-1] is a.assignor.last_report
    errors = [record for record in records_of_the_package(caplog) if record.levelno == logging.ERROR]
    assert len(errors) == 2
    assert all("on_rebalance" in record.getMessage() and record.exc_info for record in errors)


def test_one_line_of_log_with_fields(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    a, b, group = build("a"), build("b"), Group()
    group.rebalance(a)
    caplog.clear()
    with caplog.at_level(logging.INFO, "kafka_assignors"):
        group.rebalance(a, b)
    leader, follower = records_of_the_package(caplog)
    told: dict[str, Any] = leader.__dict__
    assert (told["generation"], told["kept"], told["lost"], told["moved"], told["members"]) == (2, 2, 2, 2, 2)
    withheld = 2 if a.assignor.name == "cooperative-sticky" else 0
    assert (told["balance_score"], told["leader"], told["faults"]) == (withheld, True, {})
    assert "generation=2" in leader.getMessage()
    assert "\n" not in leader.getMessage()
    assert not hasattr(follower, "moved")
    assert follower.__dict__["generation"] == 2


@pytest.mark.parametrize("name", KINDS)
def test_a_group_near_the_record_limit_is_told_in_the_log(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Only in the log: a warning would fail the rebalance under the `-W error` of these tests."""
    kind, strategy = KINDS[name]
    # The record has the names of the topics twice, in the subscription and in the assignment.
    a = kind("a", [strategy()], {f"{'t' * 240}{number:04}": 1 for number in range(2_200)})
    try:
        Group().rebalance(a)
    finally:
        a.close()
    assert a.assignor.last_report.record_bytes > 1_000_000
    line = records_of_the_package(caplog)[0]
    assert line.levelno == logging.WARNING
    assert "max.message.bytes" in line.getMessage()


def test_no_logging_is_set_up() -> None:
    assert logging.getLogger("kafka_assignors").handlers == []
    assert logging.getLogger("kafka_assignors").level == logging.NOTSET
