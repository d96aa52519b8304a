"""Readings of one group at several moments: live ones, or snapshot files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_assignors.cli import options
from kafka_assignors.cluster import Snapshot, read_snapshot
from kafka_assignors.errors import ClusterError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Interval", "Rate", "readings_of"]

Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        min=0.1,
        max=3_600,
        help="The seconds from one reading of a live group to the next; 10 by default.",
    ),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", help="How many records a second one member reads; by default measured from the commits."),
]

_INTERVAL_S = 10.0


def readings_of(
    bootstrap: str | None,
    group: str | None,
    snapshot: str | None,
    since: Sequence[str],
    interval: float | None,
    settings: Sequence[str] | None,
    config: str | None,
    timeout: float,
    *,
    count: int = 2,
) -> tuple[list[Snapshot], str]:
    """The readings in the order of their time, and the group.

    Args:
        bootstrap: see `options`.
        group: see `options`.
        snapshot: the last reading, in a file; None reads a live group.
        since: earlier readings, in files.
        interval: the seconds from one live reading to the next.
        settings: see `options`.
        config: see `options`.
        timeout: the seconds that a reading may take.
        count: how many live readings; with files of earlier readings there is only one.

    Raises:
        KafkaAssignorsError: options that do not fit together, or a cluster or a file that cannot be read.
    """
    if snapshot is not None:
        if bootstrap is not None or settings or config or interval is not None:
            raise OptionError("--snapshot is a file, the other options a live cluster; give only one of them")
        found = [Snapshot.load(each) for each in (*since, snapshot)]
        if group is None:
            if len(found[-1].groups) != 1:
                raise OptionError(f"the snapshot has {len(found[-1].groups)} groups; say which with --group")
            (group,) = found[-1].groups
        if not since:
            raise OptionError("arrivals need two readings; give an earlier snapshot of the cluster with --since FILE")
        return sorted(found, key=lambda reading: reading.taken_ms), group
    connection = options.settings_of(bootstrap, settings, config)
    if group is None:
        raise OptionError("there is no group; give --group NAME (`snapshot --list` shows the groups of a cluster)")
    found = [Snapshot.load(each) for each in since]
    wanted = count if not since else 1
    with options.bars() as progress:
        for number in range(wanted):
            if number:
                time.sleep(_INTERVAL_S if interval is None else interval)
            try:
                found.append(read_snapshot(connection, [group], timeout=timeout))
            except ClusterError as error:
                if not number:
                    raise
                raise ClusterError(f"after {number} of {wanted} readings: {error}") from error
            progress("readings", number + 1, wanted)
    return sorted(found, key=lambda reading: reading.taken_ms), group
