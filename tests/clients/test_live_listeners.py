"""KIP-54's clean-up listener under the clients' own coordinators, live, in every release of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.clients import aiokafka, kafka_python
from support.features import release_has
from support.live import AiokafkaLive, Crew, KafkaPythonLive, wait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.broker import Kafka

Events = list[tuple[str, list[int]]]


class Noting:
    """Notes the calls of the two callbacks of a `RebalanceDiffListener`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.events: Events = []

    def on_partitions_gained(self, partitions: Any) -> None:
        self.events.append(("gained", [each.partition for each in partitions]))

    def on_partitions_given_up(self, partitions: Any) -> None:
        self.events.append(("given up", [each.partition for each in partitions]))


class PythonListener(Noting, kafka_python.RebalanceDiffListener):
    pass


class AioListener(Noting, aiokafka.RebalanceDiffListener):
    pass


class PythonMember(KafkaPythonLive):
    def listener_around(self, listener: Any) -> Any:
        self.difference = PythonListener(listener)
        return self.difference


class AioMember(AiokafkaLive):
    def listener_around(self, listener: Any) -> Any:
        self.difference = AioListener(listener)
        return self.difference


KINDS = [
    pytest.param((PythonMember, kafka_python.StickyAssignor), id="kafka-python"),
    pytest.param(
        (PythonMember, lambda: kafka_python.CooperativeStickyAssignor()),
        id="kafka-python, cooperative",
        marks=release_has("kafka-python 3"),
    ),
    pytest.param((AioMember, aiokafka.StickyAssignor), id="aiokafka"),
]


@pytest.fixture
def crew(embedded: Kafka) -> Iterator[Crew]:
    made = Crew(embedded)
    yield made
    for member in made.members:
        member.leave()


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_really_came_or_went_is_told(crew: Crew, kind: Any) -> None:
    topic = crew.topic(4)

    def numbers(member: Any) -> list[int]:
        return sorted(number for _, number in member.held)

    a: Any = crew.hire(kind, topic)
    crew.settle("all for the first", **{topic: 4})
    wait(lambda: a.difference.events == [("gained", [0, 1, 2, 3])], "the first share", [a])
    # A cooperative rebalance that moves partitions takes two generations.
    rounds = 2 if a.assignor._assignor.cooperative else 1
    before = a.difference._holdings._membership
    b: Any = crew.hire(kind, topic)
    crew.settle("a share for both", **{topic: 4})
    gone, kept = numbers(b), numbers(a)
    wait(lambda: b.difference.events == [("gained", gone)], "the newcomer's share", [a, b])
    events = a.difference.events[1:]
    if events != [("given up", gone)]:
        # On a busy machine a member may miss a generation, in which the other one may have had everything.
        now = a.difference._holdings._membership
        assert now.member_id != before.member_id or now.generation - before.generation > rounds, events
        assert events == [("given up", [0, 1, 2, 3]), ("gained", kept)]
    seen = len(a.difference.events)
    crew.leave(b)
    crew.settle("all for the first again", **{topic: 4})
    wait(lambda: a.difference.events[seen:] == [("gained", gone)], "what came back", [a])
