"""Our consumer on aiokafka: what its own coordinator cannot do, and what the client's programs rely on."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import aiokafka
import pytest
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    InconsistentGroupProtocolError,
    KafkaError,
    NoOffsetForPartitionError,
    TopicAuthorizationFailedError,
)
from aiokafka.structs import OffsetAndMetadata
from aiokafka.util import commit_structure_validate

from kafka_assignors import LagBasedAssignor, StickyAssignor
from kafka_assignors.clients.aiokafka import AIOKafkaConsumer, RebalanceDiffListener, _internals
from kafka_assignors.clients.aiokafka import StickyAssignor as StickyPlugIn
from kafka_assignors.clients.aiokafka.config import OURS, ConsumerConfig, signature
from kafka_assignors.clients.aiokafka.tokens import asking_on
from kafka_assignors.errors import OptionError
from kafka_assignors.group import MemberState
from kafka_assignors.member.data_path import Failure
from support.aiokafka_group import Members, Noting
from support.broker import unique
from support.raw_group import MEMBER_ID_REQUIRED, NONE, RawMember
from support.secured import unsecured_token
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from support.broker import Kafka

NATIVE = aiokafka.AIOKafkaConsumer


def run(kafka: Kafka, test: Callable[[Members], Coroutine[Any, Any, None]], strategy: Any = "sticky") -> None:
    """Runs a test with a group."""

    async def running() -> None:
        async with Members(kafka, strategy) as members:
            await test(members)

    asyncio.run(running())


@pytest.fixture(params=["in place", "by public methods"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the client is told what to read."""
    if request.param == "by public methods":
        monkeypatch.setattr(_internals, "table_of", lambda *_: None)
        monkeypatch.setattr(_internals, "idle_time", lambda _: None)
    return str(request.param)


# The class.


def test_every_member_of_the_class_is_the_clients() -> None:
    assert AIOKafkaConsumer.__name__ == NATIVE.__name__
    assert issubclass(AIOKafkaConsumer, NATIVE)
    names = {name for name in dir(NATIVE) if not name.startswith("_")} | {"__aenter__", "__aexit__", "__aiter__"}
    for name in names:
        ours, theirs = getattr(AIOKafkaConsumer, name), getattr(NATIVE, name)
        assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs), name
        parameters = [
            [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
            for method in (ours, theirs)
        ]
        assert parameters[0] == parameters[1], name
    assert {name for name in vars(AIOKafkaConsumer) if not name.startswith("_")} - names == {"plan"}


def test_the_constructor_takes_what_the_clients_takes() -> None:
    theirs = inspect.signature(NATIVE).parameters
    ours = inspect.signature(AIOKafkaConsumer).parameters
    assert {name: ours[name] for name in theirs} == dict(theirs)
    assert ours.keys() - theirs.keys() <= OURS.keys()
    assert next(iter(inspect.signature(AIOKafkaConsumer.__init__).parameters)) == "self"


def settings(**given: Any) -> dict[str, Any]:
    bound = signature().bind(**{"group_id": "g", **given})
    bound.apply_defaults()
    return dict(bound.arguments)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}, "GSSAPI"),
        ({"partition_assignment_strategy": "best"}, "partition_assignment_strategy"),
        ({"partition_assignment_strategy": [type("Faust", (), {"name": "faust"})]}, "partition_assignment_strategy"),
        ({"heartbeat_interval_ms": 10_000}, "heartbeat_interval_ms"),
        ({"session_timeout_ms": 0}, "session_timeout_ms"),
        ({"rebalance_timeout_ms": "soon"}, "rebalance_timeout_ms"),
        ({"on_broker_assignor": "cry"}, "on_broker_assignor"),
        ({"on_rebalance": 1}, "on_rebalance"),
        ({"bootstrap_servers": []}, "bootstrap_servers"),
    ],
)
def test_what_the_membership_cannot_honour_stops_the_constructor(given: dict[str, Any], named: str) -> None:
    async def make() -> None:
        with pytest.raises(OptionError, match=named):
            AIOKafkaConsumer(**{"group_id": "g", **given})

    asyncio.run(make())


def test_an_unknown_argument_is_refused_as_by_the_client() -> None:
    async def make() -> None:
        with pytest.raises(TypeError, match="colour"):
            AIOKafkaConsumer(group_id="g", colour="red")

    asyncio.run(make())


