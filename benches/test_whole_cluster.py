"""`kafka-assignors fleet` as a process, on an embedded Kafka: its time, its peak memory, and its requests. And the
exporter of the same groups: the time and the series of a scrape."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from ratios import Ratio, check_bounds, measured, rounds_of

from kafka_assignors import MemberState
from kafka_assignors.assignors import by_name
from kafka_assignors.cluster import read_fleet
from kafka_assignors.cluster.questions import Questions
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.metrics.endpoint import Endpoint
from kafka_assignors.metrics.exporter import Exporter, Settings
from support import raw_group
from support.planned_group import commit
from support.raw_group import NONE, RawGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.timeout(600)

GROUPS, PARTITIONS, MEMBERS = 1_000, 100, 4
CASE = "1,000 groups with 100,000 partitions"
STRATEGIES = ("sticky", "range", "cooperative-sticky", "roundrobin")
MOST_SECONDS, MOST_BYTES = 10.0, 300e6
SCRAPE_SECONDS, MOST_SERIES = 2.0, 40

check_bounds("fleet-pace", {CASE})
check_bounds("fleet-memory", {CASE})
check_bounds("fleet-requests", {CASE})
check_bounds("exporter-scrape", {CASE})
check_bounds("exporter-series", {CASE})


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    """In each topic a record waits. Members stay, without a connection, until their sessions end."""
    names = [f"topic-{number:04}" for number in range(GROUPS)]
    with EmbeddedKafka(topics=dict.fromkeys(names, PARTITIONS)) as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_group, "_SESSION_MS", 1_800_000)
        producer = confluent_kafka.Producer({"bootstrap.servers": made.bootstrap_servers, "linger.ms": 50})
        for topic in names:
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(60) == 0
        clients = [f"client-{number}" for number in range(MEMBERS)]
        for number, topic in enumerate(names):
            commit(made.bootstrap_servers, f"group-{number:04}", {(topic, each): 0 for each in range(PARTITIONS)})
            assignor = by_name(STRATEGIES[number % len(STRATEGIES)])
            metadata = dict.fromkeys(clients, assignor.metadata([topic], MemberState()))
            with RawGroup(made.bootstrap_servers, f"group-{number:04}", clients, assignor.name) as group:
                leader = group.join(metadata)
                shares: Any = assignor.perform_assignment(list(leader.members), {topic: PARTITIONS})
                assert {error for error, _ in group.sync(shares).values()} == {NONE}
        yield made


# The process prints its own peak since `exec`. The peak from `wait4` is at least that of the process that forked it.
_PROGRAM = """
import atexit, sys
from pathlib import Path
from kafka_assignors.cli import main
atexit.register(lambda: sys.stderr.write(Path("/proc/self/status").read_text()))
main()
"""


def command(kafka: EmbeddedKafka) -> tuple[float, int]:
    """The seconds and the peak memory in bytes of the command, from its start to its end."""
    arguments = ["fleet", "--format", "json", "--bootstrap-server", kafka.bootstrap_servers]
    begun = perf_counter()
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=False)
    seconds = perf_counter() - begun
    assert done.returncode in (0, 3), done.stderr
    assert done.stdout.count('"group_id"') == done.stdout.count('"lag": 1,') == GROUPS
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", done.stderr, re.MULTILINE)
    assert peak, "VmHWM is not in /proc/self/status"
    return seconds, int(peak[1]) * 1024


def test_a_whole_cluster(kafka: EmbeddedKafka, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    peaks = []
    rounds_of(benchmark, lambda: peaks.append(command(kafka)[1]), 3)
    seconds = measured(benchmark).min
    ratio.at_most("fleet-pace", CASE, seconds, MOST_SECONDS, "the start of Python included")
    ratio.count_at_most("fleet-memory", CASE, max(peaks), MOST_BYTES, "peak of the process")


def test_requests(kafka: EmbeddedKafka, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """The requests of one reading: one for the commits of 50 groups each, the others in batches by broker."""
    asked: Counter[str] = Counter()
    send = Questions._send

    def counted(self: Questions, connection: Any, lane: Any, questions: Any) -> None:
        asked[questions[lane.waiting[0]].request] += 1
        send(self, connection, lane, questions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Questions, "_send", counted)
        rounds_of(benchmark, lambda: read_fleet({"bootstrap.servers": kafka.bootstrap_servers}))
    assert asked["OffsetFetch"] == GROUPS / 50
    ratio.count_at_most("fleet-requests", CASE, sum(asked.values()), GROUPS, f"{dict(asked)}")


def test_a_scrape(kafka: EmbeddedKafka, benchmark: BenchmarkFixture, ratio: Ratio) -> None:
    """A scrape over HTTP reads the exporter's cache, while a thread reads the cluster again and again."""
    settings = Settings({"bootstrap.servers": kafka.bootstrap_servers}, interval=1.0)
    exporter = Exporter(settings)
    assert exporter.look()
    with Endpoint("127.0.0.1", 0, lambda: exporter.page) as endpoint:
        threads = [threading.Thread(target=each) for each in (endpoint.serve_forever, exporter.run)]
        for thread in threads:
            thread.start()

        def scrape() -> bytes:
            with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.server_port}/metrics") as answer:
                body: bytes = answer.read()
                return body

        page = rounds_of(benchmark, scrape, 5)
        exporter.stop()
        endpoint.shutdown()
        for thread in threads:
            thread.join(60)
    assert page.count(b"kafka_assignors_group_lag_records{") == GROUPS
    ratio.at_most("exporter-scrape", CASE, measured(benchmark).max, SCRAPE_SECONDS, f"of {len(page):,} bytes")
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    ratio.count_at_most("exporter-series", CASE, series / GROUPS, MOST_SERIES, "of each group")
