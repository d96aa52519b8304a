"""Our consumers for confluent-kafka have all methods and settings of the client's own; which settings they refuse."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition, aio

from kafka_assignors import (
    CooperativeStickyAssignor,
    LagBasedAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
)
from kafka_assignors.clients import confluent
from kafka_assignors.clients.confluent import AIOConsumer, Consumer, DeserializingConsumer
from kafka_assignors.clients.confluent.config import DATA_PATH_ONLY, MEMBERSHIP, REFUSED, ConsumerConfig
from kafka_assignors.clients.confluent.group_metadata import group_metadata
from kafka_assignors.errors import OptionError, StateError
from kafka_assignors.net import ClientConfig
from support import librdkafka

BASE: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
STUB = Path(confluent_kafka.__file__).parent / "cimpl.pyi"


def documented() -> dict[str, list[list[str]]]:
    """Every method of the client's consumer in its own stub, with the parameters of each overload."""
    (stub,) = (
        each for each in ast.parse(STUB.read_text()).body if isinstance(each, ast.ClassDef) and each.name == "Consumer"
    )
    found: dict[str, list[list[str]]] = {}
    for each in stub.body:
        if isinstance(each, ast.FunctionDef):
            arguments = each.args
            names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
            found.setdefault(each.name, []).append(names)
    return found


@pytest.mark.parametrize("name", sorted(set(dir(confluent_kafka.Consumer)) - set(dir(object))))
def test_every_method_of_the_client_is_there(name: str) -> None:
    ours = getattr(Consumer, name)
    assert callable(ours)
    if ours is getattr(confluent_kafka.Consumer, name):
        return
    parameters = inspect.signature(ours).parameters
    for form in documented().get(name, []):
        assert set(form) <= parameters.keys(), f"{name} lacks a keyword"
        # In the client's order, since a call may give them by position.
        assert [each for each in parameters if each in form] == form
    assert inspect.getdoc(ours)


def test_the_stub_names_what_is_compared() -> None:
    assert {"poll", "consume", "subscribe", "commit", "store_offsets", "close"} <= documented().keys()


@pytest.mark.parametrize(
    ("client", "ours"),
    [(aio.AIOConsumer, AIOConsumer), (confluent_kafka.DeserializingConsumer, DeserializingConsumer)],
)
def test_the_other_consumers_are_the_clients_with_ours_below(client: type, ours: type) -> None:
    assert issubclass(ours, client)
    assert set(dir(client)) <= set(dir(ours))
    assert inspect.signature(aio.AIOConsumer).parameters.keys() == inspect.signature(AIOConsumer).parameters.keys()


def test_every_setting_of_librdkafka_has_its_place() -> None:
    """No setting is ignored: each is read, refused, or used by the data path alone. All of them exist in librdkafka."""
    known = {
        name for name in librdkafka.defaults() if not name.startswith(("ssl", "sasl", "enable.ssl", "enable.sasl"))
    }
    connections = {
        "api.version.request",
        "bootstrap.servers",
        "broker.address.family",
        "client.dns.lookup",
        "client.id",
        "metadata.broker.list",
        "receive.message.max.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
    }
    assert known - DATA_PATH_ONLY - MEMBERSHIP - REFUSED.keys() - connections == set()
    assert not DATA_PATH_ONLY & MEMBERSHIP
    assert not (DATA_PATH_ONLY | MEMBERSHIP) & REFUSED.keys()
    assert DATA_PATH_ONLY - known == set()


def test_defaults_are_librdkafkas() -> None:
    config, defaults = ConsumerConfig.read(BASE), librdkafka.defaults()
    assert config.session_timeout_ms == int(defaults["session.timeout.ms"])
    assert config.heartbeat_interval_ms == int(defaults["heartbeat.interval.ms"])
    assert config.max_poll_interval_ms == int(defaults["max.poll.interval.ms"])
    assert config.metadata_refresh_ms == int(defaults["topic.metadata.refresh.interval.ms"])
    assert config.retry_backoff_ms == int(defaults["retry.backoff.ms"])
    assert config.retry_backoff_max_ms == int(defaults["retry.backoff.max.ms"])
    assert config.auto_commit_interval * 1000 == int(defaults["auto.commit.interval.ms"])
    assert config.reset == {"largest": "latest"}[defaults["auto.offset.reset"]]
    assert [str(each).lower() for each in (config.auto_commit, config.auto_store, config.create_topics)] == [
        defaults["enable.auto.commit"],
        defaults["enable.auto.offset.store"],
        defaults["allow.auto.create.topics"],
    ]
    assert ",".join(each.name for each in config.assignors) == defaults["partition.assignment.strategy"]
    assert config.client == ClientConfig.from_confluent(BASE)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sticky", [StickyAssignor()]),
        ("cooperative-sticky , sticky", [CooperativeStickyAssignor(), StickyAssignor()]),
        ("sticky-join", [StickyStreamJoinAssignor()]),
        (["cooperative-sticky-join"], [StickyStreamJoinAssignor("cooperative")]),
        ("range,roundrobin", [RangeAssignor(), RoundRobinAssignor()]),
        (StickyAssignor(mode="fair"), [StickyAssignor(mode="fair")]),
        ([StickyAssignor(), "range"], [StickyAssignor(), RangeAssignor()]),
        (None, [RangeAssignor(), RoundRobinAssignor()]),
        ("lag", [LagBasedAssignor()]),
    ],
)
def test_strategies(value: Any, expected: list[Any]) -> None:
    assert list(ConsumerConfig.read(BASE | {"partition.assignment.strategy": value}).assignors) == expected


