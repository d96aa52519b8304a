"""When records were written: the offsets of partitions at a few times, from which the age of an offset follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping, Sequence

__all__ = ["STEPS_S", "Ages"]

STEPS_S = (60, 600, 3_600, 86_400)
"""How many seconds ago the offsets are asked for. Ages between two of them are interpolated; no age is longer."""


@dataclass(frozen=True, slots=True)
class Ages:
    """The offsets that partitions had at some times, by the timestamps of their records.

    Attributes:
        taken_ms: the present, in milliseconds since 1970.
        times_ms: the times, the earliest first.
        offsets: by topic, for each of these times an array by partition number: the offset of the first record that is
            not older, the end where all records are older, -1 where it is not known.
    """

    taken_ms: int
    times_ms: tuple[int, ...] = ()
    offsets: Mapping[str, Sequence[array[int]]] = field(default_factory=dict)

    def of(self, topic: str, number: int, committed: int, end: int) -> float | None:
        """How many seconds the record at an offset has waited; the longest time that was asked for if it is older.

        Args:
            topic: of the record.
            number: of its partition.
            committed: its offset.
            end: the offset that the next record of the partition gets.

        Returns:
            None if the offsets of the partition are not known. Timestamps are the producers' clocks, so that an age may
            be wrong by the difference of these clocks; it is never negative.

        >>> from array import array
        >>> Ages(100_000, (40_000,), {"t": [array("q", [10])]}).of("t", 0, 25, 40)
        30.0
        """
        if committed >= end:
            return 0.0
        by_time = self.offsets.get(topic)
        if not by_time or any(not 0 <= number < len(each) or each[number] < 0 for each in by_time):
            return None
        later_ms, later = self.taken_ms, end
        for time_ms, offsets in zip(reversed(self.times_ms), reversed(by_time), strict=True):
            offset = min(offsets[number], later)
            if committed >= offset:
                part = (committed - offset) / (later - offset) if later > offset else 0.0
                written = time_ms + part * (later_ms - time_ms)
                return max(0.0, (self.taken_ms - written) / 1000)
            later_ms, later = time_ms, offset
        return max(0.0, (self.taken_ms - self.times_ms[0]) / 1000)
