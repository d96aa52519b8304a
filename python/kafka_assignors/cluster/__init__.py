"""Live groups, their topics and offsets at one moment: read from a cluster, kept in a file, turned into tables.

[`read_snapshot`][kafka_assignors.cluster.read_snapshot] reads a cluster and changes nothing there: it joins no group
and commits nothing. Its result is a value, a [`Snapshot`][kafka_assignors.cluster.Snapshot]. `dumps` and `loads` are
the file format, which the planner's commands and the replay read.

>>> text = Snapshot("c", 0, topics={"orders": TopicSnapshot(2)}).dumps()
>>> Snapshot.loads(text).topics["orders"].partitions
2
"""

from kafka_assignors.cluster.ages import Ages
from kafka_assignors.cluster.fleet import Look, Missing, read_fleet
from kafka_assignors.cluster.groups import (
    ClassicMember,
    ConsumerMember,
    GroupMember,
    GroupSnapshot,
    TopicSnapshot,
)
from kafka_assignors.cluster.live import ListedGroup, list_groups, read_snapshot
from kafka_assignors.cluster.new_protocol import NewProtocol, read_new_protocol
from kafka_assignors.cluster.record import record_bytes
from kafka_assignors.cluster.snapshot import Snapshot
from kafka_assignors.cluster.tables import replay_tables

__all__ = [
    "Ages",
    "ClassicMember",
    "ConsumerMember",
    "GroupMember",
    "GroupSnapshot",
    "ListedGroup",
    "Look",
    "Missing",
    "NewProtocol",
    "Snapshot",
    "TopicSnapshot",
    "list_groups",
    "read_fleet",
    "read_new_protocol",
    "read_snapshot",
    "record_bytes",
    "replay_tables",
]
