"""`AIOConsumer`: confluent-kafka's, on top of our `Consumer`."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from confluent_kafka import aio

from kafka_assignors.clients.confluent.consumer import Consumer

if TYPE_CHECKING:
    import concurrent.futures

    from kafka_assignors.group import Plan

__all__ = ["AIOConsumer"]

# What librdkafka's own consumer does not know.
_OURS = ("partition.assignment.strategy", "on_rebalance", "on_broker_assignor")


class AIOConsumer(aio.AIOConsumer):
    """`confluent_kafka.aio.AIOConsumer`, with any assignor of this package.

    The methods are the client's own, as coroutines; callbacks may be coroutine functions, `on_rebalance` too. Rebalance
    callbacks go to `subscribe` by keyword, as in the client.

    Args:
        consumer_conf: as for our [`Consumer`][kafka_assignors.clients.confluent.Consumer].
        max_workers: the client's.
        executor: the client's.
    """

    def __init__(
        self,
        consumer_conf: dict[str, Any],
        max_workers: int = 100,
        executor: concurrent.futures.Executor | None = None,
    ) -> None:
        conf = dict(consumer_conf)
        ours = {name: conf.pop(name) for name in _OURS if name in conf}
        # The client has no way to be given a consumer. It makes its own, which is closed unused, and has made the
        # callbacks in `conf` fit for its event loop.
        super().__init__(conf, max_workers=max_workers, executor=executor)
        self._consumer.close()
        on_rebalance = ours.get("on_rebalance")
        if inspect.iscoroutinefunction(on_rebalance):
            ours["on_rebalance"] = self._wrap_callback(asyncio.get_running_loop(), on_rebalance)
        self._consumer = Consumer({**conf, **ours})

    async def plan(self) -> Plan | None:
        """As `Consumer.plan`."""
        plan: Plan | None = await self._call(self._consumer.plan)  # type: ignore[attr-defined]
        return plan
