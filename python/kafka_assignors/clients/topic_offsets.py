"""Topics at a moment: ids, partition counts, first and last offsets, through confluent-kafka."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import LagError, MissingDependencyError
from kafka_assignors.lag import check_reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ClusterOffsets", "TopicOffsets", "read_topic_offsets"]

# So many topics in a request: a description of all of a large cluster's would be one very large answer.
_TOPICS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """One topic.

    Attributes:
        name: its name.
        topic_id: its id, as Kafka prints it; None where the cluster tells none.
        begin: for each partition the first offset that is still there; None where its leader did not tell.
        end: for each partition the offset that the next record gets; None where its leader did not tell.
    """

    name: str
    topic_id: str | None
    begin: tuple[int | None, ...]
    end: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ClusterOffsets:
    """All topics that were asked for.

    Attributes:
        cluster: the cluster's id.
        ts: when the offsets were asked for, in milliseconds since 1970.
        topics: by name, those that exist.
    """

    cluster: str
    ts: int
    topics: tuple[TopicOffsets, ...]


def read_topic_offsets(
    config: Mapping[str, Any],
    topics: Iterable[str] | None = None,
    *,
    isolation_level: str = "read_uncommitted",
    timeout: float = 30.0,
) -> ClusterOffsets:
    """The partitions of topics with their first and last offsets: reads, joins no group.

    A partition without a leader costs itself only: its offsets are None.

    Args:
        config: settings of librdkafka, `bootstrap.servers` among them.
        topics: which; all but Kafka's internal ones by default. One that does not exist is left out.
        isolation_level: `"read_committed"` ends where the first open transaction begins.
        timeout: how many seconds all requests together may take.

    Raises:
        MissingDependencyError: confluent-kafka is not installed.
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
        LagError: the cluster cannot be read.
    """
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise MissingDependencyError(
            "reading the offsets of topics needs confluent-kafka 2: pip install kafka-assignors[confluent]"
        ) from error
    check_reading(isolation_level, timeout)
    try:
        admin = confluent_kafka.admin.AdminClient({"log_level": 0, **config})
    except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
        raise LagError(f"the settings for reading topics are refused: {error}") from error
    reading = _Reading(confluent_kafka, admin, time.monotonic() + timeout)
    isolation = getattr(confluent_kafka.IsolationLevel, isolation_level.upper())
    try:
        return reading.run(None if topics is None else set(topics), isolation)
    except (confluent_kafka.KafkaException, TimeoutError) as error:
        raise LagError(f"the offsets of topics could not be read: {error!r}") from error


class _Reading:
    def __init__(self, kafka: Any, admin: Any, late: float) -> None:
        self._kafka = kafka
        self._admin = admin
        self._late = late

    def _left(self) -> float:
        return max(0.001, self._late - time.monotonic())

    def run(self, wanted: set[str] | None, isolation: Any) -> ClusterOffsets:
        known = self._admin.list_topics(timeout=self._left())
        counts = {
            name: len(topic.partitions)
            for name, topic in sorted(known.topics.items())
            if (wanted is None and not name.startswith("__")) or (wanted is not None and name in wanted)
        }
        counts = {name: count for name, count in counts.items() if count}
        ids = self._ids(list(counts))
        ts = time.time_ns() // 1_000_000
        specs = self._kafka.admin.OffsetSpec
        # Asked for one after the other, beginnings first: what is written or deleted meanwhile makes the lag larger,
        # not negative.
        begin = self._offsets(counts, specs.earliest(), isolation)
        end = self._offsets(counts, specs.latest(), isolation)
        found = tuple(
            TopicOffsets(
                name,
                ids.get(name),
                tuple(begin.get((name, number)) for number in range(count)),
                tuple(end.get((name, number)) for number in range(count)),
            )
            for name, count in counts.items()
        )
        return ClusterOffsets(known.cluster_id or "", ts, found)

    def _ids(self, names: list[str]) -> dict[str, str]:
        ids: dict[str, str] = {}
        for start in range(0, len(names), _TOPICS_AT_ONCE):
            some = self._kafka.TopicCollection(names[start : start + _TOPICS_AT_ONCE])
            for name, future in self._admin.describe_topics(some, request_timeout=self._left()).items():
                topic_id = str(future.result(self._left()).topic_id or "")
                if topic_id:
                    # librdkafka writes the other alphabet of base64.
                    ids[name] = topic_id.rstrip("=").replace("+", "-").replace("/", "_")
        return ids

    def _offsets(self, counts: Mapping[str, int], spec: Any, isolation: Any) -> dict[tuple[str, int], int]:
        asked = {
            self._kafka.TopicPartition(topic, number): spec
            for topic, count in counts.items()
            for number in range(count)
        }
        if not asked:
            return {}
        futures = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._left())
        found: dict[tuple[str, int], int] = {}
        for each, future in futures.items():
            try:
                offset = future.result(self._left()).offset
            except self._kafka.KafkaException as error:
                if error.args[0].code() not in self._of_a_partition():
                    raise
                continue
            if offset >= 0:
                found[each.topic, each.partition] = offset
        return found

    def _of_a_partition(self) -> set[int]:
        """Errors that concern one partition and not the cluster."""
        errors = self._kafka.KafkaError
        return {
            errors.LEADER_NOT_AVAILABLE,
            errors.NOT_LEADER_FOR_PARTITION,
            errors.UNKNOWN_TOPIC_OR_PART,
            errors._UNKNOWN_PARTITION,
            errors.KAFKA_STORAGE_ERROR,
            errors.OFFSET_NOT_AVAILABLE,
            errors.TOPIC_AUTHORIZATION_FAILED,
        }
