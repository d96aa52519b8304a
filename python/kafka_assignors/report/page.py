"""The report as one HTML page that needs no network; and the same figures as JSON.

The only script is the page's own, which draws the folded sections; the page's policy names its hash, so that a browser
runs no other. Names of groups, members and topics are data of this script and texts of the page, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import MissingDependencyError, OptionError
from kafka_assignors.printable import escaped
from kafka_assignors.report import charts, group_charts
from kafka_assignors.report.canvas import COLOURS, OWNERS, Picture
from kafka_assignors.report.model import KEEP, OBSERVED, GroupReport, Ownership, Report, StrategyFigures
from kafka_assignors.report.recommend import today
from kafka_assignors.report.sections import sections
from kafka_assignors.report.timelines import codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["check_libraries", "files", "local_folder", "page", "write"]

# The most rows of a table of lags: the members with the most lag are enough for a reader.
_LAG_ROWS = 12
# A scheme has two letters at least: a single letter is a drive of Windows.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A group with its pictures."""

    report: GroupReport
    anchor: str
    today: str | None
    owners: Picture | None
    loads: Picture | None
    lag: Picture | None
    members: Sequence[tuple[str, str]]
    lag_rows: Sequence[tuple[str, Sequence[int | None]]]
    lag_columns: Sequence[str]


def page(report: Report, json_name: str = "report.json") -> str:
    """The page.

    Other programs choose the names of groups, topics and members. All of them are escaped, invisible characters too.

    Args:
        report: the report.
        json_name: the address of the same figures, relative to the page.

    Raises:
        MissingDependencyError: jinja2 or matplotlib is not installed.
    """
    check_libraries()
    import jinja2

    folder = resources.files("kafka_assignors.report") / "templates"
    sources = {name: (folder / name).read_text("utf-8") for name in ("page.html.j2", "macros.html.j2", "style.css")}
    script = (folder / "report.js").read_text("utf-8") if report.changes else None
    loads = _has_loads(report)
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(sources),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Blanks after commas and colons would be a fifth of the data that the script reads.
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters |= {
        "number": _number,
        "figure": _figure,
        "percent": _percent,
        "time": _time,
        "name": escaped,
        "strategy": _strategy,
    }
    shown = [_group(each, place) for place, each in enumerate(report.worst, 1)]
    return environment.get_template("page.html.j2").render(
        report=report,
        shown=shown,
        pictures=_pictures(report),
        json_name=json_name,
        keep=KEEP,
        observed=OBSERVED,
        loads=loads,
        script=script,
        digest=None if script is None else base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        sections=sections(report.changes, lambda own: _cells(own, loads), _strategy),
        present=[today(each.figures) for each in report.changes],
        owner_colours=[(shade, "#ffffff" if group_charts.dark(shade) else "#101214") for shade in OWNERS],
        themes=[_variables(which) for which in (0, 1)],
    )


def check_libraries() -> None:
    """Checks the libraries before the report is computed, which may take long.

    Raises:
        MissingDependencyError: jinja2 or matplotlib is not installed.
    """
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"kafka_assignors.report needs jinja2 and matplotlib ({' and '.join(missing)} missing): "
            "pip install kafka-assignors[plot]"
        )


