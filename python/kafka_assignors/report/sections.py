"""The folded sections of the page: a group each, as values that the page's script draws when its section is opened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kafka_assignors.printable import escaped
from kafka_assignors.report.model import OBSERVED
from kafka_assignors.report.timelines import aligned, codes, most_moved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.report.model import GroupReport, Ownership, StrategyFigures

__all__ = ["BUDGET", "sections"]

BUDGET = 2_500_000
"""The most characters of all timelines. Sections behind the last that fits have figures only."""


def sections(
    groups: Sequence[GroupReport],
    cells: Callable[[StrategyFigures], Sequence[str]],
    strategy: Callable[[str], str],
    budget: int = BUDGET,
) -> list[dict[str, Any]]:
    """The value of each group's section.

    Args:
        groups: the groups, those that gain the most first.
        cells: the texts of a strategy's row.
        strategy: the text of a strategy's name.
        budget: the most characters of all timelines.

    Returns:
        For each group `rows`, the table of its strategies, and `map`, its timelines: None without any, False where
        they are left out.
    """
    found = []
    for group in groups:
        rows = [
            {"name": strategy(name), "error": escaped(own.error)}
            if own.error is not None
            else {"name": strategy(name), "cells": list(cells(own))}
            for name, own in group.figures.strategies.items()
        ]
        value = _map([each for each in group.ownership if each.times and each.partitions], strategy)
        size = len(json.dumps(value, separators=(",", ":")))
        drawn: Any = value if size <= budget else False
        # After the first timeline that does not fit, all others are left out: groups with a larger gain come first.
        budget = budget - size if drawn is not False else 0
        found.append({"rows": rows, "map": drawn})
    return found


def _map(timelines: Sequence[Ownership], strategy: Callable[[str], str]) -> Mapping[str, Any] | None:
    """The timelines: the first owner of each row, and then the changes, each as rebalance, row and owner."""
    if not timelines:
        return None
    shown = aligned(timelines)
    places = most_moved(shown)
    letters = codes(timelines)
    index = {member: place for place, member in enumerate(letters)}
    partitions = [shown[0].partitions[place] for place in places]
    topics = list(dict.fromkeys(topic for topic, _ in partitions))
    lines = []
    for whole, timeline in zip(timelines, shown, strict=True):
        own = [index[member] for member in timeline.members]
        rows = [[own[step[place]] if step[place] >= 0 else -1 for step in timeline.owners] for place in places]
        changes = [
            (at, row, owners[at])
            for row, owners in enumerate(rows)
            for at in range(1, len(owners))
            if owners[at] != owners[at - 1]
        ]
        lines.append(
            {
                "name": strategy(timeline.strategy),
                "observed": timeline.strategy == OBSERVED,
                "all": sum(whole.moved),
                "moved": list(timeline.moved),
                "first": [owners[0] for owners in rows],
                "then": [number for change in changes for number in change],
            }
        )
    return {
        "times": list(shown[0].times),
        "members": [escaped(member) for member in letters],
        "topics": [escaped(topic) for topic in topics],
        "rows": [[topics.index(topic), number] for topic, number in partitions],
        "cut": len(shown[0].partitions) - len(places),
        "lines": lines,
    }
