"""Lags of a live cluster, read through each of the three clients, and a leader that plans with them."""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from kafka_assignors import (
    IncompatibleClientError,
    LagBasedAssignor,
    LagError,
    MemberState,
    MissingDependencyError,
    OptionError,
)
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.clients.aiokafka.lag import of_client
from kafka_assignors.clients.kafka_python.lag import of_consumer
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.lag import ConfluentLagSource, LagSource, reader
from support.broker import Kafka, unique
from support.clocks import PausesAtOnce
from support.lag import LAGS, commit, compact, fill, in_every_state, truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def confluent(bootstrap_servers: str, **options: Any) -> ConfluentLagSource:
    return ConfluentLagSource({"bootstrap.servers": bootstrap_servers, "log_level": 0}, **options)


def python(bootstrap_servers: str, **options: Any) -> kafka_python.AdminLagSource:
    return kafka_python.AdminLagSource({"bootstrap_servers": bootstrap_servers}, **options)


def aio(bootstrap_servers: str, **options: Any) -> aiokafka.AdminLagSource:
    return aiokafka.AdminLagSource({"bootstrap_servers": bootstrap_servers}, **options)


SOURCES: list[Callable[..., LagSource]] = [confluent, python, aio]
each_source = pytest.mark.parametrize("client", SOURCES)


@each_source
def test_lags_of_all_topics(any_kafka: Kafka, client: Callable[..., LagSource]) -> None:
    one, two = any_kafka.create_topic(unique("one"), 4), any_kafka.create_topic(unique("two"), 1)
    fill(any_kafka, one, [9, 5, 7, 0])
    fill(any_kafka, two, [3])
    group = unique("readers")
    commit(any_kafka, group, {(one, 0): 2, (one, 1): 50, (two, 0): 3})
    topics = [one, two, "missing"]
    latest = client(any_kafka.bootstrap_servers, timeout=30)
    earliest = client(any_kafka.bootstrap_servers, reset="earliest", timeout=30)
    assert isinstance(latest, LagSource)
    assert latest.lags(topics, group) == {one: [7, 0, 0, 0], two: [0]}
    assert earliest.lags(topics, group) == {one: [7, 0, 7, 0], two: [0]}
    assert earliest.lags(topics, unique("strangers")) == {one: [9, 5, 7, 0], two: [3]}
    assert latest.lags(["missing"], group) == latest.lags([], group) == {}


@each_source
@pytest.mark.parametrize("reset", LAGS)
def test_every_state_of_a_partition(any_kafka: Kafka, client: Callable[..., LagSource], reset: str) -> None:
    topic, group = in_every_state(any_kafka)
    source = client(any_kafka.bootstrap_servers, reset=reset, timeout=30)
    assert source.lags([topic], group) == {topic: LAGS[reset]}


