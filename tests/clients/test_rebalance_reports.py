"""Rebalances of members with a plug-in, on the embedded Kafka: the report, the callback and the log."""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.clients import RebalanceReport, aiokafka, kafka_python
from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka
from support.features import release_has
from support.live import AiokafkaLive, Crew, KafkaPythonLive, LiveMember, wait
from support.logs import records_of_the_package
from support.raw_group import MEMBER_ID_REQUIRED, RawMember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS: list[Any] = [
    pytest.param((KafkaPythonLive, lambda **options: kafka_python.StickyAssignor(**options)), id="kafka-python"),
    pytest.param(
        (KafkaPythonLive, lambda **options: kafka_python.CooperativeStickyAssignor(**options)),
        id="kafka-python cooperative",
        marks=release_has("kafka-python 3"),
    ),
    pytest.param((AiokafkaLive, lambda **options: aiokafka.StickyAssignor(**options)), id="aiokafka"),
]
TIME = pytest.mark.needs("time")


class Reporting:
    """A group with one topic of four partitions, and the reports of each member."""

    def __init__(self, kafka: Kafka, kind: Any) -> None:
        self.crew = Crew(kafka)
        self.topic = self.crew.topic(4)
        self._kind = kind
        self.reports: dict[LiveMember, list[RebalanceReport]] = {}

    def hire(self, callback: Callable[[RebalanceReport], object] | None = None) -> LiveMember:
        """Adds a member, and waits until the group has settled."""
        seen: list[RebalanceReport] = []

        def note(report: RebalanceReport) -> None:
            seen.append(report)
            if callback is not None:
                callback(report)

        member_type, strategy = self._kind
        member = self.crew.hire((member_type, partial(strategy, on_rebalance=note)), self.topic)
        self.reports[member] = seen
        self.crew.settle("a share for everybody", **{self.topic: 4})
        return member

    @property
    def is_cooperative(self) -> bool:
        name: str = self.crew.members[0].assignor.name
        return name.startswith("cooperative")


@pytest.fixture(params=KINDS)
def group(request: pytest.FixtureRequest, embedded: Kafka) -> Iterator[Reporting]:
    made = Reporting(embedded, request.param)
    yield made
    for member in made.crew.members:
        member.leave()


def test_every_member_reports_its_share_and_the_leader_the_plan(group: Reporting) -> None:
    a = group.hire()
    # A client may join once more as soon as it has the topic's metadata.
    report = next(each for each in group.reports[a] if each.gained)
    assert (report.gained, report.lost, report.kept) == ({group.topic: (0, 1, 2, 3)}, {}, {})
    assert (report.leader, report.moved, report.least_moves, report.balance_score) == (True, 0, 0, 0)
    b = group.hire()
    ours = next(each for each in group.reports[a] if each.lost)
    (theirs,) = [each for each in group.reports[b] if each.generation == ours.generation]
    assert sum(map(len, ours.kept.values())) == sum(map(len, ours.lost.values())) == 2
    assert (ours.moved, ours.least_moves) == (2, 2)
    assert ours.planning_seconds is not None
    assert ours.planning_seconds > 0
    assert ours.record_bytes is not None
    assert ours.record_bytes > 100
    assert (theirs.leader, theirs.moved, theirs.least_moves, theirs.balance_score) == (False, None, None, None)
    assert (theirs.planning_seconds, theirs.record_bytes) == (None, None)
    assert {ours.assignor, theirs.assignor} == {a.assignor.name}
    # A plug-in measures a rebalance from the client's call of `metadata` on. The leader also reports the causes.
    assert {ours.group_id, theirs.group_id} == {group.crew.group}
    assert (ours.causes, theirs.causes[0]) == (("member-joined",), "member-joined")
    assert ours.seconds is not None
    assert ours.seconds > 0
    assert ours.without_partitions is not None
    stayed = {*ours.without_owner[group.topic].values()}
    if group.is_cooperative:
        assert (ours.without_partitions, stayed) == (0.0, {0.0})
    else:
        assert ours.without_partitions == pytest.approx(ours.seconds, abs=1e-3)
        assert stayed == {ours.without_partitions}
        # A follower's client does not show when JoinGroup was answered.
        assert dict(theirs.without_owner) == {}
    if group.is_cooperative:
        # The second rebalance assigns the partitions that the first one revoked.
        assert sum(map(len, theirs.gained.values())) == 0
        assert [sum(map(len, each.gained.values())) for each in group.reports[b] if each.gained] == [2]


