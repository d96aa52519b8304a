"""Tables of plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from kafka_assignors.printable import LINE, SENTENCE, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["number", "table"]


def number(value: float | None, digits: int = 0) -> str:
    """A number with its thousands apart; a question mark for one that is not known.

    >>> number(1234567), number(None), number(1.5, 2)
    ('1,234,567', '?', '1.50')
    """
    return "?" if value is None else f"{value:,.{digits}f}"


def table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: Sequence[str] = (),
    lists: Sequence[str] = (),
) -> Table:
    """A table; numbers stand at the right. Its cells are made printable: names in them are strangers' words.

    Args:
        title: above it.
        headings: of its columns.
        rows: texts or numbers.
        left: headings of columns whose texts stand at the left although their heading does not say so; the first column
            always does.
        lists: headings of columns that list many things, and may be longer than a sentence.
    """
    made = Table(title=title, title_justify="left")
    for position, heading in enumerate(headings):
        made.add_column(heading, justify="left" if position == 0 or heading in left else "right", overflow="fold")
    most = [LINE if heading in lists else SENTENCE for heading in headings]
    for row in rows:
        made.add_row(*map(printable, row, most))
    return made