def test_the_two_timeouts_are_two() -> None:
    read = ConsumerConfig.read(settings(session_timeout_ms=9000), None)
    assert (read.rebalance_timeout_ms, read.max_poll_interval_ms) == (9000, 300_000)
    read = ConsumerConfig.read(settings(rebalance_timeout_ms=70_000, max_poll_interval_ms=5000), None)
    assert (read.rebalance_timeout_ms, read.max_poll_interval_ms) == (70_000, 5000)


def test_strategies_by_name_by_object_by_the_clients_class_and_by_plug_in() -> None:
    def names(value: Any) -> list[str]:
        return [
            each.name for each in ConsumerConfig.read(settings(partition_assignment_strategy=value), None).assignors
        ]

    assert names("cooperative-sticky,range") == ["cooperative-sticky", "range"]
    assert names([StickyAssignor(), "lag"]) == ["sticky", "lag"]
    assert names([StickyPlugIn()]) == ["sticky"]
    assert [each.name for each in ConsumerConfig.read(settings(), None).assignors] == ["roundrobin"]
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    assert names((RangePartitionAssignor,)) == ["range"]


class TokenOfTheLoop:
    async def token(self) -> str:
        return f"token-of-{id(asyncio.get_running_loop())}"


class TokenOfATask:
    """An ordinary function that returns what can be awaited, as wrappers do. The client takes that."""

    def token(self) -> asyncio.Task[str]:
        return asyncio.ensure_future(TokenOfTheLoop().token())


@pytest.mark.parametrize("kind", [TokenOfTheLoop, TokenOfATask])
def test_a_provider_of_tokens_is_asked_on_the_consumers_loop(kind: type[Any]) -> None:
    async def ask() -> None:
        loop = asyncio.get_running_loop()
        given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        config = ConsumerConfig.read(settings(**given, sasl_oauth_token_provider=kind()), loop)
        assert config.client.sasl is not None
        assert config.client.sasl.oauth_cb is not None
        token, *_ = await asyncio.to_thread(config.client.sasl.oauth_cb, "")
        assert token == f"token-of-{id(loop)}"

    asyncio.run(ask())


@pytest.mark.parametrize(("lifetime", "keeps"), [(300.0, True), (1.0, False), (None, False)])
def test_a_blocked_loop_lends_a_token_that_is_still_valid(lifetime: float | None, keeps: bool) -> None:
    given: list[str] = []

    class Provider:
        async def token(self) -> str:
            given.append("opaque" if lifetime is None else f"{unsecured_token('', lifetime)[0]}{len(given)}")
            return given[-1]

    async def ask() -> None:
        token_of = asking_on(asyncio.get_running_loop())
        assert await asyncio.to_thread(token_of, Provider()) == given[0]
        asking = threading.Thread(target=lambda: found.append(token_of(Provider())))
        asking.start()
        # The loop is blocked: for as long as that takes, or for a second.
        asking.join(TIMEOUT if keeps else 1.0)
        assert found == given[:1] * keeps
        await asyncio.to_thread(asking.join)
        assert len(given) == 2, "the loop asks all the same"

    found: list[str] = []
    asyncio.run(ask())
    assert found == (given[:1] if keeps else given[1:])


def test_lags_by_name_come_from_the_cluster(embedded: Kafka) -> None:
    async def lag(members: Members) -> None:
        topic, partitions = members.topic(4, 10)
        first = await members.start(topic)
        second = await members.start(topic)
        await members.settled(partitions, first, second)
        plan = first.plan() or second.plan()
        assert plan is not None
        (assignor,) = first._group_path.config.assignors
        assert isinstance(assignor, LagBasedAssignor)
        assert assignor.group_id == members.group
        lags = await asyncio.to_thread(assignor.lags.lags, {topic: 4}, members.group)  # type: ignore[union-attr]
        assert list(lags[topic]) == [10] * 4

    run(embedded, lag, "lag")


