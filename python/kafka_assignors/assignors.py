"""The assignors: one class for each strategy, for all clients and for planning without a client.

An assignor is a value: its options and nothing else. The state between rebalances is a `MemberState`, which belongs to
the consumer or to the adapter of its client. So one assignor may serve any number of consumers and threads.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from kafka_assignors import _core
from kafka_assignors.assignor import (
    Assignor,
    JoinedMember,
    generation_on_wire,
    known_generation,
    warn_of_record_size,
)
from kafka_assignors.errors import GroupError, GroupTypeError, LagError, OptionError
from kafka_assignors.group import Group, MemberState, Plan, Topic, checked_topics
from kafka_assignors.lag import check_source, gather
from kafka_assignors.options import check_choice, check_seconds
from kafka_assignors.printable import SENTENCE, printable
from kafka_assignors.server_side import ServerSideRangeAssignor, UniformAssignor
from kafka_assignors.userdata import (
    Assignment,
    CooperativeStickyUserData,
    StickyUserData,
    StreamJoinUserData,
    Subscription,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.assignor import EarlierPlans
    from kafka_assignors.lag import LagFunction, Lags, LagSource

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "JoinedMember",
    "LagBasedAssignor",
    "LagKeep",
    "LagScope",
    "Mode",
    "Protocol",
    "RackOrder",
    "RangeAssignor",
    "RoundRobinAssignor",
    "ServerSideRangeAssignor",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "UniformAssignor",
    "by_name",
]

Protocol = Literal["eager", "cooperative"]
Mode = Literal["fair-yet-sticky", "sticky-yet-fair", "fair"]
RackOrder = Literal["before-stickiness", "after-stickiness"]
LagScope = Literal["topic", "group"]
LagKeep = Literal["none", "owners"]

logger = logging.getLogger("kafka_assignors")

_MODES: tuple[Mode, ...] = ("fair-yet-sticky", "sticky-yet-fair", "fair")
_PROTOCOLS: tuple[Protocol, ...] = ("eager", "cooperative")
_RACK_ORDERS: tuple[RackOrder, ...] = ("before-stickiness", "after-stickiness")
_LAG_SCOPES: tuple[LagScope, ...] = ("topic", "group")
_LAG_KEEPS: tuple[LagKeep, ...] = ("none", "owners")


def _check_size(name: str, value: object, bits: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**bits:
        raise OptionError(f"{name} is {value!r}; give an integer from 0 to {2**bits - 1}")


def _with_history(topics: tuple[str, ...], state: MemberState) -> Subscription:
    """A subscription with its claims in the user data only. A second copy would double the group's record."""
    remembers = state.owned or state.generation is not None
    user_data = StickyUserData(state.owned, generation_on_wire(state.generation)).encode() if remembers else None
    return Subscription(topics, user_data, rack=state.rack)


class _StickyOptions(Assignor):
    """The options of the sticky strategies."""

    __slots__ = ()

    mode: Mode
    racks: RackOrder

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, _MODES)
        check_choice("racks", self.racks, _RACK_ORDERS)

    def _options(self) -> tuple[str, str, str]:
        return self.name, self.mode, self.racks


@dataclass(frozen=True, slots=True)
class StickyAssignor(_StickyOptions):
    """KIP-54's strategy: the least possible balance score and, among those plans, the fewest partitions moved.

    Eager: members give up all partitions before a rebalance. Compatible with Java's
    `org.apache.kafka.clients.consumer.StickyAssignor`.

    Args:
        mode: the order of the objectives. `"fair-yet-sticky"`: balance, then stickiness. `"sticky-yet-fair"`: no
            partition with a valid owner moves, and the others go where the plan gets fairest. `"fair"`: earlier
            owners do not count. Only the leader's mode counts; it is not on the wire.
        racks: the place of rack matches (KIP-881) in that order. They count only if members and replicas have racks.
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

    def _subscription(self, topics: tuple[str, ...], state: MemberState) -> Subscription:
        return _with_history(topics, state)


@dataclass(frozen=True, slots=True)
class CooperativeStickyAssignor(_StickyOptions):
    """The sticky strategy in the two phases of KIP-429: no partition goes to a member while another still holds it.

    A partition that must move is first withheld (`Plan.unassigned` names its owner). The owner revokes it and rejoins,
    and the next rebalance assigns it. Compatible with Java's
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

    def _subscription(self, topics: tuple[str, ...], state: MemberState) -> Subscription:
        generation = generation_on_wire(state.generation)
        user_data = CooperativeStickyUserData(generation).encode()
        return Subscription(topics, user_data, state.owned, generation, state.rack)


