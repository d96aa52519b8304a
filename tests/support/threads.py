"""Consumers of the three clients in threads of this process, with the clients' own assignors.

`support.members` has consumers with our assignors, in processes of their own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, Self

import aiokafka
import confluent_kafka
import kafka

if TYPE_CHECKING:
    from collections.abc import Callable

Client = Literal["kafka-python", "aiokafka", "confluent"]
CLIENTS: tuple[Client, ...] = ("kafka-python", "aiokafka", "confluent")

Partition = tuple[str, int]

# The limit of a wait, in seconds. A wait ends as soon as its condition holds; only a busy machine reaches the limit.
TIMEOUT = 60.0


def wait_until(true: Callable[[], object], what: str, timeout: float = TIMEOUT) -> None:
    """Returns as soon as ``true()`` holds. Fails with ``what`` after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not true():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.01)


class Consumer:
    """A consumer that polls in a thread from its construction on. It keeps its partitions and its records."""

    def __init__(self, bootstrap_servers: str, group: str, *topics: str, **config: Any) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.group = group
        self.topics = topics
        self.config = config
        self.read: Counter[bytes | None] = Counter()
        self.held: frozenset[Partition] = frozenset()
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_safely, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT)

    def close(self) -> None:
        """Leaves the group. Raises the error of the thread, if any."""
        self._stop.set()
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive(), f"{self} did not close"
        if self.failure is not None:
            raise self.failure

    def _run_safely(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.failure = error

    def _run(self) -> None:
        raise NotImplementedError


class KafkaPythonConsumer(Consumer, kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """A consumer of kafka-python."""

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Holds nothing until the next assignment."""
        self.held = frozenset()

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Holds the assigned partitions."""
        self.held = frozenset((one.topic, one.partition) for one in assigned)

    def _run(self) -> None:
        settings = {key.replace(".", "_"): value for key, value in _settings(self).items()}
        consumer = kafka.KafkaConsumer(**settings)
        consumer.subscribe(self.topics, listener=self)
        try:
            while not self._stop.is_set():
                # If a join outlasts the call, kafka-python 3.0.12 can miss the end of the join. The client then never
                # returns to the group. On a busy machine a join has outlasted 1 second.
                for records in consumer.poll(timeout_ms=3000).values():
                    self.read.update(record.value for record in records)
        finally:
            consumer.close()


class AiokafkaConsumer(Consumer):
    """A consumer of aiokafka, on an event loop of its own."""

    def _run(self) -> None:
        asyncio.run(self._poll())

    async def _poll(self) -> None:
        settings = {key.replace(".", "_"): value for key, value in _settings(self).items()}
        consumer = aiokafka.AIOKafkaConsumer(*self.topics, **settings)
        await consumer.start()
        try:
            while not self._stop.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.read.update(record.value for record in records)
                self.held = frozenset((one.topic, one.partition) for one in consumer.assignment())
        finally:
            await consumer.stop()


class ConfluentConsumer(Consumer):
    """A consumer of confluent-kafka."""

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            _settings(self) | {"log_level": 0, "topic.metadata.refresh.interval.ms": 300}
        )
        consumer.subscribe(list(self.topics))
        try:
            while not self._stop.is_set():
                for message in consumer.consume(500, 0.05):
                    error = message.error()
                    if error is None:
                        self.read[message.value()] += 1
                    elif error.fatal():
                        raise confluent_kafka.KafkaException(error)
                self.held = frozenset((one.topic, one.partition) for one in consumer.assignment())
        finally:
            consumer.close()


CONSUMERS: dict[Client, type[Consumer]] = {
    "kafka-python": KafkaPythonConsumer,
    "aiokafka": AiokafkaConsumer,
    "confluent": ConfluentConsumer,
}


def _settings(consumer: Consumer) -> dict[str, Any]:
    """Short timeouts for the group, and the client's defaults otherwise."""
    return {
        "bootstrap.servers": consumer.bootstrap_servers,
        "group.id": consumer.group,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 200,
        "metadata.max.age.ms": 300,
        "auto.offset.reset": "earliest",
        **{key.replace("_", "."): value for key, value in consumer.config.items()},
    }


def produce(client: Client, bootstrap_servers: str, topic: str, values: list[bytes], **config: Any) -> None:
    """Sends values without keys, and waits until the broker has them."""
    if client == "confluent":
        settings = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        settings |= {key.replace("_", "."): value for key, value in config.items()}
        errors: list[object] = []
        confluent = confluent_kafka.Producer(settings)
        for value in values:
            confluent.produce(topic, value, on_delivery=lambda error, _: errors.append(error) if error else None)
        assert confluent.flush(TIMEOUT) == 0
        if errors:
            raise confluent_kafka.KafkaException(errors[0])
    elif client == "kafka-python":
        with kafka.KafkaProducer(bootstrap_servers=bootstrap_servers, **config) as producer:
            for sent in [producer.send(topic, value) for value in values]:
                sent.get(timeout=TIMEOUT)
    else:
        asyncio.run(_produce_with_aiokafka(bootstrap_servers, topic, values, config))


async def _produce_with_aiokafka(
    bootstrap_servers: str, topic: str, values: list[bytes], config: dict[str, Any]
) -> None:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap_servers, **config) as producer:
        for sent in [await producer.send(topic, value) for value in values]:
            await sent
