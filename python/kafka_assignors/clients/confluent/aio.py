"""`AIOConsumer`: confluent-kafka's, on top of our `Consumer`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.confluent import _internals
from kafka_assignors.clients.confluent.consumer import Consumer

if TYPE_CHECKING:
    import concurrent.futures

    from confluent_kafka.aio import AIOConsumer as _Client

    from kafka_assignors.group import Plan
else:
    _Client = _internals.aio_consumer()

__all__ = ["AIOConsumer"]

# The settings that librdkafka's own consumer does not have.
_OURS = ("partition.assignment.strategy", "on_rebalance", "on_broker_assignor")


class AIOConsumer(_Client):
    """`confluent_kafka.aio.AIOConsumer`, with any assignor of this package.

    The methods are the client's own, as coroutines; callbacks may be coroutine functions, `on_rebalance` too. Rebalance
    callbacks go to `subscribe` by keyword, as in the client.

    Args:
        consumer_conf: as for our [`Consumer`][kafka_assignors.clients.confluent.Consumer].
        max_workers: the client's.
        executor: the client's.

    Raises:
        MissingDependencyError: on import, if this release of confluent-kafka has no `AIOConsumer`.
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
        _internals.check_aio(self)
        _internals.close_native(self)
        on_rebalance = ours.get("on_rebalance")
        if inspect.iscoroutinefunction(on_rebalance):
            ours["on_rebalance"] = _internals.on_the_loop(self, on_rebalance)
        _internals.replace_native(self, Consumer({**conf, **ours}))

    async def plan(self) -> Plan | None:
        """As `Consumer.plan`."""
        plan: Plan | None = await _internals.call_native(self, "plan")
        return plan
