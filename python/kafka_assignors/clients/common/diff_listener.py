"""KIP-54's clean-up listener: of all that a rebalance takes and gives back, only what really came or went.

Eager clients take everything away before a rebalance and hand out the whole share after it. A listener that cleans up
whatever is revoked throws away the state of partitions that come straight back. `Holdings` remembers what was held
and turns the client's calls into the difference; the listeners of the clients' modules are thin shells around it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_assignors.clients._adapter import Membership

__all__ = ["DiffListener", "Holdings", "Step", "run", "run_async"]

logger = logging.getLogger("kafka_assignors")

Step = tuple[Callable[[Any], Any], Any]
"""A callback and what it is called with."""


class Holdings:
    """What a consumer holds, as its listener is told.

    Every method settles the new state first and returns what is due, (given up, gained), in ascending order: whatever a
    callback does with it, the books are right.
    """

    def __init__(self) -> None:
        self._held: set[Any] = set()
        self._since: Membership | None = None

    @property
    def held(self) -> list[Any]:
        """The partitions held, in ascending order."""
        return sorted(self._held)

    def taken(self, partitions: Iterable[Any]) -> list[Any]:
        """These are gone for good: lost, or revoked in cooperative rebalancing."""
        gone = self._held & set(partitions)
        self._held -= gone
        return sorted(gone)

    def added(self, partitions: Iterable[Any], now: Membership | None) -> list[Any]:
        """These come on top of what is held, as in cooperative rebalancing."""
        gained = set(partitions) - self._held
        self._held |= gained
        self._since = now
        return sorted(gained)

    def replaced(self, partitions: Iterable[Any], now: Membership | None) -> tuple[list[Any], list[Any]]:
        """This is the whole share from now on, as in eager rebalancing.

        A consumer that missed a generation, or became another member, counts as having held nothing in between: another
        member may have had its partitions meanwhile.
        """
        before, after = self._held, set(partitions)
        continuous = self._since is None or now is None or _continuous(self._since, now)
        self._held, self._since = after, now
        kept = before & after if continuous else set()
        return sorted(before - kept), sorted(after - kept)


def _continuous(before: Membership, now: Membership) -> bool:
    return before.member_id == now.member_id and 0 <= now.generation - before.generation <= 1


class DiffListener:
    """What the clients' listeners have in common: the books, the two hooks, and a user's ordinary listener beside."""

    def __init__(self, listener: Any = None) -> None:
        self._listener = listener
        self._holdings = Holdings()

    @property
    def held(self) -> list[Any]:
        """The partitions held, in ascending order."""
        return self._holdings.held

    def on_partitions_gained(self, partitions: list[Any]) -> Any:
        """Override: these were not held before, and nothing was read from them yet. Never an empty list."""

    def on_partitions_given_up(self, partitions: list[Any]) -> Any:
        """Override: these are held no longer, or another member may have held them meanwhile. Never an empty list."""

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
    """Takes every step, whatever the others do; the first error comes out at the end, further ones are logged."""
    failure: Exception | None = None
    for call, partitions in steps:
        try:
            call(partitions)
        except Exception as error:
            failure = _first(failure, error, call)
    if failure is not None:
        raise failure


async def run_async(steps: Iterable[Step]) -> None:
    """As `run`; what a step returns is awaited if it can be."""
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
