"""The time that our confluent producer adds to a call of `produce`."""

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from ratios import Interleaved, Ratio, check_bounds

from kafka_assignors import DefaultPartitioner
from kafka_assignors.clients.confluent import Producer
from kafka_assignors.embedded import EmbeddedKafka

CALLS = 20_000
VALUE = bytes(80)
NAMES = ("a partitioner of ours", "none of ours")

check_bounds("confluent-kafka", NAMES)


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 16}) as kafka:
        yield kafka


def calls(producer: confluent_kafka.Producer) -> Callable[[], None]:
    """Many calls. The records in the queue are purged."""
    produce, purge, flush = producer.produce, producer.purge, producer.flush
    # The first record to a topic waits for its metadata.
    produce("orders", VALUE)

    def run() -> None:
        for _ in range(CALLS):
            produce("orders", VALUE)
        purge()
        flush(30)

    return run


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_produce(kafka: EmbeddedKafka, interleaved: Interleaved, ratio: Ratio, name: str) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 60_000, "log_level": 0}
    ours = Producer(settings, partitioner=DefaultPartitioner() if name.startswith("a ") else None)
    bare = confluent_kafka.Producer(settings)
    with ours, bare:
        mine, theirs = interleaved(calls(ours), calls(bare), 7)
    ratio.at_most("confluent-kafka", name, mine / CALLS, theirs / CALLS, "a record, produced and thrown away")
