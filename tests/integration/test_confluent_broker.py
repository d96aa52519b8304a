"""Our consumer for confluent-kafka with features that only a real broker has: security, transactions, KIP-848."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.error import ValueDeserializationError
from confluent_kafka.serialization import IntegerDeserializer, StringDeserializer

from kafka_assignors.clients.confluent import AIOConsumer, Consumer, DeserializingConsumer
from support.broker import Kafka, unique
from support.confluent_group import SESSION_MS, Crowd, fill, offsets
from support.issuer import GRANT, issuer
from support.jars import DEFAULT_VERSION
from support.secured import SASL_MECHANISMS, SecuredKafka
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.broker import ApacheKafka


@pytest.fixture
def crowd(kafka_broker: Kafka) -> Iterator[Crowd]:
    with Crowd(kafka_broker, unique("confluent")) as crowd:
        yield crowd


def settings_of(crowd: Crowd, **settings: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": crowd.kafka.bootstrap_servers,
        "group.id": crowd.group,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "sticky",
        "heartbeat.interval.ms": 200,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


# ---- subscriptions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expression", ["^__cons.*", "^__[[:alpha:]]+_offsets$", r"^\<__consumer_offsets\>"])
def test_expressions_match_kafka_s_own_topics_as_the_client_s_do(crowd: Crowd, expression: str) -> None:
    plain = confluent_kafka.Consumer(
        {"bootstrap.servers": crowd.kafka.bootstrap_servers, "group.id": unique("plain"), "log_level": 0}
    )
    try:
        plain.subscribe([expression])
        consumer = crowd.add(auto_offset_reset="latest").follow(expression)

        def same() -> bool:
            plain.poll(0)
            theirs = {(each.topic, each.partition) for each in plain.assignment()}
            return bool(theirs) and theirs == consumer.held

        crowd.until(same, "both read the offsets topic")
        assert {topic for topic, _ in consumer.held} == {"__consumer_offsets"}
    finally:
        plain.close()


# ---- security -------------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("secured")
@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [("SSL", None), ("MUTUAL", None), *(("SASL_SSL", each) for each in SASL_MECHANISMS), ("SHORT", "SCRAM-SHA-512")],
)
def test_a_group_on_every_listener(secured_kafka: SecuredKafka, listener: str, mechanism: str | None) -> None:
    """On the listener `SHORT` an authentication expires soon (KIP-368). The member outlives several of them."""
    topic = secured_kafka.create_topic(unique("topic"), 2)
    fill(secured_kafka, topic, 2, 5)
    with Crowd(secured_kafka, unique("confluent")) as crowd:
        ways = secured_kafka.settings_of(listener, mechanism)
        functions = {name: ways.pop(name) for name in ("oauth_cb",) if name in ways}
        first, second = crowd.add(**ways, **functions).follow(topic), crowd.add(**ways, **functions).follow(topic)
        crowd.settle({(topic, 0), (topic, 1)})
        crowd.until(lambda: len(first.read) + len(second.read) >= 10, "all are read")
        generations = len(first.events)
        until = time.monotonic() + (5.0 if listener == "SHORT" else 0.0)
        crowd.until(lambda: time.monotonic() >= until, "time passes")
        assert len(first.events) == generations
        assert not first.errors


@pytest.mark.xdist_group("secured")
def test_tokens_of_an_issuer_across_reauthentications(secured_kafka: SecuredKafka) -> None:
    """OIDC: librdkafka and the membership both request tokens from the issuer."""
    topic = secured_kafka.create_topic(unique("topic"), 1)
    fill(secured_kafka, topic, 1, 5)
    with issuer() as (url, asked), Crowd(secured_kafka, unique("confluent")) as crowd:
        ways = secured_kafka.settings_of("SHORT", "OAUTHBEARER")
        del ways["oauth_cb"]
        ways |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "hush",
        }
        consumer = crowd.add(**ways).follow(topic)
        crowd.until(lambda: len(consumer.read) >= 5, "all are read")
        generations = len(consumer.events)
        until = time.monotonic() + 5.0
        crowd.until(lambda: time.monotonic() >= until, "time passes")
        assert len(consumer.events) == generations
        assert not consumer.errors
    assert len(asked) >= 2
    assert {each.partition("&")[0] for each in asked} == {GRANT}


@pytest.mark.xdist_group("secured")
def test_wrong_credentials_come_out_of_poll(secured_kafka: SecuredKafka) -> None:
    ways = secured_kafka.settings_of("SASL_SSL", "PLAIN") | {"sasl.password": "wrong"}
    with Crowd(secured_kafka, unique("confluent")) as crowd:
        consumer = crowd.add(**ways).follow("any")
        with pytest.raises(KafkaException) as refused:
            crowd.until(lambda: False, "never")
        assert refused.value.args[0].code() == KafkaError.SASL_AUTHENTICATION_FAILED
        assert "wrong" not in str(refused.value)
        assert not consumer.held


# ---- transactions ---------------------------------------------------------------------------------------------------


def test_offsets_in_transactions_and_a_fenced_zombie(crowd: Crowd) -> None:
    topic = crowd.kafka.create_topic(unique("topic"), 2)
    fill(crowd.kafka, topic, 2, 10)
    consumer = crowd.add(enable_auto_commit=False, max_poll_interval_ms=SESSION_MS).follow(topic)
    crowd.until(lambda: len(consumer.read) == 20, "all are read")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": crowd.kafka.bootstrap_servers, "transactional.id": unique("tx"), "log_level": 0}
    )
    producer.init_transactions(TIMEOUT)

    def send(positions: list[TopicPartition], metadata: Any) -> None:
        producer.begin_transaction()
        producer.send_offsets_to_transaction(positions, metadata, TIMEOUT)
        producer.commit_transaction(TIMEOUT)

    metadata = consumer.consumer_group_metadata()
    send(consumer.position(consumer.assignment()), metadata)
    assert offsets(consumer, topic, 2) == [10, 10]
    # The member is expelled, since it does not poll, and another member takes over. The broker must refuse the old
    # member's offsets, so that the newer commit stays.
    other = crowd.add(enable_auto_commit=False)
    other.follow(topic)
    crowd.until(lambda: len(other.held) == 2, "the other one has everything", of=[other])
    other.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    with pytest.raises(KafkaException) as fenced:
        send([TopicPartition(topic, 0, 3)], metadata)
    assert fenced.value.args[0].txn_requires_abort()
    assert fenced.value.args[0].code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION)
    producer.abort_transaction(TIMEOUT)
    assert offsets(other, topic, 2) == [7, 10]


def test_pending_offsets_are_waited_for(crowd: Crowd) -> None:
    """Require-stable: a partition that is assigned during an open transaction starts at the transaction's offset."""
    topic = crowd.kafka.create_topic(unique("topic"), 1)
    fill(crowd.kafka, topic, 1, 10)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": crowd.kafka.bootstrap_servers, "transactional.id": unique("tx"), "log_level": 0}
    )
    producer.init_transactions(TIMEOUT)
    first = crowd.add(enable_auto_commit=False).follow(topic)
    crowd.until(lambda: len(first.read) == 10, "all are read")
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 6)], first.consumer_group_metadata(), TIMEOUT)
    crowd.leave(first)
    second = crowd.add(enable_auto_commit=False).follow(topic)
    crowd.until(lambda: second.held, "it has the partition")
    until = time.monotonic() + 1
    crowd.until(lambda: time.monotonic() > until, "time passes")
    assert second.read == []
    producer.commit_transaction(TIMEOUT)
    crowd.until(lambda: len(second.read) == 4, "it reads on behind the commit")
    assert [offset for _, _, offset in second.read] == [6, 7, 8, 9]


