"""The points of the race: groups before and after a change, as the bytes that their members send in JoinGroup."""

from __future__ import annotations

import random
import struct
import warnings
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from kafka_assignors import Group as PlannedGroup
from kafka_assignors import Member, RecordSizeWarning, StickyAssignor, Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["POINTS", "QUICK", "RACKS", "Group", "Point", "subscription"]

Kind = Literal["equal", "one odd member", "5 buckets", "random", "skewed", "chain", "uneven chain"]
Change = Literal["fresh", "one joins", "one leaves", "10 % replaced", "doubled", "redrawn"]
Subscriptions = dict[str, tuple[str, ...]]

RACKS = ("rack-0", "rack-1", "rack-2")
# The replicas of partition p are on the racks p and p + 1, as the embedded Kafka places them on three brokers.
REPLICAS = 2
GENERATION = 5
BUCKETS = 5
# The number of topics that a member draws if subscriptions overlap at random, by the number of all topics.
DRAWN = {10: 4, 100: 10, 1000: 20}
SKEW = 0.7


@dataclass(frozen=True)
class Point:
    """One point of the grid: a size, the shape of the subscriptions, a change, and whether there are racks."""

    members: int
    per_member: int
    topics: int
    kind: Kind
    change: Change
    racks: bool = False

    @property
    def name(self) -> str:
        racks = ", racks" if self.racks else ""
        return f"{self.members:,} x {self.per_member} over {self.topics:,}, {self.kind}: {self.change}{racks}"

    @property
    def partitions(self) -> int:
        """The approximate number of partitions. If topics have different sizes, rounding makes it smaller."""
        return self.members * self.per_member

    def group(self) -> Group:
        """The group itself. The same point is the same group in every process."""
        return _Draw(self).group()


@dataclass(frozen=True)
class Group:
    """A group after its change, as the leader sees it."""

    topics: dict[str, int]
    subscriptions: Subscriptions
    """By member id, in order of the ids."""
    owned: dict[str, Mapping[str, Sequence[int]]]
    """The partitions of the members from before the change; no partition has two owners."""
    racks: dict[str, str] = field(default_factory=dict)
    """The racks of the members, if there are any."""
    generation: int = GENERATION

    @cached_property
    def ids(self) -> list[str]:
        return list(self.subscriptions)

    @cached_property
    def partitions(self) -> dict[str, int | Topic]:
        """The topics, in the form that our assignors take."""
        if not self.racks:
            return dict(self.topics)
        places = [replica_racks(number) for number in range(max(self.topics.values()))]
        return {name: Topic(count, racks=places[:count]) for name, count in self.topics.items()}

    def joined(self) -> list[tuple[str, bytes]]:
        """The members' ids and metadata, as JoinGroup lists them for the leader."""
        return [
            (member, subscription(topics, self.owned.get(member), self.generation, self.racks.get(member)))
            for member, topics in self.subscriptions.items()
        ]

    def write(self, path: Path) -> None:
        """Writes the file that every contender reads; big-endian, strings as in the protocol:

        the number of racks and their names; the number of topics, and of each its name and partition count (with racks,
        partition p has replicas on the racks p and p + 1, modulo the number of racks); the number of members, and of
        each its id, the length of its metadata in four bytes, and its metadata.
        """
        racks = RACKS if self.racks else ()
        out = [struct.pack(">i", len(racks)), *map(_string, racks), struct.pack(">i", len(self.topics))]
        for name, count in self.topics.items():
            out += [_string(name), struct.pack(">i", count)]
        members = self.joined()
        out.append(struct.pack(">i", len(members)))
        for member, metadata in members:
            out += [_string(member), struct.pack(">i", len(metadata)), metadata]
        path.write_bytes(b"".join(out))


