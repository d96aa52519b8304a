"""Groups, topics and offsets of one moment, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from kafka_assignors.errors import SnapshotError, UserDataError
from kafka_assignors.group import Topic
from kafka_assignors.userdata import Assignment, Subscription

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "ClassicMember",
    "ConsumerMember",
    "GroupMember",
    "GroupSnapshot",
    "Snapshot",
    "TopicSnapshot",
]

Partitions: TypeAlias = Mapping[str, Sequence[int]]
"""Topic to partition numbers."""


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """A topic.

    Attributes:
        partitions: how many it has; they are numbered from 0.
        racks: for each partition, by number, the racks of its replicas; None where no broker has a rack.
        begin: the first offset of each partition, by number; None where it is not known, or for all of them.
        end: the offset that the next record of each partition gets, likewise.
    """

    partitions: int
    racks: tuple[frozenset[str], ...] | None = None
    begin: tuple[int | None, ...] | None = None
    end: tuple[int | None, ...] | None = None

    def topic(self) -> int | Topic:
        """As a `Group` takes it."""
        return self.partitions if self.racks is None else Topic(self.partitions, self.racks)


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a group of the classic protocol, whose leader assigns.

    Attributes:
        id: the member id. For a dynamic member it begins with its client id.
        instance_id: `group.instance.id`; None for a dynamic member.
        subscription: the ConsumerProtocolSubscription that it joined with; empty unless the group is Stable.
        assignment: the ConsumerProtocolAssignment that it got; empty unless the group is Stable.
        client_id: the client's name for itself; None where it was not asked for.
        client_host: where it connects from, likewise.
    """

    id: str
    instance_id: str | None = None
    subscription: bytes = b""
    assignment: bytes = b""
    client_id: str | None = None
    client_host: str | None = None

    kind: ClassVar[Literal["classic"]] = "classic"

    def _subscription(self) -> Subscription | None:
        try:
            return Subscription.decode(self.subscription) if self.subscription else None
        except UserDataError:
            return None

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it subscribes to, sorted; none where its bytes cannot be read."""
        found = self._subscription()
        return () if found is None else tuple(found.topics)

    @property
    def rack(self) -> str | None:
        """Where it runs."""
        found = self._subscription()
        return None if found is None else found.rack

    @property
    def owned(self) -> dict[str, tuple[int, ...]]:
        """What it has, ascending; nothing where its bytes cannot be read."""
        if not self.assignment:
            return {}
        try:
            return {topic: tuple(numbers) for topic, numbers in Assignment.decode(self.assignment).partitions.items()}
        except UserDataError:
            return {}

    @property
    def generation(self) -> int | None:
        """The generation that a leader of this package wrote into the assignment; None where there is none."""
        try:
            generation = Assignment.decode(self.assignment).generation
        except UserDataError:
            return None
        # Any leader may write four bytes there that mean something else.
        return generation if generation >= 0 else None

    @property
    def faults(self) -> tuple[str, ...]:
        """What of its bytes cannot be read, in words."""
        faults = []
        for what, data, kind in (
            ("subscription", self.subscription, Subscription),
            ("assignment", self.assignment, Assignment),
        ):
            try:
                if data:
                    kind.decode(data, strict=True)
            except UserDataError as error:
                faults.append(f"{what}: {error}")
        return tuple(faults)


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a group that the broker assigns (KIP-848).

    Attributes:
        id: the member id.
        instance_id: `group.instance.id`; None for a dynamic member.
        topics: the topics that it subscribes to, by name or by pattern, sorted.
        topic_regex: the pattern, if there is one.
        rack: where it runs.
        epoch: how far it has followed the group.
        owned: what it has now.
        target: what it is to have.
        classic: whether it speaks the classic protocol, which the broker translates; None where that is not told
            (before Kafka 4.1).
        client_id: the client's name for itself; None where it was not asked for.
        client_host: where it connects from, likewise.
    """

    id: str
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    topic_regex: str | None = None
    rack: str | None = None
    epoch: int = 0
    owned: Partitions = field(default_factory=dict)
    target: Partitions = field(default_factory=dict)
    classic: bool | None = None
    client_id: str | None = None
    client_host: str | None = None

    kind: ClassVar[Literal["consumer"]] = "consumer"

    @property
    def generation(self) -> int | None:
        """Its epoch."""
        return self.epoch

    @property
    def faults(self) -> tuple[str, ...]:
        """Nothing: the broker has read all of it."""
        return ()


GroupMember: TypeAlias = ClassicMember | ConsumerMember


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group.

    Attributes:
        protocol: `"classic"`, where a member assigns, or `"consumer"`, where the broker does (KIP-848).
        state: Kafka's name of it, such as `Stable`.
        assignor: the strategy that the members agreed on, or the broker's; empty where there is none.
        protocol_type: `consumer` for consumers; empty for a group that never had members.
        epoch: of the group, where the broker assigns; None for the classic protocol, which does not tell a generation.
        members: of one protocol, in order of their ids.
        committed: topic to the committed offset of each partition by number, None without one.
        record_bytes: how large the record of the group on the broker is, in bytes; None where that is not known.
    """

    protocol: Literal["classic", "consumer"] = "classic"
    state: str = "Stable"
    assignor: str = ""
    protocol_type: str = "consumer"
    epoch: int | None = None
    members: tuple[GroupMember, ...] = ()
    committed: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    record_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cluster said at one moment of some groups, and of the topics that they have to do with.

    Attributes:
        cluster: the cluster's id; empty where it has none.
        taken_ms: when it was taken, in milliseconds since 1970.
        topics: by name. A topic that a member names and that is not here did not exist, or could not be seen.
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
        from kafka_assignors.cluster.file import dumps

        return dumps(self)

    @classmethod
    def loads(cls, text: str | bytes) -> Self:
        """Reads the text of a file.

        Raises:
            SnapshotError: it is no snapshot; the message names the place and what to do. Nothing is guessed: an unknown
                field is an error too.
        """
        from kafka_assignors.cluster.file import loads

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
