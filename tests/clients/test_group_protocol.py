"""The settings of a group that the broker plans (KIP-848): which of them a client refuses before any request."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import confluent_kafka
import pytest

from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.common.group_protocol import broker_expression
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.errors import OptionError

BAD = [
    ({"group_protocol": "streams"}, "give 'classic' or 'consumer'"),
    ({"group_protocol": 1}, "give 'classic' or 'consumer'"),
    ({"group_remote_assignor": "range"}, "needs group_protocol='consumer'"),
    ({"group_protocol": "consumer", "group_remote_assignor": ""}, "name of a broker's assignor"),
    (
        {"group_protocol": "consumer", "partition_assignment_strategy": "sticky"},
        "partition_assignment_strategy cannot be set .* group_remote_assignor",
    ),
    ({"group_protocol": "consumer", "session_timeout_ms": 20_000}, "consumer.session.timeout.ms"),
    ({"group_protocol": "CONSUMER", "heartbeat_interval_ms": 1_000}, "consumer.heartbeat.interval.ms"),
    ({"group_protocol": "consumer", "on_broker_assignor": "carry-on"}, "on_broker_assignor cannot be set"),
]


@pytest.mark.parametrize(("settings", "sentence"), BAD)
def test_kafka_python_refuses(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        KafkaConsumer(group_id="g", bootstrap_servers="127.0.0.1:1", **settings)


@pytest.mark.parametrize(("settings", "sentence"), BAD)
def test_aiokafka_refuses(settings: dict[str, Any], sentence: str) -> None:
    async def make() -> None:
        AIOKafkaConsumer(group_id="g", bootstrap_servers="127.0.0.1:1", **settings)

    with pytest.raises(OptionError, match=sentence):
        asyncio.run(make())


def test_confluent_leaves_it_to_librdkafka(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "group.protocol": "Consumer"}
    made = Consumer(settings, **{"group.remote.assignor": "range"})
    made.close()
    assert type(made) is confluent_kafka.Consumer
    assert "group 'g': group.protocol is 'consumer', which librdkafka speaks itself" in caplog.text
    for name in ("on_rebalance", "on_broker_assignor", "partition.assignment.strategy"):
        with pytest.raises(confluent_kafka.KafkaException, match=f"{name} cannot be set when group.protocol"):
            Consumer({**settings, name: "range"})

    class Own(Consumer):
        pass

    with pytest.raises(confluent_kafka.KafkaException, match="librdkafka speaks that protocol itself"):
        Own(settings)


@pytest.mark.parametrize("pattern", ["orders-", "a|b", "x$", "^y", "(?:z)+"])
def test_the_brokers_expression_matches_what_the_clients_does(pattern: str) -> None:
    """The broker matches an expression with the whole name, and `re.match` with its beginning."""
    for name in ("orders-1", "orders", "a", "ab", "cb", "x", "xx", "y1", "zz-1"):
        ours = re.fullmatch(broker_expression(pattern), name) is not None
        assert ours == (re.match(pattern, name) is not None), name
