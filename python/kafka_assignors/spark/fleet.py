"""The history of one group of a made-up fleet, from the fleet's seed and the group's number.

This module uses no Spark: `kafka_assignors.spark.synth` distributes the numbers over a cluster. Every part of a group's
history draws from a generator of its own, seeded with the fleet's seed, the group's number and the part. So any worker
can make any part of any group, with the same result.

| Shape | What happens |
| --- | --- |
| `steady` | members restart now and then |
| `autoscale` | members follow the day: they join in the morning and leave in the evening |
| `rolling` | deployments: members are replaced one after the other, under new ids |
| `static` | the same with `group.instance.id`: most members return within their session, without a leave |
| `crashloop` | one member dies and comes back, with growing pauses |
| `regex` | the topics of a pattern come and go, and the subscriptions with them |
| `join` | two or three topics with equal partition counts, read by members that follow the day |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kafka_assignors.assignors import Assignor, by_name
from kafka_assignors.errors import OptionError
from kafka_assignors.group import Group, Member

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

__all__ = [
    "SHAPES",
    "START",
    "FleetOptions",
    "MembershipEvent",
    "Observed",
    "SynthGroup",
    "SynthOffsets",
    "TopicHistory",
    "pool_size",
]

SHAPES = {
    "steady": 0.28,
    "autoscale": 0.22,
    "rolling": 0.18,
    "static": 0.08,
    "crashloop": 0.08,
    "regex": 0.08,
    "join": 0.08,
}
"""The shapes of histories, with their parts of a fleet."""

START = 1_767_571_200_000
"""The default start of histories: Monday, 5 January 2026."""

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

_NOUNS = ("orders", "payments", "clicks", "stock", "mail", "billing", "search", "fraud", "ledger", "offers", "users")
_COUNTS = (1, 3, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
_COUNT_WEIGHTS = np.array([3, 8, 16, 8, 18, 8, 12, 8, 6, 6, 3, 3, 1], dtype=np.float64)
# The present strategies of groups. Java's default list gives most of them `range`.
_STRATEGIES = {"range": 0.65, "roundrobin": 0.12, "sticky": 0.23}

# The parts of a group that draw from generators of their own.
_PLAN, _STORY, _OFFSETS, _TOPIC, _POOL = range(5)


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The options of a fleet.

    Args:
        seed: of the random numbers, 0 or more: an equal seed makes an equal fleet.
        groups: how many groups there are; some of them share topics.
        cluster: the name of the cluster, for all tables.
        days: how long the histories are.
        events: the median number of rebalances of a group; some have up to ten times as many.
        snapshots: how many snapshots of offsets a group has, evenly over the time.
        start: when the histories begin, in milliseconds since 1970.

    Raises:
        OptionError: a number that is too small.
    """

    seed: int = 0
    groups: int = 100
    cluster: str = "synthetic"
    days: float = 7.0
    events: int = 20
    snapshots: int = 4
    start: int = START

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("groups", 0), ("events", 1), ("snapshots", 0), ("start", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**62:
                raise OptionError(f"{name} is {value!r}; give an integer of {least} or more")
        if isinstance(self.days, bool) or not isinstance(self.days, int | float) or not 0 < self.days <= 36_500:
            raise OptionError(f"days is {self.days!r}; give a positive number of days, 36500 at most")
        if not isinstance(self.cluster, str) or not self.cluster:
            raise OptionError(f"cluster is {self.cluster!r}; give the name of a cluster")

    @property
    def end(self) -> int:
        """When the histories end, in milliseconds since 1970."""
        return self.start + max(MINUTE, int(self.days * DAY))

    def random(self, part: int, number: int) -> Generator:
        """The generator of one part of one group or topic."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(part, number)))


class MembershipEvent(NamedTuple):
    """One row of `membership_events`, without cluster and group; events with the same `seq` are one rebalance."""

    seq: int
    ts: int
    kind: str
    member_id: str
    instance_id: str | None
    rack: str | None
    topics: list[str]


class Observed(NamedTuple):
    """One row of `observed_assignments`, without cluster and group."""

    generation: int
    ts: int
    member_id: str
    topic: str
    partitions: list[int]


class SynthOffsets(NamedTuple):
    """The offsets of all partitions of a topic at one time, by number; -1 stands for no commit."""

    ts: int
    topic: str
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    committed: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """A topic: its partition counts over time, 0 after its deletion, and the rate of records of each partition."""

    name: str
    counts: tuple[tuple[int, int], ...]
    rates: NDArray[np.float64]

    def count_at(self, ts: int) -> int:
        """The number of partitions at a time; 0 before the topic exists."""
        return next((count for since, count in reversed(self.counts) if since <= ts), 0)


def pool_size(groups: int) -> int:
    """How many topics of a fleet are read by many groups."""
    return min(groups, 4 + math.isqrt(groups))


def _zipf(random: Generator, count: int, exponent: float) -> NDArray[np.float64]:
    """Parts of a whole by Zipf's law, in random order."""
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    return random.permutation(weights / weights.sum())


def _pick(random: Generator, weights: dict[str, float]) -> str:
    shares = np.array(list(weights.values()))
    return list(weights)[int(random.choice(len(shares), p=shares / shares.sum()))]


def _partition_count(random: Generator, least: int = 1) -> int:
    drawn = _COUNTS[int(random.choice(len(_COUNTS), p=_COUNT_WEIGHTS / _COUNT_WEIGHTS.sum()))]
    return next((count for count in _COUNTS if count >= max(drawn, least)), _COUNTS[-1])


def _topic(random: Generator, name: str, count: int, options: FleetOptions, *, growth: float) -> TopicHistory:
    counts = [(options.start, count)]
    if random.random() < growth:
        since = int(random.integers(options.start + 1, options.end))
        counts.append((since, count + max(1, int(count * random.uniform(0.25, 1.0)))))
    most = counts[-1][1]
    rates = _zipf(random, most, random.uniform(0.1, 0.9)) * most * random.lognormal(1.0, 1.2)
    return TopicHistory(name, tuple(counts), rates)


def pool_topic(options: FleetOptions, number: int) -> TopicHistory:
    """A topic that many groups read."""
    random = options.random(_POOL, number)
    return _topic(
        random, f"shared.{_NOUNS[number % len(_NOUNS)]}.{number}", _partition_count(random), options, growth=0.1
    )


class _Change(NamedTuple):
    """An action of a member, before ids and numbers are assigned. `slot` is its place in the deployment."""

    ts: int
    kind: str
    slot: int


@dataclass(frozen=True)
class SynthGroup:
    """One group of a fleet, by its number; each part is computed at its first use.

    >>> group = SynthGroup(FleetOptions(seed=7, groups=3), 1)
    >>> group.group_id, len({event.seq for event in group.events})
    ('regex-payments-00001', 8)
    """

    options: FleetOptions
    number: int

    @cached_property
    def _plan(self) -> tuple[str, int, int, str, bool]:
        """Shape, members, rebalances, present strategy, and whether the members have racks."""
        random = self.options.random(_PLAN, self.number)
        shape = _pick(random, SHAPES)
        # The sizes have a heavy tail: most groups have about five members, some a hundred.
        members = min(120, 1 + int(random.pareto(1.1) * 2.5))
        if shape in ("autoscale", "join"):
            members = max(3, members)
        budget = int(np.clip(self.options.events * random.lognormal(0.0, 0.5), 2, 10 * self.options.events))
        return shape, members, budget, _pick(random, _STRATEGIES), bool(random.random() < 0.3)

    @property
    def shape(self) -> str:
        """One of `SHAPES`."""
        return self._plan[0]

    @property
    def strategy(self) -> str:
        """The present strategy of the group, by its wire name."""
        return self._plan[3]

    @cached_property
    def noun(self) -> str:
        """The subject of the group, for its name."""
        return _NOUNS[self.number % len(_NOUNS)]

    @cached_property
    def group_id(self) -> str:
        """The group's id: its shape, its subject and its number."""
        return f"{self.shape}-{self.noun}-{self.number:05d}"

    @cached_property
    def own_topics(self) -> tuple[TopicHistory, ...]:
        """The topics that no other group reads, by name."""
        random = self.options.random(_TOPIC, self.number)
        shape, members, _, _, _ = self._plan
        name = f"{self.noun}.{self.number:05d}"
        # Few groups have more members than partitions.
        least = 1 if random.random() < 0.08 else min(members, _COUNTS[-1])
        if shape == "join":
            count = _partition_count(random, least)
            sides = ("impressions", "clicks", "returns")[: int(random.integers(2, 4))]
            joined = (_topic(random, f"{name}.{side}", count, self.options, growth=0.08) for side in sides)
            return tuple(sorted(joined, key=lambda topic: topic.name))
        if shape == "regex":
            return tuple(
                self._passing(random, f"{name}.tenant-{each:02d}") for each in range(int(random.integers(3, 9)))
            )
        topics = int(random.choice([1, 1, 1, 2, 2, 3, 5]))
        return tuple(
            _topic(
                random, f"{name}.{each}", _partition_count(random, least if each == 0 else 1), self.options, growth=0.06
            )
            for each in range(topics)
        )

    def _passing(self, random: Generator, name: str) -> TopicHistory:
        """A topic that may be created late and deleted early."""
        options = self.options
        topic = _topic(random, name, _COUNTS[int(random.integers(0, 6))], options, growth=0.0)
        span = options.end - options.start
        since = options.start if random.random() < 0.5 else options.start + int(span * random.uniform(0.05, 0.8))
        counts = [(since, topic.counts[0][1])]
        if random.random() < 0.4:
            counts.append((since + max(1, int((options.end - since) * random.uniform(0.2, 0.9))), 0))
        return TopicHistory(name, tuple(counts), topic.rates)

    @cached_property
    def topics(self) -> tuple[TopicHistory, ...]:
        """All topics of the group: its own, and for some groups one that many groups read."""
        random = self.options.random(_STORY, self.number)
        shared = pool_size(self.options.groups)
        if self.shape in ("regex", "join") or not shared or random.random() < 0.7:
            return self.own_topics
        popular = np.arange(1, shared + 1) ** -1.1
        number = int(random.choice(shared, p=popular / popular.sum()))
        return (*self.own_topics, pool_topic(self.options, number))

    # ---- members ----------------------------------------------------------------------------------------------------

    def _changes(self, random: Generator) -> list[_Change]:
        _, members, budget, _, _ = self._plan
        history = {
            "autoscale": self._by_the_day,
            "join": self._by_the_day,
            "rolling": self._deployments,
            "static": self._deployments,
            "crashloop": self._crashes,
            "regex": self._restarts,
            "steady": self._restarts,
        }[self.shape]
        end = self.options.end
        return sorted((change for change in history(random, members, budget) if change.ts < end), key=lambda it: it.ts)

    def _by_the_day(self, random: Generator, members: int, budget: int) -> Iterator[_Change]:
        """The number of members follows a wave of a day."""
        options = self.options
        swing = members * random.uniform(0.2, 0.6)
        phase = random.uniform(0, 2 * math.pi)
        # More times than `budget`, by half: at some of them the number of members stays the same.
        times = np.sort(random.integers(options.start + MINUTE, options.end, budget + budget // 2))
        present = members
        for ts in times.tolist():
            wave = swing * math.sin(2 * math.pi * (ts - options.start) / DAY + phase)
            wanted = max(1, round(members + wave + random.normal(0, 0.3)))
            for slot in range(present, wanted):
                yield _Change(ts, "join", slot)
            for slot in range(wanted, present):
                yield _Change(ts, "leave", slot)
            present = wanted

    def _deployments(self, random: Generator, members: int, budget: int) -> Iterator[_Change]:
        """New members replace the old ones one after the other, in large groups several at once."""
        options = self.options
        at_once = max(1, math.ceil(2 * members / budget))
        steps = math.ceil(members / at_once)
        deployments = max(1, round(budget / (steps if self.shape == "static" else 2 * steps)))
        surge = random.random() < 0.5
        for since in np.sort(random.integers(options.start + MINUTE, options.end, deployments)).tolist():
            ts = since
            for first in range(0, members, at_once):
                slots = range(first, min(first + at_once, members))
                pause = int(random.integers(20 * SECOND, 90 * SECOND))
                if self.shape == "static" and random.random() > 0.06:
                    yield from (_Change(ts, "return", slot) for slot in slots)
                elif surge and self.shape != "static":
                    # The new member joins before the old one leaves.
                    yield from (_Change(ts, "replace", slot) for slot in slots)
                    yield from (_Change(ts + pause // 2, "retire", slot) for slot in slots)
                else:
                    yield from (_Change(ts, "leave", slot) for slot in slots)
                    yield from (_Change(ts + pause // 2, "join", slot) for slot in slots)
                ts += pause

    def _crashes(self, random: Generator, members: int, budget: int) -> Iterator[_Change]:
        """One member dies and comes back; the pauses double up to five minutes, as in Kubernetes."""
        slot = int(random.integers(members))
        ts = int(random.integers(self.options.start + MINUTE, self.options.end))
        pause = 10 * SECOND
        for _ in range(max(1, budget // 2)):
            yield _Change(ts, "leave", slot)
            ts += pause
            yield _Change(ts, "join", slot)
            ts += int(random.integers(15 * SECOND, 60 * SECOND))
            pause = min(2 * pause, 5 * MINUTE)

    def _restarts(self, random: Generator, members: int, budget: int) -> Iterator[_Change]:
        options = self.options
        times = np.sort(random.integers(options.start + MINUTE, options.end, max(1, budget // 4)))
        ready = [options.start] * members
        for ts in times.tolist():
            slot = int(random.integers(members))
            if ready[slot] < ts:
                ready[slot] = ts + int(random.integers(20 * SECOND, 10 * MINUTE))
                yield _Change(ts, "leave", slot)
                yield _Change(ready[slot], "join", slot)

    @cached_property
    def events(self) -> list[MembershipEvent]:
        """The events of its members, in order. The first members join in one rebalance."""
        options = self.options
        random = options.random(_STORY, self.number)
        random.random()  # the draw of `topics`, whose generator has the same seed
        _, members, _, _, racks = self._plan
        names = [topic.name for topic in self.topics]
        # In some groups not every member subscribes to every topic.
        partial = self.shape not in ("regex", "join") and len(names) > 1 and random.random() < 0.15

        def subscription(slot: int, ts: int) -> list[str]:
            if self.shape == "regex":
                return [topic.name for topic in self.topics if topic.count_at(ts) > 0]
            return names[:1] if partial and slot % 3 == 2 else names

        events: list[MembershipEvent] = []
        present: dict[int, list[str]] = {}
        born = 0

        def add(seq: int, ts: int, kind: str, slot: int, member_id: str) -> None:
            instance_id = f"{self.noun}-{slot}" if self.shape == "static" else None
            rack = "abc"[slot % 3] if racks else None
            topics = [] if kind == "leave" else subscription(slot, ts)
            events.append(MembershipEvent(seq, ts, kind, member_id, instance_id, rack, topics))

        def enter(seq: int, ts: int, slot: int) -> None:
            nonlocal born
            member_id = f"{self.noun}-{slot}-{born:04x}{int(random.integers(2**16)):04x}"
            born += 1
            if self.shape == "static":
                # The newest member with an instance id replaces the former one, and only the newest can leave.
                present[slot] = []
            present.setdefault(slot, []).append(member_id)
            add(seq, ts, "join", slot, member_id)

        seq = 1
        for slot in range(members):
            enter(seq, options.start, slot)
        changes = self._changes(random)
        if self.shape == "regex":
            moments = sorted(
                {ts for topic in self.topics for ts, _ in topic.counts if options.start < ts < options.end}
            )
            changes = sorted([*changes, *(_Change(ts, "subscribe", -1) for ts in moments)], key=lambda it: it.ts)
        last = options.start
        for change in changes:
            # Events of one time are one rebalance.
            if change.ts > last:
                seq, last = seq + 1, change.ts
            ids = present.get(change.slot, [])
            match change.kind:
                # A static member that returns within its session has a new id, and there is no leave.
                case "join" | "replace" | "return":
                    enter(seq, change.ts, change.slot)
                case "leave" | "retire":
                    if ids:
                        add(seq, change.ts, "leave", change.slot, ids.pop(0))
                case _:
                    for slot, held in sorted(present.items()):
                        for member_id in held:
                            add(seq, change.ts, "subscribe", slot, member_id)
        return _without_gaps(events)

    # ---- offsets ----------------------------------------------------------------------------------------------------

    def offsets(self) -> Iterator[SynthOffsets]:
        """The snapshots of offsets of its topics. Lags are skewed: a few partitions have most of them."""
        options = self.options
        random = options.random(_OFFSETS, self.number)
        # Most groups have little lag, some have more, a few have much.
        behind = float(random.choice([2.0, 60.0, 3_600.0], p=[0.7, 0.2, 0.1]))
        skew = random.uniform(0.5, 1.4)
        weights = {topic.name: _zipf(random, len(topic.rates), skew) * len(topic.rates) for topic in self.topics}
        never = {topic.name: random.random(len(topic.rates)) < 0.01 for topic in self.topics}
        for moment in range(options.snapshots):
            ts = options.start + (options.end - options.start) * moment // options.snapshots
            for topic in self.topics:
                count = topic.count_at(ts)
                if not count:
                    continue
                seconds = (ts - topic.counts[0][0]) / 1000 + 7 * 86_400
                end = (topic.rates[:count] * seconds).astype(np.int64)
                begin = np.maximum(0, end - (topic.rates[:count] * 3 * 86_400).astype(np.int64))
                seconds_behind = behind * weights[topic.name][:count] * random.lognormal(0.0, 0.4, count)
                committed = np.maximum(begin, end - (topic.rates[:count] * seconds_behind).astype(np.int64))
                yield SynthOffsets(ts, topic.name, begin, end, np.where(never[topic.name][:count], -1, committed))

    # ---- assignments ------------------------------------------------------------------------------------------------

    def observed(self) -> Iterator[Observed]:
        """The partitions of its members in each generation, by its strategy; `seq` of a rebalance is its generation."""
        assignor: Assignor = by_name(self.strategy)
        by_topic = {topic.name: topic for topic in self.topics}
        members: dict[str, MembershipEvent] = {}
        owned: dict[str, dict[str, list[int]]] = {}
        for step in _steps(self.events):
            for event in step:
                if event.kind == "leave":
                    members.pop(event.member_id, None)
                    continue
                if event.instance_id is not None:
                    # A static member comes back under a new id with its former partitions.
                    for old in [each for each in members.values() if each.instance_id == event.instance_id]:
                        owned[event.member_id] = owned.pop(old.member_id, {})
                        del members[old.member_id]
                members[event.member_id] = event
            seq, ts = step[0].seq, step[0].ts
            counts = {name: by_topic[name].count_at(ts) for each in members.values() for name in each.topics}
            joined = [
                Member(each.member_id, each.topics, owned=owned.get(each.member_id), instance_id=each.instance_id)
                for each in members.values()
            ]
            plan = assignor.assign(Group(counts, joined))
            owned = plan.assignment
            for member_id, assigned in owned.items():
                for topic, partitions in assigned.items():
                    yield Observed(seq, ts, member_id, topic, partitions)


def _steps(events: Sequence[MembershipEvent]) -> Iterator[list[MembershipEvent]]:
    step: list[MembershipEvent] = []
    for event in events:
        if step and step[0].seq != event.seq:
            yield step
            step = []
        step.append(event)
    if step:
        yield step


def _without_gaps(events: list[MembershipEvent]) -> list[MembershipEvent]:
    """Numbers the rebalances without gaps. A change without a present member has no event, and leaves a gap."""
    numbers = {seq: number for number, seq in enumerate(dict.fromkeys(event.seq for event in events), 1)}
    return [event._replace(seq=numbers[event.seq]) for event in events]
