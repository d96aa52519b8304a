"""Checks of partitioners: their method, their answers, and that each serves one producer."""

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

__all__ = ["check", "checked", "choose", "claim", "failure", "knows_its_partitions", "notify", "refuse_shared"]

_OURS = tuple(
    each.partition
    for each in (DefaultPartitioner, UniformStickyPartitioner, AdaptivePartitioner, RoundRobinPartitioner)
)


def check(partitioner: object) -> None:
    """Refuses an object that is no partitioner, before a producer is built with it.

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
    """Whether this can be a partitioner's `partition`.

    `str` has a method of that name too, and partitioners for kafka-python 1 take three arguments.
    """
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*[None] * 6)
    except TypeError:
        return False
    except ValueError:
        # The method is written in C and shows no signature. If the arguments do not fit, the first call raises.
        return True
    return True


def knows_its_partitions(partitioner: object) -> bool:
    """Whether the partitioner is ours and not overridden, so that each answer is a partition of the topic.

    Then the checks of `choose` are not needed. They take one microsecond of the seventeen that a record takes.
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
    """The partition that a partitioner chooses for a record, which is checked to exist.

    Args:
        partitioner: has the method `partition`, which gets the arguments from `topic` to `cluster`.
        exists: whether the topic has the partition.

    Raises:
        PartitionerError: the partitioner failed, or returned a value that is no partition of the topic. Errors of this
            package are raised as they are.
    """
    try:
        answer = partitioner.partition(topic, key, serialized_key, value, serialized_value, cluster)
    except KafkaAssignorsError:
        raise
    except Exception as error:
        raise failure(f"{_name(partitioner)} failed for a record to topic {topic!r}", error) from error

    def problem(returned: object) -> str:
        return f"{_name(partitioner)} returned {returned!r} for a record to topic {topic!r}, which was not sent"

    def there() -> str:
        numbers = cluster.partitions_for_topic(topic)
        known = f"has the partitions 0 to {max(numbers)}" if numbers else "has no partitions that the client knows of"
        return f": the topic {known}"

    return checked(answer, exists, problem, there)


def failure(what: str, error: Exception) -> PartitionerError:
    """The error for a record that was not sent since a partitioner failed. `what` names partitioner and record."""
    return PartitionerError(f"{what}, which was not sent: {type(error).__name__}: {error}")


def checked(
    answer: object, exists: Callable[[int], bool], problem: Callable[[object], str], there: Callable[[], str]
) -> int:
    """A partitioner's answer as the number of a partition of the topic.

    Args:
        answer: the returned value.
        exists: whether the topic has the partition.
        problem: a sentence with the partitioner, the record and the returned value.
        there: the partitions of the topic in words, which follow `problem`.

    Raises:
        PartitionerError: the answer is no number, or no partition's.
    """
    if isinstance(answer, bool) or not hasattr(answer, "__index__"):
        raise PartitionerError(f"{problem(answer)}; return the number of a partition")
    number = operator.index(answer)
    if not exists(number):
        raise PartitionerError(f"{problem(number)}{there()}")
    return number


def notify(partitioner: Any, topic: str, cluster: Any, left: int) -> None:
    """Calls a partitioner's `on_new_batch`, if it has one: the next record to `left` would open a batch.

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
        raise failure(f"{_name(partitioner)}.on_new_batch failed before a record to topic {topic!r}", error) from error


def _name(partitioner: object) -> str:
    return type(partitioner).__qualname__


# For each producer its partitioner, and a function that returns whether the producer is closed. The keys are the
# producers, since a partitioner may not support weak references; an entry is removed with its producer.
_claims: weakref.WeakKeyDictionary[Any, tuple[Any, Callable[[Any], bool]]] = weakref.WeakKeyDictionary()
_claiming = threading.Lock()


def refuse_shared(partitioner: object, producer: object = None) -> None:
    """Refuses a partitioner that serves another open producer.

    With one sticky partition for two producers, a full batch of one would make the other leave a batch that it does
    not close.

    Raises:
        StateError: the partitioner serves another open producer.
    """
    with _claiming:
        _refuse_shared(partitioner, producer)


def _refuse_shared(partitioner: object, producer: object) -> None:
    for other, (theirs, is_closed) in _claims.items():
        if theirs is partitioner and other is not producer and not is_closed(other):
            raise StateError(
                f"one {_name(partitioner)} was given to two producers, and their batches would get mixed up; give each "
                f"producer an instance of its own: partitioner={_name(partitioner)}()"
            )


def claim(partitioner: object, producer: object, is_closed: Callable[[Any], bool]) -> bool:
    """Ties a partitioner to its producer, until the producer is closed or collected.

    Args:
        partitioner: one of ours.
        producer: of any client.
        is_closed: whether the producer is closed.

    Returns:
        False if the two were tied before.

    Raises:
        StateError: it serves another open producer.
    """
    with _claiming:
        _refuse_shared(partitioner, producer)
        if producer in _claims and _claims[producer][0] is partitioner:
            return False
        _claims[producer] = partitioner, is_closed
        return True
