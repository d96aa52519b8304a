"""Our consumer on aiokafka: subscriptions, the calls of listeners, and the calls that a listener may make."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import aiokafka
import pytest
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import (
    IllegalOperation,
    IllegalStateError,
    TopicAuthorizationFailedError,
)

from kafka_assignors import IncompatibleClientError
from kafka_assignors.clients.aiokafka._internals import SubscriptionRules
from kafka_assignors.member.data_path import Failure
from support.aiokafka_group import Members, Noting, run
from support.broker import unique
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.broker import Kafka

NATIVE = aiokafka.AIOKafkaConsumer


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
        await asyncio.wait_for(nothing.start(), TIMEOUT)
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
    # Only our records: asyncio may log the error of an earlier test's task when Python's collector finds that task.
    ours = [record for record in caplog.records if record.name.startswith("kafka_assignors")]
    assert [str(record.exc_info[1]) for record in ours if record.exc_info] == [
        "no cache for revoked",
        "no cache for assigned",
    ]


def test_what_a_listener_of_an_assignment_may_do(embedded: Kafka, access: str) -> None:
    """The listener may seek and read positions before the client reads any record."""
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


def test_pauses_stay_in_rebalances(embedded: Kafka, access: str) -> None:
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


def test_a_change_of_the_subscription(embedded: Kafka, access: str) -> None:
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
        record = await asyncio.wait_for(getting, TIMEOUT)
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


# Releases of aiokafka without an attribute that our consumer uses.


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.mark.parametrize("name", ["assign_from_user", "listener", "topics"])
def test_a_missing_attribute_is_one_clear_error(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(SubscriptionState, name)
    with pytest.raises(IncompatibleClientError, match=rf"the subscription of aiokafka .*'{name}'"):
        SubscriptionRules(loop)


def test_a_subscribe_of_another_release_is_one_clear_error(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = SubscriptionRules(loop)
    for other in (lambda self, *_: self._another, lambda self, *_: self._client.another):
        monkeypatch.setattr(NATIVE, "subscribe", other)
        with pytest.raises(IncompatibleClientError, match=r"the subscription of aiokafka .*another"):
            rules.subscribe(["t"], None, None)
    # The listener is the application's: the client's own error.
    monkeypatch.setattr(NATIVE, "subscribe", lambda self, topics, pattern, listener: listener.another)
    with pytest.raises(AttributeError, match="another"):
        rules.subscribe(["t"], None, object())
