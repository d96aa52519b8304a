"""A leader's planning ends before its session does, with a valid plan. The report names the limit."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import LagBasedAssignor, MemberState, StickyAssignor
from kafka_assignors.clients import aiokafka, confluent, kafka_python
from kafka_assignors.clients.common import adapter
from kafka_assignors.member.strategies import Strategies
from support.commanded import until
from support.commanded_members import AiokafkaMember, Group, Joined, KafkaPythonMember, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.member.rebalance_report import RebalanceReport

TOPICS = {"t": 12, "u": 4}
LAGS = {"t": [1_000] * 12, "u": [0] * 4}
BALANCE = "the search for the least balance score ended when its time was up"
LAG = "the search for the least lag of the heaviest member ended when its time was up"


def leaders() -> dict[str, tuple[Any, Any, Assignor, str]]:
    """By name: the member, its plug-in, the assignor behind it, and the text of the report after the time limit."""
    found: dict[str, tuple[Any, Any, Assignor, str]] = {}
    clients: list[tuple[str, Any, Any]] = [
        ("kafka-python", KafkaPythonMember, kafka_python),
        ("aiokafka", AiokafkaMember, aiokafka),
    ]
    for client, member, plugins in clients:
        by_lag = partial(plugins.LagBasedAssignor, keep="owners")
        found |= {
            client: (member, plugins.StickyAssignor, StickyAssignor(), BALANCE),
            f"{client} lag": (member, partial(by_lag, lags=LAGS), LagBasedAssignor(), LAG),
            f"{client} lag, asked": (member, partial(by_lag, lags=lambda topics, group: LAGS), LagBasedAssignor(), LAG),
        }
    return found


LEADERS = leaders()


@pytest.fixture(params=LEADERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def leader(kind: str) -> Iterator[Any]:
    made, strategy, _, _ = LEADERS[kind]
    with Stage() as stage:
        # The topics are this member's own, whose metadata it has from the start. The metadata of another member's topic
        # might arrive after the plan.
        yield stage.add(made, "a", [strategy()], TOPICS, session_timeout_ms=10_000)


def check_log(caplog: pytest.LogCaptureFixture, limited: str) -> None:
    def lines() -> list[logging.LogRecord]:
        # Only lines with a limit: the line of the previous rebalance may also arrive late.
        told = [record for record in caplog.records if record.message.startswith("rebalanced: ")]
        return [record for record in told if record.__dict__["limited"] is not None]

    # The line is written after the report.
    until(lines, "the line in the log")
    (record,) = lines()
    assert record.levelno == logging.WARNING
    assert record.message.endswith(f"; the plan is valid, but a better one may exist: {limited}")
    assert record.limited == limited  # type: ignore[attr-defined]


def test_a_plan_that_ran_out_of_time_is_valid_and_said_so(
    kind: str, leader: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignor, limited = LEADERS[kind][2:]
    group = Group()
    group.rebalance(leader)
    assert leader.assignor.last_report.limited is None
    joins: Joined = [("z", None, assignor.metadata(["t"], MemberState()))]
    monkeypatch.setattr(adapter, "PLANNING_SHARE", 0.0)
    caplog.clear()
    with caplog.at_level(logging.INFO, "kafka_assignors"):
        group.rebalance(leader, others=joins)
    report = leader.assignor.last_report
    assert report.limited == report.plan.limited == limited
    report.plan.verify()
    check_log(caplog, limited)
    monkeypatch.undo()
    group.rebalance(leader, others=joins)
    assert leader.assignor.last_report.limited is None


def test_it_is_a_quarter_of_the_session(leader: Any) -> None:
    Group().rebalance(leader)
    assert leader.assignor._planning_seconds() == 2.5


def test_a_session_that_is_not_known_is_no_limit() -> None:
    assert kafka_python.StickyAssignor()._planning_seconds() is None


def test_the_confluent_consumer_plans_within_a_quarter_of_its_session() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "session.timeout.ms": 8_000}
    consumer = confluent.Consumer(settings)
    try:
        strategies = consumer._group.strategies
        assert isinstance(strategies, Strategies)
        assert strategies._planning_seconds == 2.0
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("assignor", "limited"),
    [(StickyAssignor(), BALANCE), (LagBasedAssignor(LAGS, keep="owners"), LAG)],
    ids=["sticky", "lag"],
)
def test_a_plan_of_the_confluent_consumer_that_ran_out_of_time(
    assignor: Assignor, limited: str, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[RebalanceReport] = []
    strategies = Strategies([assignor], None, reports.append, 0.0)
    owned = {"t": list(range(12))}
    members = [
        ("a", None, assignor.metadata(["t"], MemberState(owned, 1))),
        ("z", None, assignor.metadata(["t", "u"], MemberState())),
    ]
    topics: Any = {topic: (count, ()) for topic, count in TOPICS.items()}
    assignments = strategies.plan(assignor.name, members, topics, 2)
    with caplog.at_level(logging.INFO, "kafka_assignors"):
        strategies.take(assignor.name, assignments["a"], 2, owned)
    (report,) = reports
    assert report.plan is not None
    assert report.limited == report.plan.limited == limited
    report.plan.verify()
    check_log(caplog, limited)
