"""Two things that can happen to a consumer's process: it forks, and for a while none of its Python threads runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.broker import Kafka, unique
from support.members import HEARTBEAT_MS, SESSION_MS, ConfluentMember

if TYPE_CHECKING:
    from support.fixtures import StartMember
    from support.trace import Trace

FORKING = Path(__file__).parents[1] / "support" / "forking.py"


def test_a_process_forks_after_its_consumer_has_joined(any_kafka: Kafka) -> None:
    """The child uses and closes its copy, without effect on the group. The child can make a consumer of its own."""
    topic = any_kafka.create_topic(unique("topic"), 4)
    command = [sys.executable, "-P", str(FORKING), any_kafka.bootstrap_servers, unique("forks"), topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    said = {line["who"]: line for line in map(json.loads, done.stdout.splitlines())}
    child, parent = said["child"], said["parent"]
    assert len(child["refused"]) == 8
    assert all("a fork does not copy it; make one in the child" in reason for reason in child["refused"].values())
    assert child["with"] == "Consumer closed"
    assert child["share of its own"] == 4
    assert parent["status"] == 7
    assert parent["same"]
    assert parent["events"] == ["on_assign"]
    assert parent["after"] == ["on_assign", "on_revoke"]


def test_a_native_call_keeps_the_interpreter(any_kafka: Kafka, start_member: StartMember, trace: Trace) -> None:
    """For a few heartbeats: no effect. For more than a session: the member is expelled, `on_lost` is called once, and
    the consumer becomes a member again.
    """
    group, topic = unique("holds"), any_kafka.create_topic(unique("topic"), 6)
    partitions = {(topic, number) for number in range(6)}
    stays = start_member(ConfluentMember, "stays", any_kafka, group)
    holds = start_member(ConfluentMember, "holds", any_kafka, group)
    stays.subscribe(topic)
    trace.settle({"stays"}, partitions)
    holds.subscribe(topic)
    before = trace.settle({"stays", "holds"}, partitions)
    holds.hold(5 * HEARTBEAT_MS)
    assert trace.settle({"stays", "holds"}, partitions).generation == before.generation

    since = len(trace.events)
    holds.hold(2 * SESSION_MS)
    after = trace.settle({"stays", "holds"}, partitions)
    assert after.generation > before.generation
    of_it = [event for event in trace.events[since:] if event.member == "holds"]
    assert [event.kind for event in of_it if event.kind in ("revoked", "lost")] == ["lost"]
    alone = [event for event in trace.events[since:] if event.kind == "synced" and event.partitions == partitions]
    assert {event.member for event in alone} == {"stays"}
    after.check_uniform()
