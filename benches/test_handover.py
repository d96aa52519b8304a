"""Members of the consumer protocol (KIP-848) on a real broker: ours against librdkafka's, and the predicted times."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import mean, median

import pytest
from consumers.handover import CONSUMER, COOPERATIVE, EAGER, OURS, Group, Handover, Spec
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import Ratio, check_bounds, measured_once, rounds_of

from kafka_assignors.intervals import Changes, Intervals
from kafka_assignors.intervals import Handover as Way
from support.broker import ApacheKafka, Kafka, unique

MEMBERS, PARTITIONS = 10, 120
# How often a member joins and leaves, by the heartbeat interval on which the contender waits.
ROUNDS = {CONSUMER: 4, OURS: 8}
SIZE = f"{MEMBERS} members x {PARTITIONS}, a process each"
EVENTS = ("one joins", "one leaves", "three join at once")

SECONDS = 1.0
PHASES = 8
"""Events are spread over an interval of `SECONDS`, at `PHASES` moments."""
# Eager groups are not here: they are measured with heartbeats that are apart. If their heartbeats came at the same
# moment, the prediction would be only the time of the requests, which a busy machine multiplies. And once a member is
# late, its heartbeats are apart from then on.
WAYS: dict[str, Way] = {COOPERATIVE: "cooperative", CONSUMER: "consumer"}
# Members and partitions of the groups, and how many members join and leave at once.
GROUPS = {
    "10 members x 120": (10, 120, 1),
    "6 members x 60": (6, 60, 1),
    "8 members x 64": (8, 64, 2),
    "7 members x 100": (7, 100, 1),
    "12 members x 60": (12, 60, 3),
}
PREDICTED = [f"{size}, {way}" for size in GROUPS for way in (EAGER, *WAYS)]
# How often members join and leave an eager group.
EAGER_ROUNDS = 4

check_bounds("librdkafka-consumer-protocol", [f"{SIZE}: {event}" for event in EVENTS])
check_bounds("librdkafka-ownerless", [f"{SIZE}: {event}" for event in EVENTS])
check_bounds("ownerless-predicted", [*PREDICTED, *(f"{SIZE}, {each}" for each in (CONSUMER, OURS))])

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def quick_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that asks for heartbeats in the consumer protocol as often as members of the classic one send them."""
    millis = int(SECONDS * 1_000)
    kafka = ApacheKafka(
        tmp_path_factory.mktemp("handover") / "quick",
        group_consumer_min_heartbeat_interval_ms=millis,
        group_consumer_heartbeat_interval_ms=millis,
        # A fifth of the heartbeat interval, as by default.
        group_consumer_assignment_interval_ms=millis // 5,
    )
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.kill()


