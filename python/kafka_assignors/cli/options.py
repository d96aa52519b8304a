"""Options that several commands share, and where they lead: a group, live or from a file."""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from kafka_assignors.cli.oauth import NAMES, with_token
from kafka_assignors.cluster import Snapshot, read_snapshot
from kafka_assignors.errors import OptionError
from kafka_assignors.net.config import CONNECTION
from kafka_assignors.planner.standing import Standing
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "BootstrapServer",
    "ConfigFile",
    "Group",
    "Join",
    "Leave",
    "Partitions",
    "Reset",
    "Settings",
    "SnapshotFile",
    "Strategies",
    "Subscribe",
    "Timeout",
    "bars",
    "settings_of",
    "standing_of",
]

BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server", "--bootstrap", help="HOST:PORT of a broker, or several with commas.", metavar="HOST:PORT"
    ),
]
Group = Annotated[str | None, typer.Option("--group", help="The group. Of a file with one group it may be left out.")]
SnapshotFile = Annotated[
    str | None,
    typer.Option("--snapshot", help="A file that `snapshot` has written, instead of a live group.", metavar="FILE"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        help="A setting of the connection as confluent-kafka has it, such as security.protocol=SASL_SSL. Repeatable.",
        metavar="NAME=VALUE",
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", help="A file of such settings, one a line; -X goes before it.", metavar="FILE"),
]
Timeout = Annotated[float, typer.Option("--timeout", help="How many seconds reading the cluster may take.")]
Reset = Annotated[
    str,
    typer.Option(
        "--reset",
        help="The consumers' auto.offset.reset: latest or earliest. It counts for the lag of what has no commit.",
    ),
]
Join = Annotated[
    list[str] | None,
    typer.Option("--join", help="So many members join; with the topics, 2=orders,payments. Repeatable.", metavar="N"),
]
Leave = Annotated[
    list[str] | None,
    typer.Option(
        "--leave",
        help="Members that leave: by id, the beginning of one, or group.instance.id. Repeatable.",
        metavar="MEMBER",
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partitions", help="A topic's new number of partitions. Repeatable.", metavar="TOPIC=N"),
]
Subscribe = Annotated[
    list[str] | None,
    typer.Option(
        "--subscribe", help="What a member subscribes to instead of what it did. Repeatable.", metavar="MEMBER=TOPICS"
    ),
]

Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        help="A strategy as for `plan`. Repeatable; by default all, the lag-based one in two forms.",
        metavar="NAME[:OPTION=VALUE,…]",
    ),
]

_RESETS = ("latest", "earliest")
# Settings that a client's own file may have as well. They do not concern connections.
_OF_OTHERS = frozenset(
    (
        "acks",
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "batch.size",
        "client.rack",
        "compression.type",
        "debug",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "isolation.level",
        "key.deserializer",
        "key.serializer",
        "linger.ms",
        "log_level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "partition.assignment.strategy",
        "queue.buffering.max.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.ms",
        "session.timeout.ms",
        "statistics.interval.ms",
        "topic.metadata.refresh.interval.ms",
        "transactional.id",
        "value.deserializer",
        "value.serializer",
    )
)


def settings_of(bootstrap: str | None, settings: Sequence[str] | None, config: str | None) -> dict[str, Any]:
    """The settings of the connection, as `kafka_assignors.net` takes them.

    Raises:
        OptionError: there is no broker, a line is not NAME=VALUE, a name is no setting of a connection, or the file
            cannot be read. No value is repeated: it may be a secret.
    """
    found: dict[str, Any] = {}
    if config is not None:
        try:
            lines = Path(config).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise OptionError(f"--config {config!r} cannot be read: {error}") from error
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                name, equals, value = line.partition("=")
                if not equals or not name.strip():
                    raise OptionError(f"line {number} of {config!r} is not NAME=VALUE")
                if name.strip() not in _OF_OTHERS:
                    found[_checked(name.strip(), f"line {number} of {config!r}")] = value.strip()
    for number, setting in enumerate(settings or (), 1):
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"-X number {number} is not NAME=VALUE")
        found[_checked(name.strip(), "-X")] = value
    if bootstrap is not None:
        found["bootstrap.servers"] = bootstrap
    if not found.get("bootstrap.servers"):
        raise OptionError("there is no broker; give --bootstrap-server HOST:PORT, or --snapshot FILE for a file")
    return with_token(found)


def _checked(name: str, where: str) -> str:
    """Refuses a name that no connection reads: with a misspelt `security.protocol` it would not be encrypted."""
    if name in CONNECTION or name in NAMES:
        return name
    near = difflib.get_close_matches(name, sorted(CONNECTION | NAMES), 1)
    hint = f"did you mean {near[0]}?" if near else "docs/connections.md has those that there are"
    raise OptionError(f"{where} has '{printable(name)}', which is no setting of a connection; {hint}")


def standing_of(
    bootstrap: str | None,
    group: str | None,
    snapshot: str | None,
    settings: Sequence[str] | None,
    config: str | None,
    timeout: float,
    *,
    topics: Iterable[str] = (),
    reset: str = "latest",
    clients: bool = False,
) -> Standing:
    """The group that the options name, live or from a file.

    Raises:
        KafkaAssignorsError: options that do not fit together, or a cluster or a file that does not have it.
    """
    if reset not in _RESETS:
        raise OptionError(f"--reset is {reset!r}; give one of {', '.join(_RESETS)}")
    if snapshot is not None:
        if bootstrap is not None or settings or config:
            raise OptionError("--snapshot is a file, the other options a live cluster; give only one of them")
        return Standing(Snapshot.load(snapshot), group)
    found = settings_of(bootstrap, settings, config)
    if group is None:
        raise OptionError("there is no group; give --group NAME (`snapshot --list` shows the groups of a cluster)")
    with bars() as progress:
        taken = read_snapshot(found, [group], topics=topics, clients=clients, timeout=timeout, progress=progress)
    return Standing(taken, group)


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], object]]:
    """Progress bars on standard error, one for each thing that is being done; nothing where that is no terminal.

    Gives a function that takes what it is, how much of it is done, and how much there is.
    """
    err = Console(stderr=True)
    if not err.is_terminal:
        yield lambda _what, _done, _total: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Bars(*columns, console=err, transient=True) as shown:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=total)
            shown.update(tasks[what], completed=done, total=total)

        yield tell
