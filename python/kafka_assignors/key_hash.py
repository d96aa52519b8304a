"""The partitions in which producers put keys, for whole columns of keys.

Three hashes are in use: Java's murmur2, and librdkafka's CRC-32 (its default) and FNV-1a.

>>> partitions_of([b"abc", b"", None], 10).tolist()
[7, 1, -1]
>>> partitions_of([b"abc", b""], 10, hash="crc32").tolist()
[8, 0]
"""

from __future__ import annotations

import operator
from array import array
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core
from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HASHES", "check_hash", "checked_count", "partitions_of", "partitions_of_column"]

HASHES = ("murmur2", "crc32", "fnv1a")
"""The hashes by name, for n partitions:

- `murmur2`: `(murmur2 & 0x7fffffff) % n`, as Java, and as librdkafka with `murmur2_random`;
- `crc32`: zlib's CRC-32 `% n`, as librdkafka with `consistent_random`, its default, except that librdkafka puts an
  empty key into a random partition;
- `fnv1a`: `|FNV-1a| % n` of the hash as a signed 32-bit number, as librdkafka with `fnv1a_random`, and Sarama.
"""


def partitions_of(keys: Iterable[bytes | None], partitions: int, *, hash: str = "murmur2") -> array[int]:
    """The partition of each key. O(bytes).

    Args:
        keys: serialized keys, bytes or None.
        partitions: the partition count of the topic, 1 to 2**31 - 1, including those that have no leader.
        hash: one of `HASHES`.

    Returns:
        32-bit integers, -1 for a null key.

    Raises:
        OptionError: `partitions` is no such count, or `hash` is none of `HASHES`.
        PartitionerTypeError: a key that is not bytes.
    """
    count = checked_count(partitions)
    check_hash(hash)
    placed = array("i")
    placed.frombytes(_core.partitions_of(keys, hash, count))
    return placed


def partitions_of_column(keys: Any, partitions: int, *, hash: str = "murmur2") -> Any:
    """The partition of each key of an Arrow column. O(bytes), without the interpreter's lock and without a copy.

    Args:
        keys: an array or chunked array of binary or text from any library that has the Arrow PyCapsule interface, text
            being its UTF-8 bytes; or a sequence of bytes. Null is no key.
        partitions: as for `partitions_of`.
        hash: as for `partitions_of`.

    Returns:
        A `pyarrow.Int32Array`, null for a null key.

    Raises:
        OptionError: `partitions` is no such count, or `hash` is none of `HASHES`.
        PartitionerTypeError: `keys` is none of these.
        MissingDependencyError: pyarrow is not installed.
    """
    count = checked_count(partitions)
    check_hash(hash)
    return _core.partitions_of_column(keys, hash, count)


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
    """Refuses a value that is not the name of a hash.

    Raises:
        OptionError: it is none of `HASHES`.
    """
    if hash not in HASHES:
        raise OptionError(f"hash is {hash!r}; give one of {', '.join(HASHES)}")
