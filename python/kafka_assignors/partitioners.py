"""Partitioners for producers: which partition a record goes to.

KIP-480's sticky partitioners, KIP-794's adaptive one and round robin as Kafka has it today, for any client that asks
its partitioner with kafka-python's six arguments.

>>> class Cluster:
...     def partitions_for_topic(self, topic):
...         return {0, 1, 2}
...     def available_partitions_for_topic(self, topic):
...         return {0, 1, 2}
>>> partitioner = DefaultPartitioner(seed=7)
>>> partitioner.partition("orders", b"abc", b"abc", None, b"...", Cluster()) == (murmur2(b"abc") & 0x7FFFFFFF) % 3
True
>>> sticky = [partitioner.partition("orders", None, None, None, b"...", Cluster()) for _ in range(100)]
>>> len(set(sticky))
1
>>> partitioner.on_new_batch("orders", Cluster(), sticky[0])
>>> partitioner.partition("orders", None, None, None, b"...", Cluster()) != sticky[0]
True
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kafka_assignors import _core
from kafka_assignors.errors import OptionError

__all__ = [
    "AdaptivePartitioner",
    "Cluster",
    "DefaultPartitioner",
    "Partitioner",
    "RoundRobinPartitioner",
    "UniformStickyPartitioner",
    "murmur2",
    "murmur2_column",
]


class Cluster(Protocol):
    """What a partitioner needs of a client's metadata; kafka-python's and aiokafka's `ClusterMetadata` have it."""

    def partitions_for_topic(self, topic: str, /) -> Collection[int] | None:
        """The numbers of all partitions of the topic, `None` if the topic is not known."""

    def available_partitions_for_topic(self, topic: str, /) -> Collection[int] | None:
        """The numbers of the partitions that have a leader."""


class Partitioner(ABC):
    """Decides which partition a record goes to: the base class of this module's partitioners, and of your own.

    `partition` is to be written; `on_new_batch` does nothing unless it is.

    >>> class ByRegion(Partitioner):
    ...     def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
    ...         return 0 if value["region"] == "eu" else 1
    >>> ByRegion().partition("orders", None, None, {"region": "eu"}, b"...", None)
    0
    """

    @abstractmethod
    def partition(
        self,
        topic: str,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
        cluster: Cluster,
    ) -> int:
        """The number of the partition for one record.

        A client may ask twice for the same record: after the first answer would have opened a new batch, and
        `on_new_batch` was called.

        Args:
            topic: the record's topic.
            key: its key as given by the program, `None` without one.
            serialized_key: its key as it is going to be sent, `None` without one.
            value: its value as given by the program.
            serialized_value: its value as it is going to be sent, `None` for a tombstone.
            cluster: the client's metadata of this moment.
        """

    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None:  # noqa: B027
        """Called right before a new batch is opened for a record that was to go to `prev_partition`; here a no-op.

        The client asks `partition` again for that record afterwards.
        """


class DefaultPartitioner(_core.DefaultPartitioner, Partitioner):
    """KIP-480's default: keys are hashed, records without a key stick to one partition until a new batch is opened.

    - A record with a key, also an empty one, goes to `(murmur2(key) & 0x7fffffff) mod n` of all `n` partitions, with
      and without a leader: where Java's producer puts it.
    - Records without a key go to the topic's sticky partition. `on_new_batch` for that partition picks another one that
      has a leader; for any other partition it does nothing, so that threads that race agree. With one available
      partition that one stays, and without any all are equally likely.
    - `partition(..., partition=3)`, by name only: a partition that the record names itself wins. Most clients do not
      ask at all then.

    An instance may be shared by threads. kafka-python's and aiokafka's metadata are read only when they
    were replaced and, for the leaders, at new batches, so that a call takes the same time for any number of partitions;
    any other cluster is asked for each record. The page on partitioners says how a cluster of your own avoids that.

    Args:
        seed: an integer makes the choices repeatable; `None`: they differ from run to run.

    Raises:
        PartitionerError: from `partition`, if the topic is not known or has no partitions (for `on_new_batch` there is
            nothing to do then), or if the partition named does not exist; `PartitionerTypeError` if an argument has the
            wrong type.
        OptionError: if the seed is no integer.
    """

    def __init__(self, seed: int | None = None) -> None:
        _seed(self, seed)


class UniformStickyPartitioner(_core.UniformStickyPartitioner, Partitioner):
    """KIP-480's other partitioner: every record goes to the topic's sticky partition, whatever its key.

    As `DefaultPartitioner` otherwise, arguments and errors included.
    """

    def __init__(self, seed: int | None = None) -> None:
        _seed(self, seed)


