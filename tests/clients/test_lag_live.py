"""Groups that balance their lag, with both clients, on the embedded Kafka and on the real one."""

from __future__ import annotations

import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import Group, LagBasedAssignor, Member
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.lag import ConfluentLagSource
from support.broker import Kafka
from support.features import has
from support.lag import LAGS, commit, compact, fill, in_every_state
from support.live import (
    SESSION_TIMEOUT_MS,
    SHORT_SESSION_TIMEOUT_MS,
    AiokafkaLive,
    AttachedAiokafkaLive,
    Crew,
    KafkaPythonLive,
    LiveMember,
    all_of,
    settled,
    wait,
)
from support.logs import records_of_the_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_assignors import Plan
    from kafka_assignors.embedded import EmbeddedKafka
    from kafka_assignors.lag import Lags

Python = (KafkaPythonLive, kafka_python.LagBasedAssignor)
Aio = (AttachedAiokafkaLive, aiokafka.LagBasedAssignor)
KINDS = pytest.mark.parametrize("kind", [Python, Aio], ids=["kafka-python", "aiokafka"])


@pytest.fixture
def crew(any_kafka: Kafka) -> Iterator[Crew]:
    made = Crew(any_kafka)
    yield made
    for member in made.members:
        member.leave()


@pytest.fixture
def embedded_crew(embedded_kafka: EmbeddedKafka) -> Iterator[Crew]:
    made = Crew(Kafka(embedded_kafka.bootstrap_servers, "embedded"))
    yield made
    for member in made.members:
        member.leave()


def hire(crew: Crew, kind: Any, *topics: str, options: dict[str, Any] | None = None, **config: Any) -> LiveMember:
    """A member that commits nothing, so that the lags do not change."""
    member_type, strategy = kind
    return crew.hire(
        (member_type, partial(strategy, **(options or {}))), *topics, **{"enable_auto_commit": False, **config}
    )


def plan(crew: Crew) -> Plan:
    report = crew.leader().report
    assert report is not None
    assert report.plan is not None
    return report.plan


def by_the_rule(plan: Plan, lags: Lags, **options: Any) -> dict[str, dict[str, list[int]]]:
    """The assignment of the rule for the same members, computed without a client."""
    group = Group({topic: len(each) for topic, each in lags.items()}, [Member(member, lags) for member in plan])
    return LagBasedAssignor(**options).assign(group, lags=lags).assignment


@KINDS
@pytest.mark.parametrize("reset", LAGS)
def test_every_state_of_a_partition(crew: Crew, kind: Any, reset: str) -> None:
    """The lags follow the reset rule of the consumer. With "none" the consumer fails without a commit."""
    topic, crew.group = in_every_state(crew.kafka)
    member = hire(crew, kind, topic, auto_offset_reset=reset)
    wait(lambda: bool(member.report and member.report.gained), "a share")
    assert member.report is not None
    assert member.report.plan is not None
    assert member.report.plan.lag_by_member is not None
    assert list(member.report.plan.lag_by_member.values()) == [sum(LAGS[reset])]


@pytest.mark.needs("broker")
@KINDS
def test_compacted_partitions(kind: Any, request: pytest.FixtureRequest) -> None:
    """Lag counts offsets, not records: compacted offsets count until the group's commit is past them."""
    for kafka in (
        Kafka(request.getfixturevalue("embedded_kafka").bootstrap_servers, "embedded"),
        request.getfixturevalue("start_kafka")(log_cleaner_backoff_ms=100),
    ):
        topic, end, left = compact(kafka)
        assert left == end if kafka.version == "embedded" else left < end
        crew = Crew(kafka)
        commit(kafka, crew.group, {(topic, 0): 3})
        try:
            hire(crew, kind, topic)
            crew.settle("a share", **{topic: 1})
            assert list((plan(crew).lag_by_member or {}).values()) == [end - 3]
        finally:
            for member in crew.members:
                member.leave()


