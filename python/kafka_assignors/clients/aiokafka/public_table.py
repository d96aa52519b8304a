"""The partitions that a consumer reads, and its gets, with the public methods of aiokafka alone.

This package uses it with a release whose private table it does not know. The cost is that of `assign`: at each change
the client throws away the fetched records of all partitions.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from typing import TYPE_CHECKING, Any

import aiokafka
from aiokafka import TopicPartition
from aiokafka.errors import ConsumerStoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kafka_assignors.clients.aiokafka.gate import Gate

__all__ = ["PublicTable", "TrackedGets"]

_Client = aiokafka.AIOKafkaConsumer


class PublicTable:
    """The partitions that a consumer reads, by `assign`, `seek` and `pause`. It holds the consumer weakly.

    Args:
        consumer: after its first `assign`, and its `start`.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = weakref.ref(consumer)
        self._read: frozenset[Any] = frozenset(_Client.assignment(consumer))

    @property
    def read(self) -> frozenset[Any]:
        """The partitions that the client reads."""
        return self._read

    def replace(self, wanted: Collection[Any], fresh: Mapping[Any, int | None], _: Iterable[str]) -> frozenset[Any]:
        """Reads these partitions from now on.

        Args:
            wanted: all partitions to read.
            fresh: the partitions that are new or begin elsewhere, each with its offset; None for the client's reset
                rule.

        Returns:
            The partitions whose pause flag is lost.
        """
        consumer = self._consumer()
        kept = self._read.intersection(wanted)
        if consumer is None or (self._read == frozenset(wanted) and not fresh):
            return frozenset()
        if not wanted:
            # An empty assignment would make the client fetch the metadata of all topics. So the last assignment stays,
            # and is paused.
            for each in self._read:
                _Client.seek(consumer, each, 0)
            _Client.pause(consumer, *self._read)
            self._read = frozenset()
            return frozenset()
        if self._read == frozenset(wanted):
            starts = dict(fresh)
        else:
            starts = {each: self.position(each) for each in kept} | dict(fresh)
            _Client.assign(consumer, list(wanted))
            self._read = frozenset(wanted)
        for each, offset in starts.items():
            if offset is not None:
                _Client.seek(consumer, each, offset)
        return kept

    def position(self, partition: Any) -> int | None:
        """The offset after the last record that was handed out; None if it is not known."""
        consumer = self._consumer()
        if consumer is None or partition not in self._read:
            return None
        asking = _Client.position(consumer, partition)
        try:
            # The coroutine does not wait if there is a position.
            asking.send(None)
        except StopIteration as answer:
            offset: int = answer.value
            return offset
        except aiokafka.errors.KafkaError:
            return None
        asking.close()
        return None

    def open(self) -> None:
        """Does nothing: no get waits in the client."""


class TrackedGets:
    """`getone` and `getmany` of one consumer, which wait in front of the client's own, and are counted.

    A subclass's own methods are called, and so are those that instrumentation has put into the class.

    Attributes:
        waiting: the number of gets under way.
        asked_at: when the latest one began or ended (`time.monotonic`).
    """

    def __init__(self, consumer: Any, gate: Gate, enter: Callable[[], None]) -> None:
        self.waiting = 0
        self.asked_at = time.monotonic()
        self._gate = gate
        self._enter = enter
        self._opens: asyncio.Event = asyncio.Event()
        of = weakref.ref(consumer)

        async def getone(*partitions: TopicPartition) -> Any:
            return await self._get(of(), partitions, None, None)

        async def getmany(*partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None) -> Any:
            return await self._get(of(), partitions, timeout_ms, max_records)

        consumer.__dict__ |= {"getone": getone, "getmany": getmany}

    def open(self) -> None:
        """Makes the waiting gets check the gate again."""
        self._opens.set()

    async def _get(self, consumer: Any, partitions: Any, timeout_ms: int | None, most: int | None) -> Any:
        end = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        self._enter()
        self.waiting += 1
        try:
            while self._gate.is_shut():
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    await asyncio.sleep(0)
                    return {}
                self._opens.clear()
                # Not for ever: the session may end meanwhile, or the consumer be stopped.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._opens.wait(), 0.1 if left is None else min(left, 0.1))
                if self._is_stopped(consumer):
                    raise ConsumerStoppedError
                self._enter()
            if end is None:
                return await type(consumer).getone(consumer, *partitions)
            left_ms = max(0, round((end - time.monotonic()) * 1000)) if timeout_ms else timeout_ms
            return await type(consumer).getmany(consumer, *partitions, timeout_ms=left_ms, max_records=most)
        finally:
            self.waiting -= 1
            self.asked_at = time.monotonic()

    @staticmethod
    def _is_stopped(consumer: Any) -> bool:
        try:
            consumer.__aiter__()
        except ConsumerStoppedError:
            return True
        return False
