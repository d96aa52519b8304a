"""Whether the gets of a consumer may hand out records."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Gate"]


class Gate:
    """Shut while partitions are given up, and while the membership may have ended. It holds the membership weakly.

    Args:
        certain_for: a method that returns for how many seconds the membership is certain; None if it may have ended.

    Attributes:
        shut: whether the gate is shut, whatever `certain_for` returns.
        certain_until: the time (`time.monotonic`) up to which `certain_for` need not be called. Any thread may set it
            to 0 when the membership has changed.
    """

    def __init__(self, certain_for: Callable[[], float | None]) -> None:
        self.shut = False
        self.certain_until = 0.0
        self._certain_for = weakref.WeakMethod(certain_for)

    def is_shut(self) -> bool:
        """Whether gets have to wait."""
        if self.shut:
            return True
        now = time.monotonic()
        if now < self.certain_until:
            return False
        method = self._certain_for()
        left = None if method is None else method()
        if left is None:
            return True
        self.certain_until = now + left
        return False
