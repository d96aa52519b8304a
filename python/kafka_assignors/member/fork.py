"""Consumers in the child of a fork: their methods raise `StateError`, and nothing that the child does reaches a group.

A fork copies one thread only. The threads of the member and of the client do not exist in the child, and locks that
they held are never released. The sockets are copied too, so bytes that the child wrote would be mixed with those of the
parent.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from kafka_assignors.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Copied", "watch"]


class Copied(Protocol):
    """A consumer that a fork has copied."""

    def _disown(self, refuse: Callable[..., Any]) -> None:
        """In the child: abandons the member (`MemberThread.abandon`), and puts `refuse` in the place of every method
        but `close`. A client whose destructor waits for its threads keeps the object for ever."""


_watched: weakref.WeakSet[Copied] = weakref.WeakSet()


def watch(consumer: Copied) -> None:
    """From now on the consumer's methods raise `StateError` in the child of a fork, and its `close` does nothing."""
    _watched.add(consumer)


def _in_child() -> None:
    refuse = _refusal(os.getppid())
    for consumer in list(_watched):
        consumer._disown(refuse)


def _refusal(parent: int) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise StateError(
            f"this consumer is that of process {parent}, and a fork does not copy it; make one in the child"
        )

    return refuse


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
