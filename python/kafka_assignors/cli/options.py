"""Options of several commands, and the group that they name: a live one, or one in a snapshot file."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from kafka_assignors.cluster import Snapshot, read_snapshot
from kafka_assignors.errors import OptionError
from kafka_assignors.net.command_line import BOOTSTRAP_SERVER, CONFIG_FILE, SETTINGS, connection_settings
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.rates import rates_between
from kafka_assignors.strategies import parse_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kafka_assignors.assignors import Assignor

__all__ = [
    "BootstrapServer",
    "ConfigFile",
    "Group",
    "Join",
    "Leave",
    "Partitions",
    "Rates",
    "Reset",
    "Settings",
    "SnapshotFile",
    "Strategies",
    "Subscribe",
    "Timeout",
    "Wide",
    "bars",
    "check_reset",
    "observed_group_of",
    "rates_of",
    "settings_of",
    "strategy_of",
]

BootstrapServer = Annotated[
    str | None,
    typer.Option(*BOOTSTRAP_SERVER.names, help=BOOTSTRAP_SERVER.help, metavar=BOOTSTRAP_SERVER.metavar),
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Show all columns of tables, in lines that may be longer than the terminal's.")
]
Group = Annotated[str | None, typer.Option("--group", help="The group. Of a file with one group it may be left out.")]
SnapshotFile = Annotated[
    str | None,
    typer.Option("--snapshot", help="A file that `snapshot` has written, instead of a live group.", metavar="FILE"),
]
Settings = Annotated[list[str] | None, typer.Option(*SETTINGS.names, help=SETTINGS.help, metavar=SETTINGS.metavar)]
ConfigFile = Annotated[str | None, typer.Option(*CONFIG_FILE.names, help=CONFIG_FILE.help, metavar=CONFIG_FILE.metavar)]
Timeout = Annotated[float, typer.Option("--timeout", help="How many seconds reading the cluster may take.")]
Reset = Annotated[
    str,
    typer.Option(
        "--reset",
        help="The consumers' auto.offset.reset: latest or earliest. The lag of partitions without a commit follows it.",
    ),
]
Rates = Annotated[
    str | None,
    typer.Option(
        "--rates",
        help="Show how many records a second are written to partitions: since a FILE that `snapshot` has written, or, "
        "of a live cluster, within so many SECONDS from now.",
        metavar="FILE|SECONDS",
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
        "--subscribe", help="The topics of a member, instead of those that it has. Repeatable.", metavar="MEMBER=TOPICS"
    ),
]

Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        help="A strategy as for `plan`. Repeatable; by default all, the lag-based one in two forms.",
        metavar="NAME[(OPTION=VALUE, …)]",
    ),
]

_RESETS = ("latest", "earliest")


def strategy_of(text: str) -> Assignor:
    """A strategy as text; the module of an own assignor may be in the current folder."""
    if ":" in text and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return parse_strategy(text)


def settings_of(bootstrap: str | None, settings: Sequence[str] | None, config: str | None) -> dict[str, Any]:
    """The settings of the connection, as `connection_settings` reads them; its errors also propose `--snapshot`."""
    return connection_settings(bootstrap, settings, config, instead=", or --snapshot FILE for a file")


def observed_group_of(
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
) -> ObservedGroup:
    """The group that the options name, live or from a file.

    Raises:
        KafkaAssignorsError: options that do not fit together, or a cluster or a file without this group.
    """
    check_reset(reset)
    if snapshot is not None:
        if bootstrap is not None or settings or config:
            raise OptionError("--snapshot is a file, the other options a live cluster; give only one of them")
        return ObservedGroup(Snapshot.load(snapshot), group)
    found = settings_of(bootstrap, settings, config)
    if group is None:
        raise OptionError("there is no group; give --group NAME (`snapshot --list` shows the groups of a cluster)")
    with bars() as progress:
        taken = read_snapshot(found, [group], topics=topics, clients=clients, timeout=timeout, progress=progress)
    return ObservedGroup(taken, group)


def rates_of(
    rates: str | None, observed: ObservedGroup, live: Callable[[], ObservedGroup] | None
) -> tuple[ObservedGroup, dict[str, list[float | None]] | None]:
    """The group and the rates of its partitions; with SECONDS, the group as it is after them.

    Args:
        rates: the option `--rates`.
        observed: the group.
        live: reads the group once more; None for a group in a file.

    Raises:
        KafkaAssignorsError: a file that is no older snapshot of this cluster, or SECONDS that cannot be used.
    """
    if rates is None:
        return observed, None
    seconds = _seconds(rates)
    if seconds is None:
        return observed, rates_between(Snapshot.load(rates), observed.snapshot)
    if live is None:
        raise OptionError(f"--rates {rates} is a number of seconds, and --snapshot a file; give an earlier file")
    time.sleep(seconds)
    again = live()
    return again, rates_between(observed.snapshot, again.snapshot)


def _seconds(text: str) -> float | None:
    """The seconds of `--rates`; None for a file.

    Raises:
        OptionError: a number that is not from 0.1 to 3,600.
    """
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not 0.1 <= seconds <= 3_600:
        raise OptionError(f"--rates is {text}; give 0.1 to 3,600 seconds, or a file")
    return seconds


def check_reset(reset: str) -> None:
    """Refuses a value of `--reset` that no consumer has.

    Raises:
        OptionError: it has another value.
    """
    if reset not in _RESETS:
        raise OptionError(f"--reset is {reset!r}; give one of {', '.join(_RESETS)}")


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], object]]:
    """Progress bars on standard error, one for each step; no bars unless standard error is a terminal.

    Yields a function of a step's name, the amount done, and the total.
    """
    err = Console(stderr=True)
    if not err.is_terminal:
        yield lambda _step, _done, _total: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Bars(*columns, console=err, transient=True) as shown:
        tasks: dict[str, Any] = {}

        def update(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = shown.add_task(step, total=total)
            shown.update(tasks[step], completed=done, total=total)

        yield update
