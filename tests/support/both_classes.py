"""The same calls to confluent-kafka's consumer and to ours, with their results."""

from __future__ import annotations

import contextlib
import difflib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_assignors.clients.confluent import Consumer
from support.broker import Kafka, unique
from support.confluent_group import fill
from support.needs import rest
from support.raw_group import waiting_for_a_dead_member
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Entry = tuple[Any, ...]
BASE: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
"""Settings of a consumer that reaches no broker."""
BOTH_WAYS = pytest.mark.parametrize("strategy", ["cooperative-sticky", *rest("range")])
CLASSES: dict[str, type[confluent_kafka.Consumer]] = {"theirs": confluent_kafka.Consumer, "ours": Consumer}


def outcome(error: BaseException) -> Entry:
    """An exception, as a program sees it that catches the client's exceptions."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return (KafkaException.__name__, error.args[0].name())
    return (next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"),)


def tried(call: Callable[[], object]) -> Any:
    """The result of a call, or the exception that it raises."""
    try:
        return call()
    except BaseException as error:
        return outcome(error)


def made(*arguments: Any, then: Callable[[confluent_kafka.Consumer], object] = id, **settings: Any) -> list[Any]:
    """The result of each class's constructor with these arguments, and of `then`, which gets the consumer."""
    return [tried(partial(_made, kind, then, *arguments, **settings)) for kind in CLASSES.values()]


def _made(kind: Any, then: Callable[[Any], object], *arguments: Any, **settings: Any) -> object:
    return then(kind(*arguments, **settings))


