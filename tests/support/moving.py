"""A group that is moved between protocols while records flow: its readers, each in a thread, and their records."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.clients import confluent
from kafka_assignors.clients.kafka_python import KafkaConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

PATIENCE = 60.0
# A long session, since no member crashes in these tests: the group must expel no member of a busy machine.
SESSION_MS = 30_000
# Ten groups of a test share two cores. Shorter waits and more records would use most of their time.
_WAIT_MS = 100
Partition = tuple[str, int]
# A command replaces the standard streams of the whole process: only one may run at a time.
_COMMAND = threading.Lock()


class Reader:
    """A consumer in a thread of its own. `make` returns it; it gives records as topic, partition and offset."""

    def __init__(self, name: str, make: Callable[[], Any], group: MovingGroup) -> None:
        self.name = name
        self.held: frozenset[Partition] = frozenset()
        self.error: BaseException | None = None
        self._make = make
        self._group = group
        self._open = True
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            consumer = self._make()
            try:
                while self._open:
                    for record in consumer.records():
                        self._group.note(record, self.name)
                    self.held = consumer.held()
            finally:
                self.held = frozenset()
                consumer.close()
        except BaseException as error:
            self.error = error

    def close(self) -> None:
        """Leaves the group."""
        self._open = False
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), f"{self.name} does not close"
        if self.error is not None:
            raise self.error


class _KafkaPython:
    def __init__(self, topics: Sequence[str], settings: dict[str, Any]) -> None:
        self._consumer = KafkaConsumer(*topics, **settings)

    def records(self) -> Iterable[tuple[str, int, int]]:
        for records in self._consumer.poll(_WAIT_MS).values():
            for record in records:
                yield record.topic, record.partition, record.offset

    def held(self) -> frozenset[Partition]:
        return frozenset((each.topic, each.partition) for each in self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()


class _Confluent:
    def __init__(self, kind: Any, topics: Sequence[str], settings: dict[str, Any]) -> None:
        self._consumer = kind(settings)
        self._consumer.subscribe(list(topics))

    def records(self) -> Iterable[tuple[str, int, int]]:
        message = self._consumer.poll(_WAIT_MS / 1000)
        while message is not None:
            error = message.error()
            if error is not None and error.fatal():
                raise confluent_kafka.KafkaException(error)
            if error is None:
                yield message.topic(), message.partition(), message.offset()
            message = self._consumer.poll(0)

    def held(self) -> frozenset[Partition]:
        return frozenset((each.topic, each.partition) for each in self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()


class MovingGroup:
    """A group, its topics, a producer, and everything that its readers read."""

    def __init__(self, bootstrap_servers: str, group_id: str, topics: dict[str, int]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.group_id = group_id
        self.topics = topics
        self.partitions = {(topic, number) for topic, count in topics.items() for number in range(count)}
        self.readers: list[Reader] = []
        self.read: dict[tuple[str, int, int], list[tuple[int, str]]] = defaultdict(list)
        self.sent = 0
        self._lock = threading.Lock()
        self._producing = True
        self._producer = threading.Thread(target=self._produce, daemon=True)
        self._names = 0

    def __enter__(self) -> Self:
        self._producer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._producing = False
        self._producer.join(PATIENCE)
        for reader in list(self.readers):
            if kind is None:
                self.stop(reader)
            else:
                reader._open = False

    def _produce(self) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap_servers, "linger.ms": 5, "log_level": 0}
        )
        places = sorted(self.partitions)
        while self._producing:
            topic, number = places[self.sent % len(places)]
            producer.produce(topic, b"%d" % self.sent, partition=number)
            self.sent += 1
            producer.poll(0)
            time.sleep(0.05)
        assert producer.flush(30) == 0

    def note(self, record: tuple[str, int, int], reader: str, at: int | None = None) -> None:
        """Notes that a reader got a record, now or at a time in microseconds."""
        with self._lock:
            self.read[record].append((time.time_ns() // 1_000 if at is None else at, reader))

    def _start(self, name: str, make: Callable[[], Any]) -> Reader:
        self._names += 1
        reader = Reader(f"{name}-{self._names}", make, self)
        self.readers.append(reader)
        return reader

    def ours(self, strategy: Any, **further: Any) -> Reader:
        """Our consumer for kafka-python, in the classic protocol."""
        settings = {
            "partition_assignment_strategy": [strategy],
            "on_broker_assignor": "migrate",
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 200,
            **self._kafka_python(),
            **further,
        }
        return self._start("ours", lambda: _KafkaPython([*self.topics], settings))

    def ours_in_the_new(self, **further: Any) -> Reader:
        """Our consumer for kafka-python, in the new protocol."""
        settings = {"group_protocol": "consumer", **self._kafka_python(), **further}
        return self._start("new", lambda: _KafkaPython([*self.topics], settings))

    def our_confluent(self, strategy: Any, **further: Any) -> Reader:
        """Our consumer for confluent-kafka."""
        settings = {
            "partition.assignment.strategy": strategy,
            "on_broker_assignor": "migrate",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 200,
            **self._librdkafka(),
            **further,
        }
        return self._start("confluent", lambda: _Confluent(confluent.Consumer, [*self.topics], settings))

    def librdkafka(self, strategy: str | None, **further: Any) -> Reader:
        """confluent-kafka's own consumer; without a strategy in the new protocol."""
        own: dict[str, Any] = {"group.protocol": "consumer"}
        if strategy is not None:
            own = {
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 200,
            }
        settings = {**own, **self._librdkafka(), **further}
        return self._start("librdkafka", lambda: _Confluent(confluent_kafka.Consumer, [*self.topics], settings))

    def _kafka_python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap_servers,
            "group_id": self.group_id,
            "auto_offset_reset": "earliest",
            "auto_commit_interval_ms": 500,
            "metadata_max_age_ms": 2_000,
        }

    def _librdkafka(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": self.group_id,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            "log_level": 0,
        }

    def stop(self, reader: Reader) -> None:
        """A reader commits and leaves."""
        self.readers.remove(reader)
        reader.close()

    def until(self, condition: Callable[[], bool], what: str, every: float = 0.05) -> None:
        """Waits until the condition holds; checks it every `every` seconds. A failure shows what each reader holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            for reader in self.readers:
                if reader.error is not None:
                    raise reader.error
            shares = {reader.name: sorted(reader.held) for reader in self.readers}
            assert time.monotonic() < deadline, f"{self.group_id}: {what} does not come: {shares}"
            time.sleep(every)

    def settle(self, *others: Callable[[], Iterable[Partition]]) -> None:
        """Waits until each reader and each of `others` holds partitions, and every partition has exactly one holder."""

        def shared() -> bool:
            shares = [*(reader.held for reader in self.readers), *(frozenset(other()) for other in others)]
            return all(shares) and sum(map(len, shares)) == len(self.partitions) == len(frozenset().union(*shares))

        self.until(shared, "a share for everybody")

    def migrate(self, *further: str) -> dict[str, Any]:
        """The answer of `kafka-assignors migrate` for the group. It is repeated while its `way` is `unknown`."""
        command = [
            "migrate",
            "--bootstrap-server",
            self.bootstrap_servers,
            "--group",
            self.group_id,
            "--format",
            "json",
        ]
        deadline = time.monotonic() + PATIENCE
        while True:
            with _COMMAND:
                result = CliRunner().invoke(app, [*command, *further])
            assert result.exit_code in (0, 3), (result.output, result.exception)
            answer = json.loads(result.stdout)
            (found,) = answer["groups"]
            assert result.exit_code == (3 if found["in_the_way"] else 0)
            if found["way"] != "unknown":
                assert isinstance(found, dict)
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.1)

    def stable(self) -> None:
        """Waits until the group is Stable. The checks are rare, since the commands for other groups wait for each."""
        self.until(lambda: self.migrate()["state"] == "Stable", "a stable group", every=0.5)

    def check_records(self, *forgetful: str) -> None:
        """Asserts that every record was read, and none twice except those that a reader in `forgetful` read first."""
        self._producing = False
        self._producer.join(PATIENCE)
        self.until(lambda: len(self.read) >= self.sent, f"all of {self.sent} records")
        orders = [tuple(reader for _, reader in sorted(readers)) for readers in self.read.values() if len(readers) > 1]
        twice = Counter(order for order in orders if order[0] not in forgetful)
        assert (len(self.read), twice) == (self.sent, {}), f"{self.group_id}: {len(self.read)} of {self.sent}, {twice}"
