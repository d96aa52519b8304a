"""Our `DeserializingConsumer` with confluent's schema-registry deserializers and confluent's own mock registry."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.error import ConsumeError, ValueDeserializationError
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroDeserializerBuilder, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONDeserializerBuilder, JSONSerializer
from confluent_kafka.schema_registry.protobuf import (
    ProtobufDeserializer,
    ProtobufDeserializerBuilder,
    ProtobufSerializer,
)
from confluent_kafka.serialization import StringDeserializer, StringSerializer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kafka_assignors.clients.confluent import DeserializingConsumer, SerializingProducer
from support.broker import Kafka, unique
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 4


@dataclass(frozen=True)
class Order:
    article: str
    count: int


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "article", "type": "string"}, {"name": "count", "type": "int"}],
    }
)
JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"article": {"type": "string"}, "count": {"type": "integer", "minimum": 0}},
        "required": ["article", "count"],
    }
)


def message_type() -> Any:
    """The class of a message Order, as protoc would generate it."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    field = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate((("article", field.TYPE_STRING), ("count", field.TYPE_INT32)), 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


MESSAGE = message_type()


def to_dict(order: Any, _: Any) -> dict[str, Any]:
    return asdict(order)


def from_dict(found: dict[str, Any], _: Any) -> Order:
    return Order(**found)


class Format:
    """A format of orders: the serialization of the values, and two settings with which the client reads them."""

    def __init__(self, kind: str, registry: Any) -> None:
        self.kind = kind
        conf = {"use.deprecated.format": False}
        self.serializer: Any
        self.ready_made: Callable[[], Any]
        self.builder: Any
        if kind == "avro":
            self.serializer = AvroSerializer(registry, AVRO, to_dict)
            self.ready_made = lambda: AvroDeserializer(registry, AVRO, from_dict)
            self.builder = AvroDeserializerBuilder(schema_registry_client=registry, from_dict=from_dict)
        elif kind == "json":
            self.serializer = JSONSerializer(JSON, registry, to_dict)
            self.ready_made = lambda: JSONDeserializer(JSON, from_dict)
            self.builder = JSONDeserializerBuilder(schema_registry_client=registry, schema=JSON, from_dict=from_dict)
        else:
            self.serializer = ProtobufSerializer(MESSAGE, registry, conf)
            self.ready_made = lambda: ProtobufDeserializer(MESSAGE, conf)
            self.builder = ProtobufDeserializerBuilder(
                schema_registry_client=registry, message_type=MESSAGE, deserializer_config=conf
            )

    def value(self, order: Order) -> Any:
        """The serializer's argument."""
        return MESSAGE(**asdict(order)) if self.kind == "protobuf" else order

    def order(self, value: Any) -> Order:
        """The order of the deserializer's result."""
        if self.kind == "protobuf":
            assert isinstance(value, MESSAGE)
            return Order(value.article, value.count)
        assert isinstance(value, Order)
        return value

    def settings(self, *, built: bool) -> dict[str, Any]:
        values = {"value.deserializer.builder": self.builder} if built else {"value.deserializer": self.ready_made()}
        return {"key.deserializer": StringDeserializer(), **values}


@pytest.fixture(params=["avro", "json", "protobuf"])
def form(request: pytest.FixtureRequest) -> Format:
    return Format(request.param, SchemaRegistryClient.new_client({"url": "mock://"}))


def write(kafka: Kafka, topic: str, form: Format, orders: list[Order]) -> None:
    settings = {"key.serializer": StringSerializer(), "value.serializer": form.serializer}
    producer: Any = SerializingProducer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0} | settings)
    for number, order in enumerate(orders):
        producer.produce(topic, key=f"k{order.count}", value=form.value(order), partition=number % PARTITIONS)
    assert producer.flush(TIMEOUT) == 0
    producer.close()


