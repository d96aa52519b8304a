"""Whether a group can be moved to the protocol in which the broker assigns (KIP-848), member by member.

A broker converts a group when the first member of the new protocol joins it, unless an obstacle blocks that. An empty
group is always converted. `obstacles` returns those in the group, `broker_obstacles` those in the brokers' settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from kafka_assignors.cluster import ClassicMember
from kafka_assignors.errors import UserDataError
from kafka_assignors.planner.findings import some
from kafka_assignors.printable import listed
from kafka_assignors.userdata import Assignment, Subscription

if TYPE_CHECKING:
    from kafka_assignors.cluster import NewProtocol
    from kafka_assignors.planner.observed_group import ObservedGroup

__all__ = ["OBSTACLES", "POLICY", "Blocks", "Obstacle", "Readiness", "broker_obstacles", "obstacles", "readiness"]

OBSTACLES: dict[str, str] = {
    "broker-release": "every broker serves the protocol's heartbeat",
    "group-version": "the cluster has finalized group.version 1 or more",
    "migration-policy": "group.consumer.migration.policy allows the upgrade on every broker",
    "group-size": "the group is not larger than group.consumer.max.size",
    "assignor-allowed": "group.consumer.assignors has the assignor that the group needs",
    "consumers-only": "the members are consumers",
    "stable": "the group is Stable",
    "readable-bytes": "the bytes of all members can be read",
    "no-user-data": "no assignment has user data",
    "same-purpose": "a broker's assignor does what the strategy does",
}
"""Every rule that an obstacle can break, as the condition that must hold."""

Blocks: TypeAlias = Literal["always", "online", "nothing"]

POLICY = "group.consumer.migration.policy"
_UPGRADES = ("bidirectional", "upgrade")
# The strategies that the broker's assignors can replace; any other strategy has a purpose that these do not serve.
_REPLACED = frozenset(("range", "roundrobin", "sticky", "cooperative-sticky"))
_OURS, _LIBRDKAFKA, _OTHER = "ours", "librdkafka", "other"
_REMEDIES = {
    _OURS: "they are the generation that leaders of kafka-assignors write: set on_broker_assignor=migrate in every "
    "member of it and restart them one after the other; the first rebalance with such a leader clears the way",
    _LIBRDKAFKA: "they are as librdkafka's cooperative-sticky writes them from its second generation on: let another "
    "member lead for one generation, such as one of kafka-assignors with cooperative-sticky and "
    "on_broker_assignor=migrate; start it, then restart the others one after the other until `migrate` no longer names "
    "this",
    _OTHER: "let a leader whose strategy writes none lead for one generation, such as one of kafka-assignors with "
    "on_broker_assignor=migrate",
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why a group cannot be moved, or should not be.

    Attributes:
        rule: the rule that is not met; one of `OBSTACLES`.
        text: the reason.
        remedy: how to remove the obstacle.
        blocks: `always`: the group cannot be moved. `online`: the group can be moved only while it is empty. `nothing`:
            the broker would convert the group, and the group would lose something.
    """

    rule: str
    text: str
    remedy: str
    blocks: Blocks


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a group can be moved to KIP-848 while it works.

    Attributes:
        state: `moved` for a KIP-848 group without members of the classic protocol, `moving` with some, `ready`,
            `blocked`, or `unknown` while the group rebalances.
        reasons: the obstacles, a sentence each; empty unless the state is `blocked`.
    """

    state: Literal["moved", "moving", "ready", "blocked", "unknown"]
    reasons: tuple[str, ...] = ()


def readiness(observed: ObservedGroup) -> Readiness:
    """Whether the group can be moved, as far as the snapshot of the group shows. O(members)."""
    if observed.by_broker:
        classic = any(getattr(member, "classic", None) for member in observed.members)
        return Readiness("moving" if classic else "moved")
    found = obstacles(observed)
    if any(each.rule == "stable" for each in found):
        return Readiness("unknown")
    if found:
        return Readiness("blocked", tuple(each.text for each in found))
    return Readiness("ready")


def obstacles(observed: ObservedGroup) -> list[Obstacle]:
    """The obstacles of a classic group that the snapshot of the group shows. O(members)."""
    group = observed.group
    if observed.by_broker:
        return []
    if group.protocol_type not in ("", "consumer"):
        return [
            Obstacle(
                "consumers-only",
                f"its members are no consumers, but of type {group.protocol_type!r}",
                "leave it as it is: brokers go on serving the classic protocol, and have no assignor for these",
                "always",
            )
        ]
    if group.state not in (("Stable",) if observed.members else ("Empty", "Dead")):
        return [
            Obstacle(
                "stable",
                f"the group is in state {group.state}, in which brokers do not return the subscriptions",
                "ask again when it is Stable",
                "online",
            )
        ]
    if not observed.members:
        return []
    found = []
    members = [member for member in observed.members if isinstance(member, ClassicMember)]
    unreadable = [member.id for member in members if member.faults]
    if unreadable:
        found.append(
            Obstacle(
                "readable-bytes",
                f"the bytes of {some(unreadable, observed.names)} cannot be read",
                "replace these clients, or restart them: `kafka-assignors describe` says which bytes are wrong",
                "online",
            )
        )
    author = _author(members, group.assignor)
    if author is not None:
        text = f"the assignments of {group.assignor!r} carry user data, which the upgrade would lose"
        found.append(Obstacle("no-user-data", text, _REMEDIES[author], "online"))
    if group.assignor not in _REPLACED:
        found.append(
            Obstacle(
                "same-purpose",
                f"brokers have no assignor that does what {group.assignor!r} does",
                "stay with the classic protocol, or do without: the figures of `migrate` say what would change",
                "nothing",
            )
        )
    return found


def broker_obstacles(brokers: NewProtocol, observed: ObservedGroup, assignor: str) -> list[Obstacle]:
    """The obstacles of a classic group in the releases and settings of its brokers.

    Args:
        brokers: these releases and settings.
        observed: the group.
        assignor: the broker's assignor that the group is to have.
    """
    if brokers.heartbeat < 0:
        return [
            Obstacle(
                "broker-release",
                "a broker does not serve ConsumerGroupHeartbeat",
                "upgrade every broker to Kafka 4.0 or newer; 4.0.1 moves less than 4.0.0",
                "always",
            )
        ]
    found = []
    if brokers.group_version < 1:
        found.append(
            Obstacle(
                "group-version",
                f"the finalized feature group.version is {brokers.group_version}",
                "kafka-features.sh upgrade --feature group.version=1",
                "always",
            )
        )
    policies = brokers.settings.get(POLICY, ())
    wrong = [policy for policy in policies if policy.lower() not in _UPGRADES]
    if wrong and observed.members:
        found.append(
            Obstacle(
                "migration-policy",
                f"{POLICY} is {listed(wrong)}{' on some brokers' if len(policies) > 1 else ''}",
                f"set {POLICY}=bidirectional on every broker and restart them, or move the group while it is empty",
                "online",
            )
        )
    most = min(
        (int(each) for each in brokers.settings.get("group.consumer.max.size", ()) if each.isdigit()), default=None
    )
    if most is not None and len(observed.members) > most:
        found.append(
            Obstacle(
                "group-size",
                f"the group has {len(observed.members)} members, and group.consumer.max.size is {most}",
                "raise group.consumer.max.size, or run fewer members",
                "always",
            )
        )
    allowed = brokers.settings.get("group.consumer.assignors", ())
    lacking = [each for each in allowed if assignor not in _assignors(each)]
    if lacking:
        found.append(
            Obstacle(
                "assignor-allowed",
                f"group.consumer.assignors is {listed(lacking)}, without {assignor!r}",
                f"add {assignor} to group.consumer.assignors on every broker, or give --assignor",
                "always",
            )
        )
    return found


def _assignors(setting: str) -> list[str]:
    """The names of the assignors in the setting; it may contain the classes of Kafka's assignors instead."""
    classes = {"UniformAssignor": "uniform", "RangeAssignor": "range"}
    names = [each.strip() for each in setting.split(",")]
    return [classes.get(name.rpartition(".")[2], name) for name in names]


def _author(members: list[ClassicMember], assignor: str) -> str | None:
    """The kind of leader that wrote the user data of the assignments; None if they have no user data."""
    found: str | None = None
    for member in members:
        try:
            data = Assignment.decode(member.assignment).user_data if member.assignment else None
            if not data:
                continue
            sent = Subscription.decode(member.subscription).user_data
        except UserDataError:
            continue
        if len(data) == 4:
            found = found or _OURS
        elif data == sent or (assignor == "cooperative-sticky" and len(data) >= 8):
            found = _LIBRDKAFKA
        else:
            return _OTHER
    return found
