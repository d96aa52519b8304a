"""The partitions of each member by its own events, and each rebalance compared with other strategies."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from demo.events import Assigned, Event, Owned, Planned, name_of
from kafka_assignors import Group, Member, RangeAssignor, RoundRobinAssignor


@dataclass
class Row:
    """One member."""

    name: str
    client: str
    status: str = "joining"
    leader: bool = False
    topics: list[str] = field(default_factory=list)
    owned: Owned = field(default_factory=dict)
    gained: Owned = field(default_factory=dict)
    lost: Owned = field(default_factory=dict)


@dataclass(frozen=True)
class Rebalance:
    """One generation, in which all members have their assignment."""

    generation: int
    members: list[str]
    moved: int
    least_moves: int | None
    balance_score: int
    milliseconds: float
    range_moved: int
    round_robin_moved: int

    def __str__(self) -> str:
        return (
            f"generation {self.generation}, members {' '.join(self.members)}: moved {self.moved} "
            f"(least possible {self.least_moves}), balance score {self.balance_score}, "
            f"planned in {self.milliseconds:.1f} ms; range would have moved {self.range_moved}, "
            f"roundrobin {self.round_robin_moved}"
        )


class Board:
    """Follows the events of all members."""

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self.partitions = dict(partitions)
        self.rows: dict[str, Row] = {}
        self.rebalances: list[Rebalance] = []
        self._planned: dict[int, Planned] = {}
        self._assigned: defaultdict[int, dict[str, Assigned]] = defaultdict(dict)

    @property
    def generation(self) -> int:
        return self.rebalances[-1].generation if self.rebalances else -1

    @property
    def settled(self) -> list[str]:
        """The members of the latest generation; empty while a newer one is under way."""
        if not self.rebalances or self.generation < max(self._planned):
            return []
        return self.rebalances[-1].members

    def killed(self, name: str) -> None:
        """Removes a member that was killed. Its session in the group may not have expired yet."""
        row = self.rows[name]
        row.status, row.leader = "killed", False
        row.owned, row.gained, row.lost = {}, {}, row.owned

    def take(self, event: Event) -> Rebalance | None:
        """Notes an event; returns the rebalance that it completes, if any."""
        if isinstance(event, Planned):
            self._planned[event.generation] = event
        elif isinstance(event, Assigned):
            self._assigned[event.generation][event.member] = event
            row = self.rows[event.member]
            row.status = "running"
            row.topics, row.owned, row.gained, row.lost = event.topics, event.owned, event.gained, event.lost
        else:
            return None
        planned = self._planned.get(event.generation)
        members = sorted(map(name_of, planned.assignment)) if planned else []
        if planned is None or event.generation <= self.generation:
            return None
        if not self._assigned[event.generation].keys() >= set(members):
            return None
        for row in self.rows.values():
            row.leader = row.name == planned.member
        self.rebalances.append(self._compared(planned, members))
        return self.rebalances[-1]

    def _compared(self, planned: Planned, members: list[str]) -> Rebalance:
        group = Group(
            self.partitions,
            [
                Member(
                    name, self._assigned[planned.generation][name].topics, *self._held_before(planned.generation, name)
                )
                for name in members
            ],
        )
        return Rebalance(
            planned.generation,
            members,
            planned.moved,
            planned.least_moves,
            planned.balance_score,
            planned.milliseconds,
            RangeAssignor().assign(group).moved,
            RoundRobinAssignor().assign(group).moved,
        )

    def _held_before(self, generation: int, name: str) -> tuple[Owned | None, int | None]:
        earlier = [known for known in self._assigned if known < generation and name in self._assigned[known]]
        if not earlier:
            return None, None
        return self._assigned[max(earlier)][name].owned, max(earlier)
