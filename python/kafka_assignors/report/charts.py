"""The pictures of a whole fleet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kafka_assignors.report.canvas import Picture, colour, compact, draw, drawn_text
from kafka_assignors.report.model import OBSERVED, GroupReport, Period, Quantiles, StrategyTotals
from kafka_assignors.report.names import short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["evenness", "moved", "over_time", "worst"]

_WIDTH = 9.4


def _label(strategy: str) -> str:
    return "observed (today)" if strategy == OBSERVED else drawn_text(strategy)


def _bars(figure: Figure, rows: int) -> Axes:
    axes: Axes = figure.subplots()
    axes.set_ylim(rows - 0.5, -0.5)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    return axes


def moved(strategies: Sequence[StrategyTotals]) -> Picture:
    """The moves of each strategy, split into necessary and additional ones."""
    ordered = sorted(strategies, key=lambda each: each.moved)

    def paint(figure: Figure) -> None:
        axes = _bars(figure, len(ordered))
        most = max([each.moved for each in ordered] + [1])
        for row, each in enumerate(ordered):
            needed = min(each.moved, each.moved_needed)
            axes.barh(row, needed, height=0.62, color=colour("blue"))
            axes.barh(row, each.moved - needed, left=needed, height=0.62, color=colour("orange"), hatch="///",
                      edgecolor=colour("surface"), linewidth=0)  # fmt: skip
            text = f"{each.moved:,}  ({each.moved_share:.1%} of what was assigned"
            text += f"; nobody gets {each.unassigned_share:.0%})" if each.unassigned_share >= 0.005 else ")"
            axes.annotate(
                text,
                (each.moved, row),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=colour("muted"),
            )
        axes.set_xlim(0, 1.5 * most)
        axes.set_yticks(range(len(ordered)), [_label(each.strategy) for each in ordered])
        axes.xaxis.set_major_formatter(lambda value, _: compact(value))
        axes.set_xlabel("partitions moved: they had an owner, and the rebalance gave them to another one")
        _legend(figure, [("blue", "", "had to move, for the best balance"), ("orange", "///", "moved on top of that")])

    alt = "Bars: partitions moved by " + ", ".join(f"{_label(each.strategy)} {each.moved:,}" for each in ordered)
    caption = "What each strategy would have moved in the whole fleet, over the same joins, leaves and new partitions."
    if any(each.unassigned_share >= 0.005 for each in ordered):
        caption += " What nobody gets cannot be moved: strategies for joins leave partitions without a partner."
    return draw(paint, width=_WIDTH, height=1.3 + 0.5 * len(ordered), alt=alt, caption=caption, salt="moved")


def _legend(figure: Figure, entries: Sequence[tuple[str, str, str]]) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor=colour(name), hatch=hatch, edgecolor=colour("surface"), linewidth=0, label=text)
        for name, hatch, text in entries
    ]
    figure.legend(handles=patches, loc="outside upper left", ncols=len(entries), fontsize=9.5, handlelength=1.6)


def evenness(strategies: Sequence[StrategyTotals]) -> Picture:
    """The evenness of each strategy, in partitions and in lag: median, 95th percentile and worst rebalance."""
    ordered = sorted(strategies, key=lambda each: (each.spread.p95, each.spread.max, each.strategy))
    panels: tuple[tuple[str, str, Callable[[StrategyTotals], Quantiles], float], ...] = (
        ("Partitions", "most minus fewest partitions of a member", lambda each: each.spread, 0.0),
        ("Lag", "heaviest member's lag / mean lag (1 is even)", lambda each: each.lag_skew, 1.0),
    )

    def paint(figure: Figure) -> None:
        both: Any = figure.subplots(1, 2, sharey=True)
        for axes, (title, label, of, best) in zip(both, panels, strict=True):
            axes.set_ylim(len(ordered) - 0.5, -0.5)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="x")
            for row, each in enumerate(ordered):
                found = of(each)
                axes.plot([found.p50, found.max], [row, row], color=colour("grid"), linewidth=2.5, zorder=1)
                axes.plot([found.p50, found.p95], [row, row], color=colour("pale"), linewidth=6, zorder=2)
                axes.plot(found.p50, row, "o", color=colour("blue"), markersize=8, zorder=4)
                axes.plot(found.p95, row, "D", color=colour("blue"), markersize=6.5, zorder=3)
                axes.plot(found.max, row, "|", color=colour("muted"), markersize=11, markeredgewidth=2, zorder=3)
            axes.axvline(best, color=colour("muted"), linewidth=0.8)
            axes.set_xscale("symlog", linthresh=max(1.0, best + 1))
            axes.set_xlim(left=best - 0.15)
            axes.xaxis.set_major_formatter(lambda value, _: compact(value))
            axes.xaxis.set_minor_locator(_no_ticks())
            axes.set_title(title)
            axes.set_xlabel(label)
        both[0].set_yticks(range(len(ordered)), [_label(each.strategy) for each in ordered])
        _marks(figure)

    alt = "Evenness of each strategy. " + "; ".join(
        f"{_label(each.strategy)}: most minus fewest partitions {compact(each.spread.p50)} in the middle, "
        f"{compact(each.spread.p95)} at 95 %, lag skew {compact(each.lag_skew.p50)} and {compact(each.lag_skew.p95)}"
        for each in ordered
    )
    caption = "How even each strategy would have left the members, over all rebalances. Further left is more even."
    return draw(paint, width=_WIDTH, height=1.6 + 0.42 * len(ordered), alt=alt, caption=caption, salt="evenness")


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _marks(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    def mark(sign: str, name: str, size: float, label: str) -> Line2D:
        return Line2D([], [], marker=sign, color=colour(name), linestyle="", markersize=size, label=label)

    handles = [
        mark("o", "blue", 8, "the middle rebalance"),
        mark("D", "blue", 6.5, "19 of 20 are at most here"),
        mark("|", "muted", 11, "the worst"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=9.5)


def over_time(periods: Sequence[Period], period_ms: int, strategies: Sequence[str]) -> Picture:
    """The moves in each period: observed, and of the strategies with the fewest and the most moves."""
    signs = ("-", "--", ":", "-.")
    colours = ("orange", "blue", "green", "muted")

    def paint(figure: Figure) -> None:
        import matplotlib.dates

        # matplotlib's type hints are incomplete here.
        dates: Any = matplotlib.dates
        axes: Axes = figure.subplots()
        axes.grid(axis="y")
        times = [_time(each.ts) for each in periods]
        # A line ends at the end of its last period.
        edges: Any = [*times, _time(periods[-1].ts + period_ms)] if periods else []
        ends: list[tuple[float, str, str]] = []
        for place, name in enumerate(strategies):
            counts = [each.moved.get(name, 0) for each in periods]
            shade = colour(colours[place % len(colours)])
            axes.stairs(counts, dates.date2num(edges), baseline=None, color=shade, linewidth=2.2,
                        linestyle=signs[place % len(signs)], label=_label(name))  # fmt: skip
            ends.append((counts[-1] if counts else 0, _label(name), shade))
        axes.xaxis_date()
        locator = dates.AutoDateLocator(minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: compact(value))
        axes.set_ylabel(f"partitions moved\nin {_duration(period_ms)}")
        axes.set_xlabel("time (UTC)")
        figure.legend(loc="outside upper left", ncols=4, fontsize=9.5, handlelength=3)

    totals = ", ".join(f"{_label(name)} {sum(each.moved.get(name, 0) for each in periods):,}" for name in strategies)
    return draw(
        paint,
        width=_WIDTH,
        height=3.4,
        alt=f"Lines over time: partitions moved in each {_duration(period_ms)}; in all {totals}",
        caption=f"Partitions moved in the whole fleet, in steps of {_duration(period_ms)}.",
        salt="over-time",
    )


def worst(groups: Sequence[GroupReport]) -> Picture:
    """The groups that gain the most: the moves of the present and of the recommended strategy."""
    from kafka_assignors.report.recommend import today

    shown = [each for each in groups if each.recommendation.strategy in each.figures.strategies]
    names = short_names((each.figures.group_id for each in shown), 34, drawn_text)

    def paint(figure: Figure) -> None:
        axes = _bars(figure, len(shown))
        most = max([each.moved for group in shown for each in group.figures.strategies.values()] + [1])
        for row, group in enumerate(shown):
            present, best = today(group.figures), str(group.recommendation.strategy)
            after = group.figures.strategies[best].moved
            before = group.figures.strategies[present].moved if present is not None else after
            axes.plot([after, before], [row, row], color=colour("grid"), linewidth=3.5, zorder=1)
            axes.plot(before, row, "s", color=colour("orange"), markersize=8, zorder=2)
            axes.plot(after, row, "o", color=colour("blue"), markersize=8.5, zorder=3)
            axes.annotate(
                f"{before:,} → {after:,}  {drawn_text(best)}",
                (max(before, after), row),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=colour("muted"),
            )
        axes.set_yticks(range(len(shown)), [names[each.figures.group_id] for each in shown])
        axes.set_xlim(-0.02 * most, 1.5 * most)
        axes.xaxis.set_major_formatter(lambda value, _: compact(value))
        axes.set_xlabel("partitions moved over the group's whole history")
        _pair(figure)

    alt = "The groups with the most to gain, partitions moved today and as recommended: " + ", ".join(
        f"{each.figures.group_id} saves {each.saved:,}" for each in shown
    )
    return draw(
        paint,
        width=_WIDTH,
        height=1.4 + 0.36 * len(shown),
        alt=alt,
        caption="The groups that gain the most: what moved, and what the recommended strategy would have moved.",
        salt="worst",
    )


def _pair(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="s", color=colour("orange"), linestyle="", markersize=8, label="today"),
        Line2D([], [], marker="o", color=colour("blue"), linestyle="", markersize=8.5, label="recommended"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=9.5)


def _time(ts: int) -> datetime:
    return datetime.fromtimestamp(ts / 1000, UTC)


def _duration(milliseconds: int) -> str:
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if milliseconds >= length and milliseconds % length == 0:
            count = milliseconds // length
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{milliseconds} ms"
