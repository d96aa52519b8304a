"""Consumers of both clients in one group, on a real Kafka and on the embedded one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import OptionError
from kafka_assignors.clients import aiokafka, kafka_python
from support.features import release_has
from support.live import (
    SHORT_SESSION_TIMEOUT_MS,
    AiokafkaLive,
    Crew,
    ImpatientKafkaPythonLive,
    KafkaPythonLive,
    LiveMember,
    all_of,
    settled,
    wait,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.clients import RebalanceReport
    from support.broker import Kafka

Sticky = (KafkaPythonLive, kafka_python.StickyAssignor), (AiokafkaLive, aiokafka.StickyAssignor)
Cooperative = pytest.param(
    (KafkaPythonLive, lambda: kafka_python.CooperativeStickyAssignor()),
    marks=release_has("kafka-python 3"),
    id="cooperative",
)
KINDS = pytest.mark.parametrize(
    "kind", [pytest.param(Sticky[0], id="kafka-python"), pytest.param(Sticky[1], id="aiokafka"), Cooperative]
)


@pytest.fixture
def crew(any_kafka: Kafka) -> Iterator[Crew]:
    made = Crew(any_kafka)
    yield made
    for member in made.members:
        member.leave()


def total(partitions: Any) -> int:
    return sum(map(len, partitions.values()))


def test_both_clients_share_a_group_through_joins_leaves_and_a_kill(crew: Crew) -> None:
    topic = crew.topic(12)
    a = crew.hire(Sticky[0], topic)
    crew.settle("the first share", **{topic: 12})
    b = crew.hire(Sticky[1], topic)
    crew.settle("a share for aiokafka", **{topic: 12})
    crew.planned()
    assert a.report is not None
    assert b.report is not None
    assert (total(a.report.kept), total(a.report.lost), total(b.report.gained)) == (6, 6, 6)
    crew.hire(Sticky[0], topic)
    d = crew.hire(Sticky[1], topic, session_timeout_ms=SHORT_SESSION_TIMEOUT_MS)
    crew.settle("a share for four", **{topic: 12})
    crew.planned()
    before = {member: member.held for member in crew.members}
    crew.leave(a)
    crew.settle("the leaver's share handed over", **{topic: 12})
    crew.planned()
    assert all(before[member] <= member.held for member in crew.members), "who stays keeps everything"
    before = {member: member.held for member in crew.members}
    crew.kill(d)
    crew.settle("the dead one's share handed over", **{topic: 12})
    crew.planned()
    assert all(before[member] <= member.held for member in crew.members), "who stays keeps everything"


@KINDS
def test_a_growing_topic_moves_nothing_more_than_it_must(crew: Crew, kind: Any) -> None:
    topic = crew.topic(4)
    crew.hire(kind, topic)
    crew.settle("a share for the first", **{topic: 4})
    crew.hire(kind, topic)
    crew.settle("a share for both", **{topic: 4})
    before = {member: member.held for member in crew.members}
    crew.kafka.grow_topic(topic, 10)
    crew.settle("a share of the new partitions", **{topic: 10})
    crew.planned()
    assert all(before[member] <= member.held for member in crew.members)


@pytest.mark.parametrize(
    "strategy",
    [
        kafka_python.StickyAssignor,
        pytest.param(
            lambda: kafka_python.CooperativeStickyAssignor(), marks=release_has("kafka-python 3"), id="cooperative"
        ),
    ],
)
def test_a_growing_topic_with_polls_that_end_before_the_join(crew: Crew, strategy: Any) -> None:
    """kafka-python drops a join that new metadata caused, unless our plug-in requests the join again."""
    topic = crew.topic(4)
    crew.hire((ImpatientKafkaPythonLive, strategy), topic)
    crew.settle("a share", **{topic: 4})
    for partitions in (6, 9, 12):
        crew.kafka.grow_topic(topic, partitions)
        crew.settle("a share of the new partitions", **{topic: partitions})


@KINDS
def test_a_member_stalled_past_its_session_comes_back_without_old_claims(crew: Crew, kind: Any) -> None:
    topic = crew.topic(9)
    a, b, c = crew.hire(kind, topic), None, None
    crew.settle("a share for the first", **{topic: 9})
    b = crew.hire(kind, topic)
    c = crew.hire(kind, topic, session_timeout_ms=SHORT_SESSION_TIMEOUT_MS)
    crew.settle("a share for three", **{topic: 9})
    c.stall(SHORT_SESSION_TIMEOUT_MS / 1000 + 2)
    wait(settled([a, b], all_of(**{topic: 9})), "the stalled one's share handed over", [a, b])
    before = {member: member.held for member in (a, b)}
    generation = a.report.generation if a.report else None
    wait(lambda: c.report is not None and c.report.expelled, "the expelled one's return", crew.members)
    crew.settle("a share for three again", **{topic: 9})
    assert generation is not None
    assert a.report is not None
    assert a.report.generation is not None
    assert a.report.generation > generation
    assert all(len(member.held & before[member]) == 3 for member in (a, b)), "each gave up two and took none"
    assert crew.ledger.overlaps == []


@release_has("kafka-python 3")
def test_cooperative_members_settle_with_at_most_one_follow_up(crew: Crew) -> None:
    topic = crew.topic(12)
    reports: list[RebalanceReport] = []
    told = partial(kafka_python.CooperativeStickyAssignor, on_rebalance=reports.append)
    a = crew.hire((KafkaPythonLive, told), topic)
    crew.settle("a share for the first", **{topic: 12})
    kept = a.held
    b = crew.hire((KafkaPythonLive, kafka_python.CooperativeStickyAssignor), topic)
    crew.settle("a share for both", **{topic: 12})
    # The client itself may join once more, when it has read the metadata again.
    follow_ups = [report for report in reports if "partitions-revoked" in report.causes]
    assert len(follow_ups) == 1, "one rebalance to revoke, one to hand out"
    assert a.held < kept
    assert a.rebalances == 1, "it was never without what it kept, and so never given it again"
    crew.leave(b)
    crew.settle("everything back", **{topic: 12})


def test_members_with_different_subscriptions(crew: Crew) -> None:
    small, large = crew.topic(2), crew.topic(10)
    crew.hire(Sticky[0], small, large)
    crew.settle("all for one", **{small: 2, large: 10})
    b = crew.hire(Sticky[1], large)
    crew.settle("an even split", **{small: 2, large: 10})
    crew.planned()
    b.subscribe([small])
    wait(
        settled(crew.members, all_of(**{small: 2, large: 10}), spread=8),
        "what the changed subscription leaves",
        crew.members,
    )
    wait(lambda: {topic for topic, _ in b.held} == {small}, "the changed subscription", crew.members)
    crew.planned()


@pytest.mark.parametrize("kind", Sticky, ids=["kafka-python", "aiokafka"])
def test_one_instance_in_two_consumers_fails_the_second_only(crew: Crew, kind: Any) -> None:
    topic = crew.topic(4)
    shared = kind[1]()
    a = crew.hire((kind[0], lambda: shared), topic)
    crew.settle("a share", **{topic: 4})
    b = crew.hire((kind[0], lambda: shared), topic)
    crew.members.remove(b)
    wait(lambda: b.failure is not None, "the second consumer's refusal")
    assert "was given to two consumers" in str(b.failure)
    b.leave()
    wait(settled([a], all_of(**{topic: 4})), "the first consumer's share")
    assert a.failure is None


def test_reports_reach_a_callback(crew: Crew) -> None:
    topic = crew.topic(4)
    seen: list[Any] = []
    a = crew.hire((AiokafkaLive, partial(aiokafka.StickyAssignor, on_rebalance=seen.append)), topic)
    crew.settle("a share", **{topic: 4})
    assert seen[-1:] == [a.report]
    assert seen[-1].leader
    assert seen[-1].record_bytes > 0


Join = (KafkaPythonLive, kafka_python.StickyStreamJoinAssignor), (AiokafkaLive, aiokafka.StickyStreamJoinAssignor)
CooperativeJoin = (KafkaPythonLive, partial(kafka_python.StickyStreamJoinAssignor, protocol="cooperative"))


def by_topic(member: LiveMember, topic: str) -> set[int]:
    return {number for name, number in member.held if name == topic}


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(Join, id="both clients, eager"),
        pytest.param(
            (CooperativeJoin, CooperativeJoin), marks=release_has("kafka-python 3"), id="kafka-python, cooperative"
        ),
    ],
)
def test_a_stream_join_keeps_numbers_together_and_in_place(
    crew: Crew, kinds: Any, caplog: pytest.LogCaptureFixture
) -> None:
    left, right = crew.topic(6), crew.topic(8)
    joined = all_of(**{left: 6, right: 6})

    def settle(what: str) -> None:
        wait(settled(crew.members, joined, spread=2), what, crew.members)
        assert crew.ledger.overlaps == []
        assert all(by_topic(member, left) == by_topic(member, right) for member in crew.members)

    for kind in (kinds[0], kinds[1], kinds[0]):
        before = [(member, member.held) for member in crew.members]
        crew.hire(kind, left, right)
        settle(f"a share for {len(crew.members)}")
        assert all(member.held <= held for member, held in before), "who was there only gave"
    before = [(member, member.held) for member in crew.members[1:]]
    crew.leave(crew.members[0])
    settle("the leaver's share handed over")
    assert all(held <= member.held for member, held in before), "who stays keeps everything"
    report = crew.leader().report
    assert report is not None
    assert report.plan is not None
    assert [(topic, number) for topic, number, _ in report.plan.unassigned] == [(right, 6), (right, 7)]
    assert any(f"{right} 6-7: its number is beyond" in record.getMessage() for record in caplog.records)


@release_has("kafka-python 3")
def test_eager_and_cooperative_stream_joins_do_not_mix(crew: Crew) -> None:
    topic = crew.topic(4)
    crew.hire(Join[0], topic)
    crew.settle("a share", **{topic: 4})
    other = crew.hire(CooperativeJoin, topic)
    crew.members.remove(other)
    wait(lambda: other.failure is not None, "the broker's refusal")
    assert "InconsistentGroupProtocol" in repr(other.failure)
    other.leave()


def test_aiokafka_has_no_cooperative_stream_join() -> None:
    with pytest.raises(OptionError, match="which aiokafka does not know; give one of 'eager'"):
        aiokafka.StickyStreamJoinAssignor(protocol="cooperative")
