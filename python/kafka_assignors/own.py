"""Your own assignor: ten lines of Python, with checks and a fallback that protect the group from its faults.

>>> class Failover(CustomAssignor):
...     name = "failover"
...     def plan(self, group):
...         first, *_ = sorted(group.members, key=lambda member: member.id)
...         return {first.id: {topic: range(group.partitions(topic)) for topic in group.topics}}
>>> from kafka_assignors import Group, Member
>>> plan = Failover().assign(Group({"orders": 3}, [Member("a", ["orders"]), Member("b", ["orders"])]))
>>> plan.assignment, plan.verify().balance_score_bound
({'a': {'orders': [0, 1, 2]}, 'b': {}}, 1)
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from kafka_assignors import _core
from kafka_assignors.assignor import Assignor, generation_on_wire, known_generation, warn_of_record_size
from kafka_assignors.assignors import CooperativeStickyAssignor, StickyAssignor, by_name
from kafka_assignors.errors import GroupTypeError, OptionError, PlanError
from kafka_assignors.group import NOT_PLANNED, Group, Member, Plan, checked_topics
from kafka_assignors.own_plan import checked_plan
from kafka_assignors.printable import SENTENCE, listed, printable
from kafka_assignors.server_side import ServerSideAssignor
from kafka_assignors.userdata import CustomUserData, Subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.assignor import EarlierPlans, JoinedMember
    from kafka_assignors.group import MemberState, Topic
    from kafka_assignors.own_plan import PlannedPartitions

__all__ = ["CustomAssignor", "checked_name"]

logger = logging.getLogger("kafka_assignors")

LONGEST_NAME = 249
"""The most bytes of an assignor's name."""

# Names of the assignors of Kafka Streams, Faust, Kafka Connect, KafkaJS and kafka-go, and of ours that are registered
# later than this module is imported. Members with such an assignor send other user data.
_TAKEN = frozenset(
    (
        "stream",
        "faust",
        "default",
        "compatible",
        "sessioned",
        "RoundRobinAssigner",
        "rack-affinity",
        "weighted",
        "cooperative-weighted",
    )
)

# For each of its first _COMPARED plans a leader calls `plan` twice: two different results lead to a warning.
_COMPARED = 3
# The longest call of `plan`, in seconds, that is repeated for the comparison.
_QUICK_SECONDS = 1.0


def _is_ours(name: str) -> bool:
    try:
        by_name(name)
    except OptionError:
        return name in _TAKEN
    return True


def checked_name(name: object, of: str) -> str:
    """The name of a user's own assignor.

    Args:
        name: the name.
        of: its class, for the error.

    Raises:
        OptionError: it is no text, empty, too long, taken, or has characters that a list of names cannot have.
    """
    if not isinstance(name, str):
        raise OptionError(f"name of {of} is of type {type(name).__name__}; give the text that the group agrees on")
    shown = printable(name)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise OptionError(f"name of {of} is not valid Unicode; the protocol carries UTF-8") from None
    if not 0 < size <= LONGEST_NAME:
        raise OptionError(f"name of {of} has {size} bytes; give 1 to {LONGEST_NAME}")
    if not name.isprintable() or name != name.strip() or set(name) & set(",()"):
        raise OptionError(f"name of {of} is {shown!r}; give printable text without commas and parentheses")
    if _is_ours(name):
        raise OptionError(f"name of {of} is {shown!r}, which is taken: members with that assignor send other data")
    return name


@dataclass(slots=True)
class _Watch:
    """The comparisons and log messages of one assignor object, so that no message is logged twice. Thread-safe."""

    compared: int = 0
    logged: set[str] = field(default_factory=set)
    lock: Any = field(default_factory=threading.Lock)

    def compares(self) -> bool:
        """Whether the next plan is to be compared with a second one."""
        with self.lock:
            self.compared += 1
            return self.compared <= _COMPARED

    def stop_comparing(self) -> None:
        """Ends the comparisons: one report of plans that differ is enough."""
        with self.lock:
            self.compared = _COMPARED

    def first(self, what: str) -> bool:
        """Whether this text was not logged before; from now on it counts as logged."""
        with self.lock:
            known = what in self.logged
            self.logged.add(what)
            return not known


