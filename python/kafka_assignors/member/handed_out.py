"""The plans that a leader remembers, so that no member can claim a partition that it was not assigned.

The core decides which claims the plans make false (`planning/leader/handed_out.rs`); this module decides which plans
the core gets. A plan counts after the leader got its own assignment of that plan from the broker. Then the broker has
stored the plan, and no other plan of that generation can have reached a member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_assignors.assignor import EarlierPlans
    from kafka_assignors.group import Plan

__all__ = ["HandedOut"]

# The most plans that are remembered beside the stored one. They may not have reached the group, and each takes a few
# bytes for each partition.
_MOST = 8


@dataclass(frozen=True, slots=True)
class _Made:
    generation: int | None
    plans: tuple[Plan, ...]


class HandedOut:
    """The plans that one consumer made as a leader. Not thread-safe.

    Args:
        anonymous: whether the client does not pass on the `group.instance.id` of the other members.
        bare: whether the assignments are sent without user data.
    """

    def __init__(self, *, anonymous: bool = False, bare: bool = False) -> None:
        self._anonymous = anonymous
        self._bare = bare
        self._stored: _Made | None = None
        self._open: list[_Made] = []

    def planned(self, generation: int | None, *plans: Plan) -> None:
        """Adds the plan of a generation that this member leads; or two plans, with different topics."""
        self._drop(generation)
        self._open = [*self._open[1 - _MOST :], _Made(generation, plans)]

    def taken(self, generation: int | None, *, led: bool) -> None:
        """Takes note of an assignment of this member.

        Args:
            generation: of the group; None if the client does not show it.
            led: whether the assignment is from the member's own latest plan.
        """
        if led and self._open and self._open[-1].generation == generation:
            self._stored, self._open = self._open[-1], []
        else:
            # Another member made the plan of this generation, since the group's coordinator has changed.
            self._drop(generation)

    def _drop(self, generation: int | None) -> None:
        self._open = [made for made in self._open if made.generation != generation]

    def forget(self) -> None:
        """Forgets all plans, since the membership is lost. A group that was created again counts generations from 1."""
        self._stored, self._open = None, []

    def earlier_plans(self) -> EarlierPlans | None:
        """The plans for the core; None if there are none."""
        made = [*filter(None, [self._stored]), *self._open]
        plans = [(each.generation, plan._core) for each in made for plan in each.plans]
        return (plans, self._anonymous, self._bare) if plans else None
