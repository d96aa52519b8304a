"""`kafka-assignors decode`: bytes of the group protocol made readable."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cli.output import WARNINGS, Format, console, exit_on_error, print_csv, print_json
from kafka_assignors.errors import OptionError
from kafka_assignors.flags import deprecated
from kafka_assignors.planner.decode import FORMS, KINDS, Decoded, DecodedGroup, bytes_of, decode_group
from kafka_assignors.planner.decode import decode as decode_bytes
from kafka_assignors.planner.findings import ranges
from kafka_assignors.report.names import natural
from kafka_assignors.report.terminal import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console


def decode(
    text: Annotated[
        str | None, typer.Argument(help="The bytes, in hexadecimal or base64; - is standard input.", metavar="BYTES")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help=f"The kind of the bytes: {', '.join(KINDS)}; by default the first that fits them."),
    ] = None,
    input_format: Annotated[
        str, typer.Option("--input-format", help=f"The form of the bytes: {', '.join(FORMS)}.")
    ] = "auto",
    old_form: Annotated[str | None, typer.Option("--form", hidden=True)] = None,
    bootstrap: options.BootstrapServer = None,
    group: options.Group = None,
    snapshot: options.SnapshotFile = None,
    settings: options.Settings = None,
    config: options.ConfigFile = None,
    timeout: options.Timeout = 30.0,
    form: Annotated[
        Format, typer.Option("--format", help="Text for people, JSON, or CSV of the partitions.")
    ] = Format.TEXT,
    wide: options.Wide = False,
) -> None:
    """Decode a subscription, an assignment or user data; or those of a group's members.

    \b
    kafka-assignors decode 0000000100017400000002000000000000000200000005
    kafka-assignors decode --kind assignment AAMAAAABAAF0AAAAAQAAAAD/////
    kafka-assignors decode --bootstrap-server localhost:9092 --group billing

    Exit status: 0, 3 if bytes of a group cannot be read or its members' claims conflict, 2 for bad input or bytes
    of no known kind.
    """
    with exit_on_error():
        if text is None:
            observed = options.observed_group_of(bootstrap, group, snapshot, settings, config, timeout)
            found = decode_group(observed)
            _answer_group(found, form, wide)
            if found.conflicts or any(member.faults for member in found.members):
                raise typer.Exit(WARNINGS)
            return
        if bootstrap or group or snapshot or settings or config:
            raise OptionError("give bytes, or a group to read them from, not both")
        if old_form is not None:
            deprecated("--form", "--input-format")
            input_format = old_form
        data = bytes_of(sys.stdin.read() if text == "-" else text, input_format)
        decoded = decode_bytes(data, kind)
        if form is Format.JSON:
            print_json("decode", decoded)
        elif form is Format.CSV:
            rows = [(topic, number) for topic, numbers in (decoded.partitions or {}).items() for number in numbers]
            print_csv(("topic", "partition"), rows or [("", number) for number in decoded.numbers])
        else:
            _show(console(wide), decoded)


def _show(out: Console, decoded: Decoded, indent: str = "") -> None:
    out.print(f"{indent}{KINDS[decoded.kind]}")
    if decoded.version is not None:
        out.print(f"{indent}  version {decoded.version}")
    if decoded.topics:
        out.print(f"{indent}  topics: {', '.join(decoded.topics)}")
    if decoded.partitions is not None:
        out.print(f"{indent}  partitions: {_partitions(decoded.partitions)}")
    if decoded.numbers:
        out.print(f"{indent}  numbers: {ranges(decoded.numbers)}")
    if decoded.kind != "json":
        out.print(f"{indent}  generation: {'none' if decoded.generation is None else decoded.generation}")
    if decoded.rack is not None:
        out.print(f"{indent}  rack: {decoded.rack}")
    if decoded.other is not None:
        out.print(f"{indent}  {decoded.other}")
    if decoded.user_data is not None:
        out.print(f"{indent}  user data: {decoded.user_data.hex()}")
    if decoded.inner is not None:
        _show(out, decoded.inner, indent + "    ")
    if decoded.fault is not None:
        out.print(f"{indent}  not readable: {decoded.fault}")
    if decoded.also:
        out.print(f"{indent}  the same bytes could be: {', '.join(decoded.also)} (--kind)")


def _partitions(partitions: Mapping[str, Iterable[int]]) -> str:
    return "; ".join(f"{topic} {ranges(numbers)}" for topic, numbers in partitions.items()) or "none"


def _answer_group(found: DecodedGroup, form: Format, wide: bool) -> None:
    if form is Format.JSON:
        print_json("decode-group", found)
        return
    rows = [
        (member.id, what, topic, number)
        for member in found.members
        for what, partitions in (
            ("claimed", member.claim.partitions if member.claim else {}),
            ("assigned", (member.assignment.partitions or {}) if member.assignment else {}),
        )
        for topic, numbers in partitions.items()
        for number in numbers
    ]
    if form is Format.CSV:
        print_csv(("member", "what", "topic", "partition"), rows)
        return
    out = console(wide)
    out.print(f"group {found.group_id}, {found.strategy or 'no strategy'}")
    shown = []
    for member in sorted(found.members, key=lambda each: natural(each.name)):
        claim = member.claim
        generation = "" if claim is None or claim.generation is None else f" (generation {claim.generation})"
        shown.append(
            [
                member.name,
                ", ".join(member.subscription.topics) if member.subscription else "?",
                "" if claim is None else _partitions(claim.partitions) + generation,
                _partitions(member.assignment.partitions or {}) if member.assignment else "?",
                "; ".join(member.faults),
            ]
        )
    headings = ["member", "subscribes to", "claims", "has", "not readable"]
    out.print(table("Members", headings, shown, left=headings, lists=headings[1:4], least=["claims"]))
    for conflict in found.conflicts:
        who = ", ".join(f"{member} ({'?' if epoch is None else epoch})" for member, epoch in conflict.claims)
        counts = f"the claim of {conflict.winner}" if conflict.winner else "no claim"
        out.print(f"{conflict.topic}-{conflict.partition} is claimed by {who}: {counts} counts")
