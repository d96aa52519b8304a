"""Tables of plain values that fit the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from kafka_assignors.printable import LINE, SENTENCE, printable
from kafka_assignors.report.terminal.fitting import Column, Layout, fit, folded, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["WIDE", "FittedTable", "duration", "number", "table"]

WIDE = 10_000
"""The width of a terminal in which a table shows all of its columns, also those with one text in every row."""


def number(value: float | None, digits: int = 0) -> str:
    """A number with a comma for thousands; a question mark for an unknown one.

    >>> number(1234567), number(None), number(1.5, 2)
    ('1,234,567', '?', '1.50')
    """
    return "?" if value is None else f"{value:,.{digits}f}"


def duration(seconds: float | None) -> str:
    """A time in the largest unit in which it is at least 1; a question mark for an unknown one.

    >>> duration(0), duration(5.25), duration(90), duration(3 * 86_400), duration(None)
    ('0 s', '5.2 s', '1.5 min', '3.0 d', '?')
    """
    if seconds is None:
        return "?"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s" if seconds else "0 s"


def table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: Sequence[str] = (),
    lists: Sequence[str] = (),
    names: Sequence[str] | None = None,
    least: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> FittedTable:
    """A table; its cells are aligned right and made printable, since other programs choose the names in them.

    Args:
        title: the title above it.
        headings: the headings of its columns.
        rows: texts or numbers.
        left: the headings of columns that are aligned left; the first column always is.
        lists: the headings of columns with lists, which may be longer than a sentence.
        names: the headings of columns with names, which may be shortened in their middle; None is the first column.
        least: the headings of columns that are left out in a narrow terminal, the first ones first.
        extra: the headings of columns that are shown only where all columns are.
    """
    most = [LINE if heading in lists else SENTENCE for heading in headings]
    cells = [list(map(printable, row, most)) for row in rows]
    rank = {heading: len(least) - place for place, heading in enumerate(least)}
    return FittedTable(
        title,
        [
            Column(
                heading,
                tuple(row[place] for row in cells),
                left=place == 0 or heading in left,
                name=place == 0 if names is None else heading in names,
                rank=rank.get(heading, 0),
                extra=heading in extra,
            )
            for place, heading in enumerate(headings)
        ],
    )


class FittedTable:
    """A table that is laid out when the width of the terminal is known.

    Args:
        title: the title above it.
        columns: at least one.
    """

    def __init__(self, title: str, columns: Sequence[Column]) -> None:
        self.title = title
        self.columns = tuple(columns)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if width >= WIDE:
            layout = Layout(self.columns, tuple(column.longest for column in self.columns), (), ())
        else:
            layout = fit(self.columns, width)
        shown = _in_ascii if options.ascii_only else str
        for line in wrapped(printable(self.title, SENTENCE), width) if self.title else ():
            yield _line(shown(line), "italic")
        if layout.widths is None:
            yield from (_line(shown(line)) for line in folded(layout, width))
        else:
            yield _drawn(layout, layout.widths, shown)
        if layout.same:
            said = "; ".join(f"{heading or 'change'} {text}" for heading, text in layout.same)
            yield from (_line(shown(line), "dim") for line in wrapped(f"in every row: {said}", width))
        if layout.dropped:
            said = f"not shown: {', '.join(heading or 'change' for heading in layout.dropped)} (--wide)"
            yield from (_line(shown(line), "dim") for line in wrapped(said, width))


def _line(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ignore")


def _in_ascii(text: str) -> str:
    """The text with an ASCII character in place of the ellipsis."""
    return text.replace("…", "~")


def _drawn(layout: Layout, widths: Sequence[int], shown: Callable[[str], str]) -> Table:
    made = Table()
    for column, width in zip(layout.columns, widths, strict=True):
        heading = Text("\n".join(wrapped(column.heading, width)))
        made.add_column(heading, justify="left" if column.left else "right", width=width, no_wrap=True, overflow="crop")
    for row in range(len(layout.columns[0].cells)):
        made.add_row(
            *(
                Text(shown("\n".join(wrapped(column.cells[row], width))))
                for column, width in zip(layout.columns, widths, strict=True)
            )
        )
    return made
