"""What the lag-based plug-ins of all clients have in common: options, and whose offsets count."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients._adapter import ClientAdapter
from kafka_assignors.errors import LagError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_assignors.assignors import LagKeep, LagScope
    from kafka_assignors.clients._report import RebalanceReport
    from kafka_assignors.lag import LagFunction, Lags, LagSource

__all__ = ["LagAdapter", "unknown"]


def unknown(reason: str) -> LagFunction:
    """A source that has nothing to tell but why."""

    def lags(topics: Iterable[str], group_id: str) -> Lags:
        raise LagError(reason)

    return lags


class LagAdapter(ClientAdapter):
    """`kafka_assignors.LagBasedAssignor` as a plug-in of one client, for one consumer.

    The leader needs the lags when it plans. Without a source of yours it reads them from the cluster: the offsets that
    the consumer's own group has committed, and where its `auto_offset_reset` would start without a commit. A client
    of the same kind, made for this and closed again, asks for those of all topics with a bounded number of requests;
    it gets the consumer's settings, those of security included.

    When they cannot be told in time, members keep what they own, new partitions are balanced by number, and the reason
    is logged as a warning; the rebalance goes on.

    Args:
        lags: where lags come from instead: a mapping of topic to the lag of each partition by number, a `LagSource`, or
            a function with its arguments. It counts on the leader, as all options do.
        scope: as for `kafka_assignors.LagBasedAssignor`.
        max_skew: likewise.
        keep: likewise.
        threshold: likewise.
        deadline: how many seconds a rebalance waits for the lags, but half the consumer's session timeout at most: a
            leader sends no heartbeats while it plans.
        rack: `client.rack` of this consumer, told to the group; it does not count for the plan.
        on_rebalance: as for `ClientAdapter`.

    Raises:
        OptionError: an unknown value.
    """

    name = LagBasedAssignor.name

    def __init__(
        self,
        *,
        lags: Lags | LagSource | LagFunction | None = None,
        scope: LagScope = "topic",
        max_skew: int | None = 0,
        keep: LagKeep = "none",
        threshold: int = 0,
        deadline: float = 5.0,
        rack: str | None = None,
        on_rebalance: Callable[[RebalanceReport], object] | None = None,
    ) -> None:
        self._options = LagBasedAssignor(lags, scope, max_skew, keep, threshold, deadline)
        self._begin(self._options, rack, on_rebalance)

    @abstractmethod
    def _own_source(self, coordinator: object, timeout: float) -> LagSource | LagFunction:
        """A source that reads the offsets of the coordinator's cluster, with a client of its own."""

    def _asking(self) -> LagBasedAssignor:
        """The assignor with all that is known of the consumer: a source, the group, and the time that it has."""
        coordinator: Any = self._serving()
        group_id, deadline, source = "", self._options.deadline, self._options.lags
        if coordinator is not None:
            group_id, session = self._session(coordinator)
            deadline = min(deadline, session / 2)
        if source is None and (coordinator is None or not group_id):
            source = unknown("the consumer could not be found; call attach(consumer), or give lags=")
        elif source is None:
            source = self._own_source(coordinator, deadline)
        return replace(self._options, lags=source, group_id=group_id, deadline=deadline)
