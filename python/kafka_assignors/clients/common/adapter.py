"""The adapter that makes an assignor a plug-in of a client. A subclass for each client reads the client's objects.

- An instance serves one consumer and stores its state. A second consumer is refused, since the two would overwrite each
  other's claims.
- When the membership is lost, the claims are forgotten: other members may own the partitions by then.
- The leader hands the members to the core in bulk, as bytes, and returns bytes.
"""

from __future__ import annotations

import inspect
import math
import time
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from kafka_assignors.assignors import StickyStreamJoinAssignor
from kafka_assignors.clients.common.codec import encode_assignment
from kafka_assignors.clients.common.unknown_topics import left_with_owners, merged
from kafka_assignors.errors import OptionError, StateError
from kafka_assignors.group import MemberState, Topic
from kafka_assignors.member.causes import PlannedGeneration
from kafka_assignors.member.handed_out import HandedOut
from kafka_assignors.member.rebalance_report import PLANNING_SHARE, Course, Planned, RebalanceReporter, publish
from kafka_assignors.member.user_data import without_generation
from kafka_assignors.options import check_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from kafka_assignors.assignor import EarlierPlans
    from kafka_assignors.assignors import (
        Assignor,
        CooperativeStickyAssignor,
        JoinedMember,
        Mode,
        Protocol,
        RackOrder,
        StickyAssignor,
    )
    from kafka_assignors.group import Plan
    from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = ["ClientAdapter", "Guard", "Membership", "StreamJoinAdapter", "Unplugged", "calling"]

T = TypeVar("T")

Guard: TypeAlias = Literal["fail", "migrate"]
"""Whether the assignments that a leader sends keep a broker from converting the group (KIP-848)."""

# The most frames above the plug-in's method in which the client's object is looked for. Users' subclasses and wrappers
# lie in between.
_FRAMES = 8


@dataclass(frozen=True, slots=True)
class Membership:
    """A consumer's membership of its group.

    Attributes:
        generation: the last one joined, also while it is being formed; negative without a membership.
        member_id: empty without a membership.
    """

    generation: int
    member_id: str

    @property
    def lost(self) -> bool:
        """Whether the consumer is not, or not yet, a member."""
        return self.generation < 0 or not self.member_id


@dataclass(frozen=True, slots=True)
class Unplugged:
    """The arguments of a plug-in, for a consumer whose membership is ours and needs no plug-in.

    Attributes:
        assignor: the strategy, with its options.
        rack: of the consumer, or None.
        on_rebalance: the user's callback, or None.
        on_broker_assignor: `fail` or `migrate`.
    """

    assignor: Assignor
    rack: str | None
    on_rebalance: Callable[[RebalanceReport], object] | None
    on_broker_assignor: Guard = "fail"


def calling(recognise: Callable[[object], T | None], frames: int = _FRAMES) -> T | None:
    """The client's object that is calling a plug-in; None if it is not found, or the interpreter shows no frames.

    No client hands its plug-ins a reference to the consumer. But a method of one of the client's objects calls the
    plug-in, so the result is the nearest `self` up the stack that `recognise` accepts, at most `frames` frames above.
    """
    frame = inspect.currentframe()
    try:
        for _ in range(frames):
            if frame is None or (frame := frame.f_back) is None:
                return None
            if (found := recognise(frame.f_locals.get("self"))) is not None:
                return found
        return None
    finally:
        del frame


@dataclass(frozen=True, slots=True)
class Packed:
    """The members of a group for the core, their topics, and whether any of them has a rack."""

    members: Sequence[JoinedMember]
    topics: Set[str]
    racks: bool