class AdaptivePartitioner(_core.AdaptivePartitioner, Partitioner):
    """KIP-794, the default of Java's producer since 3.3: partitions are left by bytes and chosen by the load.

    - Keys are hashed as by `DefaultPartitioner`, unless `ignore_keys`.
    - A partition gets `batch_size` bytes. Then it is left as soon as `on_new_batch` tells that its last batch is full
      or sent, and after twice as many bytes in any case. A record counts as what it adds to a batch, headers aside.
    - The next partition is drawn from those with a leader. `update_load` makes the ones with short queues more likely;
      without it all are equally likely. The same partition may be drawn again.

    Args:
        batch_size: the producer's `batch.size` in bytes; 0 acts as 1.
        ignore_keys: whether records with a key are treated as those without one.
        seed: an integer makes the choices repeatable; `None`: they differ from run to run.

    Raises:
        PartitionerError: as `DefaultPartitioner`; and from `update_load`, if a length or a partition is not in 0 to
            2,147,483,647.
        OptionError: if an option is no such integer or bool.
    """

    def __init__(self, batch_size: int = 16_384, ignore_keys: bool = False, seed: int | None = None) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or not 0 <= batch_size < 2**31:
            raise OptionError(f"batch_size is {batch_size!r}; give the producer's batch size in bytes, 0 to 2147483647")
        if not isinstance(ignore_keys, bool):
            raise OptionError(f"ignore_keys is {ignore_keys!r}; give True or False")
        self._configure(batch_size, ignore_keys)
        _seed(self, seed)

    def update_load(
        self,
        topic: str,
        queue_lengths: Mapping[int, int] | Sequence[int] | None,
        unavailable: Iterable[int] = (),
    ) -> None:
        """What the queues of a topic look like now; valid until the next call.

        A partition's weight is the longest queue, plus 1, less its own queue.

        Args:
            topic: the topic's name.
            queue_lengths: batches waiting by partition, as a mapping or, from partition 0 on, as a sequence; one that
                is missing has an empty queue. `None`: nothing is known, every partition is equally likely again.
            unavailable: partitions not to be chosen, because their broker does not take batches in time. Without any
                other partition they are chosen all the same. What the topic does not have does no harm in either.
        """
        super().update_load(topic, queue_lengths, unavailable)


class RoundRobinPartitioner(_core.RoundRobinPartitioner, Partitioner):
    """One partition after the other of those with a leader, whatever the key; of all if none has a leader.

    When a client opens a new batch it asks a second time for the same record (`on_new_batch`). The answer is then the
    same again, so that no partition is skipped (KAFKA-17632).

    Raises:
        PartitionerError: as `DefaultPartitioner`.
    """


def murmur2(key: bytes | bytearray | memoryview) -> int:
    """The hash by which Kafka's producers place a key: 32 bits, signed as Java prints it.

    >>> murmur2(b"21"), murmur2(b"foobar")
    (-973932308, -790332482)

    The partition is `(murmur2(key) & 0x7fffffff) % n`. Takes `bytes` or anything with their buffer.

    Raises:
        PartitionerTypeError: if the key is none of these.
    """
    return _core.murmur2(key)


def murmur2_column(keys: Any) -> Any:
    """The hashes of a whole column of keys, an int32 `pyarrow.Array` with a null for each null.

    >>> murmur2_column([b"21", None, b"foobar"]).to_pylist()
    [-973932308, None, -790332482]

    [`kafka_assignors.key_hash`][kafka_assignors.key_hash] has their partitions, by this and by other hashes.

    Linear in the bytes, at a few nanoseconds a key for Arrow data, which is neither copied nor turned into objects.

    Args:
        keys: serialized keys, of which `None` is no key: an array or chunked array of binary or string from any library
            that has the Arrow PyCapsule interface (pyarrow, polars, pandas, …), a string being its UTF-8 bytes; or a
            sequence of `bytes` and `None`.

    Raises:
        PartitionerTypeError: if the keys are of another type.
        MissingDependencyError: pyarrow is not installed.
    """
    return _core.murmur2_column(keys)


def _seed(
    partitioner: _core.DefaultPartitioner | _core.UniformStickyPartitioner | _core.AdaptivePartitioner, seed: int | None
) -> None:
    if seed is None:
        return
    if not isinstance(seed, int):
        raise OptionError(f"seed is {seed!r}; give an integer, or None for choices that differ from run to run")
    partitioner._seed(seed % 2**64)
