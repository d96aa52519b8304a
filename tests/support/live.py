"""Consumers of both clients on threads of their own, and a ledger of the partitions that each holds.

The ledger gets its entries from the rebalance listeners, when a client starts and stops to read a partition. Two
members that hold a partition at the same time are an overlap. A member that was stalled or killed does not count: it
cannot know that the group has expelled it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import aiokafka
import kafka

from support.broker import unique

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafka_assignors.clients import RebalanceReport
    from support.broker import Kafka

Held = frozenset[tuple[str, int]]

# Long enough for a busy machine, and the session of a member whose session a test waits for.
SESSION_TIMEOUT_MS, SHORT_SESSION_TIMEOUT_MS = 6_000, 3_000
PATIENCE = 120.0


class Ledger:
    """The members that hold each partition. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[tuple[str, int], set[LiveMember]] = {}
        self.overlaps: list[str] = []

    def take(self, member: LiveMember, partitions: Iterable[Any]) -> None:
        with self._lock:
            for partition in partitions:
                holders = self._holders.setdefault(tuple(partition), set())
                others = [other.id for other in holders if other is not member and not other.away]
                if others and not member.away:
                    self.overlaps.append(f"{partition} was given to {member.id} while {others} held it")
                holders.add(member)

    def release(self, member: LiveMember, partitions: Iterable[Any] | None = None) -> None:
        with self._lock:
            for partition in list(self._holders) if partitions is None else map(tuple, partitions):
                self._holders.get(partition, set()).discard(member)

    def held(self, member: LiveMember) -> Held:
        with self._lock:
            return frozenset(partition for partition, holders in self._holders.items() if member in holders)


class LiveMember:
    """A consumer on a thread. `assignor` is its plug-in.

    With `begins_at` the member reads each assigned partition from this offset on, and requests no offset.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topics: Sequence[str],
        assignor: Any,
        ledger: Ledger,
        *,
        name: str,
        begins_at: int | None = None,
        **config: Any,
    ) -> None:
        self.id = name
        self._begins_at = begins_at
        self.assignor = assignor
        self.away = False
        self.rebalances = 0
        self.failure: BaseException | None = None
        self._topics = list(topics)
        self._ledger = ledger
        self._commands: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._killed = False
        self._config = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "client_id": name,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": 300,
            "metadata_max_age_ms": 1_000,
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": [assignor],
            **config,
        }
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def held(self) -> Held:
        return self._ledger.held(self)

    @property
    def report(self) -> RebalanceReport | None:
        report: RebalanceReport | None = self.assignor.last_report
        return report

    def leave(self) -> None:
        """Leaves the group."""
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._ledger.release(self)

    def kill(self) -> None:
        """Ends without LeaveGroup and without further heartbeats."""
        self.away = self._killed = True
        self.leave()

    def _run(self) -> None:
        try:
            self._consume()
        except BaseException as error:
            self.failure = error

    def _assigned(self, partitions: Iterable[Any]) -> None:
        self.rebalances += 1
        self._ledger.take(self, partitions)
        self.away = self._killed

    def _revoked(self, partitions: Iterable[Any]) -> None:
        self._ledger.release(self, partitions)

    def listener_around(self, listener: Any) -> Any:
        """The listener for the client. It must call `listener`."""
        return listener

    def stall(self, seconds: float) -> None:
        """Blocks the member for a while, heartbeats included."""
        raise NotImplementedError

    def subscribe(self, topics: Sequence[str]) -> None:
        raise NotImplementedError

    def _consume(self) -> None:
        raise NotImplementedError


class KafkaPythonLive(LiveMember):
    """kafka-python's consumer."""

    poll_ms = 1_000

    def _consume(self) -> None:
        member = self

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                member._assigned(assigned)
                if member._begins_at is not None:
                    for each in assigned:
                        member._consumer.seek(each, member._begins_at)

            def on_partitions_revoked(self, revoked: Any) -> None:
                member._revoked(revoked)

        self._listener = self.listener_around(Listener())
        self._consumer = kafka.KafkaConsumer(**self._config)
        self._consumer.subscribe(self._topics, listener=self._listener)
        while not self._stop.is_set():
            self._consumer.poll(timeout_ms=self.poll_ms)
            with contextlib.suppress(queue.Empty):
                self._commands.get_nowait()()
        if self._killed:
            self._consumer._client.close()
        else:
            self._consumer.close(autocommit=False)

    def stall(self, seconds: float) -> None:
        self.away = True
        net = getattr(self._consumer, "_net", None)
        if net is not None:
            net.call_soon(lambda: time.sleep(seconds))
            return

        def stand_still() -> None:
            # kafka-python 2 sends its heartbeats from a thread that needs this lock.
            with self._consumer._coordinator._lock:
                time.sleep(seconds)

        self._commands.put(stand_still)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._commands.put(lambda: self._consumer.subscribe(list(topics), listener=self._listener))


