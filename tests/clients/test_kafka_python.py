"""The plug-ins for kafka-python. kafka-python's own coordinator calls them."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.structs import OffsetAndMetadata

import kafka_assignors
from kafka_assignors.clients import kafka_python
from kafka_assignors.clients.kafka_python import StickyAssignor
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.userdata import Assignment, Subscription
from support.commanded import until
from support.commanded_members import Group, Joined, KafkaPythonMember, Stage
from support.features import has, release_has

Build = Callable[..., KafkaPythonMember]


def cooperative() -> Any:
    """A plug-in that kafka-python 2 does not have. A function, so that tests can name it on that release, too."""
    return kafka_python.CooperativeStickyAssignor()


VERSION_3 = release_has("kafka-python 3")
EACH = pytest.mark.parametrize(
    "strategy", [StickyAssignor, pytest.param(cooperative, id="cooperative", marks=VERSION_3)]
)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


@pytest.fixture
def member(stage: Stage) -> Build:
    def build(name: str, strategy: Any = StickyAssignor, topics: dict[str, int] | None = None, **more: Any) -> Any:
        # Version 3 makes instances of classes and factories; older versions accept instances only.
        given = strategy if has("kafka-python 3") or isinstance(strategy, StickyAssignor) else strategy()
        return stage.add(KafkaPythonMember, name, [given], {"t": 4} if topics is None else topics, **more)

    return build


def subscription(metadata: bytes) -> Subscription:
    return Subscription.decode(metadata)


def owned(metadata: bytes) -> dict[str, list[int]]:
    return {topic: list(numbers) for topic, numbers in subscription(metadata).owned.items()}


def given(assigned: dict[str, bytes], name: str) -> list[int]:
    """The partitions of the topic "t" that a leader gave to a member."""
    return list(Assignment.decode(assigned[name]).partitions.get("t", ()))


def history(metadata: bytes) -> tuple[dict[str, list[int]], int | None] | None:
    """Partitions and generation of sticky user data in Java's bare form; None before the first assignment."""
    data = subscription(metadata).user_data
    if not data:
        return None
    held: dict[str, list[int]] = {}
    (topics,), at = struct.unpack_from(">i", data), 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data, at)
        topic = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        (count,) = struct.unpack_from(">i", data, at)
        held[topic] = list(struct.unpack_from(f">{count}i", data, at + 4))
        at += 4 + 4 * count
    (generation,) = struct.unpack_from(">i", data, at)
    assert at + 4 == len(data), "nothing before the topics and nothing after the generation"
    return held, generation


@VERSION_3
@pytest.mark.parametrize(
    "strategy", [StickyAssignor, lambda: StickyAssignor(), partial(StickyAssignor, mode="fair"), StickyAssignor()]
)
def test_class_factory_and_instance_all_work(member: Build, strategy: Any) -> None:
    built = member("a", strategy)
    assert isinstance(built.assignor, StickyAssignor)
    assert isinstance(built.assignor, AbstractPartitionAssignor)
    Group().rebalance(built)
    assert built.held() == {("t", number) for number in range(4)}


def test_a_class_gives_each_consumer_its_own_state(member: Build) -> None:
    """aiokafka's #1175: state on the class would make all consumers of a process share one claim, in any client."""
    a, b, group = member("a"), member("b"), Group()
    group.rebalance(a)
    assert history(b.metadata()) is None
    assert history(a.metadata()) == ({"t": [0, 1, 2, 3]}, 1)


def test_the_history_is_written_as_java_writes_it(member: Build) -> None:
    """kafka-python's own assignor writes a version in front of the history, which no other client can read."""
    a, group = member("a"), Group(generation=6)
    group.rebalance(a)
    metadata = a.metadata()
    assert history(metadata) == ({"t": [0, 1, 2, 3]}, 7)
    told = subscription(metadata)
    assert (told.version, told.topics, told.owned) == (3, ("t",), {})


