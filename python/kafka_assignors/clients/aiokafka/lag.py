"""The lags of a live cluster, read with aiokafka."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
from aiokafka.abc import AbstractTokenProvider
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import KafkaConnectionError, KafkaError, LeaderNotAvailableError, NoError, for_code
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from kafka_assignors.clients.aiokafka._internals import settings_of_client
from kafka_assignors.clients.aiokafka.log_dirs import DescribeLogDirs
from kafka_assignors.lag.reader import FIRST_OFFSET, ISOLATION_LEVELS, NEXT_OFFSET, ClusterLagSource

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence

    from kafka_assignors.lag.reader import Deadline, Partition
    from kafka_assignors.lag.values import KnownOffsets

__all__ = ["AdminLagSource", "of_client"]

# The settings of a consumer's client that another client of the same cluster needs.
_SETTINGS = (
    "bootstrap_servers",
    "client_id",
    "request_timeout_ms",
    "security_protocol",
    "ssl_context",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "sasl_oauth_token_provider",
)


# Up to aiokafka 0.12 a request is a list of its versions; later it finds the version for a broker by itself.
_FetchOffsets: Any = OffsetFetchRequest[2] if isinstance(OffsetFetchRequest, list) else OffsetFetchRequest
_ListOffsets: Any = OffsetRequest[2] if isinstance(OffsetRequest, list) else OffsetRequest


class AdminLagSource(ClusterLagSource):
    """The lags of a live cluster, through a client of aiokafka: a `LagSource`.

    Each reading makes a client of its own, on an event loop of its own, which joins no group and is closed again. It
    sends one request for the partitions; for each 10,000 partitions, two for the commits and, to each broker that
    leads, one for the ends; and as many for the beginnings if there are partitions without a commit and `reset` is not
    `"latest"`. Errors that pass are tried again.

    Do not call it where an event loop runs: it blocks. `LagBasedAssignor` calls it on a thread.

    Args:
        config: settings of `aiokafka.client.AIOKafkaClient`, such as `{"bootstrap_servers": "localhost:9092"}`.
        reset: the consumers' `auto_offset_reset`, which counts for partitions without a commit.
        isolation_level: the consumers' own: `"read_committed"` ends where the first open transaction begins.
        timeout: the seconds that all requests together may take, once a bootstrap server has answered; one that does
            not answer may take as long.

    Raises:
        OptionError: `timeout` is not positive, or `isolation_level` is unknown.
    """

    _errors = (KafkaError, TimeoutError)

    @contextlib.contextmanager
    def _connect(self, deadline: Deadline) -> Iterator[_Client]:
        milliseconds = max(1, int(self._timeout * 1000))
        limit = min(self._config.get("request_timeout_ms") or milliseconds, milliseconds)

        async def make() -> Any:
            return AIOKafkaClient(**(self._config | {"request_timeout_ms": limit}))

        with asyncio.Runner() as runner:
            client = runner.run(make())
            try:
                # No limit here: each step of `bootstrap` has its own, and cancelling would leave a connection open.
                runner.run(client.bootstrap())
                yield _Client(client, runner, ISOLATION_LEVELS[self._isolation_level], deadline)
            finally:
                runner.run(client.close())

    def _is_passing(self, error: Any) -> bool:
        return isinstance(error, KafkaError) and bool(error.retriable)


class _Client:
    """An `OffsetReader`."""

    def __init__(self, client: Any, runner: asyncio.Runner, isolation: int, deadline: Deadline) -> None:
        self._client = client
        self._runner = runner
        self._isolation = isolation
        self._deadline = deadline
        self._is_first = True

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        return self._run(self._read_counts(topics))

    def committed(self, group_id: str, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._run(self._read_committed(group_id, partitions))

    def next_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._run(self._read_offsets(partitions, NEXT_OFFSET))

    def first_offsets(self, partitions: Sequence[Partition]) -> KnownOffsets:
        return self._run(self._read_offsets(partitions, FIRST_OFFSET))

    def log_bytes(self, topics: Mapping[str, int]) -> dict[Partition, int]:
        """The size of each partition's log, of its largest replica.

        Raises:
            KafkaError: a broker refuses, or does not know the request.
        """
        return self._run(self._read_log_bytes(topics))

    def _run(self, coroutine: Coroutine[Any, Any, dict[Any, int]]) -> dict[Any, int]:
        async def in_time() -> dict[Any, int]:
            async with asyncio.timeout(self._deadline.left):
                return await coroutine

        return self._runner.run(in_time())

    async def _read_counts(self, topics: Sequence[str]) -> dict[str, int]:
        # `set_topics` asks for the metadata if the topics are new, and only then.
        asked = self._client.set_topics(topics) if self._is_first else self._client.force_metadata_update()
        self._is_first = False
        if not await asked:
            raise KafkaConnectionError("no broker answers with the partitions")
        return {topic: len(self._client.cluster.partitions_for_topic(topic) or ()) for topic in topics}

    async def _read_committed(self, group_id: str, partitions: Sequence[Partition]) -> dict[Partition, int]:
        coordinator = await self._client.coordinator_lookup(CoordinationType.GROUP, group_id)
        asked: dict[str, list[int]] = defaultdict(list)
        for topic, number in partitions:
            asked[topic].append(number)
        response = await self._client.send(coordinator, _FetchOffsets(group_id, list(asked.items())))
        _check(getattr(response, "error_code", 0))
        found: dict[Partition, int] = {}
        for topic, answers in response.topics:
            for number, offset, _, code in answers:
                _check(code)
                found[topic, number] = offset
        return found

    async def _read_offsets(self, partitions: Sequence[Partition], timestamp: int) -> dict[Partition, int]:
        asked: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for topic, number in partitions:
            leader = self._client.cluster.leader_for_partition(TopicPartition(topic, number))
            if leader is None or leader < 0:
                raise LeaderNotAvailableError(f"partition {number} of {topic!r} has no leader")
            asked[leader][topic].append((number, timestamp))
        requests = [
            self._client.send(leader, _ListOffsets(-1, self._isolation, list(of_leader.items())))
            for leader, of_leader in asked.items()
        ]
        found: dict[Partition, int] = {}
        for response in await asyncio.gather(*requests):
            for topic, answers in response.topics:
                for number, code, _, offset in answers:
                    _check(code)
                    found[topic, number] = offset
        return found

    async def _read_log_bytes(self, topics: Mapping[str, int]) -> dict[Partition, int]:
        requests = [
            self._client.send(broker.nodeId, DescribeLogDirs(topics)) for broker in self._client.cluster.brokers()
        ]
        found: dict[Partition, int] = {}
        for response in await asyncio.gather(*requests):
            for code, _, of_folder in response.folders:
                _check(code)
                for topic, partitions in of_folder:
                    for number, size, _, _ in partitions:
                        found[topic, number] = max(found.get((topic, number), 0), size)
        return found


def _check(code: int) -> None:
    error = for_code(code)
    if error is not NoError:
        raise error()


class _OnItsLoop(AbstractTokenProvider):  # type: ignore[misc]
    """The consumer's token provider, for a client on another loop.

    The provider is called on the consumer's loop, since its connections may belong to that loop.
    """

    def __init__(self, provider: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._provider = provider
        self._loop = loop

    async def token(self) -> Any:
        asked = asyncio.run_coroutine_threadsafe(self._provider.token(), self._loop)
        return await asyncio.wrap_future(asked)

    def extensions(self) -> Any:
        return self._provider.extensions()


def of_client(
    client: Any, loop: asyncio.AbstractEventLoop, *, reset: str, isolation_level: str, timeout: float
) -> AdminLagSource:
    """The source with the settings of a consumer's client.

    Raises:
        IncompatibleClientError: this version does not show them.
    """
    config = settings_of_client(client, _SETTINGS)
    config["client_id"] = f"{config['client_id']}-lags"
    if config["sasl_oauth_token_provider"] is not None:
        config["sasl_oauth_token_provider"] = _OnItsLoop(config["sasl_oauth_token_provider"], loop)
    return AdminLagSource(config, reset=reset, isolation_level=isolation_level, timeout=timeout)
