"""Several threads, each with a consumer, until an interrupt: threads.py servers group topic number"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException

running = threading.Event()


def consume(servers: str, group: str, topic: str) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": True,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    try:
        while running.is_set():
            message = consumer.poll(timeout=0.5)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            # One write for the whole line, since other threads write, too.
            sys.stdout.write(f"{message.partition()} {message.offset()} {message.value()!r}\n")
    finally:
        consumer.close()


def main(servers: str, group: str, topic: str, number: str) -> None:
    running.set()
    threads = [threading.Thread(target=consume, args=(servers, group, topic)) for _ in range(int(number))]
    for thread in threads:
        thread.start()
    try:
        # Not `join`: in Python 3.11, an interrupted `join` takes its thread for dead.
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1)
    except KeyboardInterrupt:
        running.clear()
        for thread in threads:
            thread.join()
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
