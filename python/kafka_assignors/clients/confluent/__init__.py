"""The drop-ins for confluent-kafka: each class has the name and the methods of the client's own.

>>> from kafka_assignors import DefaultPartitioner
>>> from kafka_assignors.clients.confluent import Consumer, Producer
>>> with Producer({"bootstrap.servers": "localhost:9092"}, partitioner=DefaultPartitioner()) as producer:
...     pass
>>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "billing"}
>>> with Consumer({**settings, "partition.assignment.strategy": "cooperative-sticky"}) as consumer:
...     pass
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kafka_assignors.clients.common.releases import incompatible, warn_if_newer
from kafka_assignors.errors import KafkaAssignorsError, MissingDependencyError

if TYPE_CHECKING:
    from kafka_assignors.clients.confluent.aio import AIOConsumer
    from kafka_assignors.clients.confluent.consumer import Consumer
    from kafka_assignors.clients.confluent.deserializing import DeserializingConsumer
    from kafka_assignors.clients.confluent.diff_listener import RebalanceDiffListener
    from kafka_assignors.clients.confluent.errors import OptionError
    from kafka_assignors.clients.confluent.producer import Producer, SerializingProducer
    from kafka_assignors.clients.confluent.topic_metadata import TopicMetadataError
    from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = [
    "AIOConsumer",
    "Consumer",
    "DeserializingConsumer",
    "OptionError",
    "Producer",
    "RebalanceDiffListener",
    "RebalanceReport",
    "SerializingProducer",
    "TopicMetadataError",
]

_MODULES = {
    "AIOConsumer": "kafka_assignors.clients.confluent.aio",
    "Consumer": "kafka_assignors.clients.confluent.consumer",
    "DeserializingConsumer": "kafka_assignors.clients.confluent.deserializing",
    "OptionError": "kafka_assignors.clients.confluent.errors",
    "Producer": "kafka_assignors.clients.confluent.producer",
    "RebalanceDiffListener": "kafka_assignors.clients.confluent.diff_listener",
    "RebalanceReport": "kafka_assignors.member.rebalance_report",
    "SerializingProducer": "kafka_assignors.clients.confluent.producer",
    "TopicMetadataError": "kafka_assignors.clients.confluent.topic_metadata",
}


# Whether the release of the client has been checked.
_looked = False


def __getattr__(name: str) -> Any:
    """Imports a class when it is first asked for, so that a producer does not load the consumer's modules."""
    global _looked
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(importlib.import_module(_MODULES[name]), name)
    except KafkaAssignorsError:
        raise
    except (AttributeError, ImportError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "confluent_kafka":
            raise MissingDependencyError(
                "kafka_assignors.clients.confluent needs confluent-kafka: pip install kafka-assignors[confluent]"
            ) from error
        # A bare AttributeError would only say that this module has no such name.
        raise incompatible("confluent-kafka", _release(), error) from error
    if not _looked:
        _looked = True
        warn_if_newer("confluent-kafka", _release())
    return found


def _release() -> str:
    release: str = importlib.import_module("confluent_kafka").__version__
    return release
