"""Replaces a consumer's `poll` and `consume` by others, and puts the native ones back.

The lookup of `consumer.poll` is part of the cost of a record. If an instance has a dictionary, the interpreter looks
there first. Even an empty dictionary makes a record cost 4 % more. So instances of `Consumer` have none, and
their class is replaced. Instances of subclasses mostly have a dictionary, and get the methods there.

`PollMethods` does not lock; its owner does.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Methods", "PollMethods"]

Methods = tuple[tuple[str, "Callable[..., Any]"], ...]


class PollMethods:
    """The two states of one consumer.

    Args:
        consumer: the consumer. It is not stored, since that would be a reference cycle; each call passes it again.
        methods: names and functions of the methods that replace the native ones.

    Attributes:
        native: the consumer's class, whose methods are the native ones or those of a subclass.
        is_on: whether the replacements are in place.
    """

    __slots__ = ("_methods", "is_on", "native")

    def __init__(self, consumer: object, methods: Methods) -> None:
        self.native: Any = type(consumer)
        self.is_on = False
        self._methods = methods

    def on(self, consumer: Any) -> None:
        """Puts the replacements in place. Calls that are under way do not change."""
        self.is_on = True
        self._put(consumer, self._methods)

    def off(self, consumer: Any) -> None:
        """Puts the native methods back."""
        self.is_on = False
        if hasattr(consumer, "__dict__"):
            for name, _ in self._methods:
                consumer.__dict__.pop(name, None)
        else:
            consumer.__class__ = self.native

    def forever(self, consumer: Any, methods: Methods) -> None:
        """Puts other methods in place for good. Neither `on` nor `off` may be called after it."""
        self._put(consumer, methods)

    def _put(self, consumer: Any, methods: Methods) -> None:
        if hasattr(consumer, "__dict__"):
            consumer.__dict__.update((name, method.__get__(consumer)) for name, method in methods)
        else:
            consumer.__class__ = _switched(self.native, methods)


@cache
def _switched(native: type, methods: Methods) -> type:
    """A subclass with these methods, and with the name, module and documentation of its base."""
    seen_as = {name: getattr(native, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(native)(native.__name__, (native,), {"__slots__": (), **seen_as, **dict(methods)})
