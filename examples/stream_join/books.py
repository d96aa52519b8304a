"""The accounts of one group: the partitions of each member, those that came or were rebuilt, and its results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_join.events import Changed, Read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_join.events import Event

# Impressions and clicks.
TOPICS_A_NUMBER = 2
GONE = ("left", "crashed")


@dataclass
class Row:
    """One member."""

    name: str
    status: str = "joining"
    held: list[int] = field(default_factory=list)
    gained: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)


@dataclass
class Account:
    """One group. Partitions are topic-partitions. The counts begin when the group has settled for the first time.

    Attributes:
        came: partitions that a member gained, according to its client's assignments.
        rebuilt: partitions whose state a member read again, because the diff listener reported them.
        records: the number of records read for the rebuilt state.
    """

    strategy: str
    partitions: int
    rows: dict[str, Row] = field(default_factory=dict)
    counting: bool = False
    came: int = 0
    rebuilt: int = 0
    records: int = 0
    positions: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Notes an event of a member."""
        if isinstance(event, Changed):
            row = self.rows[event.member]
            if row.status in GONE:
                return
            before = set(row.held) if event.continuous else set()
            came = set(event.held) - before
            row.gained, row.lost = sorted(came), sorted(before - set(event.held))
            row.held, row.status = event.held, "running"
            if self.counting:
                self.came += TOPICS_A_NUMBER * len(came)
                self.rebuilt += event.gained
                self.records += event.records
        elif isinstance(event, Read):
            for topic, number, position in event.positions:
                self.positions[topic, number] = max(position, self.positions.get((topic, number), 0))

    def gone(self, name: str, status: str) -> None:
        """Removes a member that left or died, with its partitions."""
        row = self.rows[name]
        row.status, row.held, row.gained, row.lost = status, [], [], row.held

    @property
    def alive(self) -> list[Row]:
        """The members that have neither left nor died."""
        return [row for row in self.rows.values() if row.status not in GONE]

    @property
    def figures(self) -> tuple[int, int, int]:
        """The numbers of partitions that came, of rebuilt partitions, and of records read for the rebuilt ones."""
        return self.came, self.rebuilt, self.records

    @property
    def settled(self) -> bool:
        """Whether every number has one owner, and the numbers are distributed evenly."""
        shares = [len(row.held) for row in self.alive]
        numbers = sorted(number for row in self.alive for number in row.held)
        return numbers == list(range(self.partitions)) and max(shares) - min(shares) <= 1

    def drained(self, ends: Mapping[tuple[str, int], int]) -> bool:
        """Whether everything before these offsets has been joined and committed."""
        return all(self.positions.get(partition, 0) >= end for partition, end in ends.items())

    def faults(self) -> list[str]:
        """The partitions that were rebuilt but had not come, or came and were not rebuilt."""
        if self.rebuilt == self.came:
            return []
        return [f"{self.strategy}: {self.came} partitions came to members and {self.rebuilt} were rebuilt"]


def wrong(strategy: str, results: Iterable[tuple[str, str]], matches: Mapping[str, str]) -> list[str]:
    """The errors in a group's results, which are pairs of click and impression, in sentences."""
    found = []
    results = list(results)
    times = Counter(click for click, _ in results)
    for text, clicks in (
        ("are missing", matches.keys() - times.keys()),
        ("were matched more than once", {click for click, count in times.items() if count > 1}),
        ("must not have been matched", times.keys() - matches.keys()),
        ("have the wrong impression", {click for click, key in results if matches.get(click, key) != key}),
    ):
        if clicks:
            found.append(f"{strategy}: {len(clicks)} clicks {text}, {min(clicks)} for one")
    return found
