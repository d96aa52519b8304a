"""The events of all members of a group in one order, and the invariants of this order."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

T = TypeVar("T")

Partition = tuple[str, int]

_TAIL = 40


@dataclass(frozen=True)
class Event:
    """One line of one member. ``partitions`` is empty if the event has none."""

    at: int
    member: str
    kind: str
    generation: int
    partitions: frozenset[Partition]
    fields: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Settled:
    """A generation that every expected member has joined and in which every partition has one owner."""

    generation: int
    leader: str
    owners: Mapping[Partition, str]
    member_ids: Mapping[str, str]

    def __str__(self) -> str:
        owners = ", ".join(f"{topic}/{number} {name}" for (topic, number), name in sorted(self.owners.items()))
        return f"generation {self.generation} of {self.leader} ({owners})"

    @property
    def loads(self) -> Counter[str]:
        """The number of partitions of each member."""
        loads = Counter(self.owners.values())
        return Counter({name: loads[name] for name in self.member_ids})

    def kept(self, before: Settled) -> int:
        """The number of partitions whose owner is the same, and did not leave the group in between."""
        return sum(
            before.owners.get(partition) == name and before.member_ids[name] == self.member_ids[name]
            for partition, name in self.owners.items()
        )

    def most_kept(self, before: Settled) -> int:
        """The largest number of partitions that a balanced plan can keep, for equal subscriptions: a closed form."""
        held = before.loads
        holdings = [held[name] for name, ident in self.member_ids.items() if before.member_ids.get(name) == ident]
        quota, rest = divmod(len(self.owners), len(self.member_ids))
        return sum(min(own, quota) for own in holdings) + min(rest, sum(own > quota for own in holdings))

    def check_uniform(self, before: Settled | None = None) -> None:
        """For equal subscriptions: the plan is balanced, and keeps as much of ``before`` as a balanced plan can."""
        assert max(self.loads.values()) - min(self.loads.values()) <= 1, f"unbalanced: {self.loads}"
        if before is not None:
            kept, most = self.kept(before), self.most_kept(before)
            assert kept == most, f"{kept} partitions kept, {most} possible: {before} became {self}"


class Trace:
    """The events of all members. Several threads may write to it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def record(self, member: str, line: Mapping[str, Any]) -> None:
        """Add an event of a member."""
        partitions = frozenset((topic, number) for topic, number in line.get("partitions", ()))
        event = Event(line["at"], member, line["event"], line.get("generation", -1), partitions, line)
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def wait_until(self, find: Callable[[list[Event]], T | None], timeout: float, message: Callable[[], str]) -> T:
        """The first result of ``find`` on the events so far that is not None."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                found = find(self.events)
                if found is not None:
                    return found
                if not self._changed.wait(deadline - time.monotonic()):
                    break
        raise TimeoutError(message())

    def settle(self, members: Iterable[str], partitions: Collection[Partition], timeout: float = 30.0) -> Settled:
        """Wait until exactly these members own these partitions in one generation.

        All members must have the same latest generation. Their partitions must be disjoint and complete. The partitions
        that each member's listener got must be the member's partitions of that generation.
        """
        names, expected = sorted(members), frozenset(partitions)
        message = f"waiting for {names} to own {sorted(expected)} in one generation"

        def settled(events: list[Event]) -> Settled | None:
            gone = [event for event in events if event.kind == "ended" and event.member in names]
            if gone:
                raise RuntimeError(f"{gone[0].member} ended while {message}\n{self.tail()}")
            latest = {event.member: event for event in events if event.kind == "synced"}
            shares = [latest[name] for name in names if name in latest]
            if len(shares) < len(names) or len({event.generation for event in shares}) != 1:
                return None
            owners = {partition: event.member for event in shares for partition in event.partitions}
            if owners.keys() != expected or sum(len(event.partitions) for event in shares) != len(expected):
                return None
            held = holdings(events)
            if any(held[event.member] != event.partitions for event in shares):
                return None
            leaders = [event.member for event in shares if event.fields["leader"]]
            if len(leaders) != 1:
                return None
            ids = {event.member: event.fields["member"] for event in shares}
            return Settled(shares[0].generation, leaders[0], owners, ids)

        result = self.wait_until(settled, timeout, lambda: f"still {message} after {timeout} s\n{self.tail()}")
        self.check()
        return result

    def check(self) -> None:
        """No partition was assigned to two members in one generation, and none was held by two at any time."""
        with self._changed:
            events = list(self.events)
        given: dict[tuple[int, Partition], str] = {}
        for event in events:
            if event.kind == "synced":
                for partition in event.partitions:
                    other = given.setdefault((event.generation, partition), event.member)
                    assert other == event.member, (
                        f"{partition} was given to {other} and {event.member} in generation {event.generation}\n"
                        f"{self.tail()}"
                    )
        holdings(events)

    def tail(self) -> str:
        """The latest events, for an error message."""
        lines = [f"  {event.at / 1e6:.3f} {event.member}: {dict(event.fields)}" for event in _ordered(self.events)]
        return "\n".join(["the latest events:", *lines[-_TAIL:]])


def holdings(events: Iterable[Event]) -> dict[str, frozenset[Partition]]:
    """The partitions that each member holds at the end. Asserts that no partition was ever held by two members.

    A member holds a partition from the listener's call that assigned it to the call that revoked it. Exceptions:

    - A member that was killed, or is closing, holds nothing.
    - A process may still write events between the command to freeze or kill it and the signal. They do not count.
    - A member that is frozen or stalled holds nothing until its listener is called again. The group may expel the
      member meanwhile; the partitions that it still believes to own do not count. Neither does an assignment of a
      generation that is older than the group's latest: it reached the process before the member was expelled.
    """
    held: dict[str, frozenset[Partition]] = {}
    owner: dict[Partition, str] = {}
    absent: set[str] = set()
    frozen: set[str] = set()
    dead: set[str] = set()
    newest: dict[str, int] = {}

    def let_go(name: str, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if owner.get(partition) == name:
                del owner[partition]

    def take(name: str, partitions: Iterable[Partition], event: Event) -> None:
        for partition in partitions:
            other = owner.setdefault(partition, name)
            assert other == name, f"{partition} is held by {other} and given to {name}: {event}"

    for event in _ordered(events):
        name = event.member
        if event.kind == "started":
            dead.discard(name)
        if name in dead:
            continue
        own = held.get(name, frozenset())
        newest[name] = max(newest.get(name, -1), event.generation)
        match event.kind:
            case "assigned":
                own |= event.partitions
                if name in frozen or (name in absent and event.generation < max(newest.values())):
                    held[name] = own
                    continue
                absent.discard(name)
                take(name, own, event)
            case "revoked" | "lost":
                let_go(name, event.partitions)
                own -= event.partitions
            case "killed" | "closing" | "ended":
                let_go(name, own)
                own = frozenset()
                if event.kind == "killed":
                    dead.add(name)
            case "frozen" | "stall":
                let_go(name, own)
                absent.add(name)
                if event.kind == "frozen":
                    frozen.add(name)
            case "thawed":
                frozen.discard(name)
        held[name] = own
    return held


def _ordered(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.at)