class CustomAssignor(Assignor, ABC):
    """The base class of your own assignor: override `plan`, and give it a `name`.

    An assignor is a value: its options and nothing else. One object may serve several consumers and threads, and is
    pickled for Spark. The returned plan is checked before it is used: its members, topics and partitions exist, members
    subscribe to the topics that they get, and no partition is given twice. A partition that the plan leaves out is
    unassigned, with the reason `"not-planned"`.

    A leader in a group never stops for a bug: for an exception or a wrong plan the error is logged once with its
    traceback, `Plan.error` contains it, and `fallback` plans. `assign`, without a client, raises instead.

    Attributes:
        name: the name on which the members of the group agree, at most 249 bytes. Names of this package's assignors and
            of those of the clients are refused.
        cooperative: whether members keep their partitions during a rebalance (KIP-429). The two phases are done for
            you: `plan` returns the final owners.
        fallback: the assignor that plans if `plan` fails; None lets the rebalance fail, and the group tries it again. A
            client with a plug-in raises the error from the call that waits for the rebalance, and tries again in the
            next one.

    Raises:
        OptionError: a name or a fallback that cannot be used; when the class is made, or at the first use.
    """

    name: ClassVar[str]
    cooperative: ClassVar[bool] = False
    fallback: ClassVar[Assignor | None] = StickyAssignor()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "name" in own and not hasattr(own["name"], "__get__"):
            checked_name(own["name"], cls.__qualname__)
        if "fallback" in own and not hasattr(own["fallback"], "__get__"):
            _checked_fallback(own["fallback"], cls.__qualname__)

    @abstractmethod
    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        """The plan: member id to topic to partition numbers. Members that get nothing may be left out.

        Give the same plan for the same group, or another leader moves partitions for nothing; a leader checks this
        with its first plans.

        Args:
            group: the members with their subscriptions, instance ids, racks and `data`, in byte order of their ids.
                Their claims are settled: of each partition only the claim of the newest generation is left, if a single
                member makes it and still subscribes to the topic. A member whose metadata cannot be read has no topics.
        """

    def member_data(self) -> bytes:
        """Facts about this member for the leader's `plan`, as `Member.data`: its capacity, zone, version, …

        It is called before each JoinGroup. If it changes, so does the metadata, and the group rebalances. At most
        65,536 bytes; if it raises, or returns anything else, the error is logged once and the member has no data.
        """
        return b""

    # ---- as any assignor --------------------------------------------------------------------------------------------

    def assign(self, group: Group, *, generation: int | None = None) -> Plan:
        """Plans a group, without a fallback.

        Args:
            group: the members and the topics. `plan` gets it with settled claims.
            generation: as for every assignor.

        Raises:
            GroupError: claims, partition counts or generations that cannot be represented.
            GroupTypeError: `group` is not a `Group`, or holds values of wrong types.
            PlanError: `plan` returned a value that is no plan of this group.
            Exception: whatever `plan` raised.
        """
        if not isinstance(group, Group):
            raise GroupTypeError(f"group is of type {type(group).__name__}; give a Group")
        self._checked()
        topics = dict(group.topics)
        opened = _core.open_group(self._is_cooperative(), topics, group.members, known_generation(generation))
        data = {member.id: member.data for member in group.members if member.data}
        settled = _settled(opened, topics, data)
        _, core = opened.finish(checked_plan(self.plan(settled), settled))
        plan = Plan(core, warnings=tuple(_left_out(core)))
        warn_of_record_size(plan)
        return plan

    def _plan_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        generation: int | None,
        earlier: EarlierPlans | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        self._checked()
        topics = checked_topics(partitions)
        cooperative = self._is_cooperative()
        opened = _core.open_joined(cooperative, list(members), topics, known_generation(generation), earlier)
        error, warnings = None, []
        try:
            planned, seconds_taken = self._timed(opened, topics)
            assignments, core = opened.finish(planned)
            if seconds_taken < _QUICK_SECONDS and self._watch.compares() and not self._repeats(opened, topics, planned):
                self._watch.stop_comparing()
                warnings.append(
                    f"plan() of {self._shown()} gives another plan for the same group when it is called again: with "
                    "each new leader partitions would move for nothing"
                )
        # Also SystemExit and the like, which are no Exception: they would end the thread that plans, and with it the
        # group.
        except BaseException as raised:
            pass_on(raised)
            error = self._failed(raised)
            assignments, core = self._fall_back(opened, topics, raised, error)
        warnings += _left_out(core)
        assert assignments is not None, "a group that was read from bytes is written as bytes"
        return assignments, Plan(core, error=error, warnings=tuple(warnings))

    def _timed(self, opened: _core.CustomGroup, topics: dict[str, int | Topic]) -> tuple[PlannedPartitions, float]:
        # Each call gets a new group: `plan` may change the lists in it.
        group = _settled(opened, topics, {})
        started = time.perf_counter()
        returned = self.plan(group)
        return checked_plan(returned, group), time.perf_counter() - started

    def _repeats(self, opened: _core.CustomGroup, topics: dict[str, int | Topic], planned: PlannedPartitions) -> bool:
        """Whether a second call for the same group gives the same plan."""
        try:
            return self._timed(opened, topics)[0] == planned
        except BaseException as raised:
            pass_on(raised)
            return False

    def _failed(self, raised: BaseException) -> str:
        fallback = self._fallback()
        then = "the rebalance is tried again" if fallback is None else f"its fallback {fallback.name!r} has planned"
        text = f"{self._shown()} failed ({described(raised)}); {then}"
        logger.error("%s", text, exc_info=raised)
        return text

    def _fall_back(
        self, opened: _core.CustomGroup, topics: dict[str, int | Topic], raised: BaseException, error: str
    ) -> tuple[dict[str, bytes] | None, _core.Plan]:
        fallback = self._fallback()
        if fallback is None:
            raise PlanError(error) from raised
        group = _settled(opened, topics, {})
        try:
            return opened.finish(checked_plan(fallback.assign(group).assignment, group))
        except BaseException as also:
            pass_on(also)
            raise PlanError(f"{error}, and failed as well ({described(also)})") from also

    def _loads(self, made: object) -> tuple[float, float] | None:
        """Worst load and load bound of the returned plan; None if the assignor does not weigh partitions."""
        return None

    def _fallback(self) -> Assignor | None:
        found = _checked_fallback(self.fallback, type(self).__qualname__)
        if isinstance(found, CooperativeStickyAssignor):
            # The core withholds partitions when it finishes the plan, so the fallback must not withhold them as well.
            return StickyAssignor(found.mode, found.racks)
        return found

    def _subscription(self, topics: tuple[str, ...], state: MemberState) -> Subscription:
        self._checked()
        generation = generation_on_wire(state.generation)
        if self._is_cooperative():
            user_data = CustomUserData(self._data_of_member(), generation=generation).encode()
            return Subscription(topics, user_data, state.owned, generation, state.rack)
        # The claims are in the user data only: a second copy would double the group's record.
        user_data = CustomUserData(self._data_of_member(), state.owned, generation).encode()
        return Subscription(topics, user_data, rack=state.rack)

    def _data_of_member(self) -> bytes:
        """The bytes that `member_data` returns; none if it fails, with an error in the log."""
        try:
            said = self.member_data()
            if not isinstance(said, bytes | bytearray | memoryview):
                raise PlanError(f"it returned a {type(said).__name__}; return bytes")
            data = bytes(said)
            if len(data) > CustomUserData.MOST:
                raise PlanError(f"it returned {len(data):,} bytes; at most {CustomUserData.MOST:,} may be")
        except BaseException as raised:
            pass_on(raised)
            text = described(raised)
            if self._watch.first(text):
                logger.error(
                    "member_data() of %s failed (%s); the member joins without data",
                    self._shown(),
                    text,
                    exc_info=raised,
                )
            return b""
        return data

    # ---- the rest ---------------------------------------------------------------------------------------------------

    def _checked(self) -> None:
        checked_name(getattr(self, "name", None), type(self).__qualname__)

    def _is_cooperative(self) -> bool:
        return bool(self.cooperative)

    def _shown(self) -> str:
        return f"the assignor {printable(self.name)!r}"

    @property
    def _watch(self) -> _Watch:
        # An attribute and no dataclass field: it is no option of the assignor, and is neither compared nor pickled.
        found: _Watch = self.__dict__.get("_seen") or self.__dict__.setdefault("_seen", _Watch())
        return found

    def __getstate__(self) -> object:
        state = object.__getstate__(self)
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict) and "_seen" in part:
                kept = [{k: v for k, v in each.items() if k != "_seen"} if each is part else each for each in parts]
                return tuple(kept) if isinstance(state, tuple) else kept[0]
        return state