def files(report: Report) -> dict[str, str]:
    """The texts of `report.html` and `report.json`, by these names.

    Raises:
        MissingDependencyError: jinja2 or matplotlib is not installed.
    """
    values = json.dumps(report.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {"report.html": page(report), "report.json": values}


def local_folder(folder: str | os.PathLike[str], option: str) -> Path:
    """The folder as a path. Unchecked, `file:///x` would be a folder named `file:` on this machine.

    Args:
        folder: of this machine.
        option: the argument that named it, for the error.

    Raises:
        OptionError: it is the address of another file system.
    """
    if _SCHEME.match(os.fspath(folder)):
        raise OptionError(f"{option} is {os.fspath(folder)!r}; give a folder of this machine, without a scheme")
    return Path(folder)


def write(report: Report, folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Writes `report.html` and `report.json` into a folder, which is made if it is not there.

    Args:
        report: the report.
        folder: a folder of this machine; `kafka_assignors.spark.files.write_report` writes to any file system of Spark.

    Returns:
        The paths of both.

    Raises:
        MissingDependencyError: jinja2 or matplotlib is not installed.
        OptionError: the folder is the address of another file system.
        OSError: the folder cannot be written.
    """
    place = local_folder(folder, "folder")
    texts = files(report)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (place / name).write_text(text, "utf-8")
    html, values = (str(place / name) for name in texts)
    return html, values


def _variables(which: int) -> str:
    return " ".join(f"--{name}: {pair[which]};" for name, pair in COLOURS.items())


def _cells(own: StrategyFigures, loads: bool) -> list[str]:
    """The texts of a strategy's row in the table of a group; `loads` adds the load of the heaviest member."""
    ratios = [own.load_ratio_mean, own.load_ratio_max] if loads else []
    return [
        _number(own.rebalances),
        _number(own.moved),
        _number(own.moved_needed),
        _figure(own.spread),
        _figure(own.balance_score),
        _figure(own.lag_skew),
        _number(own.max_lag),
        *("–" if ratio is None else _figure(ratio) for ratio in ratios),
        _percent(own.unassigned_share),
        _number(own.copartition_violations),
    ]


def _has_loads(report: Report) -> bool:
    """Whether a strategy of the page is weighted."""
    groups = chain(report.worst, report.changes)
    of_groups = (figures.load_ratio_mean for each in groups for figures in each.figures.strategies.values())
    return any(ratio is not None for ratio in chain((each.load_ratio_mean for each in report.strategies), of_groups))


def _pictures(report: Report) -> Mapping[str, Picture]:
    """The pictures of the fleet; an empty one is left out."""
    sound = [each for each in report.strategies if each.rebalances]
    found = {}
    if sound:
        found["moved"] = charts.moved(sound)
        found["evenness"] = charts.evenness(sound)
    if len(report.periods) > 1:
        found["over_time"] = charts.over_time(report.periods, report.period_ms, _lines(report))
    if any(each.saved > 0 for each in report.worst):
        found["worst"] = charts.worst([each for each in report.worst if each.saved > 0])
    return found


def _lines(report: Report) -> list[str]:
    """The strategies in the picture over time, four at most: `observed`, the fewest moves, the most, and `range`.

    Only a strategy that assigns about as many partitions as any other counts as the one with the fewest moves.
    """
    sound = [each for each in report.strategies if each.rebalances]
    most = max((each.assigned for each in sound), default=0)
    by_moves = sorted(sound, key=lambda each: (each.assigned < 0.99 * most, each.moved))
    names = [each.strategy for each in by_moves]
    moved = {each.strategy: each.moved for each in sound}
    wanted = [
        OBSERVED,
        *[name for name in names if name != OBSERVED][:1],
        "range",
        *sorted(names, key=lambda name: -moved[name]),
    ]
    return [name for name in dict.fromkeys(wanted) if name in names][:4]


def _group(group: GroupReport, place: int) -> _Shown:
    timelines = [each for each in group.ownership if each.times and each.partitions]
    group_id = escaped(group.figures.group_id)
    by_strategy: Mapping[str, Mapping[str, int]] = group.lag.strategies if group.lag else {}
    picture = group.lag and any(any(lags.values()) for lags in by_strategy.values())
    columns = _lag_columns(group, by_strategy)
    return _Shown(
        group,
        f"group-{place}",
        today(group.figures),
        group_charts.owners(group_id, timelines) if timelines else None,
        group_charts.loads(group_id, timelines) if timelines else None,
        group_charts.lag_chart(group_id, group.lag) if group.lag and picture else None,
        _members(timelines),
        _lag_rows(by_strategy, columns),
        columns,
    )


def _members(timelines: Sequence[Ownership]) -> list[tuple[str, str]]:
    return [(code, member) for member, code in codes(timelines).items()]


def _lag_columns(group: GroupReport, by_strategy: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The present strategy and the recommended one, and then those with the smallest heaviest lag."""
    present = today(group.figures)
    least = sorted(by_strategy, key=lambda name: (max(by_strategy[name].values(), default=0), name))
    wanted = [present, group.recommendation.strategy, *least]
    return [name for name in dict.fromkeys(wanted) if name is not None and name in by_strategy][:3]


def _lag_rows(
    by_strategy: Mapping[str, Mapping[str, int]], columns: Sequence[str]
) -> Sequence[tuple[str, Sequence[int | None]]]:
    """The members with the most lag, each with its lag under each strategy."""
    members = dict.fromkeys(member for name in columns for member in by_strategy[name])
    rows = [(member, [by_strategy[name].get(member) for name in columns]) for member in members]
    rows.sort(key=lambda row: (-max(lag or 0 for lag in row[1]), row[0]))
    return rows[:_LAG_ROWS]


def _number(value: int) -> str:
    return f"{value:,}"


def _figure(value: float) -> str:
    """A whole number or a figure from 1,000 on without decimals, any other with three significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _time(value: int | None) -> str:
    return "–" if value is None else f"{datetime.fromtimestamp(value / 1000, UTC):%d %B %Y %H:%M} UTC"


def _strategy(name: Any) -> str:
    return "observed (today)" if name == OBSERVED else escaped(str(name))
