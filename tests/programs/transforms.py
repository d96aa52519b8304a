"""Reads, transforms and writes exactly once: transforms.py servers group topic into count assign|subscribe"""

from __future__ import annotations

import sys
from base64 import b64encode
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition


def main(servers: str, group: str, topic: str, into: str, count: str, how: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    if how == "assign":
        consumer.assign([TopicPartition(topic, 0)])
    else:
        consumer.subscribe([topic])
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"transforms-{group}"})
    producer.init_transactions()
    producer.begin_transaction()

    def failed(error: Any, _: Any) -> None:
        if error is not None:
            print("not delivered:", error)

    def commit() -> None:
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
        producer.commit_transaction()

    read = 0
    ends: set[int | None] = set()
    while read < int(count) or not ends:
        producer.poll(0)
        message = consumer.poll(timeout=1.0)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                ends.add(message.partition())
            continue
        ends.discard(message.partition())
        value = message.value()
        producer.produce(into, b64encode(value or b""), message.key(), on_delivery=failed)
        read += 1
        if read % 10 == 0:
            print("commit at", read)
            commit()
            producer.begin_transaction()
    commit()
    print("read", read)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
