"""Differences between the releases of confluent-kafka. The tests run on every release."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition

from kafka_assignors import OptionError
from kafka_assignors.clients import confluent
from kafka_assignors.clients.confluent import _internals, native_close, times
from kafka_assignors.clients.confluent.config import ConsumerConfig
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import MissingDependencyError
from support.broker import Kafka
from support.confluent_group import fill
from support.features import has, release_has

NOBODY: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}

# A call after `close`. Up to 2.15 some of these calls crash in the client's own class.
CLOSED = """
import sys
from confluent_kafka import TopicPartition
from kafka_assignors.clients.confluent import {kind}
client = {kind}({settings!r})
client.close()
try:
    client.{call}
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("pause([TopicPartition('t', 0)])", "Consumer closed"),
        ("resume([TopicPartition('t', 0)])", "Consumer closed"),
        ("seek(TopicPartition('t', 0, 0))", "Consumer closed"),
        ("poll(0)", "Consumer closed"),
        ("list_topics(timeout=1)", "Handle has been closed"),
        ("set_sasl_credentials('user', 'password')", "Handle has been closed"),
    ],
)
def test_a_closed_consumer_says_so_and_does_not_crash(call: str, said: str) -> None:
    """The call runs in a process of its own, since a crash would end the process."""
    program = CLOSED.format(kind="Consumer", settings=NOBODY, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr


@release_has("Producer.close")
def test_a_closed_producer_does_not_crash_over_credentials() -> None:
    settings = {name: value for name, value in NOBODY.items() if name != "group.id"}
    program = CLOSED.format(kind="Producer", settings=settings, call="set_sasl_credentials('user', 'password')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "Handle has been closed"), done.stderr


@pytest.mark.parametrize(("name", "feature"), [("produce_batch", "produce_batch"), ("close", "Producer.close")])
def test_what_the_release_lacks_is_absent_with_one_sentence(name: str, feature: str) -> None:
    producer = confluent.Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    assert hasattr(producer, name) is has(feature) is hasattr(confluent_kafka.Producer, name)
    with pytest.raises(AttributeError, match=r"'Producer' object has no attribute 'nonsense'"):
        getattr(producer, "nonsense")  # noqa: B009
    said = str(_internals.lacks(producer, name))
    assert said.startswith(f"Producer.{name} needs confluent-kafka 2.1")
    assert said.endswith(f"{confluent_kafka.__version__} is installed")


def test_an_aio_consumer_or_one_sentence() -> None:
    if has("AIOConsumer"):
        assert issubclass(confluent.AIOConsumer, _internals.aio_consumer())
    else:
        installed = re.escape(str(confluent_kafka.__version__))
        with pytest.raises(MissingDependencyError, match=f"needs confluent-kafka 2.12 or newer, and {installed}"):
            getattr(confluent, "AIOConsumer")  # noqa: B009


def test_values_are_deserialized_and_types_may_be_named() -> None:
    kind = confluent.DeserializingConsumer[bytes, str]
    consumer = kind({name: value for name, value in NOBODY.items() if name != "log_level"} | {"log_level": 0})
    assert isinstance(consumer, confluent_kafka.DeserializingConsumer)
    assert isinstance(consumer, confluent.Consumer)
    consumer.close()


@pytest.mark.parametrize("topic", [None, "orders"])
def test_a_message_of_an_error_has_the_methods_of_the_client_s(topic: str | None) -> None:
    error = KafkaError(KafkaError._TIMED_OUT, "too late")
    made, stand_in = _internals.error_message(error, topic), _internals.ErrorMessage(error, topic)
    for message in (made, stand_in):
        assert message.error() == error
        assert message.topic() == topic
        assert [message.partition(), message.offset(), message.key(), message.value()] == [None] * 4
        assert [message.headers(), message.latency(), message.leader_epoch()] == [None] * 3
        assert message.timestamp() == (confluent_kafka.TIMESTAMP_NOT_AVAILABLE, 0)
        assert len(message) == 0
    assert {name for name in dir(confluent_kafka.Message) if name[0] != "_" and not name.startswith("set_")} - set(
        dir(stand_in)
    ) <= {"deserialized_key", "deserialized_value", "delivery_count"}


def test_a_setting_that_is_not_known_goes_to_the_data_path() -> None:
    read = ConsumerConfig.read(NOBODY | {"fetch.of.the.future": "yes"})
    assert read.data_path["fetch.of.the.future"] == "yes"


@pytest.mark.parametrize(
    "name", ["ssl.of.the.future", "sasl.of.the.future", "security.of.the.future", "enable.ssl.of.the.future"]
)
def test_a_setting_that_may_protect_a_connection_is_never_ignored(name: str) -> None:
    with pytest.raises(OptionError, match=rf"{name} is not known, and settings of TLS and SASL are never ignored"):
        ConsumerConfig.read(NOBODY | {name: "yes"})


def test_a_position_is_read_of_an_open_consumer() -> None:
    consumer = confluent.Consumer(NOBODY)
    partition = TopicPartition("t", 0)
    consumer.assign([partition])
    consumer.pause([partition])
    consumer.resume([partition])
    consumer.close()


def test_closing_ends_where_librdkafka_waits_for_a_partition_that_is_gone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka waits for the partition of a deleted topic when it closes. Our `close` ends all the same.

    ```
    reads kept, gone ─► subscribes to kept ─► `gone` is deleted, and a metadata answer lacks it ─► close
    ```
    """
    monkeypatch.setattr(times, "NATIVE_CLOSE", 1.0)
    with EmbeddedKafka() as kafka:
        for topic in ("kept", "gone"):
            kafka.create_topic(topic, 2)
            fill(Kafka(kafka.bootstrap_servers, "embedded"), topic, 2, 1)
        consumer = confluent.Consumer(
            {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["kept", "gone"])
        records: list[confluent_kafka.Message] = []
        while len(records) < 4:
            records += consumer.consume(4, 1.0)
        consumer.subscribe(["kept"])
        while {each.topic for each in consumer.assignment()} != {"kept"}:
            consumer.poll(0.1)
        kafka.delete_topic("gone")
        while not (heard := consumer.list_topics("gone", timeout=10).topics["gone"]).error:
            pass
        assert not heard.partitions
        consumer.close()
    left_behind = [each.message for each in caplog.records if "did not close the consumer" in each.getMessage()]
    # 2.3 always leaves an entry in the queue of the partition, which keeps it alive; 2.4 to 2.6.0 sometimes do.
    release = confluent_kafka.libversion()[1]
    assert len(left_behind) == (release < 0x02040000) or 0x02040000 <= release < 0x02060100


def test_what_a_callback_raises_while_the_client_closes_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def close(_: confluent_kafka.Consumer) -> None:
        raise ValueError("of the application")

    for ends in (True, False):
        monkeypatch.setattr(native_close, "_ENDS", ends)
        monkeypatch.setattr(native_close, "_Native", type("Consumer", (), {"close": close}))
        with pytest.raises(ValueError, match="of the application"):
            native_close.close_native_consumer(confluent_kafka.Consumer(NOBODY))
