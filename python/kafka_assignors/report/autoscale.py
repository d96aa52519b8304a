"""The page about autoscalers: policy by policy, the replicas and the lag of groups over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from kafka_assignors.printable import LINE, escaped, printable
from kafka_assignors.report.canvas import COLOURS, Picture, colour, compact, draw, drawn_text
from kafka_assignors.report.page import check_libraries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from kafka_assignors.autoscale import Replayed

__all__ = ["AutoscalePage", "AutoscaledGroup", "PolicyTotals", "autoscale_page", "check_libraries"]

_WIDTH = 9.4
_COLOURS = ("blue", "orange", "green", "muted")
# People cannot distinguish more lines in one picture.
_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class PolicyTotals:
    """One policy, strategy and membership over all groups.

    Attributes:
        policy: its name.
        strategy: the strategy.
        membership: `dynamic` or `static`.
        groups: how many groups.
        failed: for how many of them the strategy could not plan; they count in nothing else.
        member_hours: summed over the groups.
        scalings: how often a number of replicas changed.
        rebalances: how many.
        unowned_s: partition-seconds without an owner.
        late: records that were read too late, or not at all.
        records: records that there were to read.
    """

    policy: str
    strategy: str
    membership: str
    groups: int
    failed: int
    member_hours: float
    scalings: int
    rebalances: int
    unowned_s: float
    late: int
    records: int


@dataclass(frozen=True, slots=True)
class AutoscaledGroup:
    """A group of the page.

    Attributes:
        cluster: its cluster; if empty, the page does not name one.
        group_id: its id.
        since: the first moment, in milliseconds since 1970.
        until: the last one.
        partitions: how many it reads.
        rate: how many records a second one member reads.
        runs: its replays.
        notes: sentences about parts that were left out, or are not known.
    """

    cluster: str
    group_id: str
    since: int
    until: int
    partitions: int
    rate: float
    runs: Sequence[Replayed]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AutoscalePage:
    """The contents of the page.

    Attributes:
        title: of the page.
        deadline: within how many seconds a record has to be read.
        totals: all groups together; empty for a page about one group.
        groups: the groups that are shown one by one.
        notes: further notes, a sentence each.
    """

    title: str
    deadline: float
    totals: Sequence[PolicyTotals]
    groups: Sequence[AutoscaledGroup]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A policy of a group, with its picture."""

    policy: str
    picture: Picture | None


def autoscale_page(page: AutoscalePage) -> str:
    """The page: HTML without scripts that needs no network. All names are escaped.

    Raises:
        MissingDependencyError: jinja2 or matplotlib is not installed.
    """
    check_libraries()
    import jinja2

    folder = resources.files("kafka_assignors.report") / "templates"
    names = ("autoscale.html.j2", "macros.html.j2", "style.css")
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({name: (folder / name).read_text("utf-8") for name in names}),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: f"{value:,.0f}",
        "hours": lambda value: f"{value:,.1f}",
        "percent": lambda value: f"{value:.2%}",
        "figure": compact,
        "time": lambda value: f"{datetime.fromtimestamp(value / 1000, UTC):%d %B %Y %H:%M} UTC",
        "name": escaped,
        "line": lambda value: printable(value, LINE),
    }
    return environment.get_template("autoscale.html.j2").render(
        page=page,
        by_policy=_by_policy,
        groups=[(each, f"group-{place}", _drawn(each, place)) for place, each in enumerate(page.groups, 1)],
        themes=[" ".join(f"--{name}: {pair[which]};" for name, pair in COLOURS.items()) for which in (0, 1)],
    )


def _by_policy(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The rows of each policy, in their order."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.policy, []).append(row)
    return found


def _drawn(group: AutoscaledGroup, place: int) -> list[_Drawn]:
    """The policies in the order in which they were given, drawn with the same axes."""
    sound = [run for run in group.runs if run.error is None]
    most_replicas = max([run.most_replicas for run in sound] + [1])
    most_lag = max([run.most_lag for run in sound] + [1])
    found = []
    for number, policy in enumerate(dict.fromkeys(run.policy for run in group.runs)):
        runs = [run for run in sound if run.policy == policy][:_MOST_LINES]
        salt = f"autoscale-{place}-{number}"
        picture = _over_time(group, policy, runs, most_replicas, most_lag, salt) if runs else None
        found.append(_Drawn(policy, picture))
    return found


def _over_time(
    group: AutoscaledGroup, policy: str, runs: Sequence[Replayed], most_replicas: int, most_lag: int, salt: str
) -> Picture:
    """Replicas above, lag below, on one axis of time: a line for each strategy, dashed for static members."""
    strategies = list(dict.fromkeys(run.strategy for run in runs))

    def paint(figure: Figure) -> None:
        import matplotlib.dates

        # matplotlib's type hints are incomplete here.
        dates: Any = matplotlib.dates
        both: Any = figure.subplots(2, 1, sharex=True)
        for axes, label in zip(both, ("replicas", "records\nof lag"), strict=True):
            axes.grid(axis="y")
            axes.set_ylabel(label)
        for run in runs:
            shade = colour(_COLOURS[strategies.index(run.strategy) % len(_COLOURS)])
            style = "--" if run.membership == "static" else "-"
            text = f"{drawn_text(run.strategy)}, {run.membership}"
            edges = [*(_time(ts) for ts, _ in run.replicas), _time(group.until)]
            counts = [count for _, count in run.replicas]
            both[0].stairs(
                counts, dates.date2num(edges), baseline=None, color=shade, linewidth=2, linestyle=style, label=text
            )
            both[1].plot(
                dates.date2num([_time(ts) for ts, _ in run.lag]),
                [lag for _, lag in run.lag],
                color=shade,
                linewidth=1.6,
                linestyle=style,
            )
        both[0].set_ylim(0, 1.1 * most_replicas)
        both[1].set_ylim(0, 1.1 * most_lag)
        both[0].yaxis.get_major_locator().set_params(integer=True)
        for axes in both:
            axes.yaxis.set_major_formatter(lambda value, _: compact(value))
            axes.set_xlim(dates.date2num(_time(group.since)), dates.date2num(_time(group.until)))
        both[1].xaxis_date()
        locator = dates.AutoDateLocator(minticks=4, maxticks=9)
        both[1].xaxis.set_major_locator(locator)
        both[1].xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        both[1].set_xlabel("time (UTC)")
        figure.legend(loc="outside upper left", ncols=3, fontsize=9, handlelength=3)

    summary = "; ".join(
        f"{run.strategy} {run.membership}: {run.least_replicas} to {run.most_replicas} replicas, "
        f"{run.scalings} changes, at most {run.most_lag:,} records of lag"
        for run in runs
    )
    return draw(
        paint,
        width=_WIDTH,
        height=4.4,
        alt=f"Lines over time for {escaped(policy)}: {escaped(summary)}",
        caption="Replicas and lag; a dashed line is of static members. All policies of a group have the same axes.",
        salt=salt,
    )


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
