"""What autoscalers would do with one group, from readings of it or from the tables of a capture, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_assignors.autoscale import Offsets, Timing, member_counts, workload
from kafka_assignors.autoscale import replay as replayed
from kafka_assignors.errors import GroupError, MissingDependencyError, OptionError, SnapshotError
from kafka_assignors.strategies import strategy_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.autoscale import Policy, Replayed, Workload
    from kafka_assignors.cluster import Snapshot

__all__ = ["MEMBERSHIPS", "Autoscaled", "autoscale", "load_of_looks", "load_of_tables"]

MEMBERSHIPS = ("dynamic", "static")
"""Whether members have a `group.instance.id`."""


@dataclass(frozen=True, slots=True)
class Autoscaled:
    """One group with each policy and strategy.

    Attributes:
        group_id: the group.
        since_ms: the first moment, in milliseconds since 1970.
        until_ms: the last one.
        members: how many members it has at the first moment.
        partitions: how many it reads.
        records: how many records there are to read, those that wait at the first moment included.
        rate: how many records a second one member reads.
        deadline: within how many seconds a record has to be read.
        runs: one for each policy, strategy and membership.
        notes: a sentence for each fact that is not known, and for each part that was left out.
    """

    group_id: str
    since_ms: int
    until_ms: int
    members: int
    partitions: int
    records: int
    rate: float
    deadline: float
    runs: tuple[Replayed, ...]
    notes: tuple[str, ...] = ()


def autoscale(
    load: Workload,
    policies: Sequence[Policy],
    assignors: Sequence[Assignor],
    memberships: Sequence[str] = MEMBERSHIPS,
    timing: Timing | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Autoscaled:
    """Replays one group with each policy, strategy and membership.

    Args:
        load: the records that the group has to read.
        policies: the policies.
        assignors: the strategies.
        memberships: some of `MEMBERSHIPS`.
        timing: the durations; the defaults if None.
        progress: is called with the number of replays that are done, and of all.

    Raises:
        OptionError: a history that is too long, or a policy or strategy that is given twice.
    """
    times = timing or Timing()
    names = [policy.name for policy in policies], [strategy_text(each) for each in assignors]
    for what, each in zip(("policy", "strategy"), names, strict=True):
        twice = next((name for name in each if each.count(name) > 1), None)
        if twice is not None:
            raise OptionError(f"{what} {twice!r} is given twice; give each once, or policies names of their own")
    runs = []
    total = len(policies) * len(assignors) * len(memberships)
    for policy in policies:
        for assignor in assignors:
            for membership in memberships:
                runs.append(replayed(load, policy, assignor, static=membership == "static", timing=times))
                if progress is not None:
                    progress(len(runs), total)
    return Autoscaled(
        load.group_id,
        load.times[0],
        load.times[-1],
        load.members,
        len(load.partitions),
        load.records,
        load.rate,
        times.deadline,
        tuple(runs),
        load.notes,
    )


def load_of_looks(
    looks: Sequence[Snapshot], group_id: str, *, rate: float | None = None, reset: str = "latest"
) -> Workload:
    """The records that a group has to read, from snapshots of its cluster. Their order does not matter.

    A snapshot that lacks the group is left out, with a note. The topics are those of its members in the last snapshot,
    or those with a commit if it has none.

    Raises:
        GroupError: fewer than two snapshots have the group; or `rate` is None, and its commits do not advance.
        OptionError: the snapshots are of several clusters.
    """
    clusters = {snapshot.cluster for snapshot in looks}
    if len(clusters) > 1:
        names = ", ".join(map(repr, sorted(clusters)))
        raise OptionError(f"the readings are of the clusters {names}; give readings of one cluster")
    ordered = sorted(looks, key=lambda snapshot: snapshot.taken_ms)
    found = [snapshot for snapshot in ordered if group_id in snapshot.groups]
    if not found:
        raise OptionError(f"no reading has the group {group_id!r}; give readings of a cluster that has it")
    missing = len(ordered) - len(found)
    last = found[-1].groups[group_id]
    topics = {topic for member in last.members for topic in (*member.topics, *member.owned)} or set(last.committed)

    def offsets() -> Iterator[Offsets]:
        for snapshot in found:
            group = snapshot.groups[group_id]
            for name in sorted(topics & set(snapshot.topics)):
                topic = snapshot.topics[name]
                commits = group.committed.get(name, ())
                for number in range(topic.partitions):
                    yield Offsets(
                        snapshot.taken_ms,
                        name,
                        number,
                        None if topic.begin is None else topic.begin[number],
                        None if topic.end is None else topic.end[number],
                        commits[number] if number < len(commits) else None,
                    )

    members = [(snapshot.taken_ms, len(snapshot.groups[group_id].members)) for snapshot in found]
    load = workload(group_id, offsets(), rate=rate, members=members, reset=reset)
    if missing:
        notes = (*load.notes, f"{missing} of {len(ordered)} readings lack the group, and are left out")
        return replace(load, notes=notes)
    return load


def load_of_tables(
    folders: Sequence[str],
    group_id: str,
    *,
    cluster: str | None = None,
    rate: float | None = None,
    reset: str = "latest",
) -> Workload:
    """The records that a group has to read, from a capture's tables `offset_snapshots` and `membership_events`.

    Args:
        folders: where the tables are, a folder of Parquet files each. Without `membership_events` there is one member.
        group_id: the group.
        cluster: its cluster; needed if several clusters have a group of this id.
        rate: see `kafka_assignors.autoscale.workload`.
        reset: likewise.

    Raises:
        GroupError: the table lacks the group; or `rate` is None, and its commits do not advance.
        MissingDependencyError: pyarrow is not installed.
        OptionError: several clusters have the group.
        SnapshotError: a table is missing or cannot be read.
    """
    columns = ["cluster", "ts", "topic", "partition", "begin", "end", "committed"]
    rows = list(_rows(folders, "offset_snapshots", columns, group_id))
    if not rows:
        raise GroupError(f"the table offset_snapshots has no group {group_id!r}; `spark lag` makes it from a capture")
    clusters = sorted({row["cluster"] for row in rows})
    if cluster is None and len(clusters) > 1:
        raise OptionError(f"the clusters {', '.join(map(repr, clusters))} have a group {group_id!r}; give --cluster")
    wanted = cluster or clusters[0]
    offsets = [Offsets(*(row[name] for name in columns[1:])) for row in rows if row["cluster"] == wanted]
    events = _rows(folders, "membership_events", ["cluster", "ts", "seq", "kind", "member_id"], group_id, optional=True)
    counts = member_counts(
        (row["ts"], row["seq"], row["kind"], row["member_id"]) for row in events if row["cluster"] == wanted
    )
    return workload(group_id, offsets, rate=rate, members=counts, reset=reset)


def _rows(
    folders: Sequence[str], table: str, columns: Sequence[str], group_id: str, *, optional: bool = False
) -> Iterable[dict[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("reading Parquet needs pyarrow: pip install kafka-assignors[spark]") from error
    path = next((place for folder in folders if (place := Path(folder) / table).exists()), None)
    if path is None:
        if optional:
            return []
        named = ", ".join(folders)
        raise SnapshotError(f"none of {named} has the table {table}; give the folder of a capture's tables")
    try:
        found = pyarrow.parquet.read_table(path, columns=list(columns), filters=[("group_id", "=", group_id)])
    except (OSError, pyarrow.ArrowException) as error:
        raise SnapshotError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows
