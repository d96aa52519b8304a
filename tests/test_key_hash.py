"""Columns of keys and their partitions, compared with confluent-kafka's own functions and with published values."""

import random
import sys
from typing import Any

import confluent_kafka
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assignors import MissingDependencyError, OptionError, PartitionerTypeError
from kafka_assignors.key_hash import HASHES, partitions_of, partitions_of_column

# In one process, since the first table in a process makes pyarrow load pandas.
pytestmark = pytest.mark.xdist_group("tables")

THEIRS = {"murmur2": confluent_kafka.murmur2, "crc32": confluent_kafka.consistent, "fnv1a": confluent_kafka.fnv1a}


def random_keys(count: int) -> list[bytes]:
    chance = random.Random(2)
    return [chance.randbytes(chance.randrange(41)) for _ in range(count)]


@pytest.mark.parametrize("partitions", [1, 7, 12, 1000, 2**31 - 1])
@pytest.mark.parametrize("name", HASHES)
def test_equal_to_confluent_kafka(name: str, partitions: int) -> None:
    keys = random_keys(20_000)
    expected = [THEIRS[name](key, partitions) for key in keys]
    assert partitions_of(keys, partitions, hash=name).tolist() == expected
    assert partitions_of_column(pyarrow.array(keys), partitions, hash=name).to_pylist() == expected


@pytest.mark.parametrize(
    ("name", "key", "hash"),
    [
        ("murmur2", b"21", -973932308 & 0x7FFFFFFF),
        ("murmur2", b"", 275646681),
        ("crc32", b"123456789", 0xCBF43926),
        ("crc32", b"", 0),
        ("fnv1a", b"", 2**32 - 0x811C9DC5),
        ("fnv1a", b"a", 2**32 - 0xE40C292C),
    ],
)
def test_published_values(name: str, key: bytes, hash: int) -> None:
    for partitions in (10, 2**31 - 1):
        assert partitions_of([key], partitions, hash=name).tolist() == [hash % partitions]


KINDS: dict[str, Any] = {
    "binary": pyarrow.binary(),
    "large_binary": pyarrow.large_binary(),
    "binary_view": pyarrow.binary_view(),
    "dictionary": pyarrow.dictionary(pyarrow.int32(), pyarrow.binary()),
}


@pytest.mark.parametrize("kind", KINDS)
@given(
    keys=st.lists(st.none() | st.binary(max_size=12)),
    start=st.integers(0, 12),
    stop=st.integers(0, 12),
    name=st.sampled_from(HASHES),
)
def test_any_part_of_any_column(kind: str, keys: list[bytes | None], start: int, stop: int, name: str) -> None:
    """A slice shares the buffers of its parent. Its values and its validity bits may begin at any bit of a byte."""
    column = pyarrow.array(keys, pyarrow.binary()).cast(KINDS[kind])[start:stop]
    expected = [None if key is None else THEIRS[name](key, 12) for key in keys[start:stop]]
    found = partitions_of_column(column, 12, hash=name)
    assert (found.type, found.to_pylist()) == (pyarrow.int32(), expected)
    plain = partitions_of(keys[start:stop], 12, hash=name).tolist()
    assert plain == [-1 if partition is None else partition for partition in expected]


def test_text_counts_as_utf_8() -> None:
    words = ["abc", "", "größe", None]
    expected = [None if word is None else confluent_kafka.murmur2(word.encode(), 12) for word in words]
    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
        assert partitions_of_column(pyarrow.array(words, kind), 12).to_pylist() == expected
    chunked = pyarrow.chunked_array([words[:1], [], words[1:]], pyarrow.string())
    found = partitions_of_column(chunked, 12)
    assert found.to_pylist() == expected
    fixed = pyarrow.array([b"abc", None], pyarrow.binary(3))
    assert partitions_of_column(fixed, 12).to_pylist() == [expected[0], None]


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        (0, "partitions is 0; give 1 to 2147483647"),
        (-1, "partitions is -1; give 1"),
        (2**31, "partitions is 2147483648; give"),
        (True, "partitions is of type bool; give an integer"),
        (1.5, "partitions is of type float; give an integer"),
    ],
)
def test_partition_counts_that_there_are_not(partitions: Any, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        partitions_of([b"abc"], partitions)
    with pytest.raises(OptionError, match=text):
        partitions_of_column(pyarrow.array([b"abc"]), partitions)


def test_other_bad_input() -> None:
    with pytest.raises(OptionError, match="hash is 'md5'; give one of murmur2, crc32, fnv1a"):
        partitions_of([b"abc"], 12, hash="md5")
    with pytest.raises(PartitionerTypeError, match=r"keys\[1\] is of type str; give bytes or None"):
        partitions_of([b"abc", "abc"], 12)  # type: ignore[list-item]
    with pytest.raises(PartitionerTypeError, match="keys has type Int64; give the serialized keys"):
        partitions_of_column(pyarrow.array([1, 2]), 12)
    with pytest.raises(PartitionerTypeError, match="keys is of type bytes; give an Arrow array"):
        partitions_of_column(b"abc", 12)
    with pytest.raises(PartitionerTypeError, match="keys is of type int; give an Arrow array"):
        partitions_of(3, 12)  # type: ignore[arg-type]


def test_columns_need_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[arrow\]"):
        partitions_of_column([b"abc"], 12)
