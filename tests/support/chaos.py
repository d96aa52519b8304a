"""Groups whose members are killed, frozen and replaced at random while records flow, and the checks at the end.

`Storm` kills, freezes and closes members; each such act is a blow. A seed repeats the order of the blows; their effect
still depends on the machine. `Findings` checks the complete record, without sampling: every line of every member, and
the log of the offsets topic.
"""

from __future__ import annotations

import json
import random
import struct
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import confluent_kafka

from support.broker import OFFSETS_TOPIC, unique
from support.members import (
    AiokafkaDropInMember,
    AiokafkaMember,
    ConfluentMember,
    JavaMember,
    KafkaPythonDropInMember,
    KafkaPythonMember,
    Member,
)
from support.python_member import LOST_CODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from support.broker import ApacheKafka, Kafka
    from support.fixtures import StartMember
    from support.members import Strategy
    from support.trace import Event, Trace

Partition = tuple[str, int]

SESSION_MS = 6000
COMMIT_INTERVAL_MS = 400
RECORD_BYTES = 100

_KINDS: dict[str, Callable[..., Member]] = {
    "confluent": ConfluentMember,
    "kafka_python": KafkaPythonDropInMember,
    "aiokafka": AiokafkaDropInMember,
    "java": JavaMember,
    "kafka_plugin": KafkaPythonMember,
    "aio_plugin": AiokafkaMember,
}
# How our consumers read and commit. New members of a kind take these in turn.
_WAYS = {
    "confluent": (
        {"reads": "consume", "commits": "auto"},
        {"reads": "poll", "commits": "sync"},
        {"reads": "consume", "commits": "async"},
        {"reads": "poll", "commits": "auto"},
    ),
    "kafka_python": (
        {"reads": "poll", "commits": "auto"},
        {"reads": "iteration", "commits": "sync"},
        {"reads": "poll", "commits": "async"},
        {"reads": "iteration", "commits": "auto"},
    ),
    "aiokafka": (
        {"reads": "getmany", "commits": "auto"},
        {"reads": "getone", "commits": "sync"},
        {"reads": "getmany", "commits": "sync"},
        {"reads": "getone", "commits": "auto"},
    ),
}
OURS = frozenset(_WAYS)
"""The kinds of members whose consumer is ours. These members must not end by themselves."""
# In seconds. The time between two blows, and the time for which a member is frozen: shorter or longer than its session.
_PAUSE = (0.5, 2.5)
_SHORT = (0.2, 2.0)
_LONG = (SESSION_MS / 1000 + 0.5, SESSION_MS / 1000 + 3.0)
_REPLACED_AFTER = (0.0, 2.0)
_SETTLING = 90.0
# A consumer of ours that leaves gives up after 30 seconds without an answer.
_LEAVING = 45.0
_POLL = 0.05


class Feed:
    """Produces numbered records at a rate, evenly over the partitions of a topic."""

    def __init__(self, kafka: Kafka, topic: str, partitions: int, rate: float) -> None:
        self.topic = topic
        self.written: dict[int, int] = dict.fromkeys(range(partitions), 0)
        self._sent = 0
        self._rate = rate
        self._started = time.monotonic()
        self._failures: list[str] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.timeout.ms": int(_SETTLING * 1000),
                "log_level": 0,
            }
        )

    @property
    def records(self) -> int:
        """The number of records sent."""
        return self._sent

    def go_on(self) -> None:
        """Sends the records that are due by now."""
        due = int((time.monotonic() - self._started) * self._rate)
        while self._sent < due:
            number, partition = divmod(self._sent, len(self.written))
            value = str(number).encode().ljust(RECORD_BYTES, b".")
            try:
                self._producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
            except BufferError:
                break
            self._sent += 1
        self._producer.poll(0)

    def end(self) -> None:
        """Waits until the broker has all records. Each offset must be the record's number: none was written twice."""
        assert self._producer.flush(_SETTLING) == 0, "the broker did not take all records"
        assert not self._failures, self._failures[:5]
        assert sum(self.written.values()) == self._sent

    def _delivered(self, error: Any, message: Any) -> None:
        partition = message.partition()
        if error is not None:
            self._failures.append(str(error))
        elif message.offset() != self.written[partition]:
            self._failures.append(f"{partition}: offset {message.offset()}, not {self.written[partition]}")
        else:
            self.written[partition] += 1


