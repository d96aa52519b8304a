"""KIP-54's clean-up listener, called by the clients' own coordinators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import ConsumerRebalanceListener as AioListener
from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kafka.errors import KafkaError

import kafka_assignors
from kafka_assignors.clients import aiokafka, kafka_python
from support.offline import AiokafkaMember, Group, KafkaPythonMember

Events = list[tuple[str, list[int]]]


def numbers(partitions: Any) -> list[int]:
    return sorted(each.partition for each in partitions)


class Recorder:
    """Keeps the calls of a listener."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.events: Events = []
        self.fail = False

    def _note(self, what: str, partitions: Any) -> None:
        self.events.append((what, [each.partition for each in partitions]))
        if self.fail:
            raise RuntimeError(what)

    def told(self) -> Events:
        events, self.events = self.events, []
        return events


class Sync(Recorder, kafka_python.RebalanceDiffListener):
    def on_partitions_gained(self, partitions: Any) -> None:
        self._note("gained", partitions)

    def on_partitions_given_up(self, partitions: Any) -> None:
        self._note("given up", partitions)


class Async(Recorder, kafka_python.AsyncRebalanceDiffListener):
    async def on_partitions_gained(self, partitions: Any) -> None:
        self._note("gained", partitions)

    async def on_partitions_given_up(self, partitions: Any) -> None:
        self._note("given up", partitions)


class Aio(Recorder, aiokafka.RebalanceDiffListener):
    async def on_partitions_gained(self, partitions: Any) -> None:
        self._note("gained", partitions)

    def on_partitions_given_up(self, partitions: Any) -> None:
        self._note("given up", partitions)


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "kafka-python": (KafkaPythonMember, kafka_python.StickyAssignor, Sync),
    "kafka-python async": (KafkaPythonMember, kafka_python.StickyAssignor, Async),
    "kafka-python cooperative": (KafkaPythonMember, kafka_python.CooperativeStickyAssignor, Sync),
    "kafka-python cooperative async": (KafkaPythonMember, kafka_python.CooperativeStickyAssignor, Async),
    "aiokafka": (AiokafkaMember, aiokafka.StickyAssignor, Aio),
}
Build = Callable[..., Any]


@pytest.fixture(params=KINDS)
def build(request: pytest.FixtureRequest) -> Iterator[Build]:
    kind, strategy, listener = KINDS[request.param]
    built: list[Any] = []

    def make(name: str, *arguments: Any) -> Any:
        built.append(kind(name, [strategy()], {"t": 4}, listener=listener(*arguments)))
        built[-1].listener = built[-1].consumer._subscription.__dict__.get("rebalance_listener") or listener
        built[-1].listener = _listener_of(built[-1])
        return built[-1]

    yield make
    for each in built:
        each.close()


def _listener_of(member: Any) -> Any:
    state = member.consumer._subscription
    return getattr(state, "rebalance_listener", None) or state.listener


def settle(group: Group, *members: Any) -> None:
    """The rebalances that the clients request: two if partitions move cooperatively."""
    for _ in range(3):
        group.rebalance(*members)
        if not any(getattr(member, "wants_another", bool)() for member in members):
            return
    raise AssertionError("no end of rebalances")


