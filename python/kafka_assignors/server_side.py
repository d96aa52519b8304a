"""What a broker would plan: the assignors of the new protocol (KIP-848), as brokers from 4.0.0 to 4.4 compute them.

`UniformAssignor` and `ServerSideRangeAssignor` plan a group in one call, as the strategies of clients do. Their plans
are for comparison only: members of a group cannot choose these assignors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Protocol, TypeAlias

from kafka_assignors import _core
from kafka_assignors.assignor import Assignor
from kafka_assignors.errors import GroupError, GroupTypeError, OptionError
from kafka_assignors.group import checked_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from kafka_assignors.assignor import EarlierPlans, JoinedMember
    from kafka_assignors.group import MemberState, Plan, Topic

__all__ = ["BROKER", "ServerSideAssignor", "ServerSideGroup", "ServerSideRangeAssignor", "UniformAssignor"]

BROKER = "4.3"
"""The release of a broker by default."""

ServerSideName: TypeAlias = Literal["uniform", "range"]


class _Topic(Protocol):
    """A topic of a snapshot."""

    @property
    def partitions(self) -> int: ...


class _Member(Protocol):
    """A member of a snapshot's group. Members of the classic protocol have no target."""

    @property
    def id(self) -> str: ...
    @property
    def instance_id(self) -> str | None: ...
    @property
    def topics(self) -> Sequence[str]: ...
    @property
    def owned(self) -> Mapping[str, Sequence[int]]: ...


class _Group(Protocol):
    """A group of a snapshot."""

    @property
    def assignor(self) -> str: ...
    @property
    def members(self) -> Sequence[_Member]: ...


class _Snapshot(Protocol):
    """A snapshot, as `kafka_assignors.cluster.Snapshot`."""

    @property
    def topics(self) -> Mapping[str, _Topic]: ...
    @property
    def groups(self) -> Mapping[str, _Group]: ...


def _check_broker(assignor: ServerSideName, broker: str) -> None:
    if not isinstance(broker, str):
        raise OptionError(f"broker is {broker!r}; give the release of a broker as text, such as '{BROKER}'")
    _core.ServerSideGroup(assignor, broker)


class ServerSideAssignor(Assignor):
    """The base class of the broker's assignors; use one of the subclasses.

    `assign` takes the partitions that members own as their targets so far, lets the members join in the order of their
    ids, and plans once. A `Group` has no topic ids, so they are made from the names. Therefore the numbers of
    partitions, moves and spreads are the broker's, but the partitions and topics themselves may differ: a broker's
    choice among them depends on the real ids. `ServerSideGroup` is exact.
    """

    __slots__ = ()

    broker: str

    server_side_name: ClassVar[ServerSideName]

    def __post_init__(self) -> None:
        _check_broker(self.server_side_name, self.broker)

    def _options(self) -> tuple[str, str, str]:
        return self.name, self.broker, "before-stickiness"

    def refusal(self) -> str:
        """Why no member can join with it, as a sentence."""
        return (
            f"{self.name} is an assignor of the broker, which plans groups of the new protocol by itself: no member "
            "can have it as partition.assignment.strategy. It is for reading: in assign(), compare, plan, replays. For "
            f"such a group set group.protocol=consumer and group.remote.assignor={self.server_side_name}"
        )

    def _refuse(self) -> NoReturn:
        raise OptionError(self.refusal())

    def _plan_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        generation: int | None,
        earlier: EarlierPlans | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        self._refuse()

    def metadata(self, topics: Collection[str], state: MemberState) -> bytes:
        """Refused: no member joins with an assignor of the broker.

        Raises:
            OptionError: always.
        """
        self._refuse()

    def on_assignment(self, assignment: bytes, generation: int | None, state: MemberState) -> None:
        """Refused, as `metadata`.

        Raises:
            OptionError: always.
        """
        self._refuse()


@dataclass(frozen=True, slots=True)
class UniformAssignor(ServerSideAssignor):
    """The broker's `uniform` (KIP-848): numbers of partitions as equal as can be, with few moves. Racks do not count.

    With equal subscriptions it moves the least possible, from 4.0.1 on. With different ones it may miss the least
    balance score, and may move more than needed.

    Args:
        broker: the broker's release, from `"4.0.0"` to `"4.4"`. 4.0.0 gives the first members one partition more; all
            later ones plan alike.

    Raises:
        OptionError: a release whose assignors are not known, as all of 3.x.

    >>> from kafka_assignors import Group, Member
    >>> group = Group({"t": 3}, [Member("a", ["t"], owned={"t": [0, 1, 2]}, generation=1), Member("b", ["t"])])
    >>> UniformAssignor().assign(group).assignment
    {'a': {'t': [0, 1]}, 'b': {'t': [2]}}
    """

    broker: str = BROKER

    name: ClassVar[str] = "uniform"
    server_side_name: ClassVar[ServerSideName] = "uniform"


