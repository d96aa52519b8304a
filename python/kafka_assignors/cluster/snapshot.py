"""The snapshot of a cluster at one moment, as a value that is kept in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_assignors.cluster.file import dumps, loads
from kafka_assignors.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from kafka_assignors.cluster.groups import GroupSnapshot, TopicSnapshot

__all__ = ["Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Some groups of a cluster, and their topics, at one moment.

    Attributes:
        cluster: the cluster's id; empty where it has none.
        taken_ms: when it was taken, in milliseconds since 1970.
        topics: by name. If a member subscribes to a topic that is not here, the topic did not exist, or the user could
            not see it.
        groups: by id.
        record_limit: the most bytes that a group's record may have on this cluster (`max.message.bytes` of
            `__consumer_offsets`); None where it could not be read.
    """

    cluster: str
    taken_ms: int
    topics: Mapping[str, TopicSnapshot] = field(default_factory=dict)
    groups: Mapping[str, GroupSnapshot] = field(default_factory=dict)
    record_limit: int | None = None

    def dumps(self) -> str:
        """The text of the file: JSON, version 1. The same value gives the same text."""
        return dumps(
            cluster=self.cluster,
            taken_ms=self.taken_ms,
            topics=self.topics,
            groups=self.groups,
            record_limit=self.record_limit,
        )

    @classmethod
    def loads(cls, text: str | bytes) -> Self:
        """Reads the text of a file.

        Raises:
            SnapshotError: it is no snapshot; the message has the field and a remedy. An unknown field is an error too.
        """
        return loads(text, cls)

    def save(self, path: str | Path) -> None:
        """Writes a file.

        Raises:
            SnapshotError: the file cannot be written.
        """
        try:
            Path(path).write_text(self.dumps(), encoding="utf-8")
        except OSError as error:
            raise SnapshotError(f"the snapshot cannot be written: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file.

        Raises:
            SnapshotError: the file cannot be read, or is no snapshot.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise SnapshotError(f"the snapshot cannot be read: {error}") from error
        try:
            return cls.loads(data)
        except SnapshotError as error:
            raise SnapshotError(f"{path}: {error}") from None
