"""Completes the assignors of kafka-python's consumer that read a cluster: they read it with the consumer's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.common.lag_source import with_sources
from kafka_assignors.clients.kafka_python.lag import of_consumer

if TYPE_CHECKING:
    from kafka_assignors.clients.kafka_python.config import ConsumerConfig

__all__ = ["with_lags"]


def with_lags(config: ConsumerConfig, consumer: Any) -> ConsumerConfig:
    """The settings, with `with_sources`: each source is an `AdminLagSource` with the settings of the consumer.

    Args:
        config: the consumer's settings.
        consumer: the connected consumer.
    """
    return with_sources(config, lambda assignor: of_consumer(consumer, assignor.deadline))
