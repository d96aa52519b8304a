"""The bytes that a consumer fetches again of kept partitions, while its assignment changes again and again.

The reader keeps the partitions of one topic. Its partitions of the other topic change whenever a second member joins or
leaves. The bytes that arrive on its connections are compared with those of the client's own consumer, which reads the
first topic once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import threading
import time
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import aiokafka
import confluent_kafka
import kafka

from kafka_assignors import CustomAssignor
from kafka_assignors.clients.aiokafka import AIOKafkaConsumer
from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.member.config import MemberConfig
from kafka_assignors.net.config import ClientConfig
from support.broker import unique
from support.fake_client import FakeConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka_assignors import Group
    from support.broker import Kafka

__all__ = ["PARTITIONS", "PROTOCOLS", "SIZE", "WAYS", "bytes_of_ours", "bytes_of_the_client", "fill"]

PARTITIONS = 6
SIZE = 2_000
PATIENCE = 120.0
# The most records of one call. During the wait for a change, the calls are for few records, with a rest between them:
# then the client still holds most of the fetched records when the assignment changes.
FEW, MANY = 5, 100
REST = 0.01

Records: TypeAlias = "list[tuple[str, int, int]]"
"""Topic, partition and offset of each."""


class Exchange(CustomAssignor):
    """The reader keeps the first topic, by name; the members exchange partitions of the second one."""

    name = "exchange"

    def __init__(self, reads: bool = False) -> None:
        self.reads = reads

    def member_data(self) -> bytes:
        return b"reads" if self.reads else b""

    def plan(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        kept, exchanged = sorted(group.topics)
        ids = [member.id for member in group.members]
        (reader,) = (member.id for member in group.members if member.data)
        shares: dict[str, dict[str, list[int]]] = {name: {exchanged: []} for name in ids}
        shares[reader][kept] = list(range(group.partitions(kept)))
        for number in range(group.partitions(exchanged)):
            # Member ids are random: the shares differ from generation to generation.
            shares[ids[zlib.crc32(f"{number} {ids}".encode()) % len(ids)]][exchanged].append(number)
        return shares


class CooperativeExchange(Exchange):
    """The same, in cooperative rebalances."""

    name = "cooperative-exchange"
    cooperative = True


PROTOCOLS: dict[str, type[Exchange]] = {"eager": Exchange, "cooperative": CooperativeExchange}


class Reader(Protocol):
    """A consumer, with the call by which it reads."""

    def read(self, most: int) -> Records:
        """At most this number of records; none if no record arrives for a moment."""
        ...

    def rest(self) -> None:
        """Lets the client work."""
        ...

    def held(self) -> int:
        """The number of its partitions."""
        ...

    def close(self) -> None: ...


class KafkaPythonReader:
    """kafka-python, by `poll` or by iteration."""

    def __init__(self, way: str, kafka_: Kafka, topics: Sequence[str], group: str | None, assignor: Any) -> None:
        settings: dict[str, Any] = {"bootstrap_servers": kafka_.bootstrap_servers, "auto_offset_reset": "earliest"}
        settings |= {"check_crcs": False, "consumer_timeout_ms": 50}
        if group is None:
            self.consumer: Any = kafka.KafkaConsumer(**settings, enable_auto_commit=False)
            self.consumer.assign([kafka.TopicPartition(each, at) for each in topics for at in range(PARTITIONS)])
        else:
            settings |= {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 100}
            self.consumer = KafkaConsumer(*topics, group_id=group, **settings)
        self._iterates = way == "iteration"

    def read(self, most: int) -> Records:
        if not self._iterates:
            found = self.consumer.poll(timeout_ms=50, max_records=most)
            return [(each.topic, each.partition, each.offset) for some in found.values() for each in some]
        records: Records = []
        for each in self.consumer:
            records.append((each.topic, each.partition, each.offset))
            if len(records) == most:
                break
        return records

    def rest(self) -> None:
        time.sleep(REST)

    def held(self) -> int:
        return len(self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()


class AiokafkaReader:
    """aiokafka, by `getmany`, `getone` or iteration, on a loop of its own."""

    _nothing_for: ClassVar[float] = 0.05

    def __init__(self, way: str, kafka_: Kafka, topics: Sequence[str], group: str | None, assignor: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._way = way
        self.consumer: Any = None
        settings: dict[str, Any] = {"bootstrap_servers": kafka_.bootstrap_servers, "auto_offset_reset": "earliest"}

        async def start() -> None:
            if group is None:
                self.consumer = aiokafka.AIOKafkaConsumer(**settings, enable_auto_commit=False)
            else:
                ours = {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 100}
                self.consumer = AIOKafkaConsumer(*topics, group_id=group, **settings, **ours)
            await self.consumer.start()
            if group is None:
                self.consumer.assign([aiokafka.TopicPartition(each, at) for each in topics for at in range(PARTITIONS)])

        self._loop.run_until_complete(start())

    def read(self, most: int) -> Records:
        return self._loop.run_until_complete(self._read(most))

    async def _read(self, most: int) -> Records:
        if self._way == "getmany":
            found = await self.consumer.getmany(timeout_ms=1000 * self._nothing_for, max_records=most)
            return [(each.topic, each.partition, each.offset) for some in found.values() for each in some]
        get = self.consumer.getone if self._way == "getone" else self.consumer.__anext__
        records: Records = []
        with contextlib.suppress(TimeoutError):
            while len(records) < most:
                each = await asyncio.wait_for(get(), self._nothing_for)
                records.append((each.topic, each.partition, each.offset))
        return records

    def rest(self) -> None:
        self._loop.run_until_complete(asyncio.sleep(REST))

    def held(self) -> int:
        return len(self.consumer.assignment())

    def close(self) -> None:
        self._loop.run_until_complete(self.consumer.stop())
        self._loop.close()


WAYS: dict[str, Callable[[Kafka, Sequence[str], str | None, Any], Reader]] = {
    "kafka-python: poll()": partial(KafkaPythonReader, "poll"),
    "kafka-python: iteration": partial(KafkaPythonReader, "iteration"),
    "aiokafka: getmany()": partial(AiokafkaReader, "getmany"),
    "aiokafka: getone()": partial(AiokafkaReader, "getone"),
    "aiokafka: async for": partial(AiokafkaReader, "iteration"),
}
"""How an application reads, by client."""


class Other:
    """The second member, which has no connection for records. It joins and leaves on a thread of its own."""

    def __init__(self, kafka_: Kafka, topics: Sequence[str], group: str, assignor: Exchange) -> None:
        self._topics = topics
        self._config = MemberConfig(
            client=ClientConfig.from_confluent({"bootstrap.servers": kafka_.bootstrap_servers}),
            group_id=group,
            assignors=(assignor,),
            heartbeat_interval_ms=100,
        )
        self._here = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_member = False

    def join(self) -> None:
        self._here.set()
        self._thread = threading.Thread(target=self._be_a_member, name="other")
        self._thread.start()

    def leave(self) -> None:
        self._here.clear()
        if self._thread is not None:
            self._thread.join()

    def _be_a_member(self) -> None:
        consumer = FakeConsumer({}, self._config)
        consumer.subscribe(self._topics, self._listen)
        try:
            while self._here.is_set():
                consumer.poll(0.05)
        finally:
            consumer.close()
            self.is_member = False

    def _listen(self, event: str, _: Any) -> None:
        self.is_member = event == "assigned"


def received(port: int) -> dict[int, int]:
    """The bytes that have arrived on this process's open connections to a port, by each connection's own port.

    It needs Linux.
    """
    arrived = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as each:
                if each.family == socket.AF_INET and each.getpeername()[1] == port:
                    # The offset of tcpi_bytes_received in struct tcp_info, since Linux 4.1.
                    info = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
                    arrived[each.getsockname()[1]] = struct.unpack_from("<Q", info, 128)[0]
        except OSError:
            continue
    return arrived


def _port(kafka_: Kafka) -> int:
    return int(kafka_.bootstrap_servers.rpartition(":")[2])


def fill(kafka_: Kafka, topic: str, records: int) -> None:
    """Writes this number of records to each partition."""
    _write(_producer(kafka_), topic, records, SIZE)


def _producer(kafka_: Kafka) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": kafka_.bootstrap_servers, "linger.ms": 5, "log_level": 0})


def _write(producer: confluent_kafka.Producer, topic: str, records: int, size: int) -> None:
    for _ in range(records):
        for partition in range(PARTITIONS):
            while True:
                try:
                    producer.produce(topic, os.urandom(size), partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
    if producer.flush(PATIENCE):
        raise TimeoutError(f"the broker did not take the records within {PATIENCE} s")


def bytes_of_the_client(kafka_: Kafka, topic: str, records: int, way: str) -> int:
    """The bytes that arrive while the client's own consumer reads the topic, with `records` in each partition.

    It reads in batches: whenever a loop over kafka-python's consumer is left, the client fetches some records again.
    """
    others = received(_port(kafka_)).keys()
    reader = WAYS["kafka-python: poll()" if way.startswith("kafka-python") else "aiokafka: getmany()"](
        kafka_, [topic], None, None
    )
    try:
        return _bytes_until_all_are_read(kafka_, topic, records, reader, [], others)
    finally:
        reader.close()


def bytes_of_ours(kafka_: Kafka, topic: str, records: int, way: str, protocol: str, changes: int) -> int:
    """The bytes that arrive while our consumer reads the same records, and its assignment changes `changes` times.

    Raises:
        AssertionError: a record of the topic was not read, or read twice.
    """
    # The name puts this topic after the kept one: `Exchange` sorts the topics.
    exchanged = kafka_.create_topic(unique("zz-exchanged"), PARTITIONS)
    others = received(_port(kafka_)).keys()
    group, topics, producer = unique("bench"), [topic, exchanged], _producer(kafka_)
    other = Other(kafka_, topics, group, PROTOCOLS[protocol]())
    reader = WAYS[way](kafka_, topics, group, PROTOCOLS[protocol](reads=True))
    read: Records = []
    try:
        _until(lambda: reader.held() == 2 * PARTITIONS, "the reader has everything", reader, read)
        for change in range(changes):
            # A small record in each partition, so that the reader also reads exchanged partitions.
            _write(producer, exchanged, 1, 10)
            if change % 2 == 0:
                other.join()
                _until(lambda: other.is_member, "the other has joined", reader, read)
            else:
                other.leave()
                _until(lambda: reader.held() == 2 * PARTITIONS, "the reader has everything again", reader, read)
            share = PARTITIONS * records * (change + 1) // (changes + 1)
            while len(read) < share:
                read += reader.read(MANY)
        return _bytes_until_all_are_read(kafka_, topic, records, reader, read, others)
    finally:
        other.leave()
        reader.close()


def _until(true: Callable[[], object], what: str, reader: Reader, read: Records) -> None:
    late = time.monotonic() + PATIENCE
    while not true():
        read += reader.read(FEW)
        reader.rest()
        if time.monotonic() > late:
            raise TimeoutError(f"not within {PATIENCE} s: {what}")


def _bytes_until_all_are_read(
    kafka_: Kafka, topic: str, records: int, reader: Reader, read: Records, others: Collection[int]
) -> int:
    """The bytes that have arrived on all connections but `others`, which the process had before."""

    def kept() -> list[tuple[str, int, int]]:
        return [each for each in read if each[0] == topic]

    wanted = PARTITIONS * records
    late = time.monotonic() + PATIENCE
    while len(kept()) < wanted:
        for _ in range(20):
            read += reader.read(MANY)
        if time.monotonic() > late:
            raise TimeoutError(f"{wanted - len(kept())} records were not read within {PATIENCE} s")
    found = sum(arrived for own, arrived in received(_port(kafka_)).items() if own not in others)
    assert sorted(kept()) == [(topic, at, offset) for at in range(PARTITIONS) for offset in range(records)]
    return found
