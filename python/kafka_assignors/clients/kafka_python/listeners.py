"""How a membership of ours calls kafka-python's listeners."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import kafka

from kafka_assignors.clients.common.adapter import Membership
from kafka_assignors.clients.kafka_python._internals import run_coroutine

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kafka_assignors.member.data_path import ListenerEvent

__all__ = ["TELLS_OF_LOSSES", "Rebalance", "call_listener", "rebalancing"]

Rebalance = tuple[bool, Membership | None]
"""Whether the group rebalances cooperatively, and the membership that the rebalance gave."""

TELLS_OF_LOSSES = hasattr(kafka.ConsumerRebalanceListener, "on_partitions_lost")
"""Whether listeners are called for losses and when the consumer closes, and their errors are raised: from version 3 on.
"""

_METHODS = {"assigned": "on_partitions_assigned", "revoked": "on_partitions_revoked", "lost": "on_partitions_lost"}

rebalancing: ContextVar[Rebalance | None] = ContextVar("rebalancing", default=None)
"""The rebalance for which a listener is being called; None outside of a call of ours."""


def call_listener(
    consumer: Any, listener: Any, event: ListenerEvent, partitions: set[Any], rebalance: Rebalance
) -> None:
    """Calls the listener's method for an event, and waits for its end.

    Raises:
        Exception: what the listener raised.
        StateError: its method is a coroutine that waits, and the client has no event loop.
    """
    # The listeners of kafka-python 2 have no method for a loss, so a loss is a revocation to them.
    method = getattr(listener, _METHODS[event], None) or listener.on_partitions_revoked
    token = rebalancing.set(rebalance)
    try:
        if inspect.iscoroutinefunction(method):
            run_coroutine(consumer, _within(method, rebalance), partitions)
        else:
            method(partitions)
    finally:
        rebalancing.reset(token)


def _within(
    method: Callable[[Any], Coroutine[Any, Any, Any]], rebalance: Rebalance
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """The listener's coroutine function, which sets `rebalancing` on the thread of the client's loop."""

    async def called(partitions: Any) -> None:
        token = rebalancing.set(rebalance)
        try:
            await method(partitions)
        finally:
            rebalancing.reset(token)

    called.__name__ = method.__name__
    return called
