"""Partitioners as the producers' drop-ins use them: asked with care, and each serving one producer."""

from __future__ import annotations

import inspect
import operator
import threading
import weakref
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import KafkaAssignorsError, OptionError, PartitionerError, StateError
from kafka_assignors.partitioners import (
    AdaptivePartitioner,
    DefaultPartitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check", "choose", "claim", "knows_its_partitions", "notify", "refuse_shared"]

_OURS = tuple(
    each.partition
    for each in (DefaultPartitioner, UniformStickyPartitioner, AdaptivePartitioner, RoundRobinPartitioner)
)


def check(partitioner: object) -> None:
    """Refuses what is no partitioner, before a producer is built with it.

    Raises:
        OptionError: there is no method `partition` that takes six arguments, or a class is given for an instance.
    """
    if isinstance(partitioner, type):
        raise OptionError(
            f"partitioner is the class {partitioner.__name__}; give an instance: {partitioner.__name__}()"
        )
    if not _takes_six(getattr(partitioner, "partition", None)):
        raise OptionError(
            f"partitioner is {partitioner!r}, which has no method partition(topic, key, serialized_key, value, "
            "serialized_value, cluster); derive it from kafka_assignors.Partitioner"
        )


def _takes_six(method: object) -> bool:
    """Texts have a method of that name, too, and version 1 of kafka-python asked with three arguments."""
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*[None] * 6)
    except TypeError:
        return False
    except ValueError:
        # Written in C without a signature: it will tell.
        return True
    return True


def knows_its_partitions(partitioner: object) -> bool:
    """Whether a partitioner's answers are partitions of the topic for sure, and its errors clear: ours, not overridden.

    What `choose` looks after need not be asked of these, which is a microsecond of each record's seventeen.
    """
    return getattr(type(partitioner), "partition", None) in _OURS


def choose(
    partitioner: Any,
    topic: str,
    key: object,
    serialized_key: bytes | None,
    value: object,
    serialized_value: bytes | None,
    cluster: Any,
    exists: Callable[[int], bool],
) -> int:
    """The partition that a partitioner chooses for a record, which is sure to exist.

    Args:
        partitioner: has the method `partition`; the arguments in between are its own.
        exists: whether the topic has the partition.

    Raises:
        PartitionerError: the partitioner failed, or what it returned is no partition of the topic. Errors of this
            package come through as they are.
    """
    try:
        answer = partitioner.partition(topic, key, serialized_key, value, serialized_value, cluster)
    except KafkaAssignorsError:
        raise
    except Exception as error:
        raise PartitionerError(
            f"{_name(partitioner)} failed for a record to topic {topic!r}, which was not sent: "
            f"{type(error).__name__}: {error}"
        ) from error
    if isinstance(answer, bool) or not hasattr(answer, "__index__"):
        raise PartitionerError(
            f"{_name(partitioner)} returned {answer!r} for a record to topic {topic!r}, which was not sent; "
            "return the number of a partition"
        )
    chosen = operator.index(answer)
    if not exists(chosen):
        numbers = cluster.partitions_for_topic(topic)
        there = f"has the partitions 0 to {max(numbers)}" if numbers else "has no partitions that the client knows of"
        raise PartitionerError(
            f"{_name(partitioner)} returned {chosen} for a record to topic {topic!r}, which was not sent: the topic "
            f"{there}"
        )
    return chosen


def notify(partitioner: Any, topic: str, cluster: Any, left: int) -> None:
    """Tells a partitioner, if it wants to know, that the next record to `left` would open a batch.

    Raises:
        PartitionerError: the partitioner failed.
    """
    on_new_batch = getattr(partitioner, "on_new_batch", None)
    if on_new_batch is None:
        return
    try:
        on_new_batch(topic, cluster, left)
    except KafkaAssignorsError:
        raise
    except Exception as error:
        raise PartitionerError(
            f"{_name(partitioner)}.on_new_batch failed before a record to topic {topic!r}, which was not sent: "
            f"{type(error).__name__}: {error}"
        ) from error


def _name(partitioner: object) -> str:
    return type(partitioner).__qualname__


# Which producer uses which partitioner. By producer, so that a partitioner need not bear weak references; an entry goes
# with its producer.
_claims: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_claiming = threading.Lock()


def refuse_shared(partitioner: object, producer: object = None) -> None:
    """Refuses a partitioner that serves another open producer.

    A batch that one producer leaves says nothing about another's: with one sticky partition between them, each would
    make the others leave batches that nobody closes.

    Raises:
        StateError: it does.
    """
    with _claiming:
        _refuse_shared(partitioner, producer)


def _refuse_shared(partitioner: object, producer: object) -> None:
    for other, theirs in _claims.items():
        if theirs is partitioner and other is not producer and not getattr(other, "_closed", False):
            raise StateError(
                f"one {_name(partitioner)} was given to two producers, and their batches would get mixed up; give each "
                f"producer an instance of its own: partitioner={_name(partitioner)}()"
            )


def claim(partitioner: object, producer: object) -> bool:
    """Ties a partitioner to its producer, until that is closed or gone.

    Returns:
        Whether this is news; the same tie may be made again.

    Raises:
        StateError: it serves another open producer.
    """
    with _claiming:
        _refuse_shared(partitioner, producer)
        if _claims.get(producer) is partitioner:
            return False
        _claims[producer] = partitioner
        return True
