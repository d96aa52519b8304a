"""Commits and committed offsets of a consumer, with the client's errors. Errors that pass are tried again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, ConsumerStoppedError
from aiokafka.structs import OffsetAndMetadata

from kafka_assignors.clients.aiokafka.errors import commit_failure, error_of, is_passing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.clients.aiokafka.config import ConsumerConfig
    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import Partition, Position

__all__ = ["Committing"]

# How long the membership tries each time; after that the client's rules decide whether to try again.
_SECONDS = 30.0


class Committing:
    """The commits that an application asks for.

    Args:
        side: the application's side of the membership.
        config: the consumer's settings.
    """

    def __init__(self, side: ApplicationSide, config: ConsumerConfig) -> None:
        self._side = side
        self._config = config

    async def commit(self, offsets: Mapping[Partition, Position]) -> None:
        """Commits, and tries again until the commit has succeeded or cannot succeed.

        Raises:
            CommitFailedError: the consumer is no longer the member that it was.
            KafkaError: another refusal.
            ConsumerStoppedError: the membership has ended.
        """
        left = dict(offsets)
        while left:
            outcome = None
            if not self._side.has_left:
                outcome = await self._side.commits.send_and_wait_on_loop(left, _SECONDS)
            if outcome is None:
                raise ConsumerStoppedError
            refused = dict.fromkeys(left, outcome.error_code) if outcome.error_code else outcome.refused
            if outcome.dropped:
                raise CommitFailedError(f"these are not this consumer's any more: {sorted(outcome.dropped)}")
            final = [code for code in refused.values() if not is_passing(code)]
            if final:
                raise commit_failure(final[0], f"the group refused the commit: {final[0]}", self._config.group_id)
            left = {each: left[each] for each in refused}
            if left:
                await asyncio.sleep(self._config.retry_backoff_ms / 1000)

    async def committed(self, partitions: Iterable[Any]) -> dict[Any, OffsetAndMetadata]:
        """The group's commits. A partition without one is left out.

        Raises:
            KafkaError: they cannot be read.
            ConsumerStoppedError: the membership has ended.
        """
        wanted = {(each.topic, each.partition) for each in partitions}
        while True:
            found = None
            if not self._side.has_left:
                member = self._side.ensure_fetcher()
                found = await self._side.commits.committed_on_loop(member, wanted, _SECONDS)
            if found is None:
                raise ConsumerStoppedError
            codes = {found.error_code, *found.refused.values()} - {0}
            if not codes:
                return {
                    TopicPartition(*each): OffsetAndMetadata(at.offset, at.metadata or "")
                    for each, at in found.positions.items()
                    if at.offset >= 0
                }
            final = [code for code in codes if not is_passing(code)]
            if final:
                raise error_of(final[0], f"the group's commits cannot be read: {final[0]}", None, self._config.group_id)
            await asyncio.sleep(self._config.retry_backoff_ms / 1000)
