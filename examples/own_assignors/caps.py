"""Caps: no member reads more partitions than its cap; the partitions left over wait for another member."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kafka_assignors import CustomAssignor, Group, Member, sticky_within


@dataclass(frozen=True)
class Caps(CustomAssignor):
    """Each consumer sends its own cap in its data."""

    most: int = 4
    name: ClassVar[str] = "caps"

    def member_data(self) -> bytes:
        return str(self.most).encode()

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        return sticky_within(group, capacity=cap)


def cap(member: Member) -> int:
    return int(member.data or b"0")
