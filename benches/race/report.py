"""The results of the race: a file of figures, tables of points and of peers, points where ours is behind, a plot."""

from __future__ import annotations

import json
import platform
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from race.contenders import CONTENDERS, FLOORS, OURS, PEERS, MissingPeerError, available, version
from race.plans import Quality
from race.points import POINTS, QUICK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from race.contenders import Contender
    from race.run import Entry

__all__ = [
    "RESULTS",
    "behind",
    "machine",
    "markdown",
    "merge",
    "plot",
    "publish",
    "read",
    "section",
    "summary",
    "to_floor",
]

RESULTS = "results.json"

Results = dict[str, dict[str, "Entry"]]
"""The results by point and contender."""

_MINE = {each.strategy: each for each in OURS}


def machine() -> dict[str, Any]:
    """The date, the processor and the versions of a run."""
    versions = {"Python": platform.python_version()}
    for contender in CONTENDERS:
        try:
            available(contender.worker)
            versions[contender.worker] = version(contender.worker)
        except MissingPeerError as error:
            versions[contender.worker] = f"missing: {error}"
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "processor": _processor(), "versions": versions}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def read(directory: Path) -> tuple[dict[str, Any], Results]:
    """The machine and the results of earlier runs."""
    path = directory / RESULTS
    if not path.exists():
        return {}, {}
    stored = json.loads(path.read_text())
    return stored["machine"], stored["points"]


def merge(directory: Path, name: str, entries: dict[str, Entry]) -> Results:
    """Adds the results of one point. The results of contenders that did not take part this time stay."""
    _, results = read(directory)
    results.setdefault(name, {}).update(entries)
    order = {point.name: number for number, point in enumerate([*POINTS, *QUICK])}
    ranks = {each.name: number for number, each in enumerate(CONTENDERS)}
    ordered = {
        point: dict(sorted(results[point].items(), key=lambda item: ranks.get(item[0], len(ranks))))
        for point in sorted(results, key=lambda point: order.get(point, len(order)))
    }
    stored = {"machine": machine(), "points": _rounded(ordered)}
    (directory / RESULTS).write_text(json.dumps(stored, indent=1) + "\n")
    return ordered


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value


def quality(entry: Entry) -> Quality:
    """The quality of a measured contender's plan."""
    return Quality(entry["score"], entry["misses"], entry["kept"], entry["rounds"])


def behind(results: Results) -> list[str]:
    """The points at which ours is not faster than a peer with the same strategy, or its plan is worse."""
    found = []
    for point, entries in results.items():
        for ours in OURS:
            entry = entries.get(ours.name)
            if entry is None or entry["status"] != "measured":
                found.append(f"{point}: {ours.name}: {entry['reason'] if entry else 'not run'}")
                continue
            if entry["plans"] != 1:
                found.append(f"{point}: {ours.name} made {entry['plans']} different plans")
        for peer in PEERS:
            entry, mine = entries.get(peer.name), entries.get(_MINE[peer.strategy].name)
            if entry is None or mine is None or {entry["status"], mine["status"]} != {"measured"}:
                continue
            for clock in ("cpu_ms", "wall_ms"):
                if entry[clock] <= entry[f"ours_{clock}"]:
                    times = f"{entry[clock]:.3f} against {entry[f'ours_{clock}']:.3f}"
                    found.append(f"{point}: {peer.name} is faster: {clock} {times}")
            if quality(mine).behind(quality(entry)):
                found.append(f"{point}: {peer.name} plans better: {quality(entry)} against {quality(mine)}")
    return found


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def rows(entries: dict[str, Entry]) -> Iterable[list[str]]:
    """The table of one point: contender, CPU, wall, to the floor, to ours, score, misses, kept, rounds, plans."""
    for contender in CONTENDERS:
        entry = entries.get(contender.name)
        if entry is None:
            continue
        if entry["status"] != "measured":
            yield [contender.name, f"{entry['status']}: {entry['reason'].splitlines()[0]}", *[""] * 8]
            continue
        once = " (cold)" if entry["cold"] else ""
        row = [contender.name, _milliseconds(entry["cpu_ms"]) + once, _milliseconds(entry["wall_ms"])]
        if contender in FLOORS:
            yield [*row, "1", *[""] * 6]
            continue
        row += [_times(entry["cpu_ms"] / entry[f"{name}_cpu_ms"]) for name in ("floor", "ours")]
        row += [f"{entry[name]:,}" for name in ("score", "misses", "kept", "rounds")]
        yield [*row, f"{entry['plans']} of {entry['compared']}"]


