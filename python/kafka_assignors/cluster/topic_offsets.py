"""Topics at a moment: ids, partition counts, first and next offsets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_assignors.cluster.questions import Questions
from kafka_assignors.cluster.topics import known, read_topics
from kafka_assignors.errors import ClusterError, LagError, NetworkError, OptionError
from kafka_assignors.lag import check_reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ClusterOffsets", "TopicOffsets", "read_topic_offsets"]


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """One topic.

    Attributes:
        name: its name.
        topic_id: its id, as Kafka prints it; None where the cluster has no ids.
        begin: for each partition the offset of its first record; None where no leader answers with one.
        end: for each partition the offset that its next record gets; None where no leader answers with one.
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
    """The partitions of topics with their first and next offsets. It joins no group and changes nothing.

    If a partition has no leader, its offsets are None; the others are still read.

    Args:
        config: settings as for `confluent_kafka`, `bootstrap.servers` among them; docs/connections.md has those of
            TLS and SASL.
        topics: their names; all but Kafka's internal ones by default. One that does not exist is left out.
        isolation_level: the end of a partition: `"read_committed"` stops at the first open transaction.
        timeout: the seconds that all requests together may take.

    Raises:
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
        LagError: a setting is refused, or the cluster cannot be read.
    """
    check_reading(isolation_level, timeout)
    try:
        questions = Questions(config, timeout)
    except OptionError as error:
        raise LagError(f"the settings for reading topics are refused: {error}") from error
    with questions:
        ts = time.time_ns() // 1_000_000
        try:
            cluster, found = read_topics(questions, None if topics is None else set(topics), isolation_level)
        except (ClusterError, NetworkError) as error:
            raise LagError(f"the offsets of topics could not be read: {error}") from error
    offsets = (TopicOffsets(each.name, each.topic_id, known(each.begin), known(each.end)) for each in found)
    return ClusterOffsets(cluster, ts, tuple(each for each in offsets if each.end))
