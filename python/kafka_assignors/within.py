"""The sticky plan under restrictions: the members that may have a partition, and the most partitions of a member.

>>> from kafka_assignors import Group, Member
>>> group = Group({"gold": 2, "bulk": 4}, [Member(id, ["gold", "bulk"]) for id in ("big", "small")])
>>> plan = sticky_within(group, allowed={"gold": ["big"]}, capacity={"small": 2})
>>> plan.assignment
{'big': {'bulk': [2, 3], 'gold': [0, 1]}, 'small': {'bulk': [0, 1]}}
>>> plan.verify(require_optimal=True).balance_score
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from kafka_assignors import _core
from kafka_assignors.errors import OptionError
from kafka_assignors.group import Group, Member, Plan
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Allowed", "Capacity", "sticky_within"]

Allowed: TypeAlias = "Callable[[Member, str, int], bool] | Mapping[str | tuple[str, int], Collection[str]]"
"""The members that may have a partition: a function of member, topic and partition number, or a mapping to member ids
whose keys are topics, or pairs of topic and partition number. Every subscriber may have a partition that the mapping
does not name."""

Capacity: TypeAlias = "Callable[[Member], int | None] | Mapping[str, int] | int"
"""The most partitions of a member: one number for all, a mapping of member id to it, or a function of the member. A
member that the mapping does not name, and one for which the function gives None, may have any number."""

_MOST = 2**32 - 2


def sticky_within(group: Group, *, allowed: Allowed | None = None, capacity: Capacity | None = None) -> Plan:
    """The best plan in which each member has only partitions that it may have, and no more than its capacity.

    Of all such plans it assigns the most partitions; of these it has the least KIP-54 balance score, and of these it
    moves the fewest partitions. Exact and deterministic, as
    [`StickyAssignor`][kafka_assignors.assignors.StickyAssignor]: the restrictions are arcs and limits of its search.
    `Plan.verify()` proves it, under the same restrictions. A partition that no member may have, or for which none has
    room, is in `Plan.unassigned` with the reason. A
    [`CustomAssignor`][kafka_assignors.own.CustomAssignor] may return the plan as it is. Racks do not count: make a rule
    of them in `allowed`.

    Args:
        group: the members and the topics.
        allowed: the subscribers that may have each partition; None restricts nothing. A function is called once for
            each partition and each of its subscribers.
        capacity: the most partitions of each member; None sets no limit.

    Raises:
        GroupError: as for every assignor.
        OptionError: restrictions with a topic, partition or member that the group does not have, or a capacity that is
            no number of partitions.

    O(partitions + members x topics) and the searches of the sticky strategy.
    """
    if not isinstance(group, Group):
        raise OptionError(f"group is of type {type(group).__name__}; give a Group")
    sets = _Sets()
    set_of = {} if allowed is None else _set_of(group, allowed, sets)
    return Plan(
        _core.assign_restricted(dict(group.topics), group.members, sets.listed, set_of, _capacity(group, capacity))
    )


class _Sets:
    """Numbers the different sets of members, so that partitions with equal sets share one."""

    def __init__(self) -> None:
        self.listed: list[list[str]] = []
        self._known: dict[frozenset[str], int] = {}

    def number(self, members: Iterable[str]) -> int:
        found = frozenset(members)
        number = self._known.setdefault(found, len(self.listed))
        if number == len(self.listed):
            self.listed.append(sorted(found))
        return number


def _set_of(group: Group, allowed: Allowed, sets: _Sets) -> dict[str, list[int]]:
    if isinstance(allowed, Mapping):
        return _set_of_mapping(group, allowed, sets)
    if not callable(allowed):
        raise OptionError(f"allowed is of type {type(allowed).__name__}; give a mapping or a function")
    subscribers: dict[str, list[Member]] = {topic: [] for topic in group.topics}
    for member in group.members:
        for topic in member.topics:
            if topic in subscribers:
                subscribers[topic].append(member)
    found = {}
    for topic, members in subscribers.items():
        everybody = len(members)
        numbers = []
        for partition in range(group.partitions(topic)):
            able = [member.id for member in members if allowed(member, topic, partition)]
            numbers.append(-1 if len(able) == everybody else sets.number(able))
        if any(number >= 0 for number in numbers):
            found[topic] = numbers
    return found


def _set_of_mapping(
    group: Group, allowed: Mapping[str | tuple[str, int], Collection[str]], sets: _Sets
) -> dict[str, list[int]]:
    ids = {member.id for member in group.members}
    found: dict[str, list[int]] = {}

    def numbers(topic: object) -> list[int]:
        if not isinstance(topic, str) or topic not in group.topics:
            raise OptionError(f"allowed has topic {printable(topic)!r}, which the group has not")
        return found.setdefault(topic, [-1] * group.partitions(topic))

    def able(members: object, key: object) -> int:
        if isinstance(members, str | bytes) or not isinstance(members, Iterable):
            raise OptionError(f"allowed[{key!r}] is of type {type(members).__name__}; give member ids")
        named = set(members)
        if not named <= ids:
            raise OptionError(f"allowed[{key!r}] has {sorted(map(printable, named - ids))[:3]}, which are no members")
        return sets.number(named)

    # An entry of a partition overrides that of its topic, whatever their order in the mapping.
    for key, members in allowed.items():
        if not isinstance(key, tuple):
            of_topic, number = numbers(key), able(members, key)
            of_topic[:] = [number] * len(of_topic)
    for key, members in allowed.items():
        if isinstance(key, tuple):
            if len(key) != 2 or isinstance(key[1], bool) or not isinstance(key[1], int):
                raise OptionError(f"allowed has {key!r} as a key; give a topic, or a topic and a partition number")
            of_topic = numbers(key[0])
            if not 0 <= key[1] < len(of_topic):
                raise OptionError(f"allowed has {key!r}, and the topic has {len(of_topic)} partitions")
            of_topic[key[1]] = able(members, key)
    return found


def _capacity(group: Group, capacity: Capacity | None) -> dict[str, int]:
    if capacity is None:
        return {}
    if isinstance(capacity, Mapping):
        unknown = set(capacity) - {member.id for member in group.members}
        if unknown:
            raise OptionError(f"capacity has {sorted(map(printable, unknown))[:3]}, which are no members of the group")
        given: dict[str, object] = dict(capacity)
    elif callable(capacity):
        given = {member.id: capacity(member) for member in group.members}
    else:
        given = dict.fromkeys((member.id for member in group.members), capacity)
    found = {}
    for member, most in given.items():
        if most is None:
            continue
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise OptionError(f"capacity of member {printable(member)!r} is {most!r}; give a number of partitions")
        found[member] = min(most, _MOST)
    return found
