"""Where a producer's batches end, estimated: for a release of a client whose batches cannot be seen or closed."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.common.partitioner_guard import notify
from kafka_assignors.errors import ClientReleaseWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.errors import IncompatibleClientError

__all__ = ["BatchEstimate", "cannot_close"]

# The approximate bytes of a record in a batch besides key and value.
_OVERHEAD = 16


def cannot_close(error: IncompatibleClientError) -> None:
    """Warns that batches stay open. The text names what is missing, and the release that has it."""
    warnings.warn(
        f"{error}; until then records are partitioned all the same, but a batch that a partitioner has left waits for "
        "the end of its linger",
        ClientReleaseWarning,
        # The warning points at the line that makes the producer.
        stacklevel=4,
    )


class BatchEstimate:
    """Estimates from the bytes of the records when a batch is full, and then calls the partitioner's `on_new_batch`.

    Without it a sticky partitioner would stay with one partition for good.

    Args:
        partitioner: the producer's.
        size: the bytes that a batch can take.
    """

    def __init__(self, partitioner: Any, size: int) -> None:
        self._partitioner = partitioner
        self._size = size
        self._filled: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def placed(self, topic: str, chosen: int, record: tuple[Any, ...], choose: Callable[..., int]) -> int:
        """The partition of a record.

        Args:
            topic: of the record.
            chosen: the partitioner's choice.
            record: key and value, both as bytes, and the cluster.
            choose: the partitioner, for a second choice where the record would open a batch.
        """
        *_, key, value, cluster = record
        size = _OVERHEAD + len(key or b"") + len(value or b"")
        with self._lock:
            filled = self._filled[topic, chosen]
            if filled and filled + size <= self._size:
                self._filled[topic, chosen] = filled + size
                return chosen
            self._filled.pop((topic, chosen), None)
        notify(self._partitioner, topic, cluster, chosen)
        chosen = choose(topic, *record)
        with self._lock:
            self._filled[topic, chosen] += size
        return chosen