@VERSION_3
def test_cooperative_members_send_the_generation(member: Build) -> None:
    """kafka-python's own assignor sends version 1, which has no generation."""
    a, group = member("a", cooperative), Group(generation=6)
    group.rebalance(a)
    metadata = a.metadata()
    assert owned(metadata) == {"t": [0, 1, 2, 3]}
    assert subscription(metadata).generation == 7


@VERSION_3
@EACH
def test_one_instance_in_two_consumers_is_refused(member: Build, strategy: Any) -> None:
    shared = strategy()
    member("a", shared)
    threads = threading.active_count()
    with pytest.raises(
        kafka_assignors.StateError, match=f"one .*{type(shared).__name__} instance was given to two consumers"
    ):
        member("b", shared)
    assert threading.active_count() == threads, "the consumer that could not be built left nothing behind"


@VERSION_3
def test_the_first_consumer_goes_on_when_a_second_is_refused(member: Build) -> None:
    shared, group = StickyAssignor(), Group()
    a = member("a", shared)
    group.rebalance(a)
    with pytest.raises(kafka_assignors.StateError):
        member("b", shared)
    group.rebalance(a)
    assert history(a.metadata()) == ({"t": [0, 1, 2, 3]}, 2)


def test_an_instance_may_follow_its_closed_consumer_but_not_with_its_memory(member: Build) -> None:
    instance = StickyAssignor(rack="r")
    first = member("a", instance)
    Group(generation=4).rebalance(first)
    first.close()
    second = member("b", instance)
    assert history(second.metadata()) is None
    assert subscription(second.metadata()).rack == "r"


def test_attaching_to_two_consumers_is_refused(member: Build) -> None:
    shared = StickyAssignor()
    a, b = member("a", shared), member("b", StickyAssignor)
    shared.attach(a.consumer)
    shared.attach(a.consumer)
    with pytest.raises(kafka_assignors.StateError, match="two consumers"):
        shared.attach(b.consumer)


@EACH
def test_an_expelled_member_repeats_no_claim(member: Build, strategy: Any) -> None:
    a, group = member("a", strategy), Group()
    group.rebalance(a)
    a.expel()
    metadata = a.metadata()
    assert (history(metadata) if strategy is StickyAssignor else owned(metadata)) in (None, {})
    assert subscription(metadata).generation == -1
    group.rebalance(a)
    assert a.assignor.last_report.expelled
    assert not a.assignor.last_report.kept
    assert a.assignor.last_report.gained == a.assignor.last_report.lost == {"t": (0, 1, 2, 3)}
    group.rebalance(a)
    assert not a.assignor.last_report.expelled
    assert a.assignor.last_report.kept == {"t": (0, 1, 2, 3)}


def positions(member: KafkaPythonMember) -> dict[int, int]:
    """The positions of the member. The topic is empty and has no commits: the client's reset rule gives 0."""
    consumer = member.consumer
    found: dict[int, int] = member.do(
        lambda: {each.partition: consumer.position(each) for each in sorted(consumer.assignment())}
    )
    return found


def read_to(member: KafkaPythonMember, offset: int) -> None:
    """Simulates reading by a seek. The partitions are paused, so that the client does not fetch missing records."""

    def seek() -> None:
        for each in member.consumer.assignment():
            member.consumer.pause(each)
            member.consumer.seek(each, offset)

    member.do(seek)


@VERSION_3
@EACH
def test_positions_survive_a_rebalance(member: Build, strategy: Any) -> None:
    a, b, group = member("a", strategy), member("b", strategy), Group()
    group.rebalance(a)
    read_to(a, 7)
    group.rebalance(a)
    assert positions(a) == dict.fromkeys(range(4), 7)
    group.rebalance(a, b)
    assert list(positions(a).values()) == [7, 7]


