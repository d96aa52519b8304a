"""The topics that a producer writes to, as read from the cluster's metadata."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import errors
from kafka_assignors.errors import PartitionerTypeError
from kafka_assignors.partitioners import register_cluster_type

if TYPE_CHECKING:
    from kafka_assignors.clients.confluent.batch_boundaries import Batch

__all__ = ["KnownTopics", "ProducerTopic", "ProducerTopics", "TopicMetadataError"]

logger = logging.getLogger("kafka_assignors")

# The client's class is stored at import, since programs may put our class in its place later.
_Client = confluent_kafka.Producer

# Errors that pass by themselves: a topic is being created, or brokers cannot be reached.
_PASSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
}
_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}

# Seconds for one request, between two of them, and until a refresh that failed is tried again. `close` waits for a
# request that is on its way.
_REQUEST = 1.0
_PAUSE = 0.05
_LONGEST_PAUSE = 0.5
_RETRY = 1.0
# The most names of missing topics that are remembered. Any text may be given as a topic.
_MOST_UNKNOWN = 10_000


class TopicMetadataError(errors.TopicMetadataError, KafkaException):
    """The partitions of a topic could not be read, so a record to it was not sent.

    As with every `KafkaException`, `args[0]` is the `KafkaError`, with its code.
    """

    def __init__(self, error: KafkaError, message: str) -> None:
        super().__init__(error)
        self._message = message

    def __str__(self) -> str:
        return self._message


# Tracebacks name the module from which programs import the class.
TopicMetadataError.__module__ = "kafka_assignors.clients.confluent"


class KnownTopics:
    """The cluster as partitioners see it: the partitions of the topics that this producer writes to.

    Our partitioners read the partitions of a topic in `_leaders`. While the topic's dictionary is the same object, they
    take the topic as unchanged. So `put` replaces the dictionary, and as its last step.
    """

    __slots__ = ("_all", "_available", "_leaders")

    def __init__(self) -> None:
        self._leaders: dict[str, dict[int, int]] = {}
        self._all: dict[str, frozenset[int]] = {}
        self._available: dict[str, frozenset[int]] = {}

    def partitions_for_topic(self, topic: str) -> frozenset[int] | None:
        """All partitions; None if the topic is not known."""
        return self._all.get(topic)

    def available_partitions_for_topic(self, topic: str) -> frozenset[int] | None:
        """The partitions that have a leader; None if the topic is not known."""
        return self._available.get(topic)

    def leader(self, topic: str, partition: int) -> int:
        """The leader's broker id, -1 if there is none."""
        return self._leaders.get(topic, {}).get(partition, -1)

    def leaders(self, topic: str) -> dict[int, int] | None:
        """The leader of each partition, -1 for none; None if the topic is not known."""
        return self._leaders.get(topic)

    def put(self, topic: str, leaders: dict[int, int] | None) -> None:
        """Replaces the leaders of a topic's partitions, -1 for none; None removes the topic."""
        if leaders is None:
            for known in (self._leaders, self._available, self._all):
                known.pop(topic, None)
            return
        self._all[topic] = frozenset(leaders)
        self._available[topic] = frozenset(number for number, leader in leaders.items() if leader >= 0)
        self._leaders[topic] = leaders


register_cluster_type(KnownTopics, "_leaders")


