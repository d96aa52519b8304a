"""The weighted strategy in a group of each client's consumers: weights of the leader, capacities of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_assignors import RateSource, WeightedAssignor
from support.data_paths import DATA_PATHS, Readers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from support.broker import Kafka

WEIGHTS = [90.0, 40.0, 30.0, 20.0, 10.0, 10.0]


def weigh(topics: Iterable[str]) -> dict[str, list[float]]:
    return dict.fromkeys(topics, WEIGHTS)


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_members_carry_by_weight_and_capacity(
    embedded: Kafka, data_path: str, protocol: Literal["eager", "cooperative"]
) -> None:
    def carried() -> list[float]:
        return [sum(WEIGHTS[number] for _, number in each.held) for each in readers.all]

    with Readers(embedded, DATA_PATHS[data_path], WeightedAssignor(weigh, protocol=protocol)) as readers:
        topic, _ = readers.topic(len(WEIGHTS))
        for _ in range(2):
            readers.add().follow(topic)
        readers.until(lambda: sum(carried()) == 200 and max(carried()) <= 110, "each carries half, or nearly")
        # The capacity of the third member is twice that of the others: it gets half of the weight.
        readers.strategy = WeightedAssignor(weigh, capacity=2, protocol=protocol)
        readers.add().follow(topic)
        readers.until(
            lambda: sum(carried()) == 200 and max(carried()[:2]) <= 55 and carried()[2] <= 110, "half is with the third"
        )


@pytest.mark.parametrize("data_path", [each for each in DATA_PATHS if not each.startswith("in memory")])
def test_a_source_without_a_cluster_reads_that_of_the_consumer(embedded: Kafka, data_path: str) -> None:
    """No records are written: all rates are 0, so each partition weighs 1. Without a cluster the plan would warn."""
    with Readers(embedded, DATA_PATHS[data_path], WeightedAssignor(RateSource(interval=0.01))) as readers:
        topic, _ = readers.topic(4)
        for _ in range(2):
            readers.add().follow(topic)
        readers.until(lambda: [len(each.held) for each in readers.all] == [2, 2], "both have two")
        plans = [each.side.strategies.last_plan for each in readers.all]
        assert [plan.warnings for plan in plans if plan is not None and len(plan) == 2] == [()]
