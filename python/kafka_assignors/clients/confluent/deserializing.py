"""`DeserializingConsumer`: confluent-kafka's, on top of our `Consumer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import deserializing_consumer
from confluent_kafka.error import ConsumeError

from kafka_assignors.clients.confluent.consumer import Consumer

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["DeserializingConsumer"]


class _Raising(Consumer):
    """Our consumer, whose errors of the group are exceptions, as they are in the client's class."""

    __slots__ = ()

    def _delivered(self, message: Message) -> Any:
        error = message.error()
        assert error is not None
        raise ConsumeError(error, kafka_message=message)


# The base class is taken from the client's own module. In the client's package a tracer may have replaced the class by
# one that is not generic; the tracer still sees the calls of our `Consumer`. Up to 2.15 the client's class is not
# generic either.
if not TYPE_CHECKING and not hasattr(deserializing_consumer, "K"):

    class DeserializingConsumer(deserializing_consumer.DeserializingConsumer, _Raising):
        """`confluent_kafka.DeserializingConsumer`, with any assignor of this package."""

        def __class_getitem__(cls, types):
            # A program that writes `DeserializingConsumer[bytes, str]` must run on every release.
            return cls

else:
    from typing import Generic

    from confluent_kafka.deserializing_consumer import K, V

    class DeserializingConsumer(  # type: ignore[misc]
        deserializing_consumer.DeserializingConsumer[K, V], _Raising, Generic[K, V]
    ):
        """`confluent_kafka.DeserializingConsumer`, with any assignor of this package.

        `key.deserializer` and `value.deserializer`, the schema registry's among them, and their builders are the
        client's own, and so is what `poll` returns and raises. All else is our
        [`Consumer`][kafka_assignors.clients.confluent.Consumer]. Generic in the types of keys and values, as the
        client's.

        >>> from confluent_kafka.serialization import StringDeserializer
        >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "g"}
        >>> consumer = DeserializingConsumer[bytes, str]({**settings, "value.deserializer": StringDeserializer()})
        >>> consumer.close()
        """
