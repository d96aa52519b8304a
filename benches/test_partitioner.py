"""partition() against a call that does nothing, against hashing in Python, and against kafka-python itself."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import kafka.partitioner
import pytest
from floors import partition_floor
from kafka.cluster import ClusterMetadata
from kafka.partitioner.default import murmur2 as python_murmur2
from ratios import Interleaved, Ratio, check_bounds

# Registers kafka-python's metadata, as for a program that uses this client: its methods are not called for each record.
import kafka_assignors.clients.kafka_python  # noqa: F401
from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    murmur2,
)
from kafka_assignors.partitioners import murmur2_column

CALLS = 2_000
ROUNDS = 100
# Hashing in Python takes up to 20 µs per key.
PYTHON_ROUNDS = 40
KINDS: dict[str, Callable[[], Partitioner]] = {
    "DefaultPartitioner": partial(DefaultPartitioner, seed=1),
    "UniformStickyPartitioner": partial(UniformStickyPartitioner, seed=1),
    "AdaptivePartitioner": partial(AdaptivePartitioner, seed=1),
    "RoundRobinPartitioner": RoundRobinPartitioner,
}
COUNTS = {"16": 16, "1,000": 1_000, "10,000": 10_000}
SIZES = (16, 36, 128)
VALUE = b"v" * 80

NO_OP = {f"{kind}, {count} partitions": (kind, number) for kind in KINDS for count, number in COUNTS.items()}
PYTHON = {f"{what}, {size} bytes": (what, size) for what in ("murmur2()", "partition()", "a column") for size in SIZES}

check_bounds("no-op", NO_OP)
check_bounds("python-murmur2", PYTHON)
check_bounds("kafka-python-partitioner", COUNTS)


def cluster(partitions: int) -> ClusterMetadata:
    """kafka-python's own metadata, as after an update."""
    metadata = ClusterMetadata()
    metadata._partitions = {"t": {number: SimpleNamespace(leader_id=1) for number in range(partitions)}}
    return metadata


def repeated(call: Callable[..., object], key: bytes | None, metadata: ClusterMetadata, calls: int = CALLS) -> object:
    """This number of calls, as a client makes them. The loop takes the same time for both sides."""
    value = VALUE
    for _ in range(calls):
        call("t", key, key, value, value, metadata)
    return None


@pytest.mark.quick
@pytest.mark.parametrize("name", NO_OP)
def test_a_record_without_key_costs_little_more_than_a_call(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    kind, partitions = NO_OP[name]
    partitioner, metadata = KINDS[kind](), cluster(partitions)
    ours, floor = interleaved(
        lambda: repeated(partitioner.partition, None, metadata),
        lambda: repeated(partition_floor, None, metadata),
        ROUNDS,
    )
    ratio.at_most("no-op", name, ours / CALLS, floor / CALLS, f"{ours / CALLS * 1e9:.0f} ns")


@pytest.mark.quick
@pytest.mark.parametrize("name", PYTHON)
def test_a_key_is_hashed_faster_than_in_python(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    what, size = PYTHON[name]
    key, partitioner, metadata = b"0123456789abcdef" * 8, DefaultPartitioner(), cluster(16)
    key = key[:size]
    keys = [key] * CALLS

    def each(function: Callable[[bytes], int]) -> None:
        for _ in keys:
            function(key)

    calls: dict[str, Callable[[], object]] = {
        "murmur2()": lambda: each(murmur2),
        "partition()": lambda: repeated(partitioner.partition, key, metadata),
        "a column": lambda: murmur2_column(keys),
    }
    ours, python = interleaved(calls[what], lambda: each(python_murmur2), PYTHON_ROUNDS)
    ratio.at_least("python-murmur2", name, ours / CALLS, python / CALLS, f"{ours / CALLS * 1e9:.0f} ns")


@pytest.mark.quick
@pytest.mark.parametrize("name", COUNTS)
def test_kafka_pythons_own_sticky_partitioner(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    metadata, theirs, ours = cluster(COUNTS[name]), kafka.partitioner.StickyPartitioner(), DefaultPartitioner()
    calls = max(10, CALLS * 16 // COUNTS[name] // 10)
    seconds, other = interleaved(
        lambda: repeated(ours.partition, None, metadata),
        lambda: repeated(theirs.partition, None, metadata, calls),
        20,
    )
    ratio.at_least("kafka-python-partitioner", name, seconds / CALLS, other / calls, f"{other / calls * 1e6:.1f} µs")
