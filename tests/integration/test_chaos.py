"""Our consumers on a real broker, under chaos: members and brokers are killed and replaced.

`make check` runs one minute. `make test-long` sets ``CHAOS_SECONDS`` to ten minutes, a million records. The test with
transactions runs half as long. ``CHAOS_SEED`` repeats the order of the blows (`support.chaos`).
"""

from __future__ import annotations

import json
import os
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from support import chaos
from support.broker import unique
from support.chaos import Feed, Storm
from support.jars import versions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.broker import ApacheKafka, Kafka
    from support.fixtures import StartMember
    from support.members import Strategy
    from support.trace import Trace

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("CHAOS_SEED", "0")) or random.randrange(1, 2**31)
# Records per second. Three groups read each of them, so they take most of the processor time.
RATE = int(os.environ.get("CHAOS_RATE", "600"))
PARTITIONS = 12
# Seconds between two restarts of the broker.
BROKER_ENDS = 25.0

GROUPS: dict[Strategy, tuple[str, ...]] = {
    "sticky": ("confluent", "kafka_python", "aiokafka", "kafka_plugin", "aio_plugin"),
    "cooperative-sticky": ("confluent", "kafka_python", "aiokafka", "java"),
}
# In the consumer protocol (KIP-848), on brokers that have it.
CONSUMER_PROTOCOL: dict[Strategy, tuple[str, ...]] = {"consumer": ("kafka_python", "aiokafka", "kafka_python")}
# The groups that write their records to a topic of their own, in transactions.
TRANSACTIONS: dict[str, Strategy] = {"exactly-once": "sticky", "exactly-once-cooperative": "cooperative-sticky"}
# How often the broker aborts the transactions whose timeout is over: those of killed members.
ABORTING_MS = 1000


def committed(kafka: Kafka, group: str, topic: str) -> dict[int, int]:
    """The group's committed offsets, by partition."""
    asked = [confluent_kafka.ConsumerGroupTopicPartitions(group)]
    answers = kafka.admin.list_consumer_group_offsets(asked, require_stable=True)
    partitions = answers[group].result(timeout=30).topic_partitions
    return {each.partition: each.offset for each in partitions if each.topic == topic}


def _is_committed(storm: Storm, feed: Feed) -> bool:
    return committed(storm.kafka, storm.group, feed.topic) == feed.written


def _uncommitted(storm: Storm, feed: Feed, trace: Trace) -> str:
    done = committed(storm.kafka, storm.group, feed.topic)
    lacking = {number: (done.get(number), count) for number, count in feed.written.items() if done.get(number) != count}
    latest = chaos.latest(chaos.events_of(trace, storm.name))
    return f"seed {SEED}: {storm.name}: committed and written are {lacking}\n{latest}\n{trace.tail()}"