# ---- KIP-848 --------------------------------------------------------------------------------------------------------


@pytest.fixture
def newest(kafka_of_version: Callable[[str], Kafka]) -> Iterator[Crowd]:
    """Always the default release: 3.9 gives a member of the new protocol neither partitions nor an error."""
    with Crowd(kafka_of_version(DEFAULT_VERSION), unique("confluent")) as crowd:
        yield crowd


class Native:
    """confluent-kafka's own consumer, by default with `group.protocol=consumer`. The test's thread polls it, too."""

    def __init__(self, crowd: Crowd, topic: str, **settings: Any) -> None:
        further = {name.replace("_", "."): value for name, value in settings.items()}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": crowd.kafka.bootstrap_servers,
                "group.id": crowd.group,
                "group.protocol": "consumer",
                "log_level": 0,
            }
            | further
        )
        self.errors: list[KafkaError] = []
        self._consumer.subscribe([topic])

    def turn(self) -> int:
        """Polls once; returns the number of assigned partitions."""
        message = self._consumer.poll(0.05)
        error = None if message is None else message.error()
        if error is not None:
            self.errors.append(error)
        return len(self.held)

    @property
    def held(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close()


def shared_out(partitions: set[tuple[str, int]], *shares: set[tuple[str, int]]) -> bool:
    """Whether every member has a partition, and every partition one owner."""
    return all(shares) and sum(map(len, shares)) == len(partitions) and set().union(*shares) == partitions


def refuse_the_new_protocol(crowd: Crowd, topic: str) -> None:
    newcomer = Native(crowd, topic)

    def refused() -> bool:
        newcomer.turn()
        return bool(newcomer.errors)

    crowd.until(refused, "the newcomer is refused")
    assert newcomer.errors[0].code() == KafkaError._FATAL
    newcomer.close()


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky", "lag"])
def test_a_member_of_the_new_protocol_does_not_get_in(newest: Crowd, strategy: str) -> None:
    """Every strategy of ours writes user data into assignments. The broker then refuses to convert the group."""
    crowd = newest
    topic = crowd.kafka.create_topic(unique("topic"), 2)
    partitions = {(topic, 0), (topic, 1)}
    first, second = crowd.add(strategy).follow(topic), crowd.add(strategy)
    crowd.settle(partitions, first)
    second.follow(topic)
    crowd.settle(partitions)
    told = list(first.events), list(second.events)
    refuse_the_new_protocol(crowd, topic)
    crowd.settle(partitions)
    assert (first.events, second.events) == told


@pytest.mark.parametrize("carries_on", [False, True])
def test_a_group_that_is_converted_while_it_runs_and_is_classic_again_later(newest: Crowd, carries_on: bool) -> None:
    """librdkafka's own consumer leads. Its assignments have no user data, so that the broker converts the group."""
    crowd = newest
    topic = crowd.kafka.create_topic(unique("topic"), 6)
    partitions = {(topic, number) for number in range(6)}
    times = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 200}
    native = Native(crowd, topic, group_protocol="classic", **times)
    crowd.until(lambda: native.turn() == 6, "librdkafka's leads")
    ours = crowd.add("range", on_broker_assignor="carry-on" if carries_on else "fail").follow(topic)
    crowd.until(lambda: native.turn() == 3 and len(ours.held) == 3, "ours is a member")
    assert ours.plan() is None
    newcomer = Native(crowd, topic)

    def converted() -> bool:
        native.turn()
        newcomer.turn()
        return shared_out(partitions, native.held, newcomer.held, ours.held)

    if not carries_on:
        with pytest.raises(KafkaException) as refused:
            crowd.until(converted, "never")
        error = refused.value.args[0]
        assert error.fatal()
        assert "group.consumer.migration.policy" in error.str()
        assert "range is no longer asked" in error.str()
        # Every poll raises the error again. The consumer can still be closed.
        with pytest.raises(KafkaException):
            ours.poll(0.1)
        crowd.leave(ours)
        newcomer.close()
        native.close()
        return
    crowd.until(converted, "the broker's plan is carried out")
    assert ours.plan() is None
    assert not ours.errors
    newcomer.close()
    native.close()
    # The last member of the new protocol is gone: the group is classic again, and our assignor plans again.
    crowd.settle(partitions)
    plan = ours.plan()
    assert plan is not None
    assert plan.assignment == {ours.memberid(): {topic: list(range(6))}}
    refuse_the_new_protocol(crowd, topic)


