"""Histories of groups for tests of the replay: random ones, in Arrow's form, and replayed by hand.

The replay by hand is the oracle. It is plain Python over the public API, and takes each member through the claims that
a real member would send. It uses none of the replay's own code.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow

from kafka_assignors import Group, LagBasedAssignor, Member, StickyAssignor, WeightedAssignor, balance_score
from kafka_assignors.server_side import ServerSideAssignor
from kafka_assignors.weighted import decode_capacity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.assignors import Assignor

Partition = tuple[str, int]

_TEXTS = pyarrow.list_(pyarrow.string())
_LONG, _INT, _TEXT = pyarrow.int64(), pyarrow.int32(), pyarrow.string()


def _structs(*fields: tuple[str, pyarrow.DataType]) -> pyarrow.DataType:
    return pyarrow.list_(pyarrow.struct(fields))


SCHEMA = pyarrow.schema(
    [
        ("cluster", _TEXT),
        ("group_id", _TEXT),
        (
            "events",
            _structs(
                ("seq", _LONG),
                ("ts", _LONG),
                ("kind", _TEXT),
                ("member_id", _TEXT),
                ("instance_id", _TEXT),
                ("topics", _TEXTS),
                ("generation", _INT),
            ),
        ),
        ("counts", _structs(("ts", _LONG), ("topic", _TEXT), ("partition_count", _INT))),
        ("lags", _structs(("ts", _LONG), ("topic", _TEXT), ("partition", _INT), ("lag", _LONG))),
        (
            "observed",
            _structs(("generation", _INT), ("member_id", _TEXT), ("topic", _TEXT), ("partitions", pyarrow.list_(_INT))),
        ),
    ]
)


@dataclass
class History:
    """One group's rows of the input tables, without the column of the key."""

    events: list[dict[str, Any]] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)
    lags: list[dict[str, Any]] = field(default_factory=list)
    observed: list[dict[str, Any]] = field(default_factory=list)


def event(seq: int, kind: str, member_id: str | None, topics: list[str] | None = None, **more: Any) -> dict[str, Any]:
    base = {"seq": seq, "ts": 100 * seq, "kind": kind, "member_id": member_id, "topics": topics}
    return {**base, "instance_id": None, "generation": None, **more}


def count(ts: int, topic: str, partition_count: int) -> dict[str, Any]:
    return {"ts": ts, "topic": topic, "partition_count": partition_count}


def batch(histories: dict[Any, History]) -> pyarrow.RecordBatch:
    """A row for each group."""
    rows = [
        {"cluster": "c", "group_id": group_id, **{name: getattr(history, name) for name in SCHEMA.names[2:]}}
        for group_id, history in histories.items()
    ]
    return pyarrow.RecordBatch.from_pylist(rows, SCHEMA)


def drawn(seed: int) -> History:
    """A group of up to six members, some of them static, and three topics. Members leave and rejoin; lags change."""
    chance = random.Random(seed)
    lists = [["t"], ["t", "u"], ["u"], ["u", "v", "t"]]
    history = History(counts=[count(0, "t", chance.randrange(1, 12)), count(0, "u", 4), count(0, "v", 3)])
    present: dict[str, str | None] = {}
    for seq in range(1, chance.randrange(2, 14)):
        if present and chance.random() < 0.35:
            member = chance.choice(sorted(present))
            history.events.append(event(seq, "leave", member, instance_id=present.pop(member)))
            continue
        number = chance.randrange(6)
        instance = f"i{number}" if number < 2 else None
        member = f"m{number}-{chance.randrange(2)}" if instance else f"m{number}"
        if instance:
            present = {id: of for id, of in present.items() if of != instance}
        kind = "subscribe" if member in present else "join"
        present[member] = instance
        history.events.append(event(seq, kind, member, chance.choice(lists), instance_id=instance))
    for _ in range(chance.randrange(3)):
        ts = 100 * chance.randrange(14) + 50
        history.counts.append(count(ts, chance.choice("tuv"), chance.randrange(8)))
    if chance.random() < 0.7:
        for ts in (0, 550):
            for topic in "tuv":
                for partition in range(5):
                    lag = chance.choice([0, chance.randrange(1, 1_000)])
                    history.lags.append({"ts": ts, "topic": topic, "partition": partition, "lag": lag})
    return history