def test_a_follower_leads_when_the_leader_has_gone(group: Reporting) -> None:
    a, b = group.hire(), group.hire()
    assert [group.crew.leader(), group.reports[b][-1].leader] == [a, False]
    group.crew.leave(a)
    group.crew.settle("all for the one that is left", **{group.topic: 4})
    assert group.reports[b][-1].leader


def test_members_that_cannot_be_read_are_reported(group: Reporting, caplog: pytest.LogCaptureFixture) -> None:
    a = group.hire()
    name = group.topic.encode()
    if group.is_cooperative:
        # Cooperative user data contain only the generation. Broken bytes there are no fault.
        return
    topics = len(name).to_bytes(2, "big") + name
    broken = bytes.fromhex("000000000001") + topics + bytes.fromhex("00000005") + b"\xff\xff\xff\xff\x00"
    stranger = RawMember(group.crew.kafka.bootstrap_servers, group.crew.group, "broken", a.assignor.name)
    try:
        with caplog.at_level(logging.INFO, "kafka_assignors"):
            joined = None
            while joined is None or joined.error == MEMBER_ID_REQUIRED:
                stranger.send_join(broken)
                joined = stranger.receive_join()
            stranger.send_sync({})
            stranger.receive_sync()
            wait(lambda: any(each.faults for each in group.reports[a]), "the leader's report", [a])
        faults = next(each.faults for each in group.reports[a] if each.faults)
        assert list(faults) == [stranger.member_id]
        assert any(each.levelno == logging.WARNING for each in records_of_the_package(caplog))
    finally:
        stranger.close()


def test_reports_are_frozen(group: Reporting) -> None:
    report = group.reports[group.hire()][-1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.generation = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        report.gained[group.topic] = ()  # type: ignore[index]


def test_the_callback_is_called_and_cannot_do_harm(group: Reporting, caplog: pytest.LogCaptureFixture) -> None:
    def callback(report: RebalanceReport) -> None:
        raise RuntimeError("a bug of the user's")

    a = group.hire(callback)
    group.hire()
    seen = group.reports[a]
    assert len(seen) >= 2

    def errors() -> list[logging.LogRecord]:
        return [record for record in records_of_the_package(caplog) if record.levelno == logging.ERROR]

    # The client's thread logs the error after the callback has noted the report, and a cooperative group may
    # rebalance once more.
    wait(lambda: len(errors()) == len(seen) and seen[-1] is a.report, "an error for each report", [a])
    assert all("on_rebalance" in record.getMessage() and record.exc_info for record in errors())


def test_one_line_of_log_with_fields(group: Reporting, caplog: pytest.LogCaptureFixture) -> None:
    group.hire()
    with caplog.at_level(logging.INFO, "kafka_assignors"):
        group.hire()
    lines = records_of_the_package(caplog)
    (leader,) = [each for each in lines if each.__dict__.get("moved") == 2]
    told: dict[str, Any] = leader.__dict__
    generation = told["generation"]
    (follower,) = [each for each in lines if each.__dict__.get("generation") == generation and each is not leader]
    assert (told["kept"], told["lost"], told["moved"], told["members"]) == (2, 2, 2, 2)
    assert (told["balance_score"], told["leader"], told["faults"]) == (2 if group.is_cooperative else 0, True, {})
    assert f"generation={generation}" in leader.getMessage()
    assert "\n" not in leader.getMessage()
    assert not hasattr(follower, "moved")


@pytest.mark.parametrize(
    "kind", [KINDS[0], *(pytest.param(*kind.values, id=kind.id, marks=[*kind.marks, TIME]) for kind in KINDS[1:])]
)
def test_a_group_near_the_record_limit_is_told_in_the_log(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Only in the log: a warning would fail the rebalance under the `-W error` of these tests."""
    # The record has the names of the topics twice, in the subscription and in the assignment.
    topics = {f"{'t' * 240}{number:04}": 1 for number in range(2_080)}
    with EmbeddedKafka(topics=topics) as kafka:
        crew = Crew(Kafka(kafka.bootstrap_servers, "embedded"))
        member = crew.hire(kind, *topics, begins_at=0)
        try:
            wait(
                lambda: member.report is not None and (member.report.record_bytes or 0) > 1_000_000,
                "a report of a large record",
                [member],
            )
        finally:
            member.leave()
    assert any(
        "max.message.bytes" in each.getMessage() and each.levelno == logging.WARNING
        for each in records_of_the_package(caplog)
    )


def test_no_logging_is_set_up() -> None:
    assert logging.getLogger("kafka_assignors").handlers == []
    assert logging.getLogger("kafka_assignors").level == logging.NOTSET
