"""Completes the assignors of aiokafka's consumer that read a cluster: they read it with the settings of its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.aiokafka.lag import AdminLagSource, of_client
from kafka_assignors.clients.common.lag_source import with_sources
from kafka_assignors.errors import IncompatibleClientError, OptionError

if TYPE_CHECKING:
    import asyncio

    from kafka_assignors.assignors import LagBasedAssignor
    from kafka_assignors.clients.aiokafka.config import ConsumerConfig
    from kafka_assignors.weighted import WeightedAssignor

__all__ = ["with_lags"]


def with_lags(config: ConsumerConfig, client: Any, loop: asyncio.AbstractEventLoop) -> ConsumerConfig:
    """The settings, with `with_sources`: each source is an `AdminLagSource` with the settings of the consumer's client.

    Args:
        config: the consumer's settings.
        client: the consumer's client of brokers.
        loop: the consumer's event loop.

    Raises:
        OptionError: an assignor has no source, and this version of aiokafka does not show the settings for one.
    """

    def source_of(assignor: LagBasedAssignor | WeightedAssignor) -> AdminLagSource:
        reading = {"reset": config.reset, "isolation_level": config.isolation_level}
        try:
            return of_client(client, loop, **reading, timeout=assignor.deadline)
        except IncompatibleClientError as error:
            raise OptionError(f"{error}; give LagBasedAssignor(lags=...) or RateSource(...)") from error

    return with_sources(config, source_of)