def member(kafka: Kafka, group: str, topic: str, settings: dict[str, Any]) -> Any:
    common = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "partition.assignment.strategy": "sticky",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 200,
        "log_level": 0,
    }
    consumer: Any = DeserializingConsumer[str, Any](common | settings)
    consumer.subscribe([topic])
    return consumer


def read(consumers: list[Any], form: Format, enough: Callable[[Counter[Order]], bool]) -> Counter[Order]:
    """Polls the consumers in turn; returns the orders that they read."""
    orders: Counter[Order] = Counter()
    deadline = time.monotonic() + TIMEOUT
    while not enough(orders):
        assert time.monotonic() < deadline, f"{orders}, {[each.assignment() for each in consumers]}"
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None:
                order = form.order(message.value())
                assert message.deserialized_value() is message.value()
                assert message.key() == message.deserialized_key() == f"k{order.count}"
                orders[order] += 1
    return orders


@pytest.mark.parametrize("built", [False, True], ids=["ready-made", "built"])
def test_values_of_a_group_that_rebalances(any_kafka: Kafka, form: Format, built: bool) -> None:
    topic, group = any_kafka.create_topic(unique("topic"), PARTITIONS), unique("group")
    first_orders = [Order("book", number) for number in range(40)]
    write(any_kafka, topic, form, first_orders)
    first = member(any_kafka, group, topic, form.settings(built=built))
    seen = read([first], form, lambda orders: len(orders) == 40)
    second = member(any_kafka, group, topic, form.settings(built=built))
    both = [first, second]
    seen += read(both, form, lambda _: [len(each.assignment()) for each in both] == [2, 2])
    later = [Order("pen", number) for number in range(20)]
    write(any_kafka, topic, form, later)
    seen += read(both, form, lambda orders: len(orders) >= 20)
    # The first consumer committed before it gave up two partitions, so that no record is read twice.
    assert seen == Counter(first_orders + later)
    plans = [plan for plan in (each.plan() for each in both) if plan is not None]
    assert plans
    for consumer in both:
        consumer.close()
        with pytest.raises(RuntimeError):
            consumer.poll(0)


def test_a_value_that_is_none_of_the_registrys(any_kafka: Kafka, form: Format) -> None:
    """`poll` raises the client's error, which contains the message. The next call reads on after that message."""
    topic, group = any_kafka.create_topic(unique("topic"), PARTITIONS), unique("group")
    plain: Any = SerializingProducer({"bootstrap.servers": any_kafka.bootstrap_servers, "log_level": 0})
    plain.produce(topic, key=b"k", value=b"no magic byte in front", partition=0)
    assert plain.flush(TIMEOUT) == 0
    plain.close()
    write(any_kafka, topic, form, [Order("book", 1)])
    with member(any_kafka, group, topic, form.settings(built=False)) as consumer:

        def until_refused() -> None:
            deadline = time.monotonic() + TIMEOUT
            while time.monotonic() < deadline:
                consumer.poll(0.1)

        with pytest.raises(ValueDeserializationError) as refused:
            until_refused()
        assert refused.value.kafka_message is not None
        assert refused.value.kafka_message.offset() == 0
        assert read([consumer], form, lambda orders: len(orders) == 1) == Counter([Order("book", 1)])


def test_an_error_of_the_group_is_a_consume_error(any_kafka: Kafka) -> None:
    """As in the client: `Consumer.poll` returns such an error as a message, `DeserializingConsumer.poll` raises it."""
    topic, group = any_kafka.create_topic(unique("topic"), 1), unique("group")
    tight = {"max.poll.interval.ms": 3000, "session.timeout.ms": 3000, "value.deserializer": StringDeserializer()}

    def until(true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < deadline
            assert consumer.poll(0.1) is None

    with member(any_kafka, group, topic, tight) as consumer:
        until(lambda: len(consumer.assignment()) == 1)
        wait_until(lambda: consumer._group.member.is_lost, "it has not polled for too long")
        with pytest.raises(ConsumeError, match="maximum poll interval"):
            until(lambda: False)
        until(lambda: len(consumer.assignment()) == 1)
