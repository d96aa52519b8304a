"""The heartbeat intervals of the members of a group, on which the time without an owner in a rebalance depends.

>>> Intervals.of_client("java") == Intervals(heartbeat=3.0, first_heartbeat=3.0, consumer_heartbeat=5.0)
True
>>> Intervals.of_client("librdkafka", heartbeat=1.0).heartbeat
1.0
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from kafka_assignors import _core
from kafka_assignors.errors import OptionError
from kafka_assignors.flags import FlagTexts
from kafka_assignors.options import check_seconds

__all__ = ["CLIENTS", "OURS", "Changes", "Handover", "Intervals"]

Handover = Literal["eager", "cooperative", "consumer"]
"""How partitions change hands: eager or cooperative in the classic protocol, or as in the new protocol (KIP-848)."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one rebalance. Partitions that have no owner after it do not count.

    Attributes:
        staying: the members that were there before and are there after it.
        losing: the staying members that give a partition to another member.
        joining: the members that are there after it only.
        held: the partitions that staying members had before it.
        given_up: the held partitions that get another owner.
        taken: the partitions that staying members get and that had no owner, or belonged to a member that left.
        taken_by_joining: the same for members that join.
    """

    staying: int = 0
    losing: int = 0
    joining: int = 0
    held: int = 0
    given_up: int = 0
    taken: int = 0
    taken_by_joining: int = 0


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of heartbeats, in seconds; the defaults are those of librdkafka and of brokers.

    A member learns of a rebalance only from the answer to a heartbeat. So partitions without an owner mostly wait for
    heartbeats.

    Attributes:
        heartbeat: between two heartbeats in the classic protocol: `heartbeat.interval.ms`.
        first_heartbeat: from the beginning of a generation to its first heartbeat.
        consumer_heartbeat: between two heartbeats in the new protocol: `group.consumer.heartbeat.interval.ms` of the
            broker; members of this package ask more often.
        waiting_heartbeat: the same while a member waits for partitions.
        round_trip: from a request until the application has acted on the answer.
        apart: whether the members send their heartbeats at different moments. At the beginning of a generation they
            send them together. If the group does not rebalance for long, the moments drift apart, except with members
            of this package.

    Raises:
        OptionError: an interval that is no positive number.
    """

    heartbeat: float = 3.0
    first_heartbeat: float = 3.0
    consumer_heartbeat: float = 5.0
    waiting_heartbeat: float = 5.0
    round_trip: float = 0.005
    apart: bool = False

    def __post_init__(self) -> None:
        for name in ("heartbeat", "first_heartbeat", "consumer_heartbeat", "waiting_heartbeat", "round_trip"):
            check_seconds(name, getattr(self, name))

    @classmethod
    def of_client(
        cls,
        client: str,
        *,
        heartbeat: float | None = None,
        consumer_heartbeat: float | None = None,
        apart: bool = False,
    ) -> Intervals:
        """The defaults of a client.

        Args:
            client: a key of `CLIENTS`.
            heartbeat: `heartbeat.interval.ms` of its members in seconds, if it is not the default.
            consumer_heartbeat: the broker's interval in the new protocol in seconds, if it is not the default.
            apart: whether the group has not rebalanced for long. It does not count for members of this package.

        Raises:
            OptionError: a client that is not known, or an interval that is no positive number.
        """
        if client not in CLIENTS:
            raise OptionError(f"client is {client!r}; give one of {', '.join(map(repr, CLIENTS))}")
        found = CLIENTS[client]
        if heartbeat is not None:
            check_seconds("heartbeat", heartbeat)
            # A client that waits a whole interval before its first heartbeat does so with any interval.
            early = found.first_heartbeat < found.heartbeat
            first = min(found.first_heartbeat, heartbeat) if early else heartbeat
            found = replace(found, heartbeat=heartbeat, first_heartbeat=first)
        if consumer_heartbeat is not None:
            check_seconds("consumer_heartbeat", consumer_heartbeat)
            # The broker's interval is an upper limit: a member of this package sends heartbeats more often by itself.
            ours = client == OURS
            interval = min(found.consumer_heartbeat, consumer_heartbeat) if ours else consumer_heartbeat
            waiting = min(found.waiting_heartbeat, consumer_heartbeat) if ours else consumer_heartbeat
            found = replace(found, consumer_heartbeat=interval, waiting_heartbeat=waiting)
        return replace(found, apart=apart and client != OURS)

    def ownerless(self, handover: Handover, changes: Changes) -> float:
        """The expected time without an owner, summed over the partitions: partitions x seconds.

        Args:
            handover: how the partitions change hands.
            changes: what the rebalance changes.

        Raises:
            OptionError: `handover` is not known.

        Members that stop are assumed to leave the group. A killed member would keep its partitions until its session
        ends. O(1).
        """
        counts = (
            changes.staying,
            changes.losing,
            changes.joining,
            changes.held,
            changes.given_up,
            changes.taken,
            changes.taken_by_joining,
        )
        return _core.ownerless_ms(handover, self._in_ms(), counts) / 1000

    def _in_ms(self) -> tuple[float, float, float, float, float, bool]:
        return (
            self.heartbeat * 1000,
            self.first_heartbeat * 1000,
            self.consumer_heartbeat * 1000,
            self.waiting_heartbeat * 1000,
            self.round_trip * 1000,
            self.apart,
        )


OURS = "kafka-assignors"
"""The consumers of this package, on any client."""

CLIENTS: dict[str, Intervals] = {
    "librdkafka": Intervals(),
    "java": Intervals(),
    "kafka-python": Intervals(),
    "aiokafka": Intervals(),
    OURS: Intervals(first_heartbeat=0.5, consumer_heartbeat=0.3, waiting_heartbeat=0.2),
}
"""The intervals of each client with its default settings. kafka-python and aiokafka do not speak the new protocol."""

# The flags of `rebalance-cost` and of `spark replay`.
CLIENT_FLAG = FlagTexts(
    ("--client",), f"Whose intervals of heartbeats count for the time without an owner: {', '.join(CLIENTS)}."
)
HEARTBEAT_FLAG = FlagTexts(
    ("--heartbeat",), "heartbeat.interval.ms of the members, in seconds, if not the client's default."
)
CONSUMER_HEARTBEAT_FLAG = FlagTexts(
    ("--consumer-heartbeat",),
    "The broker's group.consumer.heartbeat.interval.ms, in seconds, if not its default of 5.",
)
APART_FLAG = FlagTexts(
    ("--apart",), "The group has not rebalanced for long, so that its members send heartbeats at random moments."
)
