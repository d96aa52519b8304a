"""Our consumer on aiokafka: commits, and partitions without one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    NoOffsetForPartitionError,
)
from aiokafka.structs import OffsetAndMetadata
from aiokafka.util import commit_structure_validate

from support.aiokafka_group import Members, Noting, run
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from support.broker import Kafka


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
            await asyncio.wait_for(consumer.getone(), TIMEOUT)
        consumer.seek(min(partitions), 1)
        assert (await asyncio.wait_for(consumer.getone(), TIMEOUT)).offset == 1

    run(embedded, test)
