"""Our consumer for confluent-kafka under fire on a real broker: one minute in `make test`, ten and a million records in
`make test-long`, which sets ``CHAOS_SECONDS``. ``CHAOS_SEED`` repeats the order of the blows.
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
# A second; in ten minutes more than a million.
RATE = 1_800
PARTITIONS = 12
# Seconds between two ends of the broker.
BROKER_ENDS = 25.0

GROUPS: dict[Strategy, tuple[str, ...]] = {
    "sticky": ("confluent", "confluent", "confluent", "kafka", "aio"),
    "cooperative-sticky": ("confluent", "confluent", "confluent", "java"),
}
# Groups that write what they read to a topic of their own, in transactions.
TRANSACTIONS: dict[str, Strategy] = {"exactly-once": "sticky", "exactly-once-cooperative": "cooperative-sticky"}
# Open transactions of members that were killed are aborted this soon after their time is over.
ABORTING_MS = 1000


def committed(kafka: Kafka, group: str, topic: str) -> dict[int, int]:
    """The group's commits, by partition."""
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
    kafka = start_kafka(version, transaction_abort_timed_out_transaction_cleanup_interval_ms=ABORTING_MS)
    topic = kafka.create_topic(unique("chaos"), PARTITIONS)
    outputs = {name: kafka.create_topic(unique(name), PARTITIONS) for name in TRANSACTIONS}
    chance = random.Random(SEED)
    storms = [
        Storm(kafka, strategy, strategy, kinds, start_member, chance.randrange(2**31))
        for strategy, kinds in GROUPS.items()
    ]
    for name, output in outputs.items():
        ours = ("confluent",) * 3
        seed = chance.randrange(2**31)
        storms.append(Storm(kafka, name, TRANSACTIONS[name], ours, start_member, seed, into=output))
    for storm in storms:
        storm.begin(topic)
    feed = Feed(kafka, topic, PARTITIONS, RATE)
    started = time.monotonic()
    broker_ends: list[str] = []
    while (elapsed := time.monotonic() - started) < SECONDS:
        feed.go_on()
        for storm in storms:
            storm.go_on()
        if elapsed > BROKER_ENDS * (len(broker_ends) + 0.7):
            broker_ends.append(chaos.blow_at(kafka, chance))
        time.sleep(0.02)
    for storm in storms:
        storm.calm()
    feed.end()
    summary: dict[str, Any] = {
        "seed": SEED,
        "kafka": kafka.version,
        "seconds": SECONDS,
        "records": feed.records,
        "broker": {kind: broker_ends.count(kind) for kind in sorted(set(broker_ends))},
    }
    for storm in storms:
        chaos.wait_for(
            partial(_is_committed, storm, feed),
            partial(_uncommitted, storm, feed, trace),
            storms,
        )
    for storm in storms:
        storm.close()
    for storm in storms:
        events = chaos.events_of(trace, storm.name)
        findings = chaos.consumed(events, topic)
        assert not findings.missing(feed.written), f"seed {SEED}: lost {findings.missing(feed.written)}"
        findings.judge_commits(chaos.commits_of(kafka, storm.group, topic), feed.written)
        if storm.name in outputs:
            chaos.judge_transactions(chaos.written_to(kafka, outputs[storm.name]), feed.written)
        summary[storm.name] = {
            **dict(sorted(storm.blows.items())),
            "generations": findings.generations,
            "read": findings.read,
            "again": findings.again,
            "commits": findings.commits,
            "ended by themselves": storm.ended,
            "aborted": sum(event.kind == "aborted" for event in events),
        }
    record_property("figures", json.dumps(summary))
    kept = pytestconfig.rootpath / "target" / "chaos.jsonl"
    kept.parent.mkdir(exist_ok=True)
    with kept.open("a") as lines:
        lines.write(json.dumps(summary) + "\n")
