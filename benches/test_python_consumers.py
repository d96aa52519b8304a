"""Our consumers for kafka-python and aiokafka beside the clients' own: reading, rebalances, and idling.

The rebalances are those of `test_consumer.py`, with the same bounds.
"""

import pytest
from consumers import first_records, group, idle, python_reading, reading, rereading
from consumers.member import LIBRDKAFKA
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import Ratio, check_bounds, measured_once, rounds_of

from support.broker import Kafka, unique

MESSAGES, ROUNDS = 1_000_000, 7
# The records in each kept partition, and how often the reader's assignment changes.
KEPT, CHANGES = 8_000, 200
MEMBERS, PARTITIONS = 50, 3_000
# Groups of each contender, and how often a member joins and leaves in each.
GROUPS, EVENTS = 2, 5
# The same for first records, which differ less.
FIRST_EVENTS = 10
IDLE_SECONDS = 60.0

CLIENTS = ("kafka-python", "aiokafka")
REREADING = {f"{way}, {protocol}": (way, protocol) for way in rereading.WAYS for protocol in rereading.PROTOCOLS}
# For each contender of ours, the client's own coordinator with the same strategy.
OWN = {
    "kafka-python: our range": "kafka-python: its range",
    "kafka-python: our cooperative-sticky": "kafka-python: its cooperative-sticky",
    "aiokafka: our roundrobin": "aiokafka: its roundrobin",
}
CHANGE = ("joins", "leaves")
BEATS = {"0.5 s": 500, "3 s": 3_000}
SIZE = f"{MEMBERS} members x {PARTITIONS:,}"
LAYOUTS = {"in 4 processes": 4, "in 50 processes": MEMBERS}
OURS = [f"{client}: our {strategy}" for client in CLIENTS for strategy in ("sticky", "cooperative-sticky")]
NAMES = [f"{SIZE} {layout}, heartbeats of {beat}: " for layout in LAYOUTS for beat in BEATS]

check_bounds("bare-python-consumer", python_reading.WAYS)
check_bounds("kept-bytes", REREADING)
check_bounds("first-record", [f"one {what}, {ours}" for ours in OWN for what in CHANGE])
check_bounds("python-rebalance", [f"{name}one {what}, {each}" for name in NAMES for what in CHANGE for each in OURS])
check_bounds("python-leader", [name + each for name in NAMES for each in OURS])
check_bounds("python-idle", [f"{client}: membership thread" for client in CLIENTS])

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def filled(kafka: Kafka) -> str:
    return reading.fill(kafka, MESSAGES)


@pytest.fixture(scope="module")
def kept(kafka: Kafka) -> str:
    topic = kafka.create_topic(unique("bench"), rereading.PARTITIONS)
    rereading.fill(kafka, topic, KEPT)
    return topic


# Each of these is measured once, by the first test that needs it.
@measured_once
def costs(kafka: Kafka, topic: str, way: str) -> tuple[python_reading.Cost, python_reading.Cost]:
    return python_reading.compare(kafka, topic, MESSAGES, way, ROUNDS)


@measured_once
def delays(kafka: Kafka) -> dict[str, first_records.Delays]:
    return first_records.compare(kafka, [*OWN, *OWN.values()], BEATS["0.5 s"], GROUPS, FIRST_EVENTS)


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


@pytest.mark.parametrize("way", python_reading.WAYS)
def test_reading(kafka: Kafka, filled: str, benchmark: BenchmarkFixture, ratio: Ratio, way: str) -> None:
    ours, bare = rounds_of(benchmark, lambda: costs(kafka, filled, way))
    ratio.at_most("bare-python-consumer", way, ours.cpu, bare.cpu, f"{MESSAGES:,} messages; medians of {ROUNDS}")


@pytest.mark.parametrize("case", REREADING)
def test_what_is_kept_is_not_fetched_again(
    kafka: Kafka, kept: str, benchmark: BenchmarkFixture, ratio: Ratio, case: str
) -> None:
    way, protocol = REREADING[case]
    theirs = rereading.bytes_of_the_client(kafka, kept, KEPT, way)
    ours = rounds_of(benchmark, lambda: rereading.bytes_of_ours(kafka, kept, KEPT, way, protocol, CHANGES))
    ratio.count_at_most("kept-bytes", case, ours, theirs, f"bytes received in {CHANGES} changes of the share")


@pytest.mark.parametrize("what", CHANGE)
@pytest.mark.parametrize("ours", OWN)
def test_first_record(kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, ours: str, what: str) -> None:
    found = rounds_of(benchmark, lambda: delays(kafka))
    mine, its = first_records.typical(found[ours][what], found[OWN[ours]][what])
    note = f"means over the gained partitions, {GROUPS * FIRST_EVENTS} pairs"
    ratio.at_most("first-record", f"one {what}, {ours}", mine, its, note)


@pytest.mark.parametrize("what", CHANGE)
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
    ratio.at_most("python-rebalance", name, ours - wait, other, note)


@pytest.mark.parametrize("contender", OURS)
@pytest.mark.parametrize("beat", BEATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_leader(
    kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, layout: str, beat: str, contender: str
) -> None:
    found = rounds_of(benchmark, lambda: rebalances(kafka, layout, beat))
    name = f"{SIZE} {layout}, heartbeats of {beat}: {contender}"
    ours, other = found[contender].median("plans"), found[LIBRDKAFKA].median("plans")
    ratio.at_most("python-leader", name, ours, other, "from JoinGroup reply to SyncGroup request")


@pytest.mark.parametrize("client", CLIENTS)
def test_idle(kafka: Kafka, benchmark: BenchmarkFixture, ratio: Ratio, client: str) -> None:
    topic = kafka.create_topic(unique("bench"), reading.PARTITIONS)
    bare = idle.CLIENTS[client](kafka, topic, reading.PARTITIONS, IDLE_SECONDS, ours=False)
    ours = rounds_of(benchmark, lambda: idle.CLIENTS[client](kafka, topic, reading.PARTITIONS, IDLE_SECONDS, ours=True))
    shares = f"{ours.process / ours.elapsed:.2%} of a core, the client's own {bare.process / bare.elapsed:.2%}"
    ratio.at_most("python-idle", f"{client}: membership thread", ours.thread, ours.elapsed, f"the process: {shares}")
