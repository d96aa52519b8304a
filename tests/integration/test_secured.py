"""Connections to a real broker over TLS and SASL."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import _core
from kafka_assignors.errors import SecurityError
from kafka_assignors.net import Closed, Connection, Ready
from support import certificates
from support.broker import unique
from support.secured import ODD_USER, PASSWORD, REAUTHENTICATION_MS, SASL_MECHANISMS, SecuredKafka, unsecured_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.net_driver import Driver

pytestmark = pytest.mark.xdist_group("secured")

WAYS = [
    *((listener, None) for listener in ("PLAINTEXT", "SSL", "MUTUAL")),
    *((listener, mechanism) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in SASL_MECHANISMS),
]


def open_driver(drive: Callable[..., Driver], kafka: SecuredKafka, listener: str, mechanism: str | None) -> Driver:
    return drive(**kafka.settings_of(listener, mechanism))


def connect(driver: Driver, host: str | None = None) -> Connection:
    address = driver.poller.config.bootstrap[0]
    return driver.connect(host or address.host, address.port)


def ready(driver: Driver, host: str | None = None) -> Connection:
    connection = connect(driver, host)
    assert driver.next() == Ready(connection)
    return connection


def ask(driver: Driver, connection: Connection, correlation: int) -> dict[str, Any]:
    """Requests the metadata of the topics, which needs an authenticated connection."""
    connection.send(_core.encode_metadata(9, correlation, "test", None))
    return dict(_core.decode_metadata(9, correlation, driver.frame()))


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_every_way_in(
    drive: Callable[..., Driver], secured_kafka: SecuredKafka, listener: str, mechanism: str | None, host: str
) -> None:
    topic = secured_kafka.create_topic(unique("t"), 3)
    driver = open_driver(drive, secured_kafka, listener, mechanism)
    connection = ready(driver, host)
    assert connection.api_versions[3][1] >= 12
    found = {each["name"]: len(each["partitions"]) for each in ask(driver, connection, 1)["topics"]}
    assert found[topic] == 3


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_names_that_scram_writes_in_another_way(
    drive: Callable[..., Driver], secured_kafka: SecuredKafka, mechanism: str
) -> None:
    driver = drive(**secured_kafka.settings_of("SASL_PLAINTEXT", mechanism) | {"sasl.username": ODD_USER})
    ready(driver)


@pytest.mark.parametrize(
    ("mechanism", "wrong"),
    [
        ("PLAIN", {"sasl.password": "wrong"}),
        ("SCRAM-SHA-256", {"sasl.password": "wrong"}),
        ("SCRAM-SHA-512", {"sasl.username": "nobody"}),
        ("OAUTHBEARER", {"oauth_cb": lambda _: ("not.a.token", time.time() + 100)}),
    ],
)
def test_wrong_credentials(
    drive: Callable[..., Driver], secured_kafka: SecuredKafka, mechanism: str, wrong: dict[str, Any]
) -> None:
    driver = drive(**secured_kafka.settings_of("SASL_SSL", mechanism) | wrong)
    connect(driver)
    error = driver.closed()
    assert isinstance(error, SecurityError)
    assert PASSWORD not in str(error)


def test_new_credentials(drive: Callable[..., Driver], secured_kafka: SecuredKafka) -> None:
    driver = drive(**secured_kafka.settings_of("SASL_SSL", "PLAIN") | {"sasl.password": "wrong"})
    connect(driver)
    assert isinstance(driver.closed(), SecurityError)
    sasl = driver.poller.config.sasl
    assert sasl is not None
    assert sasl.credentials is not None
    sasl.credentials.replace("alice", PASSWORD)
    ready(driver)


def test_a_client_without_a_certificate_is_turned_away(
    drive: Callable[..., Driver], secured_kafka: SecuredKafka
) -> None:
    settings = secured_kafka.settings_of("MUTUAL")
    del settings["ssl.certificate.location"], settings["ssl.key.location"]
    driver = drive(**settings)
    connect(driver)
    assert isinstance(driver.closed(), SecurityError)


def test_a_client_with_an_encrypted_key(drive: Callable[..., Driver], secured_kafka: SecuredKafka) -> None:
    settings = secured_kafka.settings_of("MUTUAL")
    settings["ssl.key.location"] = str(secured_kafka.certificates.client_encrypted_key)
    driver = drive(**settings, **{"ssl.key.password": certificates.KEY_PASSWORD})
    ready(driver)


@pytest.mark.parametrize(
    ("listener", "protocol"),
    [("SSL", "plaintext"), ("PLAINTEXT", "ssl"), ("SASL_PLAINTEXT", "plaintext"), ("PLAINTEXT", "sasl_plaintext")],
)
def test_the_wrong_protocol_is_named(
    drive: Callable[..., Driver], secured_kafka: SecuredKafka, listener: str, protocol: str
) -> None:
    settings = {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b"}
    driver = drive(**{"bootstrap.servers": secured_kafka.address(listener), "security.protocol": protocol}, **settings)
    connection = connect(driver)
    event = driver.next()
    if isinstance(event, Ready):
        # Before authentication, a SASL listener answers only ApiVersions.
        connection.send(_core.encode_metadata(9, 1, "test", None))
        event = driver.next()
        assert isinstance(event, Closed)
    else:
        assert isinstance(event, Closed)
        assert "security.protocol" in str(event.error)


@pytest.mark.parametrize("mechanism", SASL_MECHANISMS)
def test_authenticates_again_in_the_middle_of_its_life(
    drive: Callable[..., Driver], secured_kafka: SecuredKafka, mechanism: str
) -> None:
    """KIP-368: a broker closes the connection of a client whose session is over. Ours authenticates again in time."""
    driver = open_driver(drive, secured_kafka, "SHORT", mechanism)
    connection = ready(driver)
    until = time.monotonic() + 2.2 * REAUTHENTICATION_MS / 1000
    correlation = 0
    while time.monotonic() < until:
        correlation += 1
        assert ask(driver, connection, correlation)["topics"] is not None
        assert driver.poller.poll(0.05) == []
    assert not connection.is_closed


def test_a_request_that_outlives_the_authentication(drive: Callable[..., Driver], secured_kafka: SecuredKafka) -> None:
    """A JoinGroup may wait for minutes, during which the authentication expires. Here a Fetch waits."""
    topic = secured_kafka.create_topic(unique("t"), 1)
    driver = open_driver(drive, secured_kafka, "SHORT", "SCRAM-SHA-256")
    connection = ready(driver)
    connection.send(fetch(1, topic, wait_ms=3 * REAUTHENTICATION_MS // 2))
    connection.send(_core.encode_metadata(9, 2, "test", None))
    assert driver.frame()[:4] == (1).to_bytes(4, "big")
    assert _core.decode_metadata(9, 2, driver.frame())["topics"]
    assert ask(driver, connection, 3)["topics"]


def fetch(correlation: int, topic: str, wait_ms: int) -> bytes:
    """Fetch 4 of partition 0. The broker answers as soon as there is a record."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    frame = struct.pack(">hhih", 1, 4, correlation, -1)
    frame += struct.pack(">iiiibi", -1, wait_ms, 1, 1 << 20, 0, 1) + name + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    return struct.pack(">i", len(frame)) + frame


def test_tokens_that_expire_are_replaced(drive: Callable[..., Driver], secured_kafka: SecuredKafka) -> None:
    """The broker ends a session when its token expires, even if the listener's limit is later."""
    made = []

    def callback(config: str) -> tuple[str, float]:
        made.append(unsecured_token(config, lifetime=3.0))
        return made[-1]

    driver = drive(**secured_kafka.settings_of("SASL_PLAINTEXT", "OAUTHBEARER") | {"oauth_cb": callback})
    connection = ready(driver)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        assert driver.poller.poll(0.2) == []
    assert ask(driver, connection, 1)["topics"] is not None
    assert len(made) >= 3
