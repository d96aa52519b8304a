"""The client in memory of `support.fake_client`, on an event loop: all waiting is awaited, listeners are coroutines.

A task of the consumer runs the turns, so that the group is served while the application awaits a record or anything
else. Nothing blocks the loop, not even leaving the group.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from kafka_assignors.member import fork
from kafka_assignors.member.application_side import ApplicationSide
from kafka_assignors.member.data_path import Position
from kafka_assignors.member.turn import Arrivals
from support.fake_client import FakePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.member.config import MemberConfig
    from kafka_assignors.member.data_path import CommitOutcome, Partition
    from support.fake_client import Record

GLANCE = 0.01


class LoopPath(FakePath):
    """``asks`` is whether the application awaits a record now; ``arrivals`` wakes the task that runs the turns."""

    asks = False
    arrivals: Arrivals

    def wake(self) -> float | None:
        if not self.arrivals.ring():
            return None
        return time.monotonic() if self.asks else self.asked_at


class FakeLoopConsumer:
    """A consumer on a `LoopPath`. It is made on a running loop, and all methods are called on that loop."""

    def __init__(self, log: Mapping[Partition, int], config: MemberConfig) -> None:
        self.path = LoopPath(log)
        self.side = ApplicationSide(self.path, config)
        self.path.arrivals = self._arrivals = Arrivals()
        self.closed = False
        self._turns = asyncio.create_task(self._take_turns())
        fork.watch(self)

    async def _take_turns(self) -> None:
        while not self.closed:
            due = self.side.next_commit - time.monotonic()
            await self._arrivals.wait(None if due == float("inf") else max(0.0, due))
            # A member that left because the application did not poll joins again when the application asks for records.
            asks = self.path.asks
            await self.side.attend_on_loop(self._arrivals, can_raise=asks)
            if self.side.leaves_later:
                self.side.leaves_later = False
                await self._leave()
            elif asks and self.side.mailbox:
                # An error ended the turn, and the rest of the mailbox follows.
                self._arrivals.ring()

    def subscribe(self, topics: Iterable[str], listener: Any = None) -> None:
        self.side.subscribe(topics, {}, listener)

    async def getone(self, timeout: float) -> Record | None:
        deadline = time.monotonic() + timeout
        self.path.asks = True
        self._arrivals.ring()
        try:
            while not self.closed:
                if self.path.failures:
                    failure = self.path.failures.pop(0)
                    raise failure if isinstance(failure, Exception) else RuntimeError(failure)
                if self.side.may_hand_out and (record := self.path.take()) is not None:
                    return record
                if time.monotonic() >= deadline:
                    return None
                await asyncio.sleep(GLANCE)
            return None
        finally:
            self.path.asks, self.path.asked_at = False, time.monotonic()

    def pause(self, *partitions: Partition) -> None:
        self.path.paused.update(partitions)
        self.side.assigned.pause(partitions)

    def resume(self, *partitions: Partition) -> None:
        self.path.paused.difference_update(partitions)
        self.side.assigned.resume(partitions)

    def seek(self, partition: Partition, offset: int) -> None:
        if not self.side.assigned.start_at(partition, Position(offset)):
            self.side.assigned.leaves(partition)
            self.path.next[partition] = offset

    async def commit(self, offsets: Mapping[Partition, Position] | None = None) -> CommitOutcome | None:
        due = self.side.assigned.due() if offsets is None else offsets
        return await self.side.commits.send_and_wait_on_loop(due) if due else None

    async def committed(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        found = await self.side.commits.committed_on_loop(self.side.ensure_fetcher(), partitions, 10.0)
        assert found is not None
        return {partition: position.offset for partition, position in found.positions.items()}

    async def stop(self) -> None:
        if not self.closed:
            await self._leave()
        if asyncio.current_task() is not self._turns:
            # If a turn is running, the member leaves after that turn.
            self._arrivals.ring()
            await self._turns

    async def _leave(self) -> bool:
        left = await self.side.close_on_loop(self._arrivals)
        self.closed = self.closed or left
        return left

    def _disown(self, refuse: Callable[..., Any]) -> None:
        if self.side.fetcher is not None:
            self.side.fetcher.abandon()
        self.closed = True
        self.__dict__.update(dict.fromkeys(("getone", "commit", "subscribe"), refuse))
