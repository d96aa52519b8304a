"""Where producers put keys, for whole columns of them.

Three hashes are in use: Java's murmur2, and librdkafka's CRC-32 (its default) and FNV-1a.

>>> partitions_of([b"abc", b"", None], 10).tolist()
[7, 1, -1]
>>> partitions_of([b"abc", b""], 10, hash="crc32").tolist()
[8, 0]
"""

from __future__ import annotations

import operator
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core
from kafka_assignors.errors import MissingDependencyError, OptionError, PartitionerTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HASHES", "check_hash", "checked_count", "partitions_of", "partitions_of_column"]

HASHES = ("murmur2", "crc32", "fnv1a")
"""The hashes by name, for n partitions:

- `murmur2`: `(murmur2 & 0x7fffffff) % n`, as Java, and as librdkafka with `murmur2_random`;
- `crc32`: zlib's CRC-32 `% n`, as librdkafka with `consistent_random`, its default, except that this puts an empty key
  anywhere;
- `fnv1a`: `|FNV-1a| % n` of the hash as a signed 32-bit number, as librdkafka with `fnv1a_random`, and Sarama.
"""


def partitions_of(keys: Iterable[bytes | None], partitions: int, *, hash: str = "murmur2") -> array[int]:
    """The partition of each key. O(bytes), without the interpreter's lock.

    Args:
        keys: serialized keys, bytes or None.
        partitions: how many the topic has, 1 to 2**31 - 1; all, with and without a leader.
        hash: one of `HASHES`.

    Returns:
        32-bit integers, -1 for a null key.

    Raises:
        OptionError: `partitions` or `hash` is not what it should be.
        PartitionerTypeError: a key that is not bytes.
    """
    count = checked_count(partitions)
    check_hash(hash)
    listed = list(keys)
    for row, key in enumerate(listed):
        if key is not None and not isinstance(key, bytes):
            raise PartitionerTypeError(
                f"key {row} is of type {type(key).__name__}; give bytes, as the serializer returns them, or None"
            )
    offsets = array("q", accumulate((len(key or b"") for key in listed), initial=0))
    placed = array("i")
    placed.frombytes(
        _core.partitions_of_column(
            hash, count, b"".join(filter(None, listed)), memoryview(offsets).cast("B"), None, 0, len(listed), True
        )
    )
    for row, key in enumerate(listed):
        if key is None:
            placed[row] = -1
    return placed


def partitions_of_column(keys: Any, partitions: int, *, hash: str = "murmur2") -> Any:
    """The partition of each key of an Arrow column. O(bytes), without the interpreter's lock.

    Args:
        keys: a `pyarrow.Array` or `ChunkedArray` of binary or text, which is taken as UTF-8; null is no key.
        partitions: as for `partitions_of`.
        hash: as for `partitions_of`.

    Returns:
        An `Int32Array`, or a `ChunkedArray` of such, null for a null key.

    Raises:
        OptionError: `partitions` or `hash` is not what it should be.
        PartitionerTypeError: `keys` is neither binary nor text, or no Arrow array.
        MissingDependencyError: pyarrow is not installed.
    """
    count = checked_count(partitions)
    check_hash(hash)
    try:
        import pyarrow.compute
    except ImportError as error:
        raise MissingDependencyError("columns of keys need pyarrow: pip install kafka-assignors[arrow]") from error
    if isinstance(keys, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([_of_array(pyarrow, each, count, hash) for each in keys.chunks], pyarrow.int32())
    if not isinstance(keys, pyarrow.Array):
        raise PartitionerTypeError(f"keys is of type {type(keys).__name__}; give a pyarrow array of binary or text")
    return _of_array(pyarrow, keys, count, hash)


def checked_count(partitions: object) -> int:
    """A number of partitions, as an int.

    Raises:
        OptionError: it is no integer, or not 1 to 2**31 - 1.
    """
    if isinstance(partitions, bool) or not hasattr(partitions, "__index__"):
        raise OptionError(f"partitions is of type {type(partitions).__name__}; give an integer")
    count = operator.index(partitions)
    if not 1 <= count < 2**31:
        raise OptionError(f"partitions is {count}; give 1 to {2**31 - 1}")
    return count


def check_hash(hash: object) -> None:
    """Refuses what is not the name of a hash.

    Raises:
        OptionError: it is none of `HASHES`.
    """
    if hash not in HASHES:
        raise OptionError(f"hash is {hash!r}; give one of {', '.join(HASHES)}")


def _of_array(arrow: Any, keys: Any, count: int, hash: str) -> Any:
    types, kind = arrow.types, keys.type
    if types.is_dictionary(kind):
        return _of_array(arrow, keys.dictionary_decode(), count, hash)
    if types.is_fixed_size_binary(kind) or types.is_binary_view(kind) or types.is_string_view(kind):
        return _of_array(arrow, keys.cast(arrow.large_binary()), count, hash)
    wide = types.is_large_binary(kind) or types.is_large_string(kind)
    if not wide and not types.is_binary(kind) and not types.is_string(kind):
        raise PartitionerTypeError(
            f"keys is an array of {kind}; give binary or text, as the producer's serializer makes it"
        )
    if not len(keys):
        return arrow.array([], arrow.int32())
    validity, offsets, data = (b"" if each is None else memoryview(each).cast("B") for each in keys.buffers())
    placed = _core.partitions_of_column(
        hash, count, data, offsets, validity if keys.null_count else None, keys.offset, len(keys), wide
    )
    found = arrow.Array.from_buffers(arrow.int32(), len(keys), [None, arrow.py_buffer(placed)])
    return arrow.compute.if_else(keys.is_valid(), found, None) if keys.null_count else found
