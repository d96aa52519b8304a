"""Keys: their hashes, columns of keys, and the partitions of keys."""

import sys
from typing import Any

import confluent_kafka
import kafka.partitioner.default
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    MissingDependencyError,
    PartitionerError,
    PartitionerTypeError,
    murmur2,
)
from kafka_assignors.partitioners import murmur2_column
from support.partitioning import Asked, Ours, ask, every, refuses

# In one process, since the first table in a process makes pyarrow load pandas.
pytestmark = pytest.mark.xdist_group("tables")

VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
    b"": 275646681,
}


@pytest.mark.parametrize(("key", "expected"), VECTORS.items())
def test_murmur2_is_javas(key: bytes, expected: int) -> None:
    for buffer in (key, bytearray(key), memoryview(key)):
        assert murmur2(buffer) == expected


@given(st.binary(max_size=60))
def test_murmur2_is_what_the_clients_compute(key: bytes) -> None:
    ours = murmur2(key)
    assert ours & 0xFFFFFFFF == kafka.partitioner.default.murmur2(key)
    assert (ours & 0x7FFFFFFF) % 1000 == confluent_kafka.murmur2(key, 1000)


@given(st.binary(max_size=60), st.integers(1, 40), st.sets(st.integers(0, 39)))
def test_keys_go_where_kafka_python_puts_them(key: bytes, count: int, available: set[int]) -> None:
    cluster: Any = Asked(count, available & set(range(count)))
    cluster.topics = lambda: {"t"}
    theirs = kafka.partitioner.default.DefaultPartitioner()
    expected = theirs.partition("t", key, key, None, None, cluster)
    assert ask(DefaultPartitioner(), cluster, key) == ask(AdaptivePartitioner(), cluster, key) == expected


def test_an_empty_key_is_a_key() -> None:
    partitioner, cluster = DefaultPartitioner(), Asked(10, {4})
    assert [ask(partitioner, cluster, key) for key in (b"", None)] == [1, 4]


def test_what_counts_is_the_serialized_key() -> None:
    partitioner, cluster = DefaultPartitioner(), Asked(10, {4})
    assert partitioner.partition("t", "foobar", None, None, None, cluster) == 4
    assert partitioner.partition("t", None, b"foobar", None, None, cluster) == 6


@every
def test_a_partition_that_the_record_names_wins(kind: type[Ours]) -> None:
    partitioner, cluster = kind(), Asked(3, {0})
    assert partitioner.partition("t", b"k", b"k", None, None, cluster, partition=2) == 2
    assert partitioner.partition("t", None, None, None, None, cluster, partition=1) == 1
    for outside in (-1, 3, 2**40):
        with pytest.raises(PartitionerError, match=f'partition {outside} of topic "t" does not exist; .*: give 0 to 2'):
            partitioner.partition("t", None, None, None, None, cluster, partition=outside)


KEYS = [*VECTORS, None, b"\xff" * 70]
HASHES = [key if key is None else murmur2(key) for key in KEYS]
SLICED = slice(1, -1)

BINARY = [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()]
STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]


@pytest.mark.parametrize("kind", BINARY, ids=str)
def test_a_column_of_any_binary_type(kind: Any) -> None:
    array = pyarrow.array(KEYS, kind)
    for column, hashes in (
        (array, HASHES),
        (array[SLICED], HASHES[SLICED]),
        (pyarrow.chunked_array([array, array[:0], array[SLICED]]), HASHES + HASHES[SLICED]),
        (pyarrow.chunked_array([], kind), []),
        (array[:0], []),
    ):
        hashed = murmur2_column(column)
        assert (hashed.type, hashed.to_pylist()) == (pyarrow.int32(), hashes)


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_a_column_of_strings_is_hashed_as_utf8(kind: Any) -> None:
    texts = ["foobar", None, "", "żółć", "€" * 20]
    hashes = [text if text is None else murmur2(text.encode()) for text in texts]
    assert murmur2_column(pyarrow.array(texts, kind)).to_pylist() == hashes


def test_columns_of_other_kinds() -> None:
    sequences: list[Any] = [KEYS, tuple(KEYS), iter(KEYS)]
    for keys in sequences:
        assert murmur2_column(keys).to_pylist() == HASHES
    assert murmur2_column([bytearray(b"abc"), memoryview(b"21")]).to_pylist() == [VECTORS[b"abc"], VECTORS[b"21"]]
    fixed = pyarrow.array([b"abc", None], pyarrow.binary(3))
    assert murmur2_column(fixed).to_pylist() == [VECTORS[b"abc"], None]
    assert murmur2_column(pyarrow.nulls(2)).to_pylist() == [None, None]


@given(st.lists(st.none() | st.binary(max_size=12)))
def test_a_column_is_its_keys(keys: list[bytes | None]) -> None:
    expected = [key if key is None else murmur2(key) for key in keys]
    assert murmur2_column(keys).to_pylist() == expected
    assert murmur2_column(pyarrow.array(keys, pyarrow.binary())).to_pylist() == expected


def test_columns_that_are_none() -> None:
    with refuses(PartitionerTypeError, "keys has type Int64; give the serialized keys, an Arrow array of binary"):
        murmur2_column(pyarrow.array([1, 2]))
    with refuses(PartitionerTypeError, "keys[1] is of type str; give bytes or None"):
        murmur2_column([b"a", "b"])
    for keys in (b"abc", "abc", 7, None):
        with refuses(PartitionerTypeError, f"keys is of type {type(keys).__name__}; give an Arrow array of binary"):
            murmur2_column(keys)


def test_a_column_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refuses(MissingDependencyError, "columns of keys need pyarrow: pip install kafka-assignors[arrow]"):
        murmur2_column([b"a"])
