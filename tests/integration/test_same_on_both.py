"""The three Python clients with their own strategies see no difference between the embedded and the real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.broker import unique
from support.threads import CLIENTS, CONSUMERS, Client, Consumer, produce, wait_until

if TYPE_CHECKING:
    from support.broker import Kafka

every_client = pytest.mark.parametrize("client", CLIENTS)


@every_client
def test_the_next_reader_goes_on_where_the_last_one_committed(any_kafka: Kafka, client: Client) -> None:
    topic, group = any_kafka.create_topic(unique("orders"), 3), unique("readers")
    for label in (b"first", b"second"):
        values = [label + b" %d" % number for number in range(100)]
        produce(client, any_kafka.bootstrap_servers, topic, values)
        with CONSUMERS[client](any_kafka.bootstrap_servers, group, topic) as consumer:
            wait_until(lambda: consumer.read.total() >= 100, f"the {label!r} values")
            consumer.close()
        assert consumer.read == dict.fromkeys(values, 1)


@every_client
def test_members_join_see_the_topic_grow_and_leave(any_kafka: Kafka, client: Client) -> None:
    topic, group = any_kafka.create_topic(unique("orders"), 4), unique("readers")

    def member() -> Consumer:
        return CONSUMERS[client](any_kafka.bootstrap_servers, group, topic)

    def shared(count: int, *members: Consumer) -> None:
        wanted = {(topic, partition) for partition in range(count)}

        def settled() -> bool:
            held = [partition for each in members for partition in each.held]
            return len(held) == count and set(held) == wanted and all(each.held for each in members)

        wait_until(settled, f"{len(members)} members share {count} partitions")

    with member() as one:
        shared(4, one)
        with member() as two:
            shared(4, one, two)
            assert len(any_kafka.describe_group(group).assignment) == 2
            any_kafka.grow_topic(topic, 6)
            shared(6, one, two)
            one.close()
            shared(6, two)
            two.close()
    wait_until(lambda: not any_kafka.describe_group(group).assignment, "the group is empty")
