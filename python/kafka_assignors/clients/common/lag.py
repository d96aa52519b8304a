"""The common half of the lag-based plug-ins: their options, and the source of the lags."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients.common.adapter import ClientAdapter
from kafka_assignors.errors import LagError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_assignors.assignors import LagKeep, LagScope
    from kafka_assignors.clients.common.adapter import Guard
    from kafka_assignors.lag import LagFunction, Lags, LagSource
    from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = ["LagAdapter", "failing_source"]


def failing_source(reason: str) -> LagFunction:
    """A source that fails with this reason."""

    def lags(topics: Iterable[str], group_id: str) -> Lags:
        raise LagError(reason)

    return lags


class LagAdapter(ClientAdapter):
    """`kafka_assignors.LagBasedAssignor` as a plug-in of one client, for one consumer.

    The leader needs the lags when it plans. By default it reads them from the cluster: the offsets that the consumer's
    group has committed, and without a commit the offset at which its `auto_offset_reset` would start. For this it makes
    a second client with the consumer's settings, those of security included, and closes it again. The number of
    requests does not grow with the number of topics.

    If the lags are not there in time, members keep the partitions that they own, new partitions are balanced by number,
    and the reason is logged as a warning. The rebalance goes on.

    Args:
        lags: another source: a mapping of topic to the lag of each partition by number, a `LagSource`, or a function
            with its arguments. Only the leader's counts, as for all options.
        scope: as for `kafka_assignors.LagBasedAssignor`.
        max_skew: likewise.
        keep: likewise.
        threshold: likewise.
        deadline: how many seconds a rebalance waits for the lags, but half the consumer's session timeout at most: a
            leader sends no heartbeats while it plans.
        rack: `client.rack` of this consumer. The group gets it, but it does not change the plan.
        on_rebalance: as for `ClientAdapter`.
        on_broker_assignor: as for `ClientAdapter`.

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
        on_broker_assignor: Guard = "fail",
    ) -> None:
        self._options = LagBasedAssignor(lags, scope, max_skew, keep, threshold, deadline)
        self._begin(self._options, rack, on_rebalance, on_broker_assignor)

    @abstractmethod
    def _own_source(self, coordinator: object, timeout: float) -> LagSource | LagFunction:
        """A source that reads the offsets of the coordinator's cluster, with a client of its own."""

    def _asking(self) -> LagBasedAssignor:
        """The assignor with the source, the group and the deadline of its consumer."""
        coordinator: Any = self._serving()
        group_id, deadline, source = "", self._options.deadline, self._options.lags
        if coordinator is not None:
            group_id, session = self._session(coordinator)
            deadline = min(deadline, session / 2)
        if source is None and (coordinator is None or not group_id):
            source = failing_source("the consumer could not be found; call attach(consumer), or give lags=")
        elif source is None:
            source = self._own_source(coordinator, deadline)
        return replace(self._options, lags=source, group_id=group_id, deadline=deadline)
