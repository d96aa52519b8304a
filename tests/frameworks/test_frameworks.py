"""Frameworks on our consumers while members come and go: every record is handled, and handled once."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

import aiokafka
import pytest

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka
from support.confluent_group import fill
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.needs("frameworks"),
    # kstreams declares a model in a form that pydantic 2.12 deprecates.
    pytest.mark.filterwarnings("ignore:Using `@model_validator`"),
]

PARTITIONS, RECORDS = 6, 10
GROUP = "handlers"
SETTINGS: dict[str, Any] = {
    "group_id": GROUP,
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 200,
    "partition_assignment_strategy": "cooperative-sticky",
}


class Handler(Protocol):
    """A running program of a framework."""

    async def stop(self) -> None: ...


async def faststream(servers: str, handle: Callable[[bytes], None]) -> Handler:
    from faststream import AckPolicy
    from faststream.kafka import KafkaBroker

    broker = KafkaBroker(servers, logger=None)

    # With this policy FastStream commits after each record.
    @broker.subscriber("orders", ack_policy=AckPolicy.ACK, **SETTINGS)  # type: ignore[untyped-decorator]
    async def handler(body: Any) -> None:
        handle(str(body).encode())

    await broker.start()
    running: Handler = broker
    return running


async def kstreams(servers: str, handle: Callable[[bytes], None]) -> Handler:
    import kstreams

    backend = kstreams.backends.Kafka(bootstrap_servers=[servers])
    engine = kstreams.create_engine("handlers", backend=backend, consumer_class=AIOKafkaConsumer)

    # The client commits the handled records by itself before partitions are revoked.
    async def handler(record: Any) -> None:
        handle(record.value)

    # kstreams reads the annotation, which must be the type itself and not its name as text.
    handler.__annotations__["record"] = kstreams.ConsumerRecord
    engine.add_stream(kstreams.Stream("orders", func=handler, config=SETTINGS))
    await engine.start()
    running: Handler = engine
    return running


async def service(servers: str, handle: Callable[[bytes], None]) -> Handler:
    class Service:
        def __init__(self) -> None:
            self.consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, **SETTINGS)
            self.reading: asyncio.Future[None] | None = None

        async def start(self) -> None:
            await self.consumer.start()
            self.reading = asyncio.ensure_future(self.read())

        async def read(self) -> None:
            async for record in self.consumer:
                handle(record.value)

        async def stop(self) -> None:
            await self.consumer.stop()
            assert self.reading is not None
            await self.reading

    made = Service()
    await made.start()
    return made


@pytest.mark.parametrize("start", [faststream, kstreams, service], ids=lambda start: start.__name__)
def test_each_record_is_handled_once(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiokafka, "AIOKafkaConsumer", AIOKafkaConsumer)
    handled: Counter[tuple[str, bytes]] = Counter()
    filled = 0

    with EmbeddedKafka(topics={"orders": PARTITIONS}) as kafka:

        async def until(true: Callable[[], object], what: str) -> None:
            deadline = time.monotonic() + TIMEOUT
            while not true():
                assert time.monotonic() < deadline, (what, handled)
                await asyncio.sleep(0.02)

        async def add() -> None:
            nonlocal filled
            filled += PARTITIONS * RECORDS
            fill(Kafka(kafka.bootstrap_servers, "embedded"), "orders", PARTITIONS, RECORDS)
            await until(lambda: sum(handled.values()) >= filled, "all records are handled")

        def member(name: str) -> Any:
            return start(kafka.bootstrap_servers, lambda value: handled.update([(name, bytes(value))]))

        def is_settled(members: int) -> bool:
            group = kafka.groups()[GROUP]
            return (group.state, len(group.members)) == ("Stable", members)

        async def main() -> None:
            first = await member("first")
            await add()
            assert kafka.groups()[GROUP].protocol == "cooperative-sticky"
            second = await member("second")
            await until(lambda: is_settled(2), "two members")
            await add()
            await second.stop()
            await until(lambda: is_settled(1), "one member")
            await add()
            await first.stop()

        asyncio.run(main())
    assert sum(handled.values()) == filled
    assert {name for name, _ in handled} == {"first", "second"}


def test_quix_streams_handles_each_record_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On confluent-kafka's consumer, with a strategy for joins. Quix Streams commits when partitions are revoked."""
    import quixstreams.app
    import quixstreams.kafka.consumer

    monkeypatch.setattr(quixstreams.kafka.consumer, "ConfluentConsumer", Consumer)
    overrides = quixstreams.app.consumer_extra_config_overrides
    monkeypatch.setitem(overrides, "partition.assignment.strategy", "cooperative-sticky-join")
    # An application sets signal handlers, which only the main thread may do.
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    handled: Counter[str] = Counter()
    threads: list[threading.Thread] = []

    with EmbeddedKafka(topics={"orders": PARTITIONS}) as kafka:

        def start(name: str) -> Any:
            made = quixstreams.app.Application(
                broker_address=kafka.bootstrap_servers,
                consumer_group=GROUP,
                auto_offset_reset="earliest",
                state_dir=str(tmp_path / name),
                loglevel=None,
                consumer_extra_config={"heartbeat.interval.ms": 200},
            )
            records = made.dataframe(made.topic("orders", value_deserializer="bytes"))
            records.update(lambda _: handled.update([name]))
            threads.append(threading.Thread(target=made.run, name=name, daemon=True))
            threads[-1].start()
            return made

        def settled(members: int) -> bool:
            group = kafka.groups()[GROUP]
            return (group.state, len(group.members)) == ("Stable", members)

        def add(filled: int) -> None:
            fill(Kafka(kafka.bootstrap_servers, "embedded"), "orders", PARTITIONS, RECORDS)
            wait_until(lambda: handled.total() >= filled, "all records are handled")

        first = start("first")
        add(60)
        second = start("second")
        wait_until(lambda: settled(2), "two members")
        add(120)
        second.stop()
        threads[1].join(TIMEOUT)
        wait_until(lambda: settled(1), "one member")
        add(180)
        assert kafka.groups()[GROUP].protocol == "cooperative-sticky-join"
        first.stop()
        threads[0].join(TIMEOUT)
    assert handled.total() == 180
    assert handled["second"] > 0
