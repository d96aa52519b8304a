"""What a fork makes of consumers: in the child none of them works, and nothing that the child does reaches a group.

A fork takes along one thread. The member's and librdkafka's stay behind, and so may locks that they held: whatever
waits for one of them in the child waits for ever, librdkafka's destructor among it. The sockets are copied, and what
the child wrote into one would be in the middle of what the parent writes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.clients.confluent.consumer import Consumer

__all__ = ["watch"]

_watched: weakref.WeakSet[Consumer] = weakref.WeakSet()


def watch(consumer: Consumer) -> None:
    """From here on the child of a fork has a consumer whose methods raise `StateError`, and `close` does nothing."""
    _watched.add(consumer)


def _in_child() -> None:
    for consumer in list(_watched):
        _disown(consumer)


def _disown(consumer: Consumer) -> None:
    # Never destroyed: librdkafka would wait for threads that are not here, at the latest when the child ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(consumer))
    member = consumer._engine.asks
    if member is not None:
        with contextlib.suppress(Exception):
            member.abandon()
    kind = consumer._switch.native
    methods = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    refuse = _refusal(os.getppid())
    # In the place of the class's own: what nobody forks does not pay for a check in every call.
    consumer._switch.forever(consumer, tuple((dict.fromkeys(methods, refuse) | {"close": _nothing}).items()))
    consumer._closed = True


def _refusal(parent: int) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise StateError(
            f"this consumer is that of process {parent}, and a fork does not copy it; make one in the child"
        )

    return refuse


def _nothing(_: Consumer) -> None:
    """The consumer is the parent's to close."""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
