"""Our consumer on aiokafka starts and stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    ConsumerStoppedError,
    IllegalStateError,
    InconsistentGroupProtocolError,
    KafkaConnectionError,
)

from kafka_assignors import StickyAssignor
from kafka_assignors.clients.aiokafka._internals import native_client
from kafka_assignors.group import MemberState
from kafka_assignors.member import times
from support.aiokafka_group import Members, Noting, run
from support.raw_group import RawMember
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from support.broker import Kafka


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
def test_stopping_in_every_state(embedded: Kafka, access: str, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    # Longer than `TIMEOUT`: a `stop` that waits for its own limit fails.
    monkeypatch.setattr(times, "CLOSE", 10_000.0)

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
        await asyncio.wait_for(consumer.stop(), TIMEOUT)
        await asyncio.wait_for(consumer.stop(), TIMEOUT)
        assert members.kafka.describe_group(members.group).assignment == {}
        with pytest.raises(ConsumerStoppedError):
            await consumer.getone()
        if state != "by hand":
            with pytest.raises((ConsumerStoppedError, IllegalStateError)):
                await consumer.commit({TopicPartition(topic, 0): 1})

    run(embedded, test)


def test_stopping_while_a_fetch_rests_before_it_tries_again(
    embedded: Kafka, access: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The `stop` of aiokafka's own consumer raises CancelledError in this state, and leaves its connections open."""

    async def test(members: Members) -> None:
        topic, _ = members.topic(1)
        consumer = await members.start(topic, retry_backoff_ms=5_000)
        client = native_client(consumer)
        assert client is not None
        send, refused = client.send, asyncio.Event()

        async def refuse_fetches(node: int, request: Any, *more: Any, **named: Any) -> Any:
            if "Fetch" in type(request).__name__ and "Offset" not in type(request).__name__:
                refused.set()
                raise KafkaConnectionError
            return await send(node, request, *more, **named)

        monkeypatch.setattr(client, "send", refuse_fetches)
        waiting = asyncio.create_task(consumer.getone())
        await asyncio.wait_for(refused.wait(), TIMEOUT)
        await asyncio.sleep(0.05)
        await asyncio.wait_for(consumer.stop(), TIMEOUT)
        with pytest.raises(ConsumerStoppedError):
            await waiting
        assert members.kafka.describe_group(members.group).assignment == {}

    run(embedded, test)


def test_gets_that_wait_end_with_the_consumer(embedded: Kafka, access: str) -> None:
    async def test(members: Members) -> None:
        topic, _ = members.topic(2)
        async with members.make(topic) as consumer:
            waiting = [asyncio.create_task(consumer.getone()), asyncio.create_task(consumer.getmany(timeout_ms=60_000))]
            await asyncio.sleep(0.1)
        done, _ = await asyncio.wait(waiting, timeout=TIMEOUT)
        assert len(done) == 2
        assert isinstance(waiting[0].exception(), ConsumerStoppedError)

    run(embedded, test)


def test_gets_that_wait_for_the_group_end_with_the_consumer(embedded: Kafka, access: str) -> None:
    """Another member delays a rebalance: one consumer holds its records back, one has no share yet."""

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
        done, _ = await asyncio.wait(waiting, timeout=TIMEOUT)
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
