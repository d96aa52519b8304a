"""The measured groups: the bytes that their members send in JoinGroup, with the claims of the previous owners."""

import random
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from kafka_assignors import StickyAssignor

Subscriptions = Mapping[str, Collection[str]]
JoinGroup = list[tuple[str, bytes]]

GENERATION = 5


@dataclass(frozen=True)
class Case:
    """A group before and after a change. A fresh group has no members before it."""

    name: str
    topics: dict[str, int]
    before: Subscriptions
    after: Subscriptions

    def members(self) -> JoinGroup:
        """The metadata of the members after the change. Each claims its assignment of our plan for the group before."""
        owned: dict[str, bytes] = {}
        if self.before:
            joined = [(member, subscription(topics)) for member, topics in self.before.items()]
            owned = StickyAssignor().perform_assignment(joined, self.topics)
        return [(member, subscription(topics, owned.get(member))) for member, topics in self.after.items()]


def subscription(topics: Iterable[str], assignment: bytes | None = None) -> bytes:
    """A ConsumerProtocolSubscription, version 3, of a sticky member that was given `assignment` (KIP-54, KIP-341).

    The list of partitions has the same layout in an assignment as in the user data, so it is copied: it stands between
    the assignment's version (2 bytes) and its own user data (8 bytes).
    """
    names = sorted(set(topics))
    encoded = b"".join(struct.pack(">h", len(name)) + name.encode() for name in names)
    user_data = b"" if assignment is None else assignment[2:-8] + struct.pack(">i", GENERATION)
    length = len(user_data) if assignment is not None else -1
    head = struct.pack(">hi", 3, len(names)) + encoded + struct.pack(">i", length) + user_data
    return head + struct.pack(">iih", 0, -1, -1)


def rounds(topics: Mapping[str, int]) -> int:
    """The number of measurements of a group of this size."""
    return max(7, min(300, 3_000_000 // sum(topics.values())))


def names(count: int) -> list[str]:
    return [f"topic-{number:05}" for number in range(count)]


def ids(count: int) -> list[str]:
    return [f"consumer-{number:05}-4f1c2a9e" for number in range(count)]


def skewed(topics: int, partitions: int) -> dict[str, int]:
    """Partition counts that fall with the rank to the power 0.7."""
    weights = [rank**-0.7 for rank in range(1, topics + 1)]
    scale = partitions / sum(weights)
    return {name: max(1, int(weight * scale)) for name, weight in zip(names(topics), weights, strict=True)}


def _one_topic() -> Iterable[Case]:
    topics = {"topic": 3_000}
    group = dict.fromkeys(ids(450), tuple(topics))
    yield Case("3,000 x 1 topic, 450 members: one leaves", topics, group, dict(list(group.items())[1:]))


def _mixed() -> Iterable[Case]:
    pick = random.Random(4)
    topics = dict.fromkeys(names(10), 50)
    group = {member: pick.sample(list(topics), 5) for member in ids(100)}
    stay = dict(list(group.items())[10:])
    after = stay | {f"new-{number:05}": pick.sample(list(topics), 5) for number in range(10)}
    size = "500 over 10 topics, 100 members on 5 each"
    yield Case(f"{size}: fresh", topics, {}, group)
    yield Case(f"{size}: one leaves", topics, group, dict(list(group.items())[1:]))
    yield Case(f"{size}: 10 % replaced", topics, group, after)


def _half() -> Iterable[Case]:
    pick = random.Random(1)
    topics = dict.fromkeys(names(100), 100)
    group = {member: [name for name in topics if pick.random() < 0.5] for member in ids(100)}
    yield Case("100 x 100, 100 members on a random half: fresh", topics, {}, group)
    yield Case("100 x 100, 100 members on a random half: one leaves", topics, group, dict(list(group.items())[1:]))


def _million() -> Iterable[Case]:
    topics = dict.fromkeys(names(500), 2_000)
    group: dict[str, Collection[str]] = dict.fromkeys(ids(2_000), tuple(topics))
    size = "500 x 2,000, 2,000 members"
    yield Case(f"{size}: fresh", topics, {}, group)
    yield Case(f"{size}: one leaves", topics, group, dict(list(group.items())[1:]))
    yield Case(f"{size}: one joins", topics, group, {**group, "joiner": tuple(topics)})
    yield Case(f"{size}: one odd member joins", topics, group, {**group, "odd": ["topic-00007"]})


def _skewed() -> Iterable[Case]:
    pick = random.Random(2)
    topics = skewed(10_000, 973_000)
    group = {member: pick.sample(list(topics), 20) for member in ids(2_000)}
    stay = dict(list(group.items())[200:])
    after = stay | {f"new-{number:05}": pick.sample(list(topics), 20) for number in range(200)}
    size = "973,000 over 10,000 topics, 2,000 members on 20 each"
    yield Case(f"{size}: fresh", topics, {}, group)
    yield Case(f"{size}: 10 % replaced", topics, group, after)


def _doubled() -> Iterable[Case]:
    pick = random.Random(3)
    topics = skewed(1_000, 99_000)
    after = {member: pick.sample(list(topics), 5) for member in ids(1_000)}
    before = dict(list(after.items())[::2])
    yield Case("99,000 over 1,000 topics, 500 members on 5 each: doubled", topics, before, after)


def _wide() -> Iterable[Case]:
    topics = dict.fromkeys(names(100), 5_000)
    group = dict.fromkeys(ids(10_000), tuple(topics))
    yield Case("10,000 members x 50 over 100 topics: one joins", topics, group, {**group, "joiner": tuple(topics)})


_SOURCES: list[Callable[[], Iterable[Case]]] = [_one_topic, _mixed, _half, _million, _skewed, _doubled, _wide]


@cache
def cases() -> dict[str, Case]:
    return {case.name: case for source in _SOURCES for case in source()}


@cache
def joined(name: str) -> JoinGroup:
    return cases()[name].members()


def chain(members: int, largest: int) -> tuple[dict[str, int], JoinGroup]:
    """Each member reads two neighbouring topics with 1 to `largest` partitions each. No partition has an owner yet."""
    pick = random.Random(5)
    topics = {name: pick.randint(1, largest) for name in names(members + 1)}
    listed = list(topics)
    return topics, [(member, subscription(listed[at : at + 2])) for at, member in enumerate(ids(members))]


def scattered(topics: int, partitions: int, members: int, each: int) -> tuple[dict[str, int], JoinGroup]:
    """Each member reads random topics, and each partition was owned by a random subscriber."""
    pick = random.Random(6)
    counts = dict.fromkeys(names(topics), partitions)
    read = {member: sorted(pick.sample(range(topics), each)) for member in ids(members)}
    subscribers: list[list[str]] = [[] for _ in range(topics)]
    for member, of_member in read.items():
        for topic in of_member:
            subscribers[topic].append(member)
    owned: dict[str, dict[int, list[int]]] = {member: {} for member in read}
    for topic, able in enumerate(subscribers):
        for number, owner in enumerate(pick.choices(able, k=partitions)):
            owned[owner].setdefault(topic, []).append(number)
    listed = names(topics)
    joined = []
    for member, of_member in read.items():
        elements = [
            struct.pack(">h", len(listed[topic]))
            + listed[topic].encode()
            + struct.pack(f">i{len(has)}i", len(has), *has)
            for topic, has in owned[member].items()
        ]
        # In the layout of an assignment, which `subscription` copies.
        assignment = b"".join((bytes(2), struct.pack(">i", len(elements)), *elements, bytes(8)))
        joined.append((member, subscription([listed[topic] for topic in of_member], assignment)))
    return counts, joined
