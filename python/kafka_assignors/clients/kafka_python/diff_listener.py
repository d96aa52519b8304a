"""KIP-54's clean-up listeners for kafka-python."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
import kafka
from kafka import ConsumerRebalanceListener

from kafka_assignors.clients.common.adapter import Membership, calling
from kafka_assignors.clients.common.diff_listener import DiffListener, Step, run, run_async
from kafka_assignors.clients.kafka_python._internals import as_coordinator, membership_of, rebalances_cooperatively
from kafka_assignors.clients.kafka_python.listeners import rebalancing
from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AsyncRebalanceDiffListener", "RebalanceDiffListener"]


class _DiffListener(DiffListener):
    """The common half of the two listeners."""

    def __init__(self, listener: Any = None, *, cooperative: bool | None = None) -> None:
        super().__init__(listener)
        self._cooperative = cooperative

    def _rebalance(self) -> tuple[bool, Membership | None]:
        """Whether the group rebalances cooperatively, and the membership: of our consumer, or of the client's."""
        found = rebalancing.get()
        if found is None:
            coordinator = calling(as_coordinator)
            now = None if coordinator is None else membership_of(coordinator)
            found = rebalances_cooperatively(coordinator), now
        return found if self._cooperative is None else (self._cooperative, found[1])

    def _on_revoked(self, revoked: Iterable[Any]) -> list[Step]:
        is_cooperative, _ = self._rebalance()
        gone = self._holdings.taken(revoked) if is_cooperative else []
        return self._user("on_partitions_revoked", revoked) + self._due(gone)

    def _on_assigned(self, assigned: Iterable[Any]) -> list[Step]:
        is_cooperative, now = self._rebalance()
        if is_cooperative:
            due = self._due([], self._holdings.added(assigned, now))
        else:
            due = self._due(*self._holdings.replaced(assigned, now))
        return due + self._user("on_partitions_assigned", assigned)

    def _on_lost(self, lost: Iterable[Any]) -> list[Step]:
        # The listeners of kafka-python 2 have no method for a loss.
        name = "on_partitions_lost" if hasattr(self._listener, "on_partitions_lost") else "on_partitions_revoked"
        return self._user(name, lost) + self._due(self._holdings.taken(lost))


class RebalanceDiffListener(_DiffListener, ConsumerRebalanceListener):  # type: ignore[misc]
    """KIP-54's clean-up listener: it is called only for partitions that were really gained or given up.

    Subclass it and override `on_partitions_gained` and `on_partitions_given_up`; both get ascending lists of
    `TopicPartition`. Pass it as `consumer.subscribe(topics, listener=...)`. In eager rebalancing the difference is
    known only after the rebalance, so `on_partitions_given_up` is called then. Partitions that are lost, or revoked in
    cooperative rebalancing, are given up at once. It works with our `KafkaConsumer`, and with the client's own in
    version 3.

    kafka-python reports the errors of the callbacks, as of any listener. The held partitions stay right.

    Args:
        listener: an ordinary listener that is called as well, with all partitions, as by kafka-python.
        cooperative: whether the consumer rebalances cooperatively; None takes it from the consumer.

    Raises:
        OptionError: `listener` or an overridden method is asynchronous: use `AsyncRebalanceDiffListener`.
    """

    def __init__(self, listener: Any = None, *, cooperative: bool | None = None) -> None:
        super().__init__(listener, cooperative=cooperative)
        hooks: list[Any] = [self.on_partitions_gained, self.on_partitions_given_up]
        hooks += [getattr(listener, name, None) for name in ("on_partitions_revoked", "on_partitions_assigned")]
        if any(map(inspect.iscoroutinefunction, hooks)):
            raise OptionError(
                f"{type(self).__name__} has asynchronous callbacks, which nobody would await; "
                "derive it from AsyncRebalanceDiffListener"
            )

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """kafka-python calls it."""
        run(self._on_revoked(revoked))

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """kafka-python calls it."""
        run(self._on_assigned(assigned))

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """kafka-python calls it."""
        run(self._on_lost(lost))

    def close(self) -> None:
        """Gives up the partitions that are still held. Call it after `consumer.close()`, which may leave some held."""
        run(self._on_close())


class AsyncRebalanceDiffListener(_DiffListener):
    """As `RebalanceDiffListener`, for callbacks that await: overridden methods and `listener` may be coroutines."""

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """kafka-python calls it."""
        await run_async(self._on_revoked(revoked))

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """kafka-python calls it."""
        await run_async(self._on_assigned(assigned))

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """kafka-python calls it."""
        await run_async(self._on_lost(lost))

    async def close(self) -> None:
        """Gives up the partitions that are still held. Call it after `consumer.close()`, which may leave some held."""
        await run_async(self._on_close())


if hasattr(kafka, "AsyncConsumerRebalanceListener"):
    kafka.AsyncConsumerRebalanceListener.register(AsyncRebalanceDiffListener)
