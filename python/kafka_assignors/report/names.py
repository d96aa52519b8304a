"""Short forms of the names of members, groups and topics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kafka_assignors.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["natural", "short_names", "shortened"]


def shortened(name: str, length: int) -> str:
    """The text without its middle, in at most so many characters.

    >>> shortened("consumer-orders-17", 11)
    'consu…rs-17'
    """
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}" if tail else name[:length]


def short_names(names: Iterable[str], length: int = 18, shown: Callable[[str], str] = escaped) -> Mapping[str, str]:
    """A short name for each, all different: without a long common beginning, and without the middle.

    Args:
        names: the names.
        length: the most characters of a short name.
        shown: escapes a name before its length counts.

    >>> short_names(["consumer-orders-1-af30", "consumer-orders-2-99b1"], 10)
    {'consumer-orders-1-af30': '…1-af30', 'consumer-orders-2-99b1': '…2-99b1'}
    """
    distinct = list(dict.fromkeys(names))
    plain = {name: shown(name) for name in distinct}
    if all(len(text) <= length for text in plain.values()) and len(set(plain.values())) == len(plain):
        return plain
    first, last = (min(distinct), max(distinct)) if len(distinct) > 1 else ("", "")
    common = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    # Do not cut inside a word.
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


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts names as people count: numbers in them by value.

    >>> sorted(["m1", "m10", "m2"], key=natural)
    ['m1', 'm2', 'm10']
    """
    parts = re.findall(r"([0-9]{1,18})|([^0-9]+|[0-9]+)", name)
    return tuple((0, int(number), "") if number else (1, 0, text) for number, text in parts)