class ClientAdapter(ABC):
    """An assignor of ours as a plug-in of one client, for one consumer.

    Args:
        mode: as for the strategy's own class. Only the leader's counts.
        racks: likewise.
        rack: `client.rack` of this consumer, for assignors that prefer replicas nearby.
        on_rebalance: called with a `RebalanceReport` after each rebalance, on the client's I/O thread or event loop: it
            must be quick. Its errors are logged, and do not affect the rebalance.
        on_broker_assignor: `"fail"` writes the generation as user data into a leader's assignments, so that no broker
            converts the group to KIP-848's protocol; `"migrate"` writes none, so that a broker converts it while it
            works. Only the leader's counts.

    Raises:
        OptionError: an unknown mode, order or guard.
    """

    name: str
    _strategy: ClassVar[type[StickyAssignor | CooperativeStickyAssignor]]
    _client: ClassVar[str]
    # Whether the client does not pass on the `group.instance.id` of the group's members.
    _anonymous: ClassVar[bool] = False

    def __init__(
        self,
        *,
        mode: Mode = "fair-yet-sticky",
        racks: RackOrder = "before-stickiness",
        rack: str | None = None,
        on_rebalance: Callable[[RebalanceReport], object] | None = None,
        on_broker_assignor: Guard = "fail",
    ) -> None:
        self._begin(self._strategy(mode=mode, racks=racks), rack, on_rebalance, on_broker_assignor)

    def _begin(
        self,
        assignor: Assignor,
        rack: str | None,
        on_rebalance: Callable[[RebalanceReport], object] | None,
        on_broker_assignor: Guard,
    ) -> None:
        check_choice("on_broker_assignor", on_broker_assignor, ("fail", "migrate"))
        self._on_broker_assignor: Guard = on_broker_assignor
        self._assignor = assignor
        self._state = MemberState(rack=rack)
        self._on_rebalance = on_rebalance
        self._last_report: RebalanceReport | None = None
        self._reporter = RebalanceReporter()
        self._last_planned = PlannedGeneration()
        # The rebalance that is under way, and the membership and the topics with which the member last joined.
        self._course: Course | None = None
        self._asked_as: Membership | None = None
        self._subscribed: list[str] | None = None
        self._handed_out = HandedOut(anonymous=self._anonymous, bare=on_broker_assignor == "migrate")
        self._consumer: weakref.ref[Any] | None = None
        self._coordinator: weakref.ref[Any] | None = None

    def _unplugged(self) -> Unplugged:
        """The arguments of this plug-in. The instance itself then serves no consumer."""
        return Unplugged(self._assignor, self._state.rack, self._on_rebalance, self._on_broker_assignor)

    @property
    def state(self) -> MemberState:
        """The claims of the consumer at the next rebalance."""
        return self._state

    @property
    def last_report(self) -> RebalanceReport | None:
        """The report of the latest rebalance; None before the first."""
        return self._last_report

    def attach(self, consumer: object) -> None:
        """Ties the assignor to its consumer, for generation and membership. It keeps a weak reference.

        This is only needed where the assignor cannot find its consumer: see the client's module.

        Raises:
            StateError: it serves another consumer already.
        """
        current = self._deref(self._consumer)
        if current is not None and current is not consumer and not self._consumer_closed(current):
            raise self._shared()
        known, coordinator = self._coordinator_of(consumer)
        if coordinator is not None:
            self._serve(coordinator)
        elif known and current is not consumer and self._serving() is not None:
            raise self._shared()
        self._consumer = weakref.ref(consumer)

    # The clients call these.

    def metadata(self, topics: Iterable[str]) -> bytes:
        """The member's metadata for JoinGroup."""
        membership = self._membership()
        self._reporter.planned = None
        trigger = "group"
        if membership is not None and membership.lost:
            self._handed_out.forget()
            trigger = "joined"
            if self._state.owned or self._state.generation is not None:
                self._state.forget()
                self._reporter.expel()
                trigger = "expelled"
        subscribed = sorted(topics)
        if trigger == "group" and self._subscribed not in (None, subscribed):
            trigger = "subscription"
        self._subscribed = subscribed
        self._join(membership, trigger)
        return self._assignor.metadata(subscribed, self._claims(subscribed))

    def assign(self, cluster: Any, members: Any) -> dict[str, bytes]:
        """The leader's assignments for SyncGroup. Topics that the cluster does not know have no partitions."""
        started = time.perf_counter()
        if self._course is not None:
            self._course = replace(self._course, joined=time.monotonic())
        membership = self._membership()
        generation = None if membership is None or membership.lost else membership.generation
        packed = self._pack(members)
        partitions = self._partitions(cluster, packed)
        assignments, plan = self._plan(packed.members, partitions, generation)
        unknown = self._not_known_yet(cluster, packed.topics - partitions.keys())
        kept: dict[str, dict[str, list[int]]] = {}
        keeping: Plan | None = None
        if unknown and not plan.joins:
            # A stream join assigns each number of all its topics together, so it skips topics without metadata.
            kept, keeping = left_with_owners(
                self._claiming(packed.members),
                unknown,
                generation,
                self._handed_out.earlier_plans(),
                cooperative=self._assignor.cooperative,
            )
        assignments, longer = merged(assignments, kept)
        if self._on_broker_assignor == "migrate":
            assignments = {member_id: without_generation(each) for member_id, each in assignments.items()}
        self._handed_out.planned(generation, *filter(None, (plan, keeping)))
        counts = {name: topic if isinstance(topic, int) else topic.partitions for name, topic in partitions.items()}
        self._reporter.compared(self._last_planned.compare(generation, packed.members, counts, plan))
        seconds = time.perf_counter() - started
        self._reporter.planned = Planned(plan, plan.record_bytes + longer, seconds, self._session_seconds())
        return assignments

    def on_assignment(self, assignment: Any, generation: int | None = None) -> None:
        """Remembers the member's assignment, and then reports the rebalance."""
        if generation is None:
            membership = self._membership()
            generation = None if membership is None or membership.lost else membership.generation
        self._handed_out.taken(generation, led=self._reporter.planned is not None)
        version, assigned, user_data = self._unpack(assignment)
        self._assignor.on_assignment(encode_assignment(version, assigned, user_data), generation, self._state)
        self._report()

    # A subclass for each client implements these.

    @abstractmethod
    def _recognise(self, caller: object) -> object | None:
        """The coordinator, if an object up the stack is one or belongs to one; else None."""

    @abstractmethod
    def _coordinator_of(self, consumer: object) -> tuple[bool, object | None]:
        """Whether this version of the client shows the consumer's coordinator, and the coordinator if there is one."""

    @abstractmethod
    def _membership_of(self, coordinator: object) -> Membership | None:
        """The membership; None if this version of the client does not show it."""

    @abstractmethod
    def _coordinator_closed(self, coordinator: object) -> bool: ...

    @abstractmethod
    def _consumer_closed(self, consumer: object) -> bool: ...

    @abstractmethod
    def _pack(self, members: Any) -> Packed: ...

    @abstractmethod
    def _unpack(self, assignment: Any) -> tuple[int, Sequence[tuple[str, Sequence[int]]], bytes | None]:
        """Version, partitions by topic and user data of a decoded assignment."""

    @abstractmethod
    def _session(self, coordinator: Any) -> tuple[str, float]:
        """The group, empty if it is not known, and the session timeout in seconds, infinite if that is not known."""

    def _replica_racks(self, cluster: Any, topic: str, count: int) -> list[frozenset[str]] | None:
        """The racks of each partition's replicas; None if unknown."""
        return None

    def _not_known_yet(self, cluster: Any, topics: set[str]) -> set[str]:
        """Those of the topics without metadata that the client has not asked for yet. The others do not exist."""
        return set()

    def _rewound(self, kept: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        """Those of the kept partitions that the client reads from the group's commit after this rebalance."""
        return {}

    # A subclass for a strategy whose user data is its own implements this.

    def _claiming(self, members: Sequence[JoinedMember]) -> Sequence[JoinedMember]:
        """The members, with their claims encoded as the sticky strategy of the same protocol does."""
        return members

    # The rest is the same for all clients.

    def _plan(
        self, members: Sequence[JoinedMember], partitions: dict[str, int | Topic], generation: int | None
    ) -> tuple[dict[str, bytes], Plan]:
        return self._planner()._plan_assignment(members, partitions, generation, *self._bounds())

    def _planner(self) -> Assignor:
        """The assignor of the next plan."""
        return self._assignor

    def _bounds(self) -> tuple[EarlierPlans | None, float | None]:
        """The leader's earlier plans, and how many seconds it may search for the best plan."""
        return self._handed_out.earlier_plans(), self._planning_seconds()

    def _planning_seconds(self) -> float | None:
        """How long the leader may search for the best plan; None if its session timeout is not known."""
        session = self._session_seconds()
        return None if session is None else session * PLANNING_SHARE

    def _session_seconds(self) -> float | None:
        """The session timeout; None if it is not known."""
        coordinator = self._serving()
        session = math.inf if coordinator is None else self._session(coordinator)[1]
        return session if math.isfinite(session) else None

    @staticmethod
    def _deref(reference: weakref.ref[Any] | None) -> Any:
        return None if reference is None else reference()

    def _shared(self) -> StateError:
        kind = f"kafka_assignors.clients.{self._client}.{type(self).__name__}"
        return StateError(
            f"one {kind} instance was given to two consumers, and what they hold would get mixed up; give each "
            f"consumer an instance of its own: partition_assignment_strategy=[{type(self).__name__}()] in each call"
        )

    def _serving(self) -> Any:
        """The coordinator being served, while it is in use."""
        coordinator = self._deref(self._coordinator)
        return None if coordinator is None or self._coordinator_closed(coordinator) else coordinator

    def _serve(self, coordinator: object) -> None:
        if self._deref(self._coordinator) is coordinator:
            return
        if self._serving() is not None:
            raise self._shared()
        if self._coordinator is not None:
            # The previous consumer is closed. Its claims must not count for the new one.
            self._state.forget()
            self._handed_out.forget()
            self._reporter, self._last_planned = RebalanceReporter(), PlannedGeneration()
            self._course, self._asked_as, self._subscribed = None, None, None
        self._coordinator = weakref.ref(coordinator)

    def _membership(self) -> Membership | None:
        """The membership of the consumer that is calling; None if the client does not show it."""
        caller = calling(self._recognise)
        consumer = self._deref(self._consumer)
        if consumer is not None:
            known, own = self._coordinator_of(consumer)
            if caller is None:
                caller = own
            elif known and caller is not own and not self._consumer_closed(consumer):
                raise self._shared()
        if caller is None:
            return None
        self._serve(caller)
        return self._membership_of(caller)

    def _claims(self, topics: list[str]) -> MemberState:
        """The state without the topics that are no longer subscribed to."""
        owned, subscribed = self._state.owned, set(topics)
        if owned.keys() <= subscribed:
            return self._state
        wanted = {topic: partitions for topic, partitions in owned.items() if topic in subscribed}
        return MemberState(wanted, self._state.generation, self._state.rack)

    def _join(self, membership: Membership | None, trigger: str) -> None:
        """Takes note that the client joins. An eager client has given up all partitions just before."""
        asked_as, self._asked_as = self._asked_as, membership
        if self._course is None:
            self._course = Course(time.monotonic(), trigger=trigger)
            if not self._assignor.cooperative:
                self._reporter.give_up()
        elif not _got_an_id(asked_as, membership):
            self._course = replace(self._course, attempts=self._course.attempts + 1)

    def _partitions(self, cluster: Any, packed: Packed) -> dict[str, int | Topic]:
        found: dict[str, int | Topic] = {}
        for topic in packed.topics:
            numbers = cluster.partitions_for_topic(topic)
            if not numbers:
                continue
            count = max(numbers) + 1
            racks = self._replica_racks(cluster, topic, count) if packed.racks else None
            found[topic] = count if racks is None else Topic(count, racks=racks)
        return found

    def _report(self) -> None:
        coordinator = self._serving()
        course, self._course = self._course, None
        report = self._reporter.report(
            self.name,
            self._state.generation,
            self._state.owned,
            self._rewound,
            course=course,
            group_id="" if coordinator is None else self._session(coordinator)[0],
        )
        self._last_report = report
        publish(report, self._on_rebalance)


def _got_an_id(before: Membership | None, now: Membership | None) -> bool:
    """Whether the previous JoinGroup only asked for a member id, as the protocol requires of a new member."""
    return before is not None and now is not None and not before.member_id and bool(now.member_id) and now.lost


class StreamJoinAdapter(ClientAdapter):
    """`kafka_assignors.StickyStreamJoinAssignor` as a plug-in of one client, for one consumer.

    The leader logs, once per rebalance, which partitions stay unassigned and why. The `generation` of state and reports
    is the epoch of the assignment.

    Args:
        protocol: as for the strategy's own class, if the client can do it.
        rack: `client.rack` of this consumer. The group gets it, but it does not change the plan.
        on_rebalance: as for `ClientAdapter`.
        on_broker_assignor: as for `ClientAdapter`. With `"migrate"` the epoch is the group's generation.

    Raises:
        OptionError: an unknown protocol or guard, or a protocol that the client does not know.
    """

    _protocols: ClassVar[tuple[Protocol, ...]]

    def __init__(
        self,
        *,
        protocol: Protocol = "eager",
        rack: str | None = None,
        on_rebalance: Callable[[RebalanceReport], object] | None = None,
        on_broker_assignor: Guard = "fail",
    ) -> None:
        assignor = StickyStreamJoinAssignor(protocol)
        if protocol not in self._protocols:
            known = ", ".join(map(repr, self._protocols))
            raise OptionError(f"protocol is {protocol!r}, which {self._client} does not know; give one of {known}")
        self.name = assignor.name
        self._begin(assignor, rack, on_rebalance, on_broker_assignor)