@pytest.mark.parametrize(
    ("given", "look"),
    [
        ({}, 3_000),
        ({"statistics.interval.ms": 0}, 3_000),
        ({"statistics.interval.ms": 50}, 50),
        ({"statistics.interval.ms": 60_000}, 60_000),
        # With a longer interval, a poll that waits in librdkafka would not count as a poll in time.
        ({"statistics.interval.ms": 80_000}, 75_000),
        ({"max.poll.interval.ms": 8_000, "session.timeout.ms": 6_000}, 2_000),
    ],
)
def test_how_often_a_blocked_consumer_looks_after_its_group(given: dict[str, int], look: int) -> None:
    assert ConsumerConfig.read(BASE | given).data_path["statistics.interval.ms"] == look


@pytest.mark.parametrize(
    ("settings", "kind", "complaint"),
    [
        ({"group.id": None}, ValueError, "Failed to create consumer: group.id must be set"),
        ({"group.id": ""}, ValueError, "group.id must be set"),
        (
            {"partition.assignment.strategy": "foo"},
            KafkaException,
            "Unsupported partition.assignment.strategy: ",
        ),
        ({"partition.assignment.strategy": 3}, OptionError, "has a int; give names or assignors"),
        ({"partition.assignment.strategy": ["range", StickyAssignor]}, OptionError, "has a type; give names or"),
        ({"partition.assignment.strategy": ["range", "range"]}, OptionError, "give each name once"),
        ({"partition.assignment.strategy": ""}, OptionError, "give at least one name or assignor"),
        ({"max.poll.interval.ms": 10_000}, KafkaException, "must be >= `session.timeout.ms`"),
        ({"heartbeat.interval.ms": 45_000}, OptionError, r"not below session\.timeout\.ms"),
        ({"session.timeout.ms": 0}, OptionError, r"session\.timeout\.ms is '0'"),
        ({"auto.offset.reset": "now"}, OptionError, r"auto\.offset\.reset is 'now'; give one of smallest"),
        ({"group.protocol": "consumer", "on_rebalance": print}, OptionError, "on_rebalance cannot be set"),
        ({"group.remote.assignor": "uniform"}, OptionError, r"group\.remote\.assignor"),
        ({"topic.blacklist": "a"}, OptionError, r"topic\.blacklist"),
        ({"on_broker_assignor": "maybe"}, OptionError, "give one of fail, carry-on"),
        ({"on_commit": 3}, KafkaException, "on_commit requires a callable object"),
        ({"on_rebalance": 3}, TypeError, "on_rebalance expects a callable"),
        ({"security.protocol": "sasl_ssl"}, OptionError, "GSSAPI"),
        ({"ssl.keystore.location": "x"}, OptionError, r"ssl\.keystore\.location"),
        ({"bootstrap.servers": ""}, OptionError, "give at least one broker"),
        ({"foo": "bar"}, KafkaException, 'No such configuration property: "foo"'),
        ({"fetch.min.bytes": -1}, KafkaException, r"fetch\.min\.bytes"),
    ],
)
def test_what_the_constructor_refuses(settings: dict[str, Any], kind: type[Exception], complaint: str) -> None:
    with pytest.raises(kind, match=complaint):
        Consumer(BASE | settings)


def test_ways_to_construct() -> None:
    further = {"group.protocol": "classic", "default.topic.config": {"auto.offset.reset": "error"}}
    for made in (Consumer(BASE), Consumer(**BASE), Consumer(BASE, **{"client.id": "c"}), Consumer(BASE | further)):
        with made as consumer:
            assert consumer.assignment() == []
            assert consumer.memberid() is None
            assert consumer.plan() is None
    wrong: list[tuple[Any, ...]] = [([],), (BASE, BASE)]
    for arguments in wrong:
        with pytest.raises(TypeError, match="expected"):
            Consumer(*arguments)
    given = dict(BASE)
    Consumer(given).close()
    assert given == BASE


def test_what_subscribe_refuses() -> None:
    with Consumer(BASE) as consumer:
        with pytest.raises(TypeError, match="expected list of topic unicode strings"):
            consumer.subscribe("t")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="on_revoke expects a callable"):
            consumer.subscribe(["t"], on_revoke=3)
        with pytest.raises(KafkaException) as refused:
            consumer.subscribe([])
        assert refused.value.args[0].code() == KafkaError._INVALID_ARG


def test_what_only_the_client_checks_is_left_to_it() -> None:
    with Consumer(BASE) as consumer:
        for wrong in (-1, 1_000_001):
            with pytest.raises(ValueError, match="num_messages must be between"):
                consumer.consume(wrong, 0)
        with pytest.raises(TypeError):
            consumer.poll("soon")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="requires list"):
            consumer.assign(3)  # type: ignore[arg-type]
        with pytest.raises(KafkaException):
            consumer.seek(TopicPartition("t", 0, 0))


def test_group_metadata_is_never_guessed() -> None:
    with confluent_kafka.Consumer(BASE) as native:
        blob: Any = native.consumer_group_metadata()
    made = group_metadata(blob, "g", "member-1", 7, None)
    assert made == b"CGMDv2:" + (7).to_bytes(4, sys.byteorder) + b"g\0member-1\0\1"
    assert (
        group_metadata(blob, "g", "m", 7, "static") == b"CGMDv2:" + (7).to_bytes(4, sys.byteorder) + b"g\0m\0\0static\0"
    )
    for strange in (b"", blob[:-1], blob.replace(b"v2", b"v3"), blob + b"\0"):
        with pytest.raises(StateError, match="form that is not known"):
            group_metadata(strange, "g", "member-1", 7, None)


def test_names_are_imported_when_asked_for() -> None:
    assert {getattr(confluent, name).__name__ for name in confluent.__all__} == set(confluent.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Customer'"):
        confluent.Customer  # noqa: B018