@dataclass(frozen=True, slots=True)
class StickyStreamJoinAssignor(Assignor):
    """KIP-315's strategy, for stream joins: number `n` of every topic goes to one member, and stays there.

    The numbers below the smallest partition count of the group's topics are distributed evenly, and among the even
    distributions one is chosen that moves the fewest numbers. A member gets its numbers of each topic that it
    subscribes to. `Plan.unassigned` has a reason for each partition that is left over, and `Plan.notices` the topics
    with another number of partitions.

    `generation` of a `Member` or `MemberState` is the epoch of the assignment here, which every plan raises by one:
    for each number the claim with the highest epoch counts, and equal highest ones void each other. A claim without an
    epoch loses to all others. Racks do not count.

    Args:
        protocol: `"eager"`, on the wire `sticky-join`; or `"cooperative"`, on the wire `cooperative-sticky-join`, where
            members keep their numbers through a rebalance (KIP-429). A broker lets only one of them into a group.

    Raises:
        OptionError: an unknown protocol.

    >>> from kafka_assignors import Group, Member
    >>> topics = ["impressions", "clicks"]
    >>> owned = {"impressions": [0, 1, 2], "clicks": [0, 1, 2]}
    >>> members = [Member("a", topics, owned=owned, generation=1), Member("b", topics)]
    >>> StickyStreamJoinAssignor().assign(Group({"impressions": 3, "clicks": 3}, members))["b"]
    {'clicks': [2], 'impressions': [2]}
    """

    protocol: Protocol = "eager"

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, _PROTOCOLS)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The wire name, which depends on the protocol."""
        return "cooperative-sticky-join" if self.cooperative else "sticky-join"

    @property
    def cooperative(self) -> bool:  # type: ignore[override]
        """Whether members keep their numbers through a rebalance."""
        return self.protocol == "cooperative"

    def _subscription(self, topics: tuple[str, ...], state: MemberState) -> Subscription:
        remembers = state.owned or state.generation is not None
        numbers = sorted({number for held in state.owned.values() for number in held})
        user_data = StreamJoinUserData(numbers, state.generation or 0).encode() if remembers else None
        return Subscription(topics, user_data, state.owned if self.cooperative else {}, rack=state.rack)

    def on_assignment(self, assignment: bytes, generation: int | None, state: MemberState) -> None:
        """Stores a member's assignment in `state`, for the next `metadata`.

        Args:
            assignment: the ConsumerProtocolAssignment bytes as received in SyncGroup; the epoch is in their user data.
            generation: the group's generation. It is taken as the epoch if the assignment has no user data, which a
                leader leaves out so that a broker can convert the group; otherwise it is ignored.
            state: is changed only if the bytes can be read.

        Raises:
            UserDataError: the bytes are no assignment.
        """
        # `super()` fails here: `slots=True` creates a second class, and `super()` still refers to the first one.
        has_epoch = Assignment.decode(assignment).generation >= 0
        Assignor.on_assignment(self, assignment, None if has_epoch else generation, state)


@dataclass(frozen=True, slots=True)
class RangeAssignor(Assignor):
    """Kafka's range strategy: of each topic, each subscriber gets a run of consecutive partitions.

    Static members come in order of their instance ids; with racks, KIP-881's rules hold.
    """

    name: ClassVar[str] = "range"


@dataclass(frozen=True, slots=True)
class RoundRobinAssignor(Assignor):
    """Kafka's round-robin strategy: all partitions in order are dealt to the subscribed members in turn."""

    name: ClassVar[str] = "roundrobin"


