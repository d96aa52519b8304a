"""Which `poll` and `consume` a consumer has for now: the native ones, or those that look after its group.

Looking `consumer.poll` up is part of what a record costs. Where an instance has a dictionary the interpreter has to
look there first, which makes a record 4 % dearer, even if the dictionary is empty. So instances of `Consumer` have
none, and change their class instead. Those of subclasses mostly have one, and take the methods there.

`Switch` does not lock; its owner does.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Methods", "Switch"]

Methods = tuple[tuple[str, "Callable[..., Any]"], ...]


class Switch:
    """The two states of one consumer.

    Args:
        consumer: the consumer, which is not kept: each call names it again.
        methods: names and functions of what replaces the native methods.

    Attributes:
        native: the consumer's class, whose methods are the native ones or those of a subclass.
        is_on: whether the others are in place.
    """

    __slots__ = ("_methods", "is_on", "native")

    def __init__(self, consumer: object, methods: Methods) -> None:
        self.native: Any = type(consumer)
        self.is_on = False
        self._methods = methods

    def on(self, consumer: Any) -> None:
        """The next lookup finds the others; calls under way are not changed."""
        self.is_on = True
        self._put(consumer, self._methods)

    def off(self, consumer: Any) -> None:
        """The next lookup finds the native ones."""
        self.is_on = False
        if hasattr(consumer, "__dict__"):
            for name, _ in self._methods:
                consumer.__dict__.pop(name, None)
        else:
            consumer.__class__ = self.native

    def forever(self, consumer: Any, methods: Methods) -> None:
        """These are the consumer's methods from now on; neither `on` nor `off` may be called any more."""
        self._put(consumer, methods)

    def _put(self, consumer: Any, methods: Methods) -> None:
        if hasattr(consumer, "__dict__"):
            consumer.__dict__.update((name, method.__get__(consumer)) for name, method in methods)
        else:
            consumer.__class__ = _switched(self.native, methods)


@cache
def _switched(native: type, methods: Methods) -> type:
    """A class that differs in these methods only, and does not look different."""
    seen_as = {name: getattr(native, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(native)(native.__name__, (native,), {"__slots__": (), **seen_as, **dict(methods)})
