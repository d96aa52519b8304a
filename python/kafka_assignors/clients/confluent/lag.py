"""Lets a consumer's `LagBasedAssignor` read the lags of its group from the cluster."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.clients.common.rates import with_cluster
from kafka_assignors.lag import ConfluentLagSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.clients.confluent.config import ConsumerConfig

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
    """The settings, with a source of lags and a group for every assignor by lag.

    Args:
        config: the consumer's settings.
        given: the dictionary from which `config` was read.
    """
    return dataclasses.replace(config, assignors=tuple(_with_lags(each, config, given) for each in config.assignors))


def _with_lags(assignor: Assignor, config: ConsumerConfig, given: Mapping[str, Any]) -> Assignor:
    """An assignor by lag or rates without a source gets the cluster as source; by lag, also the consumer's group."""
    connecting = {name: value for name, value in given.items() if name.startswith(_CONNECTING)}
    if not isinstance(assignor, LagBasedAssignor):
        return with_cluster(assignor, lambda seconds: ConfluentLagSource(connecting, timeout=seconds))
    if assignor.lags is None:
        assignor = dataclasses.replace(assignor, lags=_lag_source(config, connecting))
    return assignor if assignor.group_id else dataclasses.replace(assignor, group_id=config.group_id)


def _lag_source(config: ConsumerConfig, connecting: dict[str, Any]) -> ConfluentLagSource:
    isolation = str(config.data_path.get("isolation.level", "read_committed")).lower()
    return ConfluentLagSource(connecting, reset=config.reset, isolation_level=isolation)
