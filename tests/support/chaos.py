"""Groups under fire: members killed, frozen and replaced at random while records flow, and what must hold at the end.

`Storm` does it; a seed repeats the order of its blows, not what the machine makes of them. `Findings` is exact, since
it judges what was written down and nothing that was sampled: every line of every member, and the log of the offsets
topic.
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
from support.members import AiokafkaMember, ConfluentMember, JavaMember, KafkaPythonMember, Member
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
    "java": JavaMember,
    "kafka": KafkaPythonMember,
    "aio": AiokafkaMember,
}
# How the consumers under test read and commit, in turn.
_WAYS = (
    {"reads": "consume", "commits": "auto"},
    {"reads": "poll", "commits": "sync"},
    {"reads": "consume", "commits": "async"},
    {"reads": "poll", "commits": "auto"},
)
# Seconds between blows, and of standing still: for a moment, and past the session.
_PAUSE = (0.5, 2.5)
_SHORT = (0.2, 2.0)
_LONG = (SESSION_MS / 1000 + 0.5, SESSION_MS / 1000 + 3.0)
_REPLACED_AFTER = (0.0, 2.0)
_SETTLING = 90.0
_POLL = 0.05


class Feed:
    """Produces records with numbers, evenly over the partitions of a topic, at a rate."""

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
        """How many were sent."""
        return self._sent

    def go_on(self) -> None:
        """Sends what is due by now."""
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
        """Waits until the broker has everything; each record has its number for an offset, so nothing came twice."""
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
    """One group whose members are killed, frozen and closed at random, and replaced.

    Args:
        kafka: where it is.
        name: of the group's members, and of the group in what is told of it.
        strategy: the members'.
        kinds: the clients of its members.
        start: starts one.
        seed: of the order of the blows.
        into: the topic that the members write to, in transactions; without one they read only.

    Attributes:
        blows: how many of each kind there were.
        ended: members that ended by themselves, and were replaced: of other clients, and those of ours whose librdkafka
            lost a partition.
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
        self._count = 0
        self._topic = ""
        self._members: dict[str, Member] = {}
        self._kinds = list(kinds)
        # Blows that end later: when, and what is done then.
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._frozen: set[str] = set()
        self._next = 0.0

    def begin(self, topic: str) -> None:
        """Starts the members."""
        self._topic = topic
        for kind in self._kinds:
            self._add(kind)

    def go_on(self) -> None:
        """Strikes if it is time."""
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
        """Ends all blows: everybody is there and awake."""
        for _, act in sorted(self._later, key=lambda each: each[0]):
            act()
        self._later.clear()
        self._replace_the_ended()

    def close(self) -> None:
        """Everybody leaves."""
        for name, member in self._members.items():
            try:
                member.close()
            except RuntimeError:
                # One of kafka-python, say, that began while there was no broker, and gives up only now.
                if _kind(name) == "confluent":
                    raise
                self.ended.append(name)

    def watch(self) -> None:
        """Keeps the group at work after the storm."""
        self._replace_the_ended()

    def _add(self, kind: str) -> None:
        self._count += 1
        name = f"{kind}-{self.name}-{self._count}"
        config: dict[str, Any] = {"session_timeout_ms": SESSION_MS, "auto_commit_interval_ms": COMMIT_INTERVAL_MS}
        if kind == "confluent":
            transactions = {"commits": "transactions", "into": self._into}
            config |= _WAYS[self._count % len(_WAYS)] if self._into is None else transactions
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
            # Ours has to live through everything but a loss of librdkafka's; other clients may have their own limits.
            lost = member.exit_code == LOST_CODE
            assert lost or _kind(name) != "confluent", member.failure("ended by itself")
            self.ended.append(name)
            del self._members[name]
            self._add(_kind(name))


