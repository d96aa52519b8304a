"""The layout of a table in a given width, of plain texts: which columns are shown, and how wide each of them is.

A number is never cut and a word is never broken. Names are shortened in their middle where they stay different. If the
columns do not fit then, those that matter least are left out; if that is not enough, the rows become lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

from kafka_assignors.report.names import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Column", "Layout", "fit", "folded", "shortened_names", "wrapped"]

# A border, and a space on both sides of a cell.
_FRAME, _BORDER = 3, 1
# The shortest form of a name, and the longest word in a sentence.
_NAME, _WORD = 14, 28
# The least width of a column with sentences: in a narrower one they have too many lines.
_SENTENCE = 20
_NUMBER = re.compile(r"[-+]?[\d.,:%–-]+[,;)]?")


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        heading: its heading.
        cells: its texts, one for each row.
        left: whether it is aligned left.
        name: whether its cells are names, which may be shortened; else only words of sentences are.
        rank: columns with the largest rank are left out first; one with rank 0 never is.
        extra: whether it is always left out.
    """

    heading: str
    cells: tuple[str, ...]
    left: bool = False
    name: bool = False
    rank: int = 0
    extra: bool = False

    @property
    def longest(self) -> int:
        """The width in which no cell needs a second line."""
        return max(map(cell_len, (self.heading, *self.cells)))

    @property
    def least(self) -> int:
        """The width of the longest word, once the words and names that may be shortened are shortened."""
        of_heading = max(map(cell_len, self.heading.split()), default=0)
        if self.name:
            return max(of_heading, _unique(self.cells, min(_NAME, max(map(cell_len, self.cells), default=0))))
        words = {word for cell in self.cells for word in cell.split()}
        longest = max((min(cell_len(word), _most(word)) for word in words), default=0)
        return max(of_heading, longest, min(self.longest, _SENTENCE) if self.left else 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """A table that fits.

    Attributes:
        columns: the columns that are shown.
        widths: the width of each, without its frame; None if not even these fit side by side.
        same: columns with the same text in every row, which is shown only once: heading and text.
        dropped: the headings of the columns that are left out.
    """

    columns: tuple[Column, ...]
    widths: tuple[int, ...] | None
    same: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]


def fit(columns: Sequence[Column], width: int) -> Layout:
    """Lays a table out. O(cells), and for names O(cells x their length).

    Args:
        columns: at least one; the first one is always shown.
        width: how many columns of a terminal there are.
    """
    shown, same = [columns[0]], []
    dropped: list[str] = []
    for column in columns[1:]:
        if column.extra and any(column.cells):
            dropped.append(column.heading)
        elif len(column.cells) > 1 and len(set(column.cells)) == 1:
            same.append((column.heading, column.cells[0]))
        elif any(column.cells) or not column.cells:
            shown.append(column)
    least = {column.heading: column.least for column in shown}
    while _framed(least[column.heading] for column in shown) > width:
        droppable = [column for column in shown[1:] if column.rank]
        if not droppable:
            break
        worst = max(droppable, key=lambda column: (column.rank, shown.index(column)))
        shown.remove(worst)
        dropped.append(worst.heading)
    dropped = [column.heading for column in columns if column.heading in dropped]
    with_text = tuple((heading, text) for heading, text in same if text)
    if _framed(least[column.heading] for column in shown) > width:
        return Layout(tuple(shown), None, with_text, tuple(dropped))
    widths = [least[column.heading] for column in shown]
    left = width - _framed(widths)
    # Columns get the width that is left until they need one line, the narrowest first: sentences come after numbers.
    for place in sorted(range(len(shown)), key=lambda at: shown[at].longest):
        more = min(left, shown[place].longest - widths[place])
        widths[place] += more
        left -= more
    return Layout(tuple(map(_shortened, shown, widths)), tuple(widths), with_text, tuple(dropped))


def folded(layout: Layout, width: int) -> list[str]:
    """The rows as lists, for a terminal in which their columns do not fit side by side."""
    lines = []
    first, *others = layout.columns
    for row, head in enumerate(first.cells):
        lines += wrapped(head, max(1, width))
        for column in others:
            if column.cells[row]:
                lines += [f"  {each}" for each in wrapped(f"{column.heading}: {column.cells[row]}", max(1, width - 2))]
    return lines


def shortened_names(names: Sequence[str], width: int) -> list[str]:
    """The names without their middle, in so many columns of a terminal, or in more if they would be equal otherwise.

    >>> shortened_names(["consumer-orders-17", "consumer-orders-18"], 11)
    ['consu…rs-17', 'consu…rs-18']
    """
    fits = _unique(names, width)
    return [name if cell_len(name) <= fits else _cut(name, fits) for name in names]


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of a width, broken at spaces. A longer word loses its middle, a longer number nothing.

    >>> wrapped("a partition that its owner keeps", 12)
    ['a partition', 'that its', 'owner keeps']
    """
    lines: list[str] = []
    for word in text.split(" "):
        if cell_len(word) > width and not _NUMBER.fullmatch(word):
            word = _cut(word, width)
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _framed(widths: Iterable[int]) -> int:
    counted = list(widths)
    return sum(counted) + _FRAME * len(counted) + _BORDER


def _most(word: str) -> int:
    """The most columns that a word of a sentence gets."""
    return cell_len(word) if _NUMBER.fullmatch(word) else _WORD


def _cut(text: str, width: int) -> str:
    """The text without its middle, in at most so many columns of a terminal: some characters take two."""
    length = width
    while length > 1 and cell_len(shortened(text, length)) > width:
        length -= 1
    return shortened(text, length)


def _unique(names: Sequence[str], width: int) -> int:
    """The smallest width, `width` at least, in which different names stay different."""
    distinct = set(names)
    longest = max(map(cell_len, distinct), default=0)
    while width < longest and len({_cut(name, width) for name in distinct}) < len(distinct):
        width += 1
    return width


def _shortened(column: Column, width: int) -> Column:
    if not column.name or column.longest <= width:
        return column
    return replace(column, cells=tuple(_cut(cell, width) for cell in column.cells))
