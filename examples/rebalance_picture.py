"""The pictures of README: a group before and after a member joins, with Kafka's range assignor and with the sticky one.

    make figures

The pictures show computed plans. Each strategy has a picture of its own, so that a narrow page shows the second below
the first.
"""

from __future__ import annotations

import html
import sys
from dataclasses import dataclass
from pathlib import Path

from kafka_assignors import Assignor, Group, Member, Plan, RangeAssignor, StickyAssignor

TOPICS = {"clicks": 7, "orders": 7, "payments": 7}
MEMBERS = ("a", "b", "c")
JOINS = "d"

# In pixels: a partition and the space around it, a member's name, and the picture.
CELL, GAP, NAME, WIDTH = 26, 2, 26, 310
# Three colours that colour-blind readers tell apart (Okabe and Ito), and dark enough for the white digits on them.
COLOURS = {"clicks": "#0072b2", "orders": "#b35900", "payments": "#00785a"}


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A group with one strategy, before and after a member joins.

    Attributes:
        name: The strategy's name on the wire.
        before: The plan for `MEMBERS`.
        after: The plan with the member `JOINS`, where the others own their partitions of `before`.
    """

    name: str
    before: Plan
    after: Plan

    @property
    def loads(self) -> list[int]:
        """How many partitions each member has in the end."""
        return [sum(map(len, topics.values())) for topics in self.after.assignment.values()]

    def text(self) -> str:
        """The picture in one sentence."""
        loads = ", ".join(map(str, self.loads[:-1])) + f" and {self.loads[-1]}"
        total = sum(TOPICS.values())
        return f"{self.name}: {self.after.moved} of {total} partitions change their reader, who then have {loads}"


def rebalance(assignor: Assignor) -> Rebalance:
    """The plans of one strategy. Both are verified."""
    before = assignor.assign(Group(TOPICS, [Member(name, list(TOPICS)) for name in MEMBERS]))
    owners = [Member(name, list(TOPICS), owned=before[name], generation=1) for name in MEMBERS]
    after = assignor.assign(Group(TOPICS, [*owners, Member(JOINS, list(TOPICS))]))
    for plan in (before, after):
        plan.verify()
    return Rebalance(assignor.name, before, after)


def svg(drawn: Rebalance) -> str:
    """The picture of a rebalance, as a page can show it."""
    owner = {(m.topic, m.partition) for m in drawn.after.moves if m.source is not None}
    lines, y = _heading(drawn.name, 26), 52
    for title, plan in ((f"before: {', '.join(MEMBERS)}", drawn.before), (f"after: {JOINS} joins", drawn.after)):
        lines.append(f'<text x="12" y="{y}" class="title">{title}</text>')
        y += 10
        for member, topics in plan.assignment.items():
            lines.append(f'<text x="12" y="{y + 18}">{member}</text>')
            places = [(topic, partition) for topic, partitions in topics.items() for partition in partitions]
            for column, (topic, partition) in enumerate(places):
                moved = plan is drawn.after and (topic, partition) in owner
                lines += _cell(NAME + 12 + column * (CELL + GAP), y, topic, partition, moved=moved)
            y += CELL + GAP
        y += 26
    lines.append(f'<text x="12" y="{y - 6}" class="title">{drawn.after.moved} move; {_loads(drawn)} in the end</text>')
    x = 12
    for topic, colour in COLOURS.items():
        lines.append(f'<rect x="{x}" y="{y + 8}" width="12" height="12" rx="2" fill="{colour}"/>')
        lines.append(f'<text x="{x + 17}" y="{y + 18}" class="small">{topic}</text>')
        x += 29 + 7 * len(topic)
    lines.append(f'<rect x="{x + 2}" y="{y + 8}" width="12" height="12" rx="2" class="moved"/>')
    lines.append(f'<text x="{x + 21}" y="{y + 18}" class="small">moved</text>')
    height = y + 32
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<title>{html.escape(drawn.text())}</title>", STYLE, BACKGROUND, *lines, "</svg>", ""])


STYLE = """<style>
text { font-family: system-ui, sans-serif; fill: #1f2328; font-size: 14px }
.heading { font-size: 17px; font-weight: 700 }
.title { font-weight: 600 }
.small { font-size: 12px }
.digit { fill: #fff; font-size: 13px; text-anchor: middle }
.moved { fill: none; stroke: #d00000; stroke-width: 3 }
</style>"""
# The picture has a light background of its own: otherwise its dark text would not be readable on a dark page.
BACKGROUND = '<rect width="100%" height="100%" rx="8" fill="#f6f8fa"/>'


def _heading(name: str, y: int) -> list[str]:
    return [f'<text x="12" y="{y}" class="heading">{name}</text>']


def _loads(drawn: Rebalance) -> str:
    return ", ".join(map(str, drawn.loads))


def _cell(x: int, y: int, topic: str, partition: int, *, moved: bool) -> list[str]:
    colour = COLOURS[topic]
    cell = [f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="3" fill="{colour}"/>']
    cell.append(f'<text x="{x + CELL // 2}" y="{y + 18}" class="digit">{partition}</text>')
    if moved:
        cell.append(f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" rx="3" class="moved"/>')
    return cell


def pictures() -> dict[str, str]:
    """The files: their names and their contents."""
    return {f"{drawn.name}.svg": svg(drawn) for drawn in (rebalance(RangeAssignor()), rebalance(StickyAssignor()))}


if __name__ == "__main__":
    for filename, content in pictures().items():
        Path(sys.argv[1], filename).write_text(content)
