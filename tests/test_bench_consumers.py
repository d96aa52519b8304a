"""The counts and times of the benchmarks of our consumers, in small runs on the embedded Kafka."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from consumers import first_records, idle, python_reading, reading, rereading
from consumers.group import spread
from consumers.wire import planning_times

from kafka_assignors.clients.aiokafka import _internals
from support.broker import Kafka, unique

pytestmark = pytest.mark.needs("benches")

LOG = """\
%7|1700000000.100|SEND|leader#consumer-1| [thrd:main]: GroupCoordinator/1: Sent JoinGroupRequest (v5, 90 bytes @ 0)
%7|1700000000.200|RECV|leader#consumer-1| [thrd:main]: GroupCoordinator/1: Received JoinGroupResponse (v5, 66 bytes)
%7|1700000000.300|SEND|leader#consumer-1| [thrd:main]: GroupCoordinator/1: Sent JoinGroupRequest (v5, 99 bytes @ 0)
%7|1700000000.400|RECV|leader#consumer-1| [thrd:main]: GroupCoordinator/1: Received JoinGroupResponse (v5, 195 bytes)
%7|1700000001.500|SEND|leader#consumer-1| [thrd:main]: GroupCoordinator/1: Sent SyncGroupRequest (v3, 12162 bytes @ 0)
%7|1700000001.600|RECV|leader#consumer-1| [thrd:main]: GroupCoordinator/1: Received SyncGroupResponse (v3, 60 bytes)
%6|1700000001.700|FAIL|leader#consumer-1| [thrd:main]: Sent SyncGroupRequest
"""


def test_librdkafkas_log_gives_the_time_from_the_last_reply_to_the_request() -> None:
    ((replied, sent),) = planning_times(LOG.splitlines(keepends=True))
    assert (replied, sent) == (1700000000.4, 1700000001.5)


def test_members_come_and_go_evenly_over_the_beat() -> None:
    groups = spread(2, 5, seed=500)
    assert [len(pairs) for pairs in groups] == [5, 5]
    for moments in zip(*groups[0], *groups[1], strict=True):
        assert sorted(moments) == pytest.approx([0.05 + 0.1 * number for number in range(10)])


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_a_member_of_ours_is_watched(strategy: str) -> None:
    """In a separate process, since a watch cannot be removed."""
    program = f"""
import confluent_kafka
from consumers.wire import Watch
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.embedded import EmbeddedKafka

watch = Watch()
watch.install()
with EmbeddedKafka(topics={{"orders": 3}}) as kafka:
    settings = {{"bootstrap.servers": kafka.bootstrap_servers, "group.id": "watched"}}
    with Consumer({{**settings, "partition.assignment.strategy": "{strategy}"}}) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
((replied, sent),) = watch.spans
assert sent >= replied
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..", "benches")},
    )
    assert done.returncode == 0, done.stderr


RECORDS, CHANGES = 100, 6


@pytest.mark.parametrize(
    ("way", "protocol", "keeps"),
    [
        ("kafka-python: iteration", "eager", True),
        ("aiokafka: getmany()", "cooperative", True),
        # With public methods alone, aiokafka discards the records that it has fetched.
        ("aiokafka: getone()", "eager", False),
    ],
)
def test_bytes_that_come_again_are_counted(
    embedded: Kafka, monkeypatch: pytest.MonkeyPatch, way: str, protocol: str, keeps: bool
) -> None:
    topic = embedded.create_topic(unique("bench"), rereading.PARTITIONS)
    rereading.fill(embedded, topic, RECORDS)
    theirs = rereading.bytes_of_the_client(embedded, topic, RECORDS, way)
    assert theirs > RECORDS * rereading.PARTITIONS * rereading.SIZE
    if not keeps:
        monkeypatch.setattr(_internals, "table_of", lambda *_: None)
    ours = rereading.bytes_of_ours(embedded, topic, RECORDS, way, protocol, CHANGES)
    assert (ours < 1.5 * theirs) == keeps


# Ours alone: a group of kafka-python's own cooperative-sticky (3.0.12) may wait for ever on a busy machine.
@pytest.mark.parametrize("contender", ["kafka-python: our cooperative-sticky", "aiokafka: our roundrobin"])
def test_first_records_are_waited_for(embedded: Kafka, contender: str) -> None:
    found = first_records.compare(embedded, [contender], heartbeat_ms=200, rounds=1, events=1)
    assert found[contender].keys() == {"joins", "leaves"}
    assert all(len(delays) == 1 and delays[0] > 0 for delays in found[contender].values())


def test_a_heartbeat_that_is_just_missed_does_not_decide() -> None:
    theirs = [0.05 * number for number in range(1, 11)]
    ours = [delay + 0.002 for delay in theirs]
    ours[-1], theirs[0] = 0.01, 0.5
    mine, its = first_records.typical(ours, theirs)
    assert mine - its == pytest.approx(0.002)


@pytest.mark.parametrize("client", idle.CLIENTS)
def test_an_idle_consumer_is_measured(embedded: Kafka, client: str) -> None:
    topic = embedded.create_topic(unique("bench"), 2)
    bare, ours = (idle.CLIENTS[client](embedded, topic, 2, 0.3, ours=each) for each in (False, True))
    assert bare.thread == 0 <= ours.thread <= ours.process
    assert min(bare.elapsed, ours.elapsed) >= 0.3


@pytest.mark.parametrize("way", python_reading.WAYS)
def test_ours_and_the_clients_own_read_the_same_records(embedded: Kafka, way: str) -> None:
    topic = reading.fill(embedded, 3_000)
    costs = python_reading.compare(embedded, topic, 3_000, way, 1)
    assert all(each.wall > 0 for each in costs)
