"""Zones: a topic is read in its zone. Overflow members read the topics of a zone without members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kafka_assignors import CustomAssignor, Group, Member, sticky_within


@dataclass(frozen=True)
class Zones(CustomAssignor):
    """The rack of a member is its zone, and `eu.orders` is a topic of the zone `eu`."""

    overflow: bool = False
    name: ClassVar[str] = "zones"
    cooperative: ClassVar[bool] = True

    def member_data(self) -> bytes:
        return b"overflow" if self.overflow else b""

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        zones = {member.rack for member in group.members if member.topics and not member.data}

        def may(member: Member, topic: str, partition: int) -> bool:
            zone = topic.partition(".")[0]
            return member.data == b"overflow" if zone not in zones else member.rack == zone and not member.data

        return sticky_within(group, allowed=may)
