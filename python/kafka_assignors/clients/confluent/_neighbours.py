"""The members of a group that share a process: what one of them hears, all of them know.

Only an answer to a heartbeat tells a member that its group rebalances. Ten members of one process that each ask every
three seconds ask every 0.3 s between them, if they take turns: the first to hear tells the others, which then ask at
once instead of at their next heartbeat. Nobody asks more often for that, and a rebalance of a group begins, in this
process, after a tenth of the time.

A group is known by its name and its bootstrap servers as they are written. Where two clusters look alike the worst
that happens is a heartbeat too early.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_assignors.clients.confluent._conf import ConsumerConfig
    from kafka_assignors.clients.confluent.membership import Member

__all__ = ["Neighbours"]


@dataclass
class Neighbours:
    """The members of one group in this process.

    Attributes:
        members: in the order in which they came. Replaced as a whole, so that it may be read without a lock.
    """

    members: tuple[Member, ...] = ()
    _told: int = field(default=-1, init=False)

    @classmethod
    def of(cls, member: Member, config: ConsumerConfig) -> Neighbours:
        """Those of this member, which is one of them until it says `leave`."""
        name = (config.group_id, tuple(config.client.bootstrap))
        with _lock:
            neighbours = _groups.setdefault(name, cls())
            neighbours.members += (member,)
            return neighbours

    def leave(self, member: Member) -> None:
        """The member's thread ends. What it was told last may have come too late for it, and is lost."""
        with _lock:
            self.members = tuple(other for other in self.members if other is not member)
            for name in [name for name, neighbours in _groups.items() if not neighbours.members]:
                del _groups[name]

    def place(self, member: Member) -> tuple[int, int]:
        """Which of them the member is, from 0, and how many there are."""
        members = self.members
        return members.index(member), len(members)

    def tell(self, member: Member, generation: int) -> None:
        """The member has heard that this generation is over. The others are told by the first to hear only.

        Called without any lock of the member: the others' are taken here.
        """
        with _lock:
            if generation == self._told:
                return
            self._told = generation
        for other in self.members:
            if other is not member:
                other.hear(generation)


_lock = threading.Lock()
_groups: dict[tuple[object, ...], Neighbours] = {}


def _in_child() -> None:
    """A fork takes no member along, but perhaps the lock as another thread held it."""
    global _lock
    _lock = threading.Lock()
    _groups.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
