"""Programs for confluent-kafka run with only their imports changed, with the same effect and the same output.

confluent-kafka's own examples are not part of its source distribution, and are not copied here. Each program in
tests/programs is written after one of them: it subscribes, commits, calls and closes as the example does. Each runs
twice, in processes of its own: with confluent-kafka's classes and with ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from support.broker import Kafka, unique
from support.confluent_group import fill, offsets

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]
RUNNER = TESTS / "support" / "import_changed.py"
PROGRAMS = TESTS / "programs"
PATIENCE = 60.0
PARTITIONS, RECORDS = 3, 4


@dataclass(frozen=True)
class Outcome:
    """The lines that a program printed, without their order, and its group's commits at the end."""

    lines: list[str]
    committed: list[int]


def run(which: str, program: str, *arguments: str, lines: int | None) -> list[str]:
    """Runs a program to its end, or interrupts it after `lines` different lines; returns its output."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(RUNNER), which, str(PROGRAMS / f"{program}.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    printed: list[str] = []
    complaints: list[str] = []
    enough = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line.rstrip("\n"))
            if lines is not None and len(set(printed)) >= lines:
                enough.set()
        enough.set()

    def hear_complaints() -> None:
        assert process.stderr is not None
        complaints.extend(process.stderr)

    threads = [threading.Thread(target=each, daemon=True) for each in (listen, hear_complaints)]
    for thread in threads:
        thread.start()
    try:
        in_time = enough.wait(PATIENCE)
        if lines is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE)
    finally:
        process.kill()
        for thread in threads:
            thread.join(PATIENCE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
    assert (in_time, code) == (True, 0), f"{which} {program}: {printed}, {complaints}"
    assert not any("Traceback" in line for line in complaints), complaints
    return printed


def both(
    kafka: Kafka,
    program: str,
    prepare: Callable[[str, str], list[str]],
    *,
    partitions: int = PARTITIONS,
    lines: int | None = None,
) -> Outcome:
    """Runs a program with both classes, each time with a new topic and a new group, and expects equal outcomes.

    Args:
        prepare: gets topic and group, writes the program's input, and returns the program's further arguments.
        partitions: the number of partitions of the topic.
        lines: as for `run`.
    """
    outcomes = []
    for which in ("theirs", "ours"):
        topic, group = kafka.create_topic(unique("topic"), partitions), unique("group")
        arguments = prepare(topic, group)
        printed = run(which, program, kafka.bootstrap_servers, group, topic, *arguments, lines=lines)
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "log_level": 0}
        with confluent_kafka.Consumer(settings) as asking:
            committed = offsets(asking, topic, partitions)
        outcomes.append(Outcome(sorted(line.replace(topic, "TOPIC") for line in printed), committed))
    theirs, ours = outcomes
    assert ours == theirs
    return ours


def filled(kafka: Kafka, partitions: int = PARTITIONS, records: int = RECORDS) -> Callable[[str, str], list[str]]:
    def prepare(topic: str, _: str) -> list[str]:
        fill(kafka, topic, partitions, records)
        return []

    return prepare


def test_a_loop_of_poll(any_kafka: Kafka) -> None:
    """The program uses a logger, ends of partitions and stored offsets. Ctrl-C interrupts its poll."""
    outcome = both(any_kafka, "reads", filled(any_kafka), lines=1 + PARTITIONS * (RECORDS + 1))
    assert outcome.committed == [RECORDS] * PARTITIONS
    assert len(outcome.lines) == 1 + PARTITIONS * (RECORDS + 1) + 3


def test_batches_commits_and_statistics(any_kafka: Kafka) -> None:
    def prepare(topic: str, _: str) -> list[str]:
        fill(any_kafka, topic, PARTITIONS, RECORDS)
        return [str(PARTITIONS * RECORDS)]

    outcome = both(any_kafka, "batches", prepare)
    assert outcome.committed == [RECORDS] * PARTITIONS
    assert len(outcome.lines) == PARTITIONS * RECORDS + 5


def test_commits_and_lags_of_a_group_without_joining_it(any_kafka: Kafka) -> None:
    def prepare(topic: str, group: str) -> list[str]:
        fill(any_kafka, topic, PARTITIONS, RECORDS)
        settings = {"bootstrap.servers": any_kafka.bootstrap_servers, "group.id": group, "log_level": 0}
        with confluent_kafka.Consumer(settings) as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 0, 1), TopicPartition(topic, 2, 4)], asynchronous=False)
        return []

    outcome = both(any_kafka, "lags", prepare)
    assert outcome.lines == ["TOPIC 0 1 3", "TOPIC 1 - 4", "TOPIC 2 4 0", "assigned []", "since 1970 [(0, 0)]"]


def test_with_statements(any_kafka: Kafka) -> None:
    outcome = both(any_kafka, "contexts", lambda *_: [], partitions=1)
    assert len(outcome.lines) == 11
    assert outcome.committed == [5]


@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_exactly_once(kafka_broker: Kafka, how: str) -> None:
    """Only a real broker has transactions."""
    written: list[str] = []

    def prepare(topic: str, _: str) -> list[str]:
        fill(kafka_broker, topic, 1, 25)
        written.append(kafka_broker.create_topic(unique("into"), 1))
        return [written[-1], "25", how]

    outcome = both(kafka_broker, "transforms", prepare, partitions=1)
    assert outcome.lines == ["commit at 10", "commit at 20", "read 25"]
    assert outcome.committed == [25]
    for topic in written:
        settings = {"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": unique("group"), "log_level": 0}
        with confluent_kafka.Consumer(settings | {"auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            assert len(consumer.consume(25, PATIENCE)) == 25


def test_an_event_loop(any_kafka: Kafka) -> None:
    outcome = both(any_kafka, "gathers", lambda *_: [], lines=11)
    assert outcome.lines == sorted(
        ["assigned 3", *(f"read {f'v{number}'.encode()!r}" for number in range(10)), "revoked 3", "closed"]
    )
    assert sum(each for each in outcome.committed if each > 0) == 10


def test_deserializers(any_kafka: Kafka) -> None:
    outcome = both(any_kafka, "deserializes", lambda *_: [], lines=10)
    expected = [(f"plain {str(n).encode()!r} ", f"whole {n} ") for n in range(5)]
    users = [f"{start}User(name='user {n}')" for n, pair in enumerate(expected) for start in pair]
    assert outcome.lines == sorted(["interrupted", *users])


def test_a_consumer_in_each_thread(any_kafka: Kafka) -> None:
    def prepare(topic: str, _: str) -> list[str]:
        fill(any_kafka, topic, PARTITIONS, RECORDS)
        return ["2"]

    outcome = both(any_kafka, "threads", prepare, lines=PARTITIONS * RECORDS)
    assert outcome.committed == [RECORDS] * PARTITIONS
