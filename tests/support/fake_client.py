"""A client in memory, as a data path of `kafka_assignors.member`: its records are a count, and its group is real.

The client implements exactly what docs/data-path.md describes, and so shows how little a client must implement.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka_assignors.member import fork
from kafka_assignors.member.application_side import ApplicationSide
from kafka_assignors.member.data_path import Failure, Position

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kafka_assignors.member.config import MemberConfig
    from kafka_assignors.member.data_path import ClientAssignment, CommitOutcome, ListenerEvent, Partition

Record = tuple[str, int, int]
"""Topic, partition, offset."""
SLICE = 0.05


class FakePath:
    """Reads records from a mapping of partitions to numbers of records.

    ``asked_at`` is when the application last asked for records. ``outcomes`` are the results of
    commits, and ``failures`` the errors, that the membership has reported.
    """

    def __init__(self, log: Mapping[Partition, int]) -> None:
        self.log = log
        self.next: dict[Partition, int] = {}
        self.paused: set[Partition] = set()
        self.held: frozenset[Partition] = frozenset()
        self.asked_at = time.monotonic()
        self.outcomes: list[CommitOutcome] = []
        self.failures: list[Failure | Exception] = []

    def assign(self, assignment: ClientAssignment) -> None:
        stays = {partition: at for partition, at in self.next.items() if partition in assignment.partitions}
        starts = {partition: 0 if at is None else at.offset for partition, at in assignment.starts.items()}
        self.next = stays | starts
        assert self.next.keys() == assignment.partitions
        self.paused, self.held = set(assignment.paused), frozenset()

    def hold(self, partitions: frozenset[Partition]) -> None:
        assert partitions <= self.next.keys()
        self.held |= partitions

    def positions(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        return {partition: Position(self.next[partition]) for partition in partitions if partition in self.next}

    def call(self, listener: Any, event: ListenerEvent, partitions: frozenset[Partition]) -> object:
        return None if listener is None else listener(event, partitions)

    def commit_done(self, outcome: CommitOutcome) -> None:
        self.outcomes.append(outcome)

    def fail(self, error: Failure | Exception) -> None:
        self.failures.append(error)

    def wake(self) -> float | None:
        return self.asked_at

    def take(self) -> Record | None:
        """The next record of any partition that is neither paused nor held."""
        for (topic, number), offset in self.next.items():
            partition = topic, number
            if offset < self.log.get(partition, 0) and partition not in self.paused | self.held:
                self.next[partition] = offset + 1
                return topic, number, offset
        return None


class FakeConsumer:
    """A consumer on a `FakePath`. All methods are called by one thread."""

    def __init__(self, log: Mapping[Partition, int], config: MemberConfig) -> None:
        self.path = FakePath(log)
        self.side = ApplicationSide(self.path, config)
        self.closed = False
        fork.watch(self)

    def subscribe(self, topics: Iterable[str], listener: Any = None) -> None:
        self.side.subscribe(topics, {}, listener)

    def poll(self, timeout: float) -> Record | None:
        deadline = time.monotonic() + timeout
        while not self.closed:
            self.path.asked_at = time.monotonic()
            self.side.attend()
            if self.side.leaves_later:
                self.side.leaves_later = False
                self.close()
            if self.path.failures:
                failure = self.path.failures.pop(0)
                raise failure if isinstance(failure, Exception) else RuntimeError(failure)
            records, group = self.side.patience(min(SLICE, deadline - time.monotonic()))
            if records is not None and (record := self.path.take()) is not None:
                return record
            if time.monotonic() >= deadline:
                return None
            self.side.mailbox.wait(min(SLICE, max(group, records or 0.0)))
        return None

    def pause(self, *partitions: Partition) -> None:
        self.path.paused.update(partitions)
        self.side.assigned.pause(partitions)

    def resume(self, *partitions: Partition) -> None:
        self.path.paused.difference_update(partitions)
        self.side.assigned.resume(partitions)

    def seek(self, partition: Partition, offset: int) -> None:
        if not self.side.assigned.start_at(partition, Position(offset)):
            self.side.assigned.leaves(partition)
            self.path.next[partition] = offset

    def commit(self, offsets: Mapping[Partition, Position] | None = None) -> CommitOutcome | None:
        due = self.side.assigned.due() if offsets is None else offsets
        return self.side.commits.send_and_wait(due) if due else None

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        found = self.side.commits.committed(self.side.ensure_fetcher(), partitions, 10.0)
        assert found is not None
        return {partition: position.offset for partition, position in found.positions.items()}

    def close(self) -> None:
        self.closed = self.closed or self.side.close()

    def _disown(self, refuse: Callable[..., Any]) -> None:
        if self.side.fetcher is not None:
            self.side.fetcher.abandon()
        self.closed = True
        self.__dict__.update(dict.fromkeys(("poll", "commit", "subscribe"), refuse), close=lambda: None)
