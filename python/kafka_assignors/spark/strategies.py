"""Strategies by their text: `sticky`, `sticky(mode=fair)`, `lag(scope=group, max_skew=2)`."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_assignors.assignors import Assignor, LagBasedAssignor, by_name
from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OBSERVED", "STRATEGIES", "KernelOptions", "kernel_options", "label", "parse", "split"]

STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky", "sticky-join", "lag")
"""What is replayed if nothing is asked for: all strategies, as they are by default."""

OBSERVED = "observed"
"""The name, in the column `strategy`, of what the group really did."""

KernelOptions: TypeAlias = tuple[str, tuple[str, str, str] | tuple[str, int | None, int | None]]

# What an option may be and still change a replay: the tables know no racks, and lags come from a table.
_OPTIONS = {
    "sticky": ("mode",),
    "cooperative-sticky": ("mode",),
    "lag": ("scope", "max_skew", "keep", "threshold"),
}
_INTEGERS = {"max_skew", "threshold"}


def split(text: str) -> list[str]:
    """The strategies of a list such as the command line has it: commas inside parentheses do not count.

    >>> split("range, lag(scope=group, max_skew=2),sticky")
    ['range', 'lag(scope=group, max_skew=2)', 'sticky']
    """
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def parse(text: str) -> Assignor:
    """The strategy of a text.

    Args:
        text: a name that `kafka_assignors.assignors.by_name` knows, or one with options in parentheses: `mode` for
            `sticky` and `cooperative-sticky`; `scope`, `max_skew` (a number or `none`), `keep` and `threshold` for
            `lag`.

    Raises:
        OptionError: no strategy or option has this name, or a value cannot be used.

    >>> parse("lag(max_skew=none, keep=owners)").max_skew is None
    True
    """
    match = re.fullmatch(r"\s*([\w.-]+)\s*(?:\(([^()]*)\))?\s*", text) if isinstance(text, str) else None
    if match is None:
        raise OptionError(f"the strategy is {text!r}; give a name, or one with options: 'sticky(mode=fair)'")
    plain = by_name(match[1])
    given: dict[str, Any] = {}
    for option in (match[2] or "").split(","):
        if not option.strip():
            continue
        name, equals, value = (part.strip() for part in option.partition("="))
        known = _OPTIONS.get(plain.name, ())
        if name not in known or not equals:
            say = f"give {', '.join(known)}, each with its value" if known else "it takes none"
            raise OptionError(f"strategy {text!r}: {option.strip()!r} is no option of {plain.name} here; {say}")
        given[name] = _value(text, name, value)
    return type(plain)(**given) if given else plain


def _value(text: str, name: str, value: str) -> str | int | None:
    if name not in _INTEGERS:
        return value
    if name == "max_skew" and value.lower() == "none":
        return None
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise OptionError(f"strategy {text!r}: {name} is {value!r}; give a number")
    return int(value)


def label(assignor: Assignor) -> str:
    """The text of a strategy, with what is not its default.

    >>> label(parse("lag( max_skew=2,scope=group )"))
    'lag(scope=group, max_skew=2)'
    """
    plain = by_name(assignor.name)
    changed = [
        f"{name}={'none' if value is None else value}"
        for name in _OPTIONS.get(assignor.name, ())
        if (value := getattr(assignor, name)) != getattr(plain, name)
    ]
    return f"{assignor.name}({', '.join(changed)})" if changed else assignor.name


def kernel_options(strategies: Iterable[str | Assignor]) -> list[KernelOptions]:
    """Strategies as the core takes them, each with its label.

    Raises:
        OptionError: none or one twice, an unknown one, or one with an option that a replay cannot honour.
    """
    if isinstance(strategies, str):
        strategies = split(strategies)
    found: dict[str, KernelOptions] = {}
    for each in strategies:
        assignor = each if isinstance(each, Assignor) else parse(each)
        _check_defaults(assignor)
        name = label(assignor)
        if name in found:
            raise OptionError(f"strategy {name!r} is given twice; name each once")
        options = assignor._lag_options() if isinstance(assignor, LagBasedAssignor) else assignor._options()
        found[name] = (name, options)
    if not found:
        raise OptionError(f"no strategy is given; give some of {', '.join(STRATEGIES)}")
    return list(found.values())


def _check_defaults(assignor: Assignor) -> None:
    plain = by_name(assignor.name)
    counting = (*_OPTIONS.get(assignor.name, ()), "protocol")
    for field in fields(plain):  # type: ignore[arg-type]
        if field.name not in counting and getattr(assignor, field.name) != getattr(plain, field.name):
            raise OptionError(
                f"strategy {assignor.name!r}: {field.name} does not count in a replay, whose racks and lags are those "
                "of its tables; leave it at its default"
            )
