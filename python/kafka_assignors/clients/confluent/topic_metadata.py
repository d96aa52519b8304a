"""The topics that a producer writes to, as the cluster's metadata has them."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.errors import KafkaAssignorsError, PartitionerTypeError

if TYPE_CHECKING:
    from kafka_assignors.clients.confluent._batches import Batch

__all__ = ["Cluster", "Topic", "TopicMetadataError", "Topics"]

logger = logging.getLogger("kafka_assignors")

# What passes by itself: a topic being created, brokers that cannot be reached.
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
# Names of topics that do not exist come from anywhere: as many are remembered.
_MOST_UNKNOWN = 10_000


class TopicMetadataError(KafkaAssignorsError, KafkaException):
    """The partitions of a topic could not be told, so that a record to it was not sent.

    As with every `KafkaException`, `args[0]` is the `KafkaError`, with its code.
    """

    def __init__(self, error: KafkaError, message: str) -> None:
        super().__init__(error)
        self._message = message

    def __str__(self) -> str:
        return self._message


class Cluster:
    """What a partitioner is shown: the partitions of the topics that this producer writes to.

    `_partitions` has kafka-python's shape, since our partitioners look there: a topic whose dictionary is the same as
    before has the same partitions. So every change puts another dictionary in place, after what the methods say of it.
    """

    __slots__ = ("_all", "_available", "_partitions")

    def __init__(self) -> None:
        self._partitions: dict[str, dict[int, int]] = {}
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
        return self._partitions.get(topic, {}).get(partition, -1)

    def put(self, topic: str, leaders: dict[int, int] | None) -> None:
        """The leader of each partition of a topic, -1 for none; None if the topic is gone."""
        if leaders is None:
            for known in (self._partitions, self._available, self._all):
                known.pop(topic, None)
            return
        self._all[topic] = frozenset(leaders)
        self._available[topic] = frozenset(number for number, leader in leaders.items() if leader >= 0)
        self._partitions[topic] = leaders


class Topic:
    """One topic: how many partitions it has, when to look again, and the batch that each partition is taking."""

    __slots__ = ("batches", "count", "due", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.due = 0.0
        self.batches: list[Batch | None] = []


class Topics:
    """The topics of one producer, asked for when they are first written to and then once in a while.

    The first record to a topic waits for its partitions, as it does in Java. Later looks happen beside the work, on a
    thread of their own, and until they succeed the old partitions count.

    Args:
        patience: seconds that the first record waits for a topic.
        interval: seconds between two looks.
    """

    def __init__(self, patience: float, interval: float) -> None:
        self.cluster = Cluster()
        self.known: dict[str, Topic] = {}
        self._patience = patience
        self._interval = interval
        self._lock = threading.Lock()
        self._unknown: set[str] = set()
        self._looking = False

    def discover(self, producer: confluent_kafka.Producer, name: str) -> Topic:
        """The topic, waiting until the cluster knows it: with patience the first time, and not again.

        Raises:
            PartitionerTypeError: the name is none.
            TopicMetadataError: it does not in time, may not be written to, or has no partitions.
            RuntimeError: the producer is closed.
        """
        if not isinstance(name, str):
            raise PartitionerTypeError(f"topic is of type {type(name).__name__}; give its name")
        late = time.monotonic() + (0.0 if name in self._unknown else self._patience)
        pause = _PAUSE
        while True:
            leaders, error = _look(producer, name, _REQUEST)
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
        """Renews what is due, beside the work. Does nothing while that is under way."""
        with self._lock:
            if self._looking:
                return
            self._looking = True
        renewing = threading.Thread(target=self._renew, args=(producer,), name="kafka-assignors-metadata", daemon=True)
        try:
            renewing.start()
        except RuntimeError:
            # The interpreter takes no more threads, since it ends; what is known has to do.
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
                    # The next record asks again, with patience: it may have been made anew.
                    with self._lock:
                        self.known.pop(topic.name, None)
                        self.cluster.put(topic.name, None)
                else:
                    topic.due = time.monotonic() + _RETRY
        except RuntimeError:
            logger.debug("the producer was closed while its metadata was being renewed")
        finally:
            self._looking = False

    def _put(self, name: str, leaders: dict[int, int]) -> Topic:
        with self._lock:
            topic = self.known.get(name) or Topic(name)
            if self.cluster._partitions.get(name) != leaders:
                self.cluster.put(name, leaders)
            topic.batches.extend([None] * (len(leaders) - len(topic.batches)))
            topic.count = len(leaders)
            topic.due = time.monotonic() + self._interval
            self.known[name] = topic
            self._unknown.discard(name)
            return topic


def _look(
    producer: confluent_kafka.Producer, name: str, timeout: float
) -> tuple[dict[int, int] | None, KafkaError | None]:
    """The leader of each partition, or why it cannot be told; neither if the topic has no partitions."""
    try:
        found: Any = confluent_kafka.Producer.list_topics(producer, name, timeout).topics[name]
    except KafkaException as failure:
        return None, failure.args[0]
    if found.error is not None:
        return None, found.error
    leaders = {number: partition.leader for number, partition in found.partitions.items()}
    if sorted(leaders) != list(range(len(leaders))):
        # Between two brokers' answers; a partition number must not be taken for one that exists.
        return None, KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"the partitions of {name!r} are being created")
    return leaders, None
