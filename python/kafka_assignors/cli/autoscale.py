"""`kafka-assignors autoscale`: a group's lag replayed against policies of autoscalers."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.assignors import by_name
from kafka_assignors.autoscale import Replayed, Timing, parse_policy
from kafka_assignors.cli import options
from kafka_assignors.cli.output import Format, console, exit_on_error, print_csv, print_json
from kafka_assignors.cli.readings import Interval, Rate, readings_of
from kafka_assignors.errors import OptionError, SnapshotError
from kafka_assignors.flags import deprecated, duration_s
from kafka_assignors.planner.autoscale import MEMBERSHIPS, Autoscaled, load_of_looks, load_of_tables
from kafka_assignors.planner.autoscale import autoscale as autoscaled
from kafka_assignors.report.autoscale import AutoscaledGroup, AutoscalePage, autoscale_page, check_libraries
from kafka_assignors.report.terminal import number, table

if TYPE_CHECKING:
    from rich.console import Console

_LINES = ("replicas", "lag")
_STRATEGIES = ("range", "sticky", "cooperative-sticky")
# The default of `--horizon` after two readings, in seconds.
_HORIZON_S = 3_600.0


def autoscale(
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            help="A policy with the parameters of KEDA or of an HPA, such as 'keda(lagThreshold=500)', "
            "'calm=keda(lagThreshold=500, cooldownPeriod=900)' or 'fixed(replicas=6)'. Repeatable.",
            metavar="[NAME=]KIND(PARAMETER=VALUE, …)",
        ),
    ],
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    since: Annotated[
        list[str] | None,
        typer.Option("--since", help="An earlier snapshot of the same cluster. Repeatable.", metavar="FILE"),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option("--in", help="Instead: a folder with the tables of a capture. Repeatable.", metavar="FOLDER"),
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="With --in: the group's cluster.")] = None,
    interval: Interval = None,
    readings: Annotated[
        int, typer.Option("--readings", min=2, max=10_000, help="The number of readings of a live group.")
    ] = 2,
    old_readings: Annotated[int | None, typer.Option("--looks", min=2, max=10_000, hidden=True)] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon", help="Go on for so long with the last rates, such as 2h; by default for 1h after two readings."
        ),
    ] = None,
    rate: Rate = None,
    membership: Annotated[
        list[str] | None,
        typer.Option("--membership", help="dynamic or static (with a group.instance.id); by default both. Repeatable."),
    ] = None,
    late_after: Annotated[
        str, typer.Option("--late-after", help="A record is late if it is read later than that after it arrived: 5m.")
    ] = "5m",
    old_late_after: Annotated[str | None, typer.Option("--deadline", hidden=True)] = None,
    rebalance: Annotated[
        float, typer.Option("--rebalance", min=0, help="How many seconds a rebalance leaves a partition unowned.")
    ] = Timing().rebalance,
    startup: Annotated[
        float, typer.Option("--startup", min=0, help="How many seconds a replica needs until it joins.")
    ] = Timing().startup,
    session: Annotated[
        float, typer.Option("--session", min=0, help="The session timeout in seconds, for static members.")
    ] = Timing().session,
    commit: Annotated[float, typer.Option("--commit", min=0, help="How many seconds pass between commits.")] = 5.0,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help=f"A strategy as for `plan`. Repeatable; by default {', '.join(_STRATEGIES)}.",
            metavar="NAME[(OPTION=VALUE, …)]",
        ),
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", help="Write a page for a browser as well.", metavar="FILE")
    ] = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    form: Annotated[
        Format, typer.Option("--format", help="Text for people, JSON with the lines over time, or CSV.")
    ] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Replay a group's lag and rates against policies of autoscalers: replicas, rebalances, late records, cost.

    From readings of a group, or from the tables of a capture. Nothing is changed, and no autoscaler is asked.

    \b
    kafka-assignors autoscale --bootstrap-server localhost:9092 --group billing --policy 'keda(lagThreshold=500)'
    kafka-assignors autoscale --snapshot now.json --since before.json --policy 'keda(lagThreshold=500)' --horizon 2h
    kafka-assignors autoscale --in tables --group billing --policy 'fixed(replicas=6)' --html autoscale.html

    Exit status: 0, or 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():
        options.check_reset(reset)
        if old_readings is not None:
            deprecated("--looks", "--readings")
            readings = old_readings
        if old_late_after is not None:
            deprecated("--deadline", "--late-after")
            late_after = old_late_after
        policies = [parse_policy(text) for text in policy]
        assignors = [options.strategy_of(text) for text in strategy] if strategy else list(map(by_name, _STRATEGIES))
        memberships = list(dict.fromkeys(membership or MEMBERSHIPS))
        wrong = [each for each in memberships if each not in MEMBERSHIPS]
        if wrong:
            raise OptionError(f"--membership is {wrong[0]!r}; give one of {', '.join(MEMBERSHIPS)}")
        timing = Timing(rebalance, startup, session, commit, duration_s("--late-after", late_after))
        longer = None if horizon is None else duration_s("--horizon", horizon)
        if html is not None:
            check_libraries()
        if tables:
            if snapshot is not None or since or bootstrap is not None or settings or config:
                raise OptionError("--in is a folder of tables, the other options readings; give only one of them")
            if group is None:
                raise OptionError("there is no group; give --group NAME")
            load = load_of_tables(tables, group, cluster=cluster, rate=rate, reset=reset)
        else:
            taken, name = readings_of(
                bootstrap, group, snapshot, since or (), interval, settings, config, timeout, count=readings
            )
            load = load_of_looks(taken, name, rate=rate, reset=reset)
            if longer is None and len(load.times) == 2:
                longer = _HORIZON_S
        if longer is not None:
            load = load.continued(longer)
        with options.bars() as progress:
            found = autoscaled(
                load, policies, assignors, memberships, timing, lambda done, total: progress("replays", done, total)
            )
        _answer(found, form, wide)
        if html is not None:
            _write(html, found)


def _answer(found: Autoscaled, form: Format, wide: bool) -> None:
    if form is Format.JSON:
        print_json("autoscale", found)
    elif form is Format.CSV:
        names = [field.name for field in fields(Replayed) if field.name not in _LINES]
        print_csv(names, ([getattr(row, name) for name in names] for row in found.runs))
    else:
        _show(console(wide), found)


def _write(path: str, found: Autoscaled) -> None:
    shown = AutoscaledGroup(
        "", found.group_id, found.since_ms, found.until_ms, found.partitions, found.rate, found.runs, found.notes
    )
    title = f"What autoscalers would have done with {found.group_id}"
    page = autoscale_page(AutoscalePage(title, found.deadline, (), (shown,)))
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise SnapshotError(f"the page cannot be written: {error}") from error


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"


def _show(out: Console, found: Autoscaled) -> None:
    out.print(
        f"group {found.group_id}, {_time(found.since_ms)} to {_time(found.until_ms)} UTC: {number(found.records)} "
        f"records to read in {number(found.partitions)} partitions, {found.members} members at the beginning"
    )
    late = f"a record is late after {found.deadline:g} s"
    out.print(f"  one member reads {number(found.rate, 1)} records a second; {late}")
    rows: list[list[object]] = []
    for row in found.runs:
        head: list[object] = [row.policy, row.strategy, row.membership]
        if row.error is not None:
            rows.append([*head, *["-"] * 8, f"cannot plan this: {row.error}"])
            continue
        rows.append(
            [
                *head,
                f"{row.least_replicas} to {row.most_replicas}",
                row.scalings,
                row.rebalances,
                number(row.unowned_s),
                number(row.late),
                number(row.member_hours, 1),
                number(row.most_lag),
                number(row.moves),
                "",
            ]
        )
    headings = [
        "policy",
        "strategy",
        "members",
        "replicas",
        "changes",
        "rebalances",
        "without an owner (s)",
        "late records",
        "member-hours",
        "most lag",
        "moves",
        "why not",
    ]
    least = ["moves", "most lag", "changes", "replicas", "rebalances"]
    left = ("strategy", "members", "why not")
    out.print(table("Policies", headings, rows, left=left, names=("policy",), least=least))
    out.print("without an owner: partition-seconds in rebalances, and until the session of a static member expires")
    if any(row.empty_s for row in found.runs):
        most = max(row.empty_s for row in found.runs)
        out.print(f"with 0 replicas no member reads: up to {number(most)} partition-seconds more, not counted there")
    for note in found.notes:
        out.print(f"note: {note}")
