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
    """Notes the calls of the two callbacks of a `RebalanceDiffListener`, and the generation of each."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.events: Events = []
        self.memberships: list[Any] = []
        self.shown: set[int] = set()

    def on_partitions_gained(self, partitions: Any) -> None:
        numbers = self._note("gained", partitions)
        assert not self.shown & set(numbers)
        self.shown |= set(numbers)

    def on_partitions_given_up(self, partitions: Any) -> None:
        numbers = self._note("given up", partitions)
        assert self.shown >= set(numbers)
        self.shown -= set(numbers)

    def _note(self, kind: str, partitions: Any) -> list[int]:
        numbers = [each.partition for each in partitions]
        self.events.append((kind, numbers))
        self.memberships.append(self._holdings._membership)  # type: ignore[attr-defined]
        return numbers


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


def expect(member: Any, share: set[int], seen: int, difference: Events, rebalances: int) -> None:
    """Waits until the events add up to `share`, and asserts that those after the first `seen` are `difference`.

    There are others only after more generations than `rebalances`, and only in eager rebalancing. On a busy machine
    this happens: if a join ends between two calls of `poll`, kafka-python 3.0.12 drops the assignment and joins again.
    Another member may have had every partition in the generation without an assignment, so the listener reports all.
    """
    listener = member.difference
    wait(lambda: listener.shown == share, f"a share of {sorted(share)}", [member])
    if listener.events[seen:] != difference:
        before, now = listener.memberships[max(seen - 1, 0)], listener.memberships[-1]
        missed = now.generation - before.generation > rebalances and not member.assignor._assignor.cooperative
        assert missed or now.member_id != before.member_id, (listener.events, listener.memberships)


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_really_came_or_went_is_told(crew: Crew, kind: Any) -> None:
    topic = crew.topic(4)
    everything = {0, 1, 2, 3}
    a: Any = crew.hire(kind, topic)
    crew.settle("all for the first", **{topic: 4})
    expect(a, everything, 0, [("gained", [0, 1, 2, 3])], 0)
    seen = len(a.difference.events)
    b: Any = crew.hire(kind, topic)
    crew.settle("a share for both", **{topic: 4})
    wait(lambda: len(b.difference.shown) == 2, "the newcomer's share", [a, b])
    gone = sorted(b.difference.shown)
    expect(b, set(gone), 0, [("gained", gone)], 0)
    expect(a, everything - set(gone), seen, [("given up", gone)], 1)
    seen = len(a.difference.events)
    crew.leave(b)
    crew.settle("all for the first again", **{topic: 4})
    expect(a, everything, seen, [("gained", gone)], 1)
