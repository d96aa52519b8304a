"""The partitioners' errors for arguments that they cannot use, and for topics that do not exist."""

from typing import Any

import pytest

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    KafkaAssignorsError,
    OptionError,
    PartitionerError,
    PartitionerTypeError,
    UniformStickyPartitioner,
    murmur2,
)
from support.partitioning import Asked, Metadata, Ours, ask, every, filled, refuses


@every
def test_topics_without_partitions(kind: type[Ours]) -> None:
    partitioner: Any = kind()
    for key in (None, b"k"):
        with refuses(PartitionerError, 'topic "t" is not in the cluster\'s metadata; create it, check its name'):
            ask(partitioner, Asked(None), key)
        with refuses(PartitionerError, 'topic "t" has 0 partitions in the cluster\'s metadata'):
            ask(partitioner, Asked(set()), key)


@every
def test_a_new_batch_of_a_topic_that_has_gone_is_no_error(kind: type[Ours]) -> None:
    """A producer calls `on_new_batch` while it sends a record, in code that expects no error of a partitioner."""
    partitioner: Any = kind()
    partitioner.on_new_batch("x", Metadata(3), 0)
    left = ask(partitioner, Asked(3))
    for gone in (Asked(None), Asked(set())):
        partitioner.on_new_batch("t", gone, left)
    # The topic exists again, and its batches go on.
    partitioner.on_new_batch("t", Asked(3), left)
    assert ask(partitioner, Asked(3)) in {0, 1, 2}


@every
def test_arguments_of_the_wrong_type(kind: type[Ours]) -> None:
    partitioner: Any = kind()
    with refuses(PartitionerTypeError, "topic is of type bytes; give a string"):
        ask(partitioner, Asked(3), topic=b"t")  # type: ignore[arg-type]
    with refuses(PartitionerError, "topic cannot be represented"):
        ask(partitioner, Asked(3), topic="\ud800")
    with refuses(PartitionerTypeError, "cluster is of type NoneType; give an object with partitions_for_topic(topic)"):
        ask(partitioner, None)
    with refuses(PartitionerTypeError, "prev_partition is of type str; give an integer"):
        partitioner.on_new_batch("t", Asked(3), "0")
    with refuses(PartitionerTypeError, "partition is of type str; give an integer"):
        partitioner.partition("t", None, None, None, None, Asked(3), partition="0")
    with refuses(PartitionerError, "partition cannot be represented"):
        partitioner.partition("t", None, None, None, None, Asked(3), partition=2**70)
    odd: Any = {"0"}
    with refuses(PartitionerTypeError, "a partition in the result of cluster.partitions_for_topic is of type str"):
        ask(partitioner, Asked(odd))
    with refuses(PartitionerError, "the result of cluster.partitions_for_topic has partition -4; partitions are"):
        ask(partitioner, Asked({-4}))
    with pytest.raises(TypeError, match="argument"):
        partitioner.partition("t")


@pytest.mark.parametrize("kind", [DefaultPartitioner, AdaptivePartitioner])
def test_keys_and_values_of_the_wrong_type(kind: type[DefaultPartitioner]) -> None:
    for key in ("text", 7, ["k"]):
        with refuses(PartitionerTypeError, f"serialized_key is of type {type(key).__name__}; give bytes"):
            ask(kind(), Asked(3), key)
    with refuses(PartitionerTypeError, "serialized_value is of type str; give bytes"):
        ask(AdaptivePartitioner(), Asked(3), value="text")
    with refuses(PartitionerTypeError, "key is of type str; give bytes"):
        murmur2("text")  # type: ignore[arg-type]


def test_a_load_that_is_none() -> None:
    update: Any = AdaptivePartitioner().update_load
    with refuses(PartitionerError, "queue_lengths[1] is -2; give 0 to 2147483647"):
        update("t", [0, -2])
    with refuses(PartitionerError, "queue_lengths[3] is 2147483648; give 0 to 2147483647"):
        update("t", {3: 2**31})
    with refuses(PartitionerError, "a partition in queue_lengths cannot be represented"):
        update("t", {2**80: 1})
    with refuses(PartitionerError, "a partition in unavailable is -1; give 0 to"):
        update("t", {}, [-1])
    with refuses(PartitionerTypeError, "queue_lengths[0] is of type float; give an integer"):
        update("t", [0.5])
    with refuses(PartitionerTypeError, "queue_lengths is of type int; give a mapping of partition to batches, or a"):
        update("t", 7)
    with refuses(PartitionerTypeError, "queue_lengths is of type str; give a mapping"):
        update("t", "12")
    with refuses(PartitionerTypeError, "unavailable is of type int; give the numbers of partitions"):
        update("t", {}, 3)
    with refuses(PartitionerError, "unavailable is given, but queue_lengths is None"):
        update("t", None, [1])
    with refuses(PartitionerTypeError, "topic is of type int; give a string"):
        update(3, {})


def test_a_load_of_partitions_that_there_are_not_does_no_harm() -> None:
    partitioner, cluster = AdaptivePartitioner(batch_size=0, seed=1), Metadata(3)
    partitioner.update_load("t", {2**31 - 1: 2**31 - 1, 1: 1}, [77])
    assert set(filled(partitioner, cluster, 300)) == {0, 1, 2}


def test_options() -> None:
    anything: Any = AdaptivePartitioner
    for size in (-1, 2**31, "16384", 1.5, True):
        with refuses(OptionError, f"batch_size is {size!r}; give the producer's batch size in bytes"):
            anything(batch_size=size)
    with refuses(OptionError, "ignore_keys is 'no'; give True or False"):
        anything(ignore_keys="no")
    for kind in (AdaptivePartitioner, DefaultPartitioner, UniformStickyPartitioner):
        with refuses(OptionError, "seed is 'x'; give an integer"):
            kind(seed="x")  # type: ignore[arg-type]
        kind(seed=-(2**90))


def test_errors_are_what_callers_expect() -> None:
    with pytest.raises(ValueError, match="not in the cluster"):
        ask(DefaultPartitioner(), Asked(None))
    with pytest.raises(TypeError, match="give bytes"):
        ask(DefaultPartitioner(), Asked(3), "text")
    with pytest.raises(KafkaAssignorsError):
        ask(DefaultPartitioner(), Asked(None))


def test_what_a_cluster_raises_arrives() -> None:
    class Broken(Asked):
        def partitions_for_topic(self, topic: str) -> set[int] | None:
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        ask(DefaultPartitioner(), Broken(3))