@VERSION_3
@EACH
def test_positions_of_a_former_life_are_forgotten(member: Build, strategy: Any) -> None:
    """The member is expelled while it joins again. kafka-python would keep the positions: it does not prepare twice."""
    a, group = member("a", strategy), Group()
    group.rebalance(a)
    read_to(a, 7)
    a.metadata()
    a.expel()
    group.rebalance(a)
    assert positions(a) == dict.fromkeys(range(4), 0)
    # The member missed no generation before the next rebalance, so that it keeps this position.
    read_to(a, 9)
    group.rebalance(a)
    assert positions(a) == dict.fromkeys(range(4), 9)


@EACH
def test_positions_from_before_a_missed_generation_are_forgotten(member: Build, strategy: Any) -> None:
    """The group rebalanced again before the member synced. Another member may have owned its partitions meanwhile."""
    a, group = member("a", strategy), Group()
    group.rebalance(a)
    read_to(a, 7)
    sent = a.metadata()
    a.joined(2, a.id, [(a.id, None, sent)])
    a.miss()
    group.generation = 2
    group.rebalance(a)
    assert positions(a) == dict.fromkeys(range(4), 0)


@VERSION_3
def test_a_consumer_that_is_expelled_while_it_joins_reads_on_from_the_commits() -> None:
    """With kafka-python's own assignors the consumer reads on from its old position."""
    with EmbeddedKafka({"t": 1}) as kafka:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=False) as producer:
            for number in range(100):
                producer.send("t", b"%d" % number)
        consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=10,
            heartbeat_interval_ms=100,
            session_timeout_ms=3000,
            partition_assignment_strategy=[StickyAssignor],
        )
        try:
            consumer.subscribe(["t"])
            (partition,) = read(consumer)
            consumer.pause(partition)
            # Records that other members have read meanwhile.
            consumer.commit({partition: OffsetAndMetadata(80, "", -1)})
            before = consumer.group_metadata().member_id
            kafka.inject_fault("JoinGroup", error="UNKNOWN_MEMBER_ID")
            kafka.inject_fault("Heartbeat", error="REBALANCE_IN_PROGRESS")
            records = read(consumer)
            assert consumer.group_metadata().member_id != before
            assert records[partition][0].offset == 80
        finally:
            consumer.close(autocommit=False)


def read(consumer: Any) -> Any:
    """The next records. Polls of one second need few attempts to join."""
    deadline = time.monotonic() + 60
    while not (records := consumer.poll(timeout_ms=1000)):
        assert time.monotonic() < deadline, "no records"
    return records


def test_topics_no_longer_subscribed_are_not_claimed(member: Build) -> None:
    a, group = member("a", topics={"s": 1, "t": 2}), Group()
    group.rebalance(a)
    a.do(lambda: a.consumer.subscribe(["t"]))
    assert history(a.metadata()) == ({"t": [0, 1]}, 1)


@VERSION_3
def test_the_leader_knows_the_generation_that_it_forms(member: Build) -> None:
    """A claim from the generation that is being formed is false: no partition was assigned in it yet."""
    a, group = member("a", cooperative), Group(generation=4)
    liar = Subscription(["t"], owned={"t": [0, 1, 2, 3]}, generation=99).encode()
    assigned = group.rebalance(a, others=[("b", None, liar)])
    assert {name: len(given(assigned, name)) for name in assigned} == {"a": 2, "b": 2}


def test_the_leader_sees_what_other_members_hold(member: Build) -> None:
    """Claims of Java members reach the core through kafka-python's decoder and our encoder."""
    a, group = member("a"), Group(generation=8)
    holding = struct.pack(">ih1siiii", 1, 1, b"t", 2, 1, 3, 8)
    java = Subscription(["t"], user_data=holding).encode()
    assigned = group.rebalance(a, others=[("b", None, java)])
    assert given(assigned, "b") == [1, 3]


def test_topics_without_metadata_count_as_missing(member: Build, stage: Stage) -> None:
    a, group = member("a", topics={"t": 2}, subscribed=["t", "unknown"], metadata_max_age_ms=100), Group()
    group.rebalance(a)
    assert a.held() == {("t", 0), ("t", 1)}
    stage.kafka.delete_topic("t")
    until(lambda: group.rebalance(a) and a.held() == set(), "the client has heard of it")


