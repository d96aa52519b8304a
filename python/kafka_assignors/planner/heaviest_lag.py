"""The note that a strategy by lag raises the heaviest lag of a member, with the options that avoid it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.planner.observed_group import Finding
from kafka_assignors.planner.solve import solve
from kafka_assignors.printable import listed
from kafka_assignors.strategies import strategy_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.planner.change import Situation

__all__ = ["avoiding", "of_plan", "rises"]

# Options of `lag` that may avoid a heavier member: partitions stay with their owners, or all topics are added up.
_CALMER: tuple[dict[str, Any], ...] = (
    {"keep": "owners"},
    {"scope": "group", "max_skew": None},
    {"scope": "group", "max_skew": None, "keep": "owners"},
)


def rises(before: int | None, after: int | None) -> bool:
    """Whether the heaviest lag of a member is known before and after a change, and is larger after it."""
    return before is not None and after is not None and after > before


def of_plan(
    situation: Situation, assignor: Assignor, lags: Mapping[str, list[int | None]], before: int, after: int
) -> list[Finding]:
    """The note that the heaviest lag rises, with the options that avoid it; none for a strategy without lag.

    Args:
        situation: the group and the change.
        assignor: the strategy of the plan.
        lags: by topic and number.
        before: the heaviest lag of a member before the change.
        after: the heaviest lag in the plan.
    """
    if not isinstance(assignor, LagBasedAssignor):
        return []
    calm = []
    for options in _CALMER:
        other = replace(assignor, **options)
        heaviest = max(solve(situation, other, lags).lags(lags).values())
        if heaviest <= before:
            calm.append(f"{strategy_text(other)} (heaviest {heaviest:,})")
    instead = avoiding(calm) if calm else "no option of lag avoids that here"
    text = f"the heaviest member has {after:,} to read, up from {before:,}: {instead}"
    return [Finding("heaviest-lag", text, warning=False)]


def avoiding(calm: Sequence[str]) -> str:
    """The end of a sentence that names the strategies which do not raise the heaviest lag.

    >>> avoiding(["lag(keep=owners)"])
    'lag(keep=owners) does not'
    """
    return f"{listed(calm, separator=' and ')} {'does' if len(calm) == 1 else 'do'} not"
