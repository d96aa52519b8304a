"""Strategies as text: one grammar for the planner, the Spark pipeline and the drop-in consumers of all clients.

    range
    sticky(mode=fair)
    lag(scope=group, max_skew=none, keep=owners)
    my_module:Failover(zone=a)

A name is one that [`by_name`][kafka_assignors.assignors.by_name] accepts. Options stand in parentheses, each with its
value; an option that is left out has its default. A text with a colon is an assignor of your own: the module, which is
imported, the class, and the keyword arguments of its constructor. Among these, numbers, `true`, `false` and `none` are
converted; any other value is text.

| Strategy | Options |
|---|---|
| `sticky`, `cooperative-sticky` | `mode`, `racks` |
| `lag` | `scope`, `max_skew` (a number or `none`), `keep`, `threshold` (a number) |
| `weighted`, `cooperative-weighted` | `capacity`, `tolerance`, `deadline` (numbers) |
| `uniform`, `server-side-range` | `broker`, a release such as `4.3` |
| the others | none |
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import Field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import Assignor, by_name
from kafka_assignors.errors import OptionError
from kafka_assignors.own import CustomAssignor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OPTIONS", "parse_strategy", "split_strategies", "strategy_name", "strategy_text"]

_STICKY = ("mode", "racks")
_WEIGHTED = ("capacity", "tolerance", "deadline")
OPTIONS = {
    "sticky": _STICKY,
    "cooperative-sticky": _STICKY,
    "lag": ("scope", "max_skew", "keep", "threshold"),
    "uniform": ("broker",),
    "server-side-range": ("broker",),
    "weighted": _WEIGHTED,
    "cooperative-weighted": _WEIGHTED,
}
"""The options that a text can give, by the strategy's wire name."""

_NUMBERS = ("max_skew", "threshold")
_FRACTIONS = ("capacity", "tolerance", "deadline")
_GRAMMAR = re.compile(r"\s*([\w.-]+)\s*(?:\(([^()]*)\))?\s*")
_WITH_COLON = re.compile(r"\s*([\w.-]+)\s*:\s*([^()]*?)\s*")
_OWN = re.compile(r"\s*([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)\s*(?:\(([^()]*)\))?\s*")
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
        OptionError: no strategy has this name, it has no such option, or the option cannot have this value; the module
            cannot be imported, or the class is no `CustomAssignor`.

    >>> parse_strategy("sticky(mode=sticky-yet-fair)")
    StickyAssignor(mode='sticky-yet-fair', racks='before-stickiness')
    >>> parse_strategy("lag(max_skew=none, keep=owners)").max_skew is None
    True
    """
    found = _GRAMMAR.fullmatch(text) if isinstance(text, str) else None
    own = _OWN.fullmatch(text) if isinstance(text, str) else None
    if found is None and own is not None and not _is_named(own[1]):
        return _own(text, own[1], own[2], own[3] or "")
    if found is None:
        raise OptionError(f"the strategy is {text!r}; {_correction(text)}")
    default = by_name(found[1])
    known = OPTIONS.get(default.name, ())
    given: dict[str, Any] = {}
    for option, key, value in _options(found[2] or ""):
        name = key.replace("-", "_")
        if name not in known or value is None:
            hint = f"give {', '.join(known)}, each with its value" if known else "it takes none"
            raise OptionError(f"strategy {text!r}: {option!r} is no option of {default.name}; {hint}")
        given[name] = _value(text, name, value)
    return replace(default, **given) if given else default  # type: ignore[type-var]


def _options(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Each option of the text in parentheses: the option, its name and its value, which is None without an equals sign.

    >>> list(_options("scope = group,, keep"))
    [('scope = group', 'scope', 'group'), ('keep', 'keep', None)]
    """
    for option in filter(None, map(str.strip, text.split(","))):
        name, equals, value = (part.strip() for part in option.partition("="))
        yield option, name, value if equals else None


def _is_named(name: str) -> bool:
    try:
        by_name(name)
    except OptionError:
        return False
    return True


def _own(text: str, module: str, name: str, options: str) -> CustomAssignor:
    """An assignor of the user's: imported, and made with these options."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise OptionError(f"strategy {text!r}: {type(error).__name__}: {error}") from error
    if not (inspect.isclass(found) and issubclass(found, CustomAssignor)):
        raise OptionError(f"strategy {text!r}: {module}:{name} is no subclass of kafka_assignors.CustomAssignor")
    given: dict[str, Any] = {}
    for option, key, value in _options(options):
        if value is None or not key.isidentifier() or key in given:
            raise OptionError(f"strategy {text!r}: {option!r} is no option; give each once, with its value: zone=a")
        given[key] = _literal(value)
    try:
        made: CustomAssignor = found(**given)
    except Exception as error:
        raise OptionError(f"strategy {text!r}: {type(error).__name__}: {error}") from error
    return made


_WORDS = {"none": None, "true": True, "false": False}


def _literal(value: str) -> str | int | float | bool | None:
    """A value of an own assignor's option.

    >>> [_literal(each) for each in ("a", "12", "0.5", "none", "true")]
    ['a', 12, 0.5, None, True]
    """
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if re.fullmatch(r"[+-]?[0-9]{1,20}", value):
        return int(value)
    if re.fullmatch(r"[+-]?[0-9]{1,20}\.[0-9]{1,20}", value):
        return float(value)
    return value


def _own_text(assignor: CustomAssignor) -> str:
    """The text of an own assignor. If it is no dataclass, the arguments of its constructor are not known."""
    kind = type(assignor)
    options: tuple[Field[Any], ...] = fields(assignor) if is_dataclass(assignor) else ()
    changed: list[str] = []
    for each in options:
        value = getattr(assignor, each.name)
        if each.init and value != each.default:
            changed.append(f"{each.name}={str(value).lower() if value is None or isinstance(value, bool) else value}")
    text = f"{kind.__module__}:{kind.__qualname__}"
    return f"{text}({', '.join(changed)})" if changed else text


def _correction(text: object) -> str:
    colon = _WITH_COLON.fullmatch(text) if isinstance(text, str) else None
    if colon is None:
        return "give a name, or one with options: 'sticky(mode=fair)'"
    return f"options stand in parentheses: {f'{colon[1]}({colon[2]})'!r}"


def _value(text: str, name: str, value: str) -> str | int | float | None:
    if name in _FRACTIONS:
        if not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,20})?", value):
            raise OptionError(f"strategy {text!r}: {name} is {value!r}; give a number")
        return float(value)
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
    if isinstance(assignor, CustomAssignor) and assignor.name not in OPTIONS:
        return _own_text(assignor)
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
