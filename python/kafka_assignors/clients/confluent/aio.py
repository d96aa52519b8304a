"""`AIOConsumer`: confluent-kafka's, on top of our `Consumer`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.confluent._internals import HookedAIOConsumer
from kafka_assignors.clients.confluent.consumer import Consumer

if TYPE_CHECKING:
    import concurrent.futures

    from kafka_assignors.group import Plan

__all__ = ["AIOConsumer"]

# The settings that librdkafka's own consumer does not have.
_OURS = ("partition.assignment.strategy", "on_rebalance", "on_broker_assignor")


class AIOConsumer(HookedAIOConsumer):
    """`confluent_kafka.aio.AIOConsumer`, with any assignor of this package.

    The methods are the client's own, as coroutines; callbacks may be coroutine functions, `on_rebalance` too. Rebalance
    callbacks go to `subscribe` by keyword, as in the client.

    Args:
        consumer_conf: as for our [`Consumer`][kafka_assignors.clients.confluent.Consumer].
        max_workers: the client's.
        executor: the client's.

    Raises:
        IncompatibleClientError: this version of confluent-kafka has other private attributes.
    """

    def __init__(
        self,
        consumer_conf: dict[str, Any],
        max_workers: int = 100,
        executor: concurrent.futures.Executor | None = None,
    ) -> None:
        conf = dict(consumer_conf)
        ours = {name: conf.pop(name) for name in _OURS if name in conf}
        # The client's constructor always makes a consumer of its own, and adapts the callbacks in `conf` to the event
        # loop. That consumer is closed unused.
        super().__init__(conf, max_workers=max_workers, executor=executor)
        self._close_native()
        on_rebalance = ours.get("on_rebalance")
        if inspect.iscoroutinefunction(on_rebalance):
            ours["on_rebalance"] = self._on_the_loop(on_rebalance)
        self._replace_native(Consumer({**conf, **ours}))

    async def plan(self) -> Plan | None:
        """As `Consumer.plan`."""
        plan: Plan | None = await self._of_consumer("plan")
        return plan
