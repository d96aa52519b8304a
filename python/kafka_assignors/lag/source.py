"""Sources of lags: the interface, and a source asked with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Protocol, TypeAlias, runtime_checkable

from kafka_assignors.errors import LagError, OptionError
from kafka_assignors.lag.values import Lags

__all__ = ["Inquiry", "LagFunction", "LagSource", "check_source", "gather"]


@runtime_checkable
class LagSource(Protocol):
    """A source of the lags of a group."""

    def lags(self, topics: Iterable[str], group_id: str) -> Lags:
        """The lag of every partition of these topics, by topic and partition number.

        Args:
            topics: names of topics that exist.
            group_id: the group; empty if it is not known.

        Any exception means that the lags are not known. A leader calls it on a thread of its own, never on the thread
        of its client.
        """
        ...


LagFunction: TypeAlias = Callable[[Iterable[str], str], Lags]
"""A function with the arguments of `LagSource.lags`."""


class Inquiry:
    """A call of a source of lags, which starts at once on a thread of its own. A late answer is ignored.

    Args:
        source: a `LagSource`, or a function with the arguments of its method.
        topics: their names.
        group_id: empty if it is not known.

    Attributes:
        topics: their names.
        future: done when the source has answered or failed. It cannot be cancelled.
    """

    def __init__(self, source: LagSource | LagFunction, topics: Iterable[str], group_id: str) -> None:
        self.topics = tuple(topics)
        self.future: Future[Lags] = Future()
        self.future.set_running_or_notify_cancel()
        self._started = time.monotonic()
        ask = source.lags if isinstance(source, LagSource) else source
        threading.Thread(target=self._run, args=(ask, group_id), name="kafka-assignors-lag", daemon=True).start()

    def _run(self, ask: LagFunction, group_id: str) -> None:
        try:
            self.future.set_result(ask(self.topics, group_id))
        except BaseException as error:  # `answer` reports it
            self.future.set_exception(error)

    def left(self, deadline: float) -> float:
        """The seconds that are left of a deadline that began with the call; at least 0."""
        return max(0.0, self._started + deadline - time.monotonic())

    def answer(self, deadline: float) -> dict[str, Sequence[int]]:
        """Waits for the lags of the topics until the deadline, which began with the call.

        Args:
            deadline: in seconds.

        Raises:
            LagError: the source failed, was late, or did not answer with a mapping.
        """
        wait([self.future], min(self.left(deadline), threading.TIMEOUT_MAX))
        if not self.future.done():
            raise LagError(f"the lag source did not answer within {deadline:g} s")
        error = self.future.exception()
        if error is not None:
            reason = str(error) if isinstance(error, LagError) else repr(error)
            raise LagError(f"the lag source failed: {reason}") from error
        lags = self.future.result()
        if not isinstance(lags, Mapping):
            raise LagError(f"the lag source answered with a {type(lags).__name__}; it must give topic to lags")
        return {topic: lags[topic] for topic in self.topics if topic in lags}


def gather(
    source: Lags | LagSource | LagFunction, topics: Sequence[str], group_id: str, deadline: float
) -> dict[str, Sequence[int]]:
    """The lags of these topics, from a mapping at once, or from another source before the deadline.

    Args:
        source: a mapping, a `LagSource`, or a function with the arguments of its method.
        topics: their names.
        group_id: empty if it is not known.
        deadline: in seconds.

    Raises:
        LagError: the source failed, was late, or did not answer with a mapping.
    """
    if isinstance(source, Mapping):
        return {topic: source[topic] for topic in topics if topic in source}
    return Inquiry(source, topics, group_id).answer(deadline)


def check_source(source: object) -> None:
    """Refuses a value that cannot be a source of lags.

    Raises:
        OptionError: it is neither a mapping, nor a `LagSource`, nor callable, nor None.
    """
    if source is None or isinstance(source, Mapping | LagSource) or callable(source):
        return
    raise OptionError(
        f"lags is of type {type(source).__name__}; give a mapping of topic to lags, a LagSource, or a function"
    )
