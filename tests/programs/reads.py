"""Prints the records of topics until it is interrupted: reads.py servers group topic ..."""

from __future__ import annotations

import logging
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException


def main(servers: str, group: str, *topics: str) -> None:
    logger = logging.getLogger("reads")
    logger.addHandler(logging.StreamHandler())
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "session.timeout.ms": 6000,
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "error_cb": lambda error: logger.error("error: %s", error),
        },
        logger=logger,
    )

    def assigned(_: Any, partitions: list[Any]) -> None:
        print("assigned", sorted((each.topic, each.partition) for each in partitions))

    def revoked(_: Any, partitions: list[Any]) -> None:
        print("revoked", sorted((each.topic, each.partition) for each in partitions))

    consumer.subscribe(list(topics), on_assign=assigned, on_revoke=revoked)
    try:
        while True:
            message = consumer.poll(timeout=1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                print(message.topic(), message.partition(), message.offset(), message.key(), message.value())
                # The record is processed, so that the next commit may include its offset.
                consumer.store_offsets(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                print("end of", message.topic(), message.partition(), "at", message.offset())
            else:
                raise KafkaException(error)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        consumer.close()
        print("closed")


if __name__ == "__main__":
    main(*sys.argv[1:])
