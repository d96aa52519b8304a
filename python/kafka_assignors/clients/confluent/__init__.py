"""The drop-ins for confluent-kafka: each class has the name and the methods of the client's own.

>>> from kafka_assignors import DefaultPartitioner
>>> from kafka_assignors.clients.confluent import Producer
>>> with Producer({"bootstrap.servers": "localhost:9092"}, partitioner=DefaultPartitioner()) as producer:
...     pass
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_assignors.clients.confluent.producer import Producer, SerializingProducer

__all__ = ["Producer", "SerializingProducer"]

_MODULES = {"Producer": "producer", "SerializingProducer": "producer"}


def __getattr__(name: str) -> Any:
    """Imports a class when it is first asked for, so that a producer does not load the consumer's modules."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