class Storm:
    """One group. Its members are killed, frozen and closed at random, and replaced.

    Args:
        kafka: the broker.
        name: part of the group's name and of its members' names.
        strategy: the members' strategy.
        kinds: the clients of the members.
        start: starts a member.
        seed: the seed of the order of the blows.
        into: the topic that the members write to, in transactions. Without one they only read.

    Attributes:
        blows: the number of blows of each kind.
        ended: the members that ended by themselves and were replaced. Of our consumers only confluent-kafka's may, if
            librdkafka lost a partition.
    """

    def __init__(
        self,
        kafka: Kafka,
        name: str,
        strategy: Strategy,
        kinds: Iterable[str],
        start: StartMember,
        seed: int,
        *,
        into: str | None = None,
    ) -> None:
        self.kafka = kafka
        self.name = name
        self.group = unique(name)
        self._strategy: Strategy = strategy
        self._into = into
        self.blows: Counter[str] = Counter()
        self.ended: list[str] = []
        self._start = start
        self._random = random.Random(seed)
        self._first_way = seed
        self._count: Counter[str] = Counter()
        self._topic = ""
        self._members: dict[str, Member] = {}
        # Members of ours that received the command `close`; their processes may still run.
        self._leaving: list[Member] = []
        self._kinds = list(kinds)
        # Blows that end later: the time, and the function that ends them.
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._frozen: set[str] = set()
        self._next = 0.0

    def begin(self, topic: str) -> None:
        """Starts the members."""
        self._topic = topic
        for kind in self._kinds:
            self._add(kind)

    def go_on(self) -> None:
        """Ends the blows that are due, replaces the members that ended, and strikes if the pause is over."""
        now = time.monotonic()
        due = [each for each in self._later if each[0] <= now]
        self._later = [each for each in self._later if each[0] > now]
        for _, act in due:
            act()
        self._replace_the_ended()
        if now >= self._next:
            self._next = now + self._random.uniform(*_PAUSE)
            self._strike()

    def calm(self) -> None:
        """Ends all blows: every member runs, none is frozen."""
        for _, act in sorted(self._later, key=lambda each: each[0]):
            act()
        self._later.clear()
        self._replace_the_ended()

    def close(self) -> None:
        """Closes all members, and waits for the end of our members that received `close` during the storm."""
        for name, member in self._members.items():
            try:
                member.close()
            except RuntimeError:
                # A member of another client may fail: kafka-python gives up only now if it started without a broker.
                if _kind(name) in OURS:
                    raise
                self.ended.append(name)
        for member in self._leaving:
            member.wait_closed(_LEAVING)

    def watch(self) -> None:
        """Replaces the members that ended by themselves, after the storm."""
        self._replace_the_ended()

    def _add(self, kind: str) -> None:
        count = self._count[kind]
        self._count[kind] += 1
        name = f"{kind}-{self.name}-{count}"
        config: dict[str, Any] = {"session_timeout_ms": SESSION_MS, "auto_commit_interval_ms": COMMIT_INTERVAL_MS}
        if self._into is not None:
            config |= {"commits": "transactions", "into": self._into}
        elif kind in OURS:
            ways = _WAYS[kind]
            config |= ways[(self._first_way + count) % len(ways)]
        member = self._start(_KINDS[kind], name, self.kafka, self.group, strategy=self._strategy, **config)
        member.subscribe(self._topic)
        self._members[name] = member

    def _strike(self) -> None:
        awake = sorted(name for name in self._members if name not in self._frozen)
        if len(awake) < 2:
            return
        name = self._random.choice(awake)
        member = self._members[name]
        kind = self._random.choices(("kill", "stall", "expire", "leave"), (3, 2, 3, 1))[0]
        replaced = self._random.uniform(*_REPLACED_AFTER)
        self.blows[kind] += 1
        if kind == "kill":
            del self._members[name]
            member.kill()
            self._in(replaced, lambda: self._add(_kind(name)))
        elif kind == "leave":
            del self._members[name]
            member.send("close")
            if _kind(name) in OURS:
                self._leaving.append(member)
            self._in(replaced, lambda: self._add(_kind(name)))
        else:
            self._frozen.add(name)
            member.freeze()
            self._in(self._random.uniform(*(_SHORT if kind == "stall" else _LONG)), lambda: self._thaw(name))

    def _thaw(self, name: str) -> None:
        self._frozen.discard(name)
        if name in self._members:
            self._members[name].thaw()

    def _in(self, seconds: float, act: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, act))

    def _replace_the_ended(self) -> None:
        for name, member in list(self._members.items()):
            if member.alive:
                continue
            # A member of ours may end only if librdkafka lost a partition. Other members may end for other reasons.
            lost = _kind(name) == "confluent" and member.exit_code == LOST_CODE
            assert lost or _kind(name) not in OURS, member.failure("ended by itself")
            self.ended.append(name)
            del self._members[name]
            self._add(_kind(name))


