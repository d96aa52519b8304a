"""One consumer process: `python -m demo.consumer NAME CLIENT BOOTSTRAP TOPIC…`.

It obeys lines on its standard input, `subscribe TOPIC…` and `stop`, and tells what happens on its standard output.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from functools import partial
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from demo.events import Assigned, Failed, Planned, Read, dump, lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.events import Event
    from kafka_assignors.clients import RebalanceReport

SETTINGS = {
    "group_id": "demo",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    # Short, since the demo waits for the group to notice that a member is dead.
    "session_timeout_ms": 3000,
    "heartbeat_interval_ms": 300,
    "max_poll_records": 200,
}


class Voice:
    """Tells what happens, and attributes what was read to the generation in which the member owned it."""

    def __init__(self, name: str, topics: Sequence[str]) -> None:
        self.name = name
        self.topics = list(topics)
        self.history: dict[int, dict[str, list[int]]] = {}
        self._lock = threading.Lock()

    def say(self, event: Event) -> None:
        with self._lock:
            print(dump(event), flush=True)

    def rebalanced(self, report: RebalanceReport) -> None:
        """The consumer's `on_rebalance`. Its client only logs what goes wrong in there; the demo must not miss it."""
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

    def read(self, before: int, records: Mapping[Any, Sequence[Any]]) -> None:
        """Tells what a poll that began in generation `before` returned.

        A rebalance may have come in between: what the member owned only then was read then.
        """
        after = self.generation
        ranges: dict[int, list[tuple[str, int, int, int]]] = {}
        for partition, messages in records.items():
            then = before if partition.partition in self.history.get(before, {}).get(partition.topic, ()) else after
            offsets = [message.offset for message in messages]
            cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(offsets)) if b != a + 1), len(offsets)]
            ranges.setdefault(then, []).extend(
                (partition.topic, partition.partition, offsets[start], end - start) for start, end in pairwise(cuts)
            )
        for generation, found in ranges.items():
            self.say(Read(self.name, generation, found))


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
    """Does what was asked for; False to stop."""
    try:
        command, *topics = lines.get_nowait()
    except Empty:
        return True
    if command == "subscribe":
        voice.topics = topics
        consumer.subscribe(topics)
    return command != "stop"


def run_kafka_python(voice: Voice, bootstrap: str) -> None:
    from kafka import KafkaConsumer
    from kafka.errors import CommitFailedError, RebalanceInProgressError

    from kafka_assignors.clients.kafka_python import StickyAssignor

    lines = commands()
    consumer = KafkaConsumer(
        *voice.topics,
        bootstrap_servers=bootstrap,
        client_id=voice.name,
        partition_assignment_strategy=[partial(StickyAssignor, on_rebalance=voice.rebalanced)],
        **SETTINGS,
    )
    while obey(voice, lines, consumer):
        before = voice.generation
        # Not shorter: a poll that ends while a join is in flight can make kafka-python drop out of the group.
        records = consumer.poll(timeout_ms=1000)
        if records:
            voice.read(before, records)
            # What cannot be committed now, the next owner reads again: at least once.
            with suppress(CommitFailedError, RebalanceInProgressError):
                consumer.commit()
    consumer.close()


async def run_aiokafka(voice: Voice, bootstrap: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import CommitFailedError, IllegalStateError, RebalanceInProgressError

    from kafka_assignors.clients.aiokafka import StickyAssignor

    lines = commands()
    assignor = StickyAssignor(on_rebalance=voice.rebalanced)
    consumer = AIOKafkaConsumer(
        *voice.topics,
        bootstrap_servers=bootstrap,
        client_id=voice.name,
        partition_assignment_strategy=[assignor],
        **SETTINGS,
    )
    assignor.attach(consumer)
    await consumer.start()
    try:
        while obey(voice, lines, consumer):
            before = voice.generation
            records = await consumer.getmany(timeout_ms=200)
            if records:
                voice.read(before, records)
                # What cannot be committed now, the next owner reads again: at least once.
                with suppress(CommitFailedError, IllegalStateError, RebalanceInProgressError):
                    await consumer.commit()
    finally:
        await consumer.stop()


def main() -> None:
    name, client, bootstrap, *topics = sys.argv[1:]
    voice = Voice(name, topics)
    try:
        if client == "aiokafka":
            asyncio.run(run_aiokafka(voice, bootstrap))
        else:
            run_kafka_python(voice, bootstrap)
    except Exception as error:
        voice.say(Failed(name, repr(error)))
        raise


if __name__ == "__main__":
    main()
