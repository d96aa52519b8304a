"""A clock for a test of a limit of time: the limit may be long, so that a busy machine does not reach it too early."""

from __future__ import annotations

import time


class PausesAtOnce:
    """In place of the module `time`: a pause ends at once, and its seconds count."""

    def __init__(self) -> None:
        self._paused = 0.0

    def monotonic(self) -> float:
        """The time, with the pauses."""
        return time.monotonic() + self._paused

    def sleep(self, seconds: float) -> None:
        """Lets the time of a pause pass."""
        self._paused += seconds