def test_only_what_really_went_is_given_up(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    settle(group, a)
    assert a.listener.told() == [("gained", [0, 1, 2, 3])]
    settle(group, a, b)
    kept = numbers(a.listener.held)
    gone = sorted({0, 1, 2, 3} - set(kept))
    assert len(kept) == 2
    assert a.listener.told() == [("given up", gone)]
    assert b.listener.told() == [("gained", gone)]
    settle(group, a, b)
    assert a.listener.told() == b.listener.told() == []
    settle(group, a)
    assert a.listener.told() == [("gained", gone)]


def test_what_was_lost_with_the_membership_is_given_up_at_once(build: Build) -> None:
    a, group = build("a"), Group()
    settle(group, a)
    a.listener.told()
    a.expel()
    a.metadata()
    assert a.listener.told() == [("given up", [0, 1, 2, 3])]
    assert a.listener.held == []
    settle(group, a)
    assert a.listener.told() == [("gained", [0, 1, 2, 3])]


def test_a_missed_generation_keeps_nothing(build: Build) -> None:
    """The client joined but did not sync, and joined again: another member may have owned the partitions."""
    a, group = build("a"), Group()
    settle(group, a)
    a.listener.told()
    group.generation += 1
    settle(group, a)
    cooperative = isinstance(a.assignor, kafka_python.CooperativeStickyAssignor)
    everything = [0, 1, 2, 3]
    assert a.listener.told() == ([] if cooperative else [("given up", everything), ("gained", everything)])


def test_a_failing_callback_leaves_the_books_right(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    settle(group, a)
    a.listener.told()
    a.listener.fail = True
    reaches_the_caller = isinstance(a, KafkaPythonMember)
    with pytest.raises(KafkaError) if reaches_the_caller else contextlib.nullcontext():
        settle(group, a, b)
    a.coordinator.rejoining = False
    a.listener.fail = False
    settle(group, a, b)
    assert numbers(a.listener.held) == sorted(number for _, number in a.held())
    assert [what for what, _ in a.listener.told()] == ["given up"]


def test_after_the_end_close_gives_up_the_rest(build: Build) -> None:
    import asyncio

    a, group = build("a"), Group()
    settle(group, a)
    a.listener.told()
    for _ in range(2):
        closing = a.listener.close()
        if closing is not None:
            asyncio.run(closing)
    assert a.listener.told() == [("given up", [0, 1, 2, 3])]


class Theirs(Recorder, ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_revoked(self, revoked: Any) -> None:
        self._note("revoked", sorted(revoked))

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._note("assigned", sorted(assigned))

    def on_partitions_lost(self, lost: Any) -> None:
        self._note("lost", sorted(lost))


class TheirsAsync(Recorder, AsyncConsumerRebalanceListener):  # type: ignore[misc]
    async def on_partitions_revoked(self, revoked: Any) -> None:
        self._note("revoked", sorted(revoked))

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self._note("assigned", sorted(assigned))


def test_an_ordinary_listener_inside_is_told_everything(build: Build) -> None:
    theirs = Theirs()
    a, b, group = build("a", theirs), build("b"), Group()
    settle(group, a)
    settle(group, a, b)
    if isinstance(a.assignor, kafka_python.CooperativeStickyAssignor):
        gone = sorted({0, 1, 2, 3} - set(numbers(a.listener.held)))
        assert theirs.told() == [("assigned", [0, 1, 2, 3]), ("revoked", gone)]
    else:
        assert theirs.told() == [
            ("revoked", []),
            ("assigned", [0, 1, 2, 3]),
            ("revoked", [0, 1, 2, 3]),
            ("assigned", numbers(a.listener.held)),
        ]
    a.expel()
    a.metadata()
    (last,) = theirs.told()
    assert last[0] == ("revoked" if isinstance(a, AiokafkaMember) else "lost")


def test_the_listeners_are_the_clients_own_kind() -> None:
    assert isinstance(kafka_python.RebalanceDiffListener(), ConsumerRebalanceListener)
    assert isinstance(kafka_python.AsyncRebalanceDiffListener(TheirsAsync()), AsyncConsumerRebalanceListener)
    assert isinstance(aiokafka.RebalanceDiffListener(), AioListener)


def test_callbacks_that_nobody_would_await_are_refused() -> None:
    class Wrong(kafka_python.RebalanceDiffListener):
        async def on_partitions_gained(self, partitions: Any) -> None: ...

    with pytest.raises(kafka_assignors.OptionError, match="derive it from AsyncRebalanceDiffListener"):
        Wrong()
    with pytest.raises(kafka_assignors.OptionError, match="asynchronous"):
        kafka_python.RebalanceDiffListener(TheirsAsync())


def test_the_mode_can_be_said_where_it_cannot_be_seen() -> None:
    from kafka import TopicPartition

    listener = Sync(cooperative=True)
    listener.on_partitions_assigned({TopicPartition("t", 1)})
    listener.on_partitions_assigned({TopicPartition("t", 0)})
    listener.on_partitions_revoked({TopicPartition("t", 1)})
    assert listener.told() == [("gained", [1]), ("gained", [0]), ("given up", [1])]
    assert listener.held == [TopicPartition("t", 0)]
