"""`kafka-assignors migrate`: the migration of one or all groups to the protocol in which the broker assigns."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import WARNINGS, Format, console, exit_on_error, print_csv, print_json
from kafka_assignors.cluster import Snapshot, read_fleet, read_new_protocol, read_snapshot
from kafka_assignors.errors import OptionError
from kafka_assignors.planner.migrate import WAYS, MigratedGroup, Migration
from kafka_assignors.planner.migrate import migrate as find_ways
from kafka_assignors.planner.switch import Switch
from kafka_assignors.report.terminal import number, table
from kafka_assignors.server_side import BROKER, UniformAssignor

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_assignors.cluster import Missing
    from kafka_assignors.planner.cost import StrategyCost
    from kafka_assignors.server_side import ServerSideName

_COLUMNS = ("group_id", "way", "state", "strategy", "members", "classic", "assignor")
_FIGURES = tuple(field.name for field in fields(Switch) if field.name != "assignor")


def migrate(
    bootstrap: options.BootstrapServer = None,
    group: Annotated[
        str | None, typer.Option("--group", help="The group; without it, all groups of consumers.")
    ] = None,
    snapshot: options.SnapshotFile = None,
    assignor: Annotated[
        str | None,
        typer.Option(
            "--assignor",
            help="The broker's assignor: uniform, or range, the default for a strategy that co-locates.",
        ),
    ] = None,
    broker: Annotated[
        str, typer.Option("--broker", help="The release of Kafka whose plans are simulated: 4.0.0 to 4.4.")
    ] = BROKER,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    timeout: options.Timeout = 30.0,
    form: Annotated[Format, typer.Option("--format", help="Text for people, JSON, or CSV.")] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Say whether a group can be moved to the new protocol (KIP-848): its obstacles, the steps, and the changes.

    Read-only: it joins no group, commits nothing and changes no setting. What no API returns is listed as unknown.

    \b
    kafka-assignors migrate --bootstrap-server localhost:9092 --group billing
    kafka-assignors migrate --bootstrap-server localhost:9092
    kafka-assignors migrate --snapshot billing.json --assignor range

    Exit status: 0 if nothing is in the way, 3 if something is, or if a group could not be read, 2 for bad input or a
    cluster that cannot be read.
    """
    with exit_on_error():
        UniformAssignor(broker=broker)
        if assignor not in (None, "uniform", "range"):
            raise OptionError(f"--assignor is {assignor!r}; the broker has 'uniform', 'range'")
        chosen: ServerSideName | None = assignor  # type: ignore[assignment]
        missing: tuple[Missing, ...] = ()
        brokers = None
        if snapshot is not None:
            if bootstrap is not None or settings or config:
                raise OptionError("--snapshot is a file, the other options a live cluster; give only one of them")
            taken = Snapshot.load(snapshot)
        else:
            connection = options.settings_of(bootstrap, settings, config)
            with options.bars() as progress:
                if group is None:
                    look = read_fleet(connection, ages=False, timeout=timeout, progress=progress)
                    taken, missing = look.snapshot, look.missing
                else:
                    taken = read_snapshot(connection, [group], clients=True, timeout=timeout, progress=progress)
            brokers = read_new_protocol(connection, timeout=timeout)
        with options.bars() as progress:
            found = find_ways(
                taken,
                group,
                brokers=brokers,
                assignor=chosen,
                broker=broker,
                missing=missing,
                progress=lambda done, total: progress("groups", done, total),
            )
        if form is Format.JSON:
            print_json("migrate", found, wrong=found.wrong, ways=found.ways)
        elif form is Format.CSV:
            print_csv((*_COLUMNS, "in_the_way", *_FIGURES), map(_row, found.groups))
        else:
            _show(console(wide), found)
    if found.wrong:
        raise typer.Exit(WARNINGS)


def _row(group: MigratedGroup) -> list[object]:
    figures = [None] * len(_FIGURES) if group.change is None else [getattr(group.change, name) for name in _FIGURES]
    rules = " ".join(dict.fromkeys(each.rule for each in group.in_the_way))
    return [*(getattr(group, name) for name in _COLUMNS), rules, *figures]


def _show(out: Console, found: Migration) -> None:
    if len(found.groups) == 1:
        _show_one(out, found, found.groups[0])
    else:
        _show_all(out, found)
    for each in found.missing:
        out.print(f"not read: {each.kind} {each.name}: {each.reason}")


