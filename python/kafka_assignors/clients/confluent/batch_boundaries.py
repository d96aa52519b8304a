"""An estimate of where librdkafka's batches begin and end.

librdkafka has no hook for new batches, and a delivery report comes a round trip too late. Its rules are known:

- It sends the queue of a partition when the first record is `linger.ms` old. The clock is read before that record is
  handed over, so the estimate of the end is some microseconds early.
- It cuts a batch when the keys and values in the queue reach `batch.size`, or the records `batch.num.messages`. The
  size of a batch on the wire is larger, so some records do not fit, and they start a new linger period. If the
  partitioner left the partition then, these records would be sent late, in a small batch. So a partition whose batches
  fill is kept for twice the linger, as by librdkafka's own sticky partitioning.

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
        kept: seconds for which the partition is kept if the batch fills within `linger`.
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
    """The batch that one partition is filling.

    Attributes:
        opened: the time before its first record was handed over.
        until: the time from which on the next record opens another batch.
        size: bytes of keys and values.
        records: the number of its records.
    """

    __slots__ = ("opened", "records", "size", "until")

    def __init__(self, now: float, rule: BatchRule) -> None:
        self.opened = now
        self.until = now + rule.linger
        self.size = 0
        self.records = 0

    def add(self, size: int, rule: BatchRule) -> None:
        """Counts one more record.

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
        """The batch has filled, so the partition is kept for longer."""
        self.until = self.opened + rule.kept

    def take_back(self, size: int) -> bool:
        """Removes a record that the client refused. Returns whether the batch is empty now."""
        self.size -= size
        self.records -= 1
        return self.records == 0
