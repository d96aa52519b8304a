"""Fleets of consumer groups as Parquet tables of the pipeline. Every run writes the same rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES = 4
# The number of different histories. Further groups repeat them under other names.
DIFFERENT = 500


@dataclass(frozen=True)
class Fleet:
    """Equal groups: `members` join at once, then one member at a time leaves or joins."""

    groups: int
    rebalances: int
    partitions: int
    members: int
    lags: bool = False

    @property
    def total(self) -> int:
        """The number of rebalances of all groups."""
        return self.groups * self.rebalances

    def history(self, seed: int) -> list[tuple[int, str, int]]:
        """The events of one group: seq, kind, number of the member."""
        pick = np.random.default_rng(seed)
        there = list(range(self.members))
        events = [(1, "join", member) for member in there]
        gone: list[int] = []
        for seq in range(2, self.rebalances + 1):
            if gone and (len(there) <= self.members // 2 or pick.random() < 0.5):
                there.append(gone.pop(int(pick.integers(len(gone)))))
                events.append((seq, "join", there[-1]))
            else:
                gone.append(there.pop(int(pick.integers(len(there)))))
                events.append((seq, "leave", gone[-1]))
        return events

    def write(self, folder: Path) -> dict[str, str]:
        """The folders of the tables: events, partition counts and, if the fleet has lags, lags."""
        names = [f"group-{number:06}" for number in range(self.groups)]
        tables = {"events": self._events(names), "counts": self._counts(names)}
        if self.lags:
            tables["lags"] = self._lags(names)
        for name, table in tables.items():
            (folder / name).mkdir(parents=True)
            size = -(-table.num_rows // FILES)
            for part in range(FILES):
                pq.write_table(table.slice(part * size, size), folder / name / f"{part}.parquet")
        return {name: str(folder / name) for name in tables}

    def _events(self, names: list[str]) -> pa.Table:
        different = [self.history(seed) for seed in range(min(DIFFERENT, self.groups))]
        histories = [different[number % len(different)] for number in range(self.groups)]
        groups = np.repeat(np.arange(self.groups), [len(history) for history in histories])
        seq, kind, member = zip(*(event for history in histories for event in history), strict=True)
        topics = pa.ListArray.from_arrays(
            pa.array(np.arange(len(seq) + 1), pa.int32()), pa.array(names).take(pa.array(groups))
        )
        order = np.array(seq, dtype=np.int64)
        return pa.table(
            {
                "cluster": pa.array(["c"] * len(seq)),
                "group_id": pa.array(names).take(pa.array(groups)),
                "seq": order,
                "ts": order * 60_000,
                "kind": pa.array(kind),
                "member_id": pa.array([f"member-{number:03}" for number in range(self.members)]).take(pa.array(member)),
                "topics": topics,
            }
        )

    def _counts(self, names: list[str]) -> pa.Table:
        """The partition count of each group's own topic, which has the name of the group."""
        many = len(names)
        return pa.table(
            {
                "cluster": pa.array(["c"] * many),
                "topic": pa.array(names),
                "ts": np.zeros(many, dtype=np.int64),
                "partition_count": np.full(many, self.partitions, dtype=np.int32),
            }
        )

    def _lags(self, names: list[str]) -> pa.Table:
        """One snapshot of the lags, before the first event."""
        many = len(names) * self.partitions
        groups = pa.array(names).take(pa.array(np.repeat(np.arange(len(names)), self.partitions)))
        return pa.table(
            {
                "cluster": pa.array(["c"] * many),
                "group_id": groups,
                "ts": np.zeros(many, dtype=np.int64),
                "topic": groups,
                "partition": np.tile(np.arange(self.partitions, dtype=np.int32), len(names)),
                "lag": np.random.default_rng(5).exponential(10_000, many).astype(np.int64),
            }
        )
