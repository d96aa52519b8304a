"""Typed reading of a dictionary of librdkafka settings: values may be text or Python's own numbers and booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["TypedSettings"]

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


class TypedSettings:
    """A view of a configuration that reads each setting as its type, with librdkafka's spellings and ranges.

    An empty text counts as not given, as in librdkafka. Values are quoted in errors only by the methods for numbers,
    booleans and choices, none of which is ever a secret.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        for name in config:
            if not isinstance(name, str):
                raise OptionError(f"the configuration has the key {name!r}; give names of settings as str")
        self._config = config

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def raw(self, name: str) -> Any:
        """The value as given; None without one."""
        return self._config.get(name)

    def latest(self, name: str, alias: str) -> str:
        """The name that counts, if a setting has two: the name given last, as in librdkafka."""
        return [each for each in (name, alias, *self._config) if each in (name, alias)][-1]

    def text(self, name: str) -> str | None:
        """The value as text; None without one.

        Raises:
            OptionError: it is neither text nor a number nor a boolean.
        """
        value = self._config.get(name)
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value) or None
        raise OptionError(f"{name} is of type {type(value).__name__}; give a str")

    def integer(self, name: str, least: int, most: int, default: int) -> int:
        """A whole number within a range.

        Raises:
            OptionError: the value is no whole number, or not within the range.
        """
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text) if len(text) <= 20 else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise OptionError(f"{name} is {text[:40]!r}; give an integer from {least} to {most}")
        return value

    def milliseconds(self, name: str, least: int, most: int, default: int) -> float:
        """A time, in seconds; range and default are milliseconds, as the setting is.

        Raises:
            OptionError: the value is no whole number, or not within the range.
        """
        return self.integer(name, least, most, default) / 1000

    def boolean(self, name: str, *, default: bool) -> bool:
        """True or false.

        Raises:
            OptionError: the value is neither.
        """
        text = self.text(name)
        if text is None:
            return default
        if text.lower() in _TRUE:
            return True
        if text.lower() in _FALSE:
            return False
        raise OptionError(f"{name} is {text[:40]!r}; give true or false")

    def choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        """One of several words, in any letter case.

        Raises:
            OptionError: the value is none of them.
        """
        text = self.text(name)
        if text is None:
            return default
        if text.lower() in known:
            return text.lower()
        raise OptionError(f"{name} is {text[:40]!r}; give one of {', '.join(known)}")