@pytest.mark.parametrize("kinds", [(Python, Aio), (Aio, Python)], ids=["kafka-python leads", "aiokafka leads"])
def test_both_clients_in_one_group(crew: Crew, kinds: Any) -> None:
    topic = crew.topic(6)
    lags = {topic: [50, 4, 30, 0, 20, 9]}
    fill(crew.kafka, topic, lags[topic])
    first = hire(crew, kinds[0], topic)
    crew.settle("all for one", **{topic: 6})
    second = hire(crew, kinds[1], topic)
    crew.settle("a share for both", **{topic: 6})
    assert crew.leader() is first
    assert plan(crew).assignment == by_the_rule(plan(crew), lags)
    assert sorted((plan(crew).lag_by_member or {}).values()) == [54, 59]
    third = hire(crew, kinds[0], topic)
    crew.settle("a share for three", **{topic: 6})
    crew.leave(first)
    crew.leave(third)
    crew.settle("all for the other", **{topic: 6})
    assert crew.leader() is second
    assert list((plan(crew).lag_by_member or {}).values()) == [113]
    # Now a member of the other client leads a group of both clients.
    hire(crew, kinds[0], topic)
    crew.settle("a share for both again", **{topic: 6})
    assert crew.leader() is second
    assert plan(crew).assignment == by_the_rule(plan(crew), lags)


@KINDS
def test_options_reach_the_plan(crew: Crew, kind: Any) -> None:
    """A lag of 100 records outweighs the other partitions: equal numbers of partitions cannot balance it."""
    topics = [crew.topic(1) for _ in range(4)]
    for topic, count in zip(topics, (100, 20, 20, 20), strict=True):
        fill(crew.kafka, topic, [count])
    options = {"scope": "group", "max_skew": None, "keep": "owners", "threshold": 30}
    hire(crew, kind, *topics, options=options)
    crew.settle("all for one", **dict.fromkeys(topics, 1))
    hire(crew, kind, *topics, options=options)
    wait(settled(crew.members, all_of(**dict.fromkeys(topics, 1)), spread=2), "a share for both", crew.members)
    assert sorted((plan(crew).lag_by_member or {}).values()) == [60, 100]
    assert sorted(len(member.held) for member in crew.members) == [1, 3]
    assert plan(crew).moved == 1, "the one heavy partition"


@KINDS
def test_a_leader_that_does_not_subscribe_to_everything(crew: Crew, kind: Any) -> None:
    mine, other = crew.topic(2), crew.topic(2)
    fill(crew.kafka, mine, [3, 5])
    fill(crew.kafka, other, [7, 11])
    hire(crew, kind, mine)
    crew.settle("my share", **{mine: 2})
    hire(crew, kind, other)
    crew.settle("a share for both", **{mine: 2, other: 2})
    assert sorted((plan(crew).lag_by_member or {}).values()) == [8, 18]


@KINDS
@pytest.mark.parametrize("given", ["mapping", "function", "confluent"])
def test_lags_from_elsewhere(crew: Crew, kind: Any, given: str) -> None:
    topic = crew.topic(3)
    told = {topic: [70, 20, 30]}
    asked: list[tuple[list[str], str]] = []

    def function(topics: Iterable[str], group_id: str) -> Lags:
        asked.append((list(topics), group_id))
        return told

    fill(crew.kafka, topic, told[topic])
    settings = {"bootstrap.servers": crew.kafka.bootstrap_servers}
    source: Any = {
        "mapping": told,
        "function": function,
        "confluent": ConfluentLagSource(settings, reset="earliest", timeout=30),
    }[given]
    for what in ("all for one", "a share for both"):
        hire(crew, kind, topic, options={"lags": source})
        crew.settle(what, **{topic: 3})
    assert plan(crew).assignment == by_the_rule(plan(crew), told)
    assert sorted((plan(crew).lag_by_member or {}).values()) == [50, 70]
    assert {(tuple(topics), group) for topics, group in asked} == ({((topic,), crew.group)} if asked else set())
    assert bool(asked) == (given == "function")


def keeps_by_number(
    crew: Crew, topic: str, kind: Any, *, session_timeout_ms: int = SESSION_TIMEOUT_MS, **options: Any
) -> None:
    """Two members without lags: owned partitions stay, and new ones are balanced by number."""
    config: dict[str, Any] = {"begins_at": 0, "session_timeout_ms": session_timeout_ms}
    first = hire(crew, kind, topic, options=options, **config)
    crew.settle("all for one", **{topic: 4})
    second = hire(crew, kind, topic, options=options, **config)
    wait(settled(crew.members, all_of(**{topic: 4}), spread=4), "both in one generation", crew.members)
    assert (len(first.held), len(second.held)) == (4, 0)
    crew.kafka.grow_topic(topic, 8)
    crew.settle("a share for both", **{topic: 8})
    assert first.held == all_of(**{topic: 4})
    assert (plan(crew).moved, plan(crew).lag_by_member) == (0, None)