def _show_all(out: Console, found: Migration) -> None:
    taken = _time(found)
    out.print(f"cluster {found.cluster or 'without an id'}: {len(found.groups):,} groups as of {taken}")
    out.print("  " + (", ".join(f"{count:,} {way}" for way, count in found.ways.items()) or "none"))
    rows = [
        [
            group.group_id,
            group.way,
            ", ".join(dict.fromkeys(each.rule for each in group.in_the_way)) or "nothing",
            group.members,
            group.strategy or "-",
            group.assignor,
            "-" if group.change is None else number(group.change.moves),
            "-" if group.change is None else number(group.change.all_moves),
        ]
        for group in found.groups
    ]
    headings = ["group", "way", "in the way", "members", "strategy", "assignor then", "moves at the switch", "in all"]
    left = ("way", "in the way", "strategy", "assignor then")
    least = ["assignor then", "in all", "members", "strategy", "moves at the switch"]
    if rows:
        out.print(table("", headings, rows, left=left, least=least))
    for way in found.ways:
        out.print(f"{way}: {WAYS[way]}")
    out.print("the order, what to do and what is unknown: with --group")


def _show_one(out: Console, found: Migration, group: MigratedGroup) -> None:
    who = f"{group.members:,} members" if group.members else "no members"
    out.print(f"group {group.group_id}: {group.state}, {group.strategy or 'no strategy'}, {who}; as of {_time(found)}")
    out.print(f"{group.way}: {WAYS[group.way]}")
    if group.in_the_way:
        out.print("in the way:")
    for each in group.in_the_way:
        out.print(f"  {each.rule}: {each.text}")
        out.print(f"    what to do: {each.remedy}")
    _list(out, "order:", [f"{place}. {step}" for place, step in enumerate(group.order, 1)])
    _list(out, "the way back:", [f"{place}. {step}" for place, step in enumerate(group.back, 1)])
    if group.change is not None:
        _show_change(out, group.change, found.broker)
    if group.events:
        _show_events(out, group)
    _list(out, "unknown:", group.unknown)
    hints = [
        f"{each.members:,} {f'like {each.client_id}' if each.client_id else 'without a known client id'}: "
        + (f"{each.library}'s default; {each.text}" if each.library else "no library's default")
        for each in group.clients
    ]
    _list(out, "hints, from client ids, which any program may choose:", hints)
    for note in group.notes:
        out.print(f"note: {note}")


def _list(out: Console, title: str, lines: list[str] | tuple[str, ...]) -> None:
    if lines:
        out.print(title)
    for line in lines:
        out.print(f"  {line}")


def _show_change(out: Console, change: Switch, broker: str) -> None:
    moved = (
        f"{change.moves:,} of {change.partitions:,} partitions move when the first new member joins beside the others"
    )
    whole = "" if change.all_moves is None else f", {change.all_moves:,} moves until all members are replaced"
    out.print(f"moves: {moved}{whole}")
    rows: list[list[object]] = [
        ["partitions of a member", f"{change.fewest_now} to {change.most_now}", f"{change.fewest} to {change.most}"],
        ["balance score", number(change.balance_score_now), number(change.balance_score)],
    ]
    if change.numbers:
        now, then = (change.numbers - (each or 0) for each in (change.split_numbers_now, change.split_numbers))
        rows.append([f"co-located numbers of {change.numbers:,}", number(now), number(then)])
    if change.own_rack_now is not None:
        rows.append(["read in the own rack", number(change.own_rack_now), number(change.own_rack)])
    out.print(table("What changes", ["", "now", f"{change.assignor}, Kafka {broker}"], rows))


def _show_events(out: Console, group: MigratedGroup) -> None:
    def cells(row: StrategyCost | None) -> list[str]:
        if row is None or row.error is not None:
            return ["?", "?", "?"]
        least, most = row.least_moves, row.most_moves_in_all
        moves = number(row.moves) if least == most else f"{row.moves:,} ({least:,} to {most:,})"
        return [number(row.rebalances), moves, number(row.stopped)]

    rows = []
    for each in group.events:
        now, then = cells(each.now), cells(each.then)
        rows.append([each.event, *(cell for pair in zip(now, then, strict=True) for cell in pair)])
    headings = ["event", "rebalances", "rebalances then", "moves", "moves then", "stopped", "stopped then"]
    least = ["rebalances then", "rebalances"]
    out.print(table("What events cost, now and then", headings, rows, least=least))
    out.print("stopped: partitions that stop being read during a rebalance although their owner stays")


def _time(found: Migration) -> str:
    return datetime.fromtimestamp(found.taken_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
