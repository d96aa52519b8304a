"""What the commands share: their two forms of output, and their exit statuses."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from kafka_assignors.errors import KafkaAssignorsError

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD_INPUT = 2


class Output(StrEnum):
    """How a command answers."""

    TEXT = "text"
    JSON = "json"


def console() -> Console:
    """Standard output; where that is no terminal, wide enough for any table."""
    out = Console(highlight=False, markup=False)
    return out if out.is_terminal else Console(highlight=False, markup=False, width=200)


@contextmanager
def told() -> Iterator[None]:
    """Errors that this package raises on purpose become one sentence on standard error, and exit status 2."""
    try:
        yield
    except KafkaAssignorsError as error:
        typer.echo(f"kafka-assignors: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from error


def show(key: bytes) -> str:
    """A key for people: text where it is printable, hex where it is not."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return repr(text) if text.isprintable() else f"0x{key.hex()}"


def plain(value: Any) -> Any:
    """A dataclass, and what it holds, as JSON has it; bytes in hex, properties left out."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    json.dump(plain(value), sys.stdout, indent=2)
    sys.stdout.write("\n")
