"""Differences between the releases of kafka-python. The tests run on every release."""

from __future__ import annotations

import warnings
from contextlib import closing
from typing import TYPE_CHECKING, Any

import kafka
import pytest
from kafka import TopicPartition

from kafka_assignors import CustomAssignor, OptionError
from kafka_assignors.clients import kafka_python
from kafka_assignors.clients.kafka_python import _internals, assignors
from kafka_assignors.clients.kafka_python.config import ConsumerConfig
from kafka_assignors.errors import ClientReleaseWarning, IncompatibleClientError, MissingDependencyError
from support.features import has
from support.producers import VALUE

if TYPE_CHECKING:
    from kafka_assignors.embedded import EmbeddedKafka

IS_VERSION_3 = has("kafka-python 3")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("CooperativeStickyAssignor", "consumers that rebalance cooperatively"),
        ("AsyncRebalanceDiffListener", "listeners that are coroutines"),
    ],
)
def test_what_the_release_lacks_is_absent_with_one_sentence(name: str, what: str) -> None:
    if IS_VERSION_3:
        assert getattr(kafka_python, name).__name__ == name
        return
    with pytest.raises(MissingDependencyError, match=rf"{name} needs {what}, which kafka-python 3 has") as raised:
        getattr(kafka_python, name)
    assert kafka.__version__ in str(raised.value)


def test_a_cooperative_stream_join_is_for_clients_that_cooperate() -> None:
    if IS_VERSION_3:
        assert kafka_python.StickyStreamJoinAssignor(protocol="cooperative").name == "cooperative-sticky-join"
        return
    with pytest.raises(OptionError, match="which kafka_python does not know; give one of 'eager'"):
        kafka_python.StickyStreamJoinAssignor(protocol="cooperative")


class Cooperative(CustomAssignor):
    name = "of-the-test"
    cooperative = True

    def plan(self, group: Any) -> Any:
        return {}


def test_a_cooperative_assignor_of_ones_own_likewise() -> None:
    if IS_VERSION_3:
        assert kafka_python.CustomAssignor(Cooperative()).name == "of-the-test"
        return
    with pytest.raises(OptionError, match="is cooperative, which kafka_python does not know"):
        kafka_python.CustomAssignor(Cooperative())


def test_a_class_among_the_strategies_works_or_is_one_sentence(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 2)
    settings = {"bootstrap_servers": embedded_kafka.bootstrap_servers, "group_id": "g"}
    with closing(
        kafka.KafkaConsumer("orders", partition_assignment_strategy=[kafka_python.StickyAssignor], **settings)
    ) as consumer:
        if not IS_VERSION_3:
            with pytest.raises(OptionError, match=r"makes no instances of the classes.* \[StickyAssignor\(\)\]"):
                consumer.poll(timeout_ms=5_000)
            return
        for _ in range(20):
            consumer.poll(timeout_ms=500)
            if consumer.assignment():
                break
        assert len(consumer.assignment()) == 2


def test_a_plain_producer_takes_a_partitioner_of_ours_or_says_so(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 2)
    partitioner = kafka_python.DefaultPartitioner()
    with closing(
        kafka.KafkaProducer(bootstrap_servers=embedded_kafka.bootstrap_servers, partitioner=partitioner)
    ) as producer:
        if IS_VERSION_3:
            partitioner.attach(producer)
            assert producer.send("orders", VALUE).get(timeout=10).partition in (0, 1)
            return
        with pytest.raises(IncompatibleClientError, match="calls a partitioner without the topic"):
            partitioner.attach(producer)
        with pytest.raises(IncompatibleClientError, match=r"give DefaultPartitioner\(\) to .*KafkaProducer"):
            producer.send("orders", VALUE)


def test_a_client_that_refuses_long_responses_is_told_to_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 3.0.0, which cannot read a large backlog: a fetch may be larger than the response that it accepts."""
    defaults = kafka.KafkaConsumer.DEFAULT_CONFIG
    monkeypatch.setitem(defaults, "receive_message_max_bytes", 1_000_000)
    given = {"group_id": "g", "fetch_max_bytes": 5_000_000}
    config = ConsumerConfig.read(given)
    assert config is not None
    limit = given["fetch_max_bytes"] + defaults["max_partition_fetch_bytes"]
    assert config.data_path["receive_message_max_bytes"] == limit
    roomy = ConsumerConfig.read({**given, "receive_message_max_bytes": limit})
    assert roomy is not None
    assert roomy.data_path["receive_message_max_bytes"] == limit
    monkeypatch.delitem(defaults, "receive_message_max_bytes")
    assert _internals.frame_limit({**defaults, **given}) is None


def test_positions_are_kept_from_version_3_on() -> None:
    assert _internals.KEEPS_POSITIONS is IS_VERSION_3


@pytest.mark.parametrize("stops", [True, False])
def test_a_plug_in_warns_of_a_release_that_stops_with_listeners(
    stops: bool, embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not IS_VERSION_3:
        # Version 2 makes no calls while a consumer is made, and does not have this fault.
        assert not _internals.STOPS_WITH_LISTENERS
        return
    monkeypatch.setattr(assignors, "STOPS_WITH_LISTENERS", stops)
    settings = {"bootstrap_servers": embedded_kafka.bootstrap_servers, "group_id": "g"}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ClientReleaseWarning)
        kafka.KafkaConsumer(partition_assignment_strategy=[kafka_python.StickyAssignor()], **settings).close()
    said = [str(each.message) for each in seen if each.category is ClientReleaseWarning]
    assert len(said) == stops
    assert all("stops reading after a rebalance if its consumer has a listener" in each for each in said)


def test_the_lags_are_read(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("orders", 3)
    servers = embedded_kafka.bootstrap_servers
    with closing(kafka_python.KafkaProducer(bootstrap_servers=servers)) as producer:
        sent = [producer.send("orders", VALUE, partition=number) for number in (0, 0, 0, 1)]
        for each in sent:
            each.get(timeout=10)
    with closing(kafka.KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False)) as consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek(partition, 2)
        consumer.poll(timeout_ms=2_000, max_records=1)
        consumer.commit()
    source = kafka_python.AdminLagSource({"bootstrap_servers": servers}, reset="earliest", timeout=10)
    assert {topic: list(lags) for topic, lags in source.lags(["orders", "nowhere"], "g").items()} == {
        "orders": [0, 1, 0]
    }
