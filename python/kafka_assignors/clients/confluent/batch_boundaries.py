"""Where librdkafka's batches begin and end, told from outside.

librdkafka has no hook for it, and a delivery report comes a round trip too late. But what it goes by is known:

- it sends a partition's queue when the first record in there is as old as `linger.ms`. Whoever reads the clock before
  that record is handed over takes the batch for closed a few microseconds too early, and hardly ever for open when it
  is gone;
- or when the keys and values in there reach `batch.size`, or the records `batch.num.messages`. Then it fills a batch,
  by its size on the wire, which is more, and what is left over starts to linger. So there is always an open batch, and
  whoever leaves strands a remainder: where batches fill first the partition is kept for twice the linger, which is also
  what librdkafka's own stickiness does.

Nothing here reads a clock or knows a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Batch", "BatchRule"]

# librdkafka's defaults.
_LINGER_MS = 5.0
_BATCH_SIZE = 1_000_000
_BATCH_NUM_MESSAGES = 10_000


class BatchRule:
    """The settings that end a batch.

    Attributes:
        linger: seconds from the first record to the send.
        kept: seconds for which a partition is kept whose batches fill before that.
        size: bytes of keys and values that fill a batch.
        records: records that fill a batch.
    """

    __slots__ = ("kept", "linger", "records", "size")

    def __init__(self, linger: float, size: int, records: int) -> None:
        self.linger = linger
        self.kept = 2 * linger
        self.size = size
        self.records = records

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> BatchRule:
        """The rule of a producer's configuration, by the names and defaults of librdkafka.

        >>> rule = BatchRule.of({"linger.ms": "20", "batch.size": 16384})
        >>> rule.linger, rule.kept, rule.size, rule.records
        (0.02, 0.04, 16384, 10000)

        Raises:
            OptionError: a setting that is not a number.
        """

        def number(default: float, *names: str) -> float:
            for name in names:
                if config.get(name) is not None:
                    try:
                        return float(config[name])
                    except (TypeError, ValueError):
                        raise OptionError(f"{name} is {config[name]!r}; give a number") from None
            return default

        linger = number(_LINGER_MS, "linger.ms", "queue.buffering.max.ms") / 1_000
        return cls(
            linger, int(number(_BATCH_SIZE, "batch.size")), int(number(_BATCH_NUM_MESSAGES, "batch.num.messages"))
        )


class Batch:
    """What one partition has taken since it was last left, and until when it will be taking more.

    Attributes:
        opened: the clock before its first record was handed over.
        until: the clock from which on the next record opens another.
        size: bytes of keys and values.
        records: how many.
    """

    __slots__ = ("opened", "records", "size", "until")

    def __init__(self, now: float, rule: BatchRule) -> None:
        self.opened = now
        self.until = now + rule.linger
        self.size = 0
        self.records = 0

    def add(self, size: int, rule: BatchRule) -> None:
        """One more record.

        >>> rule = BatchRule(linger=1.0, size=100, records=10)
        >>> batch = Batch(7.0, rule)
        >>> batch.add(99, rule)
        >>> batch.until
        8.0
        >>> batch.add(1, rule)                          # it has filled before the linger is over
        >>> batch.until
        9.0
        """
        self.size += size
        self.records += 1
        if self.size >= rule.size or self.records >= rule.records:
            self.keep(rule)

    def keep(self, rule: BatchRule) -> None:
        """It has filled: the partition keeps its place for longer."""
        self.until = self.opened + rule.kept

    def take_back(self, size: int) -> bool:
        """The record was refused after all. Whether the batch is empty now, and so was never opened."""
        self.size -= size
        self.records -= 1
        return self.records == 0