class ImpatientKafkaPythonLive(KafkaPythonLive):
    """A member whose polls are shorter than a join."""

    poll_ms = 1


class AiokafkaLive(LiveMember):
    """aiokafka's consumer, on an event loop of its own."""

    attach = False

    def _consume(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        member = self

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_assigned(self, assigned: Any) -> None:
                member._assigned(assigned)
                if member._begins_at is not None:
                    for each in assigned:
                        member._consumer.seek(each, member._begins_at)

            async def on_partitions_revoked(self, revoked: Any) -> None:
                member._revoked(revoked)

        self._listener = self.listener_around(Listener())
        self._loop = asyncio.get_running_loop()
        self._consumer = aiokafka.AIOKafkaConsumer(rebalance_timeout_ms=20_000, **self._config)
        if self.attach:
            self.assignor.attach(self._consumer)
        self._consumer.subscribe(self._topics, listener=self._listener)
        try:
            await self._consumer.start()
            while not self._stop.is_set():
                await self._consumer.getmany(timeout_ms=100)
                with contextlib.suppress(queue.Empty):
                    self._commands.get_nowait()()
            self._ledger.release(self)
        finally:
            if self._killed:
                coordinator = self._consumer._coordinator
                coordinator._group_instance_id = "so that it says no goodbye"
            await self._consumer.stop()
            task = getattr(self._consumer._coordinator, "_coordination_task", None)
            if task is not None and task.done() and not task.cancelled():
                task.exception()  # start() has raised it; asyncio logs an exception that nothing has retrieved

    def stall(self, seconds: float) -> None:
        self.away = True
        self._loop.call_soon_threadsafe(time.sleep, seconds)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._commands.put(lambda: self._consumer.subscribe(list(topics), listener=self._listener))


class AttachedAiokafkaLive(AiokafkaLive):
    """A member that calls `attach`, as the documentation says."""

    attach = True


def wait(
    condition: Callable[[], bool], what: str, members: Iterable[LiveMember] = (), patience: float = PATIENCE
) -> None:
    """Waits until `condition()` holds."""
    members = list(members)
    deadline = time.monotonic() + patience
    while not condition():
        for member in members:
            if member.failure is not None:
                raise AssertionError(f"{member.id} failed") from member.failure
        if time.monotonic() > deadline:
            shares = {member.id: (sorted(member.held), member.report) for member in members}
            raise AssertionError(f"{what} did not come about within {patience} s: {shares}")
        time.sleep(0.02)


def settled(members: Sequence[LiveMember], everything: Held, spread: int = 1) -> Callable[[], bool]:
    """Whether the members hold all partitions in one generation, each once, with loads within `spread`."""

    def condition() -> bool:
        shares = [member.held for member in members]
        loads = list(map(len, shares))
        reports = [member.report for member in members]
        return (
            frozenset().union(*shares) == everything
            and sum(loads) == len(everything)
            and max(loads) - min(loads) <= spread
            and len({report and report.generation for report in reports}) == 1
        )

    return condition


def all_of(**topics: int) -> Held:
    """Every partition of these topics."""
    return frozenset((topic, number) for topic, count in topics.items() for number in range(count))


class Crew:
    """The members of one group, with their ledger."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.ledger = Ledger()
        self.group = unique("group")
        self.members: list[LiveMember] = []
        self._hired = 0

    def topic(self, partitions: int) -> str:
        return self.kafka.create_topic(unique("topic"), partitions)

    def hire(self, kind: Any, *topics: str, **config: Any) -> LiveMember:
        member_type, strategy = kind
        self._hired += 1
        name = f"{member_type.__name__}-{self._hired}"
        member: LiveMember = member_type(
            self.kafka.bootstrap_servers, self.group, topics, strategy(), self.ledger, name=name, **config
        )
        self.members.append(member)
        return member

    def settle(self, what: str, **topics: int) -> None:
        """Waits until the members hold these topics evenly. Fails if two members held a partition at the same time."""
        wait(settled(self.members, all_of(**topics)), what, self.members)
        assert self.ledger.overlaps == []

    def leave(self, member: LiveMember) -> None:
        member.leave()
        self.members.remove(member)

    def kill(self, member: LiveMember) -> None:
        member.kill()
        self.members.remove(member)

    def leader(self) -> LiveMember:
        (leader,) = [member for member in self.members if member.report is not None and member.report.leader]
        return leader

    def planned(self) -> None:
        """Asserts that the latest plan moved the fewest possible partitions."""
        report = self.leader().report
        assert report is not None
        assert report.moved == report.least_moves
        assert report.faults == {}
