"""The checks of the demo: no message is lost, and none is read by two owners in one generation."""

from collections import Counter, defaultdict

from demo.events import Assigned, Event, Read

Partition = tuple[str, int]


class Ledger:
    """All messages that were produced, and all that were read, with the reader and its generation."""

    def __init__(self) -> None:
        self.produced: Counter[Partition] = Counter()
        self.reads = 0
        self._read: defaultdict[Partition, set[int]] = defaultdict(set)
        self._readers: defaultdict[tuple[int, Partition], set[str]] = defaultdict(set)
        self._owners: defaultdict[tuple[int, Partition], set[str]] = defaultdict(set)

    def acknowledged(self, topic: str, partition: int) -> None:
        """Adds a message that the broker has acknowledged, and that must not be lost."""
        self.produced[topic, partition] += 1

    def take(self, event: Event) -> None:
        if isinstance(event, Assigned):
            for topic, numbers in event.owned.items():
                for number in numbers:
                    self._owners[event.generation, (topic, number)].add(event.member)
        elif isinstance(event, Read):
            for topic, number, first, count in event.ranges:
                self._readers[event.generation, (topic, number)].add(event.member)
                self._read[topic, number].update(range(first, first + count))
                self.reads += count

    @property
    def repeated(self) -> int:
        """Messages read again by a later owner, since their reader died or lost the partition before its commit."""
        return self.reads - sum(map(len, self._read.values()))

    @property
    def missing(self) -> int:
        """Messages that no consumer has read yet."""
        return sum(len(set(range(count)) - self._read[partition]) for partition, count in self.produced.items())

    def faults(self) -> list[str]:
        """The problems, in sentences; empty if there are none."""
        found = []
        for partition, count in sorted(self.produced.items()):
            lost = sorted(set(range(count)) - self._read[partition])
            if lost:
                found.append(f"{_named(partition)}: {len(lost)} of {count} messages were lost, the first at {lost[0]}")
        for (generation, partition), owners in sorted(self._owners.items()):
            if len(owners) > 1:
                found.append(f"{_named(partition)}: owned by {_and(owners)} at once in generation {generation}")
        for (generation, partition), readers in sorted(self._readers.items()):
            if len(readers) > 1:
                found.append(f"{_named(partition)}: read by {_and(readers)} at once in generation {generation}")
            strangers = readers - self._owners[generation, partition]
            if strangers:
                found.append(
                    f"{_named(partition)}: read by {_and(strangers)}, no owner of it in generation {generation}"
                )
        return found


def _named(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def _and(members: set[str]) -> str:
    return " and ".join(sorted(members))
