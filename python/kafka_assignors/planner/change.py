"""A change of a group: members that join and leave, added partitions, other subscriptions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kafka_assignors.cluster import TopicSnapshot
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.group import Group, Member
from kafka_assignors.own import CustomAssignor
from kafka_assignors.planner.claims import WEIGHTED, data_of
from kafka_assignors.planner.observed_group import MOST_PARTITIONS, check_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.planner.observed_group import ObservedGroup, Partition

__all__ = ["Change", "Join", "Situation", "parse_change"]

# More members do not fit a group's record, which holds the id and the subscription of each.
_MOST_JOINS = 10_000
# All claims are of the same generation, so that its number does not matter.
_GENERATION = 1


@dataclass(frozen=True, slots=True)
class Join:
    """New members.

    Attributes:
        count: how many.
        topics: the topics of each; None: those that most members of the group subscribe to.
    """

    count: int
    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a group; the default of each part changes nothing.

    Attributes:
        join: new members.
        leave: members that leave, by any name that `ObservedGroup.find` accepts.
        partitions: topic to its new partition count.
        subscribe: member to its new topics, instead of its present ones.
    """

    join: tuple[Join, ...] = ()
    leave: tuple[str, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)
    subscribe: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the change names."""
        named = {topic for join in self.join for topic in join.topics or ()}
        named |= {topic for topics in self.subscribe.values() for topic in topics}
        return frozenset(named | set(self.partitions))


def parse_change(
    join: Iterable[str] = (),
    leave: Iterable[str] = (),
    partitions: Iterable[str] = (),
    subscribe: Iterable[str] = (),
) -> Change:
    """Reads the options of a change.

    Args:
        join: `2`, or `2=orders,payments` with the topics of the new members.
        leave: `c3`, or several with commas.
        partitions: `orders=48`.
        subscribe: `c1=orders,payments`.

    Raises:
        OptionError: a text of another form, or a topic or member given twice.

    >>> parse_change(join=["2"], partitions=["orders=48"])
    Change(join=(Join(count=2, topics=None),), leave=(), partitions={'orders': 48}, subscribe={})
    """
    counts: dict[str, int] = {}
    for text in partitions:
        topic, value = _pair("--partitions", text, "orders=48")
        _once("--partitions", topic, counts)
        counts[topic] = _number("--partitions", text, value, 1, MOST_PARTITIONS)
    subscriptions: dict[str, tuple[str, ...]] = {}
    for text in subscribe:
        member, value = _pair("--subscribe", text, "c1=orders,payments")
        _once("--subscribe", member, subscriptions)
        subscriptions[member] = _names(value)
    left = tuple(name for text in leave for name in _names(text))
    if len(set(left)) < len(left):
        raise OptionError(f"--leave names {Counter(left).most_common(1)[0][0]!r} twice; a member leaves once")
    joins = tuple(map(_join, join))
    joined = sum(each.count for each in joins)
    if joined > _MOST_JOINS:
        raise OptionError(f"--join adds {joined:,} members together; give up to {_MOST_JOINS:,}")
    return Change(joins, left, counts, subscriptions)


def _join(text: str) -> Join:
    count, equals, topics = text.partition("=")
    if equals and not _names(topics):
        raise OptionError(f"--join {text!r} names no topic; give --join 2 or --join 2=orders,payments")
    return Join(_number("--join", text, count, 1, _MOST_JOINS), _names(topics) if equals else None)


def _pair(option: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise OptionError(f"{option} is {text!r}; give it as {example}")
    return name.strip(), value.strip()


def _once(option: str, name: str, seen: Mapping[str, object]) -> None:
    if name in seen:
        raise OptionError(f"{option} names {name!r} twice; give it once")


def _number(option: str, text: str, value: str, least: int, most: int) -> int:
    if not (value.strip().isascii() and value.strip().isdigit() and len(value) <= 12):
        raise OptionError(f"{option} is {text!r}; {value!r} is not a number")
    number = int(value)
    if not least <= number <= most:
        raise OptionError(f"{option} is {text!r}; give a number from {least} to {most}")
    return number


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


class Situation:
    """A group before and after a change. A strategy plans the group after it; the plan is compared with the one before.

    Args:
        observed: the present group.
        change: the change; None changes nothing.

    Raises:
        GroupError: the subscriptions are not known, no member is left, or no group can have so many partitions.
        OptionError: a member or a topic that does not exist, or fewer partitions than the topic has.
    """

    def __init__(self, observed: ObservedGroup, change: Change | None = None) -> None:
        change = Change() if change is None else change
        observed.check_plannable()
        self.observed = observed
        self.change = change
        self.left = tuple(sorted(observed.find(name) for name in change.leave))
        if len(set(self.left)) < len(self.left):
            raise OptionError("--leave names one member in two ways; a member leaves once")
        self.known: dict[str, TopicSnapshot] = self._topics(change)
        staying = {
            member_id: topics for member_id, topics in observed.subscriptions.items() if member_id not in self.left
        }
        for name, topics in change.subscribe.items():
            member_id = observed.find(name)
            if member_id not in staying:
                raise OptionError(f"{name!r} cannot both leave and subscribe anew; give only one of them")
            staying[member_id] = self._checked(topics)
        self.joined = self._join(change.join, staying)
        self.subscriptions: dict[str, tuple[str, ...]] = {**staying, **self.joined}
        if not self.subscriptions:
            raise GroupError(f"group {observed.group_id!r} would have no member; give --join N for members to plan for")
        check_size(observed.group_id, self.topics)
        self.names: dict[str, str] = {
            **observed.names,
            **{member_id: member_id for member_id in self.joined},
        }

    @property
    def before(self) -> Mapping[Partition, tuple[str, ...]]:
        """The present owners of each partition."""
        return self.observed.owners

    @cached_property
    def topics(self) -> dict[str, TopicSnapshot]:
        """The topics with a subscriber after the change, or with an owner before it."""
        named = {topic for topics in self.subscriptions.values() for topic in topics}
        named |= {topic for topic, _ in self.before}
        return {name: self.known[name] for name in sorted(named) if name in self.known}

    @cached_property
    def missing(self) -> dict[str, list[str]]:
        """Topics that do not exist, with their subscribers."""
        found: dict[str, list[str]] = {}
        for member_id, topics in self.subscriptions.items():
            for topic in topics:
                if topic not in self.known:
                    found.setdefault(topic, []).append(member_id)
        return dict(sorted(found.items()))

    @cached_property
    def group(self) -> Group:
        """The input of a strategy: every member claims its present partitions."""
        members = []
        by_id = {member.id: member for member in self.observed.members}
        for member_id, topics in self.subscriptions.items():
            member = by_id.get(member_id)
            owned = self.observed.owned.get(member_id, {})
            members.append(
                Member(
                    member_id,
                    topics,
                    owned=owned or None,
                    generation=_GENERATION if owned else None,
                    instance_id=None if member is None else member.instance_id,
                    rack=None if member is None else member.rack,
                )
            )
        return Group({name: topic.topic() for name, topic in self.topics.items()}, members)

    def group_for(self, assignor: Assignor) -> Group:
        """As `group`, with the `data` of each member for this strategy.

        If the group runs the strategy, the members have sent their data in JoinGroup. A member without such data, such
        as one that joins, gets the data of the given strategy: what its `member_data` returns, or its capacity.
        """
        if not isinstance(assignor, CustomAssignor):
            return self.group
        in_use, wanted = self.observed.group.assignor, assignor.name
        said: dict[str, bytes] = {}
        if in_use == wanted or {in_use, wanted} <= set(WEIGHTED):
            found = {member.id: data_of(member, in_use) for member in self.observed.members}
            said = {member: data for member, data in found.items() if data is not None}
        own = assignor._data_of_member()
        members = [replace(member, data=said.get(member.id, own)) for member in self.group.members]
        return Group(self.group.topics, members)

    def lags(self, reset: str) -> dict[str, list[int | None]]:
        """The lags of the topics; an added partition has lag 0."""
        old = self.observed.lags(reset, [name for name in self.topics if name in self.observed.snapshot.topics])
        return {
            name: old.get(name, []) + [0] * (topic.partitions - len(old.get(name, [])))
            for name, topic in self.topics.items()
        }

    def texts(self) -> list[str]:
        """The change in words, a line for each part."""
        lines = []
        for join in self.change.join:
            topics = f" subscribed to {', '.join(join.topics)}" if join.topics else ""
            lines.append(f"{join.count} {'member joins' if join.count == 1 else 'members join'}{topics}")
        lines += [f"{self.names[member_id]} leaves" for member_id in self.left]
        for topic, count in self.change.partitions.items():
            before = self.observed.snapshot.topics.get(topic)
            was = f", up from {before.partitions}" if before else ", as a new topic"
            lines.append(f"{topic} has {count} partitions{was}")
        for name, wanted in self.change.subscribe.items():
            lines.append(f"{self.names[self.observed.find(name)]} subscribes to {', '.join(wanted) or 'nothing'}")
        return lines

    def _topics(self, change: Change) -> dict[str, TopicSnapshot]:
        known = dict(self.observed.snapshot.topics)
        for name, count in change.partitions.items():
            topic = known.get(name, TopicSnapshot(0))
            if count < topic.partitions:
                raise OptionError(
                    f"--partitions {name}={count}: it has {topic.partitions}, and Kafka takes no partitions away"
                )
            added = count - topic.partitions
            known[name] = TopicSnapshot(
                count,
                None if topic.racks is None else topic.racks + (frozenset(),) * added,
                None if topic.begin is None else topic.begin + (0,) * added,
                None if topic.end is None else topic.end + (0,) * added,
            )
        return known

    def _checked(self, topics: Sequence[str]) -> tuple[str, ...]:
        for topic in topics:
            if topic not in self.known:
                raise OptionError(
                    f"topic {topic!r} is not known; give its number of partitions as well, as --partitions {topic}=12"
                )
        return tuple(sorted(set(topics)))

    def _join(self, joins: Iterable[Join], staying: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        joined: dict[str, tuple[str, ...]] = {}
        taken = set(self.observed.subscriptions)
        number = 0
        for join in joins:
            topics = self._usual(staying) if join.topics is None else self._checked(join.topics)
            for _ in range(join.count):
                number += 1
                while f"new-{number}" in taken:
                    number += 1
                joined[f"new-{number}"] = topics
        return joined

    def _usual(self, staying: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        subscriptions = Counter((staying or self.observed.subscriptions).values())
        if subscriptions:
            return max(subscriptions.items(), key=lambda each: (each[1], len(each[0]), each[0]))[0]
        topics = tuple(sorted(set(self.observed.group.committed) & set(self.known)))
        if not topics:
            raise OptionError("--join cannot tell what new members subscribe to; give it as --join 2=orders,payments")
        return topics
