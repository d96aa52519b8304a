"""The lags of a live cluster, read with confluent-kafka."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import MissingDependencyError
from kafka_assignors.lag.reader import ClusterLagSource, Deadline, Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors.lag.values import KnownOffsets

__all__ = ["ConfluentLagSource"]


class ConfluentLagSource(ClusterLagSource):
    """The lags of a live cluster, through the admin client of confluent-kafka: a `LagSource`.

    Each reading makes a client of its own, which joins no group, and sends at most one request for each kind of
    question to each broker and for each 10,000 partitions: the partitions, the committed offsets, the ends and,
    for partitions without a commit unless `reset` is `"latest"`, the beginnings. After an error that may pass there is
    another attempt.

    Args:
        config: settings of librdkafka, such as `{"bootstrap.servers": "localhost:9092"}`.
        reset: the consumers' `auto_offset_reset`, which counts for partitions without a commit.
        isolation_level: as of the consumers: with `"read_committed"`, a partition ends at its first open transaction.
        timeout: the seconds that all requests together may take.

    Raises:
        MissingDependencyError: confluent-kafka is not installed.
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        reset: str = "latest",
        isolation_level: str = "read_uncommitted",
        timeout: float = 5.0,
    ) -> None:
        try:
            import confluent_kafka.admin
        except ImportError as error:
            raise MissingDependencyError(
                "kafka_assignors.lag.ConfluentLagSource needs confluent-kafka 2: pip install kafka-assignors[confluent]"
            ) from error
        super().__init__(config, reset=reset, isolation_level=isolation_level, timeout=timeout)
        self._kafka: Any = confluent_kafka
        self._errors = (confluent_kafka.KafkaException, TimeoutError)

    @contextlib.contextmanager
    def _connect(self, deadline: Deadline) -> Iterator[_ConfluentAdmin]:
        isolation = getattr(self._kafka.IsolationLevel, self._isolation_level.upper())
        reader = _ConfluentAdmin(self._kafka, self._kafka.admin.AdminClient(self._config), isolation, deadline)
        try:
            yield reader
        finally:
            reader.close()

    def _is_passing(self, error: Any) -> bool:
        known = self._kafka.KafkaError
        return isinstance(error, self._kafka.KafkaException) and error.args[0].code() in {
            known.COORDINATOR_LOAD_IN_PROGRESS,
            known.COORDINATOR_NOT_AVAILABLE,
            known.FENCED_LEADER_EPOCH,
            known.LEADER_NOT_AVAILABLE,
            known.NOT_COORDINATOR,
            known.NOT_LEADER_FOR_PARTITION,
            known.OFFSET_NOT_AVAILABLE,
            known.UNKNOWN_LEADER_EPOCH,
            known._UNKNOWN_PARTITION,
        }


class _ConfluentAdmin:
    """An `OffsetReader`."""

    def __init__(self, kafka: Any, admin: Any, isolation: Any, deadline: Deadline) -> None:
        self._kafka = kafka
        self._admin = admin
        self._isolation = isolation
        self._deadline = deadline

    def close(self) -> None:
        """Ends the client, in this thread.

        The traceback of an error keeps this object. Otherwise Python's collector frees the client later, possibly in a
        thread of the client itself that completes a late answer; librdkafka aborts the process if a client ends there.
        """
        # In old releases a client ends with the last reference to it, and not before.
        if hasattr(self._admin, "__exit__"):
            self._admin.__exit__(None, None, None)
        self._admin = None

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        known = self._admin.list_topics(timeout=self._deadline.left).topics
        return {topic: len(known[topic].partitions) for topic in topics if topic in known}

    def committed(self, group_id: str, partitions: Sequence[Partition]) -> KnownOffsets:
        asked = [self._kafka.TopicPartition(*each) for each in partitions]
        group = self._kafka.ConsumerGroupTopicPartitions(group_id, asked)
        answers = self._admin.list_consumer_group_offsets([group], request_timeout=self._deadline.left)
        found: dict[Partition, int] = {}
        for each in answers[group_id].result(self._deadline.left).topic_partitions:
            if each.error is not None:
                raise self._kafka.KafkaException(each.error)
            found[each.topic, each.partition] = each.offset
        return found

    def next_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._offsets(partitions, self._kafka.admin.OffsetSpec.latest())

    def first_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._offsets(partitions, self._kafka.admin.OffsetSpec.earliest())

    def _offsets(self, partitions: Sequence[Partition], spec: Any) -> KnownOffsets:
        asked = {self._kafka.TopicPartition(*each): spec for each in partitions}
        answers = self._admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=self._deadline.left)
        return {
            (each.topic, each.partition): future.result(self._deadline.left).offset for each, future in answers.items()
        }
