"""Our consumers for kafka-python and aiokafka beside the clients' own: a million messages in each call style."""

from collections.abc import Iterator
from functools import cache

import pytest
from consumers import python_reading, reading
from pytest_benchmark.fixture import BenchmarkFixture
from ratios import Ratio, check_bounds, rounds_of

from support.broker import ApacheKafka, Kafka

MESSAGES, ROUNDS = 1_000_000, 7

check_bounds("bare-python-consumer", python_reading.WAYS)

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = ApacheKafka(tmp_path_factory.mktemp("python-consumers") / "kafka")
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.kill()


@pytest.fixture(scope="module")
def filled(kafka: Kafka) -> str:
    return reading.fill(kafka, MESSAGES)


@cache
def costs(kafka: Kafka, topic: str, way: str) -> tuple[python_reading.Cost, python_reading.Cost]:
    return python_reading.compare(kafka, topic, MESSAGES, way, ROUNDS)


@pytest.mark.parametrize("way", python_reading.WAYS)
def test_reading(kafka: Kafka, filled: str, benchmark: BenchmarkFixture, ratio: Ratio, way: str) -> None:
    ours, bare = rounds_of(benchmark, lambda: costs(kafka, filled, way))
    ratio.at_most("bare-python-consumer", way, ours.cpu, bare.cpu, f"{MESSAGES:,} messages; medians of {ROUNDS}")
