"""The flags of the commands: their texts in `--help`, durations as text, deprecated flags; and errors of commands."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from kafka_assignors.errors import OptionError
from kafka_assignors.printable import SENTENCE, printable

__all__ = ["BAD_INPUT", "FlagTexts", "deprecated", "duration_s", "print_error"]

BAD_INPUT = 2
"""The exit status of every command after bad usage or input, or if a cluster cannot be read."""

_PART = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(d|h|min|m|s)")
_UNITS = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_MOST_S = 366 * 86_400


class FlagTexts(NamedTuple):
    """A flag that several rooms have. typer makes it of these texts; the rooms below `cli` and `spark` import no typer.

    Attributes:
        names: the flag, and other spellings of it.
        help: what it does.
        metavar: the form of its value; None for a number, or a flag without a value.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None = None


def print_error(error: object) -> None:
    """Prints an error of a command as one sentence on standard error."""
    print(f"kafka-assignors: {printable(error, SENTENCE)}", file=sys.stderr)


def deprecated(old: str, new: str) -> None:
    """Prints one line on standard error, which names the flag that replaces a deprecated one."""
    print(f"kafka-assignors: {old} is deprecated; give {new}", file=sys.stderr)


def duration_s(option: str, text: str) -> float:
    """A duration in seconds, such as `45m`, `1h30m`, `90s` or `2d`.

    Args:
        option: the name of the option, for the error.
        text: the duration.

    Raises:
        OptionError: another text, 0, or more than a year.

    >>> duration_s("--horizon", "1h30m")
    5400.0
    """
    text = text.strip()
    parts = _PART.findall(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not 0 < seconds <= _MOST_S:
        raise OptionError(f"{option} is {text!r}; give a duration such as 45m, 1h30m or 90s, of a year at most")
    return seconds
