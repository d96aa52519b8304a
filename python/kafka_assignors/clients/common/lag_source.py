"""The rule by which assignors of a consumer read the consumer's own cluster: its lags, or its rates as weights."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.weighted import WeightedAssignor
from kafka_assignors.weights import RateSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.lag.reader import ClusterLagSource
    from kafka_assignors.member.config import MemberConfig

    SourceOf = Callable[[LagBasedAssignor | WeightedAssignor], ClusterLagSource]

__all__ = ["with_sources"]

Config = TypeVar("Config", bound="MemberConfig")


def with_sources(config: Config, source_of: SourceOf) -> Config:
    """The settings, with a complete copy of each assignor that reads a cluster and names none.

    A `LagBasedAssignor` gets the consumer's cluster in place of missing `lags`, and the consumer's group in place of a
    missing `group_id`. A `RateSource` gets the consumer's cluster in place of a missing `cluster`.

    Args:
        config: the consumer's settings.
        source_of: makes a source that reads the consumer's cluster for an assignor, within the assignor's `deadline`.
    """
    assignors = tuple(_with_source(each, config.group_id, source_of) for each in config.assignors)
    return dataclasses.replace(config, assignors=assignors)


def _with_source(assignor: Assignor, group_id: str, source_of: SourceOf) -> Assignor:
    if isinstance(assignor, LagBasedAssignor):
        if assignor.lags is None:
            assignor = dataclasses.replace(assignor, lags=source_of(assignor))
        return assignor if assignor.group_id else dataclasses.replace(assignor, group_id=group_id)
    if not isinstance(assignor, WeightedAssignor) or not isinstance(assignor.weights, RateSource):
        return assignor
    if assignor.weights.cluster is not None:
        return assignor
    return dataclasses.replace(assignor, weights=assignor.weights.of(source_of(assignor)))
