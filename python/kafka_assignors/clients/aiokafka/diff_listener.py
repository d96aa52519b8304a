"""KIP-54's clean-up listener for aiokafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
from aiokafka import ConsumerRebalanceListener

from kafka_assignors.clients.aiokafka._internals import as_coordinator, membership_of
from kafka_assignors.clients.aiokafka.data_path import AiokafkaPath
from kafka_assignors.clients.common.adapter import calling
from kafka_assignors.clients.common.diff_listener import DiffListener, run_async

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RebalanceDiffListener"]


class RebalanceDiffListener(DiffListener):
    """KIP-54's clean-up listener: it is called only for partitions that were really gained or given up.

    Subclass it and override `on_partitions_gained` and `on_partitions_given_up`, as functions or coroutines; both get
    ascending lists of `TopicPartition`. Pass it as `consumer.subscribe(topics, listener=...)`, to our consumer or to
    aiokafka's with a plug-in. In an eager group the difference is known only after the rebalance, and
    `on_partitions_given_up` is called then; in a cooperative one, and if the membership was lost, at once. After a
    generation without this consumer no partition counts as kept.

    aiokafka logs the errors of the callbacks, as of any listener. The held partitions stay right.

    Args:
        listener: an ordinary listener that is called as well, with all partitions, as by aiokafka.
    """

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """aiokafka or our consumer calls it."""
        path = calling(_as_path)
        coordinator = calling(as_coordinator) if path is None else None
        now = None if coordinator is None else membership_of(coordinator)
        gone: list[Any] = []
        if path is not None and path.is_cooperative:
            gone = self._holdings.taken(revoked)
        elif now is not None and now.lost:
            # aiokafka calls this also after a lost membership.
            gone = self._holdings.taken(self._holdings.held)
        await run_async(self._user("on_partitions_revoked", revoked) + self._due(gone))

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """aiokafka or our consumer calls it."""
        path = calling(_as_path)
        if path is not None and path.is_cooperative:
            due = self._due([], self._holdings.added(assigned, path.membership))
        else:
            coordinator = calling(as_coordinator) if path is None else None
            now = path.membership if path is not None else None
            if coordinator is not None:
                now = membership_of(coordinator)
            due = self._due(*self._holdings.replaced(assigned, now))
        await run_async(due + self._user("on_partitions_assigned", assigned))

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """Our consumer calls it: other members may own these partitions already."""
        name = "on_partitions_lost" if hasattr(self._listener, "on_partitions_lost") else "on_partitions_revoked"
        await run_async(self._user(name, lost) + self._due(self._holdings.taken(lost)))

    async def close(self) -> None:
        """Gives up the partitions that are still held. Call it after `stop()`, in which aiokafka calls no listener."""
        await run_async(self._on_close())


def _as_path(caller: object) -> AiokafkaPath | None:
    """`caller`, if it is the data path of our consumer; else None."""
    return caller if isinstance(caller, AiokafkaPath) else None


ConsumerRebalanceListener.register(RebalanceDiffListener)
