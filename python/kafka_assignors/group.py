"""The vocabulary of the package: a group, its members and topics, and the plan that an assignor makes of them.

`Topic`, `Member` and `Group` are values: frozen, comparable, picklable. Their constructors check them; `assign` checks
what concerns the whole group, such as the sum of all partitions.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, NoReturn, SupportsIndex

from kafka_assignors import _core
from kafka_assignors.errors import GroupError, GroupTypeError, PlanError

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "Certificate",
    "Group",
    "Member",
    "MemberState",
    "Move",
    "Notice",
    "Plan",
    "Topic",
    "Unassigned",
    "balance_score",
]


def _type_name(value: object) -> str:
    return type(value).__name__


def _check_text(value: object, what: str, *, optional: bool = False) -> None:
    if not (isinstance(value, str) or (optional and value is None)):
        wanted = "a str or None" if optional else "a str"
        raise GroupTypeError(f"{what} is of type {_type_name(value)}; give {wanted}")


# The most bytes of a member's `data`, as `CustomUserData.MOST`.
_MOST_DATA = 65_536


def _integer(value: object, what: str) -> int:
    """The value as an `int`; the integers of other libraries, such as numpy's, are accepted."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise GroupTypeError(f"{what} is of type {_type_name(value)}; give an integer")
    return operator.index(value)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its partition count and, if known, the racks of its replicas.

    Args:
        partitions: the number of partitions, 0 or more; they are numbered from 0.
        racks: for each partition, by number, the racks of its replicas; None, or an empty set, where they are unknown.

    Raises:
        GroupError: a negative count, or racks for another number of partitions.
        GroupTypeError: a count that is not an integer, or racks that are not collections of strings.

    >>> Topic(2, racks=[{"a", "b"}, {"b"}]).racks[1]
    frozenset({'b'})
    """

    partitions: int
    racks: Sequence[Collection[str] | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", _integer(self.partitions, "partitions of a Topic"))
        if self.partitions < 0:
            raise GroupError(f"partitions of a Topic is {self.partitions}; a partition count cannot be negative")
        if self.racks is None:
            return
        if isinstance(self.racks, str) or not isinstance(self.racks, Iterable):
            raise GroupTypeError(
                f"racks of a Topic is of type {_type_name(self.racks)}; give a set of str per partition"
            )
        sets: list[frozenset[str]] = []
        # Equal sets become one object, so that the core reads it once.
        known: dict[frozenset[str], frozenset[str]] = {}
        for number, racks in enumerate(self.racks):
            if isinstance(racks, str) or not (racks is None or isinstance(racks, Iterable)):
                raise GroupTypeError(f"racks[{number}] of a Topic is of type {_type_name(racks)}; give a set of str")
            found = frozenset(racks or ())
            sets.append(known.setdefault(found, found))
        if len(sets) != self.partitions:
            raise GroupError(
                f"a Topic has {self.partitions} partitions but racks for {len(sets)}; give one set per partition"
            )
        for rack in frozenset().union(*sets):
            _check_text(rack, "a rack of a Topic")
        object.__setattr__(self, "racks", tuple(sets))


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group: its subscription, and the partitions that it claims to have owned.

    Args:
        id: the member id, unique in its group.
        topics: the topics that it subscribes to; order and repeats do not matter.
        owned: topic to the partition numbers that it held so far; None and an empty mapping mean the same. A partition
            that no longer exists, or whose topic it no longer subscribes to, does not count; it is no error.
        generation: the generation in which it got these partitions; None, or a negative number, if unknown. If two
            members claim one partition, the claim with the newer generation counts; with equal generations neither
            claim counts.
        instance_id: `group.instance.id` of a static member.
        rack: the rack where it runs, for assignors that prefer replicas nearby.
        data: the bytes that `member_data` of the member's own
            [`CustomAssignor`][kafka_assignors.own.CustomAssignor] returns, at most 65,536. Other assignors ignore them.

    Raises:
        GroupError: `data` is too long.
        GroupTypeError: a field has the wrong type.

    >>> Member("c0", ["orders"], owned={"orders": range(2)}, generation=7).owned
    {'orders': [0, 1]}
    """

    id: str
    topics: Collection[str]
    owned: Mapping[str, Iterable[int]] | None = None
    generation: int | None = None
    instance_id: str | None = None
    rack: str | None = None
    data: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        _check_text(self.id, "a member's id")
        of = f"of member {self.id!r}"
        object.__setattr__(self, "topics", checked_names(self.topics, of))
        if self.owned is not None:
            object.__setattr__(self, "owned", _owned(self.owned, of))
        if self.generation is not None:
            object.__setattr__(self, "generation", _integer(self.generation, f"generation {of}"))
            if self.generation >= 2**31:
                raise GroupError(f"generation {of} is {self.generation}; generations are 32-bit integers")
        _check_text(self.instance_id, f"instance_id {of}", optional=True)
        _check_text(self.rack, f"rack {of}", optional=True)
        if not isinstance(self.data, bytes):
            raise GroupTypeError(f"data {of} is of type {_type_name(self.data)}; give bytes")
        if len(self.data) > _MOST_DATA:
            raise GroupError(f"data {of} has {len(self.data):,} bytes; give at most {_MOST_DATA:,}")


