"""Our consumer on aiokafka: abilities that the client's own coordinator lacks, errors, and reports."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.errors import (
    ConsumerStoppedError,
)

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer, RebalanceDiffListener
from support.aiokafka_group import Members, Noting, run
from support.raw_group import MEMBER_ID_REQUIRED, NONE, RawMember
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from aiokafka import TopicPartition

    from support.broker import Kafka


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("style", ["getone", "getmany", "iteration"])
def test_a_kept_partition_is_not_read_again(embedded: Kafka, access: str, style: str, strategy: str) -> None:
    """No offset is committed: a member that lost a position would read the partition again."""

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
        # The partitions that moved are read from their beginning, since no offset is committed.
        await members.until(lambda: len(others) == 70, "what moved is read")
        await second.stop()
        await asyncio.wait_for(other, TIMEOUT)
        await members.settled(partitions, first)
        members.fill(topic, 4, 5)
        await members.until(lambda: len(set(read)) == 160, "what came back is read")
        mine = [each for each in read if each[0] in kept]
        assert sorted(mine) == [(number, at) for number in sorted(kept) for at in range(40)]
        for number in kept:
            offsets = [at for each, at in mine if each == number]
            assert offsets == sorted(offsets)
        await first.stop()
        await asyncio.wait_for(task, TIMEOUT)

    run(embedded, test, strategy)


def test_a_blocked_loop_keeps_the_membership(embedded: Kafka) -> None:
    """The loop is blocked for more than two sessions."""

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


def test_an_error_of_the_group_comes_out_of_the_gets(embedded: Kafka, access: str) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(1)
        consumer = await members.start(topic)
        path = consumer._group_path
        waiting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0.05)
        path.fail(RuntimeError("first"))
        with pytest.raises(RuntimeError, match="first"):
            await asyncio.wait_for(waiting, TIMEOUT)
        path.fail(RuntimeError("second"))
        with pytest.raises(RuntimeError, match="second"):
            await consumer.getone()
        assert await consumer.getmany() == {}, "each is raised once"
        assert consumer.assignment() == partitions

    run(embedded, test)


def test_a_get_that_was_cancelled_asks_no_more(embedded: Kafka, access: str) -> None:
    """The client counts a cancelled get for ever: a program that hangs would seem to poll, and stay a member."""

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
        # The member takes any later time for a poll, and would never expel this consumer.
        assert {consumer._group_path.wake() for _ in range(1000)} == {asked}
        getting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0.05)
        assert consumer._group_path.wake() > ended  # type: ignore[operator]
        getting.cancel()

    run(embedded, test)


def test_a_subclass_keeps_its_own_gets(embedded: Kafka, access: str) -> None:
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
