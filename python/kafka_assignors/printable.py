"""Text from other programs, made safe for a terminal, a log or an error's text.

Other members choose the names of members, groups and topics, and brokers choose their messages. Printed unchanged, an
escape sequence steers the terminal, a line break forges a line of a log, and a long text drowns the rest.

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
"""The most characters of a name: no topic has a longer one."""
SENTENCE = 2_000
"""The most characters of a sentence that has names in it."""
LINE = 20_000
"""The most characters of a line, or of a cell of a table, that lists the findings of a command."""


def escaped(text: str) -> str:
    """The text with its invisible characters as escapes: control characters, line ends, marks of direction.

    >>> escaped("orders\\x00\\u202e<b>")
    'orders\\\\x00\\\\u202e<b>'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable(text: object, most: int = NAME) -> str:
    """The text with its invisible characters as escapes, cut after a number of characters.

    Args:
        text: the text; `str` is called on any other object.
        most: the number of characters that are kept.

    O(most).
    """
    whole = text if isinstance(text, str) else str(text)
    kept = escaped(whole[:most])
    rest = len(whole) - most
    return f"{kept}… ({rest} characters more)" if rest > 0 else kept


def listed(names: Iterable[object], count: int = 10, *, most: int = NAME, separator: str = ", ") -> str:
    """Names in a row, each made printable; of many names the first ones, and the number of the others.

    Args:
        names: any number of names.
        count: how many of them are shown.
        most: the number of characters that are kept of each.
        separator: the text between two of them.

    >>> listed(["a", "b\\t", "c"], 2)
    'a, b\\\\t and 1 more'
    """
    every = list(names)
    shown = separator.join(printable(each, most) for each in every[:count])
    return f"{shown} and {len(every) - count} more" if len(every) > count else shown