@VERSION_3
def test_cooperative_hands_nothing_over_while_it_is_held(member: Build) -> None:
    a, b = (member(name, cooperative) for name in "ab")
    group = Group()
    group.rebalance(a)
    group.rebalance(a, b)
    assert (len(a.held()), b.held()) == (2, set())
    until(lambda: a.is_joining, "it asks for another one, since it has given something up")
    assert not b.is_joining
    group.rebalance(a, b)
    assert (len(a.held()), len(b.held())) == (2, 2)
    assert not a.held() & b.held()
    assert not a.is_joining
    assert not b.is_joining


def test_mode_and_rack_are_options(member: Build) -> None:
    a = member("a", StickyAssignor(mode="sticky-yet-fair", rack="r1"))
    b, group = member("b"), Group()
    group.rebalance(a)
    assert subscription(group.sent["a"]).rack == "r1"
    group.rebalance(a, b)
    assert len(a.held()) == 4, "nothing owned moves in this mode"
    with pytest.raises(kafka_assignors.OptionError, match="mode is 'best'"):
        StickyAssignor(mode="best")  # type: ignore[arg-type]


@VERSION_3
@pytest.mark.parametrize(("rack", "near"), [("x", {("t", 0), ("t", 2)}), ("y", {("t", 1), ("t", 3)})])
def test_replicas_nearby_are_preferred(rack: str, near: set[tuple[str, int]]) -> None:
    """Partition p lives on broker p % 2."""
    other = {"x": "y", "y": "x"}[rack]
    with Stage(racks=["x", "y"]) as stage:
        a, b = (
            stage.add(KafkaPythonMember, name, [StickyAssignor(rack=of)], {"t": 4})
            for name, of in (("a", rack), ("b", other))
        )
        Group().rebalance(a, b)
        assert a.held() == near


@VERSION_3
def test_a_cluster_that_shows_no_replicas_will_do() -> None:
    class Cluster:
        def partitions_for_topic(self, topic: str) -> set[int] | None:
            return {0, 1} if topic == "t" else None

    told = SimpleNamespace(
        version=3, topics=["t", "unknown"], user_data=None, owned_partitions=None, generation_id=-1, rack_id="x"
    )
    joined = SimpleNamespace(member_id="a", group_instance_id=None, metadata=told)
    (share,) = StickyAssignor(rack="x").assign(Cluster(), [joined]).values()
    assert given({"a": share if isinstance(share, bytes) else share.encode()}, "a") == [0, 1]


@VERSION_3
def test_static_members_are_known_by_their_instance_id(member: Build) -> None:
    a = member("a", instance_id="i-1")
    seen: list[Any] = []
    strategy = type(a.assignor._assignor)

    class Spy(strategy):  # type: ignore[misc, valid-type]
        def _plan_assignment(self, members: Joined, *rest: Any, **more: Any) -> Any:
            seen.extend((name, instance) for name, instance, _ in members)
            return super()._plan_assignment(members, *rest, **more)

    a.assignor._assignor = Spy()
    Group().rebalance(a)
    assert seen == [("a", "i-1")]


@VERSION_3
def test_without_sight_of_the_coordinator_it_still_works(member: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another version of kafka-python, or on an interpreter without frames. The claim has its generation."""
    monkeypatch.setattr("kafka_assignors.clients.kafka_python._internals.ConsumerCoordinator", type("Unknown", (), {}))
    a, b, group = member("a"), member("b"), Group()
    group.rebalance(a)
    group.rebalance(a, b)
    assert history(a.metadata()) == ({"t": sorted(number for _, number in a.held())}, 2)
    assert a.assignor.last_report.moved == 2


def test_kafka_python_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "kafka", None)
    monkeypatch.delitem(sys.modules, "kafka_assignors.clients.kafka_python")
    with pytest.raises(kafka_assignors.MissingDependencyError, match=r"pip install kafka-assignors\[kafka-python\]"):
        importlib.import_module("kafka_assignors.clients.kafka_python")
