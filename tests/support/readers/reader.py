"""The interface of a consumer in the member's test-suite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from kafka_assignors.member.application_side import ApplicationSide
    from kafka_assignors.member.data_path import ListenerEvent, Partition

SESSION_MS = 6000
HEARTBEAT_MS = 200


class Reader(ABC):
    """One consumer. `events` are the listener's calls, `read` the records, `errors` the reported or raised errors.

    `tells_of_idleness` is whether the consumer reports an error after the member has left because the application did
    not poll. `hears_of_all` is whether its listener is called in each eager rebalance.
    """

    tells_of_idleness: ClassVar[bool] = True
    hears_of_all: ClassVar[bool] = False

    def __init__(self) -> None:
        self.events: list[tuple[ListenerEvent, set[Partition]]] = []
        self.read: list[tuple[str, int, int]] = []
        self.errors: list[BaseException] = []
        self.during: dict[ListenerEvent, Callable[[set[Partition]], object]] = {}

    def note(self, event: ListenerEvent, partitions: Iterable[Partition]) -> None:
        """The listener. It calls the function in `during` for the event, if there is one."""
        self.events.append((event, set(partitions)))
        if event in self.during:
            self.during[event](set(partitions))

    def calls_of(self, event: ListenerEvent) -> list[set[Partition]]:
        """The partitions of the calls for this event, in order."""
        return [partitions for kind, partitions in self.events if kind == event]

    @property
    @abstractmethod
    def side(self) -> ApplicationSide: ...
    @abstractmethod
    def follow(self, *topics: str) -> Self: ...
    @abstractmethod
    def unsubscribe(self) -> None: ...
    @abstractmethod
    def turn(self, timeout: float = 0.02) -> None: ...
    @abstractmethod
    def pause(self, partition: Partition) -> None: ...
    @abstractmethod
    def resume(self, partition: Partition) -> None: ...
    @abstractmethod
    def seek(self, partition: Partition, offset: int) -> None: ...
    @abstractmethod
    def commit(self, offsets: dict[Partition, int] | None = None) -> set[Partition]:
        """Commits offsets, by default those after the read records. Returns the committed partitions."""

    @abstractmethod
    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]: ...
    @abstractmethod
    def close(self) -> None: ...

    @property
    def held(self) -> set[Partition]:
        """The partitions that are read or wait for their start."""
        return self.side.assigned.read
