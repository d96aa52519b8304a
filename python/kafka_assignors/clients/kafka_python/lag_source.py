"""Where a consumer's `LagBasedAssignor` finds the lags of its group."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients.kafka_python.errors import OptionError

if TYPE_CHECKING:
    from kafka_assignors.assignors import Assignor
    from kafka_assignors.clients.kafka_python.config import ConsumerConfig
    from kafka_assignors.lag import LagSource

__all__ = ["with_lags"]


def with_lags(config: ConsumerConfig, consumer: Any) -> ConsumerConfig:
    """The settings, in which every assignor by lag has a source and a group.

    Args:
        config: the consumer's.
        consumer: connected.

    Raises:
        OptionError: this release of the client cannot read the lags.
    """
    assignors = tuple(_with_lags(each, config, consumer) for each in config.assignors)
    return dataclasses.replace(config, assignors=assignors)


def _with_lags(assignor: Assignor, config: ConsumerConfig, consumer: Any) -> Assignor:
    """An assignor by lag without a source reads the cluster, and one without a group takes the consumer's."""
    if not isinstance(assignor, LagBasedAssignor):
        return assignor
    if assignor.lags is None:
        assignor = dataclasses.replace(assignor, lags=_source(consumer, assignor.deadline))
    return assignor if assignor.group_id else dataclasses.replace(assignor, group_id=config.group_id)


def _source(consumer: Any, timeout: float) -> LagSource:
    try:
        from kafka_assignors.clients.kafka_python.lag import of_consumer
    except ImportError as error:
        raise OptionError(
            "the strategy 'lag' cannot read the lags with this release of kafka-python: install kafka-python 3, or "
            "give LagBasedAssignor(lags=...)"
        ) from error
    return of_consumer(consumer, timeout)
