"""Snapshots as the input tables of the replay (docs/spark.md), in plain rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.cluster.groups import GroupSnapshot
    from kafka_assignors.cluster.snapshot import Snapshot

__all__ = ["replay_tables"]

Row = dict[str, Any]


def replay_tables(snapshots: Iterable[Snapshot]) -> dict[str, list[Row]]:
    """The tables of the replay, from snapshots of one or several clusters.

    Each snapshot of a group is one step of its history: its rows have the time of the snapshot as `seq`, and from then
    on the members of the group are those of the rows. A group without members is one row with an empty member id.

    Args:
        snapshots: in any order; several clusters may be mixed.

    Returns:
        The tables `membership_events`, `topic_partitions`, `offset_snapshots` and `observed_assignments`, each a list
        of rows whose keys are the columns. A partition whose offsets are not known is not in `offset_snapshots`; a
        missing commit is None. `generation` is the number of the snapshot among those of its group, since
        DescribeGroups has no generation. O(partitions).
    """
    tables: dict[str, list[Row]] = {
        "membership_events": [],
        "topic_partitions": [],
        "offset_snapshots": [],
        "observed_assignments": [],
    }
    steps: dict[tuple[str, str], int] = {}
    for snapshot in sorted(snapshots, key=lambda each: each.taken_ms):
        head = {"cluster": snapshot.cluster, "ts": snapshot.taken_ms}
        tables["topic_partitions"] += [
            {**head, "topic": name, "partition_count": topic.partitions} for name, topic in snapshot.topics.items()
        ]
        for group_id, group in snapshot.groups.items():
            if group.protocol_type not in ("", "consumer"):
                continue
            step = steps[snapshot.cluster, group_id] = steps.get((snapshot.cluster, group_id), 0) + 1
            of_group = {**head, "group_id": group_id}
            tables["membership_events"] += _events(of_group, group, step)
            tables["offset_snapshots"] += _offsets(of_group, snapshot, group)
            tables["observed_assignments"] += [
                {
                    **of_group,
                    "generation": step,
                    "member_id": member.id,
                    "topic": topic,
                    "partitions": list(partitions),
                    "source": "classic" if member.kind == "classic" else "current",
                }
                for member in group.members
                for topic, partitions in member.owned.items()
            ]
    return tables


def _events(head: Row, group: GroupSnapshot, step: int) -> list[Row]:
    protocol = group.assignor or None
    common = {**head, "seq": head["ts"], "kind": "snapshot", "generation": step, "protocol": protocol}
    if not group.members:
        return [{**common, "member_id": "", "instance_id": None, "rack": None, "topics": []}]
    return [
        {
            **common,
            "member_id": member.id,
            "instance_id": member.instance_id,
            "rack": member.rack,
            "topics": list(member.topics),
        }
        for member in group.members
    ]


def _offsets(head: Row, snapshot: Snapshot, group: GroupSnapshot) -> list[Row]:
    rows = []
    wanted = {topic for member in group.members for topic in member.topics} | set(group.committed)
    for name in sorted(wanted & set(snapshot.topics)):
        topic = snapshot.topics[name]
        committed = group.committed.get(name, ())
        for number, (begin, end) in enumerate(zip(topic.begin or (), topic.end or (), strict=False)):
            if begin is None or end is None:
                continue
            commit = committed[number] if number < len(committed) else None
            rows.append({**head, "topic": name, "partition": number, "begin": begin, "end": end, "committed": commit})
    return rows
