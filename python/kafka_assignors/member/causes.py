"""Why a group rebalanced, as far as its leader can tell: what differs from one generation to the next."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.assignors import JoinedMember
    from kafka_assignors.group import Plan

__all__ = ["CAUSES", "Cause", "PlannedGeneration", "causes_of"]

Cause: TypeAlias = Literal[
    "member-joined",
    "member-left",
    "member-expelled",
    "subscription-changed",
    "partitions-added",
    "partitions-removed",
    "partitions-revoked",
    "replicas-moved",
    "leader-returned",
]
"""The name of a cause."""

CAUSES: Mapping[str, str] = MappingProxyType(
    {
        "member-joined": "a member joined",
        "member-left": "a member left, or was expelled: the protocol does not tell the leader which",
        "member-expelled": "this member had lost its membership, or a static member, which does not leave, is gone",
        "subscription-changed": "a member subscribes to other topics",
        "partitions-added": "a subscribed topic has new partitions, or exists now",
        "partitions-removed": "a subscribed topic is gone, or was made anew with fewer partitions",
        "partitions-revoked": "a cooperative rebalance goes on: partitions that were given up get their new owner",
        "replicas-moved": "replicas of a subscribed topic are in other racks",
        "leader-returned": "the leader joined again, and nothing else differs",
    }
)
"""The causes of a rebalance, in the order in which a report names them."""

_OF_TRIGGER: Mapping[str, Cause] = {
    "joined": "member-joined",
    "expelled": "member-expelled",
    "subscription": "subscription-changed",
    "revoked": "partitions-revoked",
    "leader-returned": "leader-returned",
}
# The cause by the trigger of the leader's own join. It counts only if the leader finds no other difference.
_OF_LEADER: Mapping[str, Cause] = {"topics": "replicas-moved", "asked": "leader-returned"}
_VERSION, _COUNT, _LENGTH = 2, 4, 2
# Most members of a group subscribe to the same topics, so a member's bytes are compared with the latest lists only.
_LISTS = 8


def causes_of(trigger: str, compared: Iterable[Cause] | None) -> tuple[Cause, ...]:
    """The causes of a rebalance, for one member.

    Args:
        trigger: what made this member join, as the core names it.
        compared: the differences that the leader found; None if this member did not lead, or did not plan the
            generation before.
    """
    found = set(compared or ())
    if trigger in _OF_TRIGGER:
        found.add(_OF_TRIGGER[trigger])
    if not found and compared is not None and trigger in _OF_LEADER:
        found.add(_OF_LEADER[trigger])
    return tuple(sorted(found, key=tuple(CAUSES).index))


class PlannedGeneration:
    """What a leader remembers of the generation that it planned last. Not thread-safe."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._subscriptions: Mapping[tuple[str, bool], bytes] = {}
        self._counts: Mapping[str, int] = {}
        self._withheld = False

    def compare(
        self, generation: int | None, members: Sequence[JoinedMember], counts: Mapping[str, int], plan: Plan
    ) -> set[Cause] | None:
        """The differences from the generation before. Remembers this generation for the next call.

        O(members) while topics do not change.

        Args:
            generation: the planned generation; None if the client does not show it.
            members: as for `perform_assignment`.
            counts: the existing topics of all members, and how many partitions they have.
            plan: the plan of the generation.

        Returns:
            None if the leader did not plan the generation before this one.
        """
        lists: list[bytes] = []
        now = {_key(member): _topics(member[-1], lists) for member in members}
        follows = generation is not None and self._generation is not None and generation == self._generation + 1
        found = self._differences(now, counts) if follows else None
        self._generation, self._subscriptions, self._counts = generation, now, counts
        self._withheld = any(kind in ("withheld", "contested") for _, _, kind, *_ in plan._core.unassigned())
        return found

    def _differences(self, now: Mapping[tuple[str, bool], bytes], counts: Mapping[str, int]) -> set[Cause]:
        before = self._subscriptions
        found: set[Cause] = set()
        if now.keys() - before.keys():
            found.add("member-joined")
        for _, is_static in before.keys() - now.keys():
            found.add("member-expelled" if is_static else "member-left")
        changed = {(before[key], now[key]) for key in now.keys() & before.keys() if before[key] != now[key]}
        if any(set(_names(old)) != set(_names(new)) for old, new in changed):
            found.add("subscription-changed")
        if counts != self._counts:
            read = {name for topics in set(before.values()) for name in _names(topics)}
            read &= {name for topics in set(now.values()) for name in _names(topics)}
            for name in read & (counts.keys() | self._counts.keys()):
                grown = counts.get(name, 0) - self._counts.get(name, 0)
                if grown:
                    found.add("partitions-added" if grown > 0 else "partitions-removed")
        if self._withheld:
            found.add("partitions-revoked")
        return found


def _key(member: JoinedMember) -> tuple[str, bool]:
    """The member's identity, and whether it is static.

    A static member has a new member id after each restart, so its `group.instance.id` identifies it.
    """
    instance_id = member[1] if len(member) == 3 else None
    return (member[0], False) if not instance_id else (str(instance_id), True)


def _topics(metadata: bytes, lists: list[bytes]) -> bytes:
    """The bytes of the list of topics in a member's metadata, with their count; empty if they cannot be read.

    Args:
        metadata: a ConsumerProtocolSubscription.
        lists: the different lists found so far. A new list is appended.
    """
    for known in lists[-_LISTS:]:
        if metadata.startswith(known, _VERSION):
            return known
    at = _VERSION + _COUNT
    if len(metadata) < at:
        return b""
    for _ in range(int.from_bytes(metadata[_VERSION:at], "big")):
        at += _LENGTH + int.from_bytes(metadata[at : at + _LENGTH], "big")
        if at > len(metadata):
            return b""
    found = bytes(metadata[_VERSION:at])
    lists.append(found)
    return found


def _names(topics: bytes) -> list[str]:
    names = []
    at = _COUNT
    while at < len(topics):
        length = int.from_bytes(topics[at : at + _LENGTH], "big")
        at += _LENGTH
        names.append(topics[at : at + length].decode(errors="replace"))
        at += length
    return names