@dataclass
class Findings:
    """The lines of the members of one group, checked.

    Attributes:
        topic: the topic that all members read.
        seen: by partition, one byte for each offset: 1 if a member read it.
        read: the number of records read, repetitions included.
        generations: the number of generations in which a partition had an owner.
        commits: the number of commits.
        again: by kind of member, the number of records that a member had read before.
    """

    topic: str
    seen: dict[int, bytearray] = field(default_factory=dict)
    read: int = 0
    generations: int = 0
    commits: int = 0
    again: Counter[str] = field(default_factory=Counter)
    # By partition, in the order of the lines: the member, its generation, the first and the last offset that it read.
    _reads: dict[int, list[tuple[str, int, int, int]]] = field(default_factory=dict, repr=False)
    # By partition: the time, the member to which the partition was assigned, and the generation.
    _given: dict[int, list[tuple[int, str, int]]] = field(default_factory=dict, repr=False)

    def take(self, events: Iterable[Event]) -> None:
        """Adds the lines of all members of a group.

        Raises:
            AssertionError: in one generation, two members read a partition or were assigned it; or a member of ours
                read a partition that it did not own.
        """
        given: dict[tuple[int, int], str] = {}
        readers: dict[tuple[int, int], str] = {}
        shares: dict[str, dict[int, frozenset[int]]] = defaultdict(dict)
        latest: dict[str, int] = {}
        # In the new protocol a share can shrink within an epoch. By member: the partitions that left its share since
        # its last records.
        gone: dict[str, frozenset[int]] = defaultdict(frozenset)
        for event in events:
            name = event.member
            if event.kind == "synced":
                share = frozenset(number for topic, number in event.partitions if topic == self.topic)
                gone[name] |= shares[name].get(event.generation, frozenset()) - share
                shares[name][event.generation] = share
                latest[name] = event.generation
                for number in share:
                    other = given.setdefault((event.generation, number), name)
                    assert other == name, f"{number} was given to {other} and {name} in generation {event.generation}"
                    self._given.setdefault(number, []).append((event.at, name, event.generation))
            elif event.kind == "consumed":
                for topic, number, first, last in event.fields["offsets"]:
                    assert topic == self.topic
                    # A call may return records of two generations: the one in which the call began, and the latest one.
                    began = event.fields.get("began", latest[name])
                    generation = began if number in shares[name].get(began, frozenset()) | gone[name] else latest[name]
                    if _kind(name) in OURS:
                        own = shares[name][generation] | gone[name]
                        assert number in own, f"{name} read {number} in {generation}, not its own"
                    other = readers.setdefault((generation, number), name)
                    assert other == name, f"{other} and {name} read {number} in generation {generation}"
                    self.again[_kind(name)] += self._note(number, first, last)
                    self._reads.setdefault(number, []).append((name, generation, first, last))
                if "more" not in event.fields:
                    gone[name] = frozenset()
        self.generations = len({generation for generation, _ in given})

    def _note(self, partition: int, first: int, last: int) -> int:
        """Marks these records as read. Returns how many of them had been read before."""
        seen = self.seen.setdefault(partition, bytearray())
        if len(seen) <= last:
            seen.extend(bytes(last + 1 - len(seen)))
        before = sum(seen[first : last + 1])
        seen[first : last + 1] = b"\1" * (last + 1 - first)
        self.read += last + 1 - first
        return before

    def missing(self, written: dict[int, int]) -> dict[int, int]:
        """For each partition, the number of records that no member has read."""
        lacking = {number: count - sum(self.seen.get(number, b"")[:count]) for number, count in written.items()}
        return {number: count for number, count in lacking.items() if count}

    def judge_commits(self, commits: Iterable[tuple[int, int, int]], written: dict[int, int]) -> None:
        """Checks all commits of the group in the order of the log.

        Args:
            commits: partition, offset, and time in microseconds since the epoch.
            written: the number of records in each partition.

        Raises:
            AssertionError: a commit is lower than an earlier one, or the last one is not the end of the partition.
        """
        last: dict[int, int] = {}
        times: dict[int, int] = {}
        for partition, offset, at in commits:
            before = last.get(partition, 0)
            assert offset >= before, (
                f"the commit of partition {partition} went from {before} (at {times[partition]}) back to {offset} (at "
                f"{at}), read there by {self._read_at(partition, offset)}, and {before} by "
                f"{self._read_at(partition, before)}; it was given to {self._given.get(partition)}"
            )
            last[partition] = offset
            times[partition] = at
            self.commits += 1
        assert last == written, f"committed {last}, written {written}"

    def _read_at(self, partition: int, offset: int) -> list[str]:
        """The members that read the records just before and at an offset, with their generations."""
        return [
            f"{name} in {generation} ({first} to {last})"
            for name, generation, first, last in self._reads.get(partition, ())
            if first <= offset <= last + 1
        ]


def _kind(name: str) -> str:
    return name.partition("-")[0]


