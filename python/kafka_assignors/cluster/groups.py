"""Topics, groups and their members at one moment, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from kafka_assignors.errors import UserDataError
from kafka_assignors.group import Topic
from kafka_assignors.userdata import Assignment, Subscription

__all__ = [
    "ClassicMember",
    "ConsumerMember",
    "GroupMember",
    "GroupSnapshot",
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
        begin: the first offset of each partition, by number; None if it is not known.
        end: the offset that the next record of each partition gets, likewise.
        id: its id, 22 characters of base64; None if it is not known.
    """

    partitions: int
    racks: tuple[frozenset[str], ...] | None = None
    begin: tuple[int | None, ...] | None = None
    end: tuple[int | None, ...] | None = None
    id: str | None = None

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
        client_id: the client's name; None if the snapshot does not keep it.
        client_host: its host, likewise.
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
        """The topics that it subscribes to, sorted; none if its bytes cannot be read."""
        found = self._subscription()
        return () if found is None else tuple(found.topics)

    @property
    def rack(self) -> str | None:
        """Its rack."""
        found = self._subscription()
        return None if found is None else found.rack

    @property
    def owned(self) -> dict[str, tuple[int, ...]]:
        """Its assigned partitions, ascending; none if its bytes cannot be read."""
        if not self.assignment:
            return {}
        try:
            return {topic: tuple(numbers) for topic, numbers in Assignment.decode(self.assignment).partitions.items()}
        except UserDataError:
            return {}

    @property
    def generation(self) -> int | None:
        """The generation that a leader of this package wrote into the assignment; None without one."""
        try:
            generation = Assignment.decode(self.assignment).generation
        except UserDataError:
            return None
        # The leader may be another client, whose first four bytes have another meaning.
        return generation if generation >= 0 else None

    @property
    def faults(self) -> tuple[str, ...]:
        """The parts of its bytes that cannot be read, in words."""
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
        topics: the topics that it subscribes to, by name or by regular expression, sorted.
        topic_regex: the regular expression, if there is one.
        rack: its rack.
        epoch: its member epoch: that of the last assignment that it has reached.
        owned: its partitions now.
        target: its target assignment, topics and partitions in the order in which the broker lists them.
        classic: whether it uses the classic protocol, which the broker translates; None before Kafka 4.1, where brokers
            do not send it.
        client_id: the client's name; None if the snapshot does not keep it.
        client_host: its host, likewise.
        place: where the broker lists it among the members, from 0; None if it is not known.
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
    place: int | None = None

    kind: ClassVar[Literal["consumer"]] = "consumer"

    @property
    def generation(self) -> int | None:
        """Its epoch."""
        return self.epoch

    @property
    def faults(self) -> tuple[str, ...]:
        """None: the broker has read all its fields."""
        return ()


GroupMember: TypeAlias = ClassicMember | ConsumerMember


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group.

    Attributes:
        protocol: `"classic"`, where a member assigns, or `"consumer"`, where the broker does (KIP-848).
        state: Kafka's name of it, such as `Stable`.
        assignor: the strategy of the members, or the broker's; empty without one.
        protocol_type: `consumer` for consumers; empty for a group that never had members.
        epoch: of the group, if the broker assigns; None in the classic protocol: DescribeGroups returns no generation.
        members: of one protocol, in order of their ids.
        committed: topic to the committed offset of each partition by number, None without one.
        record_bytes: the size of the group's record on the broker; None if it is not known.
    """

    protocol: Literal["classic", "consumer"] = "classic"
    state: str = "Stable"
    assignor: str = ""
    protocol_type: str = "consumer"
    epoch: int | None = None
    members: tuple[GroupMember, ...] = ()
    committed: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    record_bytes: int | None = None
