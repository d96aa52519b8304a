"""The lags of a live cluster, read with kafka-python."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

# The package has made sure that the client is there, or said what to install.
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError
from kafka.protocol.consumer import IsolationLevel

from kafka_assignors.clients.kafka_python._internals import given_api_version
from kafka_assignors.lag.reader import ClusterLagSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors.lag.reader import Deadline, Partition
    from kafka_assignors.lag.values import Offsets

__all__ = ["AdminLagSource", "of_consumer"]


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
        known = {name: value for name, value in config.items() if name in KafkaAdminClient.DEFAULT_CONFIG}
        super().__init__(known, **options)

    @contextlib.contextmanager
    def _connect(self, deadline: Deadline) -> Iterator[_Admin]:
        with _admin(self._config, self._timeout) as admin:
            yield _Admin(admin, self._isolation_level, deadline)

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

    def committed(self, group_id: str, partitions: Sequence[Partition]) -> Offsets:
        answer = self._admin.list_group_offsets({group_id: [TopicPartition(*each) for each in partitions]})[group_id]
        return {(each.topic, each.partition): commit.offset for each, commit in answer.items()}

    def next_offsets(self, partitions: Sequence[Partition]) -> Offsets:
        return self._offsets(partitions, OffsetSpec.LATEST)

    def first_offsets(self, partitions: Sequence[Partition]) -> Offsets:
        return self._offsets(partitions, OffsetSpec.EARLIEST)

    def _offsets(self, partitions: Sequence[Partition], spec: Any) -> Offsets:
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
    # By name, by number, or as kafka-python's own constant.
    isolation_level = IsolationLevel.build_from(config["isolation_level"]).name.lower()
    return AdminLagSource(config, reset=config["auto_offset_reset"], isolation_level=isolation_level, timeout=timeout)


@contextlib.contextmanager
def _admin(config: Mapping[str, Any], timeout: float) -> Any:
    """An admin client with this timeout. Its connections are closed at the end, also if its constructor fails."""
    make = config.get("kafka_client", KafkaAdminClient.DEFAULT_CONFIG["kafka_client"])
    made: list[Any] = []

    def remember(**settings: Any) -> Any:
        made.append(make(**settings))
        return made[-1]

    milliseconds = max(1, int(timeout * 1000))
    settings = dict(config) | {
        "kafka_client": remember,
        "request_timeout_ms": min(config.get("request_timeout_ms") or milliseconds, milliseconds),
        "bootstrap_timeout_ms": milliseconds,
    }
    try:
        yield KafkaAdminClient(**settings)
    finally:
        for client in made:
            client.close()