@dataclass
class Findings:
    """What the members of one group wrote down, judged.

    Attributes:
        topic: the one that all read.
        seen: by partition, a byte for each offset: whether somebody read it.
        read: how many records were read, those that came again included.
        generations: how many generations had an owner.
        commits: how many there were.
        again: by kind of member, how many records it read that had been read before.
    """

    topic: str
    seen: dict[int, bytearray] = field(default_factory=dict)
    read: int = 0
    generations: int = 0
    commits: int = 0
    again: Counter[str] = field(default_factory=Counter)
    # By partition, in the order of the lines: who read which offsets in which generation.
    _reads: dict[int, list[tuple[str, int, int, int]]] = field(default_factory=dict, repr=False)
    # By partition: when it was given to whom, in which generation.
    _given: dict[int, list[tuple[int, str, int]]] = field(default_factory=dict, repr=False)

    def take(self, events: Iterable[Event]) -> None:
        """Goes through the lines of all members of a group.

        Raises:
            AssertionError: two members read a partition, or were given it, in one generation; or one of ours read what
                it did not hold.
        """
        given: dict[tuple[int, int], str] = {}
        readers: dict[tuple[int, int], str] = {}
        shares: dict[str, dict[int, frozenset[int]]] = defaultdict(dict)
        latest: dict[str, int] = {}
        for event in events:
            name = event.member
            if event.kind == "synced":
                share = frozenset(number for topic, number in event.partitions if topic == self.topic)
                shares[name][event.generation] = share
                latest[name] = event.generation
                for number in share:
                    other = given.setdefault((event.generation, number), name)
                    assert other == name, f"{number} was given to {other} and {name} in generation {event.generation}"
                    self._given.setdefault(number, []).append((event.at, name, event.generation))
            elif event.kind == "consumed":
                for topic, number, first, last in event.fields["offsets"]:
                    assert topic == self.topic
                    # What a call returned may have come before the generation changed within that call.
                    began = event.fields.get("began", latest[name])
                    generation = began if number in shares[name].get(began, ()) else latest[name]
                    if _kind(name) == "confluent":
                        assert number in shares[name][generation], f"{name} read {number} in {generation}, not its own"
                    other = readers.setdefault((generation, number), name)
                    assert other == name, f"{other} and {name} read {number} in generation {generation}"
                    self.again[_kind(name)] += self._note(number, first, last)
                    self._reads.setdefault(number, []).append((name, generation, first, last))
        self.generations = len({generation for generation, _ in given})

    def _note(self, partition: int, first: int, last: int) -> int:
        """How many of these records had been read before."""
        seen = self.seen.setdefault(partition, bytearray())
        if len(seen) <= last:
            seen.extend(bytes(last + 1 - len(seen)))
        before = sum(seen[first : last + 1])
        seen[first : last + 1] = b"\1" * (last + 1 - first)
        self.read += last + 1 - first
        return before

    def missing(self, written: dict[int, int]) -> dict[int, int]:
        """How many records of each partition nobody has read."""
        lacking = {number: count - sum(self.seen.get(number, b"")[:count]) for number, count in written.items()}
        return {number: count for number, count in lacking.items() if count}

    def judge_commits(self, commits: Iterable[tuple[int, int, int]], written: dict[int, int]) -> None:
        """Goes through all commits of the group in the order of the log.

        Args:
            commits: partition, offset, and microseconds since the epoch.
            written: how many records each partition has.

        Raises:
            AssertionError: one is lower than one before it, or the last is not the end of the partition.
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
        """Who read the records on either side of an offset, and in which generation."""
        return [
            f"{name} in {generation} ({first} to {last})"
            for name, generation, first, last in self._reads.get(partition, ())
            if first <= offset <= last + 1
        ]


def _kind(name: str) -> str:
    return name.partition("-")[0]


def consumed(events: Iterable[Event], topic: str) -> Findings:
    """The findings on these events, of one group."""
    findings = Findings(topic)
    findings.take(events)
    return findings


def events_of(trace: Trace, storm: str) -> list[Event]:
    """Those of a storm's group, by its name."""
    return [event for event in list(trace.events) if event.member.partition("-")[2].rpartition("-")[0] == storm]


def keep(trace: Trace, path: Path) -> None:
    """Writes down all lines of all members, for whoever looks into a failure."""
    with path.open("w") as lines:
        for event in list(trace.events):
            lines.write(json.dumps({"name": event.member, **event.fields}) + "\n")


def latest(events: Iterable[Event]) -> str:
    """The latest line of each kind from each member, for an error message."""
    lines = {(event.member, event.kind): event for event in events}
    return "\n".join(f"  {lines[each].at / 1e6:.3f} {each[0]}: {dict(lines[each].fields)}" for each in sorted(lines))


def commits_of(kafka: Kafka, group: str, topic: str) -> Iterator[tuple[int, int, int]]:
    """Every commit of a group for a topic, in the order of the offsets topic's log: partition, offset, and when, in
    microseconds since the epoch.

    Nothing has been compacted where the log has one segment, as it has in a test.
    """
    for message in _log(kafka, OFFSETS_TOPIC):
        key, value = message.key(), message.value()
        if isinstance(key, bytes) and isinstance(value, bytes):
            at = message.timestamp()[1] * 1000
            yield from ((*commit, at) for commit in _commit(key, value, group, topic))


def written_to(kafka: Kafka, topic: str) -> Counter[tuple[int, int]]:
    """How often each record, by partition and offset, was written on to a topic by transactions that were committed."""
    written: Counter[tuple[int, int]] = Counter()
    for message in _log(kafka, topic):
        key = message.key()
        assert isinstance(key, bytes)
        partition, _, offset = key.decode().partition(":")
        written[int(partition), int(offset)] += 1
    return written


def judge_transactions(written: Counter[tuple[int, int]], read: dict[int, int]) -> None:
    """Goes through what transactions have written.

    Args:
        written: how often each record, by partition and offset.
        read: how many records each partition has.

    Raises:
        AssertionError: one was not written, or written twice.
    """
    twice = sorted(record for record, times in written.items() if times > 1)
    assert not twice, f"{len(twice)} records were written twice: {twice[:20]}"
    inputs = {(partition, offset) for partition, count in read.items() for offset in range(count)}
    lacking = sorted(inputs - written.keys())
    assert not lacking, f"{len(lacking)} records were not written: {lacking[:20]}"
    assert written.keys() == inputs, f"written, but never read: {sorted(written.keys() - inputs)[:20]}"


def _log(kafka: Kafka, topic: str) -> Iterator[confluent_kafka.Message]:
    """All records of a topic but those of transactions that were aborted, partition by partition in their order."""
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
    """The record's, if it is such a commit: its key has version 0 or 1; its value begins with version and offset."""
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
    """Restarts the broker, with or without a goodbye; returns which."""
    if chance.random() < 0.5:
        kafka.kill()
        kafka.start()
        return "broker-killed"
    kafka.restart()
    return "broker-restarted"


def wait_for(true: Callable[[], object], what: Callable[[], str], storms: Iterable[Storm]) -> None:
    """Until it is so, while the groups are kept at work."""
    deadline = time.monotonic() + _SETTLING
    while not true():
        assert time.monotonic() < deadline, f"not within {_SETTLING} s: {what()}"
        for storm in storms:
            storm.watch()
        time.sleep(_POLL)
