"""Our Consumer for confluent-kafka beside the client's: reading, rebalances, and the CPU time of an idle membership."""

import pytest
from consumers import group, reading
from consumers.member import LIBRDKAFKA
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import Ratio, check_bounds, measured_once, rounds_of

from support.broker import Kafka

MESSAGES, ROUNDS = 1_000_000, 25
MEMBERS, PARTITIONS = 50, 3_000
# Groups of each contender, and how often a member joins and leaves in each.
GROUPS, EVENTS = 2, 5
IDLE_SECONDS = 60.0

READS = {"consume(500)": reading.read_by_consume, "poll()": reading.read_by_poll}
BEATS = {"0.5 s": 500, "3 s": 3_000}
SIZE = f"{MEMBERS} members x {PARTITIONS:,}"
# Numbers of processes. Members of one process signal each other, so with a process for each the wait is longest.
LAYOUTS = {"in 4 processes": 4, "in 50 processes": MEMBERS}
IDLE = "membership thread, idle"

CHANGES = ("joins", "leaves")

OURS = ("our sticky", "our cooperative-sticky")
NAMES = [f"{SIZE} {layout}, heartbeats of {beat}: " for layout in LAYOUTS for beat in BEATS]

check_bounds("bare-consumer", [f"{way}: {what}" for way in READS for what in ("cpu", "wall")])
check_bounds(
    "librdkafka-rebalance",
    [f"{name}one {what}, {each}" for name in NAMES for what in CHANGES for each in OURS],
)
check_bounds("librdkafka-leader", [name + each for name in NAMES for each in OURS])
check_bounds("core", [IDLE])

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def filled(kafka: Kafka) -> str:
    return reading.fill(kafka, MESSAGES)


# Each of these is measured once, by the first test that needs it.
@measured_once
def costs(kafka: Kafka, topic: str, way: str) -> dict[str, reading.Cost]:
    return reading.compare(kafka, topic, MESSAGES, READS[way], ROUNDS)


@measured_once
def rebalances(kafka: Kafka, layout: str, beat: str) -> dict[str, group.Times]:
    return group.compare(
        kafka,
        [*OURS, LIBRDKAFKA],
        BEATS[beat],
        members=MEMBERS,
        partitions=PARTITIONS,
        processes=LAYOUTS[layout],
        rounds=GROUPS,
        events=EVENTS,
    )


@pytest.mark.parametrize("what", ["cpu", "wall"])
@pytest.mark.parametrize("way", READS)
def test_reading(kafka: Kafka, filled: str, benchmark: BenchmarkFixture, ratio: Ratio, way: str, what: str) -> None:
    found = rounds_of(benchmark, lambda: costs(kafka, filled, way))
    ours, bare = (getattr(found[name], what) for name in (reading.OURS, reading.BARE))
    ratio.at_most("bare-consumer", f"{way}: {what}", ours, bare, f"{MESSAGES:,} messages; medians of {ROUNDS}")


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("contender", OURS)
@pytest.mark.parametrize("beat", BEATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rebalance(
    kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, layout: str, beat: str, contender: str, what: str
) -> None:
    found = rounds_of(benchmark, lambda: rebalances(kafka, layout, beat))
    name = f"{SIZE} {layout}, heartbeats of {beat}: one {what}, {contender}"
    ours, other = (found[each].median(what) for each in (contender, LIBRDKAFKA))
    wait = group.waited(what, BEATS[beat], LAYOUTS[layout])
    note = f"medians of {GROUPS * EVENTS}" + (f"; ours without the mean wait of {wait:.2f} s" if wait else "")
    ratio.at_most("librdkafka-rebalance", name, ours - wait, other, note)


@pytest.mark.parametrize("contender", OURS)
@pytest.mark.parametrize("beat", BEATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_leader(
    kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, layout: str, beat: str, contender: str
) -> None:
    found = rounds_of(benchmark, lambda: rebalances(kafka, layout, beat))
    name = f"{SIZE} {layout}, heartbeats of {beat}: {contender}"
    ours, other = found[contender].median("plans"), found[LIBRDKAFKA].median("plans")
    ratio.at_most("librdkafka-leader", name, ours, other, "from JoinGroup reply to SyncGroup request")


def test_idle(kafka: Kafka, filled: str, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    cpu, elapsed = rounds_of(benchmark, lambda: reading.idle_membership(kafka, filled, IDLE_SECONDS))
    ratio.at_most("core", IDLE, cpu, elapsed, "CPU time against time, at the default heartbeat interval")
