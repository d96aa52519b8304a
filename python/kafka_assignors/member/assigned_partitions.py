"""The partitions that a consumer is assigned, and those that its client reads.

               missing committed offset                      eager rebalance
    assigned ────────────► waiting ──────────► read ◄──────────────────────────────► parked
                                                 │                                  │
                                                 └────────────► dropped ◄───────────┘

Everything here runs in the turn. The client keeps the position and the fetched records of a partition that stays, in
any rebalance: a parked partition stays in the client's assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.member.data_path import ClientAssignment, Partition, Position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kafka_assignors.member.data_path import DataPath

__all__ = ["AssignedPartitions"]


class AssignedPartitions:
    """The partitions that one consumer is assigned, and how far it has read them.

    Args:
        path: the client.
        auto_store: whether positions are committed. If not, only stored offsets are committed.

    Attributes:
        owned: the assigned partitions, as the application's listener was called for them.
        waiting: those whose starting offset is not known yet.
        stored: offsets that the application stored.
        paused: those that the application has paused. They stay paused through every rebalance that does not take them
            away.
    """

    def __init__(self, path: DataPath, *, auto_store: bool) -> None:
        self._path = path
        self._auto_store = auto_store
        self.owned: set[Partition] = set()
        self.waiting: set[Partition] = set()
        self.stored: dict[Partition, Position] = {}
        self.paused: set[Partition] = set()
        self._committed: dict[Partition, int] = {}
        # Partitions that stay in the client's assignment during an eager rebalance, in which no member owns them.
        self._parked: set[Partition] = set()
        # Partitions that the application assigned by itself. The group may have assigned them to another member.
        self._foreign: set[Partition] = set()
        # The client's assignment.
        self._assignment: frozenset[Partition] = frozenset()
        # The part of `_assignment` that the client's next assignment keeps. Smaller only from `take` to `start`, while
        # the listener is called.
        self._stays: frozenset[Partition] = frozenset()

    @property
    def is_read(self) -> bool:
        """Whether records can arrive."""
        return bool(self._foreign) or len(self.owned) > len(self.waiting)

    @property
    def read(self) -> set[Partition]:
        """The partitions that are read, or wait for their start. The application may want fewer than it owns."""
        return set(self._stays - self._parked) | self.waiting

    @property
    def reading(self) -> set[Partition]:
        """The owned partitions whose records may arrive: those that neither wait nor are paused."""
        return self.owned - self.waiting - self.paused

    @property
    def held(self) -> set[Partition]:
        """The owned partitions that have a position."""
        return self.owned - self.waiting

    # Partitions that are assigned, and partitions that are taken away.

    def hold(self, partitions: Collection[Partition]) -> None:
        """Makes the client hand out none of their records, until its next assignment."""
        read = self._assignment.intersection(partitions)
        if read:
            self._path.hold(read)

    def park(self) -> None:
        """Gives up the assigned partitions, but keeps them in the client's assignment, since most return."""
        self._parked |= self.owned & self._stays
        self.owned.clear()
        self.waiting.clear()

    def unpark(self) -> None:
        """Drops the parked partitions. When they are assigned again, they start at the group's commits."""
        self.drop(self._parked)

    def drop(self, partitions: Collection[Partition]) -> None:
        """Removes partitions from the assigned ones and from the client's assignment."""
        self._forget(partitions)
        self._assign(self._stays)

    def _forget(self, partitions: Iterable[Partition]) -> None:
        """Removes partitions from everything but the client's assignment."""
        gone = set(partitions)
        self.owned -= gone
        self._parked -= gone
        self._stays -= gone
        self.paused -= gone
        for partition in gone:
            self._committed.pop(partition, None)
        self._leave(gone)

    def _leave(self, gone: Collection[Partition]) -> None:
        self.waiting.difference_update(gone)
        self._foreign.difference_update(gone)
        for partition in gone:
            self.stored.pop(partition, None)

    def take(self, owned: Iterable[Partition], *, spares: bool) -> None:
        """Takes a new assignment. `start` passes it to the client, after the listener was called.

        Args:
            owned: the assignment.
            spares: whether partitions that the application assigned by itself stay. A cooperative rebalance revokes
                only the partitions that it names.
        """
        assigned = set(owned)
        self._foreign -= assigned
        spared = self._foreign if spares else set()
        self._forget((self.owned | self._stays) - assigned - spared)
        self.owned = assigned
        self.waiting &= assigned | spared

    def start(self, chosen: Mapping[Partition, Position | None] | None) -> set[Partition]:
        """Starts to read the assigned partitions, and goes on with the parked ones.

        Args:
            chosen: the partitions that the application wants to read, each with its starting position if the
                application gives one. None reads all of them from the group's commits.

        Returns:
            The partitions for which the committed offset has to be fetched.
        """
        wanted = self.owned if chosen is None else self.owned & chosen.keys()
        self.waiting -= self.owned - wanted
        starts: dict[Partition, Position | None] = {}
        missing: set[Partition] = set()
        for partition in wanted:
            given = None if chosen is None else chosen[partition]
            if given is not None:
                starts[partition] = given
            elif partition not in self._stays and partition not in self.waiting:
                missing.add(partition)
        self._parked.clear()
        stays = self._stays & (wanted | self._foreign)
        self._assign(stays | starts.keys(), starts, is_assigned=True)
        self.waiting |= missing
        return missing

    def replace(self, partitions: Mapping[Partition, Position | None]) -> set[Partition]:
        """Reads these partitions and no others, as the application asks between rebalances.

        Returns:
            As `start`.
        """
        read, waiting = self._stays - self._parked, frozenset(self.waiting)
        self._forget(set(self._parked))
        self._leave((read | waiting) - partitions.keys())
        self._foreign |= partitions.keys() - read - waiting - self.owned
        return self._begin_or_wait(read & partitions.keys(), partitions, read | waiting)

    def further(self, partitions: Mapping[Partition, Position | None]) -> set[Partition]:
        """Reads these partitions as well.

        Returns:
            As `start`.
        """
        self._foreign |= partitions.keys() - self.owned
        return self._begin_or_wait(self._stays, partitions, self._stays | self.waiting)

    def _begin_or_wait(
        self, stays: frozenset[Partition], partitions: Mapping[Partition, Position | None], known: Collection[Partition]
    ) -> set[Partition]:
        starts = {partition: at for partition, at in partitions.items() if at is not None}
        missing = {partition for partition, at in partitions.items() if at is None and partition not in known}
        self._assign(stays | starts.keys(), starts)
        self.waiting |= missing
        return missing

    def stop(self, partitions: Iterable[Partition]) -> None:
        """Stops reading these partitions. They stay owned."""
        gone = set(partitions)
        self._leave(gone)
        self._assign(self._stays - gone)

    def begin(self, committed: Mapping[Partition, Position]) -> None:
        """Starts waiting partitions at the group's commits; an offset of -1 means no commit."""
        starts: dict[Partition, Position | None] = {}
        for partition, position in committed.items():
            if partition not in self.waiting:
                continue
            if position.offset >= 0:
                self._committed[partition] = position.offset
                starts[partition] = position
            else:
                starts[partition] = None
        if starts:
            self._assign(self._stays | starts.keys(), starts)

    def start_at(self, partition: Partition, position: Position) -> bool:
        """Starts a waiting partition at a position of the application. Returns False if the partition does not wait."""
        if partition not in self.waiting:
            return False
        self._assign(self._stays | {partition}, {partition: position})
        return True

    def _assign(
        self,
        partitions: Collection[Partition],
        starts: Mapping[Partition, Position | None] | None = None,
        *,
        is_assigned: bool = False,
    ) -> None:
        wanted, starts = frozenset(partitions), starts or {}
        if not starts and not is_assigned and wanted == self._assignment:
            return
        self._path.assign(ClientAssignment(wanted, starts, wanted & self.paused, is_assigned))
        self._assignment = self._stays = wanted
        self.waiting -= starts.keys()

    # Calls of the application.

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Notes paused partitions, also those that are not read yet."""
        self.paused |= self.owned.intersection(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Notes resumed partitions."""
        self.paused.difference_update(partitions)

    # Offsets.

    def store(self, partition: Partition, position: Position) -> bool:
        """Stores an offset of the application. Returns False if the partition is not owned."""
        if partition not in self.owned:
            return False
        self.stored[partition] = position
        return True

    def leaves(self, partition: Partition) -> None:
        """Stores the position before a seek. It stays stored until the next record is delivered."""
        if self._auto_store and partition in self.held:
            self.stored |= self._path.positions({partition})

    def due(self) -> dict[Partition, Position]:
        """The offsets read or stored that are beyond the committed ones."""
        return {
            partition: position
            for partition, position in self._positions().items()
            if position.offset > self._committed.get(partition, -1)
        }

    def left(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """The offsets to commit when partitions are revoked: the last read or stored, even below the last commit."""
        return {
            partition: position
            for partition, position in self._positions().items()
            if partition in partitions and position.offset != self._committed.get(partition)
        }

    def _positions(self) -> dict[Partition, Position]:
        stored = {partition: position for partition, position in self.stored.items() if partition in self.owned}
        held = self.held if self._auto_store else set()
        return stored | self._path.positions(held) if held else stored

    def committed(self, partition: Partition, offset: int) -> None:
        """Notes a commit of the group."""
        if partition in self.owned or partition in self._parked:
            self._committed[partition] = offset
