"""KIP-54's clean-up listener, as callbacks of confluent-kafka."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.common.diff_listener import DiffListener, Step, run
from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import TopicPartition

    from kafka_assignors.clients.confluent.polling import PollingConsumer

__all__ = ["RebalanceDiffListener"]


class RebalanceDiffListener(DiffListener):
    """KIP-54's clean-up listener: it is called only for partitions that were really gained or given up.

    Subclass it and override `on_partitions_gained` and `on_partitions_given_up`; both get ascending lists of
    `TopicPartition`. Pass it to our `Consumer` as `consumer.subscribe(topics, **listener.callbacks)`. With an eager
    assignor the difference is known only after the rebalance, so `on_partitions_given_up` is called then. Partitions
    that are lost, or revoked by a cooperative assignor, are given up at once. After a generation without this consumer
    no partition counts as kept.

    An error of a callback comes out of `poll`, as that of any callback; the held partitions stay right.

    Args:
        on_assign: an ordinary callback that is called as well, with all partitions, as by the client.
        on_revoke: likewise.
        on_lost: likewise; without one, `on_revoke`.

    Raises:
        OptionError: a callback or an overridden method is a coroutine function, which confluent-kafka does not await.

    >>> class Caches(RebalanceDiffListener):
    ...     def on_partitions_gained(self, partitions):
    ...         print("load", partitions)
    >>> sorted(Caches().callbacks)
    ['on_assign', 'on_lost', 'on_revoke']
    """

    def __init__(self, on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None) -> None:
        super().__init__()
        self._users = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost or on_revoke}
        for callback in (self.on_partitions_gained, self.on_partitions_given_up, *self._users.values()):
            if inspect.iscoroutinefunction(callback):
                raise OptionError(f"{type(self).__name__} has an asynchronous callback, which nobody would await")

    @property
    def callbacks(self) -> dict[str, Callable[[Any, list[TopicPartition]], None]]:
        """`on_assign`, `on_revoke` and `on_lost`, for `Consumer.subscribe`."""
        return {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}

    def close(self) -> None:
        """Gives up the partitions that are still held. Call it when the consumer has been closed."""
        run(self._on_close())

    def _on_assign(self, consumer: PollingConsumer, partitions: list[TopicPartition]) -> None:
        cooperative, now = consumer._rebalance()
        if cooperative:
            due = self._due([], self._holdings.added(partitions, now))
        else:
            due = self._due(*self._holdings.replaced(partitions, now))
        run(due + self._ordinary("on_assign", consumer, partitions))

    def _on_revoke(self, consumer: PollingConsumer, partitions: list[TopicPartition]) -> None:
        cooperative, _ = consumer._rebalance()
        gone = self._holdings.taken(partitions) if cooperative else []
        run(self._ordinary("on_revoke", consumer, partitions) + self._due(gone))

    def _on_lost(self, consumer: PollingConsumer, partitions: list[TopicPartition]) -> None:
        run(self._ordinary("on_lost", consumer, partitions) + self._due(self._holdings.taken(partitions)))

    def _ordinary(self, name: str, consumer: PollingConsumer, partitions: list[TopicPartition]) -> list[Step]:
        callback = self._users[name]
        return [] if callback is None else [(partial(callback, consumer), partitions)]
