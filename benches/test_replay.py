"""The replay on Spark: against an empty kernel with the same tables (the floor), kafka-python, and itself.

All run in one session on two cores. Its start and Spark's first slow runs are not timed. The decoder of
`__consumer_offsets` is measured here, too, in the core without Spark.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import pytest
from fleets import Fleet
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import BOUNDS, Interleaved, Ratio, check_bounds, measured, rounds_of

from kafka_assignors import StickyAssignor
from kafka_assignors.group import MemberState
from kafka_assignors.spark import replay as module
from kafka_assignors.spark.replay import replay
from kafka_assignors.spark.session import session
from kafka_assignors.spark.strategies import STRATEGIES

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

TYPICAL = "10,000 groups x 20 rebalances, 100 partitions, 8 members"
WIDE = "1,000 groups x 20 rebalances, 1,000 partitions, 50 members"
SMALL = "100,000 groups x 1 rebalance, 10 partitions, 4 members"
FEW, MANY = "3,000 groups x 20 rebalances", "30,000 groups x 20 rebalances"
FLEETS = {
    TYPICAL: Fleet(10_000, 20, 100, 8),
    WIDE: Fleet(1_000, 20, 1_000, 50),
    SMALL: Fleet(100_000, 1, 10, 4),
    FEW: Fleet(3_000, 20, 100, 8),
    MANY: Fleet(30_000, 20, 100, 8),
}
# The number of groups that kafka-python replays, two at a time. The whole fleet would take minutes.
SAMPLES = {TYPICAL: 100, WIDE: 4}

check_bounds("replay-floor", {TYPICAL, SMALL})
check_bounds("replay-pace", {TYPICAL})
check_bounds("replay-kafka-python", SAMPLES)
check_bounds("replay-six", {TYPICAL})
check_bounds("replay-uniform", {TYPICAL, SMALL})
check_bounds("replay-growth", {f"{FEW}, and 10 times as many"})
check_bounds("replay-memory", {f"{FEW}, and 10 times as many"})
check_bounds("decoder-pace", {"offset commits", "group metadata"})

# Spark's workers cannot import modules of this folder.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf: dict[str, Any] = {
        "spark.driver.memory": "3g",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.execution.arrow.maxRecordsPerBatch": 500,
    }
    made = session("local[2]", **conf)
    yield made
    made.stop()


# For a fleet: its tables, by the names of the arguments of `replay`.
Tables = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of a fleet, which are written at the first call."""
    written: dict[str, dict[str, str]] = {}

    def of(name: str) -> dict[str, Any]:
        if name not in written:
            written[name] = FLEETS[name].write(tmp_path_factory.mktemp("fleet"))
        return {argument: spark.read.parquet(path) for argument, path in written[name].items()}

    return of


def consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def warm(*runs: Callable[[], object], rounds: int = 2) -> None:
    """Spark's first runs are several times slower."""
    for _ in range(rounds):
        for run in runs:
            run()


def empty_kernel(kernel: Any, batch: Any) -> Iterator[Any]:
    """A row for each group, without figures and without the core: what Spark and Arrow alone take."""
    yield kernel.floor(batch)


@pytest.mark.parametrize("name", BOUNDS.cases("replay-floor"))
def test_floor(name: str, tables: Tables, interleaved: Interleaved, ratio: Ratio) -> None:
    frames, total = tables(name), FLEETS[name].total
    assert replay(**frames, strategies=["sticky"]).where("error is null and strategy = 'sticky'").count() == total

    def ours() -> None:
        consume(replay(**frames, strategies=["sticky"]))

    def empty() -> None:
        given = (frames["events"], frames["counts"], frames.get("lags"), frames.get("observed"))
        consume(module._replayed(empty_kernel, "rebalances", *given, "latest", ["sticky"], None, module.LARGE))

    # Java compiles the code that reads the rows, which only the replay has, for several rounds.
    warm(ours, empty, rounds=8)
    seconds, floor_seconds = interleaved(ours, empty, 10)
    note = f"{total / seconds:,.0f} rebalances/s, an empty kernel {total / floor_seconds:,.0f}/s"
    ratio.at_most("replay-floor", name, seconds, floor_seconds, note)
    if name in BOUNDS.cases("replay-pace"):
        ratio.at_most("replay-pace", name, seconds, total / 100_000, "against 100,000 rebalances/s")


