"""The partitions that producers choose for keys, and whether two topics join on their keys.

Kafka's clients hash keys differently: Java with murmur2, librdkafka by default with CRC-32, others with FNV-1a. Two
topics join on their keys only if they have the same number of partitions *and* were written with the same hash.
[`audit`][kafka_assignors.planner.keys.audit] compares the hashes on given keys,
[`infer`][kafka_assignors.planner.keys.infer] finds the hash that explains the partitions of a topic's records.

>>> from kafka_assignors.planner.keys import TopicUse, audit
>>> keys = [b"user-%d" % number for number in range(100)]
>>> report = audit(keys, [TopicUse("orders", 12, "murmur2"), TopicUse("payments", 12, "crc32")])
>>> [(join.joins, join.reason) for join in report.joins]
[(False, 'they are written with murmur2 and crc32, which put 93 of 100 keys (93 %) into different partitions')]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError
from kafka_assignors.key_hash import HASHES, partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "ANYWHERE",
    "PRODUCERS",
    "Disagreement",
    "Example",
    "KeyAudit",
    "Placement",
    "PlacementAudit",
    "Spread",
    "TopicJoin",
    "TopicUse",
    "audit",
    "compare",
    "infer",
]

PRODUCERS = {
    "murmur2": "Java, kafka-python, aiokafka; librdkafka with partitioner=murmur2_random",
    "crc32": "librdkafka by default (consistent_random), and so confluent-kafka for Python, Go and .NET",
    "fnv1a": "Sarama, Goka; librdkafka with partitioner=fnv1a_random",
}
"""Each hash with the producers that use it."""

ANYWHERE = -1
"""In place of a partition: librdkafka's default puts an empty key into any partition. The others hash it."""

_MOST_PARTITIONS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TopicUse:
    """A topic, and the hash that its producers use or will use.

    Attributes:
        topic: its name.
        partitions: how many it has, 1 to 2**31 - 1.
        hash: one of `HASHES`; None if producers may use any of them.

    Raises:
        OptionError: a partition count that no topic can have, or an unknown hash.
    """

    topic: str
    partitions: int
    hash: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.partitions <= _MOST_PARTITIONS:
            raise OptionError(
                f"topic {self.topic!r} is to have {self.partitions} partitions; give 1 to {_MOST_PARTITIONS}"
            )
        if self.hash is not None and self.hash not in HASHES:
            raise OptionError(f"topic {self.topic!r} has the hash {self.hash!r}; give one of {', '.join(HASHES)}")


@dataclass(frozen=True, slots=True)
class Example:
    """A key that two hashes put into different partitions.

    Attributes:
        key: the key.
        partitions: by the first hash and by the second; `ANYWHERE` (-1) stands for no fixed partition.
    """

    key: bytes
    partitions: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How many keys two hashes put into different partitions.

    Attributes:
        hashes: the two.
        partitions: of the topic.
        keys: how many distinct keys were compared.
        differ: how many of them the hashes put into different partitions.
        examples: the first few of these, in the order in which they were given.
    """

    hashes: tuple[str, str]
    partitions: int
    keys: int
    differ: int
    examples: tuple[Example, ...]

    @property
    def share(self) -> float:
        """`differ` of `keys`, 0 to 1; chance makes it about 1 - 1 / partitions."""
        return self.differ / self.keys


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly one hash spreads the records over the partitions.

    Attributes:
        hash: one of `HASHES`.
        partitions: how many there are.
        fewest: the records of the partition with the fewest.
        most: the records of the partition with the most.
        empty: how many partitions get no record.
        anywhere: records with an empty key, for which the hash has no fixed partition; no other figure counts them.
        records: those of each partition; empty beyond 10,000 partitions.
    """

    hash: str
    partitions: int
    fewest: int
    most: int
    empty: int
    anywhere: int
    records: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicJoin:
    """Whether two topics join on their keys.

    Attributes:
        topics: both.
        joins: whether they join.
        reason: why, or why not.
    """

    topics: tuple[str, str]
    joins: bool
    reason: str


