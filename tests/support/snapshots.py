"""Snapshots of groups for tests without a broker."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_assignors import MemberState
from kafka_assignors.assignors import by_name
from kafka_assignors.cluster import ClassicMember, ConsumerMember, GroupSnapshot, Snapshot, TopicSnapshot
from kafka_assignors.userdata import Assignment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Owned = dict[str, dict[str, list[int]]]


def topic(partitions: int, *, end: int | None = 100, racks: Sequence[set[str]] | None = None) -> TopicSnapshot:
    """A topic whose partitions each end at ``end``."""
    return TopicSnapshot(
        partitions,
        None if racks is None else tuple(map(frozenset, racks)),
        (0,) * partitions,
        (end,) * partitions,
    )


def classic(
    name: str,
    topics: Sequence[str],
    owned: Mapping[str, Sequence[int]] | None = None,
    *,
    assignor: str = "sticky",
    claimed: Mapping[str, Sequence[int]] | None = None,
    generation: int = 4,
    instance_id: str | None = None,
    rack: str | None = None,
) -> ClassicMember:
    """A member that joined with the claim ``claimed`` (by default ``owned``), and owns ``owned`` now."""
    said = (owned if claimed is None else claimed) or {}
    held = {each: list(numbers) for each, numbers in said.items()}
    state = MemberState(held, generation if held else None, rack)
    metadata = by_name(assignor).metadata(topics, state)
    data = (generation + 1).to_bytes(4, "big") if assignor in ("sticky", "cooperative-sticky", "lag") else None
    return ClassicMember(name, instance_id, metadata, Assignment(dict(owned or {}), data).encode())


def group(
    members: Sequence[ClassicMember],
    *,
    assignor: str = "sticky",
    state: str = "Stable",
    committed: Mapping[str, Sequence[int | None]] | None = None,
) -> GroupSnapshot:
    """A group of the classic protocol."""
    ordered = tuple(sorted(members, key=lambda each: each.id))
    return GroupSnapshot(
        "classic",
        state,
        assignor,
        members=ordered,
        committed={name: tuple(each) for name, each in (committed or {}).items()},
    )


def snapshot(
    topics: Mapping[str, int | TopicSnapshot],
    members: Sequence[ClassicMember],
    *,
    assignor: str = "sticky",
    committed: Mapping[str, Sequence[int | None]] | None = None,
    record_limit: int | None = 1_048_588,
) -> Snapshot:
    """A snapshot with one group, ``billing``."""
    return Snapshot(
        cluster="test",
        taken_ms=1_795_000_000_000,
        topics={name: topic(each) if isinstance(each, int) else each for name, each in topics.items()},
        groups={"billing": group(members, assignor=assignor, committed=committed)},
        record_limit=record_limit,
    )


def orders() -> Snapshot:
    """Three members own 12 partitions of orders and 6 of payments evenly, and have read half of the records."""
    members = [
        classic(
            f"c{row}",
            ["orders", "payments"],
            {"orders": list(range(4 * row, 4 * row + 4)), "payments": [2 * row, 2 * row + 1]},
        )
        for row in range(3)
    ]
    return snapshot({"orders": 12, "payments": 6}, members, committed={"orders": [50] * 12, "payments": [50] * 6})


def before(taken: Snapshot, seconds: float, *, arrived: int, read: int) -> Snapshot:
    """The snapshot `seconds` before another one, with fewer records and smaller commits in each partition."""

    def less(values: Sequence[int | None] | None, by: int) -> tuple[int | None, ...] | None:
        return None if values is None else tuple(None if each is None else max(0, each - by) for each in values)

    return replace(
        taken,
        taken_ms=taken.taken_ms - round(1000 * seconds),
        topics={name: replace(each, end=less(each.end, arrived)) for name, each in taken.topics.items()},
        groups={
            name: replace(each, committed={topic: less(of, read) or () for topic, of in each.committed.items()})
            for name, each in taken.groups.items()
        },
    )


def by_broker() -> Snapshot:
    """A group whose assignor is the broker's."""
    members = tuple(
        ConsumerMember(
            f"m{row}",
            None,
            ("orders",),
            None,
            None,
            7,
            {"orders": (2 * row, 2 * row + 1)},
            {"orders": (2 * row, 2 * row + 1)},
        )
        for row in range(2)
    )
    described = GroupSnapshot("consumer", "Stable", "uniform", epoch=7, members=members)
    return Snapshot("test", 1_795_000_000_000, {"orders": topic(4)}, {"billing": described})


def random_snapshot(seed: int, *, assignor: str = "sticky") -> Snapshot:
    """A group with random subscriptions, balanced or not. Some of its claims are not valid any more."""
    choose = random.Random(seed)
    topics = {f"t{number}": choose.randint(1, 9) for number in range(choose.randint(1, 4))}
    names = [f"m{number:02}" for number in range(choose.randint(1, 7))]
    subscribed = {name: choose.sample(sorted(topics), choose.randint(1, len(topics))) for name in names}
    owned: Owned = {name: {} for name in names}
    for name, count in topics.items():
        holders = [member for member in names if name in subscribed[member]]
        for number in range(count):
            if holders and choose.random() < 0.85:
                owned[choose.choice(holders)].setdefault(name, []).append(number)
    members = [classic(name, subscribed[name], owned[name], assignor=assignor) for name in names]
    committed = {name: [choose.randint(0, 100) for _ in range(count)] for name, count in topics.items()}
    return snapshot(topics, members, assignor=assignor, committed=committed)