# What the client's own coordinator cannot do.


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("style", ["getone", "getmany", "iteration"])
def test_a_kept_partition_is_not_read_again(embedded: Kafka, way: str, style: str, strategy: str) -> None:
    """Nothing is committed."""

    async def reading(consumer: AIOKafkaConsumer, read: list[tuple[int, int]]) -> None:
        if style == "iteration":
            async for record in consumer:
                read.append((record.partition, record.offset))
            return
        while True:
            try:
                if style == "getone":
                    record = await consumer.getone()
                    read.append((record.partition, record.offset))
                    continue
                for records in (await consumer.getmany(timeout_ms=50, max_records=7)).values():
                    read += [(each.partition, each.offset) for each in records]
                await asyncio.sleep(0)
            except ConsumerStoppedError:
                return

    async def test(members: Members) -> None:
        topic, partitions = members.topic(4, 30)
        first = await members.start(topic)
        read: list[tuple[int, int]] = []
        others: list[tuple[int, int]] = []
        task = asyncio.create_task(reading(first, read))
        await members.until(lambda: len(read) == 120, "all is read")
        second = await members.start(topic)
        other = asyncio.create_task(reading(second, others))
        await members.settled(partitions, first, second)
        kept = {each.partition for each in first.assignment()}
        assert len(kept) == 2
        members.fill(topic, 4, 5)
        await members.until(lambda: len(read) == 130, "the new ones are read")
        # What moved is read from its beginning, since there is no commit.
        await members.until(lambda: len(others) == 70, "what moved is read")
        await second.stop()
        await asyncio.wait_for(other, 10)
        await members.settled(partitions, first)
        members.fill(topic, 4, 5)
        await members.until(lambda: len(set(read)) == 160, "what came back is read")
        mine = [each for each in read if each[0] in kept]
        assert sorted(mine) == [(number, at) for number in sorted(kept) for at in range(40)]
        for number in kept:
            offsets = [at for each, at in mine if each == number]
            assert offsets == sorted(offsets)
        await first.stop()
        await asyncio.wait_for(task, 10)

    run(embedded, test, strategy)


def test_a_blocked_loop_keeps_the_membership(embedded: Kafka) -> None:
    """For more than two sessions."""

    async def test(members: Members) -> None:
        topic, _ = members.topic(2, 3)
        consumer = await members.start(topic)
        await members.until(lambda: len(members.read[consumer]) == 6, "all is read", consumer)
        before = consumer._coordinator.member_id, consumer._coordinator.generation
        time.sleep(13)
        members.fill(topic, 2, 1)
        await members.until(lambda: len(members.read[consumer]) == 8, "it goes on", consumer)
        assert (consumer._coordinator.member_id, consumer._coordinator.generation) == before

    run(embedded, test)


