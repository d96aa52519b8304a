"""Lets a consumer's `LagBasedAssignor` read the lags of its group from the cluster."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients.common.rates import with_cluster
from kafka_assignors.clients.kafka_python.lag import of_consumer

if TYPE_CHECKING:
    from kafka_assignors.assignors import Assignor
    from kafka_assignors.clients.kafka_python.config import ConsumerConfig

__all__ = ["with_lags"]


def with_lags(config: ConsumerConfig, consumer: Any) -> ConsumerConfig:
    """The settings, with a source of lags and a group for every assignor by lag.

    Args:
        config: the consumer's settings.
        consumer: the connected consumer.
    """
    assignors = tuple(_with_lags(each, config, consumer) for each in config.assignors)
    return dataclasses.replace(config, assignors=assignors)


def _with_lags(assignor: Assignor, config: ConsumerConfig, consumer: Any) -> Assignor:
    """An assignor by lag or rates without a source gets the cluster as source; by lag, also the consumer's group."""
    if not isinstance(assignor, LagBasedAssignor):
        return with_cluster(assignor, lambda seconds: of_consumer(consumer, seconds))
    if assignor.lags is None:
        assignor = dataclasses.replace(assignor, lags=of_consumer(consumer, assignor.deadline))
    return assignor if assignor.group_id else dataclasses.replace(assignor, group_id=config.group_id)
