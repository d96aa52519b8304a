"""Snapshots of whole clusters for tests without a broker: one group of each kind of trouble, and growing lag."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from kafka_assignors.cluster import ClassicMember, ConsumerMember, GroupSnapshot, Snapshot, TopicSnapshot
from kafka_assignors.userdata import Assignment
from support.snapshots import classic, group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TAKEN_MS = 1_795_000_000_000


def bare(member: ClassicMember) -> ClassicMember:
    """The member with an assignment without user data, as other leaders than ours write it."""
    return dataclasses.replace(member, assignment=Assignment(Assignment.decode(member.assignment).partitions).encode())


def ends(*offsets: int) -> TopicSnapshot:
    """A topic with these ends."""
    return TopicSnapshot(len(offsets), None, (0,) * len(offsets), offsets)


def cluster(
    topics: Mapping[str, Sequence[int]],
    groups: Mapping[str, GroupSnapshot],
    *,
    taken_ms: int = TAKEN_MS,
) -> Snapshot:
    """A snapshot of these groups; the topics are given by the ends of their partitions."""
    made = {name: ends(*offsets) for name, offsets in topics.items()}
    return Snapshot("test", taken_ms, made, dict(sorted(groups.items())), 1_048_588)


def of_broker(
    owned: Mapping[str, Mapping[str, Sequence[int]]], committed: Mapping[str, Sequence[int]], epoch: int = 7
) -> GroupSnapshot:
    """A KIP-848 group."""
    members = tuple(
        ConsumerMember(name, None, tuple(sorted(share)), None, None, epoch, share, share)
        for name, share in sorted(owned.items())
    )
    return GroupSnapshot(
        "consumer",
        "Stable",
        "uniform",
        epoch=epoch,
        members=members,
        committed={name: tuple(each) for name, each in committed.items()},
    )


def troubled(*, later: bool = False) -> Snapshot:
    """A group of each kind, on topics of their own; `later` is the same cluster a minute later.

    `fine` keeps up. `dead` has no members, and records wait. `stuck` does not commit. `behind` reads less than arrives.
    `unread` has a partition without an owner. `idle` has more members than partitions. `costly` uses range with a
    lopsided assignment. `by-lag` uses the strategy `lag`. `moving` rebalances. `new-protocol` is a KIP-848 group.
    """
    step = 600 if later else 0
    topics = {
        "fine": [1_000 + step] * 4,
        "dead": [500, 700],
        "stuck": [2_000 + step] * 2,
        "behind": [9_000 + 10 * step] * 2,
        "unread": [100] * 3,
        "idle": [10],
        "costly": [50] * 6,
        "by-lag": [40] * 2,
        "moving": [10] * 2,
        "new": [300 + step] * 2,
    }
    two = {
        name: [classic(f"{name}-a", [name], {name: [0]}), classic(f"{name}-b", [name], {name: [1]})] for name in topics
    }
    groups = {
        "fine": group(
            [bare(classic("f1", ["fine"], {"fine": [0, 1]})), bare(classic("f2", ["fine"], {"fine": [2, 3]}))],
            committed={"fine": [1_000 + step] * 4},
        ),
        "dead": group([], state="Empty", assignor="", committed={"dead": [100, 700]}),
        "stuck": group(two["stuck"], committed={"stuck": [1_500, 2_000 + step]}),
        "behind": group(two["behind"], committed={"behind": [1_000 + 3 * step] * 2}),
        "unread": group([classic("u", ["unread"], {"unread": [0, 1]})], committed={"unread": [100] * 3}),
        "idle": group([classic("i1", ["idle"], {"idle": [0]}), classic("i2", ["idle"])], committed={"idle": [10]}),
        "costly": group(
            [bare(classic(f"c{n}", ["costly"], {"costly": [2 * n, 2 * n + 1]}, assignor="range")) for n in range(3)],
            assignor="range",
            committed={"costly": [50] * 6},
        ),
        "by-lag": group(
            [classic(f"l{n}", ["by-lag"], {"by-lag": [n]}, assignor="lag") for n in range(2)],
            assignor="lag",
            committed={"by-lag": [40] * 2},
        ),
        "moving": GroupSnapshot(
            state="PreparingRebalance", assignor="", members=(ClassicMember("m"),), committed={"moving": (10, 10)}
        ),
        "new-protocol": of_broker(
            {"n1": {"new": [0]}, "n2": {"new": [1]}}, {"new": [300 + step] * 2}, epoch=9 if later else 7
        ),
    }
    return cluster(topics, groups, taken_ms=TAKEN_MS + (60_000 if later else 0))
