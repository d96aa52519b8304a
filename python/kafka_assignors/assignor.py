"""The base class of all assignors: planning a group, and the group protocol in bytes.

The strategies themselves are in `kafka_assignors.assignors`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from kafka_assignors import _core
from kafka_assignors.errors import GroupTypeError, RecordSizeWarning
from kafka_assignors.group import Group, MemberState, Plan, Topic, checked_names, checked_topics
from kafka_assignors.userdata import NO_GENERATION, Assignment, Subscription

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Assignor", "JoinedMember"]

JoinedMember: TypeAlias = tuple[str, bytes] | tuple[str, str | None, bytes]

# A leader's earlier plans, each with its generation; whether its client does not pass on the members' instance ids; and
# whether the assignments were sent without user data.
EarlierPlans: TypeAlias = "tuple[list[tuple[int | None, _core.Plan]], bool, bool]"

# A group's record of at least this part of the broker's default limit causes a warning.
_NEAR = 0.9


class Assignor:
    """The base class of all assignors; use one of the subclasses.

    Attributes:
        name: the name by which the members of a group agree on the strategy, as on the wire.
        cooperative: whether members keep their partitions during a rebalance (KIP-429). A client must then revoke only
            the partitions that are not in the new assignment, and rejoin.
    """

    __slots__ = ()

    name: ClassVar[str]
    cooperative: ClassVar[bool] = False

    def _options(self) -> tuple[str, str, str]:
        """Name, mode and rack order, for the core."""
        return self.name, "fair-yet-sticky", "before-stickiness"

    def assign(self, group: Group, *, generation: int | None = None) -> Plan:
        """Plans a group.

        Args:
            group: the members and the topics.
            generation: the generation being formed, if known. A claim of this generation, or of a newer one, is false
                and does not count.

        Returns:
            The plan. It depends on the values of the group only: not on the order of members, topics or partitions, nor
            on earlier calls.

        Raises:
            GroupError: claims, partition counts or generations that cannot be represented.
            GroupTypeError: `group` is not a `Group`, or holds values of wrong types.
            KeyboardInterrupt: Ctrl-C while the main thread plans. Planning ends at once, also with an error that the
                handler of another signal raises.
        """
        if not isinstance(group, Group):
            raise GroupTypeError(f"group is of type {type(group).__name__}; give a Group")
        plan = Plan(_core.assign(*self._options(), dict(group.topics), group.members, known_generation(generation)))
        warn_of_record_size(plan)
        return plan

    def perform_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        *,
        generation: int | None = None,
    ) -> dict[str, bytes]:
        """Plans a group as its leader, between JoinGroup and SyncGroup: bytes to bytes.

        The members' metadata is read, and their assignments are written, without a Python object per partition.

        Args:
            members: `(member_id, metadata)` or `(member_id, instance_id, metadata)` of every member, as in the
                coordinator's answer; `metadata` are ConsumerProtocolSubscription bytes. A repeated member counts once.
            partitions: the partition count, or the `Topic` with racks, of every topic that members name and that
                exists.
            generation: the generation being formed, if known. A claim of this generation, or of a newer one, is false
                and does not count.

        Returns:
            Member id to ConsumerProtocolAssignment bytes, also for a member without partitions.

        Raises:
            GroupError: a partition count that is not possible, or a text that is not valid Unicode.
            GroupTypeError: an entry that is not such a tuple.

        A member whose bytes cannot be read gets no partitions; the others are not affected. `Plan.faults` names it.
        Time and memory are linear in the bytes, except for the balancing of different subscriptions.
        """
        return self.plan_assignment(members, partitions, generation=generation)[0]

    def plan_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        *,
        generation: int | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        """As `perform_assignment`, and the plan behind the bytes, for the leader's report.

        The plan's `faults` are the members whose metadata could not be read, or not in full.
        """
        assignments, plan = self._plan_assignment(members, partitions, generation)
        warn_of_record_size(plan)
        return assignments, plan

    def _plan_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        generation: int | None,
        earlier: EarlierPlans | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        """As `plan_assignment`, without its warning: under `-W error` the warning would fail a client's rebalance.

        Claims that the leader's `earlier` plans show to be false do not count. The search for the best plan ends after
        so many `seconds`; then `Plan.limited` is set.
        """
        if not isinstance(partitions, dict):
            partitions = checked_topics(partitions)
        forming = known_generation(generation)
        options = self._options()
        assignments, core = _core.perform_assignment(*options, members, partitions, forming, earlier, seconds)
        return assignments, Plan(core)

    def metadata(self, topics: Collection[str], state: MemberState) -> bytes:
        """The ConsumerProtocolSubscription that a member sends in JoinGroup: version 3, in canonical form.

        The same topics and state give the same bytes, so that a follower that rejoins a stable group causes no
        rebalance.

        Args:
            topics: the topics that the consumer subscribes to; order and repeats carry no meaning.
            state: the state of the consumer.

        Raises:
            GroupTypeError: `topics` is not a collection of strings.
            UserDataError: a value that the protocol has no form for, such as a name of more than 32,767 bytes.

        >>> from kafka_assignors import StickyAssignor
        >>> StickyAssignor().metadata(["t"], MemberState(rack="a")).hex()
        '000300000001000174ffffffff00000000ffffffff000161'
        """
        return self._subscription(checked_names(topics, "of a subscription"), state).encode()

    def _subscription(self, topics: tuple[str, ...], state: MemberState) -> Subscription:
        """The subscription of a member; here without any claims."""
        return Subscription(topics=topics, rack=state.rack)

    def on_assignment(self, assignment: bytes, generation: int | None, state: MemberState) -> None:
        """Stores a member's assignment in `state`, for the next `metadata`.

        Args:
            assignment: the ConsumerProtocolAssignment bytes as received in SyncGroup.
            generation: the group's generation. If it is None or negative, the generation in the assignment's user data
                counts, where our leaders write it.
            state: is changed only if the bytes can be read.

        Raises:
            UserDataError: the bytes are no assignment. Empty bytes are none either; a broker hands them to a member
                that the leader left out.

        >>> from kafka_assignors import StickyAssignor
        >>> state = MemberState()
        >>> StickyAssignor().on_assignment(Assignment({"t": [2]}, user_data=bytes([0, 0, 0, 7])).encode(), None, state)
        >>> state
        MemberState(owned={'t': [2]}, generation=7, rack=None)
        """
        received = Assignment.decode(assignment)
        generation = known_generation(generation)
        if generation is None:
            generation = known_generation(received.generation)
        state.owned = {topic: list(numbers) for topic, numbers in received.partitions.items()}
        state.generation = generation


def record_size_problem(plan: Plan) -> str | None:
    """A warning if the record of the group is near the default limit of brokers, or above it; else None."""
    size, limit = plan.record_bytes, _core.DEFAULT_RECORD_LIMIT
    if size < _NEAR * limit:
        return None
    return (
        f"the record of this group has about {size:,} bytes of the {limit:,} that brokers accept by default; "
        f"{'beyond that' if size < limit else 'unless it is raised'} the group cannot form (SyncGroup fails with "
        "UNKNOWN_SERVER_ERROR): raise max.message.bytes of the topic __consumer_offsets, or use fewer partitions"
    )


def warn_of_record_size(plan: Plan) -> None:
    problem = record_size_problem(plan)
    if problem is not None:
        warnings.warn(problem, RecordSizeWarning, stacklevel=3)


def generation_on_wire(generation: int | None) -> int:
    """The generation for the protocol, in which -1 is none."""
    return NO_GENERATION if generation is None else generation


def known_generation(generation: int | None) -> int | None:
    """The generation for the core, in which None is none."""
    return None if generation is None or generation < 0 else generation