@dataclass(frozen=True, slots=True)
class KeyAudit:
    """The comparison of the hashes on given keys.

    Attributes:
        records: how many keys were given, nulls included.
        null: how many of them were null. No hash places these, and no other figure counts them.
        empty: how many were empty.
        keys: how many different ones there were.
        spreads: for every partition count and hash.
        disagreements: for every partition count and pair of hashes.
        joins: for every pair of topics.
    """

    records: int
    null: int
    empty: int
    keys: int
    spreads: tuple[Spread, ...]
    disagreements: tuple[Disagreement, ...]
    joins: tuple[TopicJoin, ...]

    @property
    def agree(self) -> bool:
        """Whether all topics join; if there is only one topic, whether all hashes agree."""
        if self.joins:
            return all(join.joins for join in self.joins)
        return not any(disagreement.differ for disagreement in self.disagreements)


_SPREAD_LISTED = 10_000


def audit(keys: Iterable[bytes | None], topics: Sequence[TopicUse], *, examples: int = 3) -> KeyAudit:
    """Compares the hashes on these keys. O(keys times different partition counts).

    Args:
        keys: serialized keys; None is a record without one.
        topics: at least one. Two of them join if they have the same number of partitions, and every possible hash of
            the one puts every key into the same partition as every possible hash of the other.
        examples: how many keys to name for each disagreement.

    Raises:
        OptionError: there is no key, or no topic.
        PartitionerTypeError: a key that is neither bytes nor None.
    """
    if not topics:
        raise OptionError("there is no topic; give at least one partition count")
    counts = Counter(keys)
    null = counts.pop(None, 0)
    distinct: list[bytes] = [key for key in counts if key is not None]
    if not distinct:
        raise OptionError(f"there is no key to audit ({null} records without one); give at least one")
    weights = [counts[key] for key in distinct]
    spreads: list[Spread] = []
    disagreements: list[Disagreement] = []
    for partitions in sorted({use.partitions for use in topics}):
        placed = {name: _placed(name, distinct, partitions) for name in HASHES}
        spreads += [_spread(name, placed[name], weights, partitions) for name in HASHES]
        disagreements += [
            _disagreement((one, other), placed[one], placed[other], distinct, partitions, examples)
            for one, other in combinations(HASHES, 2)
        ]
    differ = {(each.partitions, each.hashes): each for each in disagreements}
    return KeyAudit(
        records=sum(weights) + null,
        null=null,
        empty=counts.get(b"", 0),
        keys=len(distinct),
        spreads=tuple(spreads),
        disagreements=tuple(disagreements),
        joins=tuple(_join(left, right, differ, counts.get(b"", 0)) for left, right in combinations(topics, 2)),
    )


def _placed(name: str, keys: Sequence[bytes], partitions: int) -> list[int]:
    placed: list[int] = partitions_of(keys, partitions, hash=name).tolist()
    if name == "crc32":
        for index, key in enumerate(keys):
            if not key and partitions > 1:
                placed[index] = ANYWHERE
    return placed


def _spread(name: str, placed: Sequence[int], weights: Sequence[int], partitions: int) -> Spread:
    records: Counter[int] = Counter()
    for partition, weight in zip(placed, weights, strict=True):
        records[partition] += weight
    anywhere = records.pop(ANYWHERE, 0)
    return Spread(
        hash=name,
        partitions=partitions,
        fewest=0 if len(records) < partitions else min(records.values()),
        most=max(records.values(), default=0),
        empty=partitions - len(records),
        anywhere=anywhere,
        records=tuple(records[number] for number in range(partitions)) if partitions <= _SPREAD_LISTED else (),
    )


def _disagreement(
    hashes: tuple[str, str],
    one: Sequence[int],
    other: Sequence[int],
    keys: Sequence[bytes],
    partitions: int,
    examples: int,
) -> Disagreement:
    differ = [index for index, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]
    named = tuple(Example(keys[index], (one[index], other[index])) for index in differ[: max(0, examples)])
    return Disagreement(hashes, partitions, len(keys), len(differ), named)


