"""Names that others chose, made fit to be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["short_names", "shortened"]


def shortened(name: str, length: int) -> str:
    """At most so many characters, by leaving out the middle.

    >>> shortened("consumer-orders-17", 11)
    'consu…rs-17'
    """
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}" if tail else name[:length]


def short_names(names: Iterable[str], length: int = 18, shown: Callable[[str], str] = escaped) -> Mapping[str, str]:
    """A short name for each, all different: without what all begin with, if that is long, and without the middle.

    Args:
        names: what is to be named.
        length: the most characters of a short name.
        shown: makes a name fit to be shown, before it is measured.

    >>> short_names(["consumer-orders-1-af30", "consumer-orders-2-99b1"], 10)
    {'consumer-orders-1-af30': '…1-af30', 'consumer-orders-2-99b1': '…2-99b1'}
    """
    distinct = list(dict.fromkeys(names))
    plain = {name: shown(name) for name in distinct}
    if all(len(text) <= length for text in plain.values()) and len(set(plain.values())) == len(plain):
        return plain
    first, last = (min(distinct), max(distinct)) if len(distinct) > 1 else ("", "")
    common = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    # Not in the middle of a word.
    common = max((first.rfind(mark, 0, common) + 1 for mark in "-_./:"), default=0)
    cut = common if common > 2 else 0
    short: dict[str, str] = {}
    taken: set[str] = set()
    for name in distinct:
        mark = "…" if cut else ""
        candidate = mark + shortened(shown(name[cut:]), length - len(mark))
        if candidate in taken:
            candidate = next(
                other
                for number in range(2, len(distinct) + 2)
                if (other := f"{shortened(plain[name], max(1, length - 4))}~{number}") not in taken
            )
        taken.add(candidate)
        short[name] = candidate
    return short
