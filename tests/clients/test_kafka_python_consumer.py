"""Our consumer on kafka-python: abilities that the client's coordinator lacks, and behaviour that programs rely on."""

from __future__ import annotations

import select
import threading
import time
from typing import TYPE_CHECKING, Any

import kafka
import kafka.errors
import pytest
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.clients.kafka_python.commits import offset_and_metadata
from kafka_assignors.member.data_path import Position
from support.broker import unique
from support.data_paths import Readers
from support.raw_group import MEMBER_ID_REQUIRED, NONE, RawMember
from support.readers.on_kafka_python import TELLS_OF_LOSSES, KafkaPythonReader, consumer_of, tps
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.broker import Kafka


@pytest.fixture
def sticky(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        yield readers


# What the client's own coordinator cannot do.


def test_a_leader_without_metadata_takes_nothing_away(sticky: Readers) -> None:
    """KIP-54's example 2: the leader C0 leaves. The next leader has no metadata of the topic that only C2 reads."""
    t0, first = sticky.topic(1, 3)
    t1, second = sticky.topic(2, 3)
    t2, third = sticky.topic(3, 3)
    reports: dict[str, list[Any]] = {name: [] for name in ("c0", "c1", "c2")}
    c0, c1, c2 = (sticky.add(further={"on_rebalance": reports[name].append}) for name in reports)
    c0.follow(t0)
    sticky.settle(first, c0)
    c1.follow(t0, t1)
    c2.follow(t0, t1, t2)
    sticky.settle(first | second | third)
    assert third <= c2.held
    before = c1.held, c2.held
    sticky.until(lambda: len({*c0.read, *c1.read, *c2.read}) == 18, "all is read")
    sticky.until(lambda: c2.commit() >= third, "it is committed")
    c2.read.clear()
    c0.close()
    sticky.settle(first | second | third, c1, c2)
    assert before[0] <= c1.held
    assert before[1] <= c2.held
    leading = next(each for each in (c1, c2) if reports["c1" if each is c1 else "c2"][-1].leader)
    plan = consumer_of(leading).plan()
    assert plan is not None
    assert plan.moved == 0
    sticky.fill(t2, 3, 1)
    sticky.until(lambda: len([each for each in c2.read if each[0] == t2]) == 3, "the new ones are read", c1, c2)
    assert {offset for name, _, offset in c2.read if name == t2} == {3}


def test_garbage_of_another_member_costs_that_one_only(sticky: Readers) -> None:
    topic, partitions = sticky.topic(4, 5)
    reader = sticky.add().follow(topic)
    sticky.settle(partitions)
    hostile = RawMember(sticky.kafka.bootstrap_servers, sticky.group, "hostile", "sticky")
    try:
        for expected in (MEMBER_ID_REQUIRED, NONE):
            hostile.send_join(b"\xff" * 40)
            sticky.until(lambda: select.select([hostile], [], [], 0)[0], "the join is answered")
            assert hostile.receive_join().error == expected
        hostile.send_sync({})
        sticky.until(lambda: select.select([hostile], [], [], 0)[0], "the sync is answered")
        error, share = hostile.receive_sync()
        assert error == NONE
        assert topic.encode() not in share
        sticky.until(lambda: reader.held == partitions and len(reader.read) == 20, "the other has all")
    finally:
        hostile.close()


# Subscriptions.


def test_a_pattern_is_matched_from_the_beginning_of_a_name(sticky: Readers) -> None:
    prefix = unique("events")
    one, two, other = f"{prefix}.a", f"{prefix}.b", f"not-{prefix}"
    sticky.kafka.create_topic(one, 1)
    sticky.kafka.create_topic(other, 1)
    reader = sticky.add()
    consumer = consumer_of(reader)
    consumer.subscribe(pattern=prefix)
    sticky.until(lambda: reader.held == {(one, 0)}, "the topic is assigned")
    assert consumer.subscription() == {one}
    sticky.kafka.create_topic(two, 1)
    sticky.until(lambda: reader.held == {(one, 0), (two, 0)}, "the new topic is assigned as well")
    assert consumer.subscription() == {one, two}


def test_what_is_no_subscription(embedded: Kafka) -> None:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        consumer = consumer_of(readers.add())
        assert consumer.subscription() is None
        with pytest.raises((AssertionError, ValueError)):
            consumer.subscribe()
        with pytest.raises(kafka.errors.IllegalStateError):
            consumer.subscribe(["t"], pattern="t")
        with pytest.raises(TypeError):
            consumer.subscribe(["t"], listener=object())
        consumer.unsubscribe()
        consumer.assign([TopicPartition("t", 0)])
        with pytest.raises(kafka.errors.IllegalStateError):
            consumer.subscribe(["t"])
        consumer.unsubscribe()
        consumer.subscribe(["t"])
        assert consumer.subscription() == {"t"}
        with pytest.raises(kafka.errors.IllegalStateError):
            consumer.assign([TopicPartition("t", 0)])


def test_unsubscribing_is_over_at_once(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    reader = sticky.add().follow(topic)
    consumer = consumer_of(reader)
    sticky.settle(partitions)
    reader.events.clear()
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    assert consumer.subscription() is None
    assert reader.events == [], "the client's listener does not hear of it"
    wait_until(lambda: not sticky.kafka.describe_group(sticky.group).assignment, "it has left")


def test_partitions_of_the_programs_own_choice(sticky: Readers) -> None:
    _, partitions = sticky.topic(2, 10)
    one, two = tps(partitions)
    reader = sticky.add(auto_commit=True, auto_commit_interval=0.1)
    consumer = consumer_of(reader)
    consumer.commit({one: offset_and_metadata(Position(6))})
    consumer.assign([one])
    assert consumer.assignment() == {one}
    assert consumer.position(one) == 6
    sticky.until(lambda: len(reader.read) == 4, "it reads from the commit on")
    sticky.until(lambda: consumer.committed(one) == 10, "it is committed")
    consumer.assign([one, two])
    sticky.until(lambda: len(reader.read) == 14, "the other is read from its beginning")
    assert len(set(reader.read)) == 14
    consumer.seek(one, 9)
    sticky.until(lambda: len(reader.read) == 15, "it is read again")
    consumer.close()
    asks = consumer_of(sticky.add())
    assert [asks.committed(each) for each in (one, two)] == [10, 10]
    assert not sticky.kafka.describe_group(sticky.group).assignment


# Iteration.


def iterate(consumer: KafkaConsumer, count: int) -> list[tuple[str, int, int]]:
    found = []
    for record in consumer:
        found.append((record.topic, record.partition, record.offset))
        if len(found) == count:
            break
    return found


def test_iteration_ends_in_time_and_follows_rebalances(sticky: Readers) -> None:
    topic, _ = sticky.topic(2, 200)
    further = {"consumer_timeout_ms": 300, "max_poll_records": 50}
    first = sticky.add(further=further)
    consumer = consumer_of(first)
    consumer.subscribe([topic])
    wait_until(lambda: iterate(consumer, 1) or None, "a record comes")
    read = [(topic, 0, 0)][:0]
    read += iterate(consumer, 60)
    second = sticky.add(further=further)
    consumer_of(second).subscribe([topic])
    other = threading.Thread(target=lambda: second.read.extend(iterate(consumer_of(second), 10_000)), daemon=True)
    other.start()
    deadline = time.monotonic() + TIMEOUT
    while len(first.held) != 1 and time.monotonic() < deadline:
        read += iterate(consumer, 5)
    (kept,) = first.held

    def is_read() -> bool:
        # It ends after 300 ms without a record, on a busy machine also before the last record.
        read.extend(iterate(consumer, 10_000))
        return (*kept, 199) in read

    wait_until(is_read, "all is read")
    other.join(TIMEOUT)
    mine = [offset for name, number, offset in read if (name, number) == kept]
    assert mine == list(range(mine[0], 200)), "each once, and in order"
    assert mine[0] <= 1
    started = time.monotonic()
    assert iterate(consumer, 1) == []
    assert time.monotonic() - started >= 0.3


def test_a_batch_survives_seeks_pauses_and_polls(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 20)
    one, two = tps(partitions)
    consumer = consumer_of(sticky.add(further={"consumer_timeout_ms": 5000}))
    consumer.subscribe([topic])
    (first,) = iterate(consumer, 1)
    wait_until(lambda: consumer.position(TopicPartition(*first[:2])) == 1, "the batch is there")
    this, that = (one, two) if first[1] == 0 else (two, one)
    assert consumer.position(this) == 1
    consumer.seek(that, 15)
    assert iterate(consumer, 2) == [(topic, this.partition, 1), (topic, this.partition, 2)]
    consumer.pause(this)
    rest = iterate(consumer, 5)
    assert rest == [(topic, that.partition, offset) for offset in range(15, 20)]
    consumer.resume(this)
    polled = consumer.poll(1000, max_records=4)
    assert [each.offset for each in polled[this]] == [3, 4, 5, 6]
    assert consumer.position(this) == 7
    assert iterate(consumer, 1) == [(topic, this.partition, 7)]


def test_a_poll_without_records_asks_the_client_once(sticky: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the group expects an answer: then the poll looks for records again and again."""
    topic, _ = sticky.topic(2, 0)
    rare = {"heartbeat_interval_ms": 60_000, "session_timeout_ms": 180_000, "metadata_max_age_ms": 300_000}
    consumer = consumer_of(sticky.add(further=rare).follow(topic))
    member: Any = consumer._group.member  # type: ignore[union-attr]

    def is_quiet() -> bool:
        assert consumer.poll(10) == {}
        return len(consumer.assignment()) == 2 and bool(member.news_due > time.monotonic() + 30)

    wait_until(is_quiet, "the next request is far away")
    calls: list[float] = []
    native = kafka.KafkaConsumer.poll

    def counted(self: Any, timeout_ms: float, **further: Any) -> Any:
        calls.append(timeout_ms)
        return native(self, timeout_ms=timeout_ms, **further)

    monkeypatch.setattr(kafka.KafkaConsumer, "poll", counted)
    started = time.monotonic()
    assert consumer.poll(300) == {}
    assert time.monotonic() - started >= 0.3
    assert len(calls) == 1
    assert calls[0] > 200
    assert consumer.poll(0) == {}
    assert calls[1:] == [0]
    # While the group expects an answer, the client is asked for the records that came meanwhile.
    monkeypatch.setattr(type(member), "news_due", property(lambda _: time.monotonic()))
    calls.clear()
    assert consumer.poll(100) == {}
    assert len(calls) > 1
    assert set(calls) == {0}


# Other threads, the end, and no group.


def test_another_thread_may_commit_and_close(sticky: Readers) -> None:
    topic, partitions = sticky.topic(1, 5)
    (partition,) = tps(partitions)
    consumer = consumer_of(sticky.add().follow(topic))
    reading = threading.Event()
    ended: list[BaseException | None] = []

    def read() -> None:
        try:
            while True:
                if consumer.poll(TIMEOUT * 1000):
                    reading.set()
                elif not consumer.assignment():
                    break
        except BaseException as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert reading.wait(TIMEOUT)
    consumer.commit()
    assert consumer.committed(partition) == 5
    consumer.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def test_a_closed_consumer(sticky: Readers) -> None:
    topic, partitions = sticky.topic(1, 5)
    reader = sticky.add(further={"consumer_timeout_ms": 1000}).follow(topic)
    consumer = consumer_of(reader)
    sticky.settle(partitions)
    with consumer as entered:
        assert entered is consumer
    consumer.close()
    assert reader.calls_of("revoked") == ([partitions] if TELLS_OF_LOSSES else [])
    assert list(consumer) == []
    with pytest.raises((AssertionError, kafka.errors.IllegalStateError)):
        consumer.poll(0)


def test_without_a_group_it_is_the_clients_own(embedded: Kafka) -> None:
    topic = embedded.create_topic(unique("topic"), 1)
    KafkaPythonReader.fill(embedded, topic, 1, 5)
    settings = {"auto_offset_reset": "earliest", "partition_assignment_strategy": "sticky", "on_rebalance": print}
    consumer = KafkaConsumer(topic, bootstrap_servers=embedded.bootstrap_servers, **settings)
    try:
        assert len(iterate(consumer, 5)) == 5
        assert consumer.subscription() == {topic}
        assert consumer.plan() is None
        with pytest.raises((AssertionError, kafka.errors.IllegalStateError)):
            consumer.commit()
    finally:
        consumer.close()


def group_metadata_name_the_member_or_its_last_identity(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 1)
    first = sticky.add(further={"group_instance_id": unique("instance")})
    consumer = consumer_of(first)
    before = consumer.group_metadata()
    assert (before.group_id, before.generation_id, before.member_id) == (sticky.group, -1, "")
    first.follow(topic)
    sticky.settle(partitions)
    # Committed offsets that arrive later would make the first due before the second has joined.
    sticky.until(lambda: len(first.read) == 2, "all is read")
    stable = consumer.group_metadata()
    member_id, generation = first.side.latest
    assert stable[:4] == (sticky.group, generation, member_id, consumer.config["group_instance_id"])
    assert stable.state == "<stable>"
    second = sticky.add().follow(topic)
    sticky.until(lambda: first.side.is_due, "the rebalance has begun", second)
    assert consumer.group_metadata()[:3] == stable[:3]
    sticky.settle(partitions)
    assert consumer.group_metadata().generation_id > generation


def test_reports_and_plans(sticky: Readers) -> None:
    topic, partitions = sticky.topic(4)
    reports: list[Any] = []
    reader = sticky.add(further={"on_rebalance": reports.append}).follow(topic)
    assert consumer_of(reader).plan() is None
    sticky.settle(partitions)
    plan = consumer_of(reader).plan()
    assert plan is not None
    assert plan.assignment == {reader.side.latest[0]: {topic: [0, 1, 2, 3]}}
    assert [each.leader for each in reports] == [True]


def test_lags_by_name(embedded: Kafka) -> None:
    with Readers(embedded, KafkaPythonReader, "lag(scope=group)") as readers:
        topic, partitions = readers.topic(3, 4)
        reader = readers.add().follow(topic)
        readers.settle(partitions)
        plan = consumer_of(reader).plan()
        assert plan is not None
        assert plan.lag_by_member == {reader.side.latest[0]: 12}


# kafka-python 2 has no such method.
if hasattr(kafka.KafkaConsumer, "group_metadata"):
    test_group_metadata_name_the_member_or_its_last_identity = group_metadata_name_the_member_or_its_last_identity