@pytest.fixture(params=["embedded", "apache"])
def compacting(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A broker that compacts as soon as possible. The embedded Kafka never compacts."""
    if request.param == "embedded":
        with EmbeddedKafka() as kafka:
            yield Kafka(kafka.bootstrap_servers, "embedded")
    else:
        yield request.getfixturevalue("start_kafka")(log_cleaner_backoff_ms=100)


def test_compacted_partitions(compacting: Kafka) -> None:
    """Lag counts offsets, not records: compacted offsets count until the group's commit is past them."""
    topic, end, left = compact(compacting)
    assert left == end if compacting.version == "embedded" else left < end
    group, fresh = unique("readers"), unique("fresh")
    commit(compacting, group, {(topic, 0): 3})
    for client in SOURCES:
        source = client(compacting.bootstrap_servers, reset="earliest", timeout=30)
        assert source.lags([topic], group) == {topic: [end - 3]}
        assert source.lags([topic], fresh) == {topic: [end]}


@each_source
def test_an_empty_log_has_no_lag(any_kafka: Kafka, client: Callable[..., LagSource]) -> None:
    topic = any_kafka.create_topic(unique("orders"), 2)
    fill(any_kafka, topic, [9, 0])
    truncate(any_kafka, {(topic, 0): 9})
    source = client(any_kafka.bootstrap_servers, reset="earliest", timeout=30)
    assert source.lags([topic], unique("readers")) == {topic: [0, 0]}


@each_source
def test_a_leader_with_a_live_source(any_kafka: Kafka, client: Callable[..., LagSource]) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    fill(any_kafka, topic, [10, 5, 6])
    source = client(any_kafka.bootstrap_servers, reset="earliest", timeout=30)
    assignor = LagBasedAssignor(lags=source, group_id=unique("g"), deadline=30)
    members = [(member, assignor.metadata([topic], MemberState())) for member in ("m0", "m1")]
    _, plan = assignor.plan_assignment(members, {topic: 3})
    assert plan.assignment == {"m0": {topic: [0]}, "m1": {topic: [1, 2]}}
    assert plan.lag_by_member == {"m0": 10, "m1": 11}


@pytest.mark.parametrize("api", ["OffsetFetch", "ListOffsets"])
@each_source
def test_what_may_not_be_read(embedded_kafka: EmbeddedKafka, client: Callable[..., LagSource], api: str) -> None:
    embedded_kafka.create_topic("t", 1)
    embedded_kafka.inject_fault(api, error="GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(LagError, match="the offsets of group 'g' could not be read"):
        client(embedded_kafka.bootstrap_servers, timeout=30).lags(["t"], "g")


@each_source
def test_what_cannot_be_told(embedded_kafka: EmbeddedKafka, client: Callable[..., LagSource]) -> None:
    embedded_kafka.create_topic("t", 1)
    address = embedded_kafka.bootstrap_servers
    with pytest.raises(LagError, match="no group is named; give LagBasedAssignor the group_id"):
        client(address).lags(["t"], "")
    for timeout in (0, -1.0, float("nan")):
        with pytest.raises(OptionError, match=f"timeout is {timeout}; give a positive number of seconds"):
            client(address, timeout=timeout)
    threads = set(threading.enumerate())
    embedded_kafka.close()
    with pytest.raises(LagError, match="the offsets of group 'g' could not be read"):
        client(address, timeout=0.2).lags(["t"], "g")
    assert {thread for thread in threading.enumerate() if thread not in threads} == set()


@pytest.mark.parametrize("api", ["ApiVersions", "Metadata", "FindCoordinator", "OffsetFetch", "ListOffsets"])
@each_source
def test_a_broker_that_does_not_answer(
    embedded_kafka: EmbeddedKafka, client: Callable[..., LagSource], api: str
) -> None:
    """The source gives up after its timeout, whichever request gets no answer. It leaves no thread behind."""
    embedded_kafka.create_topic("t", 1)
    embedded_kafka.inject_fault(api, delay=60, times=20)
    threads = set(threading.enumerate())
    with pytest.raises(LagError):
        client(embedded_kafka.bootstrap_servers, timeout=0.3).lags(["t"], "g")
    mine = [thread.name for thread in threading.enumerate() if thread not in threads]
    assert [name for name in mine if not name.startswith("kafka-assignors-embedded")] == []


def test_the_error_of_a_late_reading_keeps_no_client(
    embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client must be freed before the error arrives. If Python's collector freed it in one of the client's own
    threads, the process would abort.
    """
    made: list[weakref.ref[AdminClient]] = []

    make = AdminClient.__init__

    def watched(self: AdminClient, *arguments: Any) -> None:
        make(self, *arguments)
        made.append(weakref.ref(self))

    monkeypatch.setattr(AdminClient, "__init__", watched)
    embedded_kafka.create_topic("t", 1)
    embedded_kafka.inject_fault("OffsetFetch", delay=60, times=20)
    with pytest.raises(LagError) as caught:
        confluent(embedded_kafka.bootstrap_servers, timeout=0.3).lags(["t"], "g")
    assert caught.tb is not None
    assert [each() for each in made] == [None]


@pytest.mark.parametrize("client", [python, aio])
def test_requests_do_not_grow_with_topics(
    embedded_kafka: EmbeddedKafka, client: Callable[..., LagSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[int, Counter[str]] = {}
    for topics in (1, 30):
        names = [f"t{topics}-{number}" for number in range(topics)]
        for name in names:
            embedded_kafka.create_topic(name, 2)
        asked = count_requests(client, monkeypatch)
        lags = client(embedded_kafka.bootstrap_servers, reset="earliest", timeout=30).lags(names, "g")
        assert lags == {name: [0, 0] for name in names}
        counts[topics] = Counter(name for name in asked if "Offset" in name)
        # The number of metadata requests depends on the client.
        assert len(asked) - counts[topics].total() < 15
    assert counts[1] == counts[30]
    assert sorted(counts[1].values()) == [1, 2], "commits; ends and beginnings"


def count_requests(client: Callable[..., LagSource], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list of all requests that this client sends from now on. The list grows with them."""
    if client is python:
        from kafka.net.connection import KafkaConnection as Connection

        method = "send_request"
    else:
        from aiokafka.conn import AIOKafkaConnection as Connection

        method = "send"
    sent: list[str] = []
    plain = getattr(Connection, method)

    def counted(self: Any, request: Any, *arguments: Any, **named: Any) -> Any:
        sent.append(type(request).__name__)
        return plain(self, request, *arguments, **named)

    monkeypatch.setattr(Connection, method, counted)
    return sent


def test_errors_that_pass_are_tried_again(embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded_kafka.create_topic("t", 1)
    for client in (python, aio):
        embedded_kafka.inject_fault("ListOffsets", error="NOT_LEADER_OR_FOLLOWER", times=2)
        assert client(embedded_kafka.bootstrap_servers, timeout=30).lags(["t"], "g") == {"t": [0]}
    embedded_kafka.inject_fault("OffsetFetch", error="NOT_COORDINATOR", times=1_000_000)
    monkeypatch.setattr(reader, "time", PausesAtOnce())
    with pytest.raises(LagError, match=r"could not be read: .*NotCoordinator"):
        aio(embedded_kafka.bootstrap_servers, timeout=20).lags(["t"], "g")


@each_source
def test_isolation_levels(kafka_broker: Kafka, client: Callable[..., LagSource]) -> None:
    """A consumer that reads only committed records has no lag from the records of an open transaction."""
    topic = kafka_broker.create_topic(unique("orders"), 1)
    fill(kafka_broker, topic, [3])
    producer = Producer(
        {"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": unique("id"), "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(2):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(30) == 0
    lags = {
        level: client(kafka_broker.bootstrap_servers, reset="earliest", isolation_level=level, timeout=30).lags(
            [topic], unique("readers")
        )[topic]
        for level in ("read_uncommitted", "read_committed")
    }
    producer.abort_transaction(30)
    assert lags == {"read_uncommitted": [5], "read_committed": [3]}


@each_source
def test_unknown_isolation_level(client: Callable[..., LagSource]) -> None:
    message = "isolation_level is 'dirty'; give one of 'read_uncommitted', 'read_committed'"
    with pytest.raises(OptionError, match=message):
        client("localhost:9092", isolation_level="dirty")


def test_a_second_client_of_kafka_python_has_the_consumers_settings() -> None:
    built: list[dict[str, Any]] = []

    def client(**settings: Any) -> Any:
        built.append(settings)
        raise OSError("enough")

    given = {
        "bootstrap_servers": ["one:9093", "two:9093"],
        "client_id": "billing",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "reader",
        "sasl_plain_password": "secret",
        "ssl_cafile": "ca.pem",
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "metric_reporters": [object],
        # The client found this version itself; its user did not give it.
        "api_version": (4, 0),
    }
    settings = KafkaConsumer.DEFAULT_CONFIG | given | {"kafka_client": client}
    source = of_consumer(SimpleNamespace(config=settings), 7.0)
    with pytest.raises(OSError, match="enough"):
        source.lags(["t"], "g")
    own = {"client_id", "auto_offset_reset", "isolation_level", "metric_reporters", "api_version"}
    assert {name: built[0][name] for name in given.keys() - own} == {
        name: value for name, value in given.items() if name not in own
    }
    assert built[0]["client_id"] == "billing-lags"
    assert (built[0]["metric_reporters"], built[0]["api_version"]) == ([], None)
    assert built[0]["bootstrap_timeout_ms"] == built[0]["request_timeout_ms"] == 7_000
    assert "group_id" not in built[0]
    assert (source._reset, source._isolation_level) == ("earliest", "read_committed")


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Keeps the event loop on which a token was requested."""

    def __init__(self) -> None:
        self.asked_on: list[asyncio.AbstractEventLoop] = []

    async def token(self) -> str:
        self.asked_on.append(asyncio.get_running_loop())
        return "token"

    def extensions(self) -> dict[str, str]:
        return {"cluster": "one"}


def test_a_second_client_of_aiokafka_has_the_consumers_settings() -> None:
    async def main() -> None:
        tokens = Tokens()
        consumer = AIOKafkaConsumer(
            bootstrap_servers="one:9093",
            client_id="billing",
            group_id="g",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=tokens,
        )
        loop = asyncio.get_running_loop()
        source = of_client(consumer._client, loop, reset="earliest", isolation_level="read_committed", timeout=7.0)
        config = source._config
        assert {
            name: config[name] for name in ("bootstrap_servers", "client_id", "security_protocol", "sasl_mechanism")
        } == {
            "bootstrap_servers": "one:9093",
            "client_id": "billing-lags",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
        }
        provider = config["sasl_oauth_token_provider"]
        assert provider.extensions() == {"cluster": "one"}
        # The other client requests its tokens from a loop on another thread.
        assert await asyncio.to_thread(lambda: asyncio.run(provider.token())) == "token"
        assert tokens.asked_on == [loop]
        await consumer.stop()

    asyncio.run(main())


def test_a_client_of_aiokafka_that_does_not_show_its_settings() -> None:
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(IncompatibleClientError, match=r"the consumer's settings .*_bootstrap_servers"):
            of_client(object(), loop, reset="earliest", isolation_level="read_committed", timeout=7.0)
    finally:
        loop.close()


def test_without_confluent_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "confluent_kafka"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[confluent\]"):
        ConfluentLagSource({})
