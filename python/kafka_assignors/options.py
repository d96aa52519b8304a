"""Checks of the options that several assignors and sources take."""

from __future__ import annotations

import math

from kafka_assignors.errors import OptionError

__all__ = ["check_choice", "check_seconds"]


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raises OptionError unless the value is one of those known."""
    if value not in known:
        raise OptionError(f"{name} is {value!r}; give one of {', '.join(map(repr, known))}")


def check_seconds(name: str, value: object) -> None:
    """Raises OptionError unless the value is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise OptionError(f"{name} is {value!r}; give a positive number of seconds")
