"""The lags of a live cluster, read with aiokafka."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

# The module that uses this one has imported the client already, or said what to install.
from aiokafka.abc import AbstractTokenProvider
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import KafkaConnectionError, KafkaError, LeaderNotAvailableError, NoError, for_code
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from kafka_assignors.errors import LagError
from kafka_assignors.lag import check_reading, lags_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["AdminLagSource", "of_client"]

_LATEST, _EARLIEST = -1, -2
_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
_BACKOFF = 0.1

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


class AdminLagSource:
    """The lags of a live cluster, through a client of aiokafka: a `LagSource`.

    Each time it is asked it makes a client of its own, on an event loop of its own, which joins no group and is closed
    again. That sends one request for the partitions, two for the commits, and for the ends one for each broker that
    leads, whatever the number of topics; and as many for the beginnings if there are partitions without a commit and
    `reset` is not `"latest"`. Errors that pass are tried again.

    Do not call it where an event loop runs: it blocks. `LagBasedAssignor` asks it on a thread.

    Args:
        config: settings of `aiokafka.client.AIOKafkaClient`, such as `{"bootstrap_servers": "localhost:9092"}`.
        reset: the consumers' `auto_offset_reset`, which counts for partitions without a commit.
        isolation_level: the consumers' own: `"read_committed"` ends where the first open transaction begins.
        timeout: how many seconds all requests together may take, once a bootstrap server has answered; one that does
            not answer may take as long.

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
        self._config = dict(config)
        self._reset = reset
        self._isolation = _ISOLATION[isolation_level]
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
        last: list[KafkaError] = []
        try:
            return asyncio.run(self._lags(wanted, group_id, last))
        except (KafkaError, TimeoutError) as error:
            reason = last[-1] if last and isinstance(error, TimeoutError) else error
            raise LagError(f"the offsets of group {group_id!r} could not be read: {reason!r}") from error

    async def _lags(self, topics: list[str], group_id: str, failures: list[KafkaError]) -> dict[str, list[int]]:
        milliseconds = max(1, int(self._timeout * 1000))
        limit = min(self._config.get("request_timeout_ms") or milliseconds, milliseconds)
        client = AIOKafkaClient(**(self._config | {"request_timeout_ms": limit}))
        late = asyncio.get_running_loop().time() + self._timeout
        try:
            # Not to be cancelled: it would leave a connection open. Each of its steps has its own time.
            await client.bootstrap()
            async with asyncio.timeout_at(late):
                if not await client.set_topics(topics):
                    raise KafkaConnectionError("no broker tells the partitions")
                return await self._ask_until_told(client, topics, group_id, failures)
        finally:
            await client.close()

    async def _ask_until_told(
        self, client: Any, topics: list[str], group_id: str, failures: list[KafkaError]
    ) -> dict[str, list[int]]:
        while True:
            try:
                return await self._ask(client, topics, group_id)
            except KafkaError as error:
                if not error.retriable:
                    raise
                failures.append(error)
            await asyncio.sleep(_BACKOFF)
            await client.force_metadata_update()

    async def _ask(self, client: Any, topics: list[str], group_id: str) -> dict[str, list[int]]:
        counts = {topic: len(client.cluster.partitions_for_topic(topic) or ()) for topic in topics}
        partitions = [(topic, number) for topic, count in counts.items() for number in range(count)]
        if not partitions:
            return {}
        committed, end = await asyncio.gather(
            self._committed(client, partitions, group_id), self._offsets(client, partitions, _LATEST)
        )
        begin = {}
        if self._reset.lower() != "latest":
            fresh = [key for key in partitions if committed.get(key, -1) < 0]
            begin = await self._offsets(client, fresh, _EARLIEST)
        known = {topic: count for topic, count in counts.items() if count}
        return lags_of(known, begin=begin, end=end, committed=committed, reset=self._reset)

    async def _committed(
        self, client: Any, partitions: list[tuple[str, int]], group_id: str
    ) -> dict[tuple[str, int], int]:
        coordinator = await client.coordinator_lookup(CoordinationType.GROUP, group_id)
        asked: dict[str, list[int]] = defaultdict(list)
        for topic, number in partitions:
            asked[topic].append(number)
        response = await client.send(coordinator, OffsetFetchRequest(group_id, list(asked.items())))
        _check(getattr(response, "error_code", 0))
        found: dict[tuple[str, int], int] = {}
        for topic, told in response.topics:
            for number, offset, _, code in told:
                _check(code)
                found[topic, number] = offset
        return found

    async def _offsets(
        self, client: Any, partitions: list[tuple[str, int]], timestamp: int
    ) -> dict[tuple[str, int], int]:
        asked: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for topic, number in partitions:
            leader = client.cluster.leader_for_partition(TopicPartition(topic, number))
            if leader is None or leader < 0:
                raise LeaderNotAvailableError(f"partition {number} of {topic!r} has no leader")
            asked[leader][topic].append((number, timestamp))
        requests = [
            client.send(leader, OffsetRequest(-1, self._isolation, list(of_leader.items())))
            for leader, of_leader in asked.items()
        ]
        found: dict[tuple[str, int], int] = {}
        for response in await asyncio.gather(*requests):
            for topic, answers in response.topics:
                for number, code, _, offset in answers:
                    _check(code)
                    found[topic, number] = offset
        return found


def _check(code: int) -> None:
    error = for_code(code)
    if error is not NoError:
        raise error()


class _OnItsLoop(AbstractTokenProvider):  # type: ignore[misc]
    """The consumer's token provider for a client on another loop: asked on its own, where it may have connections."""

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
    """The source that the settings of a consumer's client make. AttributeError if this version does not show them."""
    config = {name: getattr(client, f"_{name}") for name in _SETTINGS}
    config["client_id"] = f"{config['client_id']}-lags"
    if config["sasl_oauth_token_provider"] is not None:
        config["sasl_oauth_token_provider"] = _OnItsLoop(config["sasl_oauth_token_provider"], loop)
    return AdminLagSource(config, reset=reset, isolation_level=isolation_level, timeout=timeout)
