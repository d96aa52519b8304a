"""The assignors of one consumer, their states, and the bytes that are sent for each."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
)
from kafka_assignors.errors import OptionError
from kafka_assignors.group import MemberState, Topic
from kafka_assignors.member.causes import PlannedGeneration
from kafka_assignors.member.handed_out import HandedOut
from kafka_assignors.member.rebalance_report import PLANNING_SHARE, Planned, RebalanceReporter, publish
from kafka_assignors.member.user_data import with_generation, without_generation
from kafka_assignors.own import CustomAssignor
from kafka_assignors.server_side import ServerSideAssignor
from kafka_assignors.strategies import parse_strategy, split_strategies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors.group import Plan
    from kafka_assignors.member.data_path import Partition
    from kafka_assignors.member.rebalance_report import Course, RebalanceReport

__all__ = ["Strategies", "strategies_of"]

# The strategies whose leader begins a rebalance when replicas move to other racks.
_RACK_AWARE = (StickyAssignor, CooperativeStickyAssignor, RangeAssignor, CustomAssignor)
# The strategies whose leader settles claims by generation, so that a plan of theirs needs no check for partitions that
# are still owned.
_SETTLING = (CooperativeStickyAssignor, CustomAssignor)


def strategies_of(
    value: Any,
    default: str,
    unknown: Callable[[str], Exception] = OptionError,
    setting: str = "partition.assignment.strategy",
) -> tuple[Assignor, ...]:
    """Reads a setting of strategies: text with commas, an assignor, or a list of both.

    Args:
        value: the setting; None for the default.
        default: the client's default, as text.
        unknown: makes the client's error from our sentence, for a text that names no strategy.
        setting: how the client spells it, for errors.

    Raises:
        Exception: the error that `unknown` returned, for a text that names no strategy.
        OptionError: a value is neither a name nor an assignor, or a name comes twice.
    """
    parts: list[Any] = []
    for part in value if isinstance(value, list | tuple) else [default if value is None else value]:
        if isinstance(part, str):
            # As the clients, ignore empty and repeated names.
            parts += dict.fromkeys(split_strategies(part))
        else:
            parts.append(part)
    found: list[Assignor] = []
    for part in parts:
        if isinstance(part, str):
            try:
                found.append(parse_strategy(part))
            except OptionError as error:
                raise unknown(str(error)) from None
        elif isinstance(part, Assignor):
            found.append(part)
        else:
            raise OptionError(f"{setting} has a {type(part).__name__}; give names or assignors of kafka_assignors")
    for each in found:
        if isinstance(each, ServerSideAssignor):
            raise OptionError(f"{setting} has {each.name!r}: {each.refusal()}")
        if isinstance(each, CustomAssignor):
            each._checked()
    if not found:
        raise OptionError(f"{setting} is {value!r}; give at least one name or assignor")
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise OptionError(f"{setting} has {', '.join(names)}; give each name once")
    return tuple(found)


class Strategies:
    """The assignors of one consumer and their states. Thread-safe; callbacks are called with no lock held.

    Args:
        assignors: in order of preference, each name once.
        rack: of the consumer.
        on_rebalance: the user's callback.
        planning_seconds: how long a leader may search for the best plan.
        guards: whether a leader's assignments have the generation as user data, so that no broker converts the group.
    """

    def __init__(
        self,
        assignors: Sequence[Assignor],
        rack: str | None,
        on_rebalance: Callable[[RebalanceReport], object] | None,
        planning_seconds: float | None = None,
        group_id: str = "",
        *,
        guards: bool = True,
    ) -> None:
        self.assignors = {assignor.name: assignor for assignor in assignors}
        self.cooperative = all(assignor.cooperative for assignor in assignors)
        self.last_plan: Plan | None = None
        self._states = {name: MemberState(rack=rack) for name in self.assignors}
        self._on_rebalance = on_rebalance
        self._planning_seconds = planning_seconds
        self._reporter = RebalanceReporter(group_id)
        self._last_planned = PlannedGeneration()
        # The generation of the reporter's plan.
        self._planned_generation: int | None = None
        self._guards = guards
        self._handed_out = HandedOut(bare=not guards)
        # The assignments of the latest plan. If the member gets one of them, the broker has stored that plan.
        self._written: frozenset[bytes] = frozenset()
        self._lock = threading.Lock()

    def described(self) -> list[tuple[str, bool, bool, bool]]:
        """For the core: name, cooperative, whether its claims are compared by generation, whether racks count."""
        return [
            (
                name,
                each.cooperative,
                each.cooperative and isinstance(each, _SETTLING),
                isinstance(each, _RACK_AWARE),
            )
            for name, each in self.assignors.items()
        ]

    def metadata(self, topics: Sequence[str], owned: Mapping[str, Sequence[int]]) -> list[tuple[str, bytes]]:
        """JoinGroup's metadata for each assignor, in order. `owned` are the partitions kept during the rebalance."""
        with self._lock:
            return [
                (name, assignor.metadata(topics, self._claims(assignor, frozenset(topics), owned)))
                for name, assignor in self.assignors.items()
            ]

    def _claims(self, assignor: Assignor, topics: frozenset[str], owned: Mapping[str, Sequence[int]]) -> MemberState:
        """The claims of the member to partitions of subscribed topics.

        A cooperative assignor claims only partitions that the member keeps. In an eager rebalance it keeps none; a
        claim would make the leader withhold a partition that no member will revoke.
        """
        state = self._states[assignor.name]
        remembered = owned if assignor.cooperative else state.owned
        claimed = {topic: list(numbers) for topic, numbers in remembered.items() if topic in topics}
        return MemberState(claimed, state.generation, state.rack)

    def forget(self) -> None:
        """Forgets all claims, since the membership is lost."""
        with self._lock:
            for state in self._states.values():
                state.forget()
            self._reporter.expel()
            self._handed_out.forget()

    def give_up(self, partitions: Iterable[Partition]) -> None:
        """Takes note that the member reads these partitions no longer."""
        with self._lock:
            self._reporter.give_up(partitions)

    def take(
        self,
        protocol: str,
        assignment: bytes,
        generation: int,
        owned: Mapping[str, Sequence[int]],
        course: Course | None = None,
    ) -> None:
        """Remembers the member's assignment, and then reports the rebalance.

        Args:
            protocol: the name of the assignor.
            assignment: the bytes that the leader wrote.
            generation: of the group.
            owned: the partitions of the member now.
            course: how the rebalance went; None if that is not known.

        Raises:
            UserDataError: the bytes are no assignment.
        """
        with self._lock:
            self._handed_out.taken(generation, led=assignment in self._written)
            self._written = frozenset()
            chosen = self.assignors[protocol]
            chosen.on_assignment(assignment, generation, self._states[protocol])
            for name, state in self._states.items():
                if name == protocol:
                    continue
                if isinstance(self.assignors[name], StickyStreamJoinAssignor):
                    # Its claims contain the epochs of its own plans, and this plan is another strategy's.
                    state.forget()
                else:
                    state.owned = {topic: list(numbers) for topic, numbers in owned.items()}
                    state.generation = generation
            if self._planned_generation != generation:
                # Another member has planned this generation.
                self._reporter.planned = None
            report = self._reporter.report(protocol, self._states[protocol].generation, owned, course=course)
        publish(report, self._on_rebalance)

    def plan(
        self,
        protocol: str,
        members: Iterable[tuple[str, str | None, bytes]],
        topics: Mapping[str, tuple[int, Sequence[frozenset[str]]]],
        generation: int,
    ) -> dict[str, bytes]:
        """Plans the group as its leader, between JoinGroup and SyncGroup, on a thread of its own.

        Raises:
            KafkaAssignorsError: the assignor failed.
        """
        started = time.perf_counter()
        partitions: dict[str, int | Topic] = {
            name: Topic(count, racks=racks) if racks else count for name, (count, racks) in topics.items()
        }
        with self._lock:
            earlier = self._handed_out.earlier_plans()
        joined = list(members)
        assignments, plan = self.assignors[protocol]._plan_assignment(
            joined, partitions, generation, earlier, self._planning_seconds
        )
        written = {
            member_id: with_generation(assignment, generation) if self._guards else without_generation(assignment)
            for member_id, assignment in assignments.items()
        }
        with self._lock:
            self._handed_out.planned(generation, plan)
            counts = {name: count for name, (count, _) in topics.items()}
            self._reporter.compared(self._last_planned.compare(generation, joined, counts, plan))
            self._written = frozenset(written.values())
            seconds = time.perf_counter() - started
            session = None if self._planning_seconds is None else self._planning_seconds / PLANNING_SHARE
            self._reporter.planned = Planned(plan, plan.record_bytes, seconds, session)
            self._planned_generation = generation
        self.last_plan = plan
        return written