def consumed(events: Iterable[Event], topic: str) -> Findings:
    """The findings of these events of one group."""
    findings = Findings(topic)
    findings.take(events)
    return findings


def events_of(trace: Trace, storm: str) -> list[Event]:
    """The events of a storm's group, by the storm's name."""
    return [event for event in list(trace.events) if event.member.partition("-")[2].rpartition("-")[0] == storm]


def keep(trace: Trace, path: Path) -> None:
    """Writes all lines of all members to a file, for the analysis of a failure."""
    with path.open("w") as lines:
        for event in list(trace.events):
            lines.write(json.dumps({"name": event.member, **event.fields}) + "\n")


def latest(events: Iterable[Event]) -> str:
    """The latest line of each kind from each member, for an error message."""
    lines = {(event.member, event.kind): event for event in events}
    return "\n".join(f"  {lines[each].at / 1e6:.3f} {each[0]}: {dict(lines[each].fields)}" for each in sorted(lines))


def commits_of(kafka: Kafka, group: str, topic: str) -> Iterator[tuple[int, int, int]]:
    """Every commit of a group for a topic, in the order of the offsets topic's log: partition, offset, and time in
    microseconds since the epoch.

    The log is complete only while it has a single segment, as in a test: the active segment is never compacted.
    """
    for message in _log(kafka, OFFSETS_TOPIC):
        key, value = message.key(), message.value()
        if isinstance(key, bytes) and isinstance(value, bytes):
            at = message.timestamp()[1] * 1000
            yield from ((*commit, at) for commit in _commit(key, value, group, topic))


def written_to(kafka: Kafka, topic: str) -> Counter[tuple[int, int]]:
    """By partition and offset, how often committed transactions wrote the record to a topic."""
    written: Counter[tuple[int, int]] = Counter()
    for message in _log(kafka, topic):
        key = message.key()
        assert isinstance(key, bytes)
        partition, _, offset = key.decode().partition(":")
        written[int(partition), int(offset)] += 1
    return written


def judge_transactions(written: Counter[tuple[int, int]], read: dict[int, int]) -> None:
    """Checks the records that transactions have written.

    Args:
        written: by partition and offset, how often the record was written.
        read: the number of records of each partition that had to be written.

    Raises:
        AssertionError: a record was not written, or was written twice.
    """
    twice = sorted(record for record, times in written.items() if times > 1)
    assert not twice, f"{len(twice)} records were written twice: {twice[:20]}"
    inputs = {(partition, offset) for partition, count in read.items() for offset in range(count)}
    lacking = sorted(inputs - written.keys())
    assert not lacking, f"{len(lacking)} records were not written: {lacking[:20]}"
    assert written.keys() == inputs, f"written, but never read: {sorted(written.keys() - inputs)[:20]}"


def _log(kafka: Kafka, topic: str) -> Iterator[confluent_kafka.Message]:
    """All records of a topic except those of aborted transactions, by partition, in the order of the log."""
    partitions = kafka.describe_topics()[topic]
    with confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "reads-logs",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    ) as consumer:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        at_end = 0
        deadline = time.monotonic() + _SETTLING
        while at_end < partitions:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is None:
                    yield message
                else:
                    at_end += error.code() == confluent_kafka.KafkaError._PARTITION_EOF


def _commit(key: bytes, value: bytes, group: str, topic: str) -> Iterator[tuple[int, int]]:
    """Partition and offset of a record that is a commit of the group for the topic.

    The key of a commit has version 0 or 1. Its value begins with a version and the offset.
    """
    version, *_ = struct.unpack_from(">h", key)
    if version > 1:
        return
    texts, at = [], 2
    for _ in range(2):
        (length,) = struct.unpack_from(">h", key, at)
        texts.append(key[at + 2 : at + 2 + length].decode())
        at += 2 + length
    (partition,) = struct.unpack_from(">i", key, at)
    schema, offset = struct.unpack_from(">hq", value)
    assert 0 <= schema <= 4, f"a version {schema} of the offsets topic's values that is not known here"
    if texts == [group, topic]:
        yield partition, offset


def blow_at(kafka: ApacheKafka, chance: random.Random) -> str:
    """Restarts the broker after SIGTERM or SIGKILL; returns which."""
    if chance.random() < 0.5:
        kafka.kill()
        kafka.start()
        return "broker-killed"
    kafka.restart()
    return "broker-restarted"


def wait_for(true: Callable[[], object], what: Callable[[], str], storms: Iterable[Storm]) -> None:
    """Waits until `true()` holds. Members that end meanwhile are replaced."""
    deadline = time.monotonic() + _SETTLING
    while not true():
        assert time.monotonic() < deadline, f"not within {_SETTLING} s: {what()}"
        for storm in storms:
            storm.watch()
        time.sleep(_POLL)
