"""KIP-54's clean-up listener: it is called only for partitions that were really gained or given up.

    client      on_partitions_revoked(0 1 2 3)      on_partitions_assigned(0 1)
    Holdings                                        given up: 2 3

An eager client revokes all partitions before a rebalance and assigns most of them again after it. A listener that
cleans up revoked partitions throws away state that it needs a moment later. `Holdings` turns the client's calls into
the difference. The listeners in the clients' packages only pass the calls on.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_assignors.clients.common.adapter import Membership

__all__ = ["DiffListener", "Holdings", "Step", "run", "run_async"]

logger = logging.getLogger("kafka_assignors")

Step = tuple[Callable[[Any], Any], Any]
"""A callback and its argument."""


class Holdings:
    """The partitions that a consumer holds.

    Every method updates the held partitions before it returns the difference, in ascending order. So they stay right
    when a callback fails.
    """

    def __init__(self) -> None:
        self._held: set[Any] = set()
        self._membership: Membership | None = None

    @property
    def held(self) -> list[Any]:
        """The partitions held, in ascending order."""
        return sorted(self._held)

    def taken(self, partitions: Iterable[Any]) -> list[Any]:
        """Takes partitions that were lost, or revoked in cooperative rebalancing. Returns those given up."""
        gone = self._held & set(partitions)
        self._held -= gone
        return sorted(gone)

    def added(self, partitions: Iterable[Any], now: Membership | None) -> list[Any]:
        """Takes additional partitions, as in cooperative rebalancing. Returns those gained."""
        gained = set(partitions) - self._held
        self._held |= gained
        self._membership = now
        return sorted(gained)

    def replaced(self, partitions: Iterable[Any], now: Membership | None) -> tuple[list[Any], list[Any]]:
        """Takes the whole assignment, as in eager rebalancing. Returns the partitions given up, and those gained.

        After a missed generation, or as another member, no partition counts as kept: another member may have had it.
        """
        before, after = self._held, set(partitions)
        continuous = self._membership is None or now is None or _continuous(self._membership, now)
        self._held, self._membership = after, now
        kept = before & after if continuous else set()
        return sorted(before - kept), sorted(after - kept)


def _continuous(before: Membership, now: Membership) -> bool:
    return before.member_id == now.member_id and 0 <= now.generation - before.generation <= 1


class DiffListener:
    """The common half of the clients' listeners: the holdings, the two hooks, and a user's ordinary listener."""

    def __init__(self, listener: Any = None) -> None:
        self._listener = listener
        self._holdings = Holdings()

    @property
    def held(self) -> list[Any]:
        """The partitions held, in ascending order."""
        return self._holdings.held

    def on_partitions_gained(self, partitions: list[Any]) -> Any:
        """Override: the partitions were not held before, and no record of them was read yet. Never an empty list."""

    def on_partitions_given_up(self, partitions: list[Any]) -> Any:
        """Override: the partitions are held no longer, or another member may have held them meanwhile. Never empty."""

    def _due(self, given_up: list[Any], gained: Iterable[Any] = ()) -> list[Step]:
        steps: list[Step] = []
        if given_up:
            steps.append((self.on_partitions_given_up, given_up))
        if gained:
            steps.append((self.on_partitions_gained, gained))
        return steps

    def _user(self, name: str, partitions: Iterable[Any]) -> list[Step]:
        return [] if self._listener is None else [(getattr(self._listener, name), partitions)]

    def _on_close(self) -> list[Step]:
        return self._due(self._holdings.taken(self._holdings.held))


def run(steps: Iterable[Step]) -> None:
    """Takes every step, also after an error. The first error is raised at the end; the others are logged."""
    failure: Exception | None = None
    for call, partitions in steps:
        try:
            call(partitions)
        except Exception as error:
            failure = _first(failure, error, call)
    if failure is not None:
        raise failure


async def run_async(steps: Iterable[Step]) -> None:
    """As `run`; awaits the result of a step if it can be awaited."""
    failure: Exception | None = None
    for call, partitions in steps:
        try:
            result = call(partitions)
            if inspect.isawaitable(result):
                await result
        except Exception as error:
            failure = _first(failure, error, call)
    if failure is not None:
        raise failure


def _first(failure: Exception | None, error: Exception, call: Callable[..., Any]) -> Exception:
    if failure is None:
        return error
    logger.error("%r failed as well", call, exc_info=error)
    return failure
