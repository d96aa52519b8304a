"""Maps of owners: a row for each member, a column for each partition, or for each topic if there are many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from kafka_assignors.printable import printable
from kafka_assignors.report.terminal.fitting import shortened_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["MOST_PARTITIONS", "NO_COMMIT", "count_map", "in_ascii", "ownership_map"]

MOST_PARTITIONS = 400
"""With more partitions a map by topic is more readable than one by partition."""

NO_COMMIT = -1
"""The value in place of the lag of a partition without a commit."""

# A longer name would leave no room for the map on the line.
_NAME = 80
# Names get a fifth of a line, or more if they would be equal otherwise.
_PART = 5
# The shades of a lag: none, then thirds of the largest.
_SHADES = "░▒▓█"
_UNKNOWN, _NOTHING, _LACKING = "■", "·", "-"
# The characters for an ASCII terminal.
_ASCII = str.maketrans({"░": "0", "▒": "1", "▓": "2", "█": "3", "■": "?", "·": ".", "…": "~"})
_COLOURS = ("green", "yellow", "dark_orange", "red")


def _shade(value: int | None, most: int) -> tuple[str, str]:
    if value == NO_COMMIT:
        return _LACKING, "cyan"
    if value is None:
        return _UNKNOWN, "cyan"
    step = 0 if most == 0 or value == 0 else min(3, 1 + value * 3 // (most + 1))
    return _SHADES[step], _COLOURS[step]


def ownership_map(
    members: Sequence[str],
    topics: Mapping[str, Sequence[tuple[int | None, int | None]]],
    *,
    width: int,
) -> Text:
    """A map of members and partitions, shaded by lag.

    Args:
        members: their names, a row each.
        topics: for each partition, by number, the row of its owner, None without one; and its lag, None if it is not
            known, `NO_COMMIT` without a commit.
        width: how many columns a line may have. Topics that do not fit are on the next lines.

    O(members x partitions).
    """
    members = shortened_names([printable(name, _NAME) for name in members], max(12, width // _PART))
    lags = {lag for cells in topics.values() for _, lag in cells}
    most = max((lag for lag in lags if lag is not None and lag != NO_COMMIT), default=0)
    orphans = any(row is None for cells in topics.values() for row, _ in cells)
    rows: list[int | None] = [*range(len(members)), *([None] if orphans else [])]
    head = max((len("nobody" if row is None else members[row]) for row in rows), default=0) + 1
    made = Text()
    for block in _blocks(topics, max(8, width - head)):
        made.append(" " * head)
        made.append(" ".join(_fitted(name, end - start, start) for name, start, end in block) + "\n", Style(bold=True))
        for row in rows:
            made.append(f"{'nobody' if row is None else members[row]:<{head}}", "red" if row is None else "")
            for position, (name, start, end) in enumerate(block):
                made.append(" " if position else "")
                for owner, lag in topics[name][start:end]:
                    mark, colour = _shade(lag, most) if owner == row else (_NOTHING, "bright_black")
                    made.append(mark, colour)
            made.append("\n")
        made.append("\n")
    marks = [f"{_SHADES[0]} no lag"] if lags - {None, NO_COMMIT} else []
    marks += [f"{_SHADES[step]} up to {_upto(step, most):,}" for step in (1, 2, 3) if most]
    marks += [f"{_LACKING} no commit"] if NO_COMMIT in lags else []
    marks += [f"{_UNKNOWN} lag not known"] if None in lags else []
    made.append(", ".join(marks))
    return made


def _upto(step: int, most: int) -> int:
    """The largest lag that has the shade of this step."""
    return (step * (most + 1) - 1) // 3


def _fitted(name: str, columns: int, start: int) -> str:
    """A topic's name over its columns, cut with an ellipsis; on a later line its first partition number."""
    text = printable(name) if start == 0 else f"{start}…"
    return f"{text[:columns]:<{columns}}" if len(text) <= columns else f"{text[: max(0, columns - 1)]}…"


def _blocks(topics: Mapping[str, Sequence[object]], width: int) -> list[list[tuple[str, int, int]]]:
    """Topics, or parts of topics, in lines of the width."""
    blocks: list[list[tuple[str, int, int]]] = []
    left = 0
    for name, cells in topics.items():
        start = 0
        while start < len(cells):
            if left < 2 or (start == 0 and left < len(cells) <= width):
                blocks.append([])
                left = width
            end = min(len(cells), start + left)
            blocks[-1].append((name, start, end))
            left -= end - start + 1
            start = end
    return blocks


def count_map(
    members: Sequence[str], topics: Sequence[str], counts: Mapping[tuple[int, int], int], *, width: int
) -> Text:
    """A map of members and topics, shaded by how many partitions of the topic the member has.

    Args:
        members: their names, a row each.
        topics: their names, a column each; the first and the last of a block are above it.
        counts: row and column to the number of partitions.
        width: how many columns a line may have; further topics are in blocks below.
    """
    members = shortened_names([printable(name, _NAME) for name in members], max(12, width // _PART))
    most = max(counts.values(), default=0)
    head = max((len(name) for name in members), default=0) + 1
    fit = max(8, width - head)
    made = Text()
    for start in range(0, len(topics), fit):
        shown = range(start, min(len(topics), start + fit))
        made.append(f"{'':<{head}}topics {start + 1} to {shown[-1] + 1} of {len(topics)}: ", Style(bold=True))
        first, last = printable(topics[shown[0]]), printable(topics[shown[-1]])
        made.append(f"{first} … {last}\n" if len(shown) > 1 else f"{first}\n")
        for row, name in enumerate(members):
            made.append(f"{name:<{head}}")
            for column in shown:
                count = counts.get((row, column), 0)
                mark, colour = _shade(count, most) if count else (_NOTHING, "bright_black")
                made.append(mark, colour)
            made.append("\n")
        made.append("\n")
    made.append(f"{_NOTHING} none, {_SHADES[1]} to {_SHADES[3]} up to {most} partitions of a topic")
    return made


def in_ascii(shown: object) -> object:
    """A map with one ASCII character for each of its characters; another object unchanged."""
    if isinstance(shown, Text):
        shown.plain = shown.plain.translate(_ASCII)
    return shown
