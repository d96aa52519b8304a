"""How many records producers write to each partition in a second, from two snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.cluster import Snapshot

__all__ = ["Rates", "rate_of", "rates_between", "total_rate"]

Rates = dict[str, list[float | None]]
"""Topic to the records a second of each partition, by number; None where it is not known."""


def rates_between(earlier: Snapshot, later: Snapshot) -> Rates:
    """The rates of the later snapshot's topics. O(partitions).

    Raises:
        OptionError: the snapshots are of different clusters, or the first is not the older one.
    """
    if earlier.cluster != later.cluster:
        raise OptionError(
            f"the earlier snapshot is of cluster {earlier.cluster!r}, this one of {later.cluster!r}; give two of one"
        )
    seconds = (later.taken_ms - earlier.taken_ms) / 1000
    if seconds <= 0:
        raise OptionError("the snapshot for --rates is not older than this one; give one that was taken before")
    found: Rates = {}
    for name, topic in later.topics.items():
        before = earlier.topics.get(name)
        # A topic with another id was created again, and its offsets began again.
        known = before is not None and (before.id is None or topic.id is None or before.id == topic.id)
        first = before.end or () if before is not None and known else ()
        last = topic.end or ()
        rates: list[float | None] = [None] * topic.partitions
        for number, (start, end) in enumerate(zip(first, last, strict=False)):
            if start is not None and end is not None and end >= start and number < topic.partitions:
                rates[number] = (end - start) / seconds
        found[name] = rates
    return found


def rate_of(rates: Rates, topic: str, number: int) -> float | None:
    """The rate of a partition; None if it is not known, or does not exist."""
    of_topic = rates.get(topic, ())
    return of_topic[number] if 0 <= number < len(of_topic) else None


def total_rate(rates: Rates | None, partitions: Mapping[str, Iterable[int]]) -> float | None:
    """The sum of the rates; None if there are no rates, or if one of them is not known."""
    if rates is None:
        return None
    total = 0.0
    for topic, number in ((topic, number) for topic, numbers in partitions.items() for number in numbers):
        rate = rate_of(rates, topic, number)
        if rate is None:
            return None
        total += rate
    return total
