"""Consumers of kafka-python and aiokafka with a plug-in, taken through rebalances step by step.

The clients' own coordinators call the plug-ins, in any release of the clients. `CommandedKafka` is the broker: a
member's JoinGroup waits until the test answers it, with the generation and the leader that the test chooses.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import aiokafka
import kafka

from kafka_assignors.userdata import Assignment
from support.commanded import (
    JOIN_GROUP,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    TIMEOUT,
    UNKNOWN_MEMBER_ID,
    CommandedKafka,
    Joined,
    Request,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

__all__ = ["AiokafkaMember", "Group", "Joined", "KafkaPythonMember", "Member", "Stage"]

GROUP = "g"
# With shorter polls kafka-python begins to join again and again, while a join waits for its answer.
POLL_MS = 250


class Member(ABC):
    """One consumer.

    Attributes:
        name: its client's id.
        id: its member id: the name at first, and another one each time the group has expelled it.
        instance_id: of a static member.
        assignor: its plug-in.
        consumer: the client's own consumer.
        errors: the exceptions that its polls have raised.
    """

    def __init__(self, kafka_: CommandedKafka, name: str, instance_id: str | None) -> None:
        self.name = self.id = name
        self.instance_id = instance_id
        self.assignor: Any = None
        self.consumer: Any = None
        self.errors: list[BaseException] = []
        self._kafka = kafka_
        self._broker = kafka_.group
        self._has_begun = False
        self._in_generation = False
        self._lost = 0
        # The answers of the generation that is being formed.
        self._join: dict[str, Any] | None = None
        self._sync: dict[str, Any] | None = None

    # Steps of a rebalance.

    def metadata(self) -> bytes:
        """Makes the member join, once more if it has joined already. Returns the metadata in its JoinGroup."""
        before = self._broker.waiting(self.name, JOIN_GROUP)
        if before is not None:
            self._broker.answer_join(before, error=NOT_COORDINATOR)
        elif not self._has_begun:
            self._has_begun = True
            self.begin()
        elif self._in_generation:
            self._broker.heartbeats(self.name, REBALANCE_IN_PROGRESS)
        request = self.joining()
        self._in_generation = False
        self._broker.heartbeats(self.name, REBALANCE_IN_PROGRESS)
        (told,) = request.protocols.values()
        return told

    def joining(self) -> Request:
        """Waits for the JoinGroup of the member, and returns it unanswered."""
        request: Request = until(lambda: self._broker.waiting(self.name, JOIN_GROUP), f"{self.id} joins", self._failed)
        return request

    @property
    def is_joining(self) -> bool:
        """Whether a JoinGroup of the member waits for its answer."""
        return self._broker.waiting(self.name, JOIN_GROUP) is not None

    def joined(self, generation: int, leader: str, members: Joined = ()) -> None:  # type: ignore[assignment]
        """Answers the JoinGroup. The client that gets `members` is the leader."""
        self._join = {"generation": generation, "member_id": self.id, "leader": leader, "members": members}
        self._broker.answer_join(self.joining(), **self._join)

    def syncing(self) -> Request:
        """Waits for the SyncGroup of the member, and returns it unanswered."""

        def found() -> Request | None:
            self._answer_again()
            return self._broker.waiting(self.name, SYNC_GROUP)

        request: Request = until(found, f"{self.id} syncs", self._failed)
        return request

    def _answer_again(self) -> None:
        """Repeats an answer: kafka-python loses an answer that arrives just after a `poll`, and asks again."""
        request = self._broker.waiting(self.name, JOIN_GROUP)
        if request is not None and self._join is not None:
            self._broker.answer_join(request, **self._join)
        request = self._broker.waiting(self.name, SYNC_GROUP)
        if request is not None and self._sync is not None:
            self._broker.answer_sync(request, **self._sync)

    def complete(self, assignment: bytes) -> None:
        """Answers the SyncGroup, and waits until the consumer is assigned these partitions."""
        request, before = self.syncing(), self.assignor.last_report
        self._broker.heartbeats(self.name, 0)
        self._sync = {"assignment": assignment, "protocol": self.assignor.name}
        self._broker.answer_sync(request, **self._sync)
        self._in_generation = True
        wanted = {
            (topic, number) for topic, numbers in Assignment.decode(assignment).partitions.items() for number in numbers
        }

        def has_it() -> bool:
            done = self.assignor.last_report is not before and self.held() == wanted
            if not done:
                self._answer_again()
            return done

        until(has_it, f"{self.id} has {len(wanted)} partitions", self._failed)
        self._join = self._sync = None

    def miss(self) -> None:
        """Ends the generation before the member receives its assignment; the member joins again."""
        request, self._join = self.syncing(), None
        self._broker.answer_sync(request, error=REBALANCE_IN_PROGRESS)

    def expel(self) -> None:
        """Expels the member: the answer to its waiting JoinGroup or to its next heartbeat is UNKNOWN_MEMBER_ID."""
        joining = self._broker.waiting(self.name, JOIN_GROUP)
        if joining is None:
            self._broker.heartbeats(self.name, UNKNOWN_MEMBER_ID)
        else:
            self._broker.answer_join(joining, error=UNKNOWN_MEMBER_ID)
        until(self._joins_anew, f"{self.name} joins as a new member", self._failed)
        self._in_generation = False
        self._lost += 1
        self.id = f"{self.name}-{self._lost}"

    def _joins_anew(self) -> bool:
        request = self._broker.waiting(self.name, JOIN_GROUP)
        return request is not None and not request.member_id

    # The consumer.

    @abstractmethod
    def begin(self) -> None:
        """Begins to poll."""

    @abstractmethod
    def held(self) -> set[tuple[str, int]]:
        """The partitions that it is assigned."""

    @abstractmethod
    def do(self, function: Callable[[], Any]) -> Any:
        """Calls a function on the thread or loop of the consumer, between two of its polls."""

    @abstractmethod
    def close(self) -> None:
        """Leaves the group. A second call does nothing."""

    def _failed(self) -> BaseException | None:
        return None


def _settings(kafka_: CommandedKafka, name: str, strategies: Sequence[Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka_.bootstrap_servers,
        "group_id": GROUP,
        "client_id": name,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 30,
        "retry_backoff_ms": 20,
        # A fetch that waits for records delays the requests for metadata on the same connection.
        "fetch_max_wait_ms": 20,
        "metadata_max_age_ms": 300_000,
        "partition_assignment_strategy": list(strategies),
        **more,
    }


class KafkaPythonMember(Member):
    """A consumer of kafka-python, on a thread of its own."""

    def __init__(
        self,
        kafka_: CommandedKafka,
        name: str,
        strategies: Sequence[Any],
        topics: Iterable[str],
        *,
        listener: Any = None,
        instance_id: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(kafka_, name, instance_id)
        if instance_id is not None:
            more["group_instance_id"] = instance_id
        self.consumer = kafka.KafkaConsumer(**_settings(kafka_, name, strategies, more))
        # Version 3 also accepts a class or a factory, and makes the plug-in from it.
        is_made = hasattr(strategies[0], "last_report") and not isinstance(strategies[0], type)
        self.assignor = strategies[0] if is_made else next(iter(self.consumer._coordinator._assignors.values()))
        self.consumer.subscribe(sorted(topics), listener=listener)
        self._commands: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]]] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=f"member-{name}", daemon=True)

    def begin(self) -> None:
        # Without this wait the member may lead before it has the metadata of its own topics.
        for topic in self.consumer.subscription() & self._kafka.topics().keys():
            until(partial(self.consumer.partitions_for_topic, topic), f"{self.name} knows {topic}")
        self._thread.start()

    def _poll(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Empty):
                while True:
                    function, answer = self._commands.get_nowait()
                    answer.put(function())
            try:
                self.consumer.poll(timeout_ms=POLL_MS)
            except Exception as error:
                self.errors.append(error)
        try:
            self.consumer.close(autocommit=False)
        except Exception as error:
            self.errors.append(error)

    def do(self, function: Callable[[], Any]) -> Any:
        if not self._thread.is_alive():
            return function()
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._commands.put((function, answer))
        return answer.get(timeout=TIMEOUT)

    def held(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def close(self) -> None:
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._broker.dismiss(self.name)
        if self._has_begun:
            self._thread.join(TIMEOUT)
            assert not self._thread.is_alive()
        else:
            self.consumer.close(autocommit=False)


class AiokafkaMember(Member):
    """A consumer of aiokafka, on an event loop of its own. ``loop`` is that loop."""

    def __init__(
        self,
        kafka_: CommandedKafka,
        name: str,
        strategies: Sequence[Any],
        topics: Iterable[str],
        *,
        listener: Any = None,
        attach: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(kafka_, name, None)
        self.assignor = strategies[0]
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=f"member-{name}", daemon=True)
        self._thread.start()
        self._starting: asyncio.Task[None] | None = None
        self._is_closed = False

        async def make() -> None:
            self.consumer = aiokafka.AIOKafkaConsumer(**_settings(kafka_, name, strategies, more))
            if attach:
                self.assignor.attach(self.consumer)
            self.consumer.subscribe(sorted(topics), listener=listener)

        self._run(make())

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(TIMEOUT)

    def begin(self) -> None:
        async def start() -> None:
            self._starting = asyncio.ensure_future(self.consumer.start())

        self._run(start())

    def _failed(self) -> BaseException | None:
        starting = self._starting
        if starting is None or not starting.done() or starting.cancelled():
            return None
        return starting.exception()

    def do(self, function: Callable[[], Any]) -> Any:
        async def called() -> Any:
            return function()

        return self._run(called())

    def held(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True

        async def stop() -> None:
            if self._starting is not None and not self._starting.done():
                self._starting.cancel()
            if self._starting is not None:
                await asyncio.wait([self._starting])
            with contextlib.suppress(Exception):
                await self.consumer.stop()
            # A client that is stopped within a join leaves tasks behind.
            rest = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
            for each in rest:
                each.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        stopping = asyncio.run_coroutine_threadsafe(stop(), self.loop)
        self._broker.dismiss(self.name)
        stopping.result(TIMEOUT)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT)
        self.loop.close()


class Group:
    """Takes members through rebalances. The first member is the leader."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.sent: dict[str, bytes] = {}

    def rebalance(self, *members: Member, others: Joined = ()) -> dict[str, bytes]:  # type: ignore[assignment]
        """One generation. `others` are members of other clients: id, instance id and metadata."""
        self.generation += 1
        self.sent = {member.id: member.metadata() for member in members}
        joined = [(member.id, member.instance_id, self.sent[member.id]) for member in members]
        leader = members[0]
        for member in members:
            member.joined(self.generation, leader.id, [*joined, *others] if member is leader else [])
        assigned = leader.syncing().assignments
        for member in members:
            member.complete(assigned[member.id])
        return assigned


class Stage:
    """A commanded Kafka and the members that a test makes; all are closed at the end."""

    def __init__(self, **settings: Any) -> None:
        self.kafka = CommandedKafka(**settings)
        self.members: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            for member in self.members:
                member.close()
        finally:
            self.kafka.close()

    def add(
        self,
        kind: Any,
        name: str,
        strategies: Sequence[Any],
        topics: Mapping[str, int],
        *,
        subscribed: Iterable[str] | None = None,
        **more: Any,
    ) -> Any:
        """Makes a consumer, whose name must be new. Creates the topics that do not exist."""
        assert all(name != each.name for each in self.members), f"there is a member {name} already"
        for topic, count in topics.items():
            if topic not in self.kafka.topics():
                self.kafka.create_topic(topic, count)
        member = kind(self.kafka, name, strategies, topics if subscribed is None else subscribed, **more)
        self.members.append(member)
        return member
