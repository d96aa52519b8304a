"""Prints the spans of records that are sent and read: traces.py tracer client whose servers topic.

`whose` is "ours" or "theirs": the classes of this package, or those of the client. Where a client has two methods to
read, each reads half of the records. A line is a span, or the headers of a record that was read, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RECORDS = 8
GROUP = "traced"
NOTED = (
    "messaging.system",
    "messaging.destination",
    "messaging.destination.name",
    "messaging.destination.partition.id",
    "messaging.kafka.partition",
    "messaging.kafka.message.offset",
    "messaging.kafka.consumer.group",
    "messaging.consumer.group.name",
    "messaging.message.id",
    "messaging.operation",
    "messaging.operation.name",
    "kafka.topic",
    "kafka.partition",
    "kafka.message_offset",
    "kafka.message_key",
    "kafka.group_id",
    "kafka.received_message",
    "component",
    "span.kind",
)


def opentelemetry(client: str) -> Callable[[], list[tuple[str, Mapping[str, Any]]]]:
    """Instruments the client; the returned function gives the names and attributes of all spans."""
    from importlib import import_module

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    module, name = {
        "kafka-python": ("kafka", "KafkaInstrumentor"),
        "aiokafka": ("aiokafka", "AIOKafkaInstrumentor"),
        "confluent": ("confluent_kafka", "ConfluentKafkaInstrumentor"),
    }[client]
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    getattr(import_module(f"opentelemetry.instrumentation.{module}"), name)().instrument(tracer_provider=provider)
    return lambda: [(span.name, span.attributes) for span in exporter.get_finished_spans()]


def datadog(client: str) -> Callable[[], list[tuple[str, Mapping[str, Any]]]]:
    """Like `opentelemetry`, with Datadog's library."""
    import ddtrace
    from ddtrace.trace import TraceFilter, tracer

    spans: list[Any] = []

    class Collecting(TraceFilter):  # type: ignore[misc]
        def process_trace(self, trace: list[Any]) -> None:
            spans.extend(trace)

    tracer.configure(trace_processors=[Collecting()])
    ddtrace.patch(raise_errors=True, **{{"aiokafka": "aiokafka", "confluent": "kafka"}[client]: True})
    return lambda: [(span.name, {**span.get_tags(), **span.get_metrics()}) for span in spans]


def settings(whose: str, servers: str) -> dict[str, Any]:
    own = {"partition_assignment_strategy": "cooperative-sticky"} if whose == "ours" else {}
    return {"bootstrap_servers": servers, "group_id": GROUP, "auto_offset_reset": "earliest", **own}


def note(read: list[dict[str, Any]], headers: Any) -> None:
    """Adds the names of a record's headers, by which a tracer joins the spans of its reader and its sender."""
    read.append({name: "" for name, _ in sorted(headers or ())})


def kafka_python(whose: str, servers: str, topic: str) -> list[dict[str, Any]]:
    import kafka

    from kafka_assignors.clients import kafka_python as ours

    consuming, producing = (kafka.KafkaConsumer, kafka.KafkaProducer)
    if whose == "ours":
        consuming, producing = ours.KafkaConsumer, ours.KafkaProducer
    read: list[dict[str, Any]] = []
    with producing(bootstrap_servers=servers) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, partition=0).get(30)
    with consuming(topic, **settings(whose, servers)) as consumer:
        for _ in range(RECORDS):
            note(read, next(consumer).headers)
    return read


async def aiokafka(whose: str, servers: str, topic: str) -> list[dict[str, Any]]:
    import aiokafka

    from kafka_assignors.clients import aiokafka as ours

    package: Any = ours if whose == "ours" else aiokafka
    read: list[dict[str, Any]] = []
    async with package.AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(RECORDS):
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
    async with package.AIOKafkaConsumer(topic, **settings(whose, servers)) as consumer:
        for _ in range(RECORDS // 2):
            note(read, (await consumer.getone()).headers)
        while len(read) < RECORDS:
            for records in (await consumer.getmany(timeout_ms=1000, max_records=1)).values():
                for record in records:
                    note(read, record.headers)
    return read


def confluent(whose: str, servers: str, topic: str) -> list[dict[str, Any]]:
    import confluent_kafka

    from kafka_assignors import DefaultPartitioner
    from kafka_assignors.clients import confluent as ours

    package: Any = ours if whose == "ours" else confluent_kafka
    read: list[dict[str, Any]] = []
    placing = {"partitioner": DefaultPartitioner()} if whose == "ours" else {}
    for own in ({}, placing):
        producer = package.Producer({"bootstrap.servers": servers, **own})
        for number in range(RECORDS // 2):
            producer.produce(topic, b"%d" % number, key=b"k", partition=0)
        producer.flush(30)
    chosen = {each.replace("_", "."): value for each, value in settings(whose, servers).items()}
    consumer = package.Consumer(chosen)
    consumer.subscribe([topic])
    while len(read) < RECORDS // 2:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            note(read, message.headers())
    while len(read) < RECORDS:
        for message in consumer.consume(1, 1.0):
            note(read, message.headers())
    consumer.close()
    # The classes that (de)serialize.
    package.SerializingProducer({"bootstrap.servers": servers}).flush(1)
    package.DeserializingConsumer(chosen).close()
    return read


def main(tracer: str, client: str, whose: str, servers: str, topic: str) -> None:
    spans = {"opentelemetry": opentelemetry, "ddtrace": datadog}[tracer](client)
    if client == "aiokafka":
        read = asyncio.run(aiokafka(whose, servers, topic))
    else:
        read = {"kafka-python": kafka_python, "confluent": confluent}[client](whose, servers, topic)
    for name, found in [*spans(), *(("headers", each) for each in read)]:
        print(json.dumps([name, {each: str(found[each]) for each in found if each in NOTED or name == "headers"}]))


if __name__ == "__main__":
    main(*sys.argv[1:])
