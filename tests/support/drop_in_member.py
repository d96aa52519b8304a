"""One of our consumers for kafka-python and aiokafka in a process of its own, with the commands of python_member.py.

Run as ``python -m support.drop_in_member kafka-python|aiokafka strategy name=json ...`` by support/members.py, which
describes the protocol. The settings are keyword arguments of the consumer; two of them are this program's:

- `reads`: `poll` or `iteration`, `getmany` or `getone`;
- `commits`: `auto`, `sync`, or `async` (kafka-python only).

A record's line is written before its offset can be committed: the next call of the consumer may commit it, and on an
event loop the next `await` may.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from support.python_member import async_listener, emit, listener, run, serve, stall, synced, write_offsets

if TYPE_CHECKING:
    import queue
    from collections.abc import Awaitable, Callable, Iterable

    from kafka_assignors.member.rebalance_report import RebalanceReport

_WAIT_MS = 200
# The most records in one line of `iteration` and `getone`. With automatic commits each record has its own line there.
_BATCH = 200
# Seconds between two attempts to start without a broker, and between two checks for a command.
_AGAIN = 0.5
_GLANCE = 0.05
# Longer than any test: a member that was frozen reaches its broker later.
_BOOTSTRAP_MS = 600_000


class Lines:
    """The lines that this member writes.

    Attributes:
        generation: the generation of the latest assignment.
    """

    def __init__(self) -> None:
        self.generation = -1

    def synced(self, report: RebalanceReport, member_id: str) -> None:
        """Writes an assignment down."""
        self.generation = -1 if report.generation is None else report.generation
        synced(report, member_id)

    def consumed(self, records: Iterable[Any], began: int) -> None:
        """Writes records down that were read in the generation `began`."""
        write_offsets(((each.topic, each.partition, each.offset) for each in records), began)


def _planning(strategy: str) -> dict[str, Any]:
    """The settings that select the planner: the broker, or the strategy of the members."""
    if strategy == "consumer":
        return {"group_protocol": "consumer"}
    return {"partition_assignment_strategy": strategy}


def run_kafka_python(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    from kafka.errors import KafkaError

    from kafka_assignors.clients.kafka_python import KafkaConsumer

    reads, commits = settings.pop("reads", "poll"), settings.pop("commits", "auto")
    lines = Lines()
    # Whether a commit was refused. The loop repeats it even without new records, since there may be none any more.
    owes = False

    def identity() -> tuple[int, str]:
        group = consumer.group_metadata()
        return group.generation_id, group.member_id

    def committed(_: object, error: object) -> None:
        nonlocal owes
        if error is not None:
            # Partitions may have moved to other members meanwhile; these read the records again.
            emit("commit-refused", error=repr(error))
            owes = True

    def commit() -> None:
        nonlocal owes
        owes = False
        if commits == "async":
            consumer.commit_async(callback=committed)
            return
        try:
            consumer.commit()
        except KafkaError as refused:
            committed(None, refused)

    def read() -> int:
        if reads == "poll":
            records = [record for some in consumer.poll(timeout_ms=_WAIT_MS).values() for record in some]
            lines.consumed(records, lines.generation)
            return len(records)
        most = 1 if commits == "auto" else _BATCH
        batch: list[Any] = []
        began, count = lines.generation, 0
        while count < most and (record := next(consumer, None)) is not None:
            if lines.generation != began:
                lines.consumed(batch, began)
                batch, began = [], lines.generation
            batch.append(record)
            count += 1
        lines.consumed(batch, began)
        return count

    # From release 3 on, the constructor gives up after 30 seconds without a broker. A frozen program would end.
    if "bootstrap_timeout_ms" in KafkaConsumer.DEFAULT_CONFIG:
        settings = {"bootstrap_timeout_ms": _BOOTSTRAP_MS, **settings}
    consumer: Any = KafkaConsumer(
        on_rebalance=lambda report: lines.synced(report, identity()[1]),
        enable_auto_commit=commits == "auto",
        consumer_timeout_ms=_WAIT_MS,
        **_planning(strategy),
        **settings,
    )

    def idle() -> None:
        if (read() or owes) and commits != "auto":
            commit()

    serve(
        commands,
        idle,
        subscribe=lambda topics: consumer.subscribe(topics=topics.split(","), listener=listener(identity)),
        stall=stall,
        commit=lambda _: consumer.commit(),
        close=lambda _: consumer.close(),
    )


async def run_aiokafka(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    """One task reads, and another one stops the consumer, as in a service."""
    from aiokafka.errors import ConsumerStoppedError, KafkaConnectionError, KafkaError

    from kafka_assignors.clients.aiokafka import AIOKafkaConsumer

    reads, commits = settings.pop("reads", "getmany"), settings.pop("commits", "auto")
    lines = Lines()

    def identity() -> tuple[int, str]:
        coordinator = consumer._coordinator
        return coordinator.generation, coordinator.member_id

    async def start() -> Any:
        while True:
            made = AIOKafkaConsumer(
                on_rebalance=lambda report: lines.synced(report, identity()[1]),
                enable_auto_commit=commits == "auto",
                **_planning(strategy),
                **settings,
            )
            try:
                await made.start()
            except KafkaConnectionError as error:
                emit("not-started", error=repr(error))
                await made.stop()
                await asyncio.sleep(_AGAIN)
            else:
                return made

    async def get_many() -> int:
        found = await consumer.getmany(timeout_ms=_WAIT_MS)
        records = [record for some in found.values() for record in some]
        lines.consumed(records, lines.generation)
        return len(records)

    async def get_one() -> int:
        if commits == "auto":
            lines.consumed([await consumer.getone()], lines.generation)
            return 1
        batch: list[Any] = []
        began, count = lines.generation, 0
        try:
            async with asyncio.timeout(_WAIT_MS / 1000):
                while count < _BATCH:
                    record = await consumer.getone()
                    if lines.generation != began:
                        lines.consumed(batch, began)
                        batch, began = [], lines.generation
                    batch.append(record)
                    count += 1
        except TimeoutError:
            pass
        finally:
            lines.consumed(batch, began)
        return count

    async def read_on(read: Callable[[], Awaitable[int]]) -> None:
        owes = False
        while True:
            if (await read() or owes) and commits != "auto":
                owes = False
                try:
                    await consumer.commit()
                except KafkaError as refused:
                    emit("commit-refused", error=repr(refused))
                    owes = True

    async def command() -> tuple[str, str]:
        while commands.empty():
            await asyncio.sleep(_GLANCE)
        name, _, argument = commands.get().partition(" ")
        return name, argument

    consumer: Any = await start()
    reading: asyncio.Task[None] | None = None
    while True:
        asked = asyncio.create_task(command())
        await asyncio.wait({asked, reading} if reading else {asked}, return_when=asyncio.FIRST_COMPLETED)
        if reading is not None and reading.done():
            # The reading has ended without a command to stop it: this raises its error.
            reading.result()
        match await asked:
            case "subscribe", topics:
                consumer.subscribe(topics=topics.split(","), listener=async_listener(identity))
                reading = reading or asyncio.create_task(read_on(get_one if reads == "getone" else get_many))
                emit("subscribe-done")
            case "stall", milliseconds:
                # This blocks the event loop.
                stall(milliseconds)
                emit("stall-done")
            case "commit", _:
                await consumer.commit()
                emit("commit-done")
            case "close", _:
                # The client does not call the listener here. From now on this member reads nothing.
                emit("closing")
                await consumer.stop()
                if reading is not None:
                    with contextlib.suppress(ConsumerStoppedError):
                        await reading
                emit("close-done")
                return
            case unknown:
                raise ValueError(unknown)


def main() -> None:
    run(
        {
            "kafka-python": run_kafka_python,
            "aiokafka": lambda *given: asyncio.run(run_aiokafka(*given)),
        }
    )


if __name__ == "__main__":
    main()
