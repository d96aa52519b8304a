"""Our consumer on aiokafka, for the member's test-suite."""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

import aiokafka
from aiokafka import ConsumerRebalanceListener

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from support.confluent_group import fill
from support.readers.loop import LOOP, running_loop
from support.readers.reader import HEARTBEAT_MS, SESSION_MS, Reader
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import ListenerEvent, Partition
    from support.broker import Kafka


class AiokafkaReader(Reader):
    """Our consumer on aiokafka. Its listener is a coroutine function."""

    tells_of_idleness = False
    hears_of_all = True
    consumer: AIOKafkaConsumer

    def __init__(self, kafka: Kafka, group: str, strategy: Any, **settings: Any) -> None:
        super().__init__()
        self.loop = running_loop()
        self.loop.run(self._start(kafka, group, strategy, settings))

    async def _start(self, kafka: Kafka, group: str, strategy: Any, settings: dict[str, Any]) -> None:
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=group,
            partition_assignment_strategy=strategy,
            auto_offset_reset="earliest",
            session_timeout_ms=settings.get("session_timeout_ms", SESSION_MS),
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=settings.get("max_poll_interval_ms", 300_000),
            metadata_max_age_ms=500,
            enable_auto_commit=settings.get("auto_commit", False),
            auto_commit_interval_ms=int(settings.get("auto_commit_interval", 5.0) * 1000),
            request_timeout_ms=2000,
            group_instance_id=settings.get("instance"),
            on_rebalance=settings.get("on_rebalance"),
        )
        await self.consumer.start()
        leftovers = weakref.finalize(self, self._close_leftovers, self.consumer._fetcher, self.consumer._client)
        leftovers.atexit = False

    @staticmethod
    def _close_leftovers(*parts: Any) -> None:
        """Closes the client's parts of a consumer that was not stopped: they would fetch for ever."""

        async def close() -> None:
            for part in parts:
                await part.close()

        asyncio.run_coroutine_threadsafe(close(), running_loop().loop)

    @property
    def side(self) -> ApplicationSide:
        return self.consumer._group_side

    def follow(self, *topics: str) -> Self:
        async def noting(event: ListenerEvent, partitions: Iterable[Partition]) -> None:
            await asyncio.sleep(0.01)
            try:
                if partitions or event == "assigned":
                    self.note(event, partitions)
            except Exception as error:
                # The client only logs the error.
                self.errors.append(error)
                raise

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: set[Partition]) -> None:
                await noting("revoked", revoked)

            async def on_partitions_assigned(self, assigned: set[Partition]) -> None:
                await noting("assigned", assigned)

            async def on_partitions_lost(self, lost: set[Partition]) -> None:
                await noting("lost", lost)

        self.loop.call(self.consumer.subscribe, topics, None, Listener())
        return self

    def unsubscribe(self) -> None:
        held = self.held
        self.loop.call(self.consumer.unsubscribe)
        wait_until(lambda: not self.held, "the next turn has given them up")
        # The client does not call its listener here.
        self.note("revoked", held)

    def turn(self, timeout: float = 0.02) -> None:
        async def take() -> Any:
            getting = asyncio.ensure_future(self.consumer.getmany(timeout_ms=int(timeout * 1000), max_records=1))
            await asyncio.wait([getting], timeout=timeout)
            # During an eager rebalance `getmany` waits longer than its timeout.
            return {} if getting.cancel() else getting.result()

        try:
            records = self.loop.run(take())
        except Exception as error:
            self.errors.append(error)
            return
        for found in records.values():
            self.read += [(each.topic, each.partition, each.offset) for each in found]

    def pause(self, partition: Partition) -> None:
        self.loop.call(self.consumer.pause, aiokafka.TopicPartition(*partition))

    def resume(self, partition: Partition) -> None:
        self.loop.call(self.consumer.resume, aiokafka.TopicPartition(*partition))

    def seek(self, partition: Partition, offset: int) -> None:
        self.loop.call(self.consumer.seek, aiokafka.TopicPartition(*partition), offset)

    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        if offsets is None:
            held = set(self.loop.call(self.consumer._group_path.positions, self.side.assigned.held))
            return held if self._commit(None) else set()
        # The client refuses the whole call if another member owns one of the partitions.
        return {each for each, at in offsets.items() if self._commit({aiokafka.TopicPartition(*each): at})}

    def _commit(self, offsets: Any) -> bool:
        try:
            self.loop.run(self.consumer.commit(offsets))
        except Exception as error:
            self.errors.append(error)
            return False
        return True

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        found = {}
        for each in partitions:
            offset = self.loop.run(self.consumer.committed(aiokafka.TopicPartition(*each)))
            found[each] = -1 if offset is None else offset
        return found

    def close(self) -> None:
        if self.held and not self.side.has_left:
            # Here, too, the client does not call its listener.
            self.events.append(("revoked", self.held))
        if threading.current_thread().name == LOOP:
            # The listener calls this. It must not wait for the end, which waits for the listener.
            self.stopping = asyncio.ensure_future(self.consumer.stop())
        else:
            self.loop.run(self.consumer.stop())

    @staticmethod
    def fill(kafka: Kafka, topic: str, partitions: int, each: int) -> None:
        """Adds `each` records to every partition."""
        fill(kafka, topic, partitions, each)
