"""What a member that leads remembers of its plans, so that nobody can claim what it was not given.

The core decides which claims the plans make false (`leader/handed_out.rs`); this module decides which plans the core
gets. A plan counts once its leader has been given its own share of it: then the broker has stored the plan, and no
other plan of that generation can have reached any member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_assignors.assignor import EarlierPlans
    from kafka_assignors.group import Plan

__all__ = ["HandedOut"]

# The most plans after the last one that counts. It is not known whether they reached the group, and each takes a few
# bytes for each partition.
_MOST = 8


@dataclass(frozen=True, slots=True)
class _Made:
    generation: int | None
    plans: tuple[Plan, ...]


class HandedOut:
    """The plans that one consumer made as a leader. Not thread-safe.

    Args:
        anonymous: whether the client keeps the `group.instance.id` of other members to itself.
    """

    def __init__(self, *, anonymous: bool = False) -> None:
        self._anonymous = anonymous
        self._stored: _Made | None = None
        self._open: list[_Made] = []

    def planned(self, generation: int | None, *plans: Plan) -> None:
        """The member leads and has planned: one plan, or two with different topics."""
        self._drop(generation)
        self._open = [*self._open[1 - _MOST :], _Made(generation, plans)]

    def taken(self, generation: int | None, *, led: bool) -> None:
        """The member has been given a share.

        Args:
            generation: of the group, if the client tells it.
            led: whether the share is of the member's own plan, the latest.
        """
        if led and self._open and self._open[-1].generation == generation:
            self._stored, self._open = self._open[-1], []
        else:
            # The coordinator has changed, and another member made the plan of this generation.
            self._drop(generation)

    def _drop(self, generation: int | None) -> None:
        self._open = [made for made in self._open if made.generation != generation]

    def forget(self) -> None:
        """The membership is lost. The group may have been made again since, with generations that begin at 1."""
        self._stored, self._open = None, []

    def earlier_plans(self) -> EarlierPlans | None:
        """The plans as the core takes them; None if there are none."""
        made = [*filter(None, [self._stored]), *self._open]
        plans = [(each.generation, plan._core) for each in made for plan in each.plans]
        return (plans, self._anonymous) if plans else None
