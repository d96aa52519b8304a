"""`make race`: our sticky assignors and those of the peers on the same bytes; 1 if ours is behind at a point."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.table import Table

from race import report
from race.contenders import PEERS, Contender
from race.points import POINTS, QUICK, Point
from race.run import QUICK as QUICK_LIMITS
from race.run import Limits, Race

if TYPE_CHECKING:
    from collections.abc import Sequence

OUT, PUBLISHED, PAGE = Path("target/race"), Path("docs/figures/race"), Path("docs/benchmarks.md")
# The peers that the tests install.
QUICK_PEERS = ("kafka-python*", "aiokafka*", "librdkafka*")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="race", description=__doc__)
    parser.add_argument("--only", action="append", metavar="POINT", help="points by name or pattern, as '1,000 x 10 *'")
    parser.add_argument(
        "--peers", action="append", metavar="PEER", help="peers by name or pattern, as 'Java*', or none"
    )
    parser.add_argument("--part", metavar="K/N", help="every Nth point, from the Kth on; the results of parts add up")
    parser.add_argument("--quick", action="store_true", help="three small points, peers that are installed anyway")
    parser.add_argument("--minute", type=float, metavar="SECONDS", help="after how long a call is given up (60)")
    parser.add_argument("--try-all", action="store_true", help="try also where a peer gave up at a point no larger")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where results, tables and plot go ({OUT})")
    parser.add_argument("--publish", action="store_true", help=f"put them into the documentation ({PUBLISHED})")
    parser.add_argument("--list", action="store_true", help="print the points and the peers and stop")
    chosen = parser.parse_args(arguments)
    points = QUICK if chosen.quick else POINTS
    if chosen.list:
        print(*(point.name for point in points), "", *(peer.name for peer in PEERS), sep="\n")
        return 0
    points = _chosen(parser, "--only", chosen.only, points)
    if chosen.part:
        points = _part(parser, chosen.part, points)
    patterns = chosen.peers or (QUICK_PEERS if chosen.quick else None)
    peers = [] if patterns == ["none"] else _chosen(parser, "--peers", patterns, PEERS)
    limits = QUICK_LIMITS if chosen.quick else Limits()
    if chosen.minute is not None:
        if not chosen.minute > 0:
            parser.error(f"--minute is {chosen.minute:g}; give a number of seconds above 0")
        limits = dataclasses.replace(limits, call=chosen.minute)
    if chosen.publish:
        chosen.out = PUBLISHED
    chosen.out.mkdir(parents=True, exist_ok=True)
    # If the output goes to a file, make it wide enough for the tables.
    console = Console() if sys.stdout.isatty() else Console(width=180)
    race = Race(limits, try_all=chosen.try_all)
    try:
        for point in points:
            entries = race.run(point, peers)
            report.merge(chosen.out, point.name, entries)
            table = Table(title=point.name)
            for column in report.COLUMNS:
                table.add_column(column, justify="right" if column else "left")
            for row in report.rows(entries):
                table.add_row(*row)
            console.print(table)
    finally:
        race.close()
    about, results = report.read(chosen.out)
    (chosen.out / "results.md").write_text(report.markdown(results, about))
    report.plot(results, chosen.out / "race.png")
    if chosen.publish:
        report.publish(PAGE, results, about)
    table = Table(title="Processor time against ours, and plans worse than ours")
    for column in report.SUMMARY:
        table.add_column(column, justify="right" if column else "left")
    for cells in report.summary(results):
        table.add_row(*cells)
    console.print(table)
    for line in report.to_floor(results):
        console.print(line)
    lost = report.behind(results)
    for line in lost:
        console.print(f"NOT AHEAD: {line}")
    console.print(f"results, tables and plot are in {chosen.out}")
    return 1 if lost and not chosen.quick else 0


Named = TypeVar("Named", Point, Contender)


def _chosen(
    parser: argparse.ArgumentParser, option: str, patterns: Sequence[str] | None, known: list[Named]
) -> list[Named]:
    for pattern in patterns or ():
        if not any(fnmatch(each.name, pattern) for each in known):
            parser.error(f"{option} is {pattern!r}, which fits nothing; --list names what there is")
    return [each for each in known if not patterns or any(fnmatch(each.name, pattern) for pattern in patterns)]


def _part(parser: argparse.ArgumentParser, part: str, points: list[Point]) -> list[Point]:
    number, _, parts = part.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        parser.error(f"--part is {part!r}; give which of how many, as 1/4")
    return points[int(number) - 1 :: int(parts)]


if __name__ == "__main__":
    sys.exit(main())
