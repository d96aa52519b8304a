"""Users' own assignors that a text can name, `support.own:Sparing(most=2)`, and the members that bring them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kafka_assignors import CustomAssignor, MemberState, StickyAssignor, sticky_within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors import Group
    from kafka_assignors.assignors import Assignor

TOPICS = {"orders": 4, "audit": 2}


@dataclass(frozen=True)
class Sparing(CustomAssignor):
    """Assigns at most `most` partitions to each member."""

    most: int = 2
    name: ClassVar[str] = "sparing"

    def plan(self, group: Group) -> Any:
        return sticky_within(group, capacity=self.most)


class Gathering(CustomAssignor):
    """Assigns all partitions of a topic to the last member that subscribes to it; cooperative."""

    name = "gathering"
    cooperative = True

    def plan(self, group: Group) -> Any:
        shares: dict[str, dict[str, range]] = {}
        for topic in group.topics:
            able = [member.id for member in group.members if topic in member.topics]
            if able:
                shares.setdefault(able[-1], {})[topic] = range(group.partitions(topic))
        return shares


class Failing(CustomAssignor):
    """Never plans."""

    name = "failing"

    def plan(self, group: Group) -> Any:
        raise RuntimeError("it never plans")


class Failover(CustomAssignor):
    """Assigns everything to the first member in alphabetical order; the others wait."""

    name = "failover"

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        first, *_ = sorted(group.members, key=lambda member: member.id)
        return {first.id: {topic: range(group.partitions(topic)) for topic in first.topics}}


class Lifted(CustomAssignor):
    """Plans with the function `does`, and keeps the groups that it was called with."""

    name = "lifted"
    fallback: ClassVar[Assignor | None] = StickyAssignor()

    def __init__(self, does: Callable[[Group], Any], data: Any = b"") -> None:
        self.does = does
        self.data = data
        self.groups: list[Group] = []

    def plan(self, group: Group) -> Any:
        self.groups.append(group)
        return self.does(group)

    def member_data(self) -> Any:
        return self.data() if callable(self.data) else self.data


class Cooperating(Lifted):
    name = "lifted-cooperatively"
    cooperative = True


class Strict(Lifted):
    name = "strict"
    fallback = None


@dataclass(frozen=True)
class Zoned(CustomAssignor):
    zone: str = "a"
    most: int | None = 3
    name: ClassVar[str] = "zoned"

    def plan(self, group: Group) -> Any:
        return Failover().plan(group)


def joined(
    assignor: CustomAssignor, *states: tuple[str, list[str], MemberState], **data: bytes
) -> list[tuple[str, str | None, bytes]]:
    return [(member, None, assignor.metadata(topics, state)) for member, topics, state in states]


def pair(assignor: CustomAssignor) -> list[tuple[str, str | None, bytes]]:
    return joined(assignor, ("a", ["orders", "audit"], MemberState()), ("b", ["orders"], MemberState()))


def raising(error: BaseException) -> Callable[[Group], Any]:
    def plan(group: Group) -> Any:
        raise error

    return plan
