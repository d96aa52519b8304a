"""The assignors of one consumer: which ones, what each remembers, and what is written for each."""

from __future__ import annotations

import struct
import threading
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
    by_name,
)
from kafka_assignors.clients._handed_out import HandedOut
from kafka_assignors.clients._report import Planned, publish, report_of
from kafka_assignors.errors import OptionError
from kafka_assignors.group import MemberState, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors.clients._report import RebalanceReport
    from kafka_assignors.group import Plan

__all__ = ["Partition", "Strategies", "by_topic", "strategies_of"]

Partition = tuple[str, int]

_NULL = struct.pack(">i", -1)
_DEFAULT = "range,roundrobin"
# Their leaders plan again when replicas move to other racks.
_RACK_AWARE = (StickyAssignor, CooperativeStickyAssignor, RangeAssignor)


def strategies_of(value: Any) -> tuple[Assignor, ...]:
    """Reads `partition.assignment.strategy`: names separated by commas, an assignor, or a list of both.

    Raises:
        KafkaException: a name that is unknown, as confluent-kafka has it.
        OptionError: something else than names and assignors, or a name twice.
    """
    parts: list[Any] = []
    for part in value if isinstance(value, list | tuple) else [_DEFAULT if value is None else value]:
        if isinstance(part, str):
            # As librdkafka reads it: empty names and repeated ones say nothing.
            parts += dict.fromkeys(each.strip() for each in part.split(",") if each.strip())
        else:
            parts.append(part)
    found: list[Assignor] = []
    for part in parts:
        if isinstance(part, str):
            try:
                found.append(by_name(part))
            except OptionError as error:
                reason = f"Failed to create consumer: Unsupported partition.assignment.strategy: {error}"
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, reason)) from None
        elif isinstance(part, Assignor):
            found.append(part)
        else:
            raise OptionError(
                f"partition.assignment.strategy has a {type(part).__name__}; give names or assignors of kafka_assignors"
            )
    if not found:
        raise OptionError(f"partition.assignment.strategy is {value!r}; give at least one name or assignor")
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise OptionError(f"partition.assignment.strategy has {', '.join(names)}; give each name once")
    return tuple(found)


class Strategies:
    """The assignors of one consumer and what they remember. Thread-safe; callbacks are called with no lock held."""

    def __init__(
        self,
        assignors: Sequence[Assignor],
        rack: str | None,
        on_rebalance: Callable[[RebalanceReport], object] | None,
        planning_seconds: float | None = None,
    ) -> None:
        self.assignors = {assignor.name: assignor for assignor in assignors}
        self.cooperative = all(assignor.cooperative for assignor in assignors)
        self.last_plan: Plan | None = None
        self._states = {name: MemberState(rack=rack) for name in self.assignors}
        self._on_rebalance = on_rebalance
        self._planning_seconds = planning_seconds
        self._held: Mapping[str, Sequence[int]] = {}
        self._expelled = False
        # The latest plan, with its generation.
        self._planned: tuple[int, Planned] | None = None
        self._handed_out = HandedOut()
        # The assignments of the latest plan. If the member is given one of them, the broker has stored that plan.
        self._written: frozenset[bytes] = frozenset()
        self._lock = threading.Lock()

    def described(self) -> list[tuple[str, bool, bool, bool]]:
        """As the core wants them: name, cooperative, whether generations settle its claims, whether racks count."""
        return [
            (name, each.cooperative, isinstance(each, CooperativeStickyAssignor), isinstance(each, _RACK_AWARE))
            for name, each in self.assignors.items()
        ]

    def metadata(self, topics: Sequence[str], owned: Mapping[str, Sequence[int]]) -> list[tuple[str, bytes]]:
        """What the member sends in JoinGroup: for each assignor, in order. `owned` is what it keeps meanwhile."""
        with self._lock:
            return [
                (name, assignor.metadata(topics, self._claims(assignor, frozenset(topics), owned)))
                for name, assignor in self.assignors.items()
            ]

    def _claims(self, assignor: Assignor, topics: frozenset[str], owned: Mapping[str, Sequence[int]]) -> MemberState:
        """Only what is still subscribed, and of a cooperative assignor only what is really kept.

        In an eager rebalance nothing is: a cooperative assignor would withhold what nobody gives up any more.
        """
        state = self._states[assignor.name]
        remembered = owned if assignor.cooperative else state.owned
        claimed = {topic: list(numbers) for topic, numbers in remembered.items() if topic in topics}
        return MemberState(claimed, state.generation, state.rack)

    def forget(self) -> None:
        """The membership is lost: no old claim is made again."""
        with self._lock:
            for state in self._states.values():
                state.forget()
            self._expelled = True
            self._handed_out.forget()

    def take(self, protocol: str, assignment: bytes, generation: int, owned: Mapping[str, Sequence[int]]) -> None:
        """What the member was given: remembered first, then reported.

        Raises:
            UserDataError: bytes that are no assignment.
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
                    # What counts there is the epoch of its own plans.
                    state.forget()
                else:
                    state.owned = {topic: list(numbers) for topic, numbers in owned.items()}
                    state.generation = generation
            report = self._report(protocol, generation, owned)
        publish(report, self._on_rebalance)

    def plan(
        self,
        protocol: str,
        members: Iterable[tuple[str, str | None, bytes]],
        topics: Mapping[str, tuple[int, Sequence[frozenset[str]]]],
        generation: int,
    ) -> dict[str, bytes]:
        """What the leader does between JoinGroup and SyncGroup; runs on a thread of its own.

        Raises:
            KafkaAssignorsError: what the assignor says.
        """
        started = time.perf_counter()
        partitions: dict[str, int | Topic] = {
            name: Topic(count, racks=racks) if racks else count for name, (count, racks) in topics.items()
        }
        with self._lock:
            earlier = self._handed_out.earlier_plans()
        assignments, plan = self.assignors[protocol]._plan_assignment(
            list(members), partitions, generation, earlier, self._planning_seconds
        )
        guarded = {member_id: _guarded(assignment, generation) for member_id, assignment in assignments.items()}
        with self._lock:
            self._handed_out.planned(generation, plan)
            self._written = frozenset(guarded.values())
            self._planned = generation, Planned(plan, plan.record_bytes, time.perf_counter() - started)
        self.last_plan = plan
        return guarded

    def _report(self, protocol: str, generation: int, after: Mapping[str, Sequence[int]]) -> RebalanceReport:
        planned, self._planned = self._planned, None
        own = planned[1] if planned is not None and planned[0] == generation else None
        told = self._states[protocol].generation
        report = report_of(protocol, told, self._held, after, own, expelled=self._expelled)
        self._held, self._expelled = {topic: list(numbers) for topic, numbers in after.items()}, False
        return report


def _guarded(assignment: bytes, generation: int) -> bytes:
    """An assignment that is never without user data, the last field.

    A broker does not convert a group to the protocol of KIP-848 while its assignments have some. The sticky strategies
    write the generation there; so do the others, here.
    """
    if not assignment.endswith(_NULL):
        return assignment
    return assignment[: -len(_NULL)] + struct.pack(">ii", 4, generation)


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """Topic to ascending partition numbers."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found
