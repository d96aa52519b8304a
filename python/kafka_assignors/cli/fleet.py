"""`kafka-assignors fleet`: all groups of a cluster, the worst first."""

from __future__ import annotations

import itertools
import time
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group as Renderables
from rich.live import Live

from kafka_assignors.cli import options
from kafka_assignors.cli.fleet_page import write_page
from kafka_assignors.cli.fleet_text import renderables
from kafka_assignors.cli.output import (
    WARNINGS,
    Format,
    console,
    exit_on_error,
    print_csv,
    print_json,
)
from kafka_assignors.cluster import Look, Snapshot, read_fleet
from kafka_assignors.errors import ClusterError, NetworkError, OptionError
from kafka_assignors.flags import deprecated
from kafka_assignors.planner.fleet import Fleet, FleetGroup, Limits
from kafka_assignors.planner.fleet import fleet as describe_fleet
from kafka_assignors.planner.fleet_query import FIELDS, chosen, parse_condition, sorted_by
from kafka_assignors.planner.reading_window import Window

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from kafka_assignors.planner.fleet_query import Condition


def fleet(
    bootstrap: options.BootstrapServer = None,
    snapshot: options.SnapshotFile = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", help="An earlier snapshot of the same cluster, for what changed since.", metavar="FILE"
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            min=0.1,
            help="Read the cluster twice, so many seconds apart, for growth and commits that stand still.",
        ),
    ] = None,
    watch: Annotated[
        float | None,
        typer.Option("--watch", min=0.1, help="Read again and redraw every so many seconds, until interrupted."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="With --watch: end after so many readings.")
    ] = None,
    old_count: Annotated[int | None, typer.Option("--looks", min=1, hidden=True)] = None,
    sort: Annotated[str | None, typer.Option("--sort", help=f"The order of the groups: {', '.join(FIELDS)}.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order of the groups.")] = False,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Only groups that fit, such as lag>10k, verdict=stuck, lag_seconds>5min, group~^billing. Repeatable.",
            metavar="CONDITION",
        ),
    ] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the first so many groups.")] = None,
    max_lag: Annotated[
        int | None, typer.Option("--max-lag", min=0, help="More records of lag than that are a warning.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0, help="A record that waits longer than that is a warning.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", help="Write a page for a browser as well.", metavar="FILE")
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", help="Keep the reading as a snapshot, for a later --since.", metavar="FILE")
    ] = None,
    isolation: Annotated[
        str, typer.Option("--isolation-level", help="read_committed: lag ends at the first open transaction.")
    ] = "read_uncommitted",
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    form: Annotated[Format, typer.Option("--format", help="Text for people, JSON, or CSV.")] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Show all groups of a cluster, the worst first: lag, balance, what rebalances cost, and broken rules.

    Read-only: it joins no group and commits nothing. What cannot be read is named below the groups that can.

    \b
    kafka-assignors fleet --bootstrap-server localhost:9092
    kafka-assignors fleet --bootstrap-server localhost:9092 --filter 'lag>10k' --sort lag_seconds --top 20
    kafka-assignors fleet --bootstrap-server localhost:9092 --html fleet.html --save now.json

    Exit status: 0 if all is well, 3 if a rule is not met or something could not be read (of the groups that --filter
    leaves), 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():
        options.check_reset(reset)
        if old_count is not None:
            deprecated("--looks", "--count")
            count = old_count if count is None else count
        wanted = [parse_condition(each) for each in conditions or ()]
        if sort is not None:
            sorted_by((), sort)
        _check(snapshot, since, interval, watch, count, (bootstrap, settings, config))
        limits = Limits(max_lag, max_seconds)
        earlier = None if since is None else Snapshot.load(since)

        def answered(look: Look, before: Snapshot | None, seconds: float | None = None) -> Fleet:
            with _progress(quiet=watch is not None) as progress:
                found = describe_fleet(
                    look,
                    before,
                    seconds=seconds,
                    reset=reset,
                    limits=limits,
                    progress=lambda done, total: progress("described", done, total),
                )
            return _of_these(found, wanted, sort, reverse)

        if snapshot is not None:
            look = Look(Snapshot.load(snapshot))
            found = answered(look, earlier)
            _answer(found, look, form, wide, top)
        else:
            connection = options.settings_of(bootstrap, settings, config)
            live = _Live(connection, timeout, isolation, quiet=watch is not None)
            if watch is not None:
                found, look = _watch(live, answered, watch, count, form, wide, top)
            else:
                look, before, seconds = live.twice(interval) if interval is not None else (live.read(), None, None)
                found = answered(look, before or earlier, seconds)
                _answer(found, look, form, wide, top)
        if save is not None:
            look.snapshot.save(save)
        if html is not None:
            write_page(html, found, look, reset)
    if found.wrong:
        raise typer.Exit(WARNINGS)


def _check(
    snapshot: str | None,
    since: str | None,
    interval: float | None,
    watch: float | None,
    count: int | None,
    connection: tuple[Any, ...],
) -> None:
    if snapshot is not None and (any(connection) or interval is not None or watch is not None):
        raise OptionError("--snapshot is a file, the other options a live cluster; give only one of them")
    if sum(each is not None for each in (since, interval, watch)) > 1:
        raise OptionError(
            "--since, --interval and --watch each say which reading is the earlier one; give only one of them"
        )
    if count is not None and watch is None:
        raise OptionError("--count goes with --watch")


def _silent(_step: str, _done: int, _total: int) -> None:
    """Progress that is not shown: the answer itself is redrawn in its place."""


def _progress(*, quiet: bool) -> AbstractContextManager[Callable[[str, int, int], object]]:
    return nullcontext(_silent) if quiet else options.bars()


class _Live:
    """Readings of a live cluster.

    Args:
        connection: the settings of the connection.
        timeout: the seconds that one reading may take.
        isolation: the isolation level.
        quiet: whether no progress is shown.
    """

    def __init__(self, connection: dict[str, Any], timeout: float, isolation: str, *, quiet: bool) -> None:
        self._connection = connection
        self._timeout = timeout
        self._isolation = isolation
        self._quiet = quiet

    def read(self, *, ages: bool = True) -> Look:
        with _progress(quiet=self._quiet) as progress:
            return read_fleet(
                self._connection,
                ages=ages,
                isolation_level=self._isolation,
                timeout=self._timeout,
                progress=progress,
            )

    def twice(self, interval: float) -> tuple[Look, Snapshot, float]:
        """A reading, the reading before it, and the seconds between them by the monotonic clock."""
        first = self.read(ages=False)
        began = time.monotonic()
        time.sleep(interval)
        second = self.read()
        return second, first.snapshot, round(time.monotonic() - began, 3)


def _watch(
    live: _Live, answered: Any, every: float, most: int | None, form: Format, wide: bool, top: int | None
) -> tuple[Fleet, Look]:
    """Reads the cluster again and again, and redraws the answer; returns the last answer and its reading.

    After the first answer, Ctrl-C only ends the readings, and the command continues with the last answer. Before the
    first answer, Ctrl-C ends the command.
    """
    out = console(wide)
    redrawn = form is Format.TEXT and out.is_terminal
    window = Window()
    last: tuple[Fleet, Look] | None = None
    display: Any = Live(console=out, auto_refresh=False) if redrawn else nullcontext()
    with display as drawn:
        for number in itertools.count(1):
            try:
                began = time.monotonic()
                try:
                    look = live.read()
                except (ClusterError, NetworkError) as error:
                    if last is None or not redrawn:
                        raise
                    drawn.update(Renderables(*renderables(last[0], _rows(out, top), str(error))), refresh=True)
                else:
                    found = answered(look, *window.before(began))
                    window.add(began, look.snapshot)
                    last = found, look
                    if redrawn:
                        drawn.update(Renderables(*renderables(found, _rows(out, top))), refresh=True)
                    else:
                        _answer(found, look, form, wide, top)
                if number == most:
                    break
                time.sleep(max(0.0, every - (time.monotonic() - began)))
            except KeyboardInterrupt:
                if last is None:
                    raise
                break
    assert last is not None
    return last


def _rows(out: Any, top: int | None) -> int:
    """How many groups fit on the screen, with the lines above and below them."""
    height: int = out.size.height
    fit = max(3, height - 14)
    return fit if top is None else min(top, fit)


def _of_these(found: Fleet, wanted: list[Condition], sort: str | None, reverse: bool) -> Fleet:
    groups = chosen(found.groups, wanted)
    if sort is not None:
        groups = sorted_by(groups, sort, reverse=reverse)
    elif reverse:
        groups.reverse()
    return replace(found, groups=tuple(groups))


def _answer(found: Fleet, look: Look, form: Format, wide: bool, top: int | None) -> None:
    if form is Format.JSON:
        shown = found.first(top)
        print_json("fleet", shown, wrong=found.wrong, verdicts=found.verdicts)
    elif form is Format.CSV:
        names = [field.name for field in fields(FleetGroup) if field.name != "findings"]
        print_csv((*names, "rules"), (_row(group, names) for group in found.first(top).groups))
    else:
        out = console(wide)
        for each in renderables(found, top):
            out.print(each)


def _row(group: FleetGroup, names: list[str]) -> list[object]:
    cells = [getattr(group, name) for name in names]
    return [*("; ".join(cell) if isinstance(cell, tuple) else cell for cell in cells), FIELDS["rules"](group)]
