"""Writes and reads on an event loop until it is interrupted: gathers.py servers group topic"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.aio import AIOConsumer, AIOProducer


async def ignore(_: Any) -> None:
    pass


def common(servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "error_cb": ignore,
        "throttle_cb": ignore,
        "stats_cb": ignore,
        "statistics.interval.ms": 5000,
    }


async def write(servers: str, topic: str) -> None:
    producer = AIOProducer(common(servers), max_workers=5)
    sent = [await producer.produce(topic=topic, key=f"k{number}", value=f"v{number}") for number in range(10)]
    await producer.flush()
    for message in await asyncio.gather(*sent):
        assert message.error() is None
    await producer.close()


async def read(servers: str, group: str, topic: str, stop: asyncio.Event) -> None:
    consumer = AIOConsumer(
        common(servers)
        | {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )

    async def on_assign(consumer: Any, partitions: list[Any]) -> None:
        await consumer.incremental_assign(partitions)
        await consumer.pause(partitions)
        await consumer.resume(partitions)
        print("assigned", len(partitions))

    async def on_revoke(consumer: Any, partitions: list[Any]) -> None:
        with contextlib.suppress(KafkaException):  # the client raises an error if there is nothing to commit
            await consumer.commit(asynchronous=False)
        print("revoked", len(partitions))

    async def on_lost(_: Any, partitions: list[Any]) -> None:
        print("lost", len(partitions))

    await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
    try:
        while not stop.is_set():
            message = await consumer.poll(1.0)
            if message is None:
                continue
            assert message.error() is None
            print("read", message.value())
            await consumer.store_offsets(message=message)
            positions = await consumer.position(await consumer.assignment())
            assert positions
            await consumer.commit()
    finally:
        await consumer.unsubscribe()
        await consumer.close()
        print("closed")


async def main(servers: str, group: str, topic: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    await asyncio.gather(write(servers, topic), read(servers, group, topic, stop))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
