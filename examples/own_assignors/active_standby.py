"""Active and standby: one member reads everything, and the others wait for it to leave."""

from collections.abc import Mapping, Sequence

from kafka_assignors import CustomAssignor, Group, Member


class ActiveStandby(CustomAssignor):
    """The member that owns partitions stays active; if no member owns any, the first one by id becomes active."""

    name = "active-standby"

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        able = [member for member in group.members if member.topics]
        if not able:
            return {}
        active = min(able, key=lambda member: (-held(member), member.id))
        return {active.id: {topic: range(group.partitions(topic)) for topic in active.topics}}


def held(member: Member) -> int:
    return sum(len(list(numbers)) for numbers in (member.owned or {}).values())
