"""The lags of a live cluster, read with kafka-python."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

# The module that uses this one has imported the client already, or said what to install.
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError
from kafka.protocol.consumer import IsolationLevel

from kafka_assignors.errors import LagError
from kafka_assignors.lag import check_reading, lags_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["AdminLagSource", "of_consumer"]


class AdminLagSource:
    """The lags of a live cluster, through an admin client of kafka-python: a `LagSource`.

    Each time it is asked it makes a client of its own, which joins no group and is closed again. That sends one request
    for the partitions, two for the commits, and for the ends one for each broker that leads, whatever the number of
    topics; and as many for the beginnings if there are partitions without a commit and `reset` is not `"latest"`.

    Args:
        config: settings of kafka-python, such as `{"bootstrap_servers": "localhost:9092"}`; those that an admin client
            does not have are left out.
        reset: the consumers' `auto_offset_reset`, which counts for partitions without a commit.
        isolation_level: the consumers' own: `"read_committed"` ends where the first open transaction begins.
        timeout: how many seconds all requests together may take.

    Raises:
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
        check_reading(isolation_level, timeout)
        self._config = {name: value for name, value in config.items() if name in KafkaAdminClient.DEFAULT_CONFIG}
        self._reset = reset
        self._isolation_level = isolation_level
        self._timeout = timeout

    def lags(self, topics: Iterable[str], group_id: str) -> dict[str, list[int]]:
        """The lag of every partition of those of the topics that exist.

        Raises:
            LagError: no group is named, or a request failed or was late.
        """
        if not group_id:
            raise LagError("no group is named; give LagBasedAssignor the group_id whose commits count")
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        late = time.monotonic() + self._timeout
        try:
            with _admin(self._config, self._timeout) as admin:
                return self._lags(admin, wanted, group_id, late)
        except KafkaError as error:
            raise LagError(f"the offsets of group {group_id!r} could not be read: {error!r}") from error

    def _lags(self, admin: Any, topics: list[str], group_id: str, late: float) -> dict[str, list[int]]:
        described = admin.describe_topics(topics)
        counts = {each["name"]: len(each["partitions"]) for each in described if not each["error_code"]}
        partitions = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        if not partitions:
            return {}
        self._check(late)
        commits = admin.list_group_offsets({group_id: partitions})[group_id]
        committed = {(each.topic, each.partition): told.offset for each, told in commits.items()}
        end = self._offsets(admin, partitions, OffsetSpec.LATEST, late)
        begin = {}
        if self._reset.lower() != "latest":
            fresh = [each for each in partitions if committed.get((each.topic, each.partition), -1) < 0]
            begin = self._offsets(admin, fresh, OffsetSpec.EARLIEST, late)
        return lags_of(counts, begin=begin, end=end, committed=committed, reset=self._reset)

    def _offsets(self, admin: Any, partitions: list[Any], spec: Any, late: float) -> dict[tuple[str, int], int]:
        if not partitions:
            return {}
        self._check(late)
        left = max(1, int((late - time.monotonic()) * 1000))
        found = admin.list_partition_offsets(
            dict.fromkeys(partitions, spec), isolation_level=self._isolation_level, timeout_ms=left
        )
        return {(each.topic, each.partition): told.offset for each, told in found.items()}

    def _check(self, late: float) -> None:
        if time.monotonic() >= late:
            raise LagError(f"the offsets could not be read within {self._timeout:g} s")


def of_consumer(consumer: Any, timeout: float) -> AdminLagSource:
    """The source that a consumer's own settings make."""
    config = dict(consumer.config)
    # The version that the consumer shows may be one that it found out itself, which stands for requests that a broker
    # need not serve: only what its user gave counts, and without it the new client finds out itself.
    try:
        config["api_version"] = consumer._client._manager.config["api_version"]
    except (AttributeError, KeyError):
        config["api_version"] = None
    # They would report the new client as another consumer.
    config["metric_reporters"] = []
    config["client_id"] = f"{config['client_id']}-lags"
    # By name, by number, or as kafka-python's own constant.
    isolation_level = IsolationLevel.build_from(config["isolation_level"]).name.lower()
    return AdminLagSource(config, reset=config["auto_offset_reset"], isolation_level=isolation_level, timeout=timeout)


@contextlib.contextmanager
def _admin(config: Mapping[str, Any], timeout: float) -> Any:
    """An admin client that gives up in time, and leaves nothing behind even where it cannot be built."""
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