class _Cluster(ClusterMetadata):  # type: ignore[misc]
    """The part of kafka-python's cluster metadata that its assignor reads."""

    def __init__(self, topics: dict[str, int]) -> None:
        super().__init__()
        self.counts = topics

    def topics(self, *_: object) -> set[str]:
        return set(self.counts)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(self.counts[topic]))


def by_kafka_python(partitions: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The replay of a group for applyInPandas: kafka-python's sticky, event by event."""

    def run(group: pd.DataFrame) -> pd.DataFrame:
        topic = group["group_id"].iloc[0]
        cluster = _Cluster({topic: partitions})
        states: dict[str, MemberState] = {}
        present: set[str] = set()
        rows = []
        for seq, events in group.sort_values("seq").groupby("seq"):
            for event in events.itertuples():
                if event.kind == "leave":
                    present.discard(event.member_id)
                    states.pop(event.member_id, None)
                else:
                    present.add(event.member_id)
                    states.setdefault(event.member_id, MemberState())
            joined = []
            for member in sorted(present):
                metadata = ConsumerProtocolSubscription.decode(StickyAssignor().metadata([topic], states[member]))
                if metadata.user_data:
                    # kafka-python reads only its own form of the user data.
                    metadata.user_data = b"\0\1" + metadata.user_data
                joined.append(
                    JoinGroupResponse.JoinGroupResponseMember(
                        member_id=member, group_instance_id=None, metadata=metadata
                    )
                )
            plan = StickyPartitionAssignor().assign(cluster, joined)
            owners = {number: member for member, state in states.items() for number in state.owned.get(topic, ())}
            moved = 0
            for member, assignment in plan.items():
                numbers = [number for _, numbers in assignment.assigned_partitions for number in numbers]
                moved += sum(owners.get(number, member) != member for number in numbers)
                states[member] = MemberState(owned={topic: numbers}, generation=int(seq))
            rows.append((topic, int(seq), moved))
        return pd.DataFrame(rows, columns=["group_id", "seq", "moved"])

    return run


@pytest.mark.parametrize("name", BOUNDS.cases("replay-kafka-python"))
def test_kafka_python(name: str, tables: Tables, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """The seconds per rebalance of both sides, each with its own Spark pipeline."""
    frames, fleet, sample = tables(name), FLEETS[name], SAMPLES[name]

    def ours() -> None:
        consume(replay(**frames, strategies=["sticky"]))

    def theirs(groups: int) -> Any:
        some = frames["events"].where(f"group_id < 'group-{groups:06}'")
        parts = some.repartition(2, "group_id").groupBy("group_id")
        return parts.applyInPandas(by_kafka_python(fleet.partitions), "group_id string, seq long, moved long")

    warm(ours, lambda: consume(theirs(2)))
    start = perf_counter()
    rows = theirs(sample).count()
    other = (perf_counter() - start) / rows
    assert rows == sample * fleet.rebalances
    rounds_of(benchmark, ours, 5, warm=True)
    seconds = measured(benchmark).min / fleet.total
    note = f"{1 / seconds:,.0f} rebalances/s against {1 / other:,.0f}/s, of {sample} groups"
    ratio.at_least("replay-kafka-python", name, seconds, other, note)


def test_six_strategies(tables: Tables, interleaved: Interleaved, ratio: Ratio) -> None:
    frames = tables(TYPICAL)

    def six() -> None:
        consume(replay(**frames, strategies=STRATEGIES))

    def one() -> None:
        consume(replay(**frames, strategies=["sticky"]))

    warm(six, one)
    seconds, once = interleaved(six, one, 3)
    note = f"{FLEETS[TYPICAL].total * len(STRATEGIES) / seconds:,.0f} rebalances/s"
    ratio.at_most("replay-six", TYPICAL, seconds, once, note)


@pytest.mark.parametrize("name", BOUNDS.cases("replay-uniform"))
def test_what_a_broker_would_plan(name: str, tables: Tables, interleaved: Interleaved, ratio: Ratio) -> None:
    frames, total = tables(name), FLEETS[name].total

    def replayed(strategy: str) -> Callable[[], None]:
        return lambda: consume(replay(**frames, strategies=[strategy]))

    uniform, sticky = replayed("uniform"), replayed("sticky")
    warm(uniform, sticky)
    seconds, other = interleaved(uniform, sticky, 5)
    note = f"{total / seconds:,.0f} rebalances/s, sticky {total / other:,.0f}/s"
    ratio.at_most("replay-uniform", name, seconds, other, note)


def test_growth(tables: Tables, interleaved: Interleaved, ratio: Ratio) -> None:
    few, many = tables(FEW), tables(MANY)

    def run(frames: dict[str, Any]) -> Callable[[], None]:
        return lambda: consume(replay(**frames, strategies=["sticky"]))

    warm(run(few), run(many))
    seconds, tenth = interleaved(run(many), run(few), 3)
    ratio.at_most("replay-growth", f"{FEW}, and 10 times as many", seconds, tenth)


def peaks(kernel: Any, batch: Any) -> Iterator[Any]:
    """Replays, and returns one row with the peak memory of the worker instead of the kernel's time."""
    import re
    from pathlib import Path

    import pyarrow

    kernel.run(batch)
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    row = kernel.floor(batch.slice(0, 1))
    place = row.schema.get_field_index("kernel_ns")
    yield row.set_column(place, "kernel_ns", pyarrow.array([int(peak[1]) * 1024 if peak else None], pyarrow.int64()))


def test_memory(tables: Tables, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """The largest peak of a worker, for a fleet and for one that is ten times as large."""

    def peak(frames: dict[str, Any]) -> int:
        given = (frames["events"], frames["counts"], None, None, "latest", ["sticky"], None, None)
        found: int = module._replayed(peaks, "rebalances", *given).agg({"kernel_ns": "max"}).collect()[0][0]
        return found

    small = peak(tables(FEW))
    large = rounds_of(benchmark, lambda: peak(tables(MANY)))
    ratio.at_most("replay-memory", f"{FEW}, and 10 times as many", large, small, "a worker's peak")


def test_decoder(benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """The core's bench in Rust, on two threads."""
    command = ["cargo", "bench", "--quiet", "--package", "kafka-assignors-core", "--bench", "offsets_topic"]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    root = Path(__file__).parent.parent

    def run() -> str:
        return subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    figures = json.loads(rounds_of(benchmark, run))
    commits, groups = figures["offset commits"], figures["group metadata"]
    pace = commits["records"] / commits["seconds"] / 1e6, commits["records"] / commits["floor_seconds"] / 1e6
    note = f"{pace[0]:,.1f} M records/s against 1.5 M/s; reading the bytes once {pace[1]:,.1f} M/s"
    ratio.at_most("decoder-pace", "offset commits", commits["seconds"], commits["records"] / 1.5e6, note)
    rate = groups["bytes"] / groups["seconds"] / 1e6, groups["bytes"] / groups["floor_seconds"] / 1e6
    note = f"{rate[0]:,.0f} MB/s against 200 MB/s; reading the bytes once {rate[1]:,.0f} MB/s"
    ratio.at_most("decoder-pace", "group metadata", groups["seconds"], groups["bytes"] / 200e6, note)
