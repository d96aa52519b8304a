"""The sticky assignors, the stream join, the lag-based assignor, and the producer's partitioners for kafka-python 3.

>>> from kafka_assignors.clients.kafka_python import StickyAssignor
>>> from functools import partial
>>> strategies = [StickyAssignor]                      # a class, or an instance per consumer, or a factory:
>>> strategies = [partial(StickyAssignor, rack="a")]

    consumer = KafkaConsumer("orders", group_id="g", partition_assignment_strategy=[StickyAssignor])

The assignor finds the consumer's membership by itself. `attach(consumer)`, right after the constructor, is only needed
with an interpreter that does not show a caller's frame.

`KafkaProducer` is kafka-python's, with a partitioner that is sticky as in Java.
"""

from kafka_assignors.errors import MissingDependencyError
from kafka_assignors.member.rebalance_report import RebalanceReport

try:
    # Before version 3 there is no such class.
    from kafka import AsyncConsumerRebalanceListener  # noqa: F401

    from kafka_assignors.clients.kafka_python.assignors import (
        CooperativeStickyAssignor,
        CustomAssignor,
        LagBasedAssignor,
        StickyAssignor,
        StickyStreamJoinAssignor,
    )
    from kafka_assignors.clients.kafka_python.diff_listener import AsyncRebalanceDiffListener, RebalanceDiffListener
    from kafka_assignors.clients.kafka_python.lag import AdminLagSource
    from kafka_assignors.clients.kafka_python.producer import (
        AdaptivePartitioner,
        DefaultPartitioner,
        KafkaProducer,
        Partitioner,
        RoundRobinPartitioner,
        UniformStickyPartitioner,
    )
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.kafka_python needs kafka-python 3: pip install kafka-assignors[kafka-python]"
    ) from error

__all__ = [
    "AdaptivePartitioner",
    "AdminLagSource",
    "AsyncRebalanceDiffListener",
    "CooperativeStickyAssignor",
    "CustomAssignor",
    "DefaultPartitioner",
    "KafkaProducer",
    "LagBasedAssignor",
    "Partitioner",
    "RebalanceDiffListener",
    "RebalanceReport",
    "RoundRobinPartitioner",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "UniformStickyPartitioner",
]
