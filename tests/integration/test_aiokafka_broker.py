"""Our consumer on aiokafka and a real broker: all listeners, tokens of an issuer, transactions, a flow of records."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import aiokafka
import pytest
from aiokafka import TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import ConsumerStoppedError, ProducerFenced
from aiokafka.helpers import create_ssl_context
from aiokafka.structs import OffsetAndMetadata

from support.aiokafka_group import SESSION_MS, Members
from support.broker import unique
from support.issuer import GRANT, granted, issuer
from support.secured import PASSWORD, REAUTHENTICATION_MS, USER, unsecured_token
from support.silence import silence_member

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
    from support.broker import Kafka
    from support.secured import SecuredKafka


def run(kafka: Kafka, test: Callable[[Members], Coroutine[Any, Any, None]], strategy: str = "sticky") -> None:
    """Runs a test with a group."""

    async def running() -> None:
        async with Members(kafka, strategy) as members:
            await test(members)

    asyncio.run(running())


# Listeners.


class MskSigner(AbstractTokenProvider):  # type: ignore[misc]
    """Like the example on the page of aws-msk-iam-sasl-signer: the signer blocks, so a thread calls it."""

    async def token(self) -> str:
        token, _expiry = await asyncio.to_thread(unsecured_token, "")
        return token


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """A provider as in a program. It keeps a token while the token is valid, as the client's documents demand."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._token, self._expires = "", 0.0
        self._one_at_a_time = asyncio.Lock()

    async def token(self) -> str:
        async with self._one_at_a_time:
            if time.monotonic() >= self._expires - 25:
                self._token, lifetime = await asyncio.to_thread(granted, self._url)
                self._expires = time.monotonic() + lifetime
        return self._token


def settings_of(kafka: SecuredKafka, listener: str, mechanism: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bootstrap_servers": kafka.address(listener),
        "security_protocol": kafka.listeners[listener],
    }
    if mechanism is not None:
        found["sasl_mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        found["sasl_oauth_token_provider"] = MskSigner()
    elif mechanism is not None:
        found |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    if found["security_protocol"].endswith("SSL"):
        files = kafka.certificates
        own = {"certfile": files.client, "keyfile": files.client_key} if listener == "MUTUAL" else {}
        found["ssl_context"] = create_ssl_context(cafile=files.ca, **own)
    return found


@pytest.mark.xdist_group("secured")
@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("SSL", None),
        ("MUTUAL", None),
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SASL_SSL", "PLAIN"),
        ("SASL_SSL", "SCRAM-SHA-256"),
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_PLAINTEXT", "OAUTHBEARER"),
    ],
)
def test_every_way_in(secured_kafka: SecuredKafka, listener: str, mechanism: str | None) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(2, 3)
        consumer = await members.start(topic, **settings_of(secured_kafka, listener, mechanism))
        assert consumer.assignment() == partitions
        await members.until(lambda: len(members.read[consumer]) == 6, "all is read", consumer)
        one, two = sorted(partitions)
        await consumer.commit({one: 1, two: OffsetAndMetadata(2, "made by me")})
        assert await consumer._coordinator.fetch_committed_offsets([one, two]) == {
            one: OffsetAndMetadata(1, ""),
            two: OffsetAndMetadata(2, "made by me"),
        }

    run(secured_kafka, test)


@pytest.mark.xdist_group("secured")
def test_tokens_of_an_issuer_across_reauthentications(secured_kafka: SecuredKafka) -> None:
    async def test(members: Members) -> None:
        topic, _ = members.topic(1, 1)
        settings = settings_of(secured_kafka, "SHORT", "OAUTHBEARER")
        settings["sasl_oauth_token_provider"] = ClientCredentials(url)
        consumer = await members.start(topic, **settings)
        identity = consumer._group_side.latest
        assert identity[1] == 1
        end = time.monotonic() + 3 * REAUTHENTICATION_MS / 1000
        await members.until(lambda: time.monotonic() > end, "time passes", consumer)
        members.fill(topic, 1, 4)
        await members.until(lambda: len(members.read[consumer]) == 5, "it still reads", consumer)
        await consumer.commit()
        assert consumer._group_side.latest == identity, "no connection of the member was lost"

    with issuer() as (url, asked):
        run(secured_kafka, test)
        assert asked
        assert set(asked) == {GRANT}


@pytest.mark.xdist_group("secured")
def test_a_blocked_loop_keeps_the_membership_across_reauthentications(secured_kafka: SecuredKafka) -> None:
    async def test(members: Members) -> None:
        topic, _ = members.topic(1, 1)
        consumer = await members.start(topic, **settings_of(secured_kafka, "SHORT", "OAUTHBEARER"))
        identity = consumer._group_side.latest
        # This is longer than a session, and longer than the broker accepts a token.
        time.sleep(1.5 * SESSION_MS / 1000)
        members.fill(topic, 1, 4)
        await members.until(lambda: len(members.read[consumer]) == 5, "it reads on", consumer)
        await consumer.commit()
        assert consumer._group_side.latest == identity

    run(secured_kafka, test)


# Transactions. The client's producer names no member, as docs/aiokafka.md says.


async def begin(kafka: Kafka, transactional_id: str) -> aiokafka.AIOKafkaProducer:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=transactional_id)
    await producer.start()
    await producer.begin_transaction()
    return producer


