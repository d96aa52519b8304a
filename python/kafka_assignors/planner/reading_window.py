"""The choice of the two readings of a cluster that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_assignors.cluster import Snapshot

__all__ = ["Window"]

# The least age of the earlier reading, in seconds, as soon as the first reading is that old.
_WINDOW_S = 30.0


class Window:
    """Chooses the earlier reading with which the present one is compared.

    The earlier reading is half a minute to a minute old, if there is such a reading: within a shorter time clients may
    not have committed. So only two readings are kept.
    """

    def __init__(self) -> None:
        self._base: tuple[float, Snapshot] | None = None
        self._next: tuple[float, Snapshot] | None = None

    def before(self, now: float) -> tuple[Snapshot | None, float | None]:
        """The earlier reading, and the seconds since then; None for the first reading."""
        if self._next is not None and now - self._next[0] >= _WINDOW_S:
            self._base, self._next = self._next, None
        if self._base is None:
            return None, None
        return self._base[1], round(now - self._base[0], 3)

    def add(self, now: float, snapshot: Snapshot) -> None:
        """Keeps a reading as the earlier one, or as the next to replace it, if there is none."""
        if self._base is None:
            self._base = now, snapshot
        elif self._next is None:
            self._next = now, snapshot