class Part:
    """One consumer in a script. The log of the script gets its calls, their results, and the calls of its callbacks."""

    def __init__(self, script: Script, label: str, settings: dict[str, Any]) -> None:
        self.script = script
        self.label = label
        self.read: list[tuple[str, int, int]] = []
        self.consumer = script.kind(
            {
                "bootstrap.servers": script.kafka.bootstrap_servers,
                "group.id": script.group,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
                "on_commit": self._committed,
            }
            | settings
        )

    def note(self, *entry: Any) -> None:
        """Puts an entry into the log."""
        self.script.log.append((self.label, *entry))

    def called(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a method, and notes its result or its exception."""
        found = tried(lambda: getattr(self.consumer, name)(*args, **kwargs))
        self.note(name, self.script.plain(found))
        return found

    def assigned_after(self, *calls: tuple[str, list[TopicPartition]]) -> None:
        """Calls methods that change the assignment, and notes the assignment after each."""
        for method, given in calls:
            self.called(method, given)
            self.note("assignment", self.script.plain(self.consumer.assignment(), offsets=False))

    def subscribe(self, *topics: str, **callbacks: Callable[..., object]) -> None:
        """Subscribes. The callbacks write their arguments into the log, and then call the script's."""

        def noting(name: str) -> Callable[[Any, list[TopicPartition]], None]:
            def note(consumer: Any, partitions: list[TopicPartition]) -> None:
                self.note(name, self.script.plain(partitions, offsets=False))
                if name in callbacks:
                    callbacks[name](consumer, partitions)

            return note

        given = {name: noting(name) for name in ("on_assign", "on_revoke", "on_lost")}
        self.called("subscribe", [self.script.topic(topic) for topic in topics], **given)

    def poll(self, seconds: float = 0.02) -> None:
        """Polls once, and notes errors, both raised and returned."""
        try:
            message = self.consumer.poll(seconds)
        except BaseException as error:
            self.note("poll", outcome(error))
            return
        if message is None:
            return
        trouble = message.error()
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        name = None if topic is None else self.script.label(topic)
        if trouble is None:
            assert name is not None
            assert partition is not None
            assert offset is not None
            self.read.append((name, partition, offset))
        elif trouble.code() == KafkaError._PARTITION_EOF:
            self.note("end", name, partition, offset)
        else:
            self.note("error", trouble.name(), name)

    def told(self, name: str) -> list[Any]:
        """The entries of one kind, without the name."""
        return [entry[2:] for entry in self.script.log if entry[:2] == (self.label, name)]

    def committed(self, topic: str, *partitions: int) -> list[int]:
        """The group's committed offsets, read by a client of its own."""
        asked = [TopicPartition(self.script.topic(topic), number) for number in partitions]
        settings = {
            "bootstrap.servers": self.script.kafka.bootstrap_servers,
            "group.id": self.script.group,
            "log_level": 0,
        }
        with contextlib.closing(confluent_kafka.Consumer(settings)) as other:
            return [each.offset for each in other.committed(asked, timeout=TIMEOUT)]

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self.note("on_commit", None if error is None else error.name(), self.script.plain(partitions))


class Script:
    """A run of one script with one of the classes. It has the topics by their labels, and the log."""

    def __init__(self, kafka: Kafka, which: str) -> None:
        self.kafka = kafka
        self.which = which
        self.kind = CLASSES[which]
        self.group = unique("group")
        self.log: list[Entry] = []
        self.parts: list[Part] = []
        self._topics: dict[str, str] = {}

    def make(self, label: str, partitions: int, records: int = 0) -> None:
        """Creates a topic with this label, and with `records` records in each partition."""
        name = self.kafka.create_topic(self.topic(label), partitions)
        if records:
            fill(self.kafka, name, partitions, records)

    def topic(self, label: str) -> str:
        """The name of a topic, which need not exist. A regular expression (`^…`) stays an expression."""
        if label not in self._topics:
            start = "^" if label.startswith("^") else ""
            self._topics[label] = start + unique(label.removeprefix("^"))
        return self._topics[label]

    def matched_by(self, expression: str, label: str, suffix: str = "") -> None:
        """Gives a label to a topic that the expression matches. A name without `^` stands for that topic."""
        self._topics[label] = self.topic(expression).removeprefix("^") + suffix

    def label(self, topic: str) -> str:
        """The label of a topic."""
        return next((label for label, name in self._topics.items() if name == topic), topic)

    def at(self, label: str, partition: int, *offset: Any) -> TopicPartition:
        """A partition, with an offset and metadata if given."""
        return TopicPartition(self.topic(label), partition, *offset)

    def plain(self, found: Any, *, offsets: bool = True) -> Any:
        """A value in the log's form: sorted partitions with labels, and with offsets, metadata and errors if any."""
        if not isinstance(found, list):
            return found
        rows = []
        for each in found:
            row: tuple[Any, ...] = (self.label(each.topic), each.partition)
            if offsets:
                row += (each.offset, each.metadata, None if each.error is None else each.error.name())
            rows.append(row)
        return sorted(rows, key=lambda row: row[:2])

    def consumer(self, strategy: str | None = None, label: str = "", **settings: Any) -> Part:
        """A consumer. The names of its settings have underscores for dots."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        if strategy is not None:
            given["partition.assignment.strategy"] = strategy
        part = Part(self, label, given)
        self.parts.append(part)
        return part

    def until(self, true: Callable[[], object], what: str, *, of: tuple[Part, ...] = ()) -> None:
        """Polls all consumers, or those in `of`, until `true()` holds."""
        deadline = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < deadline, f"{self.which}: not within {TIMEOUT} s: {what}; the log: {self.log}"
            for part in of or self.parts:
                part.poll()

    def after(self, seconds: float, *, of: tuple[Part, ...] = ()) -> None:
        """Polls all consumers, or those in `of`, for `seconds`, in a test that something does not happen."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for part in of or self.parts:
                part.poll()

    def reads(self, part: Part, records: int) -> None:
        """Polls until the consumer has read at least `records` records."""
        self.until(lambda: len(part.read) >= records, f"{records} records are read")

    @contextlib.contextmanager
    def waiting_for_a_dead_member(self, label: str, strategy: str) -> Iterator[None]:
        """As `support.raw_group.waiting_for_a_dead_member`, with this group."""
        with waiting_for_a_dead_member(self.kafka, self.group, self.topic(label), strategy, self.after):
            yield

    def without_commits(self) -> None:
        """Removes the commits from the log, for a script in which their time does not matter."""
        self.log[:] = [entry for entry in self.log if entry[1] != "on_commit"]

    def close(self, part: Part) -> None:
        """Closes one consumer."""
        part.called("close")
        self.parts.remove(part)

    def end(self) -> None:
        """Closes the consumers that are still open, and ignores their errors."""
        for part in self.parts:
            part.consumer.close()


def logs(kafka: Kafka, play: Callable[[Script], None]) -> dict[str, list[Entry]]:
    """Plays a script with both classes; returns the log of each."""
    found = {}
    for which in CLASSES:
        script = Script(kafka, which)
        try:
            play(script)
            found[which] = list(script.log)
        finally:
            script.end()
    return found


def same(kafka: Kafka, play: Callable[[Script], None]) -> list[Entry]:
    """Plays a script with both classes and expects equal logs; returns the log."""
    found = logs(kafka, play)
    lines = {which: [repr(entry) for entry in log] for which, log in found.items()}
    differs = "\n".join(difflib.unified_diff(lines["theirs"], lines["ours"], "theirs", "ours", lineterm=""))
    assert not differs, differs
    return found["ours"]
