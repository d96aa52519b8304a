"""Tables of plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["number", "safe", "table"]


def safe(text: object) -> str:
    """A text without characters that could steer a terminal: members of a group may call themselves anything.

    >>> safe("c0\\x1b[2J")
    'c0\\\\x1b[2J'
    """
    return "".join(
        character if character.isprintable() or character == "\n" else character.encode("unicode_escape").decode()
        for character in str(text)
    )


def number(value: float | None, digits: int = 0) -> str:
    """A number with its thousands apart; a question mark for one that is not known.

    >>> number(1234567), number(None), number(1.5, 2)
    ('1,234,567', '?', '1.50')
    """
    return "?" if value is None else f"{value:,.{digits}f}"


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], *, left: Sequence[str] = ()) -> Table:
    """A table; numbers stand at the right.

    Args:
        title: above it.
        headings: of its columns.
        rows: texts or numbers.
        left: headings of columns whose texts stand at the left although their heading does not say so; the first column
            always does.
    """
    made = Table(title=title, title_justify="left")
    for position, heading in enumerate(headings):
        made.add_column(heading, justify="left" if position == 0 or heading in left else "right", overflow="fold")
    for row in rows:
        made.add_row(*map(safe, row))
    return made