def checked_names(topics: Collection[str], of: str) -> tuple[str, ...]:
    """Topic names, sorted and without repeats; `of` names the owner in errors.

    Raises:
        GroupTypeError: not a collection of strings.
    """
    if isinstance(topics, str | bytes) or not isinstance(topics, Iterable):
        raise GroupTypeError(f"topics {of} is of type {_type_name(topics)}; give a list of topic names")
    names = frozenset(topics)
    for name in names:
        _check_text(name, f"a topic {of}")
    return tuple(sorted(names))


def _owned(owned: object, of: str) -> dict[str, list[int]]:
    if not isinstance(owned, Mapping):
        raise GroupTypeError(f"owned {of} is of type {_type_name(owned)}; give a mapping of topic to partition numbers")
    # Plans return millions of dictionaries of lists. These are copied without a check of each entry.
    if set(map(type, owned)) <= {str} and set(map(type, owned.values())) <= {list, tuple, range}:
        return dict(zip(owned, map(list, owned.values()), strict=True))
    copied: dict[str, list[int]] = {}
    for topic, partitions in owned.items():
        _check_text(topic, f"a topic in owned {of}")
        if isinstance(partitions, str | bytes) or not isinstance(partitions, Iterable):
            raise GroupTypeError(
                f"owned[{topic!r}] {of} is of type {_type_name(partitions)}; give a list of partition numbers"
            )
        copied[topic] = list(partitions)
    return copied


@dataclass(frozen=True, slots=True)
class Group:
    """The input of an assignor: topics and members.

    Args:
        topics: topic to partition count, or to `Topic` where replica racks are known.
        members: the members; their order does not matter.

    Raises:
        GroupError: a negative partition count, or a member id given twice.
        GroupTypeError: a field has the wrong type.

    A topic that a member subscribes to and that `topics` lacks is left out. A leader does the same with topics that do
    not exist.

    >>> Group(topics={"orders": 3}, members=[Member("c0", ["orders"]), Member("c0", ["orders"])])
    Traceback (most recent call last):
        ...
    kafka_assignors.errors.GroupError: member id 'c0' is given twice; ids must be unique in a group
    """

    topics: Mapping[str, int | Topic]
    members: Sequence[Member]

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", checked_topics(self.topics))
        if isinstance(self.members, str | bytes | Mapping) or not isinstance(self.members, Iterable):
            raise GroupTypeError(f"members of a Group is of type {_type_name(self.members)}; give a list of Member")
        members = tuple(self.members)
        seen: set[str] = set()
        for position, member in enumerate(members):
            if not isinstance(member, Member):
                raise GroupTypeError(f"members[{position}] is of type {_type_name(member)}; give a Member")
            if member.id in seen:
                raise GroupError(f"member id {member.id!r} is given twice; ids must be unique in a group")
            seen.add(member.id)
        object.__setattr__(self, "members", members)

    def partitions(self, topic: str) -> int:
        """The partition count of a topic.

        Raises:
            GroupError: the group has no such topic.

        >>> Group(topics={"orders": Topic(3)}, members=[]).partitions("orders")
        3
        """
        found = self.topics.get(topic)
        if found is None:
            raise GroupError(f"the group has no topic {topic!r}")
        return found.partitions if isinstance(found, Topic) else found


