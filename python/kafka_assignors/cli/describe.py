"""`kafka-assignors describe`: a group as it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import (
    WARNINGS,
    Format,
    console,
    exit_on_error,
    print_csv,
    print_json,
    show_findings,
)
from kafka_assignors.planner.describe import DescribedGroup
from kafka_assignors.planner.describe import describe as describe_group
from kafka_assignors.planner.findings import ranges
from kafka_assignors.report.names import natural
from kafka_assignors.report.terminal import count_map, number, ownership_map, table
from kafka_assignors.report.terminal.maps import MOST_PARTITIONS, NO_COMMIT

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_assignors.planner.observed_group import ObservedGroup


def describe(
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    clients: Annotated[bool, typer.Option("--clients", help="Show client ids and hosts as well.")] = False,
    show_map: Annotated[bool, typer.Option("--map/--no-map", help="Draw the map of the assignments.")] = True,
    reset: options.Reset = "latest",
    timeout: options.Timeout = 30.0,
    rates: options.Rates = None,
    form: Annotated[
        Format, typer.Option("--format", help="Text for people, JSON, or CSV of the assignments.")
    ] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Show a group: its state, its strategy, the owners of partitions, lag, balance, and broken rules.

    Read-only: it joins no group and commits nothing.

    \b
    kafka-assignors describe --bootstrap-server localhost:9092 --group billing
    kafka-assignors describe --snapshot billing.json --format json
    kafka-assignors describe --bootstrap-server localhost:9092 --group billing --rates 0.5

    Exit status: 0 if all is well, 3 if a rule is not met (a member without a partition, one without an owner, claims
    that conflict: all are named), 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():

        def read() -> ObservedGroup:
            return options.observed_group_of(
                bootstrap, group, snapshot, settings, config, timeout, reset=reset, clients=clients
            )

        observed, known = options.rates_of(rates, read(), None if snapshot is not None else read)
        found = describe_group(observed, reset=reset, rates=known)
        if not clients:
            bare = (replace(member, client_id=None, client_host=None) for member in found.members)
            found = replace(found, members=tuple(bare))
        if form is Format.JSON:
            print_json("describe", found, warnings=len(found.warnings))
        elif form is Format.CSV:
            _print_csv(found)
        else:
            _show(console(wide), found, show_map, rated=known is not None)
    if found.warnings:
        raise typer.Exit(WARNINGS)


def _print_csv(found: DescribedGroup) -> None:
    print_csv(
        ("topic", "partition", "member", "lag", "committed", "rate"),
        (
            (topic.name, partition, owner, lag, committed, rate)
            for topic in found.topics
            for partition, (owner, lag, committed, rate) in enumerate(
                zip(topic.owners, topic.lags, topic.committed, topic.rates, strict=True)
            )
        ),
    )


def _show(out: Console, found: DescribedGroup, show_map: bool, *, rated: bool) -> None:
    taken = datetime.fromtimestamp(found.taken_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    who = "the broker assigns (KIP-848)" if found.protocol == "consumer" else "a member assigns"
    out.print(f"group {found.group_id}: {found.state}, {found.strategy or 'no strategy'}, {who}; as of {taken}")
    with_clients = any(member.client_id for member in found.members)
    columns = ["client", "host"] if with_clients else []
    lacking = ["no commit"] if found.uncommitted else []
    rate = ["records/s"] if rated else []
    # The map shows the owners; without a map the members' rows show their partitions.
    mapped = show_map and bool(found.members and found.topics)
    held = [] if mapped else ["has"]
    headings = ["member", "id", *columns, "rack", "topics", "partitions", "lag", *rate, *lacking, *held]
    found = replace(found, members=tuple(sorted(found.members, key=lambda member: natural(member.name))))
    rows = [
        [
            member.name,
            "" if member.id == member.name else member.id,
            *([member.client_id or "", member.client_host or ""] if with_clients else []),
            member.rack or "",
            len(member.topics),
            member.count,
            _lag(member.lag, member.uncommitted, member.count),
            *([per_second(member.rate)] if rate else []),
            *([member.uncommitted] if lacking else []),
            *(
                ["; ".join(f"{topic} {ranges(numbers)}" for topic, numbers in member.partitions.items())]
                if held
                else []
            ),
        ]
        for member in found.members
    ]
    texts = ("id", "client", "host", "rack", "has")
    first_out = ["topics", "host", "rack", "client", "no commit"]
    out.print(
        table(
            "Members",
            headings,
            rows,
            left=texts,
            lists=held,
            names=("member", *texts[:4]),
            least=first_out,
            extra=["id"],
        )
    )
    names = {member.id: member.name for member in found.members}
    topics = [
        [
            topic.name,
            topic.partitions,
            topic.subscribers,
            sum(owner is None for owner in topic.owners),
            _lag(topic.lag, len(topic.uncommitted), topic.partitions),
            *([per_second(None if None in topic.rates else sum(each or 0 for each in topic.rates))] if rate else []),
            *([topic.committed.count(None)] if lacking else []),
        ]
        for topic in found.topics
    ]
    headings = ["topic", "partitions", "subscribers", "without owner", "lag", *rate, *lacking]
    out.print(table("Topics", headings, topics, least=["subscribers", "no commit", "partitions"]))
    if mapped:
        out.print(_ownership(out, found, names))
    spread = f"{found.spread[0]} to {found.spread[1]} partitions a member, " if found.spread else ""
    least = "" if found.least_balance_score is None else f" (least possible {found.least_balance_score})"
    total = _lag(found.lag, found.uncommitted, sum(topic.partitions for topic in found.topics))
    out.print(f"spread: {spread}balance score {found.balance_score}{least}; lag {total}")
    if found.idle:
        out.print(f"members without a partition: {', '.join(names[member] for member in found.idle)}")
    if found.protocol == "consumer":
        out.print(f"records of the group: one for each member (KIP-848), of {found.record_limit:,} bytes at most")
    else:
        show_record(out, found.record_bytes, found.record_limit, found.record_limit_told)
    for conflict in found.conflicts[:10]:
        claims = ", ".join(
            f"{names.get(member, member)} ({'no generation' if generation is None else f'generation {generation}'})"
            for member, generation in conflict.claims
        )
        won = f"that of {names.get(conflict.winner, conflict.winner)}" if conflict.winner else "none of them"
        out.print(f"claimed by several: {conflict.topic}-{conflict.partition}: {claims}; {won} counted")
    if len(found.conflicts) > 10:
        out.print(f"claimed by several: {len(found.conflicts) - 10} more partitions")
    show_findings(out, found.findings)


def per_second(rate: float | None) -> str:
    """A rate for people.

    >>> per_second(None), per_second(0.25), per_second(1234.5)
    ('?', '0.25', '1,234')
    """
    if rate is None:
        return number(None)
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.3g}"


def _lag(lag: int | None, uncommitted: int, partitions: int) -> str:
    """A lag for people; a dash, as in Kafka's own tools, if no partition has a commit to count from."""
    return "-" if lag is None and 0 < uncommitted == partitions else number(lag)


def _ownership(out: Console, found: DescribedGroup, names: dict[str, str]) -> object:
    """The map by partition, or by topic where there are many partitions."""
    rows = {member.id: row for row, member in enumerate(found.members)}
    shown = [names[member.id] for member in found.members]
    if sum(topic.partitions for topic in found.topics) <= MOST_PARTITIONS:
        cells = {
            topic.name: [
                (None if owner is None else rows[owner], NO_COMMIT if number in topic.uncommitted else lag)
                for number, (owner, lag) in enumerate(zip(topic.owners, topic.lags, strict=True))
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


def show_record(out: Console, size: int | None, limit: int, of_cluster: bool) -> None:
    """Prints the size of the group's record, and the broker's limit."""
    allowed = f"{limit:,} bytes are allowed" + (
        "" if of_cluster else " by default; the limit of this cluster could not be read"
    )
    if size is None:
        out.print(f"record of the group: not known; {allowed}")
    else:
        out.print(f"record of the group: about {size:,} bytes, {100 * size / max(limit, 1):.1f} %; {allowed}")
