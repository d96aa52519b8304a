"""The weights of partitions and their sources: mappings, functions, and the rates of a live cluster.

>>> known = {"orders": [90.0, 10.0], "audit": 1.5}
>>> gathered(known, {"orders": 2, "audit": 2}, deadline=1.0)
{'orders': [90.0, 10.0], 'audit': [1.5, 1.5]}
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast, runtime_checkable

from kafka_assignors.errors import OptionError, WeightError
from kafka_assignors.options import check_seconds
from kafka_assignors.printable import SENTENCE, printable

if TYPE_CHECKING:
    from typing import Self

    from kafka_assignors.lag.reader import TopicEnds

__all__ = ["Cluster", "RateSource", "WeightFunction", "WeightSource", "Weights", "check_weights", "gathered"]

Weights: TypeAlias = "Mapping[str, float | Sequence[float | None]]"
"""Topic to the weight of each partition, by number, or to one weight for all of them; None is an unknown weight."""

WeightFunction: TypeAlias = "Callable[[Iterable[str]], Weights]"
"""A function with the argument of `WeightSource.weights`."""


@runtime_checkable
class WeightSource(Protocol):
    """A source of the weights of partitions."""

    def weights(self, topics: Iterable[str]) -> Weights:
        """The weights of these topics' partitions, in any unit.

        Args:
            topics: names of topics that exist.

        Any exception means that the weights are not known. A leader calls it on a thread of its own.
        """
        ...


def check_weights(weights: object) -> None:
    """Refuses a value that cannot be a source of weights.

    Raises:
        OptionError: it is neither a mapping, nor a `WeightSource`, nor callable, nor None.
    """
    if weights is None or isinstance(weights, Mapping | WeightSource) or callable(weights):
        return
    raise OptionError(
        f"weights is of type {type(weights).__name__}; give a mapping of topic to weights, a WeightSource or a function"
    )


def gathered(
    source: Weights | WeightSource | WeightFunction, topics: Mapping[str, int], deadline: float
) -> dict[str, list[float | None]]:
    """The weights of these topics, from a mapping at once, or from another source before the deadline.

    Args:
        source: a mapping, a `WeightSource`, or a function.
        topics: names and partition counts.
        deadline: in seconds.

    Raises:
        WeightError: the source failed, was late, or returned values that are no weights.
    """
    return _read(source, topics) if isinstance(source, Mapping) else _answer(source, topics, deadline)


def _read(found: object, topics: Mapping[str, int]) -> dict[str, list[float | None]]:
    if not isinstance(found, Mapping):
        raise WeightError(f"the source of weights answered with a {type(found).__name__}; give topic to weights")
    try:
        return {topic: _of_topic(topic, found[topic], count) for topic, count in topics.items() if topic in found}
    except WeightError:
        raise
    except Exception as error:
        # A mapping or a list of the user's own may compute its values, and fail.
        raise _failed(error) from error


def _answer(
    source: WeightSource | WeightFunction, topics: Mapping[str, int], deadline: float
) -> dict[str, list[float | None]]:
    ask = source.weights if isinstance(source, WeightSource) else source
    future: Future[dict[str, list[float | None]]] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            answer = ask(list(topics))
        except BaseException as error:
            failed = _failed(error)
            failed.__cause__ = error
            future.set_exception(failed)
            return
        try:
            # Read on this thread: a list that computes its values may take as long as the source.
            future.set_result(_read(answer, topics))
        except BaseException as error:
            future.set_exception(error)

    # A thread of its own: a source that never answers must not stop the leader.
    threading.Thread(target=run, name="kafka-assignors-weights", daemon=True).start()
    wait([future], min(deadline, threading.TIMEOUT_MAX))
    if not future.done():
        raise WeightError(f"the source of weights did not answer within {deadline:g} s")
    return future.result()


def _failed(error: BaseException) -> WeightError:
    try:
        reason = str(error) if isinstance(error, WeightError) else f"{type(error).__name__}: {error}"
    except Exception:
        # The error is the user's, and its `str` may fail.
        reason = type(error).__name__
    return WeightError(f"the source of weights failed: {printable(reason, SENTENCE)}")


def _of_topic(topic: str, given: object, count: int) -> list[float | None]:
    if isinstance(given, Real) and not isinstance(given, bool):
        return [cast("float", given)] * count
    if isinstance(given, str | bytes | Mapping | bool) or not isinstance(given, Iterable):
        raise WeightError(
            f"weights[{printable(topic)!r}] is of type {type(given).__name__}; give a number for all partitions, or a "
            "list of one for each"
        )
    # Weights beyond the last partition are ignored; missing ones are unknown.
    return list(islice(given, count))


class Cluster(Protocol):
    """The cluster of a `RateSource`: `kafka_assignors.lag.ConfluentLagSource` and the other clients' sources."""

    def look(self, topics: Iterable[str], *, sizes: bool = False) -> TopicEnds:
        """The end offsets of the topics' partitions and, with `sizes`, the mean size of their records."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """The rates so far, and the reading of the end offsets after which they were computed."""

    look: TopicEnds
    rates: dict[tuple[str, int], float] = field(default_factory=dict)


class RateSource:
    """Rates as weights: how many records, or bytes, producers write to each partition in a second. A `WeightSource`.

    Two readings of the end offsets make a rate. The first call reads them twice, `interval` seconds apart; each further
    call reads them once, and compares with the reading before. Rates are smoothed: one that is older by `half_life`
    counts half. A partition that is new, or whose offsets went back, has no rate until the next reading. Thread-safe.

    Args:
        cluster: reads the offsets, such as `kafka_assignors.lag.ConfluentLagSource({"bootstrap.servers": …})`. Its
            requests are bounded in number and have a deadline. In the drop-in consumers, None is the cluster of the
            consumer that uses the assignor.
        unit: `"records"`, or `"bytes"`: each rate times the mean size of the records in the partition's log, by
            DescribeLogDirs. Only the sources of kafka-python 3 and of aiokafka send this request, and it needs the ACL
            `Describe` on the cluster. If the sizes cannot be read, the source fails with the reason.
        interval: the least time between the two readings of a rate, in seconds.
        half_life: in seconds.

    Raises:
        OptionError: a unit that is unknown, or a number that is not positive.

    >>> RateSource(unit="bits")
    Traceback (most recent call last):
        ...
    kafka_assignors.errors.OptionError: unit is 'bits'; give 'records' or 'bytes'
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        *,
        unit: str = "records",
        interval: float = 1.0,
        half_life: float = 300.0,
    ) -> None:
        if unit not in ("records", "bytes"):
            raise OptionError(f"unit is {unit!r}; give 'records' or 'bytes'")
        for name, value in (("interval", interval), ("half_life", half_life)):
            check_seconds(name, value)
        self.cluster = cluster
        self.unit = unit
        self.interval = interval
        self.half_life = half_life
        self._lock = threading.Lock()
        self._known: _Known | None = None

    def __repr__(self) -> str:
        return f"RateSource(unit={self.unit!r}, interval={self.interval!r}, half_life={self.half_life!r})"

    def of(self, cluster: Cluster) -> Self:
        """This source if it has a cluster already; otherwise a new source with the same options for this cluster."""
        if self.cluster is not None:
            return self
        return type(self)(cluster, unit=self.unit, interval=self.interval, half_life=self.half_life)

    def weights(self, topics: Iterable[str]) -> dict[str, list[float | None]]:
        """The rates per second of these topics' partitions.

        Raises:
            WeightError: there is no cluster, or the sizes of its logs cannot be read.
            LagError: the offsets could not be read.
        """
        if self.cluster is None:
            raise WeightError("RateSource has no cluster; give it one, such as ConfluentLagSource(…)")
        wanted = sorted(set(topics))
        with self._lock:
            known = self._known
            if known is None:
                known = self._known = _Known(self._look(self.cluster, wanted))
                time.sleep(self.interval)
            look = self._look(self.cluster, wanted)
            if look.at - known.look.at >= self.interval:
                known = self._known = self._after(known, look)
            return self._weighed(known, look)

    def _look(self, cluster: Cluster, topics: list[str]) -> TopicEnds:
        look = cluster.look(topics, sizes=self.unit == "bytes")
        if self.unit == "bytes" and look.sizes is None:
            raise WeightError(f"the sizes of the logs are not to be had: {look.refusal}; use unit='records'")
        return look

    def _after(self, known: _Known, look: TopicEnds) -> _Known:
        seconds = look.at - known.look.at
        old = 0.5 ** (seconds / self.half_life)
        rates = {}
        for partition, end in look.ends.items():
            before = known.look.ends.get(partition)
            if before is None or end < before:
                continue
            rate = (end - before) / seconds
            rates[partition] = known.rates[partition] * old + rate * (1 - old) if partition in known.rates else rate
        return _Known(look, rates)

    def _weighed(self, known: _Known, look: TopicEnds) -> dict[str, list[float | None]]:
        sizes = look.sizes if self.unit == "bytes" else None
        found: dict[str, list[float | None]] = {}
        for topic, count in look.counts.items():
            of_topic: list[float | None] = []
            for number in range(count):
                rate = known.rates.get((topic, number))
                if rate is not None and sizes is not None:
                    size = sizes.get((topic, number))
                    # Without a size, the weight is 0 if no records were written, and unknown otherwise.
                    rate = rate * size if size is not None else (None if rate else 0.0)
                of_topic.append(rate)
            found[topic] = of_topic
        return found
