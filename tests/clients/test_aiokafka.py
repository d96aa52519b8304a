"""The plug-in for aiokafka. aiokafka's own coordinator calls it."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.errors import KafkaError
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

import kafka_assignors
from kafka_assignors.clients import aiokafka
from kafka_assignors.clients.aiokafka import StickyAssignor
from support.commanded import until
from support.commanded_members import AiokafkaMember, Group, Stage

Build = Callable[..., AiokafkaMember]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


@pytest.fixture
def member(stage: Stage) -> Build:
    def build(name: str, strategy: Any = None, topics: dict[str, int] | None = None, **more: Any) -> Any:
        strategies = [StickyAssignor() if strategy is None else strategy]
        return stage.add(AiokafkaMember, name, strategies, {"t": 4} if topics is None else topics, **more)

    return build


def history(metadata: bytes) -> tuple[int, int] | None:
    """The number of claimed partitions of the only topic "t", and the generation. None without a history."""
    data = ConsumerProtocolSubscription.decode(metadata).user_data
    if not data:
        return None
    topics, length, name, count = struct.unpack_from(">ih1si", data)
    assert (topics, length, name) == (1, 1, b"t")
    return count, struct.unpack_from(">i", data, 11 + 4 * count)[0]


def test_it_is_not_a_class_for_all(member: Build) -> None:
    """aiokafka #1175: its own assignor keeps state on the class, so that all consumers of a process share one claim."""
    a, b, group = member("a"), member("b"), Group()
    group.rebalance(a)
    assert history(b.metadata()) is None
    assert history(a.metadata()) == (4, 1)


@pytest.mark.parametrize("attach", [False, True])
def test_it_knows_its_generation(member: Build, attach: bool) -> None:
    """aiokafka #1176: its own assignor always claims with the generation -1."""
    a, b, group = member("a", attach=attach), member("b", attach=attach), Group(generation=40)
    group.rebalance(a)
    assert history(a.metadata()) == (4, 41)
    group.rebalance(a, b)
    assert history(a.metadata()) == history(b.metadata()) == (2, 42)


