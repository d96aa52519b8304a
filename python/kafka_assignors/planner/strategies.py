"""The strategies that `compare` and `rebalance-cost` put side by side."""

from __future__ import annotations

from kafka_assignors.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    LagBasedAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
)

__all__ = ["STANDARD"]

STANDARD: tuple[Assignor, ...] = (
    StickyAssignor(),
    CooperativeStickyAssignor(),
    StickyStreamJoinAssignor(),
    LagBasedAssignor(),
    LagBasedAssignor(scope="group", max_skew=None, keep="owners"),
    RangeAssignor(),
    RoundRobinAssignor(),
)
"""All strategies with their defaults, and the one by lag also with its stickiest options."""
