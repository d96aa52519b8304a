"""The methods with which a client reads records for our group member (`DataPath`). This package does all else.

    application_side.py     assign · hold · positions · call · commit_done · fail ───►  the client     in the turn
    membership.py           wake ────────────────────────────────────────────────────►               from its own thread

The turn is the thread that is inside `poll`, `commit` or `close` of the consumer, or the consumer's task on its event
loop. Only one turn runs at a time, and only it may touch the client.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "ClientAssignment",
    "CommitOutcome",
    "DataPath",
    "Failure",
    "ListenerEvent",
    "Partition",
    "Position",
    "by_topic",
]

Partition: TypeAlias = tuple[str, int]
"""Topic and number."""

ListenerEvent: TypeAlias = Literal["assigned", "revoked", "lost"]
"""The reason for which a listener is called. `lost`: other members may own the partitions already."""


class Position(NamedTuple):
    """The next offset of a partition.

    Attributes:
        offset: a start that the application has chosen may be one of the client's logical offsets, which are negative.
        leader_epoch: -1 if it is not known.
        metadata: of a commit.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


@dataclass(frozen=True, slots=True)
class ClientAssignment:
    """What a client reads.

    Attributes:
        partitions: these and no others.
        starts: where to begin. Every partition that is not read yet has one; None means that the group has no commit,
            so the client's own reset rule finds the start. A partition that is read already has one only if the
            application has chosen another position.
        paused: those of the partitions that the application has paused, some of them before they were read.
        is_assigned: whether a rebalance has just ended with this assignment. If not, it is a change between two
            rebalances: starts have become known, or partitions were taken away.
    """

    partitions: frozenset[Partition]
    starts: Mapping[Partition, Position | None] = field(default_factory=lambda: MappingProxyType({}))
    paused: frozenset[Partition] = frozenset()
    is_assigned: bool = False


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The end of one commit.

    Attributes:
        asked: the offsets that were to be committed.
        error_code: of the whole commit, as Kafka numbers errors; 0 if the broker has answered for each partition.
        refused: error codes other than 0 of single partitions. Only if `error_code` is 0.
        dropped: partitions that were not sent, since this member has not owned them continuously since the call.
        context: the argument of `Commits.send`.
    """

    asked: Mapping[Partition, Position]
    error_code: int = 0
    refused: Mapping[Partition, int] = field(default_factory=lambda: MappingProxyType({}))
    dropped: frozenset[Partition] = frozenset()
    context: Any = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that the client reports to the application.

    Attributes:
        error_code: as Kafka numbers errors, -1 for an unknown one; None if the member left because the application
            did not poll for `max.poll.interval.ms`.
        message: what was wrong. It may contain text of a broker.
        topic: the topic, or the regular expression, that it is about.
        is_missing: whether `topic` is part of the subscription and there is no such topic, or none that may be read.
        is_fatal: whether the member has left its group for good. Otherwise it goes on.
    """

    error_code: int | None
    message: str
    topic: str | None = None
    is_missing: bool = False
    is_fatal: bool = False


class DataPath(Protocol):
    """A client that reads records, under the control of our membership.

    All methods but `wake` are called in the turn, never two at once, and must not wait for the group: its rebalance
    waits for the turn. None may begin another turn. A listener may call the consumer, so `positions` and a commit may
    be asked for within `call`. An exception of `assign`, `hold` or `positions` is handed to `fail`, and the rebalance
    is carried out to its end: the membership cannot undo what it has promised to the group.
    """

    def assign(self, assignment: ClientAssignment) -> None:
        """Reads exactly these partitions from now on. It ends `hold`.

        A partition that stays keeps its position, its fetched records, its pause flag and its requests under way.
        Records of the other partitions never reach the application after the call.
        """

    def hold(self, partitions: frozenset[Partition]) -> None:
        """Hands out no record of these partitions, until the next `assign`. Positions and fetched records stay.

        Called before the listener is called for revoked or lost partitions. In an eager rebalance these are all
        partitions, and most are in the next assignment; in a cooperative rebalance they are not. Where the turn is the
        thread that polls, no record can be handed out meanwhile, so there is nothing to do.
        `ApplicationSide.holds_back` is true while an eager rebalance is under way.
        """

    def positions(self, partitions: Collection[Partition]) -> dict[Partition, Position]:
        """The offset after the last record that the application has received, for each partition where it is known.

        These offsets are committed. So a record that was fetched but not handed to the application must not count.
        """

    def call(self, listener: Any, event: ListenerEvent, partitions: frozenset[Partition]) -> object:
        """Calls the application's listener as the client does.

        Args:
            listener: what was given to `ApplicationSide.subscribe`; may be None.
            event: the reason of the call.
            partitions: the partitions. May be empty, since some clients call their listeners then, too.

        Returns:
            Anything; an awaitable is awaited before the rebalance goes on, if the turn is a task on an event loop.

        Raises:
            BaseException: what the listener raised. The rebalance goes on all the same, and `fail` gets it. A client
                that logs such errors instead catches them here.
        """

    def commit_done(self, outcome: CommitOutcome) -> None:
        """Takes the outcome of a commit for which no caller waits, in the order of the commits."""

    def fail(self, error: Failure | Exception) -> None:
        """Takes an error, and keeps it until the client can report it: as a message, an exception or a log record.

        An exception is one that a listener, or another method of this protocol, has raised.
        """

    def wake(self) -> float | None:
        """Makes the next turn begin soon, since there is work for it. **The member's own thread calls it.**

        It must not wait for a lock that a turn holds, and must not touch the client. The member holds the data path
        weakly.

        Returns:
            The time (`time.monotonic`) at which the application last asked for records, or now if it is asking; None if
            the consumer no longer exists, which ends the member's thread. A later time than before counts as a poll. So
            the time must stay the same, to the last digit, until the application asks again.
        """


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """Topic to ascending partition numbers."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found
