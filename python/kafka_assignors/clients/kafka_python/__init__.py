"""A drop-in consumer for kafka-python 2 and 3; and for version 3 plug-ins of its own consumer, and a producer.

>>> from kafka_assignors.clients.kafka_python import KafkaConsumer

`KafkaConsumer` is kafka-python's, in a group whose membership is this package's. Only the import changes.

    consumer = KafkaConsumer("orders", group_id="g", partition_assignment_strategy="cooperative-sticky")

The plug-ins are for programs that can change a list of strategies and not a class:

>>> from kafka_assignors.clients.kafka_python import StickyAssignor
>>> from functools import partial
>>> strategies = [StickyAssignor]                      # a class, or an instance per consumer, or a factory:
>>> strategies = [partial(StickyAssignor, rack="a")]

A plug-in finds the consumer's membership by itself. `attach(consumer)`, right after the constructor, is only needed
with an interpreter that does not show a caller's frame.

`KafkaProducer` is kafka-python's, with a partitioner that is sticky as in Java.
"""

from typing import Any

from kafka_assignors.errors import MissingDependencyError

try:
    import kafka
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.kafka_python needs kafka-python: pip install kafka-assignors[kafka-python]"
    ) from error

from kafka_assignors.clients.kafka_python.consumer import KafkaConsumer
from kafka_assignors.clients.kafka_python.diff_listener import RebalanceDiffListener
from kafka_assignors.clients.kafka_python.errors import OptionError
from kafka_assignors.member.rebalance_report import RebalanceReport

try:
    # Before version 3 there is no such class.
    from kafka import AsyncConsumerRebalanceListener
except ImportError:
    _HAS_PLUG_INS = False
else:
    _HAS_PLUG_INS = AsyncConsumerRebalanceListener is not None

    from kafka_assignors.clients.kafka_python.assignors import (
        CooperativeStickyAssignor,
        CustomAssignor,
        LagBasedAssignor,
        StickyAssignor,
        StickyStreamJoinAssignor,
    )
    from kafka_assignors.clients.kafka_python.diff_listener import AsyncRebalanceDiffListener
    from kafka_assignors.clients.kafka_python.lag import AdminLagSource
    from kafka_assignors.clients.kafka_python.producer import (
        AdaptivePartitioner,
        DefaultPartitioner,
        KafkaProducer,
        Partitioner,
        RoundRobinPartitioner,
        UniformStickyPartitioner,
    )

__all__ = [
    "AdaptivePartitioner",
    "AdminLagSource",
    "AsyncRebalanceDiffListener",
    "CooperativeStickyAssignor",
    "CustomAssignor",
    "DefaultPartitioner",
    "KafkaConsumer",
    "KafkaProducer",
    "LagBasedAssignor",
    "OptionError",
    "Partitioner",
    "RebalanceDiffListener",
    "RebalanceReport",
    "RoundRobinPartitioner",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "UniformStickyPartitioner",
]


def __getattr__(name: str) -> Any:
    if name in __all__ and not _HAS_PLUG_INS:
        raise MissingDependencyError(
            f"kafka_assignors.clients.kafka_python.{name} needs kafka-python 3, and {kafka.__version__} is installed: "
            "pip install kafka-assignors[kafka-python]"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
