"""What a consumer holds, and the data path that reads it: partitions come, wait for their start, are read, and go.

Everything here runs in the application's thread. The data consumer is told of differences only: what stays is not
touched, so that its position and what was fetched for it survive any rebalance.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, KafkaException, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kafka_assignors.clients.confluent._conf import Reset
    from kafka_assignors.clients.confluent._strategies import Partition

__all__ = ["Position", "Share"]

_Native = confluent_kafka.Consumer

# How long to wait for the leaders of a new topic, in seconds: without an answer they are found later.
_INTRODUCTION = 1.0

# What a partition starts with where nothing is committed. With "error" librdkafka looks for a commit itself, finds
# none, and says so as it always does.
_STARTS: Mapping[Reset, int] = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END, "error": OFFSET_INVALID}


class Position(NamedTuple):
    """An offset to be committed."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


class Share:
    """The partitions of one consumer.

    Attributes:
        owned: what the consumer holds, as the application is told.
        waiting: those of them whose starting offset is not known yet.
        stored: offsets that the application stored.
    """

    def __init__(
        self, consumer: confluent_kafka.Consumer, reset: Reset, *, auto_store: bool, tells_end: bool = False
    ) -> None:
        self._consumer = consumer
        self._reset = reset
        self._auto_store = auto_store
        self._tells_end = tells_end
        self.owned: set[Partition] = set()
        self.waiting: set[Partition] = set()
        self.stored: dict[Partition, Position] = {}
        self._committed: dict[Partition, int] = {}
        # Kept in the data consumer through an eager rebalance, while nobody owns it.
        self._parked: set[Partition] = set()
        self._stopped: set[Partition] = set()
        self._paused: set[Partition] = set()
        # Read because the application said so, though the group gave them to somebody else or to nobody.
        self._foreign: set[Partition] = set()
        self._introduced: set[str] = set()
        # The partitions of the data consumer. Asking it for them would wait while another thread is in `poll`.
        self._fetched: frozenset[Partition] = frozenset()
        # The latest start or seek of each partition, with librdkafka's position then.
        self._begun: dict[Partition, tuple[TopicPartition, int]] = {}
        # The positions at which an earlier data path ended.
        self._before: dict[Partition, Position] = {}

    @property
    def is_read(self) -> bool:
        """Whether records can come."""
        return bool(self._foreign) or len(self.owned) > len(self.waiting)

    @property
    def read(self) -> set[Partition]:
        """What is read, or will be when its start is known: less than is owned where the application wants less."""
        return set(self._fetched - self._parked) | self.waiting

    @property
    def is_held_up(self) -> bool:
        """Whether `hold_up` was called, and `go_on` was not."""
        return not self._stopped.isdisjoint(self.owned)

    # Coming and going.

    def park(self, *, pause: bool) -> None:
        """Gives the share up, but keeps it in the data consumer, since most of it comes back.

        `pause` if the application is inside librdkafka, which would go on delivering records.
        """
        self._parked |= self.owned & self._fetched
        self.owned.clear()
        self.waiting.clear()
        if pause:
            self._stopped = self._parked - self._paused
            _Native.pause(self._consumer, _partitions(self._stopped))

    def hold_up(self) -> None:
        """Pauses the share until `go_on`."""
        reading = self.owned - self.waiting - self._paused - self._stopped
        if reading:
            self._stopped |= reading
            _Native.pause(self._consumer, _partitions(reading))

    def go_on(self) -> None:
        """The end of `hold_up`. Parked partitions stay paused."""
        stopped = self._stopped & self.owned
        if stopped:
            self._stopped -= stopped
            _Native.resume(self._consumer, _partitions(stopped - self._paused))

    def unpark(self) -> None:
        """Drops the parked partitions: if they come back, they begin at the group's commits."""
        self.drop(set(self._parked))

    def drop(self, partitions: Collection[Partition]) -> None:
        """Takes partitions out of the share and out of the data consumer."""
        gone = set(partitions)
        if not gone:
            return
        self.owned -= gone
        self._parked -= gone
        self._stopped -= gone
        self._paused -= gone
        for partition in gone:
            self._committed.pop(partition, None)
        self.stop(gone)

    def take(self, owned: Iterable[Partition], *, spares: bool) -> None:
        """Takes a new share, and drops what was parked or owned and is not in it.

        `spares` keeps the partitions that the application reads beside its share: a cooperative rebalance takes away
        only the partitions that it names.
        """
        share = set(owned)
        self._foreign -= share
        spared = self._foreign if spares else set()
        self.drop((self._parked | self.owned | self._fetched) - share - spared)
        self.owned = share
        self.waiting &= share | spared

    def start(self, chosen: Mapping[Partition, TopicPartition] | None) -> set[Partition]:
        """Begins to read the share, and goes on with what was parked.

        Args:
            chosen: what the application wants to read, and from where; None leaves it all to the group's commits.

        Returns:
            The partitions for which the committed offset has to be fetched.
        """
        fetched = self._fetched
        wanted = self.owned if chosen is None else self.owned & chosen.keys()
        self.waiting -= self.owned - wanted
        unwanted = fetched & self.owned - wanted
        if unwanted:
            self._let_go(unwanted)
        self._resume(wanted)
        begin: list[TopicPartition] = []
        missing: set[Partition] = set()
        stays: list[Partition] = []
        for partition in sorted(wanted):
            given = None if chosen is None else chosen[partition]
            explicit = given is not None and given.offset > OFFSET_INVALID + 1
            if partition in fetched:
                if explicit and given is not None:
                    self.sought(given)
                    _Native.seek(self._consumer, given)
                else:
                    stays.append(partition)
            elif explicit and given is not None:
                begin.append(given)
            elif partition not in self.waiting:
                missing.add(partition)
        self._read(begin)
        self._tell_ends(stays)
        self.waiting |= missing
        return missing

    def replace(self, partitions: Iterable[TopicPartition]) -> set[Partition]:
        """Between rebalances: the application wants to read these and nothing else, whoever owns them.

        Returns:
            As `start`.
        """
        wanted = {(each.topic, each.partition): each for each in partitions}
        self.unpark()
        self.stop(self.read - wanted.keys())
        read = self.read
        for partition in read & wanted.keys():
            if wanted[partition].offset > OFFSET_INVALID + 1 and not self.start_at(wanted[partition]):
                self.sought(wanted[partition])
                _Native.seek(self._consumer, wanted[partition])
        return self.further(each for partition, each in wanted.items() if partition not in read)

    def further(self, partitions: Iterable[TopicPartition]) -> set[Partition]:
        """The application wants to read these as well.

        Returns:
            As `start`.
        """
        begin, missing = [], set()
        for each in partitions:
            partition = (each.topic, each.partition)
            if partition not in self.owned:
                self._foreign.add(partition)
            if each.offset > OFFSET_INVALID + 1:
                begin.append(each)
            else:
                missing.add(partition)
        self._read(begin)
        self.waiting |= missing
        return missing

    def stop(self, partitions: Iterable[Partition]) -> None:
        """These are not read any more, whoever owns them."""
        gone = set(partitions)
        self.waiting -= gone
        self._foreign -= gone
        for partition in gone:
            self.stored.pop(partition, None)
            self._begun.pop(partition, None)
            self._before.pop(partition, None)
        fetched = gone & self._fetched
        if fetched:
            self._let_go(fetched)

    def _tell_ends(self, stays: list[Partition]) -> None:
        """Makes librdkafka report the ends of kept partitions once more (`enable.partition.eof`).

        The client does so after each rebalance, since it begins all partitions anew. No record is fetched twice: at its
        end a partition has none in the queue.
        """
        if not self._tells_end:
            return
        ends = []
        for each in _Native.position(self._consumer, _partitions(set(stays) - self._paused)):
            _, end = _Native.get_watermark_offsets(self._consumer, each, cached=True)
            if 0 <= end <= each.offset:
                ends.append(each)
        if ends:
            _Native.pause(self._consumer, ends)
            _Native.resume(self._consumer, ends)

    def begin(self, committed: Mapping[Partition, Position]) -> None:
        """Begins to read at the group's commits, where -1 stands for none; only partitions that still wait for one."""
        begin = []
        for partition, position in sorted(committed.items()):
            if partition not in self.waiting:
                continue
            if position.offset >= 0:
                self._committed[partition] = position.offset
                epoch = None if position.leader_epoch < 0 else position.leader_epoch
                begin.append(_partition(partition, position.offset, leader_epoch=epoch))
            else:
                begin.append(_partition(partition, _STARTS[self._reset]))
        self._read(begin)

    def _read(self, begin: list[TopicPartition]) -> None:
        if not begin:
            return
        self._introduce({each.topic for each in begin})
        _Native.incremental_assign(self._consumer, begin)
        started = {(each.topic, each.partition) for each in begin}
        self._fetched |= started
        self._begun |= {(each.topic, each.partition): (each, OFFSET_INVALID) for each in begin}
        self.waiting -= started
        paused = started & self._paused
        if paused:
            _Native.pause(self._consumer, _partitions(paused))

    def _introduce(self, topics: set[str]) -> None:
        """librdkafka is up to a second late to find the leaders of a new topic, if it is not asked."""
        new = topics - self._introduced
        if new:
            self._introduced |= new
            with contextlib.suppress(KafkaException):
                _Native.list_topics(self._consumer, next(iter(new)) if len(new) == 1 else None, timeout=_INTRODUCTION)

    def _resume(self, wanted: set[Partition]) -> None:
        stopped, self._stopped = self._stopped & wanted, set()
        self._parked.clear()
        if stopped:
            _Native.resume(self._consumer, _partitions(stopped))

    def _let_go(self, partitions: set[Partition] | frozenset[Partition]) -> None:
        _Native.incremental_unassign(self._consumer, _partitions(partitions))
        self._fetched -= partitions

    # What the application does with it.

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Remembered also for those that do not run yet."""
        self._paused |= {(each.topic, each.partition) for each in partitions} & self.owned

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """The end of `pause`."""
        self._paused -= {(each.topic, each.partition) for each in partitions}

    def start_at(self, start: TopicPartition) -> bool:
        """Begins to read a partition here that waits for its start; false if it is read already."""
        if (start.topic, start.partition) not in self.waiting:
            return False
        self._read([start])
        return True

    def sought(self, start: TopicPartition) -> None:
        """Notes a seek, which librdkafka shows in its positions only when the first record has come."""
        partition = start.topic, start.partition
        if partition in self._begun:
            (at,) = _Native.position(self._consumer, [TopicPartition(*partition)])
            self._begun[partition] = start, at.offset

    # A data path that has fallen silent.

    def reading(self) -> dict[Partition, int]:
        """The next offset of each partition that is read and not paused: a logical one before the first record."""
        reading = self.owned - self.waiting - self._paused
        return {partition: start.offset for partition, start in self._next(reading).items()}

    def renew(self, renew: Callable[[], None], resolved: Mapping[Partition, int]) -> None:
        """Replaces the data path by a new one, which reads on at the same positions.

        Records that were fetched and not delivered are fetched again.

        Args:
            renew: makes the data consumer anew.
            resolved: the offsets behind starts at the beginning or the end, where they are known.
        """
        starts = self._next(self._fetched)
        for partition, start in starts.items():
            if start.offset < 0 and partition in resolved:
                starts[partition] = _partition(partition, resolved[partition])
        self._before |= self._delivered(self.owned - self.waiting)
        renew()
        self._introduced.clear()
        _Native.incremental_assign(self._consumer, [starts[each] for each in sorted(starts)])
        paused = starts.keys() & (self._paused | self._stopped)
        if paused:
            _Native.pause(self._consumer, _partitions(paused))
        self._begun = {partition: (start, OFFSET_INVALID) for partition, start in starts.items()}

    def _next(self, partitions: Collection[Partition]) -> dict[Partition, TopicPartition]:
        """The position at which each partition is read on."""
        found = {}
        if partitions:
            for each in _Native.position(self._consumer, _partitions(partitions)):
                start, then = self._begun.get((each.topic, each.partition), (each, OFFSET_INVALID))
                # Without a record since the start or the seek, reading still has to begin there.
                found[each.topic, each.partition] = start if each.offset == then else each
        return found

    def store(self, partition: Partition, position: Position) -> bool:
        """The application has done everything before this offset; false where it does not hold the partition."""
        if partition not in self.owned:
            return False
        self.stored[partition] = position
        return True

    def leaves(self, partition: Partition) -> None:
        """The application is about to seek. Its position stays stored until it has read on."""
        if self._auto_store and partition in self.owned - self.waiting:
            self.stored |= self._reached({partition})

    def due(self) -> dict[Partition, Position]:
        """What has been read, or stored, beyond what is committed."""
        return {
            partition: position
            for partition, position in self._positions().items()
            if position.offset > self._committed.get(partition, -1)
        }

    def left(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """The offsets to commit when partitions go: the last ones read or stored, even if lower than the commit."""
        return {
            partition: position
            for partition, position in self._positions().items()
            if partition in partitions and position.offset != self._committed.get(partition)
        }

    def _positions(self) -> dict[Partition, Position]:
        stored = {partition: position for partition, position in self.stored.items() if partition in self.owned}
        if not self._auto_store:
            return stored
        reading = self.owned - self.waiting
        if not reading:
            return stored
        before = {partition: at for partition, at in self._before.items() if partition in reading}
        return before | stored | self._reached(reading)

    def _delivered(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """The offsets behind what was delivered of these, by this data path or the one before."""
        if not partitions:
            return {}
        before = {partition: self._before[partition] for partition in partitions if partition in self._before}
        return before | self._reached(partitions)

    def _reached(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        found = {}
        for each in _Native.position(self._consumer, _partitions(partitions)):
            if each.offset >= 0:
                epoch = each.leader_epoch
                found[each.topic, each.partition] = Position(each.offset, -1 if epoch is None else epoch)
        return found

    def committed(self, partition: Partition, offset: int) -> None:
        """The group has this commit."""
        if partition in self.owned or partition in self._parked:
            self._committed[partition] = offset


def _partition(partition: Partition, offset: int = OFFSET_INVALID, leader_epoch: int | None = None) -> TopicPartition:
    if leader_epoch is None:
        return TopicPartition(*partition, offset)
    return TopicPartition(*partition, offset, leader_epoch=leader_epoch)


def _partitions(partitions: Iterable[Partition]) -> list[TopicPartition]:
    return [TopicPartition(*partition) for partition in sorted(partitions)]
