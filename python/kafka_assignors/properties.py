"""Settings of a client as the commands take them: a file for `--config`, and single ones for `-X`.

>>> [setting.value for setting in settings_given(None, ["client.id=a", "client.id=b"])]
['a', 'b']
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Setting", "settings_given"]

_COMMENTS = ("#", "!")


class Setting(NamedTuple):
    """One setting.

    Attributes:
        name: its name.
        value: its value; it may be a secret, so no error repeats it.
        where: the option, or the line of the file, that it comes from, for errors.
        single: whether it was given with `-X`.
    """

    name: str
    value: str
    where: str
    single: bool


def settings_given(config: str | None, single: Sequence[str] | None) -> list[Setting]:
    """The settings of the file, a line each, and then those of `-X`: in a dictionary, the latter replace the former.

    Args:
        config: the file of `--config`; empty lines and those that begin with `#` or `!` are left out.
        single: the texts of `-X`.

    Raises:
        OptionError: the file cannot be read, or a line or a text is not NAME=VALUE.
    """
    found = [] if config is None else _of_file(config)
    return found + [_setting(text, "-X", f"-X number {number}", True) for number, text in enumerate(single or (), 1)]


def _of_file(config: str) -> list[Setting]:
    if "=" in config and not Path(config).exists():
        # The text is not repeated: it may be a password.
        raise OptionError("--config is the name of a file, which does not exist; give one setting as -X NAME=VALUE")
    try:
        lines = Path(config).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise OptionError(f"--config {config!r} cannot be read: {error}") from error
    places = [(line, f"line {number} of {config!r}") for number, line in enumerate(lines, 1)]
    return [
        _setting(line, where, where, False)
        for line, where in places
        if line.strip() and not line.lstrip().startswith(_COMMENTS)
    ]


def _setting(text: str, where: str, place: str, single: bool) -> Setting:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise OptionError(f"{place} is not NAME=VALUE")
    return Setting(name.strip(), value if single else value.strip(), where, single)
