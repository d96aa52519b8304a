"""Writes and reads with the `with` statement: contexts.py servers group topic"""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import Consumer, Producer


def main(servers: str, group: str, topic: str) -> None:
    def delivered(error: Any, message: Any) -> None:
        print("delivered", error, message.topic(), message.partition(), message.offset())

    with Producer({"bootstrap.servers": servers}) as producer:
        for number in range(5):
            producer.produce(topic, key=f"k{number}", value=f"v{number}".encode(), partition=0, callback=delivered)
            producer.poll(0)
    settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        read = 0
        while read < 5:
            message = consumer.poll(timeout=1.0)
            if message is None:
                continue
            if message.error():
                print("error", message.error())
                break
            print("read", message.key(), message.value(), message.partition(), message.offset())
            read += 1
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
