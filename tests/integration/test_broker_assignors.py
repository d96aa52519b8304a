"""The broker's assignors against the classes of Kafka's jars, history by history."""

import pytest

from support import jars
from support.server_side import history, planned, planned_by_kafka

pytestmark = pytest.mark.needs("java")

VERSIONS = [version for version in jars.versions() if not version.startswith("3.")] or [
    jars.consumer_protocol_version()
]
# The seeds of the sample in tests/data are smaller. A test of 1,250 histories took two minutes beside other work.
FIRST, HISTORIES, CHUNK = 1_000, 5_000, 625
# `make check` takes the first 1,250 histories, and `make test-long` all of them: each chunk takes 24 s of a core.
STARTS = [
    pytest.param(first, marks=[pytest.mark.long] if first >= FIRST + 2 * CHUNK else [])
    for first in range(FIRST, FIRST + HISTORIES, CHUNK)
]


@pytest.mark.parametrize("first", STARTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_plan_is_the_brokers(version: str, first: int) -> None:
    """Members, topics and partitions, in the orders of the coordinator's maps. 5,000 histories of 20 events in all."""
    seeds = range(first, first + CHUNK)
    histories = [history(seed) for seed in seeds]
    wanted = planned_by_kafka(histories, version)
    ours = [planned(each, version) for each in histories]
    different = [seed for seed, one, other in zip(seeds, ours, wanted, strict=True) if one != other]
    assert different == [], "planned(history(seed), version, whole=True) has the plans of a seed, planned_by_kafka too"
    assert sum(plan is not None for plans in wanted for plan in plans) > 20 * CHUNK
