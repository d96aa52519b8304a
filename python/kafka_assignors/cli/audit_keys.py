"""`kafka-assignors audit-keys`: do the producers of topics put keys into the same partitions?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from kafka_assignors.cli.oauth import with_token
from kafka_assignors.cli.output import Output, console, plain, print_json, show, told
from kafka_assignors.clients.topic_keys import read_topic_keys
from kafka_assignors.errors import OptionError
from kafka_assignors.key_hash import checked_count
from kafka_assignors.planner.key_files import FORMATS, read_keys
from kafka_assignors.planner.keys import (
    ANYWHERE,
    PRODUCERS,
    KeyAudit,
    PlacementAudit,
    TopicUse,
    audit,
    compare,
)
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

DISAGREE = 1

_HASHES = ", ".join(PRODUCERS)
_TOPIC = re.compile(r"(?P<name>[^=:]+)=(?P<count>\d{1,10})(?::(?P<hash>\w+))?")
_LIVE = re.compile(r"[A-Za-z0-9._-]{1,249}")


def audit_keys(
    keys: Annotated[str | None, typer.Argument(help="A file of keys; - is standard input.")] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help=f"One of {', '.join(FORMATS)}. By default as the file's name ends, or text."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column of a Parquet or CSV file.")] = None,
    partitions: Annotated[list[int] | None, typer.Option(help="A partition count to audit the keys for.")] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            help=f"NAME=PARTITIONS or NAME=PARTITIONS:HASH, HASH one of {_HASHES} (any of them if left out); "
            "with --bootstrap also NAME, a live topic."
        ),
    ] = None,
    bootstrap: Annotated[str | None, typer.Option(help="HOST:PORT of a cluster to read the topics from.")] = None,
    config: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, a setting of librdkafka, such as security.protocol=SSL.")
    ] = None,
    max_records: Annotated[int, typer.Option(min=1, help="Read no more records than that, of each topic.")] = 100_000,
    timeout: Annotated[float, typer.Option(help="Read a topic no longer than so many seconds.")] = 30.0,
    examples: Annotated[int, typer.Option(min=0, help="How many keys to name for each disagreement.")] = 3,
    output: Annotated[Output, typer.Option(help="Text for people, or JSON.")] = Output.TEXT,
) -> None:
    """Tell whether the producers of topics put keys into the same partitions.

    Java hashes keys with murmur2, librdkafka by default with CRC-32, others with FNV-1a. Topics join on their keys only
    if they have the same number of partitions and were written with the same hash.

    With a file of keys: where would the hashes disagree, for each partition count? With --bootstrap: which hash was
    each topic in fact written with? With both --bootstrap and partition counts, the topics' keys are taken for those
    of a file.

    Exit status: 0 if all topics join (of one partition count: if all hashes agree; of one live topic: if one hash
    explains it), 1 if not, 2 if the input is bad.
    """
    with told():
        if bootstrap is None:
            if config:
                raise OptionError("--config is for a live cluster; give --bootstrap as well, or leave it out")
            report = _of_file(keys, form, column, partitions or [], topic or [], max_records, examples)
        else:
            if keys is not None or form or column:
                raise OptionError("--bootstrap reads the keys from the topics; give no file of them as well")
            settings: dict[str, Any] = with_token(
                {"bootstrap.servers": bootstrap, **_settings(config or [])}, oidc=False
            )
            names = [each for each in topic or [] if "=" not in each]
            uses = _uses(partitions or [], [each for each in topic or [] if "=" in each])
            report = _of_topics([_live(settings, name, max_records, timeout) for name in names], uses, examples)
        if output is Output.JSON:
            print_json({"agree": report.agree, **plain(report)})
        elif isinstance(report, KeyAudit):
            _show_keys(console(), report)
        else:
            _show_placements(console(), report)
    if not report.agree:
        raise typer.Exit(DISAGREE)


def _of_file(
    keys: str | None,
    form: str | None,
    column: str | None,
    partitions: Sequence[int],
    topics: Sequence[str],
    most: int,
    examples: int,
) -> KeyAudit | PlacementAudit:
    if keys is None:
        raise OptionError("there are no keys; give a file of them, or --bootstrap and topics to read")
    uses = _uses(partitions, topics)
    if not uses:
        raise OptionError("there is no partition count; give --partitions or --topic NAME=PARTITIONS")
    return _audit(read_keys(keys, form=form, column=column, most=most), uses, examples)


def _of_topics(
    topics: list[tuple[str, int, list[tuple[bytes | None, int]]]], uses: list[TopicUse], examples: int
) -> KeyAudit | PlacementAudit:
    if not topics:
        raise OptionError("there is no topic to read; give at least one --topic NAME")
    if not uses:
        return compare(topics)
    return _audit([key for _, _, records in topics for key, _ in records], uses, examples)


def _uses(partitions: Sequence[int], topics: Sequence[str]) -> list[TopicUse]:
    if partitions and topics:
        raise OptionError("give either --partitions or --topic NAME=PARTITIONS, not both")
    return [TopicUse("", checked_count(count)) for count in partitions] or [_use(each) for each in topics]


def _audit(keys: list[bytes | None], uses: list[TopicUse], examples: int) -> KeyAudit:
    found = audit(keys, uses, examples=examples)
    # Mere counts name no topics that could join.
    return found if uses[0].topic else replace(found, joins=())


def _use(text: str) -> TopicUse:
    parts = _TOPIC.fullmatch(text)
    if parts is None:
        raise OptionError(f"--topic {text!r} is not NAME=PARTITIONS or NAME=PARTITIONS:HASH")
    return TopicUse(parts["name"], int(parts["count"]), parts["hash"])


def _settings(config: Sequence[str]) -> dict[str, str]:
    settings = {}
    for each in config:
        name, equals, value = each.partition("=")
        if not equals:
            # The value may be a secret, so the text is not repeated.
            raise OptionError("a --config is not NAME=VALUE")
        settings[name.strip()] = value
    return settings


def _live(settings: dict[str, Any], name: str, most: int, timeout: float) -> tuple[str, int, list[Any]]:
    if _LIVE.fullmatch(name) is None:
        raise OptionError(f"--topic {name!r} is no topic's name; with --bootstrap give only that")
    return name, *read_topic_keys(settings, name, most=most, timeout=timeout)


def _show_keys(out: Console, report: KeyAudit) -> None:
    out.print(
        f"{report.records} records: {report.keys} different keys, {report.empty} records with an empty key, "
        f"{report.null} without one"
    )
    for name, users in PRODUCERS.items():
        out.print(f"  {name}: {users}")
    table = Table(
        "partitions", "hashes", "keys that differ", "for example", title="Disagreements", title_justify="left"
    )
    for each in report.disagreements:
        named = "\n".join(
            f"{show(ex.key)}: {_spot(ex.partitions[0])}, {_spot(ex.partitions[1])}" for ex in each.examples
        )
        differ = f"{each.differ} of {each.keys} ({100 * each.share:.1f} %)"
        table.add_row(str(each.partitions), " / ".join(each.hashes), differ, named)
    out.print(table)
    table = Table(title="Records per partition", title_justify="left")
    for heading in ("partitions", "hash", "fewest", "mean", "most", "empty partitions"):
        table.add_column(heading, justify="left" if heading == "hash" else "right")
    for spread in report.spreads:
        mean = f"{(report.records - report.null - spread.anywhere) / spread.partitions:.1f}"
        figures = str(spread.fewest), mean, str(spread.most), str(spread.empty)
        table.add_row(str(spread.partitions), spread.hash, *figures)
    out.print(table)
    _show_joins(out, report)
    if not report.joins:
        out.print("The hashes agree on every key." if report.agree else "The hashes disagree.")


def _show_placements(out: Console, report: PlacementAudit) -> None:
    table = Table(
        "topic", "partitions", "records", *PRODUCERS, "so", title="Keyed records per hash", title_justify="left"
    )
    for each in report.placements:
        shares = [f"{count} ({100 * count / each.keyed:.1f} %)" for count in each.matches.values()]
        table.add_row(printable(each.topic), str(each.partitions), str(each.records), *shares, printable(each.text))
    out.print(table)
    _show_joins(out, report)


def _show_joins(out: Console, report: KeyAudit | PlacementAudit) -> None:
    for join in report.joins:
        verdict = "join" if join.joins else "do NOT join"
        out.print(f"{join.topics[0]} and {join.topics[1]} {verdict}: {join.reason}")


def _spot(partition: int) -> str:
    return "anywhere" if partition == ANYWHERE else str(partition)