COLUMNS = ["", "CPU ms", "wall ms", "x floor", "x ours", "score", "rack misses", "kept", "rounds", "different plans"]


def _table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(line)} |" for line in lines),
    ]


def summary(results: Results) -> list[list[str]]:
    """For each peer: the points at which it was measured, its times against ours, worse plans, different plans."""
    lines = []
    for peer in PEERS:
        entries = [(point, each[peer.name]) for point, each in results.items() if peer.name in each]
        measured = [(point, entry) for point, entry in entries if entry["status"] == "measured"]
        if not measured:
            reasons = sorted({entry["reason"].splitlines()[0] for _, entry in entries}) or ["not run"]
            lines.append([peer.name, f"0 of {len(results)}", "; ".join(reasons), "", "", "", "", ""])
            continue
        times = sorted(entry["cpu_ms"] / entry["ours_cpu_ms"] for _, entry in measured)
        mine = _MINE[peer.strategy].name
        ours = [(quality(results[point][mine]), quality(entry)) for point, entry in measured]
        uneven = sum(theirs.score > own.score for own, theirs in ours)
        worse = sum(theirs.behind(own) for own, theirs in ours)
        plans = max(entry["plans"] for _, entry in measured)
        lines.append(
            [
                peer.name,
                f"{len(measured)} of {len(results)}",
                *(_times(value) for value in (times[0], median(times), times[-1])),
                str(uneven),
                str(worse - uneven),
                str(plans),
            ]
        )
    return lines


def to_floor(results: Results) -> Iterable[str]:
    """For each of ours: its CPU time against the codec floor, in the median of the points and where it is largest."""
    for ours in OURS:
        found = {point: entries.get(ours.name) for point, entries in results.items()}
        ratios = {
            point: entry["cpu_ms"] / entry["floor_cpu_ms"]
            for point, entry in found.items()
            if entry is not None and entry["status"] == "measured"
        }
        if ratios:
            most = max(ratios, key=ratios.__getitem__)
            middle, largest = _times(median(ratios.values())), _times(ratios[most])
            yield f"{ours.name}: {middle} times the codec floor in the median, at most {largest} times ({most})"


SUMMARY = ["", "points", "least x ours", "median", "most", "less balanced", "else worse", "most different plans"]


def markdown(results: Results, about: dict[str, Any]) -> str:
    """The page with all figures."""
    versions = ", ".join(f"{name} {release}" for name, release in about["versions"].items())
    text = [
        "# The race, point by point",
        "",
        f"Made by `make race` on {about['date']}: {about['processor']}; {versions}.",
        "Ratios are to ours, and to the floor, of the same run. The columns, the peers with a run of their own, and",
        "the command: [Benchmarks](../../benchmarks.md#the-race).",
        "",
        *_table(SUMMARY, summary(results)),
    ]
    lost = behind(results)
    text += ["", "## Where ours is not ahead", "", *(f"- {line}" for line in lost or ["Nowhere."])]
    for point, entries in results.items():
        text += ["", f"## {point}", "", *_table(COLUMNS, rows(entries))]
    return "\n".join(text) + "\n"


BEGIN, END = "<!-- The race: written by make race --publish -->", "<!-- End of the race -->"