def checked_topics(topics: Mapping[str, int | Topic]) -> dict[str, int | Topic]:
    """A copy of a mapping of topic to partition count or `Topic`, checked.

    Raises:
        GroupError: a negative partition count.
        GroupTypeError: not such a mapping.
    """
    if not isinstance(topics, Mapping):
        raise GroupTypeError(f"topics is of type {_type_name(topics)}; give a mapping of topic to partition count")
    copied = dict(topics)
    for name, topic in copied.items():
        _check_text(name, "a topic's name")
        if isinstance(topic, Topic):
            continue
        count = copied[name] = _integer(topic, f"the partition count of topic {name!r}")
        if count < 0:
            raise GroupError(f"topic {name!r} has {count} partitions; a partition count cannot be negative")
    return copied


@dataclass(slots=True)
class MemberState:
    """The memory of one consumer from one rebalance to the next. Consumers never share one.

    Attributes:
        owned: topic to the partition numbers of its last assignment; empty before the first.
        generation: the generation of that assignment; None before the first, or where it is not known.
        rack: the rack of the consumer (`client.rack`); None if it does not matter.

    >>> state = MemberState(rack="a")
    >>> state
    MemberState(owned={}, generation=None, rack='a')
    """

    owned: dict[str, list[int]] = field(default_factory=dict)
    generation: int | None = None
    rack: str | None = None

    def forget(self) -> None:
        """Forgets the assignment after the membership was lost: an old claim must not come back. The rack stays."""
        self.owned = {}
        self.generation = None


class Move(NamedTuple):
    """A partition that changes its owner. `source` is None if it had no owner; `target` is None if it gets none."""

    topic: str
    partition: int
    source: str | None
    target: str | None


class Notice(NamedTuple):
    """A remark about a topic.

    Attributes:
        topic: its name.
        partitions: its partition count; 0 if it does not exist.
        text: the remark.
    """

    topic: str
    partitions: int
    text: str