@dataclass(frozen=True, slots=True)
class PlanOf:
    """The function that the core calls in a replay: plans partition counts and members, and returns plan and loads.

    Args:
        assignor: the assignor, which goes to the workers with this object.
    """

    assignor: CustomAssignor

    def __call__(
        self, topics: dict[str, int], members: list[tuple[Any, ...]]
    ) -> tuple[PlannedPartitions, tuple[float, float] | None]:
        group = Group(topics, [Member(*each) for each in members])
        made = self.assignor.plan(group)
        return checked_plan(made, group), self.assignor._loads(made)


def pass_on(raised: BaseException) -> None:
    """Raises a Ctrl-C again. Python delivers it to the main thread; on another thread the user's code raised it."""
    if isinstance(raised, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise raised


def _checked_fallback(fallback: object, of: str) -> Assignor | None:
    if fallback is None:
        return None
    if not isinstance(fallback, Assignor):
        raise OptionError(f"fallback of {of} is of type {type(fallback).__name__}; give an assignor, or None")
    if isinstance(fallback, ServerSideAssignor):
        raise OptionError(f"fallback of {of} is {fallback.name!r}: {fallback.refusal()}")
    return fallback


def _settled(opened: _core.CustomGroup, topics: dict[str, int | Topic], data: Mapping[str, bytes]) -> Group:
    """The group with settled claims, as `plan` gets it."""
    members = [
        Member(id_, subscribed, owned, generation, instance_id, rack, sent or data.get(id_, b""))
        for id_, subscribed, owned, generation, instance_id, rack, sent in opened.members()
    ]
    return Group(topics, members)


def _left_out(core: _core.Plan) -> list[str]:
    """A warning for the partitions that have subscribers and that the plan leaves out."""
    found = [(topic, number) for topic, number, kind, *_ in core.unassigned() if kind == NOT_PLANNED]
    if not found:
        return []
    shown = listed([f"{topic}-{number}" for topic, number in found])
    return [f"the plan leaves out {len(found)} partitions that members could read, and nobody reads them: {shown}"]


def described(raised: BaseException) -> str:
    """An exception in one line. The `str` of a user's exception may fail."""
    try:
        text = printable(raised, SENTENCE)
    except Exception:
        text = "its text cannot be made"
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__
