"""The output of the commands: text, JSON and CSV, and the exit statuses."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from kafka_assignors.errors import KafkaAssignorsError
from kafka_assignors.flags import BAD_INPUT, print_error
from kafka_assignors.printable import LINE, SENTENCE, printable
from kafka_assignors.report.terminal import WIDE, in_ascii

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_assignors.planner.observed_group import Finding

NO = 1
"""The answer is no, such as: more partitions move than allowed."""
WARNINGS = 3
"""The answer has warnings."""


SCHEMAS = dict.fromkeys(
    (
        "audit-keys",
        "audit-topics",
        "autoscale",
        "compare",
        "decode",
        "decode-group",
        "describe",
        "fleet",
        "plan",
        "rebalance-cost",
        "size",
        "migrate",
    ),
    1,
)
"""The version of each answer in JSON and CSV. It grows when a field is removed or changes its meaning."""

# More findings of one rule would hide those of other rules.
_OF_ONE_RULE = 20
_FORMULA, _QUOTE = ("=", "+", "-", "@", "\t", "\r"), "'"


class Format(StrEnum):
    """The form of an answer that has a table."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class TextOrJson(StrEnum):
    """The form of an answer that is no table."""

    TEXT = "text"
    JSON = "json"


class _SafeConsole(Console):
    """A console whose texts cannot steer the terminal: members of a group choose their own names."""

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (printable(each, LINE) if isinstance(each, str) else each for each in objects)
        super().print(*(in_ascii(each) if self.options.ascii_only else each for each in shown), **options)


def console(wide: bool = False) -> Console:
    """Standard output in the width of the terminal; without a terminal, in the width of COLUMNS, or of 200 characters.

    Args:
        wide: whether lines may be as long as they need.
    """
    out = _SafeConsole(highlight=False, markup=False)
    if wide:
        return _SafeConsole(highlight=False, markup=False, width=WIDE)
    if out.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return out
    return _SafeConsole(highlight=False, markup=False, width=200)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Errors that this package raises on purpose become one sentence on standard error, and exit status 2."""
    try:
        yield
    except KafkaAssignorsError as error:
        print_error(error)
        raise typer.Exit(BAD_INPUT) from error


def show(key: bytes) -> str:
    """A key for people: text where it is printable, hex where it is not."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return repr(text) if text.isprintable() else f"0x{key.hex()}"


def plain(value: Any) -> Any:
    """A dataclass and its fields as values of JSON: bytes in hex, without properties."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def show_findings(out: Console, findings: Iterable[Finding]) -> None:
    """Prints warnings and notes; of many about one rule the first ones and the number of the others."""
    counts: Counter[tuple[str, bool]] = Counter()
    for finding in findings:
        counts[finding.rule, finding.warning] += 1
        if counts[finding.rule, finding.warning] <= _OF_ONE_RULE:
            out.print(Text.assemble(_head(finding.rule, finding.warning), printable(finding.text, SENTENCE)))
    for (rule, warning), count in counts.items():
        if count > _OF_ONE_RULE:
            out.print(Text.assemble(_head(rule, warning), f"{count - _OF_ONE_RULE} more of these (--format json)"))


def _head(rule: str, warning: bool) -> tuple[str, str]:
    return f"{'warning' if warning else 'note'}: {rule}: ", "bold yellow" if warning else "bold"


def print_csv(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table as CSV on standard output, with its headings; an unknown value is an empty cell."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(map(_cell, row) for row in rows)


def _cell(value: object) -> object:
    """A number stays a number. A text that a spreadsheet would run as a formula gets a quote in front."""
    if not isinstance(value, str):
        return "" if value is None else value
    return f"{_QUOTE if value.startswith(_FORMULA) else ''}{printable(value, SENTENCE)}"


def print_json(schema: str, value: Any, **first: Any) -> None:
    """One JSON document on standard output, with the name and the version of its schema (docs/output.md).

    Args:
        schema: one of `SCHEMAS`.
        value: a dataclass.
        first: fields before those of the value.
    """
    head = {"schema": f"kafka-assignors/{schema}/{SCHEMAS[schema]}", **first}
    json.dump({**head, **plain(value)}, sys.stdout, indent=2)
    sys.stdout.write("\n")
