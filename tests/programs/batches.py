"""Reads a number of records in batches and commits each batch before the next: batches.py servers group topic count"""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition


def main(servers: str, group: str, topic: str, count: str) -> None:
    brokers: set[str] = set()
    told: list[tuple[Any, list[TopicPartition]]] = []
    settings = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "stats_cb": lambda text: brokers.update(json.loads(text)["brokers"]),
        "statistics.interval.ms": 200,
        "on_commit": lambda error, partitions: told.append((error, partitions)),
    }
    consumer = Consumer(**settings)
    consumer.subscribe([topic])
    left = int(count)
    last: Message | None = None
    while left > 0:
        messages = consumer.consume(num_messages=min(left, 7), timeout=1.0)
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            print(message.partition(), message.offset(), message.value())
            last = message
        left -= len(messages)
        if messages:
            committed = consumer.commit(asynchronous=False)
            assert committed is not None
            assert all(each.error is None for each in committed)
    assert last is not None
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], message=last)  # type: ignore[call-overload]
    except ValueError as error:
        print("refused:", error)
    consumer.commit(message=last)
    while not brokers or not any(error is None and len(partitions) == 1 for error, partitions in told):
        consumer.poll(0.1)
    share = sorted(consumer.assignment())
    print("share", [(each.topic, each.partition) for each in share])
    print("positions", [each.offset for each in sorted(consumer.position(share))])
    consumer.seek(TopicPartition(topic, 0, 0))
    again = consumer.poll(20)
    print("again", again is not None and (again.partition(), again.offset()))
    consumer.unsubscribe()
    consumer.close()
    try:
        consumer.poll(0)
    except RuntimeError as error:
        print("after the end:", error)


if __name__ == "__main__":
    main(*sys.argv[1:])
