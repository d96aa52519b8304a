"""The scenes: the members that join and leave, and the reason why a member has its partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from own_assignors.active_standby import ActiveStandby
from own_assignors.caps import Caps
from own_assignors.priorities import Priorities
from own_assignors.zones import Zones

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors import CustomAssignor

Assigned = dict[str, list[int]]


@dataclass(frozen=True)
class Joins:
    """A member joins, with its own object of the assignor, and perhaps a rack."""

    name: str
    assignor: CustomAssignor
    rack: str | None = None


@dataclass(frozen=True)
class Leaves:
    name: str


@dataclass(frozen=True)
class Scene:
    title: str
    topics: Mapping[str, int]
    steps: tuple[Joins | Leaves, ...]
    why: Callable[[Joins, Assigned], str]


def _active(member: Joins, assigned: Assigned) -> str:
    return "active" if assigned else "standby: waits until the active one leaves"


def _priority(member: Joins, assigned: Assigned) -> str:
    assert isinstance(member.assignor, Priorities)
    return "big: may read gold" if member.assignor.big else "small: bulk only"


def _zone(member: Joins, assigned: Assigned) -> str:
    assert isinstance(member.assignor, Zones)
    if not member.assignor.overflow:
        return f"reads zone {member.rack}"
    return "overflow: its zone has no member" if assigned else "overflow: every zone has a member"


def _cap(member: Joins, assigned: Assigned) -> str:
    assert isinstance(member.assignor, Caps)
    has = sum(map(len, assigned.values()))
    return f"{has} of at most {member.assignor.most}{', full' if has == member.assignor.most else ''}"


SCENES = (
    Scene(
        "active and standby",
        {"orders": 6},
        (Joins("a", ActiveStandby()), Joins("b", ActiveStandby()), Leaves("a")),
        _active,
    ),
    Scene(
        "priorities",
        {"gold.orders": 4, "bulk.clicks": 8},
        (Joins("a", Priorities(big=True)), Joins("b", Priorities()), Joins("c", Priorities(big=True)), Leaves("b")),
        _priority,
    ),
    Scene(
        "zones with an overflow",
        {"eu.orders": 4, "us.orders": 4},
        (
            Joins("a", Zones(), "eu"),
            Joins("b", Zones(overflow=True)),
            Joins("c", Zones(), "us"),
            Leaves("a"),
        ),
        _zone,
    ),
    Scene(
        "a cap for each member",
        {"jobs": 8},
        (Joins("a", Caps(4)), Joins("b", Caps(2)), Joins("c", Caps(4)), Leaves("b")),
        _cap,
    ),
)