def test_the_leaders_user_data_tells_the_generation_where_nothing_else_does(
    member: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, group = member("a"), member("b"), Group(generation=40)
    group.rebalance(a)
    monkeypatch.setattr("kafka_assignors.clients.aiokafka._internals._COORDINATORS", ())
    group.rebalance(a, b)
    assert history(b.metadata()) == (2, 42)
    group.rebalance(b, a)
    assert history(a.metadata()) == history(b.metadata()) == (2, 43)


def test_the_consumer_it_was_attached_to_tells_the_generation(member: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_assignors.clients.aiokafka._internals._REBALANCES", ())
    monkeypatch.setattr("kafka_assignors.clients.common.adapter._FRAMES", 0)
    a, group = member("a", attach=True), Group(generation=40)
    group.rebalance(a)
    assert history(a.metadata()) == (4, 41)
    a.expel()
    assert history(a.metadata()) is None


@pytest.mark.parametrize("first", [True, False])
def test_a_version_that_tells_the_generation_is_heard(first: bool) -> None:
    """aiokafka's pull request #1185. The order of its two calls is not decided, so both orders are tested."""
    assignor = StickyAssignor()
    share = ConsumerProtocolMemberAssignment(3, [("t", [0, 1])], None)
    for generation in (5, 6):
        if first:
            assignor.on_generation_assignment(generation)
        assignor.on_assignment(share)
        if not first:
            assignor.on_generation_assignment(generation)
        assert history(assignor.metadata(["t"])) == (2, generation)


@pytest.mark.parametrize("attach", [False, True])
def test_one_instance_in_two_consumers_is_refused(member: Build, attach: bool) -> None:
    shared, group = StickyAssignor(), Group()
    a = member("a", shared, attach=attach)
    group.rebalance(a)
    b = member("b", shared)
    with pytest.raises(KafkaError, match=r"StateError.*one .*StickyAssignor instance was given to two consumers"):
        b.metadata()
    with pytest.raises(kafka_assignors.StateError, match="two consumers"):
        shared.attach(b.consumer)
    group.rebalance(a)
    assert history(a.metadata()) == (4, 2)


def test_attaching_to_two_consumers_is_refused_before_they_start() -> None:
    async def main() -> None:
        shared = StickyAssignor()
        first = aiokafka.consumer("t", assignor=shared, group_id="g")
        try:
            with pytest.raises(kafka_assignors.StateError, match="two consumers"):
                shared.attach(second := AIOKafkaConsumer("t", group_id="g"))
        finally:
            await first.stop()
            await second.stop()
        shared.attach(third := AIOKafkaConsumer("t", group_id="g"))
        await third.stop()

    asyncio.run(main())


def test_an_instance_may_follow_its_stopped_consumer_but_not_with_its_memory(member: Build) -> None:
    instance = StickyAssignor()
    first = member("a", instance)
    Group(generation=4).rebalance(first)
    first.close()
    assert history(member("b", instance).metadata()) is None


def test_an_expelled_member_repeats_no_claim(member: Build) -> None:
    a, group = member("a"), Group()
    group.rebalance(a)
    a.expel()
    assert history(a.metadata()) is None
    group.rebalance(a)
    report = a.assignor.last_report
    assert report.expelled
    assert report.gained == report.lost == {"t": (0, 1, 2, 3)}


def test_members_of_newer_versions_keep_their_history_under_an_aiokafka_leader(member: Build) -> None:
    """aiokafka's leader reads the fields of version 0 only. The history is in one of them, the user data."""
    a, group = member("a"), Group(generation=8)
    holding = struct.pack(">ih1siiii", 1, 1, b"t", 2, 1, 3, 8)
    java = ConsumerProtocolSubscription(
        version=3, topics=["t"], user_data=holding, owned_partitions=[], generation_id=8, rack_id="r"
    ).encode()
    assigned = group.rebalance(a, others=[("b", None, java)])
    assert [p for _, p in ConsumerProtocolMemberAssignment.decode(assigned["b"]).partitions()] == [1, 3]


def test_topics_without_metadata_count_as_missing(member: Build, stage: Stage) -> None:
    a, group = member("a", topics={"t": 2}, metadata_max_age_ms=100), Group()
    group.rebalance(a)
    assert a.held() == {("t", 0), ("t", 1)}
    stage.kafka.delete_topic("t")
    until(lambda: group.rebalance(a) and a.held() == set(), "the client has heard of it")


def test_what_it_sends_is_readable_for_aiokafka_and_java(member: Build) -> None:
    a = member("a", StickyAssignor(rack="r"))
    metadata = a.metadata()
    assert ConsumerProtocolMemberMetadata.decode(metadata).subscription == ["t"]
    assert ConsumerProtocolSubscription.decode(metadata).rack_id == "r"


def test_a_second_strategy_is_warned_about(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    built = stage.add(AiokafkaMember, "a", [StickyAssignor(), StickyAssignor()], {"t": 1})
    with caplog.at_level(logging.WARNING, "kafka_assignors"):
        built.metadata()
    assert "list one strategy only" in caplog.text


def test_the_consumer_helper_passes_the_rack_on() -> None:
    async def main() -> None:
        built = aiokafka.consumer("t", group_id="g", client_rack="r")
        (assignor,) = built._partition_assignment_strategy
        assert assignor.state.rack == "r"
        await built.stop()

    asyncio.run(main())


def test_the_assignor_keeps_no_consumer_alive() -> None:
    import gc
    import weakref

    async def main() -> None:
        assignor = StickyAssignor()
        built = aiokafka.consumer("t", assignor=assignor, group_id="g")
        await built.stop()
        gone = weakref.ref(built)
        del built
        gc.collect()
        assert gone() is None

    asyncio.run(main())


def test_aiokafka_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "aiokafka", None)
    monkeypatch.delitem(sys.modules, "kafka_assignors.clients.aiokafka")
    with pytest.raises(kafka_assignors.MissingDependencyError, match=r"pip install kafka-assignors\[aiokafka\]"):
        importlib.import_module("kafka_assignors.clients.aiokafka")
