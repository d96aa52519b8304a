"""A user's own assignor in a live group of the confluent consumer: a bug in it, and a change of leader."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kafka_assignors import CustomAssignor, Group, StickyAssignor, sticky_within
from kafka_assignors.member.strategies import Strategies
from support.broker import unique
from support.confluent_group import Crowd, Observed, topic_of
from support.logs import records_of_the_package

if TYPE_CHECKING:
    import pytest

    from support.broker import Kafka


class Moody(CustomAssignor):
    """Assigns every partition to the first member. Fails while `fails` is set."""

    name = "moody"
    fails = False

    def plan(self, group: Group) -> Any:
        if self.fails:
            raise ZeroDivisionError("a bug of the user's")
        return {group.members[0].id: {topic: range(group.partitions(topic)) for topic in group.topics}}


class Capped(CustomAssignor):
    """Assigns to each member at most the number of partitions in its data; members keep their partitions."""

    name = "capped"
    cooperative = True

    def __init__(self, most: int) -> None:
        self.most = most

    def member_data(self) -> bytes:
        return str(self.most).encode()

    def plan(self, group: Group) -> Any:
        return sticky_within(group, capacity=lambda member: int(member.data))


def leader_of(crowd: Crowd) -> Observed:
    (leader,) = [each for each in crowd.consumers if each.reports and each.reports[-1].leader]
    return leader


def together(crowd: Crowd) -> bool:
    """Whether the latest report of each member is of one generation, and one of them led it."""
    latest = [each.reports[-1] for each in crowd.consumers if each.reports]
    return (
        len(latest) == len(crowd.consumers)
        and len({report.generation for report in latest}) == 1
        and any(report.leader for report in latest)
    )


def held(crowd: Crowd) -> list[int]:
    return sorted(len(each.held) for each in crowd.consumers)


def test_a_bug_of_the_leaders_does_not_stop_the_group(any_kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    with Crowd(any_kafka, unique("moody")) as crowd:
        topic, _ = topic_of(crowd, 6)
        assignors = [Moody(), Moody(), Moody()]
        for assignor in assignors[:2]:
            # The assignor is given as an object, in a list for a rolling upgrade.
            crowd.add([assignor, StickyAssignor()]).follow(topic)
        crowd.until(lambda: together(crowd) and held(crowd) == [0, 6], "one member has everything")
        for assignor in assignors:
            assignor.fails = True
        crowd.add([assignors[2], "sticky"]).follow(topic)
        crowd.until(lambda: together(crowd) and held(crowd) == [2, 2, 2], "the fallback plans for three")
        report = leader_of(crowd).reports[-1]
        assert report.assignor == "moody"
        assert "ZeroDivisionError: a bug of the user's" in report.error
        errors = [each for each in records_of_the_package(caplog) if each.levelno == logging.ERROR]
        assert errors
        assert all("moody" in each.getMessage() and each.exc_info for each in errors)
        for assignor in assignors:
            assignor.fails = False
        # The group goes on with the assignor's own plan.
        crowd.leave(crowd.consumers[-1])
        crowd.until(lambda: together(crowd) and held(crowd) == [0, 6], "one member has everything again")
        assert leader_of(crowd).reports[-1].error is None


def test_a_cooperative_one_keeps_partitions_over_a_change_of_leader(any_kafka: Kafka) -> None:
    with Crowd(any_kafka, unique("capped")) as crowd:
        topic, partitions = topic_of(crowd, 8)
        for most in (4, 2, 4):
            crowd.add(Capped(most)).follow(topic)
        crowd.settle(partitions)
        crowd.until(lambda: together(crowd), "one generation")
        leader = leader_of(crowd)
        stay = [each for each in crowd.consumers if each is not leader]
        before = {each: each.held for each in stay}
        room = sum(most_of(each) for each in stay)
        crowd.leave(leader)
        crowd.until(
            lambda: together(crowd) and sum(held(crowd)) == min(8, room), "the leaver's share, as far as there is room"
        )
        assert all(before[each] <= each.held for each in stay), "who stays keeps everything"
        assert all(len(each.held) <= most_of(each) for each in stay)
        report = leader_of(crowd).reports[-1]
        assert (report.error, report.assignor) == (None, "capped")
        assert all(report.lost == {} for each in stay for report in each.reports[-1:])


def most_of(consumer: Observed) -> int:
    strategies = consumer._group.strategies
    assert isinstance(strategies, Strategies)
    (assignor,) = strategies.assignors.values()
    assert isinstance(assignor, Capped)
    return assignor.most
