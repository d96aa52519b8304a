"""The coordinator of a group dies. Another one of three brokers takes over the group, with all its commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.broker import unique
from support.cluster import SIZE, Cluster
from support.confluent_group import Crowd, fill, offsets
from support.jars import versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITIONS = 6
EACH = 20
# On a busy machine a cluster needs up to so many seconds after the death of a broker.
WITHIN = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster", versions()[0]) as cluster:
        yield cluster


@pytest.mark.needs("broker")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_a_group_outlives_its_coordinators(cluster: Cluster, strategy: str) -> None:
    """Each broker that becomes the coordinator is killed and restarted, one after the other."""
    topic = cluster.create_topic(unique("topic"), PARTITIONS)
    partitions = {(topic, number) for number in range(PARTITIONS)}
    written = 0
    with Crowd(cluster, unique("confluent")) as crowd:
        for _ in range(3):
            crowd.add(strategy, auto_commit_interval_ms=200, session_timeout_ms=15_000).follow(topic)
        crowd.settle(partitions)

        def feed() -> None:
            nonlocal written
            # After the death of a broker it takes 6 to 12 s until its partitions have new leaders.
            fill(cluster, topic, PARTITIONS, EACH, start=written, within=WITHIN)
            written += EACH

        def read() -> set[tuple[object, object, object]]:
            return {each for consumer in crowd.consumers for each in consumer.read}

        def all_is_read_and_committed() -> bool:
            if len(read()) < PARTITIONS * written:
                return False
            now = offsets(crowd.consumers[0], topic, PARTITIONS)
            assert all(new >= old for old, new in zip(last, now, strict=True)), f"commits went from {last} to {now}"
            last[:] = now
            return now == [written] * PARTITIONS

        last = [-1001] * PARTITIONS
        coordinators = []
        for _ in range(2):
            feed()
            crowd.until(all_is_read_and_committed, "everything is read and committed", within=WITHIN)
            dying = cluster.coordinator(crowd.group)
            coordinators.append(dying)
            dying.kill()
            feed()
            crowd.until(all_is_read_and_committed, "another coordinator has the rest", within=WITHIN)
            assert cluster.coordinator(crowd.group) is not dying
            dying.start()
            cluster.wait_for(SIZE)
        crowd.settle(partitions)
        assert read() == {(topic, number, offset) for number in range(PARTITIONS) for offset in range(written)}
        # The new member starts at the group's commits, so that no record is read twice.
        newcomer = crowd.add(strategy, session_timeout_ms=15_000).follow(topic)
        crowd.settle(partitions)
        assert newcomer.read == []
