"""Whether a group can be moved to the protocol in which the broker assigns (KIP-848), member by member.

A broker converts a group when the first member of the new protocol joins it, and refuses that for the reasons below. An
empty group is always converted. What the brokers themselves need (`group.version`, their policy) is no fact of a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kafka_assignors.cluster import ClassicMember
from kafka_assignors.errors import UserDataError
from kafka_assignors.planner.findings import some
from kafka_assignors.userdata import Assignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.planner.observed_group import ObservedGroup

__all__ = ["Readiness", "readiness"]

# The strategies whose plans the broker's own assignors replace; any other one has a purpose that they do not have.
_REPLACED = frozenset(("range", "roundrobin", "sticky", "cooperative-sticky"))


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a group can be moved to KIP-848 while it works.

    Attributes:
        state: `moved` for a KIP-848 group without members of the classic protocol, `moving` with some, `ready`,
            `blocked`, or `unknown` while the group rebalances.
        reasons: what blocks it, a sentence each; empty unless it is `blocked`.
    """

    state: Literal["moved", "moving", "ready", "blocked", "unknown"]
    reasons: tuple[str, ...] = ()


def readiness(observed: ObservedGroup) -> Readiness:
    """Whether the group can be moved. O(members)."""
    if observed.by_broker:
        classic = any(getattr(member, "classic", None) for member in observed.members)
        return Readiness("moving" if classic else "moved")
    if observed.group.protocol_type not in ("", "consumer"):
        kind = observed.group.protocol_type
        return Readiness("blocked", (f"its members are no consumers, but of type {kind!r}",))
    if not observed.members:
        return Readiness("ready" if observed.group.state in ("Empty", "Dead") else "unknown")
    if observed.group.state != "Stable":
        return Readiness("unknown")
    reasons = []
    members = [member for member in observed.members if isinstance(member, ClassicMember)]
    unreadable = [member.id for member in members if member.faults]
    if unreadable:
        reasons.append(f"the bytes of {some(unreadable, observed.names)} cannot be read")
    if _with_user_data(members):
        reasons.append(f"the assignments of {observed.group.assignor!r} carry user data, which the upgrade would lose")
    if observed.group.assignor not in _REPLACED:
        reasons.append(f"brokers have no assignor that does what {observed.group.assignor!r} does")
    return Readiness("blocked", tuple(reasons)) if reasons else Readiness("ready")


def _with_user_data(members: Iterable[ClassicMember]) -> bool:
    for member in members:
        try:
            if member.assignment and Assignment.decode(member.assignment).user_data:
                return True
        except UserDataError:
            continue
    return False
