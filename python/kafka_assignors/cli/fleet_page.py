"""The page of `kafka-assignors fleet --html`: the groups of a fleet, with the map of each."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_assignors.cli.fleet_text import CELLS, answers, title
from kafka_assignors.errors import GroupError, SnapshotError
from kafka_assignors.planner.fleet_query import FIELDS
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.report.fleet import Cell, FleetPage, GroupMap, GroupRow, MapTopic, fleet_page
from kafka_assignors.report.names import natural

if TYPE_CHECKING:
    from kafka_assignors.cluster import Look
    from kafka_assignors.planner.fleet import Fleet, FleetGroup

__all__ = ["page_of", "write_page"]

# The field by which a column is sorted, if its name is not the column's heading.
_SORTED = {
    "waits": "lag_seconds",
    "growth /s": "growth",
    "no owner": "unowned",
    "KIP-848": "kip848",
    "rules not met": "rules",
}
_BAD = frozenset(("dead", "stuck", "unread", "late", "behind"))
_GOOD = frozenset(("ok", "empty"))
# A map by partition has a mark for each partition. With more partitions it has a number for each member and topic.
_MOST_MARKS = 2_000
_MOST_TOPICS = 100
# The most partitions of all maps of a page, so that it has only a few megabytes; the worst groups come first.
_MOST_DRAWN = 200_000


def write_page(path: str, fleet: Fleet, look: Look, reset: str) -> None:
    """Writes the page to a file.

    Raises:
        MissingDependencyError: jinja2 is not installed.
        SnapshotError: the file cannot be written.
    """
    text = fleet_page(page_of(fleet, look, reset))
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SnapshotError(f"the page cannot be written: {error}") from error


def page_of(fleet: Fleet, look: Look, reset: str) -> FleetPage:
    """The page of a fleet.

    Args:
        fleet: the groups, in the order in which they are shown.
        look: the reading that they are from.
        reset: the consumers' `auto_offset_reset`.
    """
    most = max((group.lag or 0 for group in fleet.groups), default=0)
    left = _MOST_DRAWN
    rows = []
    for group in fleet.groups:
        drawn = left >= group.partitions
        left -= group.partitions if drawn else 0
        rows.append(
            GroupRow(
                name=group.group_id,
                grade="good" if group.verdict in _GOOD else "bad" if group.verdict in _BAD else "poor",
                bar=math.log1p(group.lag or 0) / math.log1p(most) if most else 0.0,
                cells=[
                    Cell(cell(group), FIELDS[_SORTED.get(heading, heading)](group)) for heading, cell in CELLS.items()
                ],
                findings=_findings(group),
                map=_map(look, group, reset) if drawn else None,
            )
        )
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in fleet.verdicts.items())
    return FleetPage(
        title=title(fleet),
        lines=[counts or "no group", *answers(fleet)],
        headings=list(CELLS),
        texts=["verdict", "strategy", "state", "protocol", "KIP-848", "rules not met"],
        rows=rows,
        notes=[
            "The bar of a group is its lag, on a logarithmic scale.",
            *(f"Not read: {each.kind} {each.name}: {each.reason}" for each in fleet.missing),
            *fleet.notes,
        ],
    )


def _findings(group: FleetGroup) -> list[str]:
    lines = [f"{'warning' if each.warning else 'note'}: {each.rule}: {each.text}" for each in group.findings]
    return lines + [f"KIP-848: {reason}" for reason in group.kip848_reasons]


def _map(look: Look, group: FleetGroup, reset: str) -> GroupMap:
    observed = ObservedGroup(look.snapshot, group.group_id)
    members = sorted(observed.members, key=lambda member: natural(observed.names[member.id]))
    row = {member.id: place for place, member in enumerate(members)}
    try:
        topics = observed.topics
    except GroupError:
        return GroupMap([observed.names[member.id] for member in members], [], 0)
    shown = dict(list(topics.items())[:_MOST_TOPICS])
    by_partition = sum(topic.partitions for topic in topics.values()) <= _MOST_MARKS
    lags = observed.lags(reset, shown) if by_partition else {}
    lacking = observed.uncommitted(shown) if by_partition and reset == "latest" else {}
    made = []
    for name, topic in shown.items():
        if by_partition:
            without = frozenset(lacking.get(name, ()))
            owners = [observed.owners.get((name, number)) for number in range(topic.partitions)]
            made.append(
                MapTopic(
                    name,
                    topic.partitions,
                    owners=[row[each[0]] if each else -1 for each in owners],
                    lags=[-1 if lag is None or number in without else lag for number, lag in enumerate(lags[name])],
                )
            )
        else:
            counts = [len(observed.owned[member.id].get(name, ())) for member in members]
            made.append(MapTopic(name, topic.partitions, counts=counts))
    return GroupMap([observed.names[member.id] for member in members], made, len(topics) - len(shown))
