"""Prints a group's commits and lags without joining it: lags.py servers group topic ..."""

from __future__ import annotations

import sys

import confluent_kafka


def main(servers: str, group: str, *topics: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": group})
    for topic in topics:
        metadata = consumer.list_topics(topic, timeout=10).topics[topic]
        if metadata.error is not None:
            raise confluent_kafka.KafkaException(metadata.error)
        partitions = [confluent_kafka.TopicPartition(topic, number) for number in sorted(metadata.partitions)]
        for partition in consumer.committed(partitions, timeout=10):
            low, high = consumer.get_watermark_offsets(partition, timeout=10, cached=False)
            started = partition.offset != confluent_kafka.OFFSET_INVALID
            lag = high - (partition.offset if started else low)
            print(partition.topic, partition.partition, partition.offset if started else "-", lag)
        first = consumer.offsets_for_times([confluent_kafka.TopicPartition(topic, 0, 0)], timeout=10)
        print("since 1970", [(each.partition, each.offset) for each in first])
    print("assigned", consumer.assignment())
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
