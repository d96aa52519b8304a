"""Members of one group in one process. Their heartbeats alternate, and news for one member reaches all."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.member import neighbours
from kafka_assignors.member.neighbours import Neighbours
from support.broker import Kafka, unique
from support.confluent_group import Crowd, topic_of
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

# Longer than every wait of these tests.
SELDOM = {
    "heartbeat_interval_ms": 60_000,
    "session_timeout_ms": 180_000,
    "topic_metadata_refresh_interval_ms": 60_000,
}


@pytest.fixture
def crowd(any_kafka: Kafka) -> Iterator[Crowd]:
    with Crowd(any_kafka, unique("neighbours")) as crowd:
        yield crowd


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_a_member_that_rarely_asks_hears_of_a_rebalance_from_its_neighbour(crowd: Crowd, strategy: str) -> None:
    topic, partitions = topic_of(crowd, 6, 0)
    often = crowd.add(strategy).follow(topic)
    seldom = crowd.add(strategy, **SELDOM).follow(topic)
    crowd.settle(partitions, often, seldom)
    # Each generation begins with heartbeats of all members. The next ones would come after half a minute at the
    # earliest.
    quiet = time.monotonic() + 1.0
    crowd.until(lambda: time.monotonic() > quiet, "it is quiet")
    third = crowd.add(strategy, **SELDOM).follow(topic)
    crowd.settle(partitions)
    assert len(seldom.held) == len(third.held) == 2
    quiet = time.monotonic() + 1.0
    crowd.until(lambda: time.monotonic() > quiet, "it is quiet")
    crowd.leave(third)
    crowd.settle(partitions)
    assert len(seldom.held) == 3


def test_the_application_looks_up_when_a_neighbour_may_have_news(crowd: Crowd) -> None:
    """An application that waits for records wakes when the neighbour's heartbeat is due. Nothing else would wake it."""
    topic, partitions = topic_of(crowd, 2, 0)
    often = crowd.add(heartbeat_interval_ms=1_000).follow(topic)
    seldom = crowd.add(**SELDOM).follow(topic)
    crowd.settle(partitions)
    member = seldom._group.member
    assert member is not None

    def is_due() -> bool:
        now = time.monotonic()
        return member.own_news_due - now > 10 and member.news_due - now < 1

    # On a busy machine the neighbour's heartbeat may be late, and does not count meanwhile.
    crowd.until(is_due, "news come with the neighbour's heartbeat, long before the member's own")
    crowd.leave(often)
    # The only neighbour has left. The next news can only come with the member's own heartbeat.
    wait_until(lambda: member.news_due == member.own_news_due, "news come with the member's own heartbeat")


@dataclass(eq=False)
class Stub:
    """A member that keeps the generations that it receives from its neighbours."""

    heard: list[int] = field(default_factory=list)

    def hear(self, generation: int) -> None:
        self.heard.append(generation)


def config(group: str = "g", *servers: str) -> Any:
    return SimpleNamespace(group_id=group, client=SimpleNamespace(bootstrap=servers or ("b:9092",)))


def test_they_are_those_of_one_group_on_one_cluster_and_take_places_in_order() -> None:
    members: list[Any] = [Stub() for _ in range(5)]
    first, second, third = (Neighbours.of(member, config()) for member in members[:3])
    assert first is second is third
    other = Neighbours.of(members[3], config("h"))
    elsewhere = Neighbours.of(members[4], config("g", "c:9092"))
    assert [first.place(member) for member in members[:3]] == [(0, 3), (1, 3), (2, 3)]
    assert other.place(members[3]) == elsewhere.place(members[4]) == (0, 1)
    first.tell(members[1], 4)
    first.tell(members[0], 4)
    assert [member.heard for member in members] == [[4], [], [4], [], []], "by the first who hears only"
    first.leave(members[0])
    assert [first.place(member) for member in members[1:3]] == [(0, 2), (1, 2)]
    first.tell(members[2], 5)
    assert [member.heard for member in members] == [[4], [5], [4], [], []]
    for of_group, member in [(first, members[1]), (first, members[2]), (other, members[3]), (elsewhere, members[4])]:
        of_group.leave(member)
    assert not neighbours._groups.keys() & {("g", ("b:9092",)), ("h", ("b:9092",)), ("g", ("c:9092",))}
    # All members have left, so that a later group of the same name is a new one.
    again = Neighbours.of(members[0], config())
    assert again is not first
    assert again.place(members[0]) == (0, 1)
    again.leave(members[0])


def test_a_child_of_a_fork_has_neither_neighbours_nor_a_lock_that_was_held(monkeypatch: pytest.MonkeyPatch) -> None:
    stub: Any = Stub()
    lock = threading.Lock()
    lock.acquire()
    monkeypatch.setattr(neighbours, "_lock", lock)
    monkeypatch.setattr(neighbours, "_groups", {("g", ("b:9092",)): Neighbours((stub, stub))})
    neighbours._in_child()
    assert Neighbours.of(stub, config()).place(stub) == (0, 1)