@dataclass(frozen=True, slots=True)
class LagBasedAssignor(Assignor):
    """KAFKA-5337's strategy: partitions in decreasing lag, each to the subscriber that has the least so far.

    The default is the published rule: topic by topic, to the member with the fewest partitions of the topic, of these
    to the one with the least lag of the topic, of these to the smallest member id. On the wire it is `lag`, as in Java,
    and eager.

    In a rebalance the leader asks `lags` for the lags. If this source fails or is late, members keep what they own and
    new partitions are balanced by number; the reason is logged, and the rebalance goes on.

    Args:
        lags: where lags come from: a mapping of topic to the lag of each partition by number, a
            [`LagSource`][kafka_assignors.lag.LagSource], or a function with its arguments. None: they are given to
            `assign`.
        scope: the topics over which a member's numbers and lags are added up. `"topic"`: each topic begins at 0.
            `"group"`: all topics together, all partitions in decreasing lag; so 100 topics of one partition do not all
            go to one member.
        max_skew: the largest difference between the numbers of partitions of a topic's subscribers that lag may cause.
            0: the number comes before the lag, which leaves a difference of at most one. `k`: the lag comes first, up
            to a difference of `k`. None: only lag counts. For partitions without lag the number always comes first.
        keep: `"none"`: the past does not count. `"owners"`: partitions stay with the members that own them, unless
            moves and swaps together reduce the lag of the heaviest member by more than `threshold`. If a moved
            partition went back to its owner, some member would be heavier than the heaviest one now is; and no further
            move or swap reduces the heaviest lag by more than `threshold`.
        threshold: for `"owners"`: the number of records by which all changes together must reduce the heaviest lag. If
            all lags are the same, `scope` is `"group"`, `max_skew` None and subscriptions are equal, the heaviest lag
            is at most `threshold` above the least possible one, with the fewest moves; in general that is too hard to
            find (docs/lag.md).
        deadline: how many seconds a rebalance waits for a source other than a mapping.
        group_id: the group id that is passed to the source.

    Raises:
        OptionError: an unknown value.

    With `scope="group"`, `max_skew=None`, `keep="none"` and equal subscriptions, the heaviest of m members has at most
    4/3 - 1/(3m) times the least possible lag (Graham 1969). `Plan.lag_bound` is a proven lower bound for any options.

    Source: KAFKA-5337. Counts come from `Group.topics`, so the lags must have exactly one entry per partition.

    >>> from kafka_assignors import Group, Member
    >>> group = Group({"t0": 3}, [Member("C0", ["t0"]), Member("C1", ["t0"])])
    >>> plan = LagBasedAssignor().assign(group, lags={"t0": [100_000, 50_000, 60_000]})
    >>> plan.assignment
    {'C0': {'t0': [0]}, 'C1': {'t0': [1, 2]}}
    >>> plan.lag_by_member, plan.lag_bound
    ({'C0': 100000, 'C1': 110000}, 105000)
    """

    lags: Lags | LagSource | LagFunction | None = field(default=None, hash=False)
    scope: LagScope = "topic"
    max_skew: int | None = 0
    keep: LagKeep = "none"
    threshold: int = 0
    deadline: float = 5.0
    group_id: str = ""

    name: ClassVar[str] = "lag"

    def __post_init__(self) -> None:
        check_source(self.lags)
        check_choice("scope", self.scope, _LAG_SCOPES)
        if self.max_skew is not None:
            _check_size("max_skew", self.max_skew, 32)
        check_choice("keep", self.keep, _LAG_KEEPS)
        _check_size("threshold", self.threshold, 64)
        if self.keep == "none" and self.threshold:
            raise OptionError(f"threshold is {self.threshold}, but keep is 'none'; a threshold is for keep='owners'")
        check_seconds("deadline", self.deadline)
        if not isinstance(self.group_id, str):
            raise OptionError(f"group_id is {self.group_id!r}; give the group's name, or '' if it does not matter")

    def _lag_options(self) -> tuple[str, int | None, int | None]:
        """Scope, skew and threshold, as the core takes them."""
        return self.scope, self.max_skew, None if self.keep == "none" else self.threshold

    def assign(self, group: Group, *, generation: int | None = None, lags: Lags | None = None) -> Plan:
        """Plans a group.

        Args:
            group: the members and the topics.
            generation: the generation being formed, if known. A claim of this generation, or of a newer one, is false
                and does not count.
            lags: topic to the lag of each partition by number, for every topic of the group; other topics are ignored.
                None asks the assignor's own source.

        Raises:
            GroupError: lags that are missing, too many or negative; and as for every assignor.
            GroupTypeError: lags that are not integers (`nan` is not one); and as for every assignor.
            LagError: there are no lags, or the assignor's source failed or was late.
        """
        if not isinstance(group, Group):
            raise GroupTypeError(f"group is of type {type(group).__name__}; give a Group")
        if lags is not None and not hasattr(lags, "keys"):
            raise GroupTypeError(f"lags is of type {type(lags).__name__}; give a mapping of topic to lags")
        topics = dict(group.topics)
        known = self._gather(topics) if lags is None else {topic: lags[topic] for topic in topics if topic in lags}
        core = _core.assign_by_lag(self._lag_options(), topics, group.members, known, known_generation(generation))
        plan = Plan(core)
        warn_of_record_size(plan)
        return plan

    def _gather(self, topics: Iterable[str]) -> dict[str, Sequence[int]]:
        if self.lags is None:
            raise LagError(
                "there are no lags; give them to assign(), or a source of them to LagBasedAssignor(lags=...)"
            )
        wanted = list(topics)
        return gather(self.lags, wanted, self.group_id, self.deadline) if wanted else {}

    def _plan_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        generation: int | None,
        earlier: EarlierPlans | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        if not isinstance(partitions, dict):
            partitions = checked_topics(partitions)
        try:
            lags: dict[str, Sequence[int]] | LagError = self._gather(partitions)
        except LagError as error:
            lags = error
        return self._plan_with(lags, members, partitions, generation, earlier, seconds)

    def _plan_with(
        self,
        given: dict[str, Sequence[int]] | LagError,
        members: Iterable[JoinedMember],
        partitions: dict[str, int | Topic],
        generation: int | None,
        earlier: EarlierPlans | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        """As `_plan_assignment`, with the lags, or the reason why there are none."""
        joined = list(members)

        def plan(lags: dict[str, Sequence[int]] | None) -> tuple[dict[str, bytes], Plan]:
            options, forming = self._lag_options(), known_generation(generation)
            assignments, core = _core.perform_assignment_by_lag(
                options, joined, partitions, lags, forming, earlier, seconds
            )
            return assignments, Plan(core)

        try:
            if isinstance(given, LagError):
                raise given
            return plan(given)
        except (LagError, GroupError) as error:
            # If the error is not about the lags, the same error is raised again here.
            planned = plan(None)
            logger.warning(
                "the lags of group %r are not known (%s); its members keep what they own, and new partitions are "
                "balanced by number",
                self.group_id,
                printable(error, SENTENCE),
            )
            return planned

    def _subscription(self, topics: tuple[str, ...], state: MemberState) -> Subscription:
        return _with_history(topics, state)


_APACHE = "org.apache.kafka.clients.consumer."
_BROKER = "org.apache.kafka.coordinator.group.assignor."

# Every strategy with its default options, by its wire name and by the names of its class: ours, and Java's.
_NAMED: dict[str, Assignor] = {
    name: assignor
    for assignor, classes in (
        (StickyAssignor(), ("StickyAssignor", f"{_APACHE}StickyAssignor")),
        (CooperativeStickyAssignor(), ("CooperativeStickyAssignor", f"{_APACHE}CooperativeStickyAssignor")),
        (StickyStreamJoinAssignor(), ("StickyStreamJoinAssignor", f"{_APACHE}StickyStreamJoinAssignor")),
        (StickyStreamJoinAssignor(protocol="cooperative"), ()),
        (LagBasedAssignor(), ("LagBasedAssignor", "com.github.grantneale.kafka.LagBasedPartitionAssignor")),
        (RangeAssignor(), ("RangeAssignor", f"{_APACHE}RangeAssignor")),
        (RoundRobinAssignor(), ("RoundRobinAssignor", f"{_APACHE}RoundRobinAssignor")),
        (UniformAssignor(), ("UniformAssignor", f"{_BROKER}UniformAssignor")),
        (ServerSideRangeAssignor(), ("ServerSideRangeAssignor", f"{_BROKER}RangeAssignor")),
    )
    for name in (assignor.name, *classes)
}


def register(assignor: Assignor, *classes: str) -> None:
    """Adds an assignor to those of `by_name`. For the assignors of this package whose modules import this module.

    Args:
        assignor: with its default options.
        classes: further names.
    """
    _NAMED.update(dict.fromkeys((assignor.name, *classes), assignor))


def by_name(name: str) -> Assignor:
    """The strategy with this name, as configuration files and other clients write it, with default options.

    Args:
        name: the wire name (`sticky`, `cooperative-sticky`, `sticky-join`, `cooperative-sticky-join`, `lag`, `range` or
            `roundrobin`), or the name of the class, here or in Java: `StickyAssignor` or
            `org.apache.kafka.clients.consumer.StickyAssignor`. The names of KIP-315 and KAFKA-5337 are
            `StickyStreamJoinAssignor`, which is the eager one, and `LagBasedAssignor`; the latter has no source of lags
            yet. `uniform` and `server-side-range` are the broker's. `weighted` and `cooperative-weighted` have no
            weights yet, and weigh all partitions equally.

    Raises:
        OptionError: no strategy has this name.

    >>> by_name("org.apache.kafka.clients.consumer.CooperativeStickyAssignor").name
    'cooperative-sticky'
    >>> by_name("StickyStreamJoinAssignor")
    StickyStreamJoinAssignor(protocol='eager')
    """
    assignor = _NAMED.get(name) if isinstance(name, str) else None
    if assignor is None:
        wire = ", ".join(repr(assignor.name) for assignor in dict.fromkeys(_NAMED.values()))
        raise OptionError(f"the strategy is {name!r}; give one of {wire}, or a class name such as 'StickyAssignor'")
    return assignor
