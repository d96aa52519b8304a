"""Live groups, their topics and offsets at one moment: read from a cluster, kept in a file, turned into tables.

[`read_snapshot`][kafka_assignors.cluster.read_snapshot] asks a cluster and changes nothing there: it joins no group and
commits nothing. [`Snapshot`][kafka_assignors.cluster.Snapshot] is what it found, a value; `dumps` and `loads` are its
one file format, which the planner's commands and the replay read alike.

>>> text = Snapshot("c", 0, topics={"orders": TopicSnapshot(2)}).dumps()
>>> Snapshot.loads(text).topics["orders"].partitions
2
"""

from kafka_assignors.cluster.live import ListedGroup, list_groups, read_snapshot
from kafka_assignors.cluster.record import record_bytes
from kafka_assignors.cluster.snapshot import (
    ClassicMember,
    ConsumerMember,
    GroupMember,
    GroupSnapshot,
    Snapshot,
    TopicSnapshot,
)
from kafka_assignors.cluster.tables import replay_tables

__all__ = [
    "ClassicMember",
    "ConsumerMember",
    "GroupMember",
    "GroupSnapshot",
    "ListedGroup",
    "Snapshot",
    "TopicSnapshot",
    "list_groups",
    "read_snapshot",
    "record_bytes",
    "replay_tables",
]
