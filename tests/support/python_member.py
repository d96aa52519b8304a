"""One Python consumer with our assignor in a process of its own; the same commands and events as Member.java.

Run as ``python python_member.py kafka-python|aiokafka|confluent sticky|cooperative-sticky name=json ...`` by
support/members.py, which describes the protocol. The settings are keyword arguments of the client's consumer.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.clients._report import RebalanceReport

# Shorter polls can lose a join that is under way (kafka-python 3.0.12).
_KAFKA_PYTHON_POLL_MS = 1000
_AIOKAFKA_POLL_MS = 100
_CONFLUENT_POLL_S = 0.2


def emit(event: str, **fields: object) -> None:
    line = json.dumps({"event": event, "at": time.time_ns() // 1000, **fields})
    os.write(1, line.encode() + b"\n")


def plain(partitions: Iterable[Any]) -> list[tuple[str, int]]:
    return sorted((topic, partition) for topic, partition in partitions)


def synced(report: RebalanceReport, member_id: str) -> None:
    given = (
        (topic, partition)
        for part in (report.gained, report.kept)
        for topic, partitions in part.items()
        for partition in partitions
    )
    emit(
        "synced",
        generation=report.generation,
        member=member_id,
        leader=report.leader,
        partitions=plain(given),
        moved=report.moved,
        least_moves=report.least_moves,
        record_bytes=report.record_bytes,
        faults=dict(report.faults),
    )


def consumed(records: dict[Any, list[Any]]) -> None:
    if records:
        ranges = [(tp.topic, tp.partition, some[0].offset, some[-1].offset) for tp, some in records.items()]
        emit("consumed", offsets=ranges)


def read_commands(commands: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.rstrip("\n"))
    os._exit(3)


def run_kafka_python(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer

    from kafka_assignors.clients.kafka_python import CooperativeStickyAssignor, StickyAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            self.tell("assigned", assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            self.tell("revoked", revoked)

        def on_partitions_lost(self, lost: Iterable[Any]) -> None:
            self.tell("lost", lost)

        def tell(self, event: str, partitions: Iterable[Any]) -> None:
            group = consumer.group_metadata()
            emit(event, generation=group.generation_id, member=group.member_id, partitions=plain(partitions))

    kind = {"sticky": StickyAssignor, "cooperative-sticky": CooperativeStickyAssignor}[strategy]
    assignor = kind(on_rebalance=lambda report: synced(report, consumer.group_metadata().member_id))
    consumer = KafkaConsumer(partition_assignment_strategy=[assignor], **settings)
    subscribed = False
    while True:
        command, _, argument = "", "", ""
        if not subscribed or not commands.empty():
            command, _, argument = commands.get().partition(" ")
        match command:
            case "":
                consumed(consumer.poll(timeout_ms=_KAFKA_PYTHON_POLL_MS))
                continue
            case "subscribe":
                consumer.subscribe(topics=argument.split(","), listener=Listener())
                subscribed = True
            case "stall":
                time.sleep(int(argument) / 1000)
            case "commit":
                consumer.commit()
            case "close":
                consumer.close()
            case _:
                raise ValueError(command)
        emit(f"{command}-done")
        if command == "close":
            return


def run_confluent(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    from kafka_assignors.clients.confluent import Consumer

    def tell(event: str, partitions: Iterable[Any]) -> None:
        # Behind the magic of seven bytes: the generation.
        generation = int.from_bytes(consumer.consumer_group_metadata()[7:11], sys.byteorder, signed=True)
        given = plain((each.topic, each.partition) for each in partitions)
        emit(event, generation=generation, member=consumer.memberid(), partitions=given)

    consumer: Any = Consumer(
        {name.replace("_", "."): value for name, value in settings.items()}
        | {
            "partition.assignment.strategy": strategy,
            "on_rebalance": lambda report: synced(report, consumer.memberid()),
        }
    )
    callbacks = {
        f"on_{name}": lambda _, partitions, event=event: tell(event, partitions)
        for name, event in (("assign", "assigned"), ("revoke", "revoked"), ("lost", "lost"))
    }
    subscribed = False
    while True:
        command, argument = "", ""
        if not subscribed or not commands.empty():
            command, _, argument = commands.get().partition(" ")
        match command:
            case "":
                records: dict[Any, list[Any]] = {}
                for message in consumer.consume(1000, _CONFLUENT_POLL_S):
                    error = message.error()
                    if error is not None:
                        emit("error", error=repr(error))
                    else:
                        records.setdefault((message.topic(), message.partition()), []).append(message.offset())
                if records:
                    emit("consumed", offsets=[(*partition, some[0], some[-1]) for partition, some in records.items()])
                continue
            case "subscribe":
                consumer.subscribe(argument.split(","), **callbacks)
                subscribed = True
            case "stall":
                time.sleep(int(argument) / 1000)
            case "commit":
                consumer.commit()
            case "close":
                consumer.close()
            case _:
                raise ValueError(command)
        emit(f"{command}-done")
        if command == "close":
            return


async def run_aiokafka(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.abc import ConsumerRebalanceListener

    from kafka_assignors.clients.aiokafka import StickyAssignor

    def identity() -> tuple[int, str]:
        coordinator = consumer._coordinator
        return coordinator.generation, coordinator.member_id

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            self.tell("assigned", assigned)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            self.tell("revoked", revoked)

        def tell(self, event: str, partitions: Iterable[Any]) -> None:
            generation, member_id = identity()
            emit(event, generation=generation, member=member_id, partitions=plain(partitions))

    assignor = {"sticky": StickyAssignor}[strategy](on_rebalance=lambda report: synced(report, identity()[1]))
    consumer = AIOKafkaConsumer(partition_assignment_strategy=[assignor], **settings)
    await consumer.start()
    subscribed = False
    while True:
        command, argument = "", ""
        if not subscribed or not commands.empty():
            command, _, argument = (await asyncio.to_thread(commands.get)).partition(" ")
        match command:
            case "":
                consumed(await consumer.getmany(timeout_ms=_AIOKAFKA_POLL_MS))
                continue
            case "subscribe":
                consumer.subscribe(topics=argument.split(","), listener=Listener())
                subscribed = True
            case "stall":
                await asyncio.sleep(int(argument) / 1000)
            case "commit":
                await consumer.commit()
            case "close":
                # aiokafka does not tell the listener: from here on this member reads nothing.
                emit("closing")
                await consumer.stop()
            case _:
                raise ValueError(command)
        emit(f"{command}-done")
        if command == "close":
            return


def main() -> None:
    client, strategy, *pairs = sys.argv[1:]
    settings = {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in pairs)}
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=read_commands, args=(commands,), daemon=True).start()
    emit("started", pid=os.getpid())
    try:
        if client == "kafka-python":
            run_kafka_python(strategy, settings, commands)
        elif client == "confluent":
            run_confluent(strategy, settings, commands)
        else:
            asyncio.run(run_aiokafka(strategy, settings, commands))
    except Exception as error:
        emit("error", error=repr(error))
        raise


if __name__ == "__main__":
    main()
