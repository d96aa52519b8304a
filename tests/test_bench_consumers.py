"""The benchmark of our Consumer: a leader's planning times, which each client reports in another form."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from consumers.group import spread
from consumers.wire import planning_times

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
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..", "benches")},
    )
    assert done.returncode == 0, done.stderr
