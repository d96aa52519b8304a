"""Strategies as people write them: a name, and options behind a colon."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    LagBasedAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
    by_name,
)
from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["STANDARD", "parse_strategy", "strategy_text"]

STANDARD: tuple[Assignor, ...] = (
    StickyAssignor(),
    CooperativeStickyAssignor(),
    StickyStreamJoinAssignor(),
    LagBasedAssignor(),
    LagBasedAssignor(scope="group", max_skew=None, keep="owners"),
    RangeAssignor(),
    RoundRobinAssignor(),
)
"""What `compare` and `rebalance-cost` put side by side."""


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{text[:40]!r} is not a number") from None


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "mode": str,
    "racks": str,
    "scope": str,
    "keep": str,
    "max_skew": lambda text: None if text == "none" else _count(text),
    "threshold": _count,
}


def parse_strategy(text: str) -> Assignor:
    """The strategy that a text names.

    Args:
        text: a name as for `kafka_assignors.assignors.by_name`, and, behind a colon, options of its class, separated by
            commas.

    Raises:
        OptionError: no strategy has this name, or it has no such option, or not with this value.

    >>> parse_strategy("sticky:mode=sticky-yet-fair")
    StickyAssignor(mode='sticky-yet-fair', racks='before-stickiness')
    >>> parse_strategy("lag:scope=group,max_skew=none").max_skew is None
    True
    """
    name, _, rest = text.partition(":")
    assignor = by_name(name.strip())
    known = {field.name for field in fields(assignor)} & set(_OPTIONS)  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for part in filter(None, map(str.strip, rest.split(","))):
        option, equals, value = part.partition("=")
        option = option.strip().replace("-", "_")
        if not equals or option not in known:
            some = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise OptionError(f"strategy {name!r} has no option {part!r}; {some}, as {name}:option=value")
        try:
            given[option] = _OPTIONS[option](value.strip())
        except OptionError as error:
            raise OptionError(f"option {option} of strategy {name!r}: {error}") from None
    return replace(assignor, **given) if given else assignor  # type: ignore[type-var]


def strategy_text(assignor: Assignor) -> str:
    """The text that names a strategy: what `parse_strategy` takes, without what is the default.

    >>> strategy_text(StickyAssignor(mode="fair"))
    'sticky:mode=fair'
    """
    default = by_name(assignor.name)
    given = [
        f"{field.name}={'none' if value is None else value}"
        for field in fields(assignor)  # type: ignore[arg-type]
        if field.name in _OPTIONS and (value := getattr(assignor, field.name)) != getattr(default, field.name)
    ]
    return assignor.name + (":" + ",".join(given) if given else "")
