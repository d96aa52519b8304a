"""One Python consumer with our assignor in a process of its own, with the commands and events of Member.java.

Run as ``python python_member.py kafka-python|aiokafka|confluent|librdkafka sticky|cooperative-sticky name=json ...`` by
support/members.py, which describes the protocol. The settings are keyword arguments of the client's consumer. With
``librdkafka`` the consumer and its assignor are confluent-kafka's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import queue
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_assignors.member.rebalance_report import RebalanceReport

# Shorter polls can lose a join that is under way (kafka-python 3.0.12).
_KAFKA_PYTHON_POLL_MS = 1000
_AIOKAFKA_POLL_MS = 100
_CONFLUENT_POLL_S = 0.2
_CONFLUENT_POLLS = 200
# `Watch` receives statistics once a second. After so many in a row that show a lost partition, it ends the process.
_LOST = 15
LOST_CODE = 4
_TOLD = ("partition", "broker", "leader", "fetch_state", "app_offset", "rxmsgs")
# After so many statistics without a record, `Watch` writes the latest ones down, for the analysis of a failure.
_IDLE = 30
# The transaction timeout in milliseconds. The offsets of a killed member stay pending for no longer.
_TRANSACTION_MS = 5000
# Seconds for one call to the transaction coordinator. After them the call is repeated.
_PATIENCE = 5.0
# Ranges of offsets in one line. A pipe takes a line of this size completely or not at all, also if the process is
# killed meanwhile.
RANGES = 40


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


def write_offsets(records: Iterable[tuple[str, int, int]], began: int) -> bool:
    """Writes records down that were read in the generation `began`. Returns whether there were any.

    A line that is not the last one of these records has `more`.
    """
    ranges: list[tuple[str, int, int, int]] = []
    for topic, partition, offset in records:
        if ranges and ranges[-1][:2] == (topic, partition) and ranges[-1][3] + 1 == offset:
            ranges[-1] = (topic, partition, ranges[-1][2], offset)
        else:
            ranges.append((topic, partition, offset, offset))
    for at in range(0, len(ranges), RANGES):
        more = {"more": True} if at + RANGES < len(ranges) else {}
        emit("consumed", offsets=ranges[at : at + RANGES], began=began, **more)
    return bool(ranges)


def consumed(records: dict[Any, list[Any]]) -> None:
    if records:
        ranges = [(tp.topic, tp.partition, some[0].offset, some[-1].offset) for tp, some in records.items()]
        emit("consumed", offsets=ranges)


def read_commands(commands: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.rstrip("\n"))
    os._exit(3)


class Telling:
    """Writes the calls of a listener down.

    Args:
        identity: gives the generation and the member id.
    """

    def __init__(self, identity: Callable[[], tuple[int, str]]) -> None:
        self._identity = identity

    def tell(self, event: str, partitions: Iterable[Any]) -> None:
        generation, member = self._identity()
        emit(event, generation=generation, member=member, partitions=plain(partitions))


def listener(identity: Callable[[], tuple[int, str]]) -> Any:
    """A listener for kafka-python."""
    from kafka import ConsumerRebalanceListener

    class Listener(Telling, ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            self.tell("assigned", assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            self.tell("revoked", revoked)

        def on_partitions_lost(self, lost: Iterable[Any]) -> None:
            self.tell("lost", lost)

    return Listener(identity)


def async_listener(identity: Callable[[], tuple[int, str]]) -> Any:
    """A listener for aiokafka. The client's own consumer does not call `on_partitions_lost`."""
    from aiokafka.abc import ConsumerRebalanceListener

    class Listener(Telling, ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            self.tell("assigned", assigned)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            self.tell("revoked", revoked)

        async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
            self.tell("lost", lost)

    return Listener(identity)


def serve(commands: queue.SimpleQueue[str], idle: Callable[[], object], **actions: Callable[[str], object]) -> None:
    """Carries out commands until `close`. After the first `subscribe`, it calls `idle` while there is no command."""
    subscribed = False
    while True:
        command, argument = "", ""
        if not subscribed or not commands.empty():
            command, _, argument = commands.get().partition(" ")
        if not command:
            idle()
            continue
        actions[command](argument)
        subscribed = subscribed or command == "subscribe"
        emit(f"{command}-done")
        if command == "close":
            return


def stall(milliseconds: str) -> None:
    time.sleep(int(milliseconds) / 1000)


def run_kafka_python(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    from kafka import KafkaConsumer

    from kafka_assignors.clients.kafka_python import CooperativeStickyAssignor, StickyAssignor

    def identity() -> tuple[int, str]:
        group = consumer.group_metadata()
        return group.generation_id, group.member_id

    kind = {"sticky": StickyAssignor, "cooperative-sticky": CooperativeStickyAssignor}[strategy]
    assignor = kind(on_rebalance=lambda report: synced(report, identity()[1]))
    consumer = KafkaConsumer(partition_assignment_strategy=[assignor], **settings)
    serve(
        commands,
        lambda: consumed(consumer.poll(timeout_ms=_KAFKA_PYTHON_POLL_MS)),
        subscribe=lambda topics: consumer.subscribe(topics=topics.split(","), listener=listener(identity)),
        stall=stall,
        commit=lambda _: consumer.commit(),
        close=lambda _: consumer.close(),
    )


class Watch:
    """Ends the process when librdkafka has lost a partition, as its own statistics show.

    Lost means: for many seconds the leader of the partition is up, but librdkafka (2.16) assigns the partition to
    another broker or does not fetch it. The application gets no error and can only restart. Our code has no part in
    this.
    """

    def __init__(self) -> None:
        self._lost = 0
        self._idle = 0
        self._received = 0

    def __call__(self, statistics: str) -> None:
        told = json.loads(statistics)
        up = {broker["nodeid"] for broker in told["brokers"].values() if broker["state"] == "UP"}
        partitions = [
            {name: partition.get(name) for name in _TOLD}
            for topic in told["topics"].values()
            for number, partition in topic["partitions"].items()
            if number != "-1" and partition["desired"]
        ]
        lost = any(
            each["leader"] in up and (each["broker"] != each["leader"] or each["fetch_state"] != "active")
            for each in partitions
        )
        self._lost = self._lost + 1 if lost else 0
        received = sum(each["rxmsgs"] for each in partitions)
        self._idle = 0 if received != self._received or not partitions else self._idle + 1
        self._received = received
        if self._idle == _IDLE or self._lost == _LOST:
            emit("idle", statistics=partitions, brokers=sorted(up))
        if self._lost == _LOST:
            os._exit(LOST_CODE)


class Transactions:
    """Writes each record to another topic and commits its offset, in one transaction for each batch.

    This class does not check who owns a partition. The broker must refuse a transaction of a member that was expelled.
    """

    def __init__(self, consumer: Any, settings: dict[str, Any], into: str) -> None:
        self._consumer = consumer
        self._into = into
        self._settings = {
            "bootstrap.servers": settings["bootstrap_servers"],
            "transactional.id": settings["client_id"],
            "transaction.timeout.ms": _TRANSACTION_MS,
            "log_level": 0,
        }
        self._producer = self._make()

    def _make(self) -> Any:
        from confluent_kafka import Producer

        producer = Producer(self._settings)
        self._until_done(lambda: producer.init_transactions(_PATIENCE))
        return producer

    def write(self, messages: list[Any]) -> None:
        """Runs one transaction. If it is aborted, its records are read again."""
        from confluent_kafka import KafkaException, TopicPartition

        ends = {(message.topic(), message.partition()): message.offset() + 1 for message in messages}
        offsets = [TopicPartition(*partition, offset) for partition, offset in ends.items()]
        producer = self._producer
        try:
            producer.begin_transaction()
            for message in messages:
                key = f"{message.partition()}:{message.offset()}"
                producer.produce(self._into, message.value(), key)
            producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), _PATIENCE)
            self._until_done(lambda: producer.commit_transaction(_PATIENCE))
        except KafkaException as refused:
            emit("aborted", error=repr(refused.args[0]))
            self._give_up()
            self._read_again(offsets)

    def _give_up(self) -> None:
        from confluent_kafka import KafkaException

        try:
            self._until_done(lambda: self._producer.abort_transaction(_PATIENCE))
        except KafkaException as fatal:
            # The producer is fenced, usually because its transaction took too long and the broker aborted it.
            emit("producer-ended", error=repr(fatal.args[0]))
            self._producer = self._make()

    def _read_again(self, offsets: list[Any]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        committed: list[Any] = []
        while not committed:
            with contextlib.suppress(KafkaException):
                committed = self._consumer.committed(offsets, timeout=_PATIENCE)
        for each in committed:
            # This member does not own the partition any more; the new owner reads these records again.
            with contextlib.suppress(KafkaException):
                self._consumer.seek(TopicPartition(each.topic, each.partition, max(0, each.offset)))

    def _until_done(self, call: Callable[[], None]) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                call()
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise
            else:
                return


def run_confluent(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    """Runs our consumer. Two settings are of this program: `reads` is `consume` or `poll`; `commits` is `auto`, `sync`,
    `async` or `transactions`. Transactions write to the topic `into`.
    """
    from confluent_kafka import KafkaError, KafkaException

    from kafka_assignors.clients.confluent import Consumer

    reads, commits = settings.pop("reads", "consume"), settings.pop("commits", "auto")
    into = settings.pop("into", None)
    generation = -1
    # Whether a commit was refused. The loop repeats it even without new records, since there may be none any more.
    owes = False

    def synced_now(report: RebalanceReport) -> None:
        nonlocal generation
        generation = -1 if report.generation is None else report.generation
        synced(report, consumer.memberid())

    def tell(event: str, partitions: Iterable[Any]) -> None:
        # The generation follows a magic of seven bytes.
        of_member = int.from_bytes(consumer.consumer_group_metadata()[7:11], sys.byteorder, signed=True)
        given = plain((each.topic, each.partition) for each in partitions)
        emit(event, generation=of_member, member=consumer.memberid(), partitions=given)

    def committed(error: Any, partitions: Iterable[Any]) -> None:
        nonlocal owes
        if error is not None and error.code() == KafkaError._NO_OFFSET:
            return
        refused = error or next((each.error for each in partitions if each.error), None)
        if refused is not None:
            # Partitions may have moved to other members meanwhile; these read the records again.
            emit("commit-refused", error=repr(refused))
            owes = True

    watch = Watch()
    consumer: Any = Consumer(
        {name.replace("_", "."): value for name, value in settings.items()}
        | {
            "partition.assignment.strategy": strategy,
            "enable.auto.commit": commits == "auto",
            "on_rebalance": synced_now,
            "statistics.interval.ms": 1000,
            "stats_cb": watch,
        }
        | ({"on_commit": committed} if commits == "async" else {})
    )
    transactions = Transactions(consumer, settings, into) if commits == "transactions" else None
    callbacks = {
        f"on_{name}": lambda _, partitions, event=event: tell(event, partitions)
        for name, event in (("assign", "assigned"), ("revoke", "revoked"), ("lost", "lost"))
    }

    def read() -> None:
        if reads == "consume":
            began = generation
            written(consumer.consume(1000, _CONFLUENT_POLL_S), began)
            return
        # With automatic commits a poll may commit the previous record. The trace must contain that record by then, so
        # each line has one record.
        most = 1 if commits == "auto" else _CONFLUENT_POLLS
        messages: list[Any] = []
        began = generation
        while len(messages) < most:
            message = consumer.poll(0.0 if messages else _CONFLUENT_POLL_S)
            if message is None:
                break
            if generation != began:
                written(messages, began)
                messages, began = [], generation
            messages.append(message)
        written(messages, began)

    def written(messages: list[Any], began: int) -> None:
        records = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                emit("error", error=repr(message.error()))
        some = write_offsets(((each.topic(), each.partition(), each.offset()) for each in records), began)
        if transactions is not None:
            if some:
                transactions.write(records)
        elif commits != "auto" and (some or owes):
            commit()

    def commit() -> None:
        nonlocal owes
        owes = False
        if commits == "async":
            consumer.commit(asynchronous=True)
            return
        try:
            committed(None, consumer.commit(asynchronous=False))
        except KafkaException as refused:
            committed(refused.args[0], ())

    serve(
        commands,
        read,
        subscribe=lambda topics: consumer.subscribe(topics.split(","), **callbacks),
        stall=stall,
        # A PyDLL keeps the interpreter's lock during a call, unlike other classes of ctypes.
        hold=lambda milliseconds: ctypes.PyDLL(None).usleep(1000 * int(milliseconds)),
        commit=lambda _: consumer.commit(),
        close=lambda _: consumer.close(),
    )


class Leadership:
    """A logger that finds the generations that this member leads. Only librdkafka's log has this information."""

    def __init__(self) -> None:
        self.generations: set[int] = set()

    def log(self, _: int, form: str, *parts: str) -> None:
        found = re.search(r"JoinGroup response: GenerationId (\d+), .* \(me\), my MemberId", form % parts)
        if found:
            self.generations.add(int(found[1]))


def run_librdkafka(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    """Runs confluent-kafka's own consumer. It calls `on_assign` in each generation, also without new partitions."""
    from confluent_kafka import Consumer

    leads = Leadership()
    held: set[tuple[str, int]] = set()

    def tell(event: str, partitions: Iterable[tuple[str, int]], **fields: object) -> None:
        generation = int.from_bytes(consumer.consumer_group_metadata()[7:11], sys.byteorder, signed=True)
        leader = generation in leads.generations
        given = plain(partitions)
        emit(event, generation=generation, member=consumer.memberid(), leader=leader, partitions=given, **fields)

    def on_assign(_: Any, partitions: list[Any]) -> None:
        added = {(each.topic, each.partition) for each in partitions}
        held.update(added)
        tell("synced", held)
        tell("assigned", added)

    def give_up(event: str, partitions: list[Any]) -> None:
        gone = {(each.topic, each.partition) for each in partitions}
        held.difference_update(gone)
        tell(event, gone)

    consumer: Any = Consumer(
        {name.replace("_", "."): value for name, value in settings.items()}
        | {"partition.assignment.strategy": strategy, "debug": "consumer,cgrp"},
        logger=leads,
    )

    def read() -> None:
        message = consumer.poll(_CONFLUENT_POLL_S)
        if message is not None and message.error() is not None:
            emit("error", error=repr(message.error()))

    callbacks = {
        "on_assign": on_assign,
        "on_revoke": lambda _, partitions: give_up("revoked", partitions),
        "on_lost": lambda _, partitions: give_up("lost", partitions),
    }
    serve(
        commands,
        read,
        subscribe=lambda topics: consumer.subscribe(topics.split(","), **callbacks),
        close=lambda _: consumer.close(),
    )


async def run_aiokafka(strategy: str, settings: dict[str, Any], commands: queue.SimpleQueue[str]) -> None:
    from aiokafka import AIOKafkaConsumer

    from kafka_assignors.clients.aiokafka import StickyAssignor

    def identity() -> tuple[int, str]:
        coordinator = consumer._coordinator
        return coordinator.generation, coordinator.member_id

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
                consumer.subscribe(topics=argument.split(","), listener=async_listener(identity))
                subscribed = True
            case "stall":
                await asyncio.sleep(int(argument) / 1000)
            case "commit":
                await consumer.commit()
            case "close":
                # aiokafka does not call the listener here. From now on this member reads nothing.
                emit("closing")
                await consumer.stop()
            case _:
                raise ValueError(command)
        emit(f"{command}-done")
        if command == "close":
            return


def run(programs: Mapping[str, Callable[[str, dict[str, Any], queue.SimpleQueue[str]], None]]) -> None:
    """Runs the program of the client that the command line names."""
    client, strategy, *pairs = sys.argv[1:]
    settings = {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in pairs)}
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s: %(message)s", level=logging.INFO)
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=read_commands, args=(commands,), daemon=True).start()
    emit("started", pid=os.getpid())
    try:
        programs[client](strategy, settings, commands)
    except Exception as error:
        emit("error", error=repr(error))
        raise


def main() -> None:
    run(
        {
            "kafka-python": run_kafka_python,
            "aiokafka": lambda *given: asyncio.run(run_aiokafka(*given)),
            "confluent": run_confluent,
            "librdkafka": run_librdkafka,
        }
    )


if __name__ == "__main__":
    main()
