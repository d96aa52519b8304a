"""KIP-54's clean-up listener, called by the clients' own coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from aiokafka import ConsumerRebalanceListener as AioListener
from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kafka.errors import KafkaError

import kafka_assignors
from kafka_assignors.clients import aiokafka, kafka_python
from support.commanded import until
from support.commanded_members import AiokafkaMember, Group, KafkaPythonMember, Stage

Events = list[tuple[str, list[int]]]
EVERYTHING = [0, 1, 2, 3]


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

    def told(self, *expected: tuple[str, list[Any]]) -> None:
        """Waits for these calls, and removes them. The client makes them after the consumer has its assignment."""
        until(lambda: len(self.events) >= len(expected), f"the calls {expected}")
        assert self.events == list(expected)
        self.events.clear()


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
    with Stage() as stage:

        def make(name: str, *arguments: Any) -> Any:
            own = listener(*arguments)
            member = stage.add(kind, name, [strategy()], {"t": 4}, listener=own)
            member.listener = own
            return member

        yield make


def is_cooperative(member: Any) -> bool:
    return isinstance(member.assignor, kafka_python.CooperativeStickyAssignor)


def settle(group: Group, *members: Any) -> None:
    """The rebalances that the clients request: two if partitions move cooperatively."""
    before = {member: member.held() for member in members}
    group.rebalance(*members)
    for member in members:
        if is_cooperative(member) and before[member] - member.held():
            until(partial(getattr, member, "is_joining"), "it joins again, since it has given something up")
            group.rebalance(*members)
            return


def test_only_what_really_went_is_given_up(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    settle(group, a)
    a.listener.told(("gained", [0, 1, 2, 3]))
    settle(group, a, b)
    gone = sorted(number for _, number in b.held())
    assert len(gone) == 2
    a.listener.told(("given up", gone))
    b.listener.told(("gained", gone))
    # A rebalance without changes leads to no call.
    settle(group, a, b)
    b.close()
    settle(group, a)
    a.listener.told(("gained", gone))


def test_what_was_lost_with_the_membership_is_given_up_at_once(build: Build) -> None:
    a, group = build("a"), Group()
    settle(group, a)
    a.listener.told(("gained", EVERYTHING))
    a.expel()
    a.listener.told(("given up", EVERYTHING))
    assert a.listener.held == []
    settle(group, a)
    a.listener.told(("gained", EVERYTHING))


def test_a_missed_generation_keeps_nothing(build: Build) -> None:
    """The client joined but did not sync, and joined again: another member may have owned the partitions."""
    a, group = build("a"), Group()
    settle(group, a)
    a.listener.told(("gained", EVERYTHING))
    group.generation += 1
    settle(group, a)
    if not is_cooperative(a):
        a.listener.told(("given up", EVERYTHING), ("gained", EVERYTHING))
    settle(group, a)
    a.listener.told()


def test_a_failing_callback_leaves_the_books_right(build: Build) -> None:
    a, b, group = build("a"), build("b"), Group()
    settle(group, a)
    a.listener.told(("gained", EVERYTHING))
    a.listener.fail = True
    settle(group, a, b)
    gone = sorted(number for _, number in b.held())
    a.listener.told(("given up", gone))
    if isinstance(a, KafkaPythonMember):
        until(lambda: a.errors, "the client raises it")
        assert {type(each) for each in a.errors} == {KafkaError}
    a.listener.fail = False
    settle(group, a, b)
    assert numbers(a.listener.held) == sorted(number for _, number in a.held())
    a.listener.told()


def test_after_the_end_close_gives_up_the_rest(build: Build) -> None:
    import asyncio

    a, group = build("a"), Group()
    settle(group, a)
    a.listener.told(("gained", EVERYTHING))
    for _ in range(2):
        closing = a.listener.close()
        if closing is not None:
            asyncio.run(closing)
    a.listener.told(("given up", EVERYTHING))


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
    kept, gone = (sorted(number for _, number in member.held()) for member in (a, b))
    if is_cooperative(a):
        theirs.told(("assigned", EVERYTHING), ("revoked", gone))
    else:
        theirs.told(("revoked", []), ("assigned", EVERYTHING), ("revoked", EVERYTHING), ("assigned", kept))
    a.expel()
    theirs.told(("revoked" if isinstance(a, AiokafkaMember) else "lost", kept))


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
    listener.told(("gained", [1]), ("gained", [0]), ("given up", [1]))
    assert listener.held == [TopicPartition("t", 0)]