def _join(
    left: TopicUse, right: TopicUse, differ: dict[tuple[int, tuple[str, str]], Disagreement], empty: int
) -> TopicJoin:
    topics = left.topic, right.topic
    if left.partitions != right.partitions:
        return TopicJoin(topics, False, f"they have {left.partitions} and {right.partitions} partitions")
    if left.hash is not None and left.hash == right.hash:
        if left.hash == "crc32" and empty and left.partitions > 1:
            return TopicJoin(
                topics, False, f"librdkafka's default puts each of the {empty} records with an empty key anywhere"
            )
        return TopicJoin(topics, True, f"both have {left.partitions} partitions and are written with {left.hash}")
    pairs = [
        (one, other)
        for one in ([left.hash] if left.hash else HASHES)
        for other in ([right.hash] if right.hash else HASHES)
        if one != other
    ]
    found = [differ.get((left.partitions, pair)) or differ[left.partitions, pair[::-1]] for pair in pairs]
    worst = max(found, key=lambda each: each.differ)
    if not worst.differ:
        return TopicJoin(topics, True, "the hashes put every one of these keys into the same partition")
    which = " and ".join(pairs[found.index(worst)])
    how = "they are written with" if left.hash and right.hash else "they may be written with"
    share = f"{worst.differ} of {worst.keys} keys ({100 * worst.share:.0f} %)"
    return TopicJoin(topics, False, f"{how} {which}, which put {share} into different partitions")


@dataclass(frozen=True, slots=True)
class Placement:
    """The hashes that explain the partitions of a topic's records.

    Attributes:
        topic: its name.
        partitions: how many it has now.
        records: how many records were read.
        keyed: how many of them have a key.
        matches: hash to the number of keyed records in the partition that it chooses.
        only: hash to the number of those that no other hash explains.
        neither: keyed records that no hash explains.
        hashes: those that explain every keyed record; more than one if there are few keys or partitions.
        moved: (records, hash, partitions): the smaller partition count that explains most of the unexplained records;
            None if there is none. The partitions of a topic with such a count were probably increased.
    """

    topic: str
    partitions: int
    records: int
    keyed: int
    matches: dict[str, int]
    only: dict[str, int]
    neither: int
    hashes: tuple[str, ...]
    moved: tuple[int, str, int] | None

    @property
    def text(self) -> str:
        """The result in words."""
        if not self.keyed:
            return f"none of {self.records} records has a key"
        if len(self.hashes) == 1:
            return f"all {self.keyed} keyed records are placed with {self.hashes[0]}"
        if self.hashes:
            return f"all {self.keyed} keyed records fit {' as well as '.join(self.hashes)}"
        parts = [f"only {name} explains {_portion(count, self.keyed)}" for name, count in self.only.items() if count]
        unsure = self.keyed - sum(self.only.values()) - self.neither
        if unsure:
            parts.append(f"more than one hash {_portion(unsure, self.keyed)}")
        if self.neither:
            parts.append(f"none {_portion(self.neither, self.keyed)}")
        text = f"mixed: of {self.keyed} keyed records {', '.join(parts)}"
        if self.moved:
            count, name, partitions = self.moved
            text += f"; {name} over {partitions} partitions explains {count} of the rest, as if the topic had grown"
        return text


def _portion(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)"


def infer(topic: str, partitions: int, records: Iterable[tuple[bytes | None, int]]) -> Placement:
    """Finds the hashes that explain the partitions of a topic's records. O(records).

    Args:
        topic: its name.
        partitions: how many it has.
        records: the key and the partition of each.

    Raises:
        OptionError: a partition that the topic does not have, or a count that no topic can have.
        PartitionerTypeError: a key that is neither bytes nor None.

    >>> infer("orders", 3, [(b"abc", 2), (b"user-1", 1), (None, 0)]).keyed
    2
    """
    TopicUse(topic, partitions)
    everything = list(records)
    keyed: Counter[tuple[bytes, int]] = Counter()
    for key, partition in everything:
        if not 0 <= partition < partitions:
            raise OptionError(f"a record of {topic!r} is in partition {partition}; it has 0 to {partitions - 1}")
        if key is not None:
            keyed[key, partition] += 1
    keys = [key for key, _ in keyed]
    where = [partition for _, partition in keyed]
    weights = list(keyed.values())
    explained = {
        name: [spot in (ANYWHERE, here) for spot, here in zip(_placed(name, keys, partitions), where, strict=True)]
        for name in HASHES
    }
    matches: dict[str, int] = dict.fromkeys(HASHES, 0)
    only: dict[str, int] = dict.fromkeys(HASHES, 0)
    left: list[int] = []
    for index, weight in enumerate(weights):
        by = [name for name in HASHES if explained[name][index]]
        for name in by:
            matches[name] += weight
        if len(by) == 1:
            only[by[0]] += weight
        elif not by:
            left.append(index)
    total = sum(weights)
    return Placement(
        topic=topic,
        partitions=partitions,
        records=len(everything),
        keyed=total,
        matches=matches,
        only=only,
        neither=sum(weights[index] for index in left),
        hashes=tuple(name for name in HASHES if total and matches[name] == total),
        moved=_moved([keys[i] for i in left], [where[i] for i in left], [weights[i] for i in left], partitions),
    )


