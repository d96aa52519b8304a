"""Real members on a real broker, in the new protocol: each target assignment that it describes equals our own."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from kafka_assignors import ClusterError, ServerSideGroup
from kafka_assignors.cluster import ConsumerMember, Snapshot, read_snapshot
from support.broker import unique
from support.jars import consumer_protocol_version
from support.server_side import Draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.broker import ApacheKafka, Kafka

HISTORIES, EVENTS, AT_ONCE = 50, 6, 8
_TIMEOUT = 60.0
# The member epoch of a static member that left and may return (KIP-848).
_LEAVE_STATIC_EPOCH = -2


class _Member:
    """A consumer of librdkafka in a thread of its own, until it is closed.

    Only that thread calls the consumer: `subscribe` holds the GIL and waits for the work of a `poll`, which would need
    the GIL in another thread. `topics` are in the order of the member's request: librdkafka sorts them and writes the
    last one first.
    """

    def __init__(self, kafka: Kafka, group_id: str, topics: list[str], instance: str | None, assignor: str) -> None:
        settings = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group_id,
            "group.protocol": "consumer",
            "group.remote.assignor": assignor,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        if instance is not None:
            settings["group.instance.id"] = instance
        self.instance = instance
        self.id = ""
        self._consumer = confluent_kafka.Consumer(settings)
        self._asked: list[str] | None = None
        self.subscribe(topics)
        self._open = True
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while self._open:
            if self._asked is not None:
                asked, self._asked = self._asked, None
                self._consumer.subscribe(asked)
            self._consumer.poll(0.05)
        self._consumer.close()

    def subscribe(self, topics: list[str]) -> None:
        self.topics = sorted(topics, reverse=True)
        self._asked = topics

    def close(self) -> None:
        self._open = False
        self._thread.join(_TIMEOUT)
        assert not self._thread.is_alive(), "the consumer does not close"


def _names_of_one_bin(count: int) -> list[str]:
    """Names in one bin of a small Java `HashSet`, which keeps such names in the order of the request."""
    bins: dict[int, list[str]] = {}
    while True:
        name = unique("t")
        code = functools.reduce(lambda code, letter: (31 * code + ord(letter)) & 0xFFFFFFFF, name, 0)
        found = bins.setdefault((code ^ code >> 16) & 15, [])
        found.append(name)
        if len(found) == count:
            return found


class _Story:
    """One group, event by event."""

    def __init__(self, kafka: Kafka, seed: int) -> None:
        self.draw = Draw(seed)
        self.kafka = kafka
        self.group_id = unique(f"live-{seed}")
        self.assignor = "range" if seed % 4 == 3 else "uniform"
        self.topics = [kafka.create_topic(name, self.draw.between(1, 9)) for name in _names_of_one_bin(3)]
        self.members: list[_Member] = []
        # The ids of all members so far. The group keeps that of a static member that left, until its successor joins.
        self.ids: set[str] = set()
        self.epoch = -1

    def taken(self) -> Snapshot:
        settings = {"bootstrap.servers": self.kafka.bootstrap_servers}
        return read_snapshot(settings, [self.group_id], topics=self.topics)

    def settled(self, done: Callable[[dict[str, ConsumerMember]], bool]) -> Snapshot:
        """The group when the event is `done`, the broker has planned, and every member has followed the plan."""
        deadline = time.monotonic() + _TIMEOUT
        while True:
            try:
                taken = self.taken()
            except ClusterError:
                # The group does not exist before the first member's heartbeat.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
                continue
            found = taken.groups[self.group_id]
            members = {each.id: each for each in found.members if isinstance(each, ConsumerMember)}
            followed = all(member.epoch == found.epoch for member in members.values())
            if found.state in ("Stable", "Empty") and followed and done(members):
                self.epoch = -1 if found.epoch is None else found.epoch
                return taken
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.group_id} is {found}")
            time.sleep(0.1)

    def tell(self) -> None:
        """Plays the history, and compares each target."""
        ours = ServerSideGroup(self.assignor, self.kafka.version)  # type: ignore[arg-type]
        for topic, each in self.taken_topics().items():
            ours.grow(topic, each[0], id=each[1])
        going_on = ours.copy()
        try:
            for number in range(EVENTS):
                kinds = ["join"] if number < 2 else ["join", "leave", "subscribe", "grow", "static"]
                event, taken = getattr(self, self.draw.one(kinds))()
                for group in (ours, going_on):
                    event(group)
                    assert self.described(taken) == {
                        member: [(topic, tuple(numbers)) for topic, numbers in target.items()]
                        for member, target in group.target.items()
                    }, (self.group_id, number)
                going_on = ServerSideGroup.of(taken, self.group_id, broker=self.kafka.version)
                assert going_on.exact
        finally:
            for member in self.members:
                member.close()

    def taken_topics(self) -> dict[str, tuple[int, str]]:
        settings = {"bootstrap.servers": self.kafka.bootstrap_servers}
        topics = read_snapshot(settings, [], topics=self.topics).topics
        return {name: (topic.partitions, str(topic.id)) for name, topic in topics.items()}

    def described(self, taken: Snapshot) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
        members = taken.groups[self.group_id].members
        return {
            each.id: [(topic, tuple(numbers)) for topic, numbers in each.target.items()]
            for each in members
            if isinstance(each, ConsumerMember)
        }

    def start(self, topics: list[str], instance: str | None) -> tuple[_Member, Snapshot]:
        member = _Member(self.kafka, self.group_id, topics, instance, self.assignor)
        self.members.append(member)
        taken = self.settled(lambda members: bool(members.keys() - self.ids) and len(members) == len(self.members))
        (member.id,) = {each.id for each in taken.groups[self.group_id].members} - self.ids
        self.ids.add(member.id)
        return member, taken

    def some_topics(self) -> list[str]:
        return self.draw.some(self.topics, self.draw.between(1, 3)) if self.draw.chance(50) else list(self.topics)

    def join(self) -> tuple[Callable[[ServerSideGroup], object], Snapshot]:
        instance = unique("i") if self.draw.chance(40) else None
        member, taken = self.start(self.some_topics(), instance)
        return lambda group: group.join(member.id, member.topics, instance_id=instance), taken

    def leave(self) -> tuple[Callable[[ServerSideGroup], object], Snapshot]:
        dynamic = [member for member in self.members if member.instance is None]
        if len(self.members) < 2 or not dynamic:
            return self.join()
        member = self.draw.one(dynamic)
        self.members.remove(member)
        before = self.epoch
        member.close()
        taken = self.settled(lambda members: member.id not in members and self.now(members) > before)
        return lambda group: group.leave(member.id), taken

    def subscribe(self) -> tuple[Callable[[ServerSideGroup], object], Snapshot]:
        member = self.draw.one(self.members)
        topics = self.some_topics()
        changed, before = set(topics) != set(member.topics), self.epoch
        member.subscribe(topics)

        def done(members: dict[str, ConsumerMember]) -> bool:
            return set(members[member.id].topics) == set(topics) and (not changed or self.now(members) > before)

        return lambda group: group.subscribe(member.id, member.topics), self.settled(done)

    def grow(self) -> tuple[Callable[[ServerSideGroup], object], Snapshot]:
        topic = self.draw.one(self.topics)
        partitions = self.taken_topics()[topic][0] + self.draw.between(1, 4)
        used, before = any(topic in member.topics for member in self.members), self.epoch
        self.kafka.grow_topic(topic, partitions)
        taken = self.settled(lambda members: not used or self.now(members) > before)
        return lambda group: group.grow(topic, partitions), taken

    def static(self) -> tuple[Callable[[ServerSideGroup], object], Snapshot]:
        """A static member restarts: its new member id takes over the target of the old one."""
        static = [member for member in self.members if member.instance is not None]
        if not static:
            return self.join()
        old = self.draw.one(static)
        before = self.epoch
        old.close()
        self.members.remove(old)
        if not self.may_return(old):
            taken = self.settled(lambda members: old.id not in members and self.now(members) > before)
            return lambda group: group.leave(old.id), taken
        new, taken = self.start(old.topics, old.instance)

        def event(group: ServerSideGroup) -> None:
            group.leave(old.id, returning=True)
            group.join(new.id, new.topics, instance_id=new.instance)

        return event, taken

    def may_return(self, old: _Member) -> bool:
        """Waits until the group knows that a static member left: whether its place is kept for its instance id.

        If its successor joined earlier, the broker would refuse the instance id, which ends the successor. librdkafka
        sends the request to leave once. If it is lost, the member leaves for good when its session expires.
        """
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            found = self.taken().groups[self.group_id].members
            epoch = next((each.epoch for each in found if isinstance(each, ConsumerMember) and each.id == old.id), None)
            if epoch is None or epoch == _LEAVE_STATIC_EPOCH:
                return epoch is not None
            time.sleep(0.1)
        raise TimeoutError(f"{self.group_id} does not know that {old.id} left")

    @staticmethod
    def now(members: dict[str, ConsumerMember]) -> int:
        return max((member.epoch for member in members.values()), default=2**31)


def _wait_until_the_coordinator_knows(kafka: Kafka, topics: list[str]) -> None:
    """A coordinator gets new metadata later than a client, and assigns no topic that it does not know yet.

    `__consumer_offsets` has one partition, and so one coordinator, whose metadata all groups share.
    """
    group_id = unique("all-topics")
    member = _Member(kafka, group_id, topics, None, "uniform")
    try:
        deadline = time.monotonic() + _TIMEOUT
        known: set[str] = set()
        while known != set(topics):
            assert time.monotonic() < deadline, f"the coordinator does not know {set(topics) - known}"
            time.sleep(0.1)
            with contextlib.suppress(ClusterError):
                found = read_snapshot({"bootstrap.servers": kafka.bootstrap_servers}, [group_id]).groups[group_id]
                known = {topic for each in found.members if isinstance(each, ConsumerMember) for topic in each.target}
    finally:
        member.close()


@pytest.mark.timeout(900)
def test_each_target_is_the_one_that_we_compute(start_kafka: Callable[..., ApacheKafka]) -> None:
    kafka = start_kafka(
        consumer_protocol_version(),
        group_consumer_min_heartbeat_interval_ms=200,
        group_consumer_heartbeat_interval_ms=200,
        group_consumer_assignment_interval_ms=0,
    )
    stories = [_Story(kafka, seed) for seed in range(HISTORIES)]
    _wait_until_the_coordinator_knows(kafka, [topic for story in stories for topic in story.topics])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for told in [pool.submit(story.tell) for story in stories]:
            told.result()