@pytest.mark.parametrize("carries_on", [False, True])
def test_a_group_that_the_broker_assigns_for(newest: Crowd, carries_on: bool) -> None:
    """The member of the new protocol comes first: our consumer joins a group that the broker's assignor serves."""
    crowd = newest
    topic = crowd.kafka.create_topic(unique("topic"), 4)
    partitions = {(topic, number) for number in range(4)}
    first = Native(crowd, topic)
    crowd.until(lambda: first.turn() == 4, "it has everything")
    ours = crowd.add("sticky", on_broker_assignor="carry-on" if carries_on else "fail").follow(topic)
    if carries_on:
        crowd.until(lambda: first.turn() == 2 and len(ours.held) == 2, "it has the broker's plan")
        assert shared_out(partitions, first.held, ours.held)
        first.close()
        crowd.settle(partitions)
        assert ours.plan() is not None
        refuse_the_new_protocol(crowd, topic)
    else:
        with pytest.raises(KafkaException) as refused:
            crowd.until(lambda: first.turn() == 2 and len(ours.held) == 2, "never")
        assert "group.consumer.migration.policy" in str(refused.value)
        first.close()


# ---- the broker restarts --------------------------------------------------------------------------------------------


def test_a_broker_that_restarts(start_kafka: Callable[..., ApacheKafka]) -> None:
    kafka = start_kafka()
    topic = kafka.create_topic(unique("topic"), 4)
    fill(kafka, topic, 4, 10)
    partitions = {(topic, number) for number in range(4)}
    with Crowd(kafka, unique("confluent")) as crowd:
        first, second = crowd.add().follow(topic), crowd.add().follow(topic)
        crowd.settle(partitions)
        crowd.until(lambda: len(first.read) + len(second.read) >= 40, "all are read")
        kafka.kill()
        until = time.monotonic() + 1
        crowd.until(lambda: time.monotonic() > until, "time passes without a broker")
        kafka.start()
        fill(kafka, topic, 4, 10, start=10)
        expected = {(topic, number, offset) for number in range(4) for offset in range(20)}
        crowd.until(lambda: {*first.read, *second.read} == expected, "reading goes on")
        crowd.settle(partitions)


