"""`kafka-assignors snapshot`: a live group as a file."""

from __future__ import annotations

import json
import re
import sys
from typing import Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import console, exit_on_error
from kafka_assignors.cluster import list_groups, read_snapshot
from kafka_assignors.errors import OptionError
from kafka_assignors.printable import printable
from kafka_assignors.report.terminal import table


def snapshot(
    bootstrap: options.BootstrapServer = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="A group. Repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All consumer groups of the cluster.")] = False,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write; - is standard output.", metavar="FILE")
    ] = "-",
    listed: Annotated[bool, typer.Option("--list", help="Only list the groups of the cluster.")] = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="Keep client ids and hosts, which name people and machines.")
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="A topic to keep that no member subscribes to yet. Repeatable.", metavar="NAME"),
    ] = None,
    isolation: Annotated[
        str, typer.Option("--isolation-level", help="read_committed: lag ends at the first open transaction.")
    ] = "read_uncommitted",
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    timeout: options.Timeout = 30.0,
    wide: options.Wide = False,
) -> None:
    """Write groups, their topics and offsets to a file that the other commands and the Spark replay read.

    Nothing is changed: it joins no group and commits nothing. Dynamic members' ids begin with their client id.

    \b
    kafka-assignors snapshot --bootstrap-server localhost:9092 --group billing -o billing.json
    kafka-assignors snapshot --bootstrap-server localhost:9092 --list

    Exit status: 0, or 2 for bad input or a cluster that cannot be read.
    """
    with exit_on_error():
        found = options.settings_of(bootstrap, settings, config)
        if listed:
            rows = [
                [each.group_id, each.group_type, each.protocol_type, each.state]
                for each in list_groups(found, timeout=timeout)
            ]
            headings = ["group", "type", "protocol type", "state"]
            console(wide).print(table("Groups", headings, rows, left=headings, least=["protocol type", "type"]))
            return
        if bool(group) == every:
            raise OptionError("give --group NAME, as often as needed, or --all")
        with options.bars() as progress:
            taken = read_snapshot(
                found,
                None if every else group,
                topics=topic or (),
                clients=clients,
                isolation_level=isolation,
                timeout=timeout,
                progress=progress,
            )
        if output == "-":
            sys.stdout.write(_ascii(taken.dumps()))
            return
        taken.save(output)
        typer.echo(f"{printable(output)}: {len(taken.groups)} groups, {len(taken.topics)} topics", err=True)


def _ascii(document: str) -> str:
    """The same JSON in printable ASCII: other characters could steer a terminal, or be missing in it."""
    return re.sub(r"[^\n -~]", lambda found: json.dumps(found[0])[1:-1], document)
