"""The counterpart of `Strategies` in a group that the broker plans (KIP-848): it reports rebalances, and plans none."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from kafka_assignors.member.rebalance_report import RebalanceReporter, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors.member.data_path import Partition
    from kafka_assignors.member.rebalance_report import Course, RebalanceReport

__all__ = ["BrokerPlanned"]


class BrokerPlanned:
    """The assignments of one consumer. The broker has the plan. Thread-safe; the callback is called with no lock held.

    Args:
        remote_assignor: the broker's assignor for which the consumer votes; None for no vote.
        on_rebalance: the user's callback.
        group_id: the group.

    Attributes:
        cooperative: True: a member keeps the partitions that do not move.
        last_plan: None.
    """

    cooperative = True
    last_plan = None

    def __init__(
        self,
        remote_assignor: str | None,
        on_rebalance: Callable[[RebalanceReport], object] | None,
        group_id: str = "",
    ) -> None:
        # The broker uses the assignor with the most votes, and no answer names it. So reports name this member's vote.
        self._assignor = remote_assignor or ""
        self._on_rebalance = on_rebalance
        self._reporter = RebalanceReporter(group_id)
        self._lock = threading.Lock()

    def metadata(self, topics: Sequence[str], owned: Mapping[str, Sequence[int]]) -> list[tuple[str, bytes]]:
        """An empty list: in this protocol members send no metadata of assignors."""
        return []

    def forget(self) -> None:
        """Takes note that the membership is lost."""
        with self._lock:
            self._reporter.expel()

    def give_up(self, partitions: Iterable[Partition]) -> None:
        """Takes note that the member reads these partitions no longer."""
        with self._lock:
            self._reporter.give_up(partitions)

    def take(
        self,
        protocol: str,
        assignment: bytes,
        generation: int,
        owned: Mapping[str, Sequence[int]],
        course: Course | None = None,
    ) -> None:
        """Reports a new assignment.

        Args:
            protocol: not used; the broker names no assignor.
            assignment: not used; there are no bytes of a leader.
            generation: the member's epoch.
            owned: the partitions of the member now.
            course: how the change went; None if that is not known.
        """
        with self._lock:
            report = self._reporter.report(self._assignor, generation, owned, course=course)
        publish(report, self._on_rebalance)