def test_a_cooperative_group_goes_on_while_it_rebalances(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(4)
        noting = Noting()
        first = members.make()
        first.subscribe([topic], listener=noting)
        await first.start()
        await members.settled(partitions, first)
        assert noting.calls == [("assigned", partitions)]
        second = await members.start(topic)
        await members.settled(partitions, first, second)
        given_up = [each for each in noting.calls[1:] if each[1]]
        assert given_up == [("revoked", second.assignment())]
        await second.stop()
        await members.settled(partitions, first)
        assert [each for each in noting.calls if each[1]][-1] == ("assigned", given_up[0][1])

    run(embedded, test, "cooperative-sticky")


def test_garbage_of_another_member_costs_that_one_only(embedded: Kafka) -> None:
    def hostile(members: Members, topic: str) -> None:
        member = RawMember(members.kafka.bootstrap_servers, members.group, "hostile", "sticky")
        try:
            for expected in (MEMBER_ID_REQUIRED, NONE):
                member.send_join(b"\xff" * 40)
                assert member.receive_join().error == expected
            member.send_sync({})
            error, share = member.receive_sync()
            assert error == NONE
            assert topic.encode() not in share
        finally:
            member.close()

    async def test(members: Members) -> None:
        topic, partitions = members.topic(4, 5)
        consumer = await members.start(topic)
        generation = consumer._coordinator.generation
        await asyncio.to_thread(hostile, members, topic)
        await members.settled(partitions, consumer)
        assert consumer._coordinator.generation > generation
        await members.until(lambda: len(members.read[consumer]) == 20, "all is read", consumer)

    run(embedded, test)


# Starting and stopping.


def test_start_waits_for_the_first_share(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(3)
        consumer = members.make(topic)
        assert consumer.subscription() == {topic}
        assert consumer.assignment() == set()
        assert consumer._group_id == members.group
        await consumer.start()
        assert consumer.assignment() == partitions
        assert isinstance(consumer.assignment(), frozenset)
        assert consumer._subscription.topics == {topic}
        assert consumer._coordinator.group_id == consumer._group_id == members.group
        assert consumer._coordinator.member_id.startswith("aiokafka-")
        with pytest.raises(AssertionError, match="twice"):
            await consumer.start()
        assert consumer.assignment() == partitions

    run(embedded, test)


def test_a_group_that_refuses_the_consumer_stops_start(embedded: Kafka) -> None:
    def other(members: Members) -> RawMember:
        member = RawMember(members.kafka.bootstrap_servers, members.group, "other", "sticky")
        for _ in range(2):
            member.send_join(StickyAssignor().metadata(["t"], MemberState()))
            member.receive_join()
        return member

    async def test(members: Members) -> None:
        topic, _ = members.topic(1)
        member = await asyncio.to_thread(other, members)
        consumer = members.make(topic, partition_assignment_strategy="range")
        with pytest.raises(InconsistentGroupProtocolError):
            await consumer.start()
        with pytest.raises(InconsistentGroupProtocolError):
            await consumer.getone()
        await consumer.stop()
        member.close()

    run(embedded, test)


@pytest.mark.parametrize("state", ["new", "started", "subscribed", "assigned", "unsubscribed", "by hand"])
def test_stopping_in_every_state(embedded: Kafka, way: str, state: str) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 3)
        consumer = members.make()
        if state != "new":
            await consumer.start()
        if state in ("subscribed", "assigned", "unsubscribed"):
            consumer.subscribe([topic])
        if state in ("assigned", "unsubscribed"):
            await members.settled(partitions, consumer)
        if state == "unsubscribed":
            consumer.unsubscribe()
            assert consumer.assignment() == consumer.subscription() == set()
        if state == "by hand":
            consumer.assign(sorted(partitions))
            await members.until(lambda: len(members.read[consumer]) == 6, "all is read", consumer)
        await asyncio.wait_for(consumer.stop(), 10)
        await asyncio.wait_for(consumer.stop(), 10)
        assert members.kafka.describe_group(members.group).assignment == {}
        with pytest.raises(ConsumerStoppedError):
            await consumer.getone()
        if state != "by hand":
            with pytest.raises((ConsumerStoppedError, IllegalStateError)):
                await consumer.commit({TopicPartition(topic, 0): 1})

    run(embedded, test)


def test_gets_that_wait_end_with_the_consumer(embedded: Kafka, way: str) -> None:
    async def test(members: Members) -> None:
        topic, _ = members.topic(2)
        async with members.make(topic) as consumer:
            waiting = [asyncio.create_task(consumer.getone()), asyncio.create_task(consumer.getmany(timeout_ms=60_000))]
            await asyncio.sleep(0.1)
        done, _ = await asyncio.wait(waiting, timeout=10)
        assert len(done) == 2
        assert isinstance(waiting[0].exception(), ConsumerStoppedError)

    run(embedded, test)


def test_gets_that_wait_for_the_group_end_with_the_consumer(embedded: Kafka, way: str) -> None:
    """A rebalance that another member holds up: one consumer has parked its partitions, one has no share yet."""

    async def test(members: Members) -> None:
        topic, partitions = members.topic(4)
        goes_on = asyncio.Event()
        goes_on.set()

        async def wait(event: str, given: set[TopicPartition]) -> None:
            if event == "revoked" and given:
                await goes_on.wait()

        holding = await members.start()
        holding.subscribe([topic], listener=Noting(wait))
        parked = await members.start(topic)
        await members.settled(partitions, holding, parked)
        goes_on.clear()
        new = await members.start()
        new.subscribe([topic])
        await members.until(lambda: parked._group_side.holds_back, "the partitions are parked")
        waiting = [
            asyncio.create_task(get)
            for each in (parked, new)
            for get in (each.getone(), each.getmany(timeout_ms=60_000))
        ]
        await asyncio.sleep(0.1)
        assert not any(each.done() for each in waiting)
        await asyncio.gather(parked.stop(), new.stop())
        done, _ = await asyncio.wait(waiting, timeout=10)
        goes_on.set()
        assert len(done) == 4
        assert all(isinstance(each.exception(), ConsumerStoppedError) for each in waiting)
        await members.settled(partitions, holding)

    run(embedded, test)


def test_stopping_within_the_listener(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2)
        first = members.make()
        first.subscribe(
            [topic], listener=Noting(lambda event, gone: first.stop() if event == "revoked" and gone else None)
        )
        await first.start()
        second = await members.start(topic)
        await members.settled(partitions, second)
        assert first.assignment() == set()

    run(embedded, test)


def test_another_loop_is_refused(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(1)
        consumer = await members.start(topic)

        async def elsewhere() -> None:
            with pytest.raises(RuntimeError, match="another event loop"):
                await consumer.commit()
            with pytest.raises(RuntimeError, match="another event loop"):
                await consumer.committed(TopicPartition(topic, 0))

        def in_a_thread() -> None:
            asyncio.run(elsewhere())
            for call in (consumer.unsubscribe, lambda: consumer.pause(*partitions)):
                with pytest.raises(RuntimeError, match="another event loop"):
                    call()

        await asyncio.to_thread(in_a_thread)
        stranger = members.make(topic)

        async def start() -> None:
            with pytest.raises(AssertionError, match="same loop"):
                await stranger.start()

        await asyncio.to_thread(asyncio.run, start())

    run(embedded, test)


# Subscriptions and listeners.


def test_a_pattern_matches_at_the_beginning_and_no_internal_topic(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        stem = unique("stem")
        topic = members.kafka.create_topic(f"{stem}-a", 1)
        members.kafka.create_topic(f"not-{stem}", 1)
        consumer = members.make()
        consumer.subscribe(pattern=f"{stem}|__")
        assert consumer.subscription() == set()
        await consumer.start()
        assert consumer.subscription() == {topic}
        assert consumer.assignment() == {TopicPartition(topic, 0)}
        members.fill(topic, 1, 2)
        await members.until(lambda: len(members.read[consumer]) == 2, "all is read", consumer)
        later = members.kafka.create_topic(f"{stem}-b", 1)
        await members.until(lambda: TopicPartition(later, 0) in consumer.assignment(), "the new topic is read")
        assert consumer.subscription() == {topic, later}
        nothing = members.make()
        nothing.subscribe(pattern=unique("no"))
        await asyncio.wait_for(nothing.start(), 20)
        assert nothing.assignment() == nothing.subscription() == set()

    run(embedded, test)


def test_errors_that_pass_are_logged_only(embedded: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    async def test(members: Members) -> None:
        topic, _ = members.topic(1)
        consumer = await members.start(topic)
        consumer._group_path.fail(Failure(14, "the coordinator loads"))
        consumer._group_path.fail(Failure(None, "nobody polled"))
        assert await consumer.getmany() == {}
        consumer._group_path.fail(Failure(29, "not allowed", topic))
        with pytest.raises(TopicAuthorizationFailedError):
            await consumer.getmany()

    with caplog.at_level(logging.WARNING, "kafka_assignors"):
        run(embedded, test)
    for text in ("the coordinator loads", "nobody polled", "not allowed"):
        assert text in caplog.text


def test_subscribing_wrongly_raises_what_the_client_raises(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        ours, theirs = members.make(), NATIVE(group_id="g")
        wrong: list[tuple[Any, ...]] = [(), (["t"], "p"), ("t",), ((), "("), (["t"], None, object())]
        for arguments in wrong:
            errors = []
            for consumer in (ours, theirs):
                with pytest.raises((TypeError, ValueError)) as error:
                    consumer.subscribe(*arguments)
                errors.append((type(error.value), str(error.value)))
            assert errors[0] == errors[1]
        for consumer in (ours, theirs):
            consumer.subscribe(["t"])
            with pytest.raises(IllegalStateError, match="mutually exclusive"):
                consumer.assign([TopicPartition("t", 0)])
            with pytest.raises(IllegalStateError, match="mutually exclusive"):
                consumer.subscribe(pattern="t")
        await theirs.stop()

    run(embedded, test)


@pytest.mark.parametrize("awaits", [False, True])
def test_listeners_hear_of_each_eager_rebalance(embedded: Kafka, awaits: bool) -> None:
    class Sync(ConsumerRebalanceListener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.calls: list[tuple[str, set[TopicPartition]]] = []

        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            self.calls.append(("revoked", set(revoked)))

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            self.calls.append(("assigned", set(assigned)))

    async def test(members: Members) -> None:
        topic, partitions = members.topic(2)
        noting = Noting() if awaits else Sync()
        first = members.make()
        first.subscribe([topic], listener=noting)
        await first.start()
        assert noting.calls == [("revoked", set()), ("assigned", partitions)]
        second = await members.start(topic)
        await members.settled(partitions, first, second)
        assert noting.calls[2:] == [("revoked", partitions), ("assigned", first.assignment())]
        await first.stop()
        assert len(noting.calls) == 4, "nothing is heard of the end"

    run(embedded, test)


def test_a_listener_that_raises_is_logged(embedded: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: str, _: object) -> None:
        raise LookupError(f"no cache for {event}")

    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 2)
        consumer = members.make()
        consumer.subscribe([topic], listener=Noting(fail))
        await consumer.start()
        assert consumer.assignment() == partitions
        await members.until(lambda: len(members.read[consumer]) == 4, "all is read", consumer)

    with caplog.at_level(logging.ERROR, "kafka_assignors"):
        run(embedded, test)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "no cache for revoked",
        "no cache for assigned",
    ]


def test_what_a_listener_of_an_assignment_may_do(embedded: Kafka, way: str) -> None:
    """Positions are sought and asked for before the client reads anything."""
    seen: dict[str, Any] = {}

    async def test(members: Members) -> None:
        topic, _ = members.topic(5, 10)
        consumer = members.make(auto_offset_reset="latest")
        one, two, three, four, five = (TopicPartition(topic, each) for each in range(5))

        async def choose(event: str, _: object) -> None:
            if event != "assigned":
                return
            consumer.seek(one, 7)
            seen["sought"] = await consumer.position(one)
            seen["first"] = await consumer.seek_to_beginning(two)
            seen["end"] = await consumer.position(three)
            seen["committed"] = await consumer.seek_to_committed(four)
            consumer.pause(five)
            seen["paused"] = consumer.paused()
            with pytest.raises(IllegalStateError):
                consumer.seek(TopicPartition(topic, 9), 0)

        before = await members.start(topic)
        await before.commit({four: 8})
        await before.stop()
        consumer.subscribe([topic], listener=Noting(choose))
        await consumer.start()
        await members.until(lambda: len(members.read[consumer]) == 15, "all is read", consumer)
        read = {each: [at for _, number, at in members.read[consumer] if number == each] for each in range(5)}
        assert read == {0: [7, 8, 9], 1: list(range(10)), 2: [], 3: [8, 9], 4: []}
        assert seen == {"sought": 7, "first": True, "end": 10, "committed": {four: 8}, "paused": {five}}
        assert consumer.paused() == {five}
        assert await consumer.position(five) == 10
        consumer.resume(five)
        members.fill(topic, 5, 1)
        await members.until(lambda: len(members.read[consumer]) == 20, "the new ones are read", consumer)

    run(embedded, test)


def test_pauses_stay_in_rebalances(embedded: Kafka, way: str) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(4, 5)
        first = await members.start(topic)
        first.pause(*partitions)
        assert first.paused() == partitions
        second = await members.start(topic)
        await members.settled(partitions, first, second)
        assert first.paused() == first.assignment()
        await members.until(lambda: len(members.read[second]) == 10, "the other reads", first, second)
        assert members.read[first] == []
        gone = min(second.assignment())
        for call in (first.pause, first.resume):
            with pytest.raises(IllegalStateError):
                call(gone)
        with pytest.raises(IllegalStateError):
            first.seek(gone, 0)
        with pytest.raises(IllegalStateError):
            await first.position(gone)
        with pytest.raises(AssertionError):
            first.highwater(gone)
        with pytest.raises(TypeError):
            first.pause("t")
        first.resume(*first.assignment())
        await members.until(lambda: len(members.read[first]) == 10, "it reads", first)
        assert [first.highwater(each) for each in first.assignment()] == [5, 5]

    run(embedded, test)


def test_a_change_of_the_subscription(embedded: Kafka, way: str) -> None:
    async def test(members: Members) -> None:
        one, ones = members.topic(1, 2)
        two, twos = members.topic(1, 3)
        consumer = await members.start(one)
        await members.until(lambda: len(members.read[consumer]) == 2, "all is read", consumer)
        consumer.subscribe([one, two])
        await members.settled(ones | twos, consumer)
        await members.until(lambda: len(members.read[consumer]) == 5, "the other topic as well", consumer)
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        getting = asyncio.create_task(consumer.getone())
        members.fill(one, 1, 1)
        await asyncio.sleep(0.3)
        assert not getting.done()
        consumer.subscribe([two])
        await members.settled(twos, consumer)
        record = await asyncio.wait_for(getting, 10)
        assert (record.topic, record.offset) == (two, 0), "there was no commit"

    run(embedded, test)


def test_partitions_by_hand_are_the_clients_matter(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 4)
        consumer = members.make()
        consumer.assign(sorted(partitions))
        await consumer.start()
        assert isinstance(consumer._coordinator, aiokafka.consumer.group_coordinator.GroupCoordinator)
        await members.until(lambda: len(members.read[consumer]) == 8, "all is read", consumer)
        await consumer.commit()
        assert await consumer.committed(TopicPartition(topic, 0)) == 4
        consumer.unsubscribe()
        consumer.subscribe([topic])
        await members.settled(partitions, consumer)
        members.fill(topic, 2, 1)
        await members.until(lambda: len(members.read[consumer]) == 10, "it goes on at the commits", consumer)
        consumer.unsubscribe()
        consumer.assign([TopicPartition(topic, 1)])
        assert consumer.assignment() == {TopicPartition(topic, 1)}
        consumer.seek(TopicPartition(topic, 1), 3)
        await members.until(lambda: len(members.read[consumer]) == 12, "two are read again", consumer)
        assert members.read[consumer][-2:] == [(topic, 1, 3), (topic, 1, 4)]

    run(embedded, test)


def test_a_consumer_without_a_group_is_the_clients(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 2)
        consumer = await members.start(topic, group_id=None)
        assert consumer.assignment() == partitions
        assert consumer.plan() is None
        await members.until(lambda: len(members.read[consumer]) == 4, "all is read", consumer)
        with pytest.raises(IllegalOperation):
            await consumer.commit()
        with pytest.raises(IllegalOperation):
            await consumer.committed(TopicPartition(topic, 0))

    run(embedded, test)


# Offsets.


def test_commits(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 5)
        one, two = sorted(partitions)
        consumer = members.make(topic)
        for given in ({}, {"t": 1}, {one: (1, 2)}, 5):
            with pytest.raises(IllegalStateError, match="No partitions"):
                await consumer.commit(given)
        await consumer.start()
        wrong: list[Any] = [{}, {"t": 1}, {one: (1, 2)}, 5]
        for given in wrong:
            with pytest.raises((TypeError, ValueError)) as theirs:
                commit_structure_validate(given)
            with pytest.raises(theirs.type):
                await consumer.commit(given)
        assert await consumer.committed(one) is None
        await members.until(lambda: len(members.read[consumer]) == 10, "all is read", consumer)
        await consumer.commit()
        assert [await consumer.committed(each) for each in (one, two)] == [5, 5]
        await consumer.commit({one: 1, two: OffsetAndMetadata(2, "made by me")})
        found = await consumer._coordinator.fetch_committed_offsets([one, two])
        assert found == {one: OffsetAndMetadata(1, ""), two: OffsetAndMetadata(2, "made by me")}
        with pytest.raises(IllegalStateError, match="not assigned"):
            await consumer.commit({TopicPartition(topic, 7): 1})
        consumer.seek(one, 3)
        await consumer.commit()
        assert await consumer.committed(one) == 3, "also below the last commit"
        assert await consumer.seek_to_committed() == {one: 3, two: 5}
        consumer.unsubscribe()
        with pytest.raises(IllegalStateError, match="Not subscribed"):
            await consumer.commit()

    run(embedded, test)


def test_commits_by_themselves_and_at_the_end(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 5)
        first = await members.start(topic, enable_auto_commit=True, auto_commit_interval_ms=100)
        await members.until(lambda: len(members.read[first]) == 10, "all is read", first)
        other = await members.start(group_id=members.group)
        offsets: list[int | None] = []
        while offsets != [5, 5]:
            offsets = [await other.committed(each) for each in sorted(partitions)]
        await first.stop()
        second = await members.start(topic, enable_auto_commit=True, auto_commit_interval_ms=60_000)
        members.fill(topic, 2, 1)
        await members.until(lambda: len(members.read[second]) == 2, "the rest is read", second)
        await second.stop()
        assert [await other.committed(each) for each in sorted(partitions)] == [6, 6]

    run(embedded, test)


def test_a_consumer_without_a_subscription_waits(embedded: Kafka) -> None:
    """The time of an automatic commit comes, and there is nothing to commit."""

    async def test(members: Members) -> None:
        consumer = await members.start(enable_auto_commit=True, auto_commit_interval_ms=1)
        assert consumer._group_slot is not None
        await asyncio.sleep(0.05)
        assert consumer._group_slot.patience is None
        topic, partitions = members.topic(1, 1)
        consumer.subscribe([topic])
        await members.until(lambda: len(members.read[consumer]) == 1, "all is read", consumer)
        offset = None
        while offset != 1:
            offset = await consumer.committed(min(partitions))

    run(embedded, test)


def test_a_commit_while_the_partitions_are_given_up_fails(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 5)
        first = await members.start(topic)
        await members.until(lambda: len(members.read[first]) == 10, "all is read", first)
        given_up, goes_on = asyncio.Event(), asyncio.Event()
        second = members.make()

        async def hold(event: str, _: object) -> None:
            if event == "revoked":
                given_up.set()
                await goes_on.wait()

        second.subscribe([topic], listener=Noting(hold))
        starting = asyncio.create_task(second.start())
        await members.until(lambda: first._group_side.holds_back or given_up.is_set(), "the group rebalances")
        goes_on.set()
        await starting
        await members.settled(partitions, first, second)
        gone = min(second.assignment())
        with pytest.raises(IllegalStateError):
            await first.commit({gone: 1})
        first._group_side.holds_back = True
        with pytest.raises(CommitFailedError):
            await first.commit()
        first._group_side.holds_back = False
        await first.commit()

    run(embedded, test)


def test_without_a_commit_and_a_rule_there_is_an_error(embedded: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(1, 2)
        consumer = await members.start(topic, auto_offset_reset="none")
        with pytest.raises(NoOffsetForPartitionError):
            await asyncio.wait_for(consumer.getone(), 10)
        consumer.seek(min(partitions), 1)
        assert (await asyncio.wait_for(consumer.getone(), 10)).offset == 1

    run(embedded, test)


# Errors, and signs of life.


def test_an_error_of_the_group_comes_out_of_the_gets(embedded: Kafka, way: str) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(1)
        consumer = await members.start(topic)
        path = consumer._group_path
        waiting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0.05)
        path.fail(RuntimeError("first"))
        with pytest.raises(RuntimeError, match="first"):
            await asyncio.wait_for(waiting, 10)
        path.fail(RuntimeError("second"))
        with pytest.raises(RuntimeError, match="second"):
            await consumer.getone()
        assert await consumer.getmany() == {}, "each is raised once"
        assert consumer.assignment() == partitions

    run(embedded, test)


def test_a_get_that_was_cancelled_asks_no_more(embedded: Kafka, way: str) -> None:
    """The client itself counts it for ever, and would never leave the group of a program that hangs."""

    async def test(members: Members) -> None:
        topic, _ = members.topic(1)
        consumer = await members.start(topic)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.getone(), 0.1)
        ended = time.monotonic()
        await asyncio.sleep(0.2)
        asked = consumer._group_path.wake()
        assert asked is not None
        assert asked <= ended
        getting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0.05)
        assert consumer._group_path.wake() > ended  # type: ignore[operator]
        getting.cancel()

    run(embedded, test)


def test_a_subclass_keeps_its_own_gets(embedded: Kafka, way: str) -> None:
    class Counting(AIOKafkaConsumer):
        calls = 0

        async def getone(self, *partitions: TopicPartition) -> Any:
            self.calls += 1
            return await super().getone(*partitions)

    async def test(members: Members) -> None:
        topic, _ = members.topic(1, 3)
        consumer = Counting(
            topic,
            bootstrap_servers=members.kafka.bootstrap_servers,
            group_id=members.group,
            auto_offset_reset="earliest",
        )
        members.all.append(consumer)
        await consumer.start()
        assert [(await consumer.getone()).offset for _ in range(3)] == [0, 1, 2]
        assert consumer.calls == 3

    run(embedded, test)


# Reports and listeners of differences.


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_reports_plans_and_differences(embedded: Kafka, strategy: str) -> None:
    class Differences(RebalanceDiffListener):
        def __init__(self) -> None:
            super().__init__()
            self.heard: list[tuple[str, list[TopicPartition]]] = []

        async def on_partitions_gained(self, partitions: list[TopicPartition]) -> None:
            self.heard.append(("gained", partitions))

        def on_partitions_given_up(self, partitions: list[TopicPartition]) -> None:
            self.heard.append(("given up", partitions))

    reports: list[Any] = []
    listener = Differences()

    async def test(members: Members) -> None:
        topic, partitions = members.topic(4)
        first = members.make(on_rebalance=reports.append)
        first.subscribe([topic], listener=listener)
        await first.start()
        second = await members.start(topic)
        await members.settled(partitions, first, second)
        assert listener.heard == [("gained", sorted(partitions)), ("given up", sorted(second.assignment()))]
        assert set(listener.held) == first.assignment()
        assert reports[0].leader
        plan = first.plan()
        assert plan is not None
        assert plan.kept == 2
        back = sorted(second.assignment())
        await second.stop()
        await members.settled(partitions, first)
        assert listener.heard[2:] == [("gained", back)]
        await first.stop()
        await listener.close()
        assert listener.heard[3:] == [("given up", sorted(partitions))]

    run(embedded, test, strategy)


def test_errors_have_the_clients_types() -> None:
    from kafka_assignors.clients.aiokafka.errors import commit_failure, error_of

    assert isinstance(commit_failure(25, "gone", "g"), CommitFailedError)
    assert isinstance(error_of(29, "no", "t"), aiokafka.errors.TopicAuthorizationFailedError)
    assert error_of(30, "no", None, "g").args == ("g",)
    assert isinstance(error_of(-1, "what"), KafkaError)
