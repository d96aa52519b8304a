"""The lag of partitions: its definition and its sources.

The lag of a partition is the number of records that a group has still to read. Here is the formula
([`partition_lag`][kafka_assignors.lag.partition_lag]), the interface of a source of lags
([`LagSource`][kafka_assignors.lag.LagSource]; one that reads a live cluster is
[`ConfluentLagSource`][kafka_assignors.lag.ConfluentLagSource]), and the lag of each member in a plan
([`lag_by_member`][kafka_assignors.lag.lag_by_member]).

>>> partition_lag(begin=1_000, end=9_000, committed=6_500, reset="latest")
2500
"""

from kafka_assignors.lag.confluent import ConfluentLagSource
from kafka_assignors.lag.reader import check_reading
from kafka_assignors.lag.source import Inquiry, LagFunction, LagSource, check_source, gather
from kafka_assignors.lag.values import Lags, lag_by_member, lags_of, partition_lag

__all__ = [
    "ConfluentLagSource",
    "Inquiry",
    "LagFunction",
    "LagSource",
    "Lags",
    "check_reading",
    "check_source",
    "gather",
    "lag_by_member",
    "lags_of",
    "partition_lag",
]
