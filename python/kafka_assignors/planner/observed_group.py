"""A group of a snapshot: its members with names for people, the owners of its partitions, and lags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kafka_assignors import _core
from kafka_assignors.cluster import ConsumerMember
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.lag import partition_lag
from kafka_assignors.printable import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.cluster import GroupMember, GroupSnapshot, Snapshot, TopicSnapshot

__all__ = ["MOST_PARTITIONS", "Finding", "ObservedGroup", "Partition", "check_size", "member_names"]

Partition = tuple[str, int]
"""Topic and partition number."""

MOST_PARTITIONS = 1_000_000
"""The most partitions of a group's topics. A record of 1 MB, the brokers' default, has room for a quarter of them."""

_UUID = re.compile(r"(?P<head>.*?)-?(?P<start>[0-9a-f]{8})-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """A warning or a note about a group or a plan.

    Attributes:
        rule: the name of its rule, such as `even-shares`; docs/planner.md lists them.
        text: the finding in a sentence.
        warning: whether the rule is not met; else the finding is a note.
    """

    rule: str
    text: str
    warning: bool = True


def member_names(members: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Names for people, by member id: the instance id, or the id with the first part of its UUID.

    >>> member_names([("app-0f3b2c1d-0000-4000-8000-000000000000", None), ("x", "billing-1")])
    {'app-0f3b2c1d-0000-4000-8000-000000000000': 'app-0f3b2c1d', 'x': 'billing-1'}
    """
    names: dict[str, str] = {}
    for member_id, instance_id in members:
        found = _UUID.fullmatch(member_id)
        short = member_id if found is None else "-".join(filter(None, (found["head"], found["start"])))
        names[member_id] = instance_id or short
    counts: dict[str, int] = {}
    for name in names.values():
        counts[name] = counts.get(name, 0) + 1
    return {member_id: name if counts[name] == 1 else member_id for member_id, name in names.items()}


