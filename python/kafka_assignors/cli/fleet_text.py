"""The answer of `kafka-assignors fleet` as text: the groups, and answers to the first questions of a platform team."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from kafka_assignors.planner.fleet_query import FIELDS
from kafka_assignors.printable import SENTENCE, listed, printable
from kafka_assignors.report.terminal import duration, number, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from kafka_assignors.planner.fleet import Fleet, FleetGroup

__all__ = ["CELLS", "answers", "renderables", "title"]

_MISSING_SHOWN = 20

CELLS: dict[str, Callable[[FleetGroup], str]] = {
    "verdict": lambda group: group.verdict,
    "lag": lambda group: _lag(group),
    "waits": lambda group: duration(group.lag_seconds),
    "growth /s": lambda group: "?" if group.growth is None else f"{group.growth:+,.1f}",
    "stuck": lambda group: number(group.stuck),
    "members": lambda group: number(group.members),
    "idle": lambda group: number(group.idle),
    "partitions": lambda group: number(group.partitions),
    "no owner": lambda group: number(group.unowned),
    "spread": lambda group: "-" if group.fewest is None else f"{group.fewest} to {group.most}",
    "moves": lambda group: _moves(group),
    "rebalances": lambda group: number(group.rebalances),
    "strategy": lambda group: group.strategy or "-",
    "state": lambda group: group.state,
    "protocol": lambda group: group.protocol,
    "KIP-848": lambda group: group.kip848,
    "rules not met": lambda group: FIELDS["rules"](group).replace(" ", ", "),
}
"""The columns of the table, by heading, behind that of the group."""

_LEFT = ("verdict", "strategy", "state", "protocol", "KIP-848", "rules not met")
# In a narrow terminal columns are left out, the first of these first.
_LEAST = [
    "protocol",
    "state",
    "KIP-848",
    "rebalances",
    "no owner",
    "rules not met",
    "strategy",
    "spread",
    "idle",
    "moves",
    "partitions",
    "stuck",
    "growth /s",
    "members",
    "waits",
]


def title(fleet: Fleet) -> str:
    """The reading in a sentence: the cluster, the number of groups, and the time."""
    taken = datetime.fromtimestamp(fleet.taken_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    count = "1 group" if len(fleet.groups) == 1 else f"{len(fleet.groups):,} groups"
    apart = "" if fleet.seconds is None else f", compared with {duration(fleet.seconds)} before"
    return f"cluster {fleet.cluster or 'without an id'}: {count} as of {taken}{apart}"


def renderables(fleet: Fleet, top: int | None = None, trouble: str | None = None) -> list[RenderableType]:
    """The parts of the answer, one below the other.

    Args:
        fleet: the groups, in their order.
        top: how many of them are shown; None shows all.
        trouble: the error of the last reading, if the groups are those of an earlier one.
    """
    shown = fleet.groups if top is None else fleet.groups[:top]
    lines = [
        title(fleet),
        "  " + (", ".join(f"{count:,} {verdict}" for verdict, count in fleet.verdicts.items()) or "none"),
    ]
    made: list[RenderableType] = [_text(line) for line in lines]
    if shown:
        rows = [[group.group_id, *(cell(group) for cell in CELLS.values())] for group in shown]
        made.append(table("", ["group", *CELLS], rows, left=_LEFT, least=_LEAST))
    if len(shown) < len(fleet.groups):
        made.append(_text(f"{len(shown):,} of {len(fleet.groups):,} groups are shown"))
    made += [_text(line) for line in answers(fleet)]
    made += [_text(f"not read: {each.kind} {each.name}: {each.reason}") for each in fleet.missing[:_MISSING_SHOWN]]
    if len(fleet.missing) > _MISSING_SHOWN:
        made.append(_text(f"not read: {len(fleet.missing) - _MISSING_SHOWN:,} more (--format json)"))
    made += [_text(f"note: {note}") for note in fleet.notes]
    if trouble is not None:
        made.append(_text(f"the last reading failed: {trouble}"))
    return made


def answers(fleet: Fleet) -> list[str]:
    """Sentences about the fleet: the most rebalances, moves that strategies cost, idle members, KIP-848."""
    lines = []
    often = max(fleet.groups, key=lambda group: group.rebalances or 0, default=None)
    if often is not None and often.rebalances:
        total = sum(group.rebalances or 0 for group in fleet.groups)
        lines.append(f"rebalances: at least {total:,}, most of them in {often.group_id} ({often.rebalances:,})")
    costly = [group for group in fleet.groups if (FIELDS["saved"](group) or 0) > 0]
    if costly:
        worst = max(costly, key=FIELDS["saved"])
        lines.append(
            f"moves: when a member joins, {_groups(len(costly))} more partitions than under sticky, {worst.group_id} "
            f"most ({worst.strategy}: {worst.moves:,} instead of {worst.least_moves:,})"
        )
    idle = [group for group in fleet.groups if group.idle]
    if idle:
        most = max(idle, key=lambda group: group.idle)
        count = sum(group.idle for group in idle)
        who = "1 member has" if count == 1 else f"{count:,} members of {_of_groups(len(idle))} have"
        lines.append(f"idle: {who} no partition, most in {most.group_id} ({most.idle:,})")
    lines += _kip848(fleet)
    return lines


def _kip848(fleet: Fleet) -> list[str]:
    states = Counter(group.kip848 for group in fleet.groups)
    if not fleet.groups:
        return []
    lines = ["KIP-848: " + ", ".join(f"{count:,} {state}" for state, count in states.most_common())]
    blocked: dict[str, list[str]] = {}
    for group in fleet.groups:
        for reason in group.kip848_reasons:
            blocked.setdefault(reason, []).append(group.group_id)
    for reason, groups in sorted(blocked.items(), key=lambda each: -len(each[1]))[:5]:
        lines.append(f"  blocked: {reason} ({listed(groups, 3)})")
    return lines


def _groups(count: int) -> str:
    return "1 group moves" if count == 1 else f"{count:,} groups move"


def _of_groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count:,} groups"


def _lag(group: FleetGroup) -> str:
    return (
        "-" if group.lag is None and group.uncommitted and group.uncommitted == group.partitions else number(group.lag)
    )


def _moves(group: FleetGroup) -> str:
    """The moves when the next member joins, and under `sticky` if these are fewer."""
    if group.least_moves is None:
        return "-"
    if group.moves is None:
        return f"? ({group.least_moves:,})"
    return number(group.moves) if group.moves <= group.least_moves else f"{group.moves:,} ({group.least_moves:,})"


def _text(line: str) -> Text:
    return Text(printable(line, SENTENCE))
