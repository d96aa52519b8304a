"""The members of one group in one process tell each other that the group rebalances.

A member learns of a rebalance from the answer to a heartbeat. Ten members of a process with a heartbeat each three
seconds send one every 0.3 s, if they take turns:

    member 0   ♥─────────────────────────♥
    member 1      ♥─────────────────────────♥
    member 2         ♥── "rebalance" ──► the others send theirs at once

So the process joins after a tenth of the time, with no more heartbeats than before.

A group is identified by its name and its bootstrap servers, as they are written. If the groups of two clusters are
written alike, a member sends a heartbeat too early; nothing worse happens.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_assignors.member.config import MemberConfig

__all__ = ["Neighbour", "Neighbours"]


class Neighbour(Protocol):
    """A member of a group in this process."""

    own_news_due: float
    """The time (`time.monotonic`) from which on an answer to the member's own requests may announce a rebalance."""

    def hear(self, generation: int) -> None:
        """Called when another member has learnt that this generation is over."""


@dataclass
class Neighbours:
    """The members of one group in this process.

    Attributes:
        members: in the order in which they came. The tuple is replaced as a whole, so it is read without a lock.
    """

    members: tuple[Neighbour, ...] = ()
    _ended: int = field(default=-1, init=False)

    @classmethod
    def of(cls, member: Neighbour, config: MemberConfig) -> Neighbours:
        """The neighbours of this member, which is one of them until `leave`."""
        name = (config.group_id, tuple(config.client.bootstrap))
        with _lock:
            neighbours = _groups.setdefault(name, cls())
            neighbours.members += (member,)
            return neighbours

    def leave(self, member: Neighbour) -> None:
        """Takes the member out, when its thread ends."""
        with _lock:
            self.members = tuple(other for other in self.members if other is not member)
            for name in [name for name, neighbours in _groups.items() if not neighbours.members]:
                del _groups[name]

    def place(self, member: Neighbour) -> tuple[int, int]:
        """The member's index among the members, from 0, and the number of members."""
        members = self.members
        return members.index(member), len(members)

    def tell(self, member: Neighbour, generation: int) -> None:
        """Tells the other members that this generation is over; only the first call for a generation does.

        The caller must not hold its own member's lock. `hear` takes the lock of another member, so two members that
        tell each other at the same time would deadlock.
        """
        with _lock:
            if generation == self._ended:
                return
            self._ended = generation
        for other in self.members:
            if other is not member:
                other.hear(generation)


_lock = threading.Lock()
_groups: dict[tuple[object, ...], Neighbours] = {}


def _in_child() -> None:
    """In the child of a fork no member exists, and another thread may have held the lock during the fork."""
    global _lock
    _lock = threading.Lock()
    _groups.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
