"""Priorities: gold topics are read by big members only; the rest is shared by all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kafka_assignors import CustomAssignor, Group, Member, sticky_within


@dataclass(frozen=True)
class Priorities(CustomAssignor):
    """A topic is gold if its name begins with `gold`, and a member sends in its data whether it is big."""

    big: bool = False
    gold: str = "gold."
    name: ClassVar[str] = "priorities"

    def member_data(self) -> bytes:
        return b"big" if self.big else b"small"

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        return sticky_within(group, allowed=self.may)

    def may(self, member: Member, topic: str, partition: int) -> bool:
        return member.data == b"big" or not topic.startswith(self.gold)
