"""The pictures of one group: the owners of partitions over time, the load of each member, and lags."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from kafka_assignors.report.canvas import OWNERS, Picture, colour, compact, draw, drawn_text
from kafka_assignors.report.model import OBSERVED, LagByMember, Ownership
from kafka_assignors.report.names import short_names
from kafka_assignors.report.timelines import PARTITIONS_SHOWN, aligned, codes, most_moved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MEMBERS_SHOWN", "dark", "lag_chart", "loads", "owners"]

MEMBERS_SHOWN = 30
"""The most members in a picture; of more members, those with the most partitions are shown."""

# The most letters in a panel of `owners`, and numbers in one of `loads`: they decide the size of the SVG.
_LABELS = 300

_WIDTH = 9.4


def _name(strategy: str) -> str:
    return "observed (today)" if strategy == OBSERVED else drawn_text(strategy)


def dark(shade: str) -> bool:
    """Whether letters on this colour have to be light."""
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 130


def _time_axis(axes: Axes, times: Sequence[int]) -> None:
    """The axis below the last panel, which all panels share."""
    count = len(times)
    axes.set_xlim(-0.5, max(0, count - 1) + 0.5)
    places = list(range(0, count, max(1, -(-count // 10))))
    moments = [datetime.fromtimestamp(times[place] / 1000, UTC) for place in places]
    labels = [f"{place + 1}\n{when:%d %b}\n{when:%H:%M}" for place, when in zip(places, moments, strict=True)]
    axes.set_xticks(places, labels, fontsize=8)
    axes.set_xlabel("rebalance, and when it was (UTC)")


def owners(group_id: str, timelines: Sequence[Ownership]) -> Picture:
    """For each strategy: partitions from top to bottom, rebalances from left to right, the owner as colour and letters.

    A change of owner is a gap between two cells. Members have the same letters for all strategies, and all strategies
    have the same rebalances and partitions at the same places.
    """
    letters = codes(timelines)
    members = list(letters)
    shades = {member: OWNERS[place % len(OWNERS)] for place, member in enumerate(members)}
    shown = aligned(timelines)
    rows = most_moved(shown)
    panel = max(1.3, 0.15 * len(rows))

    def paint(figure: Figure) -> None:
        panels: Any = figure.subplots(len(shown), 1, squeeze=False, sharex=True, sharey=True)
        for axes, whole, timeline in zip(panels[:, 0], timelines, shown, strict=True):
            _paint_owners(axes, timeline, rows, shades, letters)
            axes.set_title(f"{_name(timeline.strategy)}: {sum(whole.moved):,} partitions moved")
        _time_axis(panels[-1, 0], shown[0].times)
        if len(members) <= 20:
            _member_legend(figure, members, shades, letters)

    caption = "Who owned which partition after each rebalance. A vertical gap is a change of owner."
    if len(rows) < len(shown[0].partitions):
        caption += f" The {PARTITIONS_SHOWN} partitions that moved most often are shown."
    if len(members) > 20:
        caption += " Letters are members; the table below names them."
    said = (f"{_name(each.strategy)} moved {sum(each.moved):,} in {len(each.times)} rebalances" for each in timelines)
    alt = f"Ownership of the partitions of group {group_id} over time: {'; '.join(said)}"
    legend = 0.3 * (1 + (len(members) - 1) // 4) if len(members) <= 20 else 0
    height = (panel + 0.45) * len(shown) + 0.8 + legend
    return draw(paint, width=_WIDTH, height=height, alt=alt, caption=caption, salt=f"owners {group_id}")


def _paint_owners(
    axes: Axes, timeline: Ownership, rows: Sequence[int], shades: Mapping[str, str], letters: Mapping[str, str]
) -> None:
    import numpy as np

    count = len(timeline.owners)
    cells = np.zeros((len(rows), max(1, count), 4), dtype=np.uint8)
    palette = [(*(int(shades[member][at : at + 2], 16) for at in (1, 3, 5)), 255) for member in timeline.members]
    for at, step in enumerate(timeline.owners):
        for row, partition in enumerate(rows):
            if step[partition] >= 0:
                cells[row, at] = palette[step[partition]]
    axes.imshow(cells, aspect="auto", interpolation="none", origin="upper")
    # `gaps`: by column, the rows in which the owner changes at this column. `runs`: neighbouring cells with one owner.
    gaps: dict[int, list[int]] = {}
    runs: list[tuple[int, int, int, int]] = []
    for row, partition in enumerate(rows):
        start = 0
        for at in range(1, count + 1):
            before = timeline.owners[at - 1][partition]
            if at < count and timeline.owners[at][partition] == before:
                continue
            if at < count:
                gaps.setdefault(at, []).append(row)
            if before >= 0 and len(rows) <= 64 and (at - start) * _WIDTH / max(1, count) > 0.16:
                runs.append((at - start, start, row, before))
            start = at
    for length, start, row, owner in sorted(runs, key=lambda run: -run[0])[:_LABELS]:
        member = timeline.members[owner]
        axes.text(
            start + (length - 1) / 2,
            row,
            letters[member],
            ha="center",
            va="center_baseline",
            fontsize=6.5,
            color="#ffffff" if dark(shades[member]) else "#101214",
            in_layout=False,
        )
    lines = []
    for at, with_gap in gaps.items():
        for _, neighbours in itertools.groupby(enumerate(with_gap), lambda pair: pair[1] - pair[0]):
            together = [row for _, row in neighbours]
            lines.append(((at - 0.5, together[0] - 0.5), (at - 0.5, together[-1] + 0.5)))
    _strokes(axes, lines, colour("surface"), 2.4, "butt")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_ylabel("topic and partition")
    _topic_ticks(axes, [timeline.partitions[row] for row in rows])


def _strokes(
    axes: Axes,
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    shade: str,
    width: float,
    cap: Literal["butt", "round"],
) -> None:
    """Many lines of one style, as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not lines:
        return
    path = Path([end for line in lines for end in line], [Path.MOVETO, Path.LINETO] * len(lines))
    path.should_simplify = False
    axes.add_patch(PathPatch(path, fill=False, edgecolor=shade, linewidth=width, capstyle=cap))


