"""Prints records written with a schema until it is interrupted: deserializes.py servers group topic

Avro, in bytes that are framed for a schema registry, which here is the client's own mock.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, DeserializingConsumer, SerializingProducer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, StringDeserializer, StringSerializer

SCHEMA = json.dumps({"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]})


@dataclass
class User:
    name: str


def main(servers: str, group: str, topic: str) -> None:
    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    registry.register_schema(f"{topic}-value", Schema(SCHEMA, "AVRO"))
    producer: Any = SerializingProducer(
        {
            "bootstrap.servers": servers,
            "key.serializer": StringSerializer("utf_8"),
            "value.serializer": AvroSerializer(registry, SCHEMA, lambda user, _: vars(user)),
        }
    )
    for number in range(5):
        producer.produce(topic=topic, key=str(number), value=User(f"user {number}"))
    producer.flush()
    deserializer = AvroDeserializer(registry, SCHEMA, lambda found, _: User(**found))
    common = {"bootstrap.servers": servers, "auto.offset.reset": "earliest"}
    plain = Consumer(common | {"group.id": group})
    whole: Any = DeserializingConsumer(
        common
        | {
            "group.id": f"{group}-2",
            "key.deserializer": StringDeserializer("utf_8"),
            "value.deserializer": deserializer,
        }
    )
    plain.subscribe([topic])
    whole.subscribe([topic])
    try:
        while True:
            message = plain.poll(0.2)
            if message is not None and message.error() is None:
                user = deserializer(message.value(), SerializationContext(topic, MessageField.VALUE))
                print("plain", message.key(), user)
            message = whole.poll(0.2)
            if message is not None:
                print("whole", message.key(), message.value())
    except KeyboardInterrupt:
        print("interrupted")
    plain.close()
    whole.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
