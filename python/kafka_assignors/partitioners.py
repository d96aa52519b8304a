"""Partitioners for producers: they choose the partition of a record.

KIP-480's sticky partitioners, KIP-794's adaptive one, and round robin as in today's Kafka, for any client that calls
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
    "register_cluster_type",
]


class Cluster(Protocol):
    """The part of a client's metadata that a partitioner needs. kafka-python's and aiokafka's `ClusterMetadata` fit."""

    def partitions_for_topic(self, topic: str, /) -> Collection[int] | None:
        """The numbers of all partitions of the topic, `None` if the topic is not known."""

    def available_partitions_for_topic(self, topic: str, /) -> Collection[int] | None:
        """The numbers of the partitions that have a leader."""


class Partitioner(ABC):
    """The base class of this module's partitioners, and of your own.

    A subclass must implement `partition`. `on_new_batch` does nothing by default.

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

        A client may call it twice for one record: if the first answer would open a new batch, it calls `on_new_batch`
        and then this method again.

        Args:
            topic: the record's topic.
            key: its key as given by the program, `None` without one.
            serialized_key: its key as it is sent, `None` without one.
            value: its value as given by the program.
            serialized_value: its value as it is sent, `None` for a tombstone.
            cluster: the client's current metadata.
        """

    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None:  # noqa: B027
        """Called right before a new batch is opened for a record that was to go to `prev_partition`; here a no-op.

        After it the client calls `partition` again for that record.
        """


def register_cluster_type(cluster_type: type, attribute: str) -> None:
    """Lets partitioners read the partitions of your own client's clusters from a dictionary, not by a call per record.

    >>> class Cluster:
    ...     def __init__(self, counts):
    ...         self.topics = {topic: dict.fromkeys(range(count)) for topic, count in counts.items()}
    ...     def partitions_for_topic(self, topic):
    ...         return self.topics[topic].keys() if topic in self.topics else None
    ...     available_partitions_for_topic = partitions_for_topic
    >>> register_cluster_type(Cluster, "topics")

    The attribute has a dictionary of topics, with a dictionary for each topic: its keys are the numbers of all
    partitions, its values may be anything. Both are of the type `dict`, and of no subclass. Partitioners call the
    methods of the cluster again when the inner dictionary is another object or has another size, and at new batches,
    for the leaders. So your client must **replace** the inner dictionary when a topic's partitions change, after its
    two methods return the new ones.

    Objects of a subclass are not registered with it. A registration holds from the next call of a partitioner until the
    process ends, and the class is never freed. Another registration of a type replaces its attribute. If a cluster has
    no such attribute, or no dictionary in it, its methods are called for each record. Each call of a partitioner
    compares the type of its cluster with every registered type.

    The types of kafka-python, aiokafka and our producer for confluent-kafka are registered by their modules in
    `kafka_assignors.clients`. Threads may call this.

    Args:
        cluster_type: the class of the objects that your client passes to partitioners as `cluster`.
        attribute: the name of the attribute.

    Raises:
        PartitionerTypeError: the first is no class, or the second no string.
        PartitionerError: the name has a lone surrogate.
    """
    _core.register_cluster_type(cluster_type, attribute)


class DefaultPartitioner(_core.DefaultPartitioner, Partitioner):
    """KIP-480's default: keys are hashed, records without a key stick to one partition until a new batch is opened.

    - A record with a key, also an empty one, goes to `(murmur2(key) & 0x7fffffff) mod n` of all `n` partitions, with
      and without a leader: where Java's producer puts it.
    - Records without a key go to the topic's sticky partition. `on_new_batch` for that partition picks another one that
      has a leader. For any other partition it does nothing, so that threads that race agree. If only one partition is
      available, it stays; if none is, all are equally likely.
    - `partition(..., partition=3)`, by keyword only: the partition that the record names. Most clients do not call the
      partitioner then.

    Several threads may use one instance. It reads kafka-python's and aiokafka's metadata only when they were replaced
    and, for the leaders, at new batches. So a call takes the same time for any number of partitions. The two methods of
    any other cluster are called for each record, unless `register_cluster_type` names its dictionary.

    Args:
        seed: an integer makes the choices repeatable; with `None` they differ from run to run.

    Raises:
        PartitionerError: from `partition`, if the topic is not known or has no partitions, or if the named partition
            does not exist; `PartitionerTypeError` if an argument has the wrong type.
        OptionError: if the seed is no integer.
    """

    def __init__(self, seed: int | None = None) -> None:
        _seed(self, seed)


class UniformStickyPartitioner(_core.UniformStickyPartitioner, Partitioner):
    """KIP-480's other partitioner: every record goes to the topic's sticky partition, also with a key.

    Arguments, errors and all else are as for `DefaultPartitioner`.
    """

    def __init__(self, seed: int | None = None) -> None:
        _seed(self, seed)


class AdaptivePartitioner(_core.AdaptivePartitioner, Partitioner):
    """KIP-794, the default of Java's producer since 3.3: after some bytes the next partition is chosen, by its load.

    - Keys are hashed as by `DefaultPartitioner`, unless `ignore_keys`.
    - A partition gets `batch_size` bytes. Then it is left with the next `on_new_batch`, when its last batch is full or
      sent, or after twice as many bytes. The size of a record is that of its part of a batch, without its headers.
    - The next partition is drawn from those with a leader, and may be the same again. After `update_load` those with
      short queues are more likely; without it all are equally likely.

    Args:
        batch_size: the producer's `batch.size` in bytes; 0 acts as 1.
        ignore_keys: whether records with a key are treated as those without one.
        seed: an integer makes the choices repeatable; with `None` they differ from run to run.

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
        """Sets the load of a topic's partitions, until the next call.

        The weight of a partition is the longest queue, plus 1, minus its own queue.

        Args:
            topic: the topic's name.
            queue_lengths: the number of waiting batches of each partition: a mapping, or a sequence from partition 0
                on. A missing partition has an empty queue. With `None` all partitions are equally likely again.
            unavailable: partitions whose broker does not take batches in time. They are only chosen if there are no
                others. Numbers that the topic does not have are ignored, in both arguments.
        """
        super().update_load(topic, queue_lengths, unavailable)


class RoundRobinPartitioner(_core.RoundRobinPartitioner, Partitioner):
    """All partitions with a leader in turn, also for records with a key; all partitions if none of them has a leader.

    A client that opens a new batch calls `partition` twice for one record (`on_new_batch`). The second answer is the
    same, so that no partition is skipped (KAFKA-17632).

    Raises:
        PartitionerError: as `DefaultPartitioner`.
    """


def murmur2(key: bytes | bytearray | memoryview) -> int:
    """The hash of a key in Kafka's producers: 32 bits, signed as in Java.

    >>> murmur2(b"21"), murmur2(b"foobar")
    (-973932308, -790332482)

    The partition is `(murmur2(key) & 0x7fffffff) % n`. Takes `bytes`, or another object with a buffer of bytes.

    Raises:
        PartitionerTypeError: if the key is none of these.
    """
    return _core.murmur2(key)


def murmur2_column(keys: Any) -> Any:
    """The hashes of a whole column of keys, an int32 `pyarrow.Array` with a null for each null.

    >>> murmur2_column([b"21", None, b"foobar"]).to_pylist()
    [-973932308, None, -790332482]

    [`kafka_assignors.key_hash`][kafka_assignors.key_hash] computes partitions of keys, by this and by other hashes.

    Linear in the bytes. Arrow data takes a few nanoseconds for each key, and is neither copied nor turned into objects.

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
