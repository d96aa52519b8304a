"""A drop-in consumer for kafka-python 2 and 3, plug-ins of its own consumer, and a producer.

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

from kafka_assignors.clients.common.releases import incompatible, warn_if_newer
from kafka_assignors.errors import MissingDependencyError
from kafka_assignors.member.rebalance_report import RebalanceReport

try:
    import kafka
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.kafka_python needs kafka-python: pip install kafka-assignors[kafka-python]"
    ) from error

try:
    from kafka_assignors.clients.kafka_python._internals import COOPERATES
    from kafka_assignors.clients.kafka_python.assignors import (
        CustomAssignor,
        LagBasedAssignor,
        StickyAssignor,
        StickyStreamJoinAssignor,
    )
    from kafka_assignors.clients.kafka_python.consumer import KafkaConsumer
    from kafka_assignors.clients.kafka_python.diff_listener import RebalanceDiffListener
    from kafka_assignors.clients.kafka_python.errors import OptionError
    from kafka_assignors.clients.kafka_python.lag import AdminLagSource
    from kafka_assignors.clients.kafka_python.producer import (
        AdaptivePartitioner,
        DefaultPartitioner,
        KafkaProducer,
        Partitioner,
        RoundRobinPartitioner,
        UniformStickyPartitioner,
    )

    if COOPERATES:
        from kafka_assignors.clients.kafka_python.assignors import CooperativeStickyAssignor
    if hasattr(kafka, "AsyncConsumerRebalanceListener"):
        from kafka_assignors.clients.kafka_python.diff_listener import AsyncRebalanceDiffListener
except MissingDependencyError:
    raise
except (AttributeError, ImportError) as error:
    raise incompatible("kafka-python", kafka.__version__, error) from error

warn_if_newer("kafka-python", kafka.__version__)

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


# The features of kafka-python from version 3 on, by the name that needs the feature.
_NEEDS = {
    "AsyncRebalanceDiffListener": "listeners that are coroutines",
    "CooperativeStickyAssignor": "consumers that rebalance cooperatively",
}


def __getattr__(name: str) -> Any:
    if name in _NEEDS:
        raise MissingDependencyError(
            f"kafka_assignors.clients.kafka_python.{name} needs {_NEEDS[name]}, which kafka-python 3 has and "
            f"{kafka.__version__}, which is installed, has not"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