def _topic_ticks(axes: Axes, partitions: Sequence[tuple[str, int]]) -> None:
    """A tick at the first partition of each topic, and partition numbers between them where there is room."""
    names = short_names((topic for topic, _ in partitions), 22, drawn_text)
    places: list[int] = []
    labels: list[str] = []
    step = max(1, len(partitions) // 16)
    for place, (topic, number) in enumerate(partitions):
        first = place == 0 or partitions[place - 1][0] != topic
        if first and place:
            axes.axhline(place - 0.5, color=colour("ink"), linewidth=1.0)
        if first or (place % step == 0 and all(abs(place - other) >= step for other in places)):
            places.append(place)
            labels.append(f"{names[topic]}  {number}" if first else str(number))
    axes.set_yticks(places, labels, fontsize=8)


def _member_legend(
    figure: Figure, members: Sequence[str], shades: Mapping[str, str], letters: Mapping[str, str]
) -> None:
    from matplotlib.patches import Patch

    names = short_names(members, 22, drawn_text)
    patches = [Patch(color=shades[each], label=f"{letters[each]}  {names[each]}") for each in members]
    figure.legend(handles=patches, loc="outside upper left", ncols=4, fontsize=8.5, handlelength=1.2)


def loads(group_id: str, timelines: Sequence[Ownership]) -> Picture:
    """For each strategy: members from top to bottom, rebalances from left to right, partitions as shade and number.

    A dot marks a load with partitions that another member had.
    """
    letters = codes(timelines)
    everybody = list(letters)
    held: dict[str, int] = dict.fromkeys(everybody, 0)
    for timeline in timelines:
        for step in timeline.owners:
            for owner in step:
                if owner >= 0:
                    held[timeline.members[owner]] += 1
    ranked = sorted(everybody, key=lambda member: -held[member])[:MEMBERS_SHOWN]
    members = [member for member in everybody if member in set(ranked)]
    height = max(1.0, 0.17 * len(members))
    shown = aligned(timelines)

    def paint(figure: Figure) -> None:
        panels: Any = figure.subplots(len(shown), 1, squeeze=False, sharex=True, sharey=True)
        most = max([max(_held(each, at)) for each in shown for at in range(len(each.times)) if each.members] + [1])
        names = short_names(members, 24, drawn_text)
        for axes, timeline in zip(panels[:, 0], shown, strict=True):
            _paint_loads(axes, timeline, members, most)
            axes.set_yticks(range(len(members)), [f"{names[each]}  {letters[each]}" for each in members], fontsize=8)
            axes.set_title(f"{_name(timeline.strategy)}: partitions of each member")
        _time_axis(panels[-1, 0], shown[0].times)

    caption = (
        "How many partitions each member held: the darker, the more. A dot marks a member that took over partitions "
        "of another."
    )
    if len(everybody) > len(members):
        caption += f" The {MEMBERS_SHOWN} members that held the most are shown, of {len(everybody)}."
    return draw(
        paint,
        width=_WIDTH,
        height=(height + 0.45) * len(shown) + 0.6,
        alt=f"Partitions that each member of group {group_id} held after each rebalance",
        caption=caption,
        salt=f"loads {group_id}",
    )


def _held(timeline: Ownership, at: int) -> list[int]:
    counts = [0] * len(timeline.members)
    for owner in timeline.owners[at]:
        if owner >= 0:
            counts[owner] += 1
    return counts


def _paint_loads(axes: Axes, timeline: Ownership, members: Sequence[str], most: int) -> None:
    import numpy as np

    count = len(timeline.times)
    places = {member: place for place, member in enumerate(members)}
    cells = np.zeros((max(1, len(members)), max(1, count), 4), dtype=np.float64)
    dots: list[tuple[int, int]] = []
    numbers = count <= 36 and count * len(members) <= _LABELS
    light, strong = np.array([0.85, 0.92, 0.97]), np.array([0.0, 0.35, 0.58])
    for at in range(count):
        counts = _held(timeline, at)
        before = timeline.owners[at - 1] if at else timeline.owners[at]
        took = {
            now for old, now in zip(before, timeline.owners[at], strict=True) if now >= 0 and old >= 0 and old != now
        }
        for index, number in enumerate(counts):
            row = places.get(timeline.members[index])
            if row is None or not number:
                continue
            share = number / most
            cells[row, at] = (*(light + (strong - light) * share), 1.0)
            if numbers:
                shade = "#ffffff" if share > 0.5 else "#101214"
                axes.text(
                    at, row, str(number), ha="center", va="center_baseline", fontsize=6.5, color=shade, in_layout=False
                )
            if index in took:
                dots.append((at, row))
    axes.imshow(cells, aspect="auto", interpolation="none", origin="upper")
    if dots:
        shift = 0.36 if numbers else 0.0
        # A line of no length with round ends is a dot; one path has all dots.
        points = [(at + shift, row - shift * 0.7) for at, row in dots]
        _strokes(axes, [(point, point) for point in points], colour("orange"), 3.6, "round")
    axes.set_ylim(max(1, len(members)) - 0.5, -0.5)


def lag_chart(group_id: str, lag: LagByMember) -> Picture:
    """The lag of each member after one rebalance: a dot for a member, a row for a strategy."""
    ordered = sorted(lag.strategies.items(), key=lambda item: (max(item[1].values(), default=0), item[0]))

    def paint(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.set_ylim(len(ordered) - 0.5, -0.5)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        most = 1
        for row, (_, by_member) in enumerate(ordered):
            lags = sorted(by_member.values())
            if not lags:
                continue
            most = max(most, lags[-1])
            mean = sum(lags) / len(lags)
            axes.plot([mean, mean], [row - 0.32, row + 0.32], color=colour("muted"), linewidth=2)
            axes.plot(lags, [row] * len(lags), "o", color=colour("blue"), markersize=7.5, alpha=0.55, markeredgewidth=0)
            axes.plot(lags[-1], row, "o", color=colour("orange"), markersize=8.5, markeredgewidth=0)
            skew = f", {lags[-1] / mean:.1f} times the mean" if mean else ""
            axes.annotate(f"{lags[-1]:,}{skew}", (lags[-1], row), xytext=(9, 0), textcoords="offset points",
                          va="center", fontsize=9, color=colour("muted"))  # fmt: skip
        axes.set_yticks(range(len(ordered)), [_name(name) for name, _ in ordered])
        axes.set_xlim(-0.02 * most, 1.4 * most)
        axes.xaxis.set_major_formatter(lambda value, _: compact(value))
        axes.set_xlabel("lag of a member, in records")
        _lag_legend(figure)

    when = f"{datetime.fromtimestamp(lag.ts / 1000, UTC):%d %B %Y %H:%M} UTC"
    alt = f"Lag of the members of group {group_id}; the heaviest carries: " + ", ".join(
        f"{_name(name)} {max(by_member.values(), default=0):,} records" for name, by_member in ordered
    )
    return draw(
        paint,
        width=_WIDTH,
        height=1.3 + 0.4 * len(ordered),
        alt=alt,
        caption=f"Who carries the lag, after the rebalance of {when}. Further left at the heaviest is better.",
        salt=f"lag {group_id}",
    )


def _lag_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", color=colour("blue"), alpha=0.55, linestyle="", markersize=7.5, label="a member"),
        Line2D([], [], marker="o", color=colour("orange"), linestyle="", markersize=8.5, label="the heaviest member"),
        Line2D([], [], color=colour("muted"), linewidth=2, label="the mean"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=9.5)