# ---- other classes --------------------------------------------------------------------------------------------------


def test_deserializing(crowd: Crowd) -> None:
    topic = crowd.kafka.create_topic(unique("topic"), 1)
    fill(crowd.kafka, topic, 1, 3)
    consumer: Any = DeserializingConsumer(settings_of(crowd) | {"value.deserializer": StringDeserializer()})
    consumer.subscribe([topic])
    values: list[Any] = []
    deadline = time.monotonic() + TIMEOUT
    while len(values) < 3:
        assert time.monotonic() < deadline
        message = consumer.poll(0.2)
        if message is not None:
            values.append(message.value())
    assert values == ["0", "1", "2"]
    assert consumer.plan().assignment == {consumer.memberid(): {topic: [0]}}
    consumer.close()
    wrong: Any = DeserializingConsumer(
        settings_of(crowd, group_id=unique("g")) | {"value.deserializer": IntegerDeserializer()}
    )
    wrong.subscribe([topic])

    def fail() -> None:
        while True:
            wrong.poll(0.2)

    with pytest.raises(ValueDeserializationError):
        fail()
    wrong.close()


def test_asyncio(crowd: Crowd) -> None:
    topic = crowd.kafka.create_topic(unique("topic"), 2)
    fill(crowd.kafka, topic, 2, 5)
    told: list[Any] = []
    reports: list[Any] = []

    async def on_assign(consumer: AIOConsumer, partitions: list[TopicPartition]) -> None:
        told.append(("on_assign", len(partitions)))
        await consumer.assign([TopicPartition(each.topic, each.partition, 2) for each in partitions])

    async def on_revoke(consumer: AIOConsumer, partitions: list[TopicPartition]) -> None:
        told.append(("on_revoke", len(partitions)))
        await consumer.commit(asynchronous=False)

    async def on_rebalance(report: Any) -> None:
        reports.append(report)

    async def run() -> None:
        conf = settings_of(crowd) | {"on_rebalance": on_rebalance, "enable.auto.commit": False}
        async with AIOConsumer(conf) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
            read: list[Any] = []
            while len(read) < 6:
                message = await consumer.poll(timeout=1.0)
                if message is not None:
                    assert message.error() is None
                    read.append(message.offset())
            assert sorted(read) == [2, 2, 3, 3, 4, 4]
            plan = await consumer.plan()
            assert plan is not None
            assert len(plan) == 1
            assert len(await consumer.assignment()) == 2
        assert conf["on_rebalance"] is on_rebalance

    asyncio.run(asyncio.wait_for(run(), 3 * TIMEOUT))
    assert told == [("on_assign", 2), ("on_revoke", 2)]
    assert [len(report.gained) for report in reports] == [1]
    with Consumer(settings_of(crowd)) as reader:
        assert offsets(reader, topic, 2) == [5, 5]
