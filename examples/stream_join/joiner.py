"""The join of one partition number: impressions within the window, waiting clicks, and results."""

from collections import deque
from dataclasses import dataclass

from stream_join.ads import CLICKS, IMPRESSIONS


@dataclass(frozen=True)
class Match:
    """A click, the impression that it was on, and its time."""

    click: str
    impression: str
    ad: str
    timestamp: int


class NumberJoin:
    """The state of one number. Its results depend on the records alone, not on how the two topics interleave.

    Records of each topic come in order of their time. An impression is dropped only when no later click can be within
    its window, and a waiting click only when its impression can no longer come.

    Args:
        window_ms: the longest time between an impression and a click that counts.
    """

    def __init__(self, window_ms: int) -> None:
        self._window = window_ms
        # The time that each topic has reached; 0 before its first record.
        self.times = {IMPRESSIONS: 0, CLICKS: 0}
        self._impressions: dict[str, tuple[int, str]] = {}
        self._shown: deque[str] = deque()
        self._waiting: dict[str, list[tuple[int, str]]] = {}
        self._clicked: deque[tuple[int, str]] = deque()
        self._emitted: dict[str, int] = {}

    def start_of(self, topic: str, times: dict[str, int]) -> int:
        """The time from which a new owner has to read `topic` again, if its predecessor had reached `times`."""
        return max(0, times[CLICKS] - self._window) if topic == IMPRESSIONS else times[IMPRESSIONS]

    def take(self, topic: str, key: str, value: str, timestamp: int) -> list[Match]:
        """Takes a record. Returns the results that it completes, without those that were emitted before."""
        self.times[topic] = max(self.times[topic], timestamp)
        found = self._show(key, value, timestamp) if topic == IMPRESSIONS else self._click(key, value, timestamp)
        self._forget()
        # One by one, since a click that was read twice is in the waiting list twice.
        new = []
        for match in found:
            if match.click not in self._emitted:
                self._emitted[match.click] = match.timestamp
                new.append(match)
        return new

    def emitted(self, click: str, timestamp: int) -> None:
        """Notes a click that an earlier owner has emitted, so that it is not emitted again."""
        self._emitted[click] = timestamp

    def committed(self) -> None:
        """Forgets emitted clicks when all records so far are committed: no member will read them again as new ones.

        From now on, only a click that is not older than the slower topic could be found twice.
        """
        until = min(self.times.values())
        self._emitted = {click: time for click, time in self._emitted.items() if time >= until}

    def _show(self, key: str, ad: str, timestamp: int) -> list[Match]:
        if key not in self._impressions:
            self._shown.append(key)
        self._impressions[key] = timestamp, ad
        return [
            Match(click, key, ad, clicked)
            for clicked, click in self._waiting.pop(key, ())
            if 0 <= clicked - timestamp <= self._window
        ]

    def _click(self, key: str, click: str, timestamp: int) -> list[Match]:
        if key in self._impressions:
            shown, ad = self._impressions[key]
            return [Match(click, key, ad, timestamp)] if 0 <= timestamp - shown <= self._window else []
        self._waiting.setdefault(key, []).append((timestamp, click))
        self._clicked.append((timestamp, key))
        return []

    def _forget(self) -> None:
        while self._shown and self._impressions[self._shown[0]][0] < self.times[CLICKS] - self._window:
            del self._impressions[self._shown.popleft()]
        while self._clicked and self._clicked[0][0] < self.times[IMPRESSIONS]:
            _, key = self._clicked.popleft()
            left = [(time, click) for time, click in self._waiting.pop(key, ()) if time >= self.times[IMPRESSIONS]]
            if left:
                self._waiting[key] = left