def replica_racks(partition: int) -> set[str]:
    """The racks of one partition's replicas, the leader's among them."""
    return {RACKS[(partition + replica) % len(RACKS)] for replica in range(REPLICAS)}


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def subscription(
    topics: Iterable[str], owned: Mapping[str, Sequence[int]] | None, generation: int, rack: str | None = None
) -> bytes:
    """A ConsumerProtocolSubscription that all strategies can read: version 3, with the owned partitions twice.

    The user data is that of a `sticky` member (KIP-54, KIP-341), the later fields are those of a `cooperative-sticky`
    one (KIP-429, KIP-792), as members of librdkafka and franz-go send them. `owned` is None for a newcomer.
    """
    names = sorted(set(topics))
    out = [struct.pack(">hi", 3, len(names)), *map(_string, names)]
    if owned is None:
        out += [struct.pack(">iii", -1, 0, -1)]
    else:
        claims = [struct.pack(">i", len(owned))]
        for name in sorted(owned):
            numbers = owned[name]
            claims += [_string(name), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
        listed = b"".join(claims)
        out += [struct.pack(">i", len(listed) + 4), listed, struct.pack(">i", generation)]
        out += [listed, struct.pack(">i", generation)]
    out.append(struct.pack(">h", -1) if rack is None else _string(rack))
    return b"".join(out)


class _Draw:
    """Draws a point's group. The seed is computed from the point's name."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._random = random.Random(zlib.crc32(point.name.encode()))
        self._names = [f"topic-{number:05}" for number in range(point.topics)]

    def group(self) -> Group:
        point = self._point
        topics = self._sizes()
        ids = [f"consumer-{number:05}-4f1c2a9e" for number in range(point.members)]
        drawn = self._subscriptions(ids)
        before, after = self._change(drawn)
        racks = {member: RACKS[number % len(RACKS)] for number, member in enumerate(sorted({*before, *after}))}
        if not point.racks:
            racks = {}
        owned = self._owned(topics, before, racks)
        return Group(
            topics=topics,
            subscriptions=dict(sorted(after.items())),
            owned={member: owned[member] for member in after if member in owned},
            racks={member: racks[member] for member in after if member in racks},
        )

    def _sizes(self) -> dict[str, int]:
        point = self._point
        if point.kind == "uneven chain":
            most = 2 * point.partitions // point.topics
            return {name: self._random.randint(1, most) for name in self._names}
        if point.kind != "skewed":
            return dict.fromkeys(self._names, max(1, point.partitions // point.topics))
        weights = [rank**-SKEW for rank in range(1, point.topics + 1)]
        scale = point.partitions / sum(weights)
        return {name: max(1, int(weight * scale)) for name, weight in zip(self._names, weights, strict=True)}

    def _subscriptions(self, ids: Sequence[str], shift: int = 0) -> Subscriptions:
        names, kind = self._names, self._point.kind
        whole = tuple(names)
        if kind == "equal":
            return dict.fromkeys(ids, whole)
        if kind == "one odd member":
            return {**dict.fromkeys(ids, whole), ids[len(ids) // 2]: (names[len(names) // 2],)}
        if kind == "5 buckets":
            buckets = [tuple(names[bucket::BUCKETS]) for bucket in range(BUCKETS)]
            return {member: buckets[number % BUCKETS] for number, member in enumerate(ids)}
        if kind in ("chain", "uneven chain"):
            links = [(number * len(names) // len(ids) + shift) % len(names) for number in range(len(ids))]
            return {
                member: (names[link], names[(link + 1) % len(names)]) for member, link in zip(ids, links, strict=True)
            }
        return {member: tuple(sorted(self._random.sample(names, DRAWN[len(names)]))) for member in ids}

    def _change(self, drawn: Subscriptions) -> tuple[Subscriptions, Subscriptions]:
        """The subscriptions before and after the change. A new member subscribes like one of the drawn members."""
        ids = list(drawn)
        match self._point.change:
            case "fresh":
                return {}, drawn
            case "one joins":
                model = ids[len(ids) // 3]
                return drawn, {**drawn, "consumer-joiner": drawn[model]}
            case "one leaves":
                gone = ids[len(ids) // 3]
                return drawn, {member: topics for member, topics in drawn.items() if member != gone}
            case "10 % replaced":
                replaced = set(self._random.sample(ids, len(ids) // 10))
                stay = {member: topics for member, topics in drawn.items() if member not in replaced}
                return drawn, stay | {f"replacement-of-{member}": drawn[member] for member in sorted(replaced)}
            case "doubled":
                return dict(list(drawn.items())[::2]), drawn
            case "redrawn":
                return drawn, self._subscriptions(ids, shift=len(self._names) // 7)

    def _owned(
        self, topics: dict[str, int], before: Subscriptions, racks: dict[str, str]
    ) -> dict[str, Mapping[str, Sequence[int]]]:
        if not before:
            return {}
        members = [Member(member, names, rack=racks.get(member)) for member, names in before.items()]
        group = Group(topics, before, {}, racks)
        with warnings.catch_warnings():
            # The warning is about the size of a group's record on a broker, and there is no broker.
            warnings.simplefilter("ignore", RecordSizeWarning)
            plan = StickyAssignor().assign(PlannedGroup(group.partitions, members))
        return {member: plan[member] for member in before}


def _grid() -> list[Point]:
    known: list[tuple[Kind, list[tuple[tuple[int, int, int], Change]]]] = [
        (
            "equal",
            [
                ((100, 5, 10), "fresh"),
                ((100, 5, 10), "one joins"),
                ((100, 5, 10), "one leaves"),
                ((100, 50, 10), "one joins"),
                ((100, 10, 100), "10 % replaced"),
                ((1000, 5, 10), "one leaves"),
                ((1000, 10, 100), "fresh"),
                ((1000, 10, 100), "one joins"),
                ((1000, 50, 1000), "doubled"),
                ((10_000, 5, 10), "one leaves"),
                ((10_000, 10, 100), "fresh"),
                ((10_000, 10, 100), "one joins"),
                ((10_000, 50, 1000), "one joins"),
            ],
        ),
        (
            "one odd member",
            [
                ((100, 10, 10), "one joins"),
                ((1000, 10, 100), "one leaves"),
                ((10_000, 10, 100), "one joins"),
                ((10_000, 50, 100), "10 % replaced"),
            ],
        ),
        (
            "5 buckets",
            [
                ((100, 5, 100), "fresh"),
                ((100, 10, 10), "one joins"),
                ((1000, 10, 100), "one joins"),
                ((1000, 50, 100), "one leaves"),
                ((10_000, 10, 100), "fresh"),
                ((10_000, 50, 1000), "one joins"),
            ],
        ),
        (
            "random",
            [
                ((100, 5, 10), "redrawn"),
                ((100, 50, 100), "one joins"),
                ((1000, 5, 100), "one leaves"),
                ((1000, 10, 100), "redrawn"),
                ((1000, 50, 1000), "10 % replaced"),
                ((10_000, 5, 1000), "doubled"),
                ((10_000, 10, 100), "redrawn"),
                ((10_000, 50, 1000), "one leaves"),
            ],
        ),
        (
            "skewed",
            [
                ((100, 10, 100), "10 % replaced"),
                ((1000, 10, 1000), "doubled"),
                ((1000, 50, 100), "redrawn"),
                ((10_000, 50, 1000), "10 % replaced"),
            ],
        ),
        (
            "chain",
            [
                ((100, 10, 100), "one joins"),
                ((1000, 5, 1000), "one leaves"),
                ((1000, 10, 1000), "redrawn"),
                ((10_000, 10, 1000), "10 % replaced"),
            ],
        ),
    ]
    grid = [Point(*size, kind, change) for kind, points in known for size, change in points]
    return [
        *grid,
        Point(100, 10, 10, "equal", "one joins", racks=True),
        Point(1000, 10, 100, "equal", "fresh", racks=True),
        Point(1000, 10, 100, "random", "10 % replaced", racks=True),
        Point(10_000, 10, 100, "equal", "one joins", racks=True),
        Point(1000, 50, 100, "skewed", "one leaves", racks=True),
    ]


POINTS = _grid()
# A few small points that take every peer less than a second.
QUICK = [
    Point(20, 5, 10, "equal", "one joins"),
    Point(20, 5, 10, "random", "redrawn"),
    Point(21, 5, 10, "equal", "one leaves", racks=True),
]
