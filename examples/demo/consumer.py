"""One consumer process: `python -m demo.consumer NAME CLIENT BOOTSTRAP STRATEGY TOPIC…`.

It follows the commands on its standard input, `subscribe TOPIC…` and `stop`, and writes its events to standard output.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from demo.events import Assigned, Failed, Planned, Read, dump, lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.events import Event
    from kafka_assignors.clients import RebalanceReport

SETTINGS: dict[str, Any] = {
    "group_id": "demo",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    # Short, since the demo waits until the session of a killed member expires.
    "session_timeout_ms": 3000,
    "heartbeat_interval_ms": 300,
    "max_poll_records": 200,
}


class Voice:
    """Writes the events, and assigns each record to the generation in which the member owned its partition."""

    def __init__(self, name: str, topics: Sequence[str]) -> None:
        self.name = name
        self.topics = list(topics)
        self.history: dict[int, dict[str, list[int]]] = {}
        self._lock = threading.Lock()

    def say(self, event: Event) -> None:
        with self._lock:
            print(dump(event), flush=True)

    def rebalanced(self, report: RebalanceReport) -> None:
        """The consumer's `on_rebalance`. The client only logs errors of this callback; the demo must report them."""
        try:
            self._tell(report)
        except Exception as error:
            self.say(Failed(self.name, repr(error)))

    def _tell(self, report: RebalanceReport) -> None:
        generation = -1 if report.generation is None else report.generation
        kept_and_gained = {topic: {*report.kept.get(topic, ()), *report.gained.get(topic, ())} for topic in self.topics}
        owned = lists(kept_and_gained)
        self.history[generation] = owned
        if report.plan is not None:
            self.say(
                Planned(
                    self.name,
                    generation,
                    report.plan.assignment,
                    report.plan.moved,
                    report.plan.verify().moved_bound,
                    report.plan.balance_score,
                    1000 * (report.planning_seconds or 0),
                )
            )
        self.say(Assigned(self.name, generation, self.topics, owned, lists(report.gained), lists(report.lost)))

    @property
    def generation(self) -> int:
        return max(self.history, default=-1)

    def read(self, before: int, offsets: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """Writes an event for the result of a poll that began in generation `before`: offsets by topic and partition.

        If a rebalance came during the poll, records of partitions that were not owned before were read after it.
        """
        after = self.generation
        ranges: dict[int, list[tuple[str, int, int, int]]] = {}
        for (topic, number), found in offsets.items():
            then = before if number in self.history.get(before, {}).get(topic, ()) else after
            cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(found)) if b != a + 1), len(found)]
            ranges.setdefault(then, []).extend(
                (topic, number, found[start], end - start) for start, end in pairwise(cuts)
            )
        for generation, read in ranges.items():
            self.say(Read(self.name, generation, read))


def offsets_of(records: Mapping[Any, Sequence[Any]]) -> dict[tuple[str, int], list[int]]:
    """The records of kafka-python and aiokafka in the form of `Voice.read`."""
    return {
        (partition.topic, partition.partition): [message.offset for message in messages]
        for partition, messages in records.items()
    }


def commands() -> SimpleQueue[list[str]]:
    """The lines of standard input, read on a thread; its end counts as `stop`."""
    lines: SimpleQueue[list[str]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line.split())
        lines.put(["stop"])

    threading.Thread(target=listen, daemon=True).start()
    return lines


def obey(voice: Voice, lines: SimpleQueue[list[str]], consumer: Any) -> bool:
    """Carries out a command. Returns False to stop."""
    try:
        command, *topics = lines.get_nowait()
    except Empty:
        return True
    if command == "subscribe":
        voice.topics = topics
        consumer.subscribe(topics)
    return command != "stop"


def run_kafka_python(voice: Voice, bootstrap: str, strategy: str) -> None:
    from kafka.errors import CommitFailedError, RebalanceInProgressError

    from kafka_assignors.clients.kafka_python import KafkaConsumer

    lines = commands()
    consumer = KafkaConsumer(
        *voice.topics,
        bootstrap_servers=bootstrap,
        client_id=voice.name,
        partition_assignment_strategy=strategy,
        on_rebalance=voice.rebalanced,
        **SETTINGS,
    )
    while obey(voice, lines, consumer):
        before = voice.generation
        records = consumer.poll(timeout_ms=200)
        if records:
            voice.read(before, offsets_of(records))
            # If the commit fails, the next owner reads the records again: at least once.
            with suppress(CommitFailedError, RebalanceInProgressError):
                consumer.commit()
    consumer.close()


async def run_aiokafka(voice: Voice, bootstrap: str, strategy: str) -> None:
    from aiokafka.errors import CommitFailedError, IllegalStateError, RebalanceInProgressError

    from kafka_assignors.clients.aiokafka import AIOKafkaConsumer

    lines = commands()
    consumer = AIOKafkaConsumer(
        *voice.topics,
        bootstrap_servers=bootstrap,
        client_id=voice.name,
        partition_assignment_strategy=strategy,
        on_rebalance=voice.rebalanced,
        **SETTINGS,
    )
    await consumer.start()
    try:
        while obey(voice, lines, consumer):
            before = voice.generation
            records = await consumer.getmany(timeout_ms=200)
            if records:
                voice.read(before, offsets_of(records))
                # If the commit fails, the next owner reads the records again: at least once.
                with suppress(CommitFailedError, IllegalStateError, RebalanceInProgressError):
                    await consumer.commit()
    finally:
        await consumer.stop()


def run_confluent(voice: Voice, bootstrap: str, strategy: str) -> None:
    from confluent_kafka import KafkaError, KafkaException

    from kafka_assignors.clients.confluent import Consumer

    # A rebalance came before the commit; the next owner reads the records again.
    overtaken = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}
    lines = commands()
    max_records = SETTINGS["max_poll_records"]
    settings = {name.replace("_", "."): value for name, value in SETTINGS.items() if name != "max_poll_records"}
    settings |= {
        "bootstrap.servers": bootstrap,
        "client.id": voice.name,
        "partition.assignment.strategy": strategy,
        "on_rebalance": voice.rebalanced,
    }
    with Consumer(settings) as consumer:
        consumer.subscribe(voice.topics)
        while obey(voice, lines, consumer):
            before = voice.generation
            offsets: dict[tuple[str, int], list[int]] = {}
            for message in consumer.consume(max_records, 0.2):
                if message.error() is not None:
                    raise KafkaException(message.error())
                topic, number, offset = message.topic(), message.partition(), message.offset()
                # Only an error may have no topic.
                assert topic is not None
                assert number is not None
                assert offset is not None
                offsets.setdefault((topic, number), []).append(offset)
            if offsets:
                voice.read(before, offsets)
                try:
                    consumer.commit(asynchronous=False)
                except KafkaException as error:
                    if error.args[0].code() not in overtaken:
                        raise


def main() -> None:
    name, client, bootstrap, strategy, *topics = sys.argv[1:]
    voice = Voice(name, topics)
    try:
        if client == "aiokafka":
            asyncio.run(run_aiokafka(voice, bootstrap, strategy))
        elif client == "confluent-kafka":
            run_confluent(voice, bootstrap, strategy)
        else:
            run_kafka_python(voice, bootstrap, strategy)
    except Exception as error:
        voice.say(Failed(name, repr(error)))
        raise


if __name__ == "__main__":
    main()