def section(results: Results, about: dict[str, Any]) -> str:
    """The summary for a page: a line for each peer, and the points where ours is behind."""
    versions = ", ".join(f"{name} {release}" for name, release in about["versions"].items())
    lost = behind(results)
    first = textwrap.fill(
        f"Of {len(results)} points, on {about['date']}, {about['processor']}; {versions}:", 140, break_on_hyphens=False
    )
    won = (
        "Wherever a peer came to a plan, ours took less CPU time and less wall time, and its plan was at least as good "
        "by the criteria below."
    )
    closing = ["Where ours is not ahead:", "", *(f"- {line}" for line in lost)] if lost else [won]
    return "\n".join([BEGIN, first, "", *_table(SUMMARY, summary(results)), "", *closing, END])


def publish(page: Path, results: Results, about: dict[str, Any]) -> None:
    """Writes that section into a page.

    Raises:
        ValueError: the page does not have the two marks.
    """
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page.name} has no section between {BEGIN!r} and {END!r}")
    page.write_text(before + section(results, about) + after)


_MARKS = {
    "ours": "o",
    "kafka-python": "v",
    "aiokafka": "^",
    "java": "s",
    "franz-go": "D",
    "sarama": "X",
    "librdkafka": "P",
}


def plot(results: Results, path: Path) -> None:
    """Every contender at every point, against the floor. Contenders without a plan are at the upper edge."""
    from matplotlib.figure import Figure

    known = [point for point in POINTS if point.name in results] or [point for point in QUICK if point.name in results]
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    axes = figure.subplots()
    drawn: list[Contender] = [*PEERS, *OURS]
    top = 0.0
    for number, contender in enumerate(drawn):
        found = [(x, results[point.name].get(contender.name)) for x, point in enumerate(known)]
        measured = [(x, entry) for x, entry in found if entry and entry["status"] == "measured"]
        ratios = [entry["cpu_ms"] / entry["floor_cpu_ms"] for _, entry in measured]
        top = max([top, *ratios])
        mine = contender in OURS
        axes.plot(
            [x for x, _ in measured],
            ratios,
            _MARKS[contender.worker],
            color="black" if mine else f"C{number}",
            fillstyle="none" if contender.cooperative else "full",
            markersize=7 if mine else 5.5,
            label=contender.name,
            zorder=3 if mine else 2,
        )
    for number, contender in enumerate(PEERS):
        lost = [
            x
            for x, point in enumerate(known)
            if results[point.name].get(contender.name, {}).get("status") in ("gave up", "not tried", "invalid")
        ]
        axes.plot(lost, [top * 2 * 1.45**number] * len(lost), "x", color=f"C{number}", markersize=4)
    axes.axhline(1, color="grey", linewidth=1)
    axes.set(yscale="log", ylabel="CPU time against the codec floor", xlim=(-0.7, len(known) - 0.3))
    sections = ["racks" if point.racks else point.kind for point in known]
    starts = [x for x in range(len(known)) if x == 0 or sections[x] != sections[x - 1]]
    for start, end in zip(starts, [*starts[1:], len(known)], strict=True):
        if start:
            axes.axvline(start - 0.5, color="lightgrey", linewidth=1)
        middle = ((start + end - 1) / 2, 1.01)
        axes.annotate(sections[start], middle, xycoords=("data", "axes fraction"), fontsize=7.5, ha="center")
    axes.set_xticks(
        range(len(known)),
        [
            f"{point.members:,} x {point.per_member}, {f'{point.kind}, ' if point.racks else ''}{point.change}"
            for point in known
        ],
        rotation=90,
        fontsize=6.5,
    )
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.set_title("A rebalance, bytes to bytes: 1 is reading and writing alone; x: no plan within a minute", pad=18)
    figure.legend(fontsize=7.5, ncols=5, loc="outside lower center")
    figure.savefig(path, dpi=110)
