"""Lets a `RateSource` that names no cluster read the cluster of its consumer."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from kafka_assignors.weighted import WeightedAssignor
from kafka_assignors.weights import RateSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.weights import Cluster

__all__ = ["with_cluster"]


def with_cluster(assignor: Assignor, cluster: Callable[[float], Cluster]) -> Assignor:
    """The assignor; if its `RateSource` names no cluster, a copy that reads the consumer's cluster.

    Args:
        assignor: of any kind.
        cluster: makes a source that reads the consumer's cluster, within the given seconds.
    """
    if not isinstance(assignor, WeightedAssignor) or not isinstance(assignor.weights, RateSource):
        return assignor
    if assignor.weights.cluster is not None:
        return assignor
    return dataclasses.replace(assignor, weights=assignor.weights.of(cluster(assignor.deadline)))