@dataclass
class ByHand:
    """A group under one strategy, replayed step by step."""

    history: History
    assignor: Assignor
    counts: dict[str, int] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The owner of each partition: the instance of a static member, else the member.
    owners: dict[Partition, str] = field(default_factory=dict)
    generation: int = 0
    # The members at the previous rebalance.
    there: set[str] = field(default_factory=set)

    def rows(self) -> list[dict[str, Any]]:
        """The group's rows of the table `rebalances`."""
        topics = {topic for event in self.history.events for topic in event["topics"] or ()}
        changes = [change for change in self.history.counts if change["topic"] in topics]
        self.counts = dict.fromkeys(sorted(topics), 0)
        moments = sorted({(change["ts"], 0) for change in changes} | {(each["ts"], 1) for each in self.history.events})
        found: list[dict[str, Any]] = []
        seq = min((each["seq"] for each in self.history.events), default=0)
        for ts, what in moments:
            if what == 0:
                concerned = self._count([change for change in changes if change["ts"] == ts])
                self.owners = {at: who for at, who in self.owners.items() if at[1] < self.counts[at[0]]}
            else:
                concerned = True
                seq = self._apply([each for each in self.history.events if each["ts"] == ts])
            if not self.members:
                self.there = set()
            if self.members and concerned:
                found.append({"seq": seq, "ts": ts, "cause": "members" if what else "partitions", **self._step(ts)})
        return found

    def _count(self, changes: list[dict[str, Any]]) -> bool:
        before = dict(self.counts)
        for change in sorted(changes, key=lambda change: change["partition_count"]):
            self.counts[change["topic"]] = change["partition_count"]
        changed = {topic for topic in before if before[topic] != self.counts[topic]}
        return any(changed & set(member["topics"]) for member in self.members.values())

    def _apply(self, events: Iterable[dict[str, Any]]) -> int:
        for each in events:
            instance, member_id = each["instance_id"], each["member_id"]
            if each["kind"] == "leave":
                self.members.pop(member_id, None)
                continue
            if instance:
                same = [
                    id for id, other in self.members.items() if other["instance_id"] == instance and id != member_id
                ]
                for id in same:
                    del self.members[id]
            self.members[member_id] = {"instance_id": instance, "topics": each["topics"]}
        seq: int = each["seq"]
        return seq

    def _identity(self, member_id: str) -> str:
        return self.members[member_id]["instance_id"] or member_id

    def _lags(self, ts: int) -> dict[str, list[int]]:
        now: dict[Partition, int] = {}
        for lag in sorted(self.history.lags, key=lambda lag: lag["ts"]):
            if lag["ts"] <= ts:
                now[lag["topic"], lag["partition"]] = lag["lag"]
        return {topic: [now.get((topic, number), 0) for number in range(many)] for topic, many in self.counts.items()}

    def _group(self, owners: dict[Partition, str]) -> Group:
        members = []
        for member_id, member in self.members.items():
            owned: dict[str, list[int]] = {}
            for (topic, number), who in sorted(owners.items()):
                if who == self._identity(member_id):
                    owned.setdefault(topic, []).append(number)
            generation = self.generation or None
            members.append(
                Member(
                    member_id,
                    topics=member["topics"],
                    owned=owned,
                    generation=generation if owned else None,
                    instance_id=member["instance_id"],
                )
            )
        return Group(self.counts, members)

    def _plan(self, assignor: Assignor, owners: dict[Partition, str], lags: dict[str, list[int]]) -> Any:
        group = self._group(owners)
        return assignor.assign(group, lags=lags) if isinstance(assignor, LagBasedAssignor) else assignor.assign(group)

    def _owners_of(self, plan: Any) -> dict[Partition, str]:
        shares = ((id, topic, numbers) for id, share in plan.assignment.items() for topic, numbers in share.items())
        return {(topic, number): self._identity(id) for id, topic, numbers in shares for number in numbers}

    def _moved(self, after: dict[Partition, str]) -> int:
        return sum(after.get(at) != who for at, who in self.owners.items())

    def _loads(self, plan: Any) -> dict[str, float | None]:
        """The largest load of a member, relative to its capacity, from the plan, and the bound of its verification."""
        if not isinstance(self.assignor, WeightedAssignor):
            return {"worst_load": None, "load_bound": None}
        capacities = {member.id: decode_capacity(member.data) for member in self._group({}).members}
        shares = [load / capacities[id] for id, load in plan.load_by_member.items()]
        certificate = plan.verify()
        assert certificate.load == max(shares)
        return {"worst_load": max(shares), "load_bound": certificate.load_bound}

    def _step(self, ts: int) -> dict[str, Any]:
        lags = self._lags(ts)
        plan = self._plan(self.assignor, self.owners, lags)
        self.generation += 1
        if any(each.reason.startswith("withheld") for each in plan.unassigned):
            held = self._owners_of(plan)
            self.generation += 1
            plan = self._plan(self.assignor, held, lags)
        after = self._owners_of(plan)
        best = self._owners_of(StickyAssignor().assign(self._group(self.owners)))
        subscribed = sorted({topic for member in self.members.values() for topic in member["topics"]})
        loads = {self._identity(id): 0 for id in self.members}
        behind = dict(loads)
        for (topic, number), who in after.items():
            loads[who] += 1
            behind[who] += lags[topic][number]
        joined = [self.counts[topic] for topic in subscribed if self.counts[topic]]
        numbers = range(min(joined, default=0))
        split = sum(
            len({after[topic, number] for topic in subscribed if (topic, number) in after}) > 1 for number in numbers
        )
        mean = sum(behind.values()) / len(behind)
        row = {
            "generation": self.generation,
            "members": len(self.members),
            "partitions": sum(self.counts[topic] for topic in subscribed),
            "assigned": len(after),
            "min_count": min(loads.values()),
            "max_count": max(loads.values()),
            "balance_score": balance_score(loads),
            "moved": self._moved(after),
            "moved_needed": self._moved(best),
            "max_lag": max(behind.values()),
            "mean_lag": mean,
            "lag_skew": max(behind.values()) / mean if mean else 1.0,
            **self._loads(plan),
            "copartition_violations": split,
            "ownerless_ms": self._ownerless(after),
        }
        self.owners = after
        self.there = set(loads)
        return row

    def _ownerless(self, after: dict[Partition, str]) -> int:
        """Partitions x milliseconds without an owner, with librdkafka's intervals and a round trip of 5 ms."""
        staying = self.there & {self._identity(id) for id in self.members}
        before = {at: who for at, who in self.owners.items() if who in staying}
        lost = {at for at, who in after.items() if before.get(at, who) != who}
        # A member that gives up partitions begins the second rebalance. The heartbeats of the other members report it
        # one interval after the first rebalance.
        others = {self._identity(id) for id in self.members} - {before[at] for at in lost}
        # The heartbeats of all members report the first rebalance at one moment, half an interval later on average.
        last = 1_500 if staying else 0
        total = 0
        for at, who in after.items():
            if isinstance(self.assignor, ServerSideAssignor):
                if at not in before:
                    total += 2_505 if who in staying else 5
                elif at in lost:
                    total += 2_510
            elif at not in before:
                total += last + 10
            elif not self.assignor.cooperative:
                total += 10
            elif at in lost:
                total += 10 + (3_000 if others else 0)
        return total
