"""Users' own assignors that a text can name: `support.own:Sparing(most=2)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kafka_assignors import CustomAssignor, sticky_within

if TYPE_CHECKING:
    from kafka_assignors import Group


@dataclass(frozen=True)
class Sparing(CustomAssignor):
    """No member has more than so many partitions."""

    most: int = 2
    name: ClassVar[str] = "sparing"

    def plan(self, group: Group) -> Any:
        return sticky_within(group, capacity=self.most)


class Gathering(CustomAssignor):
    """Everything goes to the last member that subscribes to it; cooperative."""

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