class ProducerTopic:
    """One topic: its number of partitions, when to read them again, and the open batch of each partition."""

    __slots__ = ("batches", "count", "due", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.due = 0.0
        self.batches: list[Batch | None] = []


class ProducerTopics:
    """The topics of one producer.

    The first record to a topic waits for its partitions, as in Java. After that a thread reads them at an interval.
    Until a reading succeeds, the old partitions count.

    Args:
        patience: seconds that the first record to a topic waits.
        interval: seconds between two readings.
    """

    def __init__(self, patience: float, interval: float) -> None:
        self.cluster = KnownTopics()
        self.known: dict[str, ProducerTopic] = {}
        self._patience = patience
        self._interval = interval
        self._lock = threading.Lock()
        self._unknown: set[str] = set()
        self._looking = False

    def discover(self, producer: confluent_kafka.Producer, name: str) -> ProducerTopic:
        """Waits until the cluster knows the topic. For a topic that was missing once there is only one request.

        Raises:
            PartitionerTypeError: the name is no text.
            TopicMetadataError: the topic is still missing, may not be written to, or has no partitions.
            RuntimeError: the producer is closed.
        """
        if not isinstance(name, str):
            raise PartitionerTypeError(f"topic is of type {type(name).__name__}; give its name")
        late = time.monotonic() + (0.0 if name in self._unknown else self._patience)
        pause = _PAUSE
        while True:
            leaders, error = _look_aside(producer, name, _REQUEST)
            if leaders:
                return self._put(name, leaders)
            if (error is not None and error.code() not in _PASSING) or time.monotonic() >= late:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        with self._lock:
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown.add(name)
        if error is None:
            error = KafkaError(KafkaError._UNKNOWN_PARTITION, f"topic {name!r} has no partitions")
        raise TopicMetadataError(
            error,
            f"the partitions of topic {name!r} are not known, so the record was not sent: {error.str()}; create the "
            "topic, or wait for the brokers, and produce it again",
        )

    def look_again(self, producer: confluent_kafka.Producer) -> None:
        """Starts a thread that reads the topics that are due, unless one is running."""
        with self._lock:
            if self._looking:
                return
            self._looking = True
        renewing = threading.Thread(target=self._renew, args=(producer,), name="kafka-assignors-metadata", daemon=True)
        try:
            renewing.start()
        except RuntimeError:
            # The interpreter is shutting down and starts no more threads. The old partitions count.
            self._looking = False

    def _renew(self, producer: confluent_kafka.Producer) -> None:
        try:
            for topic in list(self.known.values()):
                if topic.due > time.monotonic():
                    continue
                leaders, error = _look(producer, topic.name, _REQUEST)
                if leaders:
                    self._put(topic.name, leaders)
                elif error is not None and error.code() in _GONE:
                    # The next record waits for the topic again, which may be created again.
                    with self._lock:
                        self.known.pop(topic.name, None)
                        self.cluster.put(topic.name, None)
                else:
                    topic.due = time.monotonic() + _RETRY
        except RuntimeError:
            logger.debug("the producer was closed while its metadata was being renewed")
        finally:
            self._looking = False

    def _put(self, name: str, leaders: dict[int, int]) -> ProducerTopic:
        with self._lock:
            topic = self.known.get(name) or ProducerTopic(name)
            if self.cluster.leaders(name) != leaders:
                self.cluster.put(name, leaders)
            topic.batches.extend([None] * (len(leaders) - len(topic.batches)))
            topic.count = len(leaders)
            topic.due = time.monotonic() + self._interval
            self.known[name] = topic
            self._unknown.discard(name)
            return topic


def _look_aside(
    producer: confluent_kafka.Producer, name: str, timeout: float
) -> tuple[dict[int, int] | None, KafkaError | None]:
    """As `_look`, on a thread of its own, since a delivery report may have called `produce`.

    Within a callback, `list_topics` would make the next callback abort the process (`own_client.py`). On another thread
    it deletes only the state of that thread.
    """
    answer: Future[tuple[dict[int, int] | None, KafkaError | None]] = Future()

    def ask() -> None:
        try:
            answer.set_result(_look(producer, name, timeout))
        except BaseException as failure:
            answer.set_exception(failure)

    try:
        threading.Thread(target=ask, name="kafka-assignors-metadata", daemon=True).start()
    except RuntimeError:
        # The interpreter is shutting down and starts no more threads.
        return _look(producer, name, timeout)
    return answer.result()


def _look(
    producer: confluent_kafka.Producer, name: str, timeout: float
) -> tuple[dict[int, int] | None, KafkaError | None]:
    """The leader of each partition, or the error; neither if the topic has no partitions."""
    try:
        found: Any = _Client.list_topics(producer, name, timeout).topics[name]
    except KafkaException as failure:
        return None, failure.args[0]
    if found.error is not None:
        return None, found.error
    leaders = {number: partition.leader for number, partition in found.partitions.items()}
    if sorted(leaders) != list(range(len(leaders))):
        # The topic is being created, and its partition numbers have gaps. The gaps must not count as partitions.
        return None, KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"the partitions of {name!r} are being created")
    return leaders, None
