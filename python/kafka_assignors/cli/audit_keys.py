"""`kafka-assignors audit-keys`: do the producers of topics put keys into the same partitions?"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafka_assignors.cli import options  # noqa: TC001 (typer reads the annotations)
from kafka_assignors.cli.output import TextOrJson, console, exit_on_error, print_json, show
from kafka_assignors.clients.topic_keys import read_topic_keys
from kafka_assignors.errors import OptionError
from kafka_assignors.flags import deprecated
from kafka_assignors.key_hash import checked_count
from kafka_assignors.net.command_line import BOOTSTRAP_VARIABLE, LIBRDKAFKA_SETTINGS, OF_OTHERS
from kafka_assignors.net.oauth import with_token
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
from kafka_assignors.properties import settings_given
from kafka_assignors.report.terminal import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

DISAGREE = 1

_HASHES = ", ".join(PRODUCERS)
_TOPIC = re.compile(r"(?P<name>[^=:]+)=(?P<count>\d{1,10})(?::(?P<hash>\w+))?")
_LIVE = re.compile(r"[A-Za-z0-9._-]{1,249}")

LibrdkafkaSettings = Annotated[
    list[str] | None,
    typer.Option(*LIBRDKAFKA_SETTINGS.names, help=LIBRDKAFKA_SETTINGS.help, metavar=LIBRDKAFKA_SETTINGS.metavar),
]


def audit_keys(
    keys: Annotated[str | None, typer.Argument(help="A file of keys; - is standard input.")] = None,
    input_format: Annotated[
        str | None,
        typer.Option(
            "--input-format",
            help=f"The form of the file: {', '.join(FORMATS)}. By default as its name ends, or text.",
        ),
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column of a Parquet or CSV file.")] = None,
    partition_count: Annotated[
        list[int] | None,
        typer.Option("--partition-count", help="A partition count to audit the keys for. Repeatable.", metavar="N"),
    ] = None,
    old_partitions: Annotated[list[int] | None, typer.Option("--partitions", hidden=True)] = None,
    as_topic: Annotated[
        list[str] | None,
        typer.Option(
            "--as-topic",
            help="Audit the keys as those of a topic with so many partitions, whose producers use a hash: one of "
            f"{_HASHES}; without a hash, any of them. Repeatable.",
            metavar="NAME=PARTITIONS[:HASH]",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="A topic of the live cluster, whose keys are read. Repeatable.", metavar="NAME"),
    ] = None,
    bootstrap: options.BootstrapServer = None,
    settings: LibrdkafkaSettings = None,
    config: options.ConfigFile = None,
    max_records: Annotated[int, typer.Option(min=1, help="Read no more records than that, of each topic.")] = 100_000,
    timeout: Annotated[float, typer.Option(help="Read a topic no longer than so many seconds.")] = 30.0,
    examples: Annotated[int, typer.Option(min=0, help="How many keys to name for each disagreement.")] = 3,
    form: Annotated[TextOrJson, typer.Option("--format", help="Text for people, or JSON.")] = TextOrJson.TEXT,
    wide: options.Wide = False,
) -> None:
    """Check whether the producers of topics put keys into the same partitions.

    Java hashes keys with murmur2, librdkafka by default with CRC-32, others with FNV-1a. Topics join on their keys only
    if they have the same number of partitions and were written with the same hash.

    With a file of keys: where would the hashes disagree, for each partition count? With a live cluster: which hash was
    each topic in fact written with? With a live cluster and partition counts, the topics' keys are taken for those of a
    file.

    \b
    kafka-assignors audit-keys users.txt --partition-count 12 --partition-count 48
    kafka-assignors audit-keys users.txt --as-topic orders=12:murmur2 --as-topic payments=12:crc32
    kafka-assignors audit-keys --bootstrap-server localhost:9092 --topic orders --topic payments

    Exit status: 0 if all topics join (of one partition count: if all hashes agree; of one live topic: if one hash
    explains it), 1 if not, 2 if the input is bad.
    """
    with exit_on_error():
        counts = [*(partition_count or ()), *(old_partitions or ())]
        if old_partitions:
            deprecated("--partitions", "--partition-count")
        live = [each for each in topic or () if "=" not in each]
        described = [*(as_topic or ()), *(each for each in topic or () if "=" in each)]
        if len(live) < len(topic or ()):
            deprecated("--topic NAME=PARTITIONS", "--as-topic NAME=PARTITIONS")
        if bootstrap is None and settings is None and config is None and not _of_environment(keys):
            if keys is not None and live:
                raise OptionError(
                    f"--topic {live[0]!r} is a topic of a live cluster, and the keys are in a file; give --as-topic "
                    "NAME=PARTITIONS, or --bootstrap-server without a file"
                )
            found = _of_file(keys, input_format, column, _uses(counts, described), max_records, examples)
        else:
            if keys is not None or input_format or column:
                raise OptionError(
                    "--bootstrap-server, -X and --config are for a live cluster, whose topics have the keys; give no "
                    "file of keys as well"
                )
            connection = _connection(bootstrap, settings, config)
            uses = _uses(counts, described)
            found = _of_topics([_live(connection, name, max_records, timeout) for name in live], uses, examples)
        if form is TextOrJson.JSON:
            schema = "audit-keys" if isinstance(found, KeyAudit) else "audit-topics"
            print_json(schema, found, agree=found.agree)
        elif isinstance(found, KeyAudit):
            _show_keys(console(wide), found)
        else:
            _show_placements(console(wide), found)
    if not found.agree:
        raise typer.Exit(DISAGREE)


def _of_environment(keys: str | None) -> bool:
    """Whether the environment names a cluster, and no file of keys is given instead of it."""
    return keys is None and bool(os.environ.get(BOOTSTRAP_VARIABLE))


def _of_file(
    keys: str | None,
    form: str | None,
    column: str | None,
    uses: list[TopicUse],
    most: int,
    examples: int,
) -> KeyAudit | PlacementAudit:
    if keys is None:
        raise OptionError("there are no keys; give a file of them, or --bootstrap-server and topics to read")
    if not uses:
        raise OptionError("there is no partition count; give --partition-count or --as-topic NAME=PARTITIONS")
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
        raise OptionError("give either --partition-count or --as-topic NAME=PARTITIONS, not both")
    return [TopicUse("", checked_count(count)) for count in partitions] or [_use(each) for each in topics]


def _audit(keys: list[bytes | None], uses: list[TopicUse], examples: int) -> KeyAudit:
    found = audit(keys, uses, examples=examples)
    # Partition counts without topic names cannot join.
    return found if uses[0].topic else replace(found, joins=())


def _use(text: str) -> TopicUse:
    parts = _TOPIC.fullmatch(text)
    if parts is None:
        raise OptionError(f"--as-topic {text!r} is not NAME=PARTITIONS or NAME=PARTITIONS:HASH")
    return TopicUse(parts["name"], int(parts["count"]), parts["hash"])


def _connection(bootstrap: str | None, settings: Sequence[str] | None, config: str | None) -> dict[str, Any]:
    """The settings of librdkafka, which checks their names by itself."""
    given = [each for each in settings_given(config, settings) if each.single or each.name not in OF_OTHERS]
    found = {each.name: each.value for each in given}
    if bootstrap is not None:
        found["bootstrap.servers"] = bootstrap
    elif not found.get("bootstrap.servers"):
        found["bootstrap.servers"] = os.environ.get(BOOTSTRAP_VARIABLE, "")
    if not found["bootstrap.servers"]:
        raise OptionError("there is no broker; give --bootstrap-server HOST:PORT, or a file of keys")
    return with_token(found, oidc=False)


def _live(settings: dict[str, Any], name: str, most: int, timeout: float) -> tuple[str, int, list[Any]]:
    if _LIVE.fullmatch(name) is None:
        raise OptionError(f"--topic {name!r} is no topic's name")
    return name, *read_topic_keys(settings, name, most=most, timeout=timeout)


def _show_keys(out: Console, found: KeyAudit) -> None:
    out.print(
        f"{found.records} records: {found.keys} different keys, {found.empty} records with an empty key, "
        f"{found.null} without one"
    )
    for name, users in PRODUCERS.items():
        out.print(f"  {name}: {users}")
    rows = []
    for each in found.disagreements:
        named = "; ".join(
            f"{show(ex.key)}: {_spot(ex.partitions[0])}, {_spot(ex.partitions[1])}" for ex in each.examples
        )
        differ = f"{each.differ} of {each.keys} ({100 * each.share:.1f} %)"
        rows.append([each.partitions, " / ".join(each.hashes), differ, named])
    headings = ["partitions", "hashes", "keys that differ", "for example"]
    out.print(table("Disagreements", headings, rows, left=headings, names=(), least=["for example"]))
    rows = []
    for spread in found.spreads:
        mean = f"{(found.records - found.null - spread.anywhere) / spread.partitions:.1f}"
        rows.append([spread.partitions, spread.hash, spread.fewest, mean, spread.most, spread.empty])
    headings = ["partitions", "hash", "fewest", "mean", "most", "empty partitions"]
    out.print(table("Records per partition", headings, rows, left=["hash"], names=(), least=["mean", "fewest"]))
    _show_joins(out, found)
    if not found.joins:
        out.print("The hashes agree on every key." if found.agree else "The hashes disagree.")


def _show_placements(out: Console, found: PlacementAudit) -> None:
    rows = []
    for each in found.placements:
        shares = [f"{count} ({100 * count / each.keyed:.1f} %)" for count in each.matches.values()]
        rows.append([each.topic, each.partitions, each.records, *shares, each.text])
    headings = ["topic", "partitions", "records", *PRODUCERS, "so"]
    out.print(table("Keyed records per hash", headings, rows, left=["so"], least=["records", "partitions"]))
    _show_joins(out, found)


def _show_joins(out: Console, found: KeyAudit | PlacementAudit) -> None:
    for join in found.joins:
        verdict = "join" if join.joins else "do NOT join"
        out.print(f"{join.topics[0]} and {join.topics[1]} {verdict}: {join.reason}")


def _spot(partition: int) -> str:
    return "anywhere" if partition == ANYWHERE else str(partition)
