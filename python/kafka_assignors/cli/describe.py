"""`kafka-assignors describe`: a group as it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import WARNINGS, Format, console, plain, print_csv, print_json, show_findings, told
from kafka_assignors.planner.describe import DescribedGroup, DescribedTopic
from kafka_assignors.planner.describe import describe as describe_group
from kafka_assignors.planner.findings import ranges
from kafka_assignors.report.terminal import count_map, number, ownership_map, table
from kafka_assignors.report.terminal.maps import MOST_PARTITIONS, NO_COMMIT

if TYPE_CHECKING:
    from rich.console import Console


def describe(
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    clients: Annotated[bool, typer.Option("--clients", help="Show client ids and hosts as well.")] = False,
    show_map: Annotated[bool, typer.Option("--map/--no-map", help="Draw who has what.")] = True,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    form: Annotated[
        Format, typer.Option("--format", help="Text for people, JSON, or CSV of who has what.")
    ] = Format.TEXT,
) -> None:
    """Show a group: its state, its strategy, who has what, lag, balance, and what is wrong.

    Read-only: it joins no group and commits nothing.

    \b
    kafka-assignors describe --bootstrap-server localhost:9092 --group billing
    kafka-assignors describe --snapshot billing.json --format json

    Exit status: 0 if all is well, 3 if a rule is not met (a member with nothing, a partition without an owner, claims
    that conflict: all are named), 2 for bad input or a cluster that cannot be read.
    """
    with told():
        standing = options.standing_of(
            bootstrap, group, snapshot, settings, config, timeout, reset=reset, clients=clients
        )
        found = describe_group(standing, reset=reset)
        if not clients:
            bare = (replace(member, client_id=None, client_host=None) for member in found.members)
            found = replace(found, members=tuple(bare))
        if form is Format.JSON:
            print_json({"warnings": len(found.warnings), **plain(found)})
        elif form is Format.CSV:
            _print_csv(found)
        else:
            _show(console(), found, show_map)
    if found.warnings:
        raise typer.Exit(WARNINGS)


def _print_csv(found: DescribedGroup) -> None:
    print_csv(
        ("topic", "partition", "member", "lag", "committed"),
        (
            (topic.name, partition, owner, lag, committed)
            for topic in found.topics
            for partition, (owner, lag, committed) in enumerate(
                zip(topic.owners, topic.lags, topic.committed, strict=True)
            )
        ),
    )


def _show(out: Console, found: DescribedGroup, show_map: bool) -> None:
    taken = datetime.fromtimestamp(found.taken_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    who = "the broker assigns (KIP-848)" if found.protocol == "consumer" else "a member assigns"
    out.print(f"group {found.group_id}: {found.state}, {found.strategy or 'no strategy'}, {who}; as of {taken}")
    with_clients = any(member.client_id for member in found.members)
    columns = ["client", "host"] if with_clients else []
    lacking = ["no commit"] if found.uncommitted else []
    headings = ["member", "id", *columns, "rack", "topics", "partitions", "lag", *lacking]
    rows = [
        [
            member.name,
            member.id,
            *([member.client_id or "", member.client_host or ""] if with_clients else []),
            member.rack or "",
            len(member.topics),
            member.count,
            _lag(member.lag, member.uncommitted, member.count),
            *([member.uncommitted] if lacking else []),
        ]
        for member in found.members
    ]
    out.print(table("Members", headings, rows, left=("id", "client", "host", "rack")))
    names = {member.id: member.name for member in found.members}
    has = [
        [member.name, topic, ranges(numbers)]
        for member in found.members
        for topic, numbers in member.partitions.items()
    ]
    if len(has) <= MOST_PARTITIONS:
        out.print(
            table(
                "Who has what",
                ["member", "topic", "partitions"],
                has,
                left=("topic", "partitions"),
                lists=["partitions"],
            )
        )
    topics = [
        [
            topic.name,
            topic.partitions,
            topic.subscribers,
            sum(owner is None for owner in topic.owners),
            _topic_lag(topic),
            *([topic.committed.count(None)] if lacking else []),
        ]
        for topic in found.topics
    ]
    out.print(table("Topics", ["topic", "partitions", "subscribers", "without owner", "lag", *lacking], topics))
    if show_map and found.members and found.topics:
        out.print(_map(out, found, names))
    spread = f"{found.spread[0]} to {found.spread[1]} partitions a member, " if found.spread else ""
    least = "" if found.least_balance_score is None else f" (least possible {found.least_balance_score})"
    total = _lag(found.lag, found.uncommitted, sum(topic.partitions for topic in found.topics))
    out.print(f"spread: {spread}balance score {found.balance_score}{least}; lag {total}")
    if found.idle:
        out.print(f"members with nothing: {', '.join(names[member] for member in found.idle)}")
    if found.protocol == "consumer":
        out.print(f"records of the group: one for each member (KIP-848), of {found.record_limit:,} bytes at most")
    else:
        show_record(out, found.record_bytes, found.record_limit, found.record_limit_told)
    for conflict in found.conflicts[:10]:
        claims = ", ".join(
            f"{names.get(member, member)} ({'no generation' if generation is None else f'generation {generation}'})"
            for member, generation in conflict.claims
        )
        won = names.get(conflict.winner, conflict.winner) if conflict.winner else "nobody"
        out.print(f"claimed by several: {conflict.topic}-{conflict.partition}: {claims}; {won} counted")
    if len(found.conflicts) > 10:
        out.print(f"claimed by several: {len(found.conflicts) - 10} more partitions")
    show_findings(out, found.findings)


def _lag(lag: int | None, uncommitted: int, partitions: int) -> str:
    """A dash where there is no commit to count from, as Kafka's own tools have it."""
    return "-" if lag is None and 0 < uncommitted == partitions else number(lag)


def _topic_lag(topic: DescribedTopic) -> str:
    known = [lag for lag, commit in zip(topic.lags, topic.committed, strict=True) if (lag, commit) != (None, None)]
    total = sum(lag for lag in known if lag is not None)
    return _lag(None if None in known or not known else total, topic.committed.count(None), topic.partitions)


def _map(out: Console, found: DescribedGroup, names: dict[str, str]) -> object:
    rows = {member.id: row for row, member in enumerate(found.members)}
    shown = [names[member.id] for member in found.members]
    if sum(topic.partitions for topic in found.topics) <= MOST_PARTITIONS:
        cells = {
            topic.name: [
                (None if owner is None else rows[owner], NO_COMMIT if (lag, commit) == (None, None) else lag)
                for owner, lag, commit in zip(topic.owners, topic.lags, topic.committed, strict=True)
            ]
            for topic in found.topics
        }
        return ownership_map(shown, cells, width=out.width)
    counts = {
        (rows[member.id], column): len(member.partitions.get(topic.name, ()))
        for member in found.members
        for column, topic in enumerate(found.topics)
    }
    return count_map(shown, [topic.name for topic in found.topics], counts, width=out.width)


def show_record(out: Console, size: int | None, limit: int, told_limit: bool) -> None:
    """How large the group's record is, and what the broker allows."""
    allowed = f"{limit:,} bytes are allowed" + ("" if told_limit else " by default; this cluster did not tell")
    if size is None:
        out.print(f"record of the group: not known; {allowed}")
    else:
        out.print(f"record of the group: about {size:,} bytes, {100 * size / max(limit, 1):.1f} %; {allowed}")