@KINDS
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"error": "TOPIC_AUTHORIZATION_FAILED"}, "could not be read: .*TopicAuthorizationFailed"),
        ({"delay": 60}, "could not be read: .*Time|did not answer within"),
        ({"close": "before"}, "could not be read|did not answer within"),
    ],
    ids=["refused", "hanging", "cut"],
)
def test_a_broker_that_fails_midway(
    embedded_crew: Crew,
    embedded_kafka: EmbeddedKafka,
    kind: Any,
    fault: dict[str, Any],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The committed offsets can be read, the end offsets cannot."""
    crew, times = embedded_crew, 10_000
    topic = crew.topic(4)
    # The source requests the ends of partitions with commits. Members that requested their starts would fail as well.
    commit(crew.kafka, crew.group, {(topic, number): 0 for number in range(4)})
    embedded_kafka.inject_fault("ListOffsets", times=times, **fault)
    # A refusal has to come before the deadline, on a busy machine too.
    keeps_by_number(crew, topic, kind, deadline=30 if "error" in fault else 0.5)
    messages = [record.getMessage() for record in records_of_the_package(caplog)]
    warnings = [message for message in messages if "are not known" in message]
    assert warnings
    for message in warnings:
        assert message.startswith(f"the lags of group {crew.group!r} are not known (the lag source ")
        assert message.endswith("its members keep what they own, and new partitions are balanced by number")
    if kind is Python and not has("offsets by the admin client"):
        # Before 2.1 the client repeats a refused request until the deadline.
        reason += "|did not answer within"
    assert any(re.search(reason, message) for message in warnings), warnings


@KINDS
def test_a_source_that_fails(crew: Crew, kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fails(topics: Iterable[str], group_id: str) -> Lags:
        raise RuntimeError("no idea")

    keeps_by_number(crew, crew.topic(4), kind, lags=fails)
    assert any("(the lag source failed: RuntimeError('no idea'))" in each for each in caplog.messages)


@KINDS
def test_a_source_that_is_late(crew: Crew, kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The leader plans without lags before its session expires, however long the source takes."""
    release = threading.Event()

    def late(topics: Iterable[str], group_id: str) -> Lags:
        release.wait(120)
        return {}

    try:
        # Each rebalance waits for half a session.
        keeps_by_number(crew, crew.topic(4), kind, session_timeout_ms=SHORT_SESSION_TIMEOUT_MS, lags=late, deadline=60)
    finally:
        release.set()
    assert any("(the lag source did not answer within 1.5 s)" in each for each in caplog.messages)
    assert not any(member.report and member.report.expelled for member in crew.members)


def test_a_consumer_of_aiokafka_that_was_not_attached(crew: Crew, caplog: pytest.LogCaptureFixture) -> None:
    keeps_by_number(crew, crew.topic(4), (AiokafkaLive, aiokafka.LagBasedAssignor))
    reason = "auto_offset_reset is not known; call attach(consumer), or give lags="
    assert any(reason in message for message in caplog.messages)


@KINDS
def test_reports_and_diff_listeners(embedded_crew: Crew, kind: Any) -> None:
    seen: list[Any] = []
    topic = embedded_crew.topic(3)
    fill(embedded_crew.kafka, topic, [1, 2, 3])
    member = hire(embedded_crew, kind, topic, options={"on_rebalance": seen.append, "rack": "a"})
    embedded_crew.settle("a share", **{topic: 3})
    report: Any = member.report
    assert seen[-1] is report
    assert (report.assignor, report.leader, report.faults) == ("lag", True, {})
    assert {topic: (0, 1, 2)} == report.gained
    assert report.generation is not None
    assert report.generation > 0
    assert list(report.plan.lag_by_member.values()) == [6]
    assert member.assignor.state.rack == "a"
