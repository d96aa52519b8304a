"""The lags of a live cluster, read with kafka-python."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
import kafka.admin
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, for_code

from kafka_assignors.clients.kafka_python._internals import given_api_version, isolation_name
from kafka_assignors.lag.reader import ClusterLagSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kafka_assignors.lag.reader import Deadline, OffsetReader, Partition
    from kafka_assignors.lag.values import KnownOffsets

__all__ = ["AdminLagSource", "of_consumer"]

# Before version 3 the admin client lists the offsets of groups only; a consumer lists those of partitions.
_LISTS_OFFSETS = hasattr(kafka.admin, "OffsetSpec")


class AdminLagSource(ClusterLagSource):
    """The lags of a live cluster, through an admin client of kafka-python: a `LagSource`.

    Each reading makes a client of its own, which joins no group and is closed again. It sends one request for the
    partitions; for each 10,000 partitions, one for the commits and, to each broker that leads, one for the ends; and as
    many for the beginnings if there are partitions without a commit and `reset` is not `"latest"`. Errors that pass are
    tried again.

    Args:
        config: settings of kafka-python, such as `{"bootstrap_servers": "localhost:9092"}`; those that an admin client
            does not have are left out.
        reset: the consumers' `auto_offset_reset`, which counts for partitions without a commit.
        isolation_level: the consumers' own: `"read_committed"` ends where the first open transaction begins.
        timeout: the seconds that all requests together may take.

    Raises:
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """

    _errors = (KafkaError,)

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        clients = [KafkaAdminClient] if _LISTS_OFFSETS else [KafkaAdminClient, KafkaConsumer]
        known = {name: value for name, value in config.items() if any(name in each.DEFAULT_CONFIG for each in clients)}
        super().__init__(known, **options)

    @contextlib.contextmanager
    def _connect(self, deadline: Deadline) -> Iterator[OffsetReader]:
        with _admin(self._config, self._timeout) as admin:
            if _LISTS_OFFSETS:
                yield _Admin(admin, self._isolation_level, deadline)
                return
            with contextlib.closing(_groupless(self._config, self._timeout, self._isolation_level)) as consumer:
                yield _AdminAndConsumer(admin, consumer)

    def _is_passing(self, error: Any) -> bool:
        return bool(error.retriable)


class _Admin:
    """An `OffsetReader`."""

    def __init__(self, admin: Any, isolation_level: str, deadline: Deadline) -> None:
        self._admin = admin
        self._isolation_level = isolation_level
        self._deadline = deadline

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        described = self._admin.describe_topics(list(topics))
        return {each["name"]: len(each["partitions"]) for each in described if not each["error_code"]}

    def committed(self, group_id: str, partitions: Sequence[Partition]) -> KnownOffsets:
        answer = self._admin.list_group_offsets({group_id: [TopicPartition(*each) for each in partitions]})[group_id]
        return {(each.topic, each.partition): commit.offset for each, commit in answer.items()}

    def next_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._offsets(partitions, kafka.admin.OffsetSpec.LATEST)

    def first_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._offsets(partitions, kafka.admin.OffsetSpec.EARLIEST)

    def log_bytes(self, topics: Mapping[str, int]) -> dict[Partition, int]:
        """The size of each partition's log, of its largest replica.

        Raises:
            KafkaError: a broker refuses, as without the ACL `Describe` on the cluster.
        """
        asked = {topic: list(range(count)) for topic, count in topics.items()}
        found: dict[Partition, int] = {}
        for broker in self._admin.describe_log_dirs(asked):
            for folder in broker["log_dirs"]:
                if folder["error_code"]:
                    raise for_code(folder["error_code"])(f"broker {broker.get('broker')}: DescribeLogDirs")
                for topic in folder["topics"]:
                    for each in topic["partitions"]:
                        key = topic["name"], each["partition_index"]
                        found[key] = max(found.get(key, 0), each["partition_size"])
        return found

    def _offsets(self, partitions: Sequence[Partition], spec: Any) -> KnownOffsets:
        asked = {TopicPartition(*each): spec for each in partitions}
        milliseconds = max(1, int(self._deadline.left * 1000))
        answer = self._admin.list_partition_offsets(
            asked, isolation_level=self._isolation_level, timeout_ms=milliseconds
        )
        return {(each.topic, each.partition): found.offset for each, found in answer.items()}


def of_consumer(consumer: Any, timeout: float) -> AdminLagSource:
    """The source with the settings of a consumer."""
    config = dict(consumer.config)
    # The consumer may show a version that it found by itself, and a broker need not serve all requests of that version.
    # So only the version that its user gave counts; without one the new client finds out by itself.
    config["api_version"] = given_api_version(consumer)
    # The reporters would count the new client as another consumer.
    config["metric_reporters"] = []
    config["client_id"] = f"{config['client_id']}-lags"
    # Up to 2.0 a consumer has no such setting, and reads everything.
    isolation_level = isolation_name(config.get("isolation_level", "read_uncommitted"))
    # The new client joins no group; in the drop-in consumer these two settings belong to the membership.
    config.pop("group_id", None)
    config.pop("group_instance_id", None)
    return AdminLagSource(config, reset=config["auto_offset_reset"], isolation_level=isolation_level, timeout=timeout)


class _AdminAndConsumer:
    """An `OffsetReader` with the clients of kafka-python 2."""

    def __init__(self, admin: Any, consumer: Any) -> None:
        self._admin = admin
        self._consumer = consumer

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        # The admin client of 2.3 asks for access rights as well, and fails to read them in the answer.
        numbers = {topic: self._consumer.partitions_for_topic(topic) for topic in topics}
        return {topic: len(found) for topic, found in numbers.items() if found}

    def committed(self, group_id: str, partitions: Sequence[Partition]) -> KnownOffsets:
        asked = [TopicPartition(*each) for each in partitions]
        answer = self._admin.list_consumer_group_offsets(group_id, partitions=asked)
        return {(each.topic, each.partition): commit.offset for each, commit in answer.items()}

    def next_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._offsets(self._consumer.end_offsets, partitions)

    def first_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._offsets(self._consumer.beginning_offsets, partitions)

    def _offsets(self, ask: Callable[[list[Any]], Any], partitions: Sequence[Partition]) -> KnownOffsets:
        answer = ask([TopicPartition(*each) for each in partitions])
        return {(each.topic, each.partition): offset for each, offset in answer.items()}


def _groupless(config: Mapping[str, Any], timeout: float, isolation_level: str) -> Any:
    """A consumer without a group, with this timeout."""
    known = KafkaConsumer.DEFAULT_CONFIG
    limit = _limit(config, timeout)
    settings = {name: value for name, value in config.items() if name in known} | {
        "group_id": None,
        "enable_auto_commit": False,
        "isolation_level": isolation_level,
        "request_timeout_ms": limit,
        "bootstrap_timeout_ms": limit,
        # The client refuses a `request_timeout_ms` that is not longer than this.
        "fetch_max_wait_ms": min(config.get("fetch_max_wait_ms", 500), limit - 1),
    }
    return KafkaConsumer(**{name: value for name, value in settings.items() if name in known})


def _limit(config: Mapping[str, Any], timeout: float) -> int:
    """How long a request may take, in milliseconds."""
    milliseconds = max(1, int(timeout * 1000))
    return min(config.get("request_timeout_ms") or milliseconds, milliseconds)


@contextlib.contextmanager
def _admin(config: Mapping[str, Any], timeout: float) -> Any:
    """An admin client with this timeout. Its connections are closed at the end, also if its constructor fails."""
    known = KafkaAdminClient.DEFAULT_CONFIG
    make = config.get("kafka_client", known.get("kafka_client"))
    made: list[Any] = []

    def remember(**settings: Any) -> Any:
        made.append(make(**settings))
        return made[-1]

    settings = dict(config) | {
        "kafka_client": remember,
        "request_timeout_ms": _limit(config, timeout),
        "bootstrap_timeout_ms": max(1, int(timeout * 1000)),
    }
    try:
        admin = KafkaAdminClient(**{name: value for name, value in settings.items() if name in known})
        if make is None:
            # This release makes its client by itself, and not with `remember`.
            made.append(admin)
        yield admin
    finally:
        for client in made:
            client.close()
