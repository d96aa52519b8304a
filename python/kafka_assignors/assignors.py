"""The assignors: one class per strategy, the same for every client and for planning without any.

An assignor is a value: its options and nothing else. What a consumer remembers between rebalances is a `MemberState`
that the consumer, or the adapter of its client, owns. So one assignor may serve any number of consumers and threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from kafka_assignors import _core
from kafka_assignors.errors import GroupTypeError, OptionError
from kafka_assignors.group import Group, Plan

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "Mode",
    "RackOrder",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
]

Mode = Literal["fair-yet-sticky", "sticky-yet-fair", "fair"]
RackOrder = Literal["before-stickiness", "after-stickiness"]

_MODES: tuple[Mode, ...] = ("fair-yet-sticky", "sticky-yet-fair", "fair")
_RACK_ORDERS: tuple[RackOrder, ...] = ("before-stickiness", "after-stickiness")


def _check_option(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise OptionError(f"{name} is {value!r}; give one of {', '.join(map(repr, known))}")


class Assignor:
    """What all assignors have in common; use one of the subclasses.

    Attributes:
        name: the name by which the members of a group agree on the strategy, as on the wire.
        cooperative: whether members keep their partitions through a rebalance (KIP-429); a client must then revoke only
            what the new assignment lacks, and rejoin.
    """

    __slots__ = ()

    name: ClassVar[str]
    cooperative: ClassVar[bool] = False

    def _options(self) -> tuple[str, str, str]:
        """Name, mode and rack order, as the core takes them."""
        return self.name, "fair-yet-sticky", "before-stickiness"

    def assign(self, group: Group, *, generation: int | None = None) -> Plan:
        """Plans a group.

        Args:
            group: the members and the topics.
            generation: the generation being formed, if known: a claim that is not older than it is false and does not
                count.

        Returns:
            The plan. It depends only on what the group holds: not on the order of members, topics or partitions, nor on
            earlier calls.

        Raises:
            GroupError: claims, partition counts or generations that cannot be represented.
            GroupTypeError: `group` is not a `Group`, or holds values of wrong types.
        """
        if not isinstance(group, Group):
            raise GroupTypeError(f"group is of type {type(group).__name__}; give a Group")
        return Plan(_core.assign(*self._options(), dict(group.topics), group.members, _generation(generation)))


def _generation(generation: int | None) -> int | None:
    return None if generation is None or generation < 0 else generation


class _StickyOptions(Assignor):
    """The options of the sticky strategies."""

    __slots__ = ()

    mode: Mode
    racks: RackOrder

    def __post_init__(self) -> None:
        _check_option("mode", self.mode, _MODES)
        _check_option("racks", self.racks, _RACK_ORDERS)

    def _options(self) -> tuple[str, str, str]:
        return self.name, self.mode, self.racks


@dataclass(frozen=True, slots=True)
class StickyAssignor(_StickyOptions):
    """KIP-54's strategy: the least possible balance score and, among those plans, the fewest partitions moved.

    Eager: members give up all partitions before a rebalance. Compatible with Java's
    `org.apache.kafka.clients.consumer.StickyAssignor`.

    Args:
        mode: what comes first. `"fair-yet-sticky"`: balance, then stickiness. `"sticky-yet-fair"`: nothing that is
            validly owned moves; new and orphaned partitions go where they make the plan fairest. `"fair"`: the past
            does not count. The mode is the leader's and is not on the wire.
        racks: where rack matches (KIP-881) stand; they count only where members and replicas both have racks.
            `"before-stickiness"`: balance, racks, stickiness, as in Java. `"after-stickiness"`: balance, stickiness,
            racks.

    Raises:
        OptionError: an unknown value.

    >>> from kafka_assignors import Group, Member
    >>> group = Group({"t": 2}, [Member("c0", ["t"], owned={"t": [0, 1]}, generation=1), Member("c1", ["t"])])
    >>> plan = StickyAssignor().assign(group)
    >>> plan.kept, plan.moved, plan.balance_score
    (1, 1, 0)
    """

    mode: Mode = "fair-yet-sticky"
    racks: RackOrder = "before-stickiness"

    name: ClassVar[str] = "sticky"


@dataclass(frozen=True, slots=True)
class CooperativeStickyAssignor(_StickyOptions):
    """The sticky strategy in the two phases of KIP-429: no partition goes to a member while another still holds it.

    A partition that must move is first withheld (`Plan.unassigned` says from whom); its holder revokes it and rejoins,
    and the next rebalance hands it out. Compatible with Java's
    `org.apache.kafka.clients.consumer.CooperativeStickyAssignor`.

    Args:
        mode: as for `StickyAssignor`.
        racks: as for `StickyAssignor`.

    Raises:
        OptionError: an unknown value.
    """

    mode: Mode = "fair-yet-sticky"
    racks: RackOrder = "before-stickiness"

    name: ClassVar[str] = "cooperative-sticky"
    cooperative: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class RangeAssignor(Assignor):
    """Kafka's range strategy: topic by topic, each subscriber gets a run of neighbouring partitions.

    Static members come in order of their instance ids; with racks, KIP-881's rules hold.
    """

    name: ClassVar[str] = "range"


@dataclass(frozen=True, slots=True)
class RoundRobinAssignor(Assignor):
    """Kafka's round-robin strategy: all partitions in order are dealt to the subscribed members in turn."""

    name: ClassVar[str] = "roundrobin"