@measured_once
def measured(kafka: Kafka, contender: str) -> dict[str, list[Handover]]:
    """The events of a group whose members are processes, with default settings."""
    found: dict[str, list[Handover]] = {event: [] for event in EVENTS}
    topic = kafka.create_topic(unique("handover"), PARTITIONS)
    spec = Spec(contender, kafka.bootstrap_servers, unique("handover"), topic, PARTITIONS)
    chance = random.Random(848)
    rounds = ROUNDS[contender]
    with Group(spec, MEMBERS + 3) as group:
        for _ in range(MEMBERS):
            group.tell([], 1)
            time.sleep(0.7)
        group.settle(time.monotonic())
        for number in range(rounds):
            # Spread over the interval, as members of other applications would come and go.
            time.sleep(5 * (number + chance.random()) / rounds)
            found["one joins"].append(group.settle(group.tell([], 1)))
            time.sleep(5 * (number + chance.random()) / rounds)
            found["one leaves"].append(group.settle(group.tell(group.members[-1:], 0)))
        for _ in range(rounds // 2):
            time.sleep(5 * chance.random())
            found["three join at once"].append(group.settle(group.tell([], 3)))
            time.sleep(5 * chance.random())
            group.settle(group.tell(group.members[-3:], 0))
    kafka.delete_topic(topic)
    return found


@pytest.mark.parametrize("event", EVENTS)
def test_converges(kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, event: str) -> None:
    ours, theirs = rounds_of(benchmark, lambda: [measured(kafka, each)[event] for each in (OURS, CONSUMER)])
    name = f"{SIZE}: {event}"
    converged, librdkafkas = (median(each.seconds for each in found) for found in (ours, theirs))
    said = f"medians of {len(ours)} and {len(theirs)}"
    ratio.at_most("librdkafka-consumer-protocol", name, converged, librdkafkas, said)
    gap, librdkafkas = (mean(gap for each in found for gap in each.moved) for found in (ours, theirs))
    ratio.at_most("librdkafka-ownerless", name, gap, librdkafkas, "means of the partitions that moved")


def predicted(intervals: Intervals, way: Way, members: int, partitions: int, count: int) -> float:
    """The predicted partition-seconds of a join and a leave of `count` members.

    In groups of these sizes every member gives up something in a join.
    """
    moved = partitions * count // (members + count)
    joins = Changes(members, min(members, moved), count, held=partitions, given_up=moved)
    leaves = Changes(members, held=partitions - moved, taken=moved)
    return intervals.ownerless(way, joins) + intervals.ownerless(way, leaves)


@pytest.mark.parametrize("contender", [CONSUMER, OURS])
def test_the_time_without_an_owner_with_defaults(
    kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, contender: str
) -> None:
    found = rounds_of(benchmark, lambda: measured(kafka, contender))
    times = [mean(sum(each.gaps) for each in found[event]) for event in ("one joins", "one leaves")]
    intervals = Intervals.of_client("kafka-assignors" if contender == OURS else "librdkafka")
    wanted = predicted(intervals, "consumer", MEMBERS, PARTITIONS, 1)
    _close(ratio, f"{SIZE}, {contender}", wanted, sum(times))


def test_the_time_without_an_owner_is_predicted(quick_kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """Five groups of librdkafka's members in both protocols, all at the same time."""
    found = rounds_of(benchmark, lambda: _all_groups(quick_kafka))
    for name, (wanted, seconds) in found.items():
        _close(ratio, name, wanted, seconds)


@pytest.mark.parametrize("size", GROUPS)
def test_the_time_without_an_owner_of_an_eager_group_is_predicted(
    quick_kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, size: str
) -> None:
    """A group of librdkafka's members, a process each, whose heartbeats are apart before each event."""
    wanted, seconds = rounds_of(benchmark, lambda: _eager_group(quick_kafka, size))
    _close(ratio, f"{size}, {EAGER}", wanted, seconds)


def _eager_group(kafka: Kafka, size: str) -> tuple[float, float]:
    """The partition-seconds of a join and a leave: predicted, and measured."""
    members, partitions, count = GROUPS[size]
    chance = random.Random(848)
    topic = kafka.create_topic(unique("handover"), partitions)
    spec = Spec(EAGER, kafka.bootstrap_servers, unique("handover"), topic, partitions, int(SECONDS * 1_000))
    gaps = 0.0
    with Group(spec, members + count) as group:
        group.tell([], members)
        group.settle(time.monotonic())
        for _ in range(EAGER_ROUNDS):
            for joins in (True, False):
                group.scatter(SECONDS, chance)
                time.sleep(SECONDS * chance.random())
                group.tell([] if joins else group.members[-count:], count if joins else 0)
                gaps += sum(group.settle(time.monotonic()).gaps)
    intervals = Intervals.of_client("librdkafka", heartbeat=SECONDS, apart=True)
    return predicted(intervals, "eager", members, partitions, count), gaps / EAGER_ROUNDS


def _close(ratio: Ratio, name: str, wanted: float, seconds: float) -> None:
    more, less = max(wanted, seconds), min(wanted, seconds)
    said = f"partition-seconds; measured {seconds:.2f}, predicted {wanted:.2f}"
    ratio.at_most("ownerless-predicted", name, more, less, said)


def _all_groups(kafka: Kafka) -> dict[str, tuple[float, float]]:
    """By group and way, the partition-seconds of a join and a leave: predicted, and measured."""
    millis = int(SECONDS * 1_000)
    with ExitStack() as stack:
        groups: dict[tuple[str, str], Group] = {}
        for size, (_, partitions, _) in GROUPS.items():
            for way in WAYS:
                topic = kafka.create_topic(unique("handover"), partitions)
                spec = Spec(way, kafka.bootstrap_servers, unique("handover"), topic, partitions, millis)
                groups[size, way] = stack.enter_context(Group(spec))
        chance = random.Random(848)
        starts = [key for key in groups for _ in range(GROUPS[key[0]][0])]
        # In random order, so that the members of a group have their heartbeats at random moments of the interval.
        chance.shuffle(starts)
        for key in starts:
            groups[key].tell([], 1)
            time.sleep(0.05)
        for group in groups.values():
            group.settle(time.monotonic())
        gaps = dict.fromkeys(groups, 0.0)
        began = time.monotonic()
        for phase in range(PHASES):
            for joins in (True, False):
                moment = began + SECONDS * phase / PHASES
                time.sleep(SECONDS + (moment - time.monotonic()) % SECONDS)
                for (size, _), group in groups.items():
                    count = GROUPS[size][2]
                    group.tell([] if joins else group.members[-count:], count if joins else 0)
                for key, group in groups.items():
                    gaps[key] += sum(group.settle(time.monotonic()).gaps)
    found = {}
    intervals = Intervals.of_client("librdkafka", heartbeat=SECONDS, consumer_heartbeat=SECONDS)
    for (size, way), seconds in gaps.items():
        members, partitions, count = GROUPS[size]
        found[f"{size}, {way}"] = predicted(intervals, WAYS[way], members, partitions, count), seconds / PHASES
    return found
