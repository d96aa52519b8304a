"""Strategies as text: one grammar for the planner, the Spark pipeline and the confluent consumer.

    range
    sticky(mode=fair)
    lag(scope=group, max_skew=none, keep=owners)

A name is one that [`by_name`][kafka_assignors.assignors.by_name] knows. Options stand in parentheses, each with its
value; an option that is left out has its default.

| Strategy | Options |
|---|---|
| `sticky`, `cooperative-sticky` | `mode`, `racks` |
| `lag` | `scope`, `max_skew` (a number or `none`), `keep`, `threshold` (a number) |
| `uniform`, `server-side-range` | `broker`, a release such as `4.3` |
| the others | none |
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from kafka_assignors.assignors import Assignor, by_name
from kafka_assignors.errors import OptionError

__all__ = ["OPTIONS", "parse_strategy", "split_strategies", "strategy_name", "strategy_text"]

_STICKY = ("mode", "racks")
OPTIONS = {
    "sticky": _STICKY,
    "cooperative-sticky": _STICKY,
    "lag": ("scope", "max_skew", "keep", "threshold"),
    "uniform": ("broker",),
    "server-side-range": ("broker",),
}
"""The options that a text can give, by the strategy's wire name."""

_NUMBERS = ("max_skew", "threshold")
_GRAMMAR = re.compile(r"\s*([\w.-]+)\s*(?:\(([^()]*)\))?\s*")
_WITH_COLON = re.compile(r"\s*([\w.-]+)\s*:\s*([^()]*?)\s*")
_COMMA_OUTSIDE = re.compile(r",(?![^()]*\))")


def split_strategies(text: str) -> list[str]:
    """The strategies of a list with commas; a comma inside parentheses separates options.

    >>> split_strategies("range, lag(scope=group, max_skew=2),sticky")
    ['range', 'lag(scope=group, max_skew=2)', 'sticky']
    """
    return [part.strip() for part in _COMMA_OUTSIDE.split(text) if part.strip()]


def parse_strategy(text: str) -> Assignor:
    """The strategy that a text names.

    Args:
        text: a name, or a name and options in parentheses.

    Raises:
        OptionError: no strategy has this name, it has no such option, or the option cannot have this value.

    >>> parse_strategy("sticky(mode=sticky-yet-fair)")
    StickyAssignor(mode='sticky-yet-fair', racks='before-stickiness')
    >>> parse_strategy("lag(max_skew=none, keep=owners)").max_skew is None
    True
    """
    found = _GRAMMAR.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise OptionError(f"the strategy is {text!r}; {_correction(text)}")
    default = by_name(found[1])
    known = OPTIONS.get(default.name, ())
    given: dict[str, Any] = {}
    for option in filter(None, map(str.strip, (found[2] or "").split(","))):
        name, equals, value = (part.strip() for part in option.partition("="))
        name = name.replace("-", "_")
        if name not in known or not equals:
            hint = f"give {', '.join(known)}, each with its value" if known else "it takes none"
            raise OptionError(f"strategy {text!r}: {option!r} is no option of {default.name}; {hint}")
        given[name] = _value(text, name, value)
    return replace(default, **given) if given else default  # type: ignore[type-var]


def _correction(text: object) -> str:
    colon = _WITH_COLON.fullmatch(text) if isinstance(text, str) else None
    if colon is None:
        return "give a name, or one with options: 'sticky(mode=fair)'"
    return f"options stand in parentheses: {f'{colon[1]}({colon[2]})'!r}"


def _value(text: str, name: str, value: str) -> str | int | None:
    if name not in _NUMBERS:
        return value
    if name == "max_skew" and value.lower() == "none":
        return None
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise OptionError(f"strategy {text!r}: {name} is {value!r}; give a number")
    return int(value)


def strategy_text(assignor: Assignor) -> str:
    """The text of a strategy, with the options that do not have their default. `parse_strategy` reads it.

    >>> strategy_text(parse_strategy("lag( max_skew=2,scope=group )"))
    'lag(scope=group, max_skew=2)'
    """
    default = by_name(assignor.name)
    changed = [
        f"{name}={'none' if value is None else value}"
        for name in OPTIONS.get(assignor.name, ())
        if (value := getattr(assignor, name)) != getattr(default, name)
    ]
    return f"{assignor.name}({', '.join(changed)})" if changed else assignor.name


def strategy_name(text: str) -> str:
    """The name in the text of a strategy, without the options.

    >>> strategy_name("lag(scope=group)")
    'lag'
    """
    return text.partition("(")[0].strip()
