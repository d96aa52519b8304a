"""The quality of plans: one decoder and the same rules for the bytes of all contenders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kafka_assignors import _core, balance_score
from race.points import RACKS, REPLICAS, Group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["InvalidPlanError", "Judge", "Quality", "read_plans"]

_NOBODY = -1


class InvalidPlanError(ValueError):
    """A plan that gives a partition to two members, to none, or to one that does not subscribe to its topic."""


@dataclass(frozen=True)
class Quality:
    """The criteria of a plan, in this order; a rack miss is worse than a moved partition."""

    score: int
    """KIP-54's balance score."""
    misses: int
    """Partitions without a replica on their owner's rack; 0 without racks."""
    kept: int
    """Partitions that stay with the member that owned them."""
    rounds: int = 1
    """The number of rebalances: a cooperative strategy first withholds the partitions that move."""

    def behind(self, other: Quality) -> bool:
        """Whether the other plan is better."""
        return (self.score, self.misses, -self.kept) > (other.score, other.misses, -other.kept)


def read_plans(path: Path, members: int) -> list[list[bytes | None]]:
    """The different plans that a worker wrote, each as assignments in order of the members."""
    data, at = path.read_bytes(), 4
    plans: list[list[bytes | None]] = []
    for _ in range(int.from_bytes(data[:4], "big")):
        plan: list[bytes | None] = []
        for _ in range(members):
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            at += 4
            plan.append(None if size < 0 else data[at : at + size])
            at += max(0, size)
        plans.append(plan)
    return plans


class Judge:
    """Computes the quality of plans for a group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.ids = group.ids
        """In the order in which plans list the members."""
        counts = np.fromiter(group.topics.values(), dtype=np.int64)
        self._starts = dict(zip(group.topics, (np.cumsum(counts) - counts).tolist(), strict=True))
        self._topic_of = np.repeat(np.arange(len(counts)), counts)
        numbers = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        self._first_rack = numbers % len(RACKS)
        topic_ids = {name: number for number, name in enumerate(group.topics)}
        self._subscribed = np.zeros((len(group.ids), len(counts)), dtype=bool)
        rows: dict[tuple[str, ...], list[int]] = {}
        for number, topics in enumerate(group.subscriptions.values()):
            row = rows.get(topics)
            if row is None:
                row = rows[topics] = [topic_ids[name] for name in topics]
            self._subscribed[number, row] = True
        self._wanted = np.asarray(self._subscribed.any(axis=0))[self._topic_of]
        self._before = self._owners([group.owned.get(member, {}) for member in group.ids])
        owners = self._before
        lost = (owners != _NOBODY) & ~self._subscribed[owners, self._topic_of]
        # A partition cannot stay with an owner that no longer subscribes to its topic.
        self._before = np.where(lost, _NOBODY, owners)

    def _owners(self, shares: Sequence[Mapping[str, Sequence[int]]]) -> NDArray[np.int64]:
        """The position of the owner of each partition."""
        owners = np.full(len(self._topic_of), _NOBODY, dtype=np.int64)
        places: list[int] = []
        holders: list[int] = []
        for member, share in enumerate(shares):
            for name, numbers in share.items():
                start, count = self._starts[name], self._group.topics[name]
                if numbers and not (min(numbers) >= 0 and max(numbers) < count):
                    raise InvalidPlanError(f"{name} has {count} partitions, and {max(numbers)} or less is given")
                places.extend([start + number for number in numbers])
                holders.extend([member] * len(numbers))
        owners[places] = holders
        if int((owners != _NOBODY).sum()) != len(places):
            raise InvalidPlanError("a partition is given twice")
        return owners

    def shares(self, plan: Sequence[bytes | None]) -> list[dict[str, list[int]]]:
        """The assignment of each member."""
        shares: list[dict[str, list[int]]] = []
        for assignment in plan:
            share: dict[str, list[int]] = {}
            if assignment:
                _, lists, _, fault = _core.decode_assignment(assignment)
                if fault is not None:
                    raise InvalidPlanError(f"an assignment cannot be read: {fault}")
                for name, numbers in lists:
                    share.setdefault(name, []).extend(numbers)
            shares.append(share)
        return shares

    def canonical(self, plan: Sequence[bytes | None]) -> bytes:
        """Equal for equal plans; the order of partitions in an assignment does not matter."""
        return self._owners(self.shares(plan)).tobytes()

    def withheld(self, plan: Sequence[bytes | None]) -> int:
        """The number of partitions without an owner that have a subscriber."""
        return int(((self._owners(self.shares(plan)) == _NOBODY) & self._wanted).sum())

    def rejoined(self, plan: Sequence[bytes | None], rounds: int) -> Group:
        """The group when its members rejoin with the assignments of a cooperative plan, after a number of rounds."""
        group = self._group
        owned: dict[str, Mapping[str, Sequence[int]]] = dict(zip(group.ids, self.shares(plan), strict=True))
        return Group(group.topics, group.subscriptions, owned, group.racks, group.generation + rounds)

    def quality(self, plan: Sequence[bytes | None], rounds: int = 1) -> Quality:
        """The quality of a complete plan.

        Raises:
            InvalidPlanError: the plan is not complete or not valid.
        """
        owners = self._owners(self.shares(plan))
        open_ = int(((owners == _NOBODY) & self._wanted).sum())
        if open_:
            raise InvalidPlanError(f"{open_} partitions are given to nobody")
        given = owners != _NOBODY
        if not self._subscribed[owners[given], self._topic_of[given]].all():
            raise InvalidPlanError("a partition is given to a member that does not subscribe to its topic")
        loads = np.bincount(owners[given], minlength=len(self._group.ids))
        misses = 0
        if self._group.racks:
            racks = np.array([RACKS.index(self._group.racks[member]) for member in self._group.ids])
            steps = (racks[owners[given]] - self._first_rack[given]) % len(RACKS)
            misses = int((steps >= REPLICAS).sum())
        kept = int((given & (owners == self._before)).sum())
        return Quality(balance_score(loads.tolist()), misses, kept, rounds)
