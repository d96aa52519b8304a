"""What strangers wrote, made fit for a terminal, a log or an error's text.

Names of members, groups and topics, and what brokers say, are written by somebody else. Printed as they are, escape
sequences in them steer the terminal, line breaks forge lines of a log, and a long one drowns the rest.

>>> printable("c0\\x1b[2J\\nwarning: none")
'c0\\\\x1b[2J\\\\nwarning: none'
>>> printable("x" * 1000, 10)
'xxxxxxxxxx… (990 characters more)'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LINE", "NAME", "SENTENCE", "escaped", "listed", "printable"]

NAME = 250
"""The most characters of a name: no topic's is longer."""
SENTENCE = 2_000
"""The most characters of a sentence that has names in it."""
LINE = 20_000
"""The most characters of a line, or of a cell of a table, that lists what a program of ours has found."""


def escaped(text: str) -> str:
    """A text of any length whose invisible characters are written out: control characters, line ends, marks that turn
    text around.

    >>> escaped("orders\\x00\\u202e<b>")
    'orders\\\\x00\\\\u202e<b>'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable(text: object, most: int = NAME) -> str:
    """A text without characters that could steer a terminal or break a line, and no longer than it may be.

    Args:
        text: what to print; anything that is no text is turned into one first.
        most: how many characters of it are kept.

    O(most).
    """
    whole = text if isinstance(text, str) else str(text)
    kept = escaped(whole[:most])
    rest = len(whole) - most
    return f"{kept}… ({rest} characters more)" if rest > 0 else kept


def listed(names: Iterable[object], count: int = 10, *, most: int = NAME, separator: str = ", ") -> str:
    """Names in a row, each made printable; of many only the first, and how many there are beside them.

    Args:
        names: any number.
        count: how many are shown.
        most: how many characters of each.
        separator: what stands between them.

    >>> listed(["a", "b\\t", "c"], 2)
    'a, b\\\\t and 1 more'
    """
    every = list(names)
    shown = separator.join(printable(each, most) for each in every[:count])
    return f"{shown} and {len(every) - count} more" if len(every) > count else shown