# How many smaller partition counts are tried, and on how many keys: both limit the time of this extra check.
_MOST_FORMER = 1_000
_MOST_TRIED = 1_000


def _moved(
    keys: Sequence[bytes], where: Sequence[int], weights: Sequence[int], partitions: int
) -> tuple[int, str, int] | None:
    """The former partition count that explains most keys; None if it explains no more than half, as chance might."""
    tried = slice(None, _MOST_TRIED)
    sample = list(zip(keys[tried], where[tried], strict=True))
    if len(sample) < 2:
        return None
    best: tuple[int, str, int] | None = None
    for former in range(max(where) + 1, min(partitions, max(where) + 1 + _MOST_FORMER)):
        if former < 2:
            continue
        for name in HASHES:
            placed = _placed(name, [key for key, _ in sample], former)
            count = sum(spot == here for spot, (_, here) in zip(placed, sample, strict=True))
            if 2 * count > len(sample) and (best is None or count > best[0]):
                best = count, name, former
    if best is None:
        return None
    _, name, former = best
    placed = _placed(name, list(keys), former)
    return sum(weight for spot, here, weight in zip(placed, where, weights, strict=True) if spot == here), name, former


@dataclass(frozen=True, slots=True)
class PlacementAudit:
    """The hashes of topics, and which topics join.

    Attributes:
        placements: one for each topic.
        joins: for every pair of topics.
    """

    placements: tuple[Placement, ...]
    joins: tuple[TopicJoin, ...]

    @property
    def agree(self) -> bool:
        """Whether all topics join; if there is only one topic, whether one hash explains all of its records."""
        if self.joins:
            return all(join.joins for join in self.joins)
        return all(placement.hashes for placement in self.placements)


def compare(topics: Sequence[tuple[str, int, Sequence[tuple[bytes | None, int]]]]) -> PlacementAudit:
    """Finds the hashes of topics, and which topics join.

    Two topics join if they have the same number of partitions, one hash explains all keyed records of both, and no key
    that is in both is in different partitions.

    Args:
        topics: of each the name, the partition count, and the key and partition of records.

    Raises:
        OptionError, PartitionerTypeError: as `infer`; or there is no topic, or a topic has no record with a key.
    """
    if not topics:
        raise OptionError("there is no topic; give at least one")
    placements = [infer(*topic) for topic in topics]
    for placement in placements:
        if not placement.keyed:
            raise OptionError(f"topic {placement.topic!r} has no key to audit: {placement.text}; give one with keys")
    spots = [_spots(records) for _, _, records in topics]
    pairs = combinations(range(len(topics)), 2)
    joins = [_placed_alike(placements[a], placements[b], spots[a], spots[b]) for a, b in pairs]
    return PlacementAudit(tuple(placements), tuple(joins))


def _spots(records: Sequence[tuple[bytes | None, int]]) -> dict[bytes, set[int]]:
    spots: defaultdict[bytes, set[int]] = defaultdict(set)
    for key, partition in records:
        if key is not None:
            spots[key].add(partition)
    return spots


def _placed_alike(
    one: Placement, other: Placement, here: dict[bytes, set[int]], there: dict[bytes, set[int]]
) -> TopicJoin:
    topics = one.topic, other.topic
    common = here.keys() & there.keys()
    apart = sum(here[key] != there[key] or len(here[key]) > 1 for key in common)
    seen = f"{apart} of {len(common)} keys seen in both are in different partitions"
    if one.partitions != other.partitions:
        return TopicJoin(topics, False, f"they have {one.partitions} and {other.partitions} partitions; {seen}")
    both = [name for name in HASHES if name in one.hashes and name in other.hashes]
    if both and not apart:
        return TopicJoin(
            topics, True, f"both have {one.partitions} partitions and are placed with {' or '.join(both)}; {seen}"
        )
    if one.hashes and other.hashes and not both:
        return TopicJoin(topics, False, f"they are placed with {one.hashes[0]} and {other.hashes[0]}; {seen}")
    mixed = [placement.topic for placement in (one, other) if not placement.hashes]
    if mixed:
        return TopicJoin(topics, False, f"no single hash explains {' or '.join(map(repr, mixed))}; {seen}")
    return TopicJoin(topics, False, seen)