@dataclass(frozen=True, slots=True)
class ServerSideRangeAssignor(ServerSideAssignor):
    """The broker's `range` (KIP-848): of each topic, each subscriber gets a run of consecutive partitions.

    It is not sticky: a new member shifts all that come after it. Static members come first, by instance id. Racks do
    not count; in the client's `RangeAssignor` they do.

    Args:
        broker: the broker's release, from `"4.0.0"` to `"4.4"`; all of them plan alike.

    Raises:
        OptionError: a release whose assignors are not known, as all of 3.x.
    """

    broker: str = BROKER

    name: ClassVar[str] = "server-side-range"
    server_side_name: ClassVar[ServerSideName] = "range"


class ServerSideGroup:
    """A group of the new protocol at its coordinator: it takes events, and its target is exactly the broker's.

    Each event is planned at once, as by a broker with `group.consumer.assignment.interval.ms=0`. With `later=True` the
    event waits for the next event without it, or for `plan`: on a broker, all events within that interval share one
    plan. Regular expressions are resolved at once too, with a plan of their own; a broker does so at the next
    heartbeat.

    Args:
        assignor: `"uniform"` or `"range"`.
        broker: the release of the broker, from `"4.0.0"` to `"4.4"`.

    Raises:
        OptionError: another assignor, or a release whose assignors are not known.

    An event that the broker would refuse, or that is impossible, raises `GroupError` and changes nothing: an unknown
    member or topic, fewer partitions than before, an instance id of a member that has not left; `GroupTypeError` for
    values of wrong types. An event costs O(partitions + subscription entries), except for the levelling of different
    subscriptions.

    >>> group = ServerSideGroup()
    >>> group.grow("orders", 4)
    False
    >>> group.join("a", ["orders"]), group.join("b", ["orders"])
    (True, True)
    >>> group.target
    {'a': {'orders': [0, 1]}, 'b': {'orders': [2, 3]}}
    """

    __slots__ = ("_broker", "_core", "_exact")

    def __init__(self, assignor: ServerSideName = "uniform", broker: str = BROKER) -> None:
        if not isinstance(assignor, str):
            raise OptionError(f"assignor is {assignor!r}; the broker has 'uniform', 'range'")
        _check_broker(assignor, broker)
        self._core = _core.ServerSideGroup(assignor, broker)
        self._broker = broker
        self._exact = True

    def __repr__(self) -> str:
        return f"<ServerSideGroup of broker {self._broker}: {len(self._core.members())} members>"

    @property
    def broker(self) -> str:
        """The release of the broker."""
        return self._broker

    @property
    def target(self) -> dict[str, dict[str, list[int]]]:
        """Member to topic to partition numbers, in the orders of the coordinator's maps.

        The members come in the order in which the assignor processed them; topics and partitions come in the order of
        the member's target record.
        """
        return self._core.target()

    @property
    def topics(self) -> dict[str, tuple[int, str]]:
        """Topic to its partition count and its id."""
        return self._core.topics()

    @property
    def pending(self) -> bool:
        """Whether there are events that are not planned yet."""
        return self._core.pending()

    @property
    def exact(self) -> bool:
        """Whether the group began with complete information: no topic id is made up, and no order is unknown."""
        return self._exact

    def copy(self) -> ServerSideGroup:
        """An independent group in the same state, to try an event."""
        twin = ServerSideGroup.__new__(ServerSideGroup)
        twin._core, twin._broker, twin._exact = self._core.copy(), self._broker, self._exact
        return twin

    def grow(self, topic: str, partitions: int, *, id: str | None = None, later: bool = False) -> bool:
        """A topic appears, or gets more partitions.

        Args:
            topic: its name.
            partitions: how many it has now.
            id: its id, 22 characters of base64 as Kafka's tools print it. None makes an id from the name: then the
                numbers of partitions and moves are the broker's, but the partitions themselves may differ.
            later: put the plan off.

        Returns:
            Whether the target was planned anew: only if a member subscribes to the topic.
        """
        if isinstance(partitions, bool) or not isinstance(partitions, int):
            raise GroupTypeError(f"partitions is of type {type(partitions).__name__}; give an int")
        if not 0 < partitions < 2**31:
            raise GroupError(f"topic {topic!r} has {partitions} partitions; give a number from 1 to 2147483647")
        if id is None and topic not in self._core.topics():
            self._exact = False
        planned = self._core.grow(_text("topic", topic), partitions, id, later)
        return self._resolve_all(later=later) or planned

    def delete(self, topic: str, *, later: bool = False) -> bool:
        """A topic is deleted. If its name is used again, that topic has another id. Returns whether it was planned."""
        planned = self._core.delete(_text("topic", topic), later)
        return self._resolve_all(later=later) or planned

    def join(
        self,
        member: str,
        topics: Collection[str] = (),
        *,
        instance_id: str | None = None,
        expression: str | None = None,
        later: bool = False,
    ) -> bool:
        """A member joins, or sends a heartbeat with the epoch 0 again.

        Args:
            member: its id.
            topics: the names of topics, in the order of its request (librdkafka sends them in descending order); they
                need not exist.
            instance_id: `group.instance.id`. If a member with this id left and is to return, the new member takes over
                that member's target.
            expression: a regular expression of the broker (RE2), which must match the whole name of a topic.
            later: put the plan off.

        Returns:
            Whether the target was planned anew. A static member that returns with the same subscription changes
            nothing.

        Raises:
            OptionError: an expression that the broker refuses (INVALID_REGULAR_EXPRESSION, 128).
        """
        names = _names(topics)
        matcher = _matcher(expression)
        instance = None if instance_id is None else _text("instance_id", instance_id)
        planned = self._core.join(_text("member", member), instance, names, expression, later)
        return self._resolve(expression, matcher, later=later) or planned

    def subscribe(
        self, member: str, topics: Collection[str] = (), *, expression: str | None = None, later: bool = False
    ) -> bool:
        """Changes the subscription of a member. Arguments and errors as for `join`. Returns whether it was planned."""
        names = _names(topics)
        matcher = _matcher(expression)
        planned = self._core.subscribe(_text("member", member), names, expression, later)
        return self._resolve(expression, matcher, later=later) or planned

    def leave(self, member: str, *, returning: bool = False, later: bool = False) -> bool:
        """A member leaves for good (epoch -1), or is thrown out.

        Args:
            member: its id.
            returning: a static member leaves for a while (epoch -2): it keeps its target, and nothing is planned.
            later: put the plan off.

        Returns:
            Whether the target was planned anew: not if no member is left.
        """
        return self._core.leave(_text("member", member), returning, later)

    def plan(self) -> bool:
        """Plans the events that were put off. Returns whether there were any."""
        return self._core.plan()

    @classmethod
    def of(
        cls,
        snapshot: _Snapshot,
        group_id: str | None = None,
        *,
        assignor: ServerSideName | None = None,
        broker: str = BROKER,
    ) -> ServerSideGroup:
        """A group that begins in the state of a live group.

        Args:
            snapshot: of `kafka_assignors.cluster`. A group of the classic protocol goes on as if it were converted now.
            group_id: the group; it can be left out if there is only one.
            assignor: None takes the group's own; `"uniform"` for one of the classic protocol, or if there is none.
            broker: the release of the broker.

        Raises:
            GroupError: there is no such group, or a target has partitions that do not exist.
            OptionError: as for the class; also a group whose assignor the broker of that release does not have.
        """
        if group_id is None and len(snapshot.groups) == 1:
            group_id = next(iter(snapshot.groups))
        if group_id is None or group_id not in snapshot.groups:
            known = ", ".join(map(repr, sorted(snapshot.groups))) or "none"
            raise GroupError(f"group_id is {group_id!r}; the snapshot has {known}")
        found = snapshot.groups[group_id]
        classic = getattr(found, "protocol", "consumer") == "classic"
        name = assignor or ("uniform" if classic else found.assignor or "uniform")
        group = cls(name, broker)  # type: ignore[arg-type]
        existing = {topic: each for topic, each in snapshot.topics.items() if each.partitions}
        for topic, each in existing.items():
            group.grow(topic, each.partitions, id=getattr(each, "id", None))
        expressions = {getattr(member, "topic_regex", None) for member in found.members} - {None}
        for expression in expressions:
            group._resolve(expression, _matcher(expression), later=True)
        listed, places = [], [getattr(member, "place", None) for member in found.members]
        group._exact &= None not in places
        # The coordinator's order of the members, where the snapshot contains it.
        by_place = sorted(found.members, key=lambda member: getattr(member, "place", None) or 0)
        for member in by_place:
            target = getattr(member, "target", member.owned)
            expression = getattr(member, "topic_regex", None)
            # In a snapshot, the topics that match a member's expression are among its `topics`.
            names = [] if expression is not None else list(member.topics)
            # A topic that was deleted is in targets until the next plan.
            topics = [(topic, list(numbers)) for topic, numbers in target.items() if topic in existing]
            listed.append((member.id, member.instance_id, names, expression, topics))
        group._exact &= group._core.restore(listed) and not classic
        return group

    def _resolve(self, expression: str | None, matcher: _core.Expression | None, *, later: bool) -> bool:
        if expression is None or matcher is None:
            return False
        names = list(self._core.topics())
        matched = [name for name, fits in zip(names, matcher.matches(names), strict=True) if fits]
        return self._core.resolve(expression, matched, later)

    def _resolve_all(self, *, later: bool) -> bool:
        planned = [self._resolve(each, _matcher(each), later=later) for each in self._core.expressions()]
        return any(planned)


def _names(topics: Collection[str]) -> list[str]:
    """The names in the order in which they are given: that of the request."""
    checked_names(topics, "of a subscription")
    return list(dict.fromkeys(topics))


def _matcher(expression: str | None) -> _core.Expression | None:
    return None if expression is None else _core.Expression.re2(_text("expression", expression))


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise GroupTypeError(f"{what} is of type {type(value).__name__}; give a str")
    return value
