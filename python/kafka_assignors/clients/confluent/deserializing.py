"""`DeserializingConsumer`: confluent-kafka's, on top of our `Consumer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import confluent_kafka
from confluent_kafka.deserializing_consumer import K, V
from confluent_kafka.error import ConsumeError

from kafka_assignors.clients.confluent.consumer import Consumer

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["DeserializingConsumer"]


class DeserializingConsumer(confluent_kafka.DeserializingConsumer[K, V], Consumer, Generic[K, V]):  # type: ignore[misc]
    """`confluent_kafka.DeserializingConsumer`, with any assignor of this package.

    `key.deserializer` and `value.deserializer`, the schema registry's among them, and their builders are the client's
    own, and so is what `poll` returns and raises. All else is our
    [`Consumer`][kafka_assignors.clients.confluent.Consumer]. Generic in the types of keys and values, as the client's.

    >>> from confluent_kafka.serialization import StringDeserializer
    >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "g", "partition.assignment.strategy": "sticky"}
    >>> consumer = DeserializingConsumer[bytes, str]({**settings, "value.deserializer": StringDeserializer()})
    >>> consumer.close()
    """

    def _delivered(self, message: Message) -> Any:
        error = message.error()
        assert error is not None
        raise ConsumeError(error, kafka_message=message)
