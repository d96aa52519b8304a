"""aiokafka's listener that hears of differences only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The package has made sure that the client is there, or said what to install.
from aiokafka import ConsumerRebalanceListener

from kafka_assignors.clients.aiokafka._internals import as_coordinator, membership_of
from kafka_assignors.clients.common.adapter import calling
from kafka_assignors.clients.common.diff_listener import DiffListener, run_async

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RebalanceDiffListener"]


class RebalanceDiffListener(DiffListener):
    """KIP-54's clean-up listener: it hears of partitions that really came or went.

    Subclass it and override `on_partitions_gained` and `on_partitions_given_up`, as functions or coroutines; both get
    ascending lists of `TopicPartition`. Pass it as `consumer.subscribe(topics, listener=...)`. aiokafka is eager, so
    the difference is known only after the rebalance, and `on_partitions_given_up` is called then. If the membership was
    lost, it is called at once. After a generation without this consumer nothing counts as kept.

    aiokafka logs the errors of the callbacks, as of any listener. What is held stays right.

    Args:
        listener: an ordinary listener that is called as well, with everything, as by aiokafka.
    """

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """For aiokafka to call."""
        coordinator = calling(as_coordinator)
        now = None if coordinator is None else membership_of(coordinator)
        # aiokafka calls this also after a lost membership.
        gone = self._holdings.taken(self._holdings.held) if now is not None and now.lost else []
        await run_async(self._user("on_partitions_revoked", revoked) + self._due(gone))

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """For aiokafka to call."""
        coordinator = calling(as_coordinator)
        now = None if coordinator is None else membership_of(coordinator)
        given_up, gained = self._holdings.replaced(assigned, now)
        await run_async(self._due(given_up, gained) + self._user("on_partitions_assigned", assigned))

    async def close(self) -> None:
        """Gives up the partitions that are still held. Call it after `stop()`, of which aiokafka tells no listener."""
        await run_async(self._on_close())


ConsumerRebalanceListener.register(RebalanceDiffListener)