class ObservedGroup:
    """One group of a snapshot, and facts derived from it.

    Args:
        snapshot: the snapshot.
        group_id: the group; None takes the only one of the snapshot.

    Raises:
        OptionError: the snapshot has no such group, or `group_id` is None and it has several.
    """

    def __init__(self, snapshot: Snapshot, group_id: str | None = None) -> None:
        if group_id is None:
            if len(snapshot.groups) != 1:
                known = listed(sorted(snapshot.groups)) or "none"
                raise OptionError(f"the snapshot has {len(snapshot.groups)} groups ({known}); say which with --group")
            (group_id,) = snapshot.groups
        if group_id not in snapshot.groups:
            known = listed(sorted(snapshot.groups)) or "none"
            raise OptionError(f"the snapshot has no group {group_id!r}; it has {known}")
        self.snapshot = snapshot
        self.group_id = group_id
        self.group: GroupSnapshot = snapshot.groups[group_id]
        self.members: tuple[GroupMember, ...] = self.group.members

    @property
    def by_broker(self) -> bool:
        """Whether it is a KIP-848 group: the broker assigns, and asks no strategy of a client."""
        return self.group.protocol == "consumer"

    @property
    def strategy_in_use(self) -> str | None:
        """The name of the strategy that its members use; None if the broker assigns, or no member ever joined."""
        return None if self.by_broker or not self.group.assignor else self.group.assignor

    @property
    def record_limit(self) -> int:
        """The largest record that the broker accepts, in bytes; Kafka's default if the snapshot does not have it."""
        limit = self.snapshot.record_limit
        return _core.DEFAULT_RECORD_LIMIT if limit is None else limit

    @cached_property
    def names(self) -> dict[str, str]:
        """Names for people, by member id."""
        return member_names((member.id, member.instance_id) for member in self.members)

    @cached_property
    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """The topics that each member subscribes to."""
        return {member.id: member.topics for member in self.members}

    @cached_property
    def owned(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """The assigned partitions of each member, also those that no longer exist."""
        return {
            member.id: {topic: tuple(numbers) for topic, numbers in member.owned.items()} for member in self.members
        }

    @cached_property
    def owners(self) -> dict[Partition, tuple[str, ...]]:
        """The owners of each existing partition with an owner. Several owners are a mistake of the assigning leader."""
        found: dict[Partition, list[str]] = {}
        for member_id, topics in self.owned.items():
            for topic, numbers in topics.items():
                count = self.topics[topic].partitions if topic in self.topics else 0
                for number in numbers:
                    if 0 <= number < count:
                        found.setdefault((topic, number), []).append(member_id)
        return {partition: tuple(members) for partition, members in found.items()}

    @cached_property
    def topics(self) -> dict[str, TopicSnapshot]:
        """The existing topics with a subscriber or an owner, by name; for a group without members those with commits.

        Raises:
            GroupError: they have more partitions than a group can have.
        """
        named = {topic for topics in self.subscriptions.values() for topic in topics}
        named |= {topic for topics in self.owned.values() for topic in topics}
        if not self.members:
            named |= set(self.group.committed)
        found = {name: self.snapshot.topics[name] for name in sorted(named) if name in self.snapshot.topics}
        check_size(self.group_id, found)
        return found

    def loads(self) -> dict[str, int]:
        """How many partitions each member has."""
        counts = dict.fromkeys(self.owned, 0)
        for members in self.owners.values():
            for member_id in members:
                counts[member_id] += 1
        return counts

    def lags(self, reset: str, topics: Iterable[str] | None = None) -> dict[str, list[int | None]]:
        """The lag of each partition by number; None if the snapshot does not have its offsets.

        Args:
            reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
            topics: the topics; None takes those of the group.
        """
        found: dict[str, list[int | None]] = {}
        for name in self.topics if topics is None else topics:
            topic = self.snapshot.topics[name]
            committed = self.group.committed.get(name, ())
            lags = found[name] = []
            for number in range(topic.partitions):
                begin = None if topic.begin is None else topic.begin[number]
                end = None if topic.end is None else topic.end[number]
                commit = committed[number] if number < len(committed) else None
                known = end is not None and (commit is not None or reset.lower() == "latest" or begin is not None)
                lags.append(partition_lag(begin, end, commit, reset) if known else None)
        return found

    def uncommitted(self, topics: Iterable[str] | None = None) -> dict[str, tuple[int, ...]]:
        """The partitions without a commit, by topic; a topic with all commits is left out.

        Args:
            topics: the topics; None takes those of the group.
        """
        found = {}
        for name in self.topics if topics is None else topics:
            committed = self.group.committed.get(name, ())
            count = self.snapshot.topics[name].partitions
            numbers = tuple(number for number in range(count) if number >= len(committed) or committed[number] is None)
            if numbers:
                found[name] = numbers
        return found

    def records(self, partitions: Mapping[str, Iterable[int]]) -> int | None:
        """How many records the partitions hold; None if the snapshot lacks an offset."""
        total = 0
        for name, numbers in partitions.items():
            topic = self.snapshot.topics[name]
            for number in numbers:
                begin = None if topic.begin is None else topic.begin[number]
                end = None if topic.end is None else topic.end[number]
                if begin is None or end is None:
                    return None
                total += max(0, end - begin)
        return total

    def find(self, text: str) -> str:
        """The member with this id, instance id, short name, client id, or beginning of an id.

        Raises:
            OptionError: no member fits, or several do.
        """
        named: Sequence[tuple[str, Mapping[str, str | None]]] = (
            ("id", {member.id: member.id for member in self.members}),
            ("instance id", {member.id: member.instance_id for member in self.members}),
            ("name", dict(self.names)),
            ("client id", {member.id: member.client_id for member in self.members}),
        )
        for _, of in named:
            found = [member_id for member_id, name in of.items() if name == text]
            if len(found) == 1:
                return found[0]
        found = [member.id for member in self.members if text and member.id.startswith(text)]
        if len(found) == 1:
            return found[0]
        if found:
            raise OptionError(f"{text!r} begins the ids of {len(found)} members ({listed(found, 8)}); give more of one")
        known = listed(self.names.values(), 8) or "no members"
        raise OptionError(f"group {self.group_id!r} has no member {text!r}; it has {known}")

    def check_plannable(self) -> None:
        """Refuses a group whose members' subscriptions are not known.

        Raises:
            GroupError: they are not known.
        """
        if self.group.protocol_type not in ("", "consumer"):
            raise GroupError(
                f"group {self.group_id!r} is of type {self.group.protocol_type!r}; only groups of consumers are planned"
            )
        if not self.by_broker and self.group.state not in ("Stable", "Empty"):
            raise GroupError(
                f"group {self.group_id!r} is in state {self.group.state}, in which brokers do not tell what members "
                "subscribe to; try again when it is Stable"
            )

    def notes(self) -> list[Finding]:
        """The notes that belong to every answer about the group."""
        found = []
        if self.by_broker:
            found.append(
                Finding(
                    "broker-assigned",
                    f"the broker assigns this group by its own assignor {self.group.assignor!r} (KIP-848): strategies "
                    "of clients are not asked, and plans made here are an observer's",
                    warning=False,
                )
            )
        for member in self.members:
            if isinstance(member, ConsumerMember) and member.topic_regex:
                found.append(
                    Finding(
                        "pattern",
                        f"{self.names[member.id]} subscribes to the pattern {member.topic_regex!r}, which the broker "
                        "resolves; it counts as the topics that match today",
                        warning=False,
                    )
                )
        return found


def check_size(group_id: str, topics: Mapping[str, TopicSnapshot]) -> None:
    """Refuses more partitions than a group can have: a few bytes of a file may claim any number.

    Raises:
        GroupError: there are more; the message names the largest topic.
    """
    count = sum(topic.partitions for topic in topics.values())
    if count > MOST_PARTITIONS:
        largest = max(topics, key=lambda name: topics[name].partitions)
        raise GroupError(
            f"the topics of group {group_id!r} have {count:,} partitions, {largest!r} alone "
            f"{topics[largest].partitions:,}; up to {MOST_PARTITIONS:,} are read, and no record of a group has "
            "room for as many"
        )
