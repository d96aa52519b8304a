"""The checks of the value that `plan` of a user's own assignor returns, before any part of it is used.

The value may be anything, since the user wrote `plan`. Its types are checked here, and only a bounded number of entries
is read, so that an endless iterator ends. Names and numbers are checked in the core (`planning/custom.rs`), which
writes only plans that passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, SupportsIndex

from kafka_assignors.errors import PlanError
from kafka_assignors.group import Plan
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from kafka_assignors.group import Group

__all__ = ["PlannedPartitions", "checked_plan"]

PlannedPartitions = dict[str, dict[str, list[int]]]
"""Member id to topic to ascending partition numbers; members and topics without any are left out."""

_INT64 = range(-(2**63), 2**63)


def checked_plan(returned: object, group: Group) -> PlannedPartitions:
    """The plan as plain dictionaries and lists, in an order that does not depend on that of the plan.

    Raises:
        PlanError: it is no mapping of member id to a mapping of topic to partition numbers, or is larger than any plan.
    """
    if isinstance(returned, Plan):
        returned = returned.assignment
    planned: PlannedPartitions = {}
    for member, topics in _entries(returned, len(group.members), "plan() returned", "member id"):
        of = f"what plan() gives to member {printable(member)!r}"
        of_member = planned.setdefault(member, {})
        for topic, numbers in _entries(topics, len(group.topics), f"{of} is", "topic"):
            of_member[topic] = _numbers(numbers, group, topic, of)
    return {
        member: {topic: of_member[topic] for topic in sorted(of_member) if of_member[topic]}
        for member, of_member in sorted(planned.items())
    }


def _entries(value: object, most: int, what: str, key: str) -> Iterable[tuple[str, object]]:
    """The entries of a mapping whose keys are distinct names; it has at most `most` of them."""
    if not isinstance(value, Mapping):
        raise PlanError(f"{what} a {type(value).__name__}; give a mapping with each {key} as a key")
    seen: set[str] = set()
    for entry in islice(iter(value.items()), most + 1):
        name, item = entry
        if not isinstance(name, str):
            raise PlanError(f"{what} a mapping with a {type(name).__name__} as a key; give a {key}")
        # A subclass of str may override `==` and `hash`, so the names are compared as plain strings.
        plain = str.__str__(name)
        if plain in seen:
            raise PlanError(f"{what} a mapping with {printable(plain)!r} twice")
        seen.add(plain)
        yield plain, item
    if len(seen) > most:
        raise PlanError(f"{what} a mapping with more than {most} keys, and the group has no more of them")


def _numbers(value: object, group: Group, topic: str, of: str) -> list[int]:
    shown = printable(topic)
    if topic not in group.topics:
        raise PlanError(
            f"{of} has topic {shown!r}, which is not in group.topics: nobody subscribes to it, or the leader does not "
            "know its partitions yet"
        )
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping) or not isinstance(value, Iterable):
        raise PlanError(f"{of} has a {type(value).__name__} for topic {shown!r}; give its partition numbers")
    count = group.partitions(topic)
    numbers: list[int] = []
    # The iterable may be endless, or a range too long for a list: at most `count + 1` numbers are read.
    for number in islice(iter(value), count + 1):
        if isinstance(number, bool) or not isinstance(number, SupportsIndex):
            raise PlanError(f"{of} has a {type(number).__name__} as a partition number of {shown!r}; give an integer")
        plain = int(number.__index__())
        if plain not in _INT64:
            raise PlanError(f"{of} has a partition number of {shown!r} that is far too large")
        numbers.append(plain)
    if len(numbers) > count:
        raise PlanError(f"{of} has more than {count} partition numbers of {shown!r}, which has no more partitions")
    return sorted(numbers)
