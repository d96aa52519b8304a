"""Our consumer on kafka-python and a real broker: all listeners, tokens of an issuer, and transactions."""

from __future__ import annotations

import ssl
import time
from typing import Any

import kafka
import kafka.errors
import pytest
from kafka import TopicPartition
from kafka.net.sasl.oauth import AbstractTokenProvider

from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.clients.kafka_python.commits import offset_and_metadata
from kafka_assignors.member.data_path import Position
from support.broker import Kafka, unique
from support.data_paths import Readers
from support.issuer import GRANT, granted, issuer
from support.readers.on_kafka_python import KafkaPythonReader
from support.secured import PASSWORD, REAUTHENTICATION_MS, USER, SecuredKafka, unsecured_token
from support.silence import silence_member
from support.threads import wait_until

GROUP_SETTINGS = {"auto_offset_reset": "earliest", "partition_assignment_strategy": "sticky"}


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """A provider as in a program. It keeps a token while the token is valid, as the client's documents demand."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._token, self._expires = "", 0.0

    def token(self) -> str:
        if time.monotonic() >= self._expires - 25:
            self._token, lifetime = granted(self._url)
            self._expires = time.monotonic() + lifetime
        return self._token


class MskSigner(AbstractTokenProvider):  # type: ignore[misc]
    """Like the example on the page of aws-msk-iam-sasl-signer: the signer returns a token and its expiry."""

    def token(self) -> str:
        token, _expiry = unsecured_token("")
        return token


def settings_of(kafka: SecuredKafka, listener: str, mechanism: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bootstrap_servers": kafka.address(listener),
        "security_protocol": kafka.listeners[listener],
        "sasl_mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        found["sasl_oauth_token_provider"] = MskSigner()
    elif mechanism is not None:
        found |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    if found["security_protocol"].endswith("SSL"):
        found["ssl_cafile"] = str(kafka.certificates.ca)
    if listener == "MUTUAL":
        files = kafka.certificates
        found |= {"ssl_certfile": str(files.client), "ssl_keyfile": str(files.client_key)}
    return found


def joins(consumer: KafkaConsumer) -> None:
    wait_until(lambda: consumer.poll(50) is not None and consumer.assignment(), "it is assigned")


@pytest.mark.xdist_group("secured")
@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("SSL", None),
        ("MUTUAL", None),
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SASL_SSL", "SCRAM-SHA-256"),
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_PLAINTEXT", "OAUTHBEARER"),
    ],
)
def test_every_way_in(secured_kafka: SecuredKafka, listener: str, mechanism: str | None) -> None:
    topic = secured_kafka.create_topic(unique("t"), 2)
    settings = settings_of(secured_kafka, listener, mechanism)
    with KafkaConsumer(topic, group_id=unique("g"), **GROUP_SETTINGS, **settings) as consumer:
        joins(consumer)
        one = TopicPartition(topic, 0)
        consumer.commit({one: offset_and_metadata(Position(0))})
        assert consumer.committed(one) == 0


@pytest.mark.xdist_group("secured")
def test_a_context_of_the_program(secured_kafka: SecuredKafka) -> None:
    topic = secured_kafka.create_topic(unique("t"), 1)
    context = ssl.create_default_context(cafile=str(secured_kafka.certificates.ca))
    settings = settings_of(secured_kafka, "SASL_SSL", "PLAIN") | {"ssl_context": context, "ssl_cafile": None}
    with KafkaConsumer(topic, group_id=unique("g"), **GROUP_SETTINGS, **settings) as consumer:
        joins(consumer)


@pytest.mark.xdist_group("secured")
def test_tokens_of_an_issuer_across_reauthentications(secured_kafka: SecuredKafka) -> None:
    topic = secured_kafka.create_topic(unique("t"), 1)
    with issuer() as (url, asked):
        settings = settings_of(secured_kafka, "SHORT", "OAUTHBEARER")
        settings["sasl_oauth_token_provider"] = ClientCredentials(url)
        with KafkaConsumer(topic, group_id=unique("g"), **GROUP_SETTINGS, **settings) as consumer:
            joins(consumer)
            member_id = consumer.group_metadata().member_id
            end = time.monotonic() + 3 * REAUTHENTICATION_MS / 1000
            while time.monotonic() < end:
                consumer.poll(100)
            assert consumer.group_metadata()[1:3] == (1, member_id), "no connection of the member was lost"
        assert asked
        assert set(asked) == {GRANT}


@pytest.mark.parametrize("state", ["expelled", "unsubscribed"])
def test_offsets_of_whoever_is_no_member_are_refused(
    kafka_broker: Kafka, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    with Readers(kafka_broker, KafkaPythonReader, "sticky") as readers:
        topic, partitions = readers.topic(1, 10)
        reader = readers.add().follow(topic)
        readers.settle(partitions)
        consumer: KafkaConsumer = reader.consumer  # type: ignore[attr-defined]
        producer = kafka.KafkaProducer(
            bootstrap_servers=kafka_broker.bootstrap_servers, transactional_id=unique("transactions")
        )
        try:
            producer.init_transactions()
            one = TopicPartition(topic, 0)

            def send(offset: int, metadata: Any) -> None:
                producer.begin_transaction()
                producer.send_offsets_to_transaction({one: offset_and_metadata(Position(offset))}, metadata)
                producer.commit_transaction()

            before = consumer.group_metadata()
            send(4, before)
            assert consumer.committed(one) == 4
            if state == "unsubscribed":
                consumer.unsubscribe()
                wait_until(lambda: not kafka_broker.describe_group(readers.group).assignment, "it has left")
                # While the group is empty, the broker accepts offsets that name no member.
                other = readers.add().follow(topic)
                readers.until(lambda: other.held == partitions, "another has it", other)
            else:
                silence_member(reader.side.member, monkeypatch)
                readers.until(lambda: reader.calls_of("lost"), "it is told", within=60)
                monkeypatch.undo()
                readers.until(lambda: reader.side.latest[1] > before.generation_id, "it is back", within=60)
            if state == "unsubscribed":
                assert consumer.group_metadata()[:3] == before[:3], "the last identity, and not none"
            with pytest.raises(kafka.errors.KafkaError):
                send(9, before)
            producer.abort_transaction()
            assert consumer.committed(one) == 4
        finally:
            producer.close()