@pytest.mark.parametrize("version", versions())
@pytest.mark.needs("chaos")
@pytest.mark.timeout(SECONDS + 500)
@pytest.mark.xdist_group("chaos")
def test_nothing_is_lost_read_twice_in_a_generation_or_taken_back(
    version: str,
    start_kafka: Callable[..., ApacheKafka],
    start_member: StartMember,
    trace: Trace,
    record_property: Callable[[str, object], None],
    pytestconfig: pytest.Config,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    request.addfinalizer(partial(chaos.keep, trace, tmp_path / "lines.jsonl"))
    # The broker sets the session timeout of the consumer protocol: here that of the other groups.
    sessions = {
        "group_consumer_min_session_timeout_ms": chaos.SESSION_MS,
        "group_consumer_session_timeout_ms": chaos.SESSION_MS,
    }
    has_it = int(version.partition(".")[0]) >= 4
    kafka = start_kafka(version, **(sessions if has_it else {}))
    topic = kafka.create_topic(unique("chaos"), PARTITIONS)
    chance = random.Random(SEED)
    storms = [
        Storm(kafka, strategy, strategy, kinds, start_member, chance.randrange(2**31))
        for strategy, kinds in (GROUPS | (CONSUMER_PROTOCOL if has_it else {})).items()
    ]
    broker_ends: list[str] = []

    def end_the_broker(elapsed: float) -> None:
        if elapsed > BROKER_ENDS * (len(broker_ends) + 0.7):
            broker_ends.append(chaos.blow_at(kafka, chance))

    feed = _weather(storms, topic, SECONDS, trace, end_the_broker)
    summary = _summary(kafka, SECONDS, feed)
    summary["broker"] = {kind: broker_ends.count(kind) for kind in sorted(set(broker_ends))}
    for storm in storms:
        summary[storm.name] = _judge(storm, feed, trace)
    _tell(summary, record_property, pytestconfig)


@pytest.mark.parametrize("version", versions())
@pytest.mark.needs("chaos")
@pytest.mark.timeout(SECONDS + 500)
@pytest.mark.xdist_group("transactions")
def test_every_record_is_written_exactly_once(
    version: str,
    start_kafka: Callable[..., ApacheKafka],
    start_member: StartMember,
    trace: Trace,
    record_property: Callable[[str, object], None],
    pytestconfig: pytest.Config,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    """Members are killed, frozen past their sessions and closed. The broker stays up.

    After its end, a single-node broker may never complete a transaction, with any consumer:

    - After a kill, the broker starts with metadata in which it leads all partitions, and is fenced. The broker then
      regards the partitions of its ending transactions as deleted, and drops their markers (4.3.1: "Couldn't find
      leader endpoint"). The records are committed with the producer's next transaction; the offsets stay pending.
    - In a clean shutdown, the broker accepts offsets of a transaction and can no longer write them. They stay pending.
    """
    request.addfinalizer(partial(chaos.keep, trace, tmp_path / "lines.jsonl"))
    kafka = start_kafka(version, transaction_abort_timed_out_transaction_cleanup_interval_ms=ABORTING_MS)
    topic = kafka.create_topic(unique("chaos"), PARTITIONS)
    chance = random.Random(SEED)
    outputs = {name: kafka.create_topic(unique(name), PARTITIONS) for name in TRANSACTIONS}
    storms = [
        Storm(kafka, name, strategy, ("confluent",) * 3, start_member, chance.randrange(2**31), into=outputs[name])
        for name, strategy in TRANSACTIONS.items()
    ]
    feed = _weather(storms, topic, SECONDS / 2, trace)
    summary = _summary(kafka, SECONDS / 2, feed)
    for storm in storms:
        summary[storm.name] = _judge(storm, feed, trace)
        chaos.judge_transactions(chaos.written_to(kafka, outputs[storm.name]), feed.written)
        aborted = sum(event.kind == "aborted" for event in chaos.events_of(trace, storm.name))
        summary[storm.name]["aborted"] = aborted
    _tell(summary, record_property, pytestconfig)


def _weather(
    storms: list[Storm],
    topic: str,
    seconds: float,
    trace: Trace,
    besides: Callable[[float], None] = lambda elapsed: None,
) -> Feed:
    """Runs the storms while records flow. Waits until all records are read and committed; closes the members."""
    for storm in storms:
        storm.begin(topic)
    feed = Feed(storms[0].kafka, topic, PARTITIONS, RATE)
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        feed.go_on()
        for storm in storms:
            storm.go_on()
        besides(elapsed)
        time.sleep(0.02)
    for storm in storms:
        storm.calm()
    feed.end()
    for storm in storms:
        chaos.wait_for(partial(_is_committed, storm, feed), partial(_uncommitted, storm, feed, trace), storms)
    for storm in storms:
        storm.close()
    return feed


def _judge(storm: Storm, feed: Feed, trace: Trace) -> dict[str, Any]:
    """Checks the lines of a group's members; returns the group's figures."""
    findings = chaos.consumed(chaos.events_of(trace, storm.name), feed.topic)
    assert not findings.missing(feed.written), f"seed {SEED}: lost {findings.missing(feed.written)}"
    findings.judge_commits(chaos.commits_of(storm.kafka, storm.group, feed.topic), feed.written)
    return {
        **dict(sorted(storm.blows.items())),
        "generations": findings.generations,
        "read": findings.read,
        "again": findings.again,
        "commits": findings.commits,
        "ended by themselves": storm.ended,
    }


def _summary(kafka: Kafka, seconds: float, feed: Feed) -> dict[str, Any]:
    return {"seed": SEED, "kafka": kafka.version, "seconds": seconds, "records": feed.records}


def _tell(summary: dict[str, Any], record_property: Callable[[str, object], None], pytestconfig: pytest.Config) -> None:
    record_property("figures", json.dumps(summary))
    kept = pytestconfig.rootpath / "target" / "chaos.jsonl"
    kept.parent.mkdir(exist_ok=True)
    with kept.open("a") as lines:
        lines.write(json.dumps(summary) + "\n")
