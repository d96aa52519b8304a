"""The clients in memory, for the member's test-suite."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

from kafka_assignors.member.config import MemberConfig
from kafka_assignors.member.data_path import Position
from kafka_assignors.member.strategies import strategies_of
from kafka_assignors.net.config import ClientConfig
from support.fake_client import FakeConsumer
from support.fake_loop_client import FakeLoopConsumer
from support.readers.loop import LOOP, RunningLoop, running_loop
from support.readers.reader import HEARTBEAT_MS, SESSION_MS, Reader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import ListenerEvent, Partition
    from support.broker import Kafka

# The records of the clients in memory.
LOG: dict[Partition, int] = defaultdict(int)


def fake_config(kafka: Kafka, group: str, strategy: Any, **settings: Any) -> MemberConfig:
    """The settings of a membership for the readers of this module."""
    return MemberConfig(
        **{
            "client": ClientConfig.from_confluent(
                {"bootstrap.servers": kafka.bootstrap_servers, "socket.timeout.ms": 2000}
            ),
            "group_id": group,
            "assignors": strategies_of(strategy, "range"),
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "metadata_refresh_ms": 500,
            "auto_commit": False,
            **settings,
        }
    )


class FakeReader(Reader):
    """The client in memory."""

    consumer: Any

    def __init__(self, kafka: Kafka, group: str, strategy: Any, **settings: Any) -> None:
        super().__init__()
        self.make(fake_config(kafka, group, strategy, **settings))

    def make(self, config: MemberConfig) -> None:
        self.consumer = FakeConsumer(LOG, config)

    @property
    def side(self) -> ApplicationSide:
        side: ApplicationSide = self.consumer.side
        return side

    def follow(self, *topics: str) -> Self:
        self.consumer.subscribe(topics, self.note)
        return self

    def unsubscribe(self) -> None:
        member = self.side.member
        assert member is not None
        member.unsubscribe()

    def turn(self, timeout: float = 0.02) -> None:
        try:
            record = self.consumer.poll(timeout)
        except Exception as error:
            self.errors.append(error)
            return
        self.read += [record] * (record is not None)

    def pause(self, partition: Partition) -> None:
        self.consumer.pause(partition)

    def resume(self, partition: Partition) -> None:
        self.consumer.resume(partition)

    def seek(self, partition: Partition, offset: int) -> None:
        self.consumer.seek(partition, offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = None if offsets is None else {each: Position(at) for each, at in offsets.items()}
        outcome = self.consumer.commit(given)
        if outcome is None or outcome.error_code:
            self.errors.append(RuntimeError(outcome))
            return set()
        return set(outcome.asked.keys() - outcome.refused.keys() - outcome.dropped)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found: dict[Partition, int] = self.consumer.committed(partitions)
        return found

    def close(self) -> None:
        self.consumer.close()

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        for number in range(partitions):
            LOG[topic, number] += each


class FakeLoopReader(FakeReader):
    """The client in memory on an event loop. Its listener is a coroutine function."""

    @property
    def loop(self) -> RunningLoop:
        return running_loop()

    def make(self, config: MemberConfig) -> None:
        self.consumer = self.loop.call(FakeLoopConsumer, LOG, config)

    async def listen(self, event: ListenerEvent, partitions: Iterable[Partition]) -> None:
        await asyncio.sleep(0.01)
        self.note(event, partitions)

    def follow(self, *topics: str) -> Self:
        self.loop.call(self.consumer.subscribe, topics, self.listen)
        return self

    def turn(self, timeout: float = 0.02) -> None:
        try:
            record = self.loop.run(self.consumer.getone(timeout))
        except Exception as error:
            self.errors.append(error)
            return
        self.read += [record] * (record is not None)

    def pause(self, partition: Partition) -> None:
        self.loop.call(self.consumer.pause, partition)

    def resume(self, partition: Partition) -> None:
        self.loop.call(self.consumer.resume, partition)

    def seek(self, partition: Partition, offset: int) -> None:
        self.loop.call(self.consumer.seek, partition, offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        given = None if offsets is None else {each: Position(at) for each, at in offsets.items()}
        outcome = self.loop.run(self.consumer.commit(given))
        if outcome is None or outcome.error_code:
            self.errors.append(RuntimeError(outcome))
            return set()
        return set(outcome.asked.keys() - outcome.refused.keys() - outcome.dropped)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found: dict[Partition, int] = self.loop.run(self.consumer.committed(partitions))
        return found

    def close(self) -> None:
        if threading.current_thread().name == LOOP:
            # The listener calls this. It must not wait for the end, which waits for the listener.
            self.side.leaves_later = True
        else:
            self.loop.run(self.consumer.stop())