class Unassigned(NamedTuple):
    """A partition that no member gets, and the reason."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """The figures of a valid plan, and the best figures that any plan of the group can have.

    The bounds are exact: one plan meets them all. They are taken in the order that the assignor's mode promises, so
    each is the least value among the plans that meet the bounds before it. A plan that misses an earlier bound may
    well be below a later one.

    For a stream join all values count partition numbers instead of partitions: the strategy assigns numbers.

    A verification has a limit of steps, far above the steps of usual groups. Past it the plan is still certified as
    valid, and the bounds that were not reached are None.

    Attributes:
        balance_score: the plan's KIP-54 balance score; of a cooperative plan, once withheld partitions are handed out.
        balance_score_bound: the least possible one; in the mode `"sticky-yet-fair"`, if no owned partition moves.
        moved: partitions that had an owner and change it.
        moved_bound: the least possible number of them; 0 in the mode `"fair"`, where it does not count.
        kept: partitions that stay with their owner.
        rack_misses: partitions that are read from another rack; 0 if racks are not known.
        rack_misses_bound: the least possible number of them.
        optimal: whether it is proven that the plan meets every bound that its mode promises.
        limited: the search for a bound that reached the limit of steps, and why; None if none did.
        left_out: partitions that a member could have and that a [`CustomAssignor`][kafka_assignors.own.CustomAssignor]
            leaves without an owner. Such a plan is not optimal.
        load: of a weighted plan, the load of the most loaded member relative to its capacity; else None. Such a plan
            has no bound of the balance score, unless all weights and capacities are equal; `moved_bound` is of the
            plans whose worst load is as low, or within the tolerance.
        load_bound: a proven lower bound of it in any plan.
    """

    balance_score: int
    balance_score_bound: int | None
    moved: int
    moved_bound: int | None
    kept: int
    rack_misses: int
    rack_misses_bound: int | None
    optimal: bool
    limited: str | None = None
    left_out: int = 0
    load: float | None = None
    load_bound: float | None = None


NO_SUBSCRIBER = "no subscriber"
NOT_PLANNED = "not-planned"


def _reason(kind: str, who: str | None, other: str | None) -> str:
    match kind:
        case "withheld":
            return f"withheld from {who!r} until {other!r} revokes it"
        case "contested":
            return f"withheld from {who!r} until the members that claim it have revoked it"
        case "owner-not-subscribed":
            return f"its number belongs to {who!r}, which does not subscribe to the topic"
        case "not-planned":
            return NOT_PLANNED
        case "not-allowed":
            return "no subscriber is allowed to have it"
        case "full":
            return "all members that may have it are at their capacity"
        case "beyond":
            return f"its number is beyond the partition count of {other!r}, the smallest topic of the join"
        case _:
            return NO_SUBSCRIBER


_NOTICES = {
    "missing": "members subscribe to it, but it does not exist or has no partition; the join goes on without it",
    "shrunk": "members held partition numbers that it does not have: it lost partitions, which is unsafe in a join, or "
    "it is new and smaller than the others",
    "cuts": "it has fewer partitions than other topics of the join, whose higher numbers stay unassigned",
}


class Plan(Mapping[str, dict[str, list[int]]]):
    """The assignment that an assignor made for a group: which member gets which partitions.

    A read-only mapping of member id to that member's partitions, `{topic: ascending partition numbers}`; every member
    has a key. Each property is computed at its first use and then kept; the caller must not change the dictionaries and
    lists that a plan returns. Several threads may read one plan.

    Source: KIP-54 (score, stickiness), KIP-429 (withheld partitions).

    >>> from kafka_assignors import StickyAssignor
    >>> plan = StickyAssignor().assign(Group({"orders": 2, "audit": 1}, [Member("c0", ["orders"])]))
    >>> plan["c0"]
    {'orders': [0, 1]}
    >>> plan.unassigned
    [Unassigned(topic='audit', partition=0, reason='no subscriber')]
    """

    def __init__(self, core: _core.Plan, *, error: str | None = None, warnings: tuple[str, ...] = ()) -> None:
        self._core = core
        self._error = error
        self._warnings = warnings

    def __getitem__(self, member_id: str) -> dict[str, list[int]]:
        """The partitions of one member. O(members' log + its partitions) until `assignment` has been asked for."""
        if "assignment" in self.__dict__:
            return self.assignment[member_id]
        owned = self._core.assignment_of(member_id) if isinstance(member_id, str) else None
        if owned is None:
            raise KeyError(member_id)
        return owned

    def __iter__(self) -> Iterator[str]:
        return iter(self._core.member_ids)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return (
            f"<Plan of {len(self)} members: balance score {self.balance_score}, {self.kept} kept, {self.moved} moved, "
            f"{len(self.unassigned)} unassigned>"
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Plan cannot be pickled; pickle plan.assignment, or the Group and plan it again")

    @cached_property
    def assignment(self) -> dict[str, dict[str, list[int]]]:
        """Member to topic to partition numbers: members and topics in byte order, numbers ascending. O(partitions)."""
        return self._core.assignment()

    @cached_property
    def balance_score(self) -> int:
        """The sum of the load differences of all pairs of members (KIP-54); 0 is perfect."""
        return self._core.balance_score

    @cached_property
    def _kept_and_moved(self) -> tuple[int, int]:
        return self._core.kept_and_moved()

    @property
    def kept(self) -> int:
        """How many partitions stay with the member that owned them."""
        return self._kept_and_moved[0]

    @property
    def moved(self) -> int:
        """How many partitions had an owner and change it. A withheld one counts for the member that will get it."""
        return self._kept_and_moved[1]

    @cached_property
    def moves(self) -> list[Move]:
        """Every change of owner, by topic and partition; also partitions that had no owner (`source` is None).

        An owner is a present, subscribed member whose claim counted. A withheld partition is listed with the member
        that will get it.
        """
        return list(map(Move._make, self._core.moves()))

    @cached_property
    def unassigned(self) -> list[Unassigned]:
        """Every partition without a new owner, by topic and partition, with the reason.

        The reason is `"no subscriber"`; `"not-planned"` if a `CustomAssignor` left the partition out; the restriction
        of `sticky_within` that leaves it out; in cooperative rebalancing, the member that must revoke it before it can
        be handed out; in a stream join, the topic that is too small for its number, or the member that owns its number
        but is not subscribed.
        """
        reasons: dict[tuple[str, str | None, str | None], str] = {}
        unassigned = []
        for topic, partition, kind, who, other in self._core.unassigned():
            reason = reasons.get((kind, who, other))
            if reason is None:
                reason = reasons[kind, who, other] = _reason(kind, who, other)
            unassigned.append(Unassigned(topic, partition, reason))
        return unassigned

    @property
    def limited(self) -> str | None:
        """The search for a better plan that reached a limit, and why; None if none did.

        Planning has a limit of steps, because other members write the metadata; usual groups stay far below it. The
        leader of a client also has a limit of time, a quarter of its session timeout. A limited plan is valid, and the
        best one found so far.
        """
        return self._core.limited

    @property
    def error(self) -> str | None:
        """Why the group's own assignor did not make this plan, and its fallback did; None if nothing failed.

        Only of a [`CustomAssignor`][kafka_assignors.own.CustomAssignor].
        """
        return self._error

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the plan of a [`CustomAssignor`][kafka_assignors.own.CustomAssignor], a sentence each."""
        return self._warnings

    @property
    def joins(self) -> bool:
        """Whether this is the plan of a stream join."""
        return self._core.joins

    @cached_property
    def notices(self) -> list[Notice]:
        """Remarks about the topics of a stream join; empty for other strategies.

        A topic has a remark if it does not exist or has no partition; if members held partition numbers that it does
        not have; or if it is smaller than other topics, so that their higher numbers stay unassigned.
        """
        return [Notice(topic, count, _NOTICES[kind]) for topic, kind, count in self._core.notices()]

    @cached_property
    def _certificate(self) -> Certificate:
        score, moved, kept, misses, optimal, limited, left_out, load = self._core.verify()
        return Certificate(*score, *moved, kept, *misses, optimal, limited, left_out, *(load or (None, None)))

    def verify(self, require_optimal: bool = False) -> Certificate:
        """Checks the plan with code that shares nothing with the solver.

        The plan is valid if every partition goes to one subscriber, except those in `unassigned`, whose reasons are
        derived again; and if a cooperative rebalance hands out no partition that another member still holds. Then the
        least possible balance score and the fewest possible moves are proven.

        Args:
            require_optimal: whether a valid plan that is not the best one is an error too.

        Raises:
            PlanError: the plan is not valid; or, where that is required, not optimal, or not proven to be.

        For an optimal plan it takes about as long as planning, for others longer, up to a limit of steps. A Ctrl-C ends
        it with `KeyboardInterrupt`.

        >>> from kafka_assignors import StickyAssignor
        >>> plan = StickyAssignor().assign(Group({"t": 3}, [Member("c0", ["t"]), Member("c1", ["t"])]))
        >>> plan.verify(require_optimal=True).balance_score_bound
        1
        """
        certificate = self._certificate
        if require_optimal and not certificate.optimal:
            possible = "possible" if certificate.load is None else "the bound"
            found = ", ".join(
                f"{what} {value} where {bound} is {possible}"
                for what, value, bound in (
                    ("balance score", certificate.balance_score, certificate.balance_score_bound),
                    ("rack misses", certificate.rack_misses, certificate.rack_misses_bound),
                    ("moved", certificate.moved, certificate.moved_bound),
                    ("worst load", certificate.load, certificate.load_bound),
                )
                if value is not None and bound is not None and value > bound
            )
            if certificate.left_out:
                found = ", ".join(filter(None, [f"{certificate.left_out} partitions left out", found]))
            if not found:
                raise PlanError(f"the plan is valid, but not proven optimal: {certificate.limited}")
            if certificate.load is not None:
                # The bounds of a weighted plan need not be reached by any plan.
                raise PlanError(f"the plan is valid, but not proven optimal: {found}")
            raise PlanError(f"the plan is valid but not optimal: {found}; assign with StickyAssignor for the best one")
        return certificate

    @cached_property
    def lag_by_member(self) -> dict[str, int] | None:
        """The total lag of each member, if the plan was made with lags; else None.

        For the plans of other strategies there is [`lag_by_member`][kafka_assignors.lag.lag_by_member].
        """
        totals = self._core.lag_by_member()
        return None if totals is None else dict(zip(self._core.member_ids, totals, strict=True))

    @cached_property
    def _lag_bound(self) -> tuple[int | None, str | None]:
        return self._core.lag_bound() or (None, None)

    @property
    def lag_bound(self) -> int | None:
        """A proven lower bound of the heaviest member's lag in any plan of the group; None without lags.

        It is the larger of two: the largest lag of one partition, and the lag of the members if the records of a topic
        could be split evenly among its subscribers.
        """
        return self._lag_bound[0]

    @property
    def lag_bound_limited(self) -> str | None:
        """Why a larger `lag_bound` may be provable: the search for it ended early. None where it did not."""
        return self._lag_bound[1]

    @cached_property
    def load_by_member(self) -> dict[str, float] | None:
        """The weight of each member's partitions, if the plan is weighted; else None.

        In the unit of the weights, not divided by the capacities; of a cooperative plan, once withheld partitions are
        handed out. See [`WeightedAssignor`][kafka_assignors.weighted.WeightedAssignor].
        """
        loads = self._core.load_by_member()
        return None if loads is None else dict(zip(self._core.member_ids, loads, strict=True))

    @cached_property
    def _worst_load(self) -> tuple[float, float] | tuple[None, None]:
        return self._core.worst_load() or (None, None)

    @property
    def worst_load(self) -> float | None:
        """The load of the most loaded member, divided by its capacity; None if the plan is not weighted."""
        return self._worst_load[0]

    @property
    def load_bound(self) -> float | None:
        """A proven lower bound of `worst_load` in any plan of the group; None if the plan is not weighted."""
        return self._worst_load[1]

    @cached_property
    def faults(self) -> dict[str, str]:
        """Members whose metadata could not be read in full, with the reason. The readable part of it counted."""
        reasons: dict[str, list[str]] = {}
        for member_id, reason in self._core.faults:
            reasons.setdefault(member_id, []).append(reason)
        return {member_id: "; ".join(found) for member_id, found in reasons.items()}

    @property
    def record_bytes(self) -> int:
        """The size in bytes of the record that the broker writes for this generation of the group.

        By default brokers refuse more than 1,048,588 (`max.message.bytes` of `__consumer_offsets`); the group then
        cannot form. The size is exact except for fields that a leader does not see, such as host names: it includes an
        allowance for them. For a plan of a `Group` it supposes members of this package that claim their partitions of
        this plan.
        """
        return self._core.record_bytes

    @property
    def seconds(self) -> float:
        """The time to read the members' metadata (if it was bytes), to plan, and to write assignments."""
        return self._core.seconds


def balance_score(loads: Mapping[str, int] | Iterable[int]) -> int:
    """The KIP-54 balance score of loads: the sum of |difference| over all pairs of members. O(members log members).

    Args:
        loads: partitions per member: a mapping of member to count, or any iterable of counts.

    Raises:
        GroupError: a count that is negative or does not fit 64 bits.
        GroupTypeError: a count that is not an integer.

    >>> balance_score({"c0": 1, "c1": 2, "c2": 3})
    4
    >>> balance_score([7, 7])
    0
    """
    counts = [_integer(count, "a load") for count in (loads.values() if isinstance(loads, Mapping) else loads)]
    if counts and not 0 <= min(counts) <= max(counts) < 2**64:
        raise GroupError("a load is negative or does not fit 64 bits; loads are counts of partitions")
    return _core.balance_score(counts)
