"""How long partitions are expected to be without an owner; the formulas have their tests in the core."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_assignors.errors import OptionError
from kafka_assignors.intervals import CLIENTS, OURS, Changes, Handover, Intervals

# One of ten members joins or leaves: 90 partitions, of which nine move.
JOIN = Changes(staying=9, losing=9, joining=1, held=90, given_up=9)
LEAVE = Changes(staying=9, held=81, taken=9)


@pytest.mark.parametrize(
    ("client", "handover", "join", "leave"),
    [
        ("librdkafka", "eager", 90 * 0.01, 81 * 0.01 + 9 * 1.51),
        ("librdkafka", "cooperative", 9 * 3.01, 9 * 1.51),
        ("java", "consumer", 9 * 2.51, 9 * 2.505),
        (OURS, "cooperative", 9 * 0.51, 9 * 1.51),
        (OURS, "consumer", 9 * 0.11, 9 * 0.155),
    ],
)
def test_the_defaults_of_clients(client: str, handover: Handover, join: float, leave: float) -> None:
    intervals = Intervals.of_client(client)
    assert intervals.ownerless(handover, JOIN) == pytest.approx(join)
    assert intervals.ownerless(handover, LEAVE) == pytest.approx(leave)


def test_other_intervals() -> None:
    assert Intervals.of_client("java", heartbeat=1.0).first_heartbeat == 1.0
    ours = Intervals.of_client(OURS, heartbeat=0.4, consumer_heartbeat=15.0, apart=True)
    # Members of this package send heartbeats more often than the broker demands, and do not drift apart.
    assert (ours.first_heartbeat, ours.consumer_heartbeat, ours.waiting_heartbeat, ours.apart) == (0.4, 0.3, 0.2, False)
    theirs = Intervals.of_client("librdkafka", consumer_heartbeat=15.0, apart=True)
    assert (theirs.consumer_heartbeat, theirs.waiting_heartbeat, theirs.apart) == (15.0, 15.0, True)
    # The last of nine members learns of the rebalance after nine tenths of its interval of 3 s.
    assert theirs.ownerless("eager", JOIN) == pytest.approx(90 * (2.7 - 1.5 + 0.01))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"client": "sarama"}, "client is 'sarama'; give one of 'librdkafka'"),
        ({"heartbeat": 0}, "heartbeat is 0; give a positive number of seconds"),
        ({"consumer_heartbeat": float("nan")}, "consumer_heartbeat is nan; give a positive number"),
    ],
)
def test_intervals_that_cannot_be(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        Intervals.of_client(**{"client": "java", **settings})
    with pytest.raises(OptionError, match="round_trip"):
        Intervals(round_trip=-1.0)
    with pytest.raises(OptionError, match=r"protocol is .streams."):
        Intervals().ownerless("streams", JOIN)  # type: ignore[arg-type]
    assert set(CLIENTS) == {"librdkafka", "java", "kafka-python", "aiokafka", OURS}
