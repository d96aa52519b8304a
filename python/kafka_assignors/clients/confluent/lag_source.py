"""Completes the assignors of confluent-kafka's consumer that read a cluster: with the settings of its connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients.common.lag_source import with_sources
from kafka_assignors.lag import ConfluentLagSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.clients.confluent.config import ConsumerConfig
    from kafka_assignors.weighted import WeightedAssignor

__all__ = ["with_lags"]

# The settings of a consumer that another client of the same cluster needs.
_CONNECTING = (
    "bootstrap.",
    "metadata.broker.",
    "security.",
    "ssl.",
    "enable.ssl.",
    "sasl.",
    "oauth_cb",
    "socket.",
    "broker.address.",
    "client.id",
    "client.dns.",
)


def with_lags(config: ConsumerConfig, given: Mapping[str, Any]) -> ConsumerConfig:
    """The settings, with `with_sources`: each source is a `ConfluentLagSource` with the connections of the consumer.

    Args:
        config: the consumer's settings.
        given: the dictionary from which `config` was read.
    """
    connecting = {name: value for name, value in given.items() if name.startswith(_CONNECTING)}
    isolation = str(config.data_path.get("isolation.level", "read_committed")).lower()

    def source_of(assignor: LagBasedAssignor | WeightedAssignor) -> ConfluentLagSource:
        if isinstance(assignor, LagBasedAssignor):
            return ConfluentLagSource(
                connecting, reset=config.reset, isolation_level=isolation, timeout=assignor.deadline
            )
        # A rate counts the records that are written, so that the records of an open transaction count as well.
        return ConfluentLagSource(connecting, timeout=assignor.deadline)

    return with_sources(config, source_of)