async def end(producer: aiokafka.AIOKafkaProducer, group: str, partition: TopicPartition, offset: int) -> None:
    await producer.send_offsets_to_transaction({partition: OffsetAndMetadata(offset, "in a transaction")}, group)
    await producer.commit_transaction()


def test_a_transaction_commits_for_the_group(kafka_broker: Kafka) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(1, 5)
        into, _ = members.topic(1)
        (one,) = partitions
        consumer = await members.start(topic)
        await members.until(lambda: len(members.read[consumer]) == 5, "all is read", consumer)
        producer = await begin(kafka_broker, unique("transactions"))
        try:
            await producer.send_and_wait(into, b"of an aborted one")
            await producer.send_offsets_to_transaction({one: 2}, members.group)
            await producer.abort_transaction()
            assert await consumer.committed(one) is None
            await producer.begin_transaction()
            await producer.send_and_wait(into, b"of a committed one")
            await end(producer, members.group, one, 5)
        finally:
            await producer.stop()
        assert await consumer._coordinator.fetch_committed_offsets([one]) == {
            one: OffsetAndMetadata(5, "in a transaction")
        }
        reading = await members.start(into, group_id=unique("other"), isolation_level="read_committed")
        record = await asyncio.wait_for(reading.getone(), 30)
        assert record.value == b"of a committed one"

    run(kafka_broker, test)


def test_a_producer_for_each_partition_fences_a_zombie(kafka_broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(1, 5)
        (one,) = partitions
        name = f"{members.group}-{topic}-0"
        zombie = await members.start(topic, request_timeout_ms=2000)
        its = await begin(kafka_broker, name)
        await end(its, members.group, one, 1)
        silence_member(zombie._group_side.member, monkeypatch)
        heir = await members.start(topic)
        assert heir.assignment() == partitions
        # The offsets name no member. So the broker accepts them, although the zombie was expelled.
        await its.begin_transaction()
        await end(its, members.group, one, 2)
        assert await heir.committed(one) == 2
        await its.begin_transaction()
        heirs = await begin(kafka_broker, name)
        try:
            await end(heirs, members.group, one, 3)
            with pytest.raises(ProducerFenced):
                await end(its, members.group, one, 1)
        finally:
            await heirs.stop()
            await its.stop()
            monkeypatch.undo()
        assert await heir.committed(one) == 3

    run(kafka_broker, test)


# Data.


class Flow:
    """Records that arrive all the time, and consumers that read them until they stop."""

    def __init__(self, members: Members, topic: str, partitions: int) -> None:
        self.members = members
        self.topic = topic
        self.partitions = partitions
        self.sent = 0
        self.read: Counter[tuple[int, int]] = Counter()
        self.reading: dict[AIOKafkaConsumer, asyncio.Task[None]] = {}

    async def produce(self) -> None:
        """Adds one record to each partition again and again, until the task is cancelled."""
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=self.members.kafka.bootstrap_servers) as producer:
            while True:
                numbers = range(self.partitions)
                batch = [await producer.send(self.topic, b"x", partition=number) for number in numbers]
                await asyncio.shield(asyncio.gather(*batch))
                self.sent += 1
                await asyncio.sleep(0.005)

    async def join(self) -> AIOKafkaConsumer:
        consumer = await self.members.start(self.topic, enable_auto_commit=True)
        self.reading[consumer] = asyncio.create_task(self._read(consumer))
        return consumer

    async def leave(self, consumer: AIOKafkaConsumer) -> None:
        """Stops a consumer in the middle of a get."""
        await consumer.stop()
        await self.reading.pop(consumer)

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            try:
                found = await consumer.getmany(timeout_ms=100, max_records=7)
            except ConsumerStoppedError:
                return
            self.read.update((record.partition, record.offset) for records in found.values() for record in records)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_no_record_is_lost_or_read_twice_over_joins_and_leaves(kafka_broker: Kafka, strategy: str) -> None:
    async def test(members: Members) -> None:
        topic, partitions = members.topic(6)
        flow = Flow(members, topic, len(partitions))
        producing = asyncio.create_task(flow.produce())

        async def settled() -> None:
            """Waits until every consumer has a share, and has then read newer records of every partition."""
            await members.settled(partitions, *flow.reading)
            least = flow.sent + 5
            await members.until(
                lambda: all(flow.read[number, least] for number in range(len(partitions))), "it goes on"
            )

        for _ in range(3):
            await flow.join()
            await settled()
        for _ in range(4):
            # The oldest consumer is the leader.
            await flow.leave(next(iter(flow.reading)))
            await settled()
            await flow.join()
            await settled()
        await asyncio.gather(flow.join(), flow.leave(next(iter(flow.reading))))
        await settled()
        producing.cancel()
        await asyncio.wait([producing])
        ends = await next(iter(flow.reading)).end_offsets(partitions)
        everything = Counter(
            {(partition.partition, offset): 1 for partition, end in ends.items() for offset in range(end)}
        )
        await members.until(lambda: flow.read.keys() >= everything.keys(), "everything is read")
        assert flow.read - everything == Counter(), "these were read twice"
        while flow.reading:
            await flow.leave(next(iter(flow.reading)))
        other = await members.start()
        assert {each: await other.committed(each) for each in partitions} == ends

    run(kafka_broker, test, strategy)
