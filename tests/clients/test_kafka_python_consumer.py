"""Our consumer on kafka-python: what its own coordinator cannot do, and what the client's programs rely on."""

from __future__ import annotations

import select
import threading
import time
from typing import TYPE_CHECKING, Any

import kafka
import kafka.errors
import pytest
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python import KafkaConsumer, RebalanceDiffListener
from kafka_assignors.clients.kafka_python.commits import offset_and_metadata
from kafka_assignors.member.data_path import Position
from support.broker import unique
from support.data_paths import Readers
from support.raw_group import MEMBER_ID_REQUIRED, NONE, RawMember
from support.readers.on_kafka_python import KafkaPythonReader
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.broker import Kafka

TELLS_OF_LOSSES = hasattr(kafka.ConsumerRebalanceListener, "on_partitions_lost")


@pytest.fixture
def sticky(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        yield readers


@pytest.fixture
def cooperative(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "cooperative-sticky") as readers:
        yield readers


def consumer_of(reader: Any) -> KafkaConsumer:
    consumer: KafkaConsumer = reader.consumer
    return consumer


def tps(partitions: Any) -> list[TopicPartition]:
    return [TopicPartition(*each) for each in sorted(partitions)]


# What the client's own coordinator cannot do.


def test_a_leader_without_metadata_takes_nothing_away(sticky: Readers) -> None:
    """KIP-54's example 2: C0, which leads, leaves. The next leader has never asked for the topic of C2 alone."""
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


# Positions and commits.


def test_commits_with_metadata_and_callbacks(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    by_default: list[Any] = []
    reader = sticky.add(further={"default_offset_commit_callback": lambda *heard: by_default.append(heard)})
    reader.follow(topic)
    consumer = consumer_of(reader)
    sticky.settle(partitions)
    sticky.until(lambda: len(reader.read) == 10, "all is read")
    one, two = tps(partitions)
    given = {one: offset_and_metadata(Position(3, -1, "made by me"))}
    consumer.commit(given)
    assert consumer.committed(one) == 3
    assert consumer.committed(one, metadata=True) == given[one]
    assert consumer.committed(two) is None
    heard: list[Any] = []
    future = consumer.commit_async({two: offset_and_metadata(Position(4))}, lambda *each: heard.append(each))
    sticky.until(lambda: heard, "the callback is called")
    assert heard == [({two: offset_and_metadata(Position(4))}, None)]
    assert future.succeeded()
    assert by_default == []
    consumer.commit_async()
    sticky.until(lambda: by_default, "the default callback is called")
    ((offsets, error),) = by_default
    assert error is None
    assert {each: at.offset for each, at in offsets.items()} == {one: 5, two: 5}
    assert [consumer.committed(each) for each in (one, two)] == [5, 5]
    nothing = consumer.commit_async({})
    sticky.until(nothing.succeeded, "it ends")
    consumer.seek(one, 1)
    consumer.commit()
    assert consumer.committed(one) == 1, "a position before the last commit is committed as well"


def test_commits_that_are_refused(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    first = sticky.add().follow(topic)
    consumer = consumer_of(first)
    with pytest.raises(TypeError if TELLS_OF_LOSSES else AssertionError):
        consumer.commit({"t": 3})
    outsider = consumer_of(sticky.add())
    sticky.settle(partitions, first)
    anything = {TopicPartition(topic, 0): offset_and_metadata(Position(1))}
    # The broker takes commits without a member only while the group is empty.
    with pytest.raises(kafka.errors.CommitFailedError):
        outsider.commit(anything)
    failed: list[Any] = []
    future = outsider.commit_async(anything, lambda _, error: failed.append(error))
    wait_until(lambda: (outsider.poll(10), failed)[1], "the callback is called")
    assert isinstance(failed[0], kafka.errors.CommitFailedError)
    assert future.failed()
    assert future.exception is failed[0]


def test_a_commit_during_a_rebalance_takes_part_in_it(sticky: Readers) -> None:
    """A program that commits, and does not poll, while others wait for it."""
    topic, partitions = sticky.topic(2, 5)
    first = sticky.add().follow(topic)
    sticky.settle(partitions)
    sticky.until(lambda: len(first.read) == 10, "all is read")
    second = sticky.add().follow(topic)
    second.turn(0.1)
    wait_until(lambda: first.side.is_due, "the rebalance has begun")
    consumer_of(first).commit()
    asks = consumer_of(sticky.add())
    assert [asks.committed(each) for each in tps(partitions)] == [5, 5]
    sticky.settle(partitions, first, second)


def test_between_two_shares_nobody_knows_whose_positions_they_are(sticky: Readers) -> None:
    """An eager rebalance has taken everything away, and another member does not join yet."""
    topic, partitions = sticky.topic(2, 5)
    first = sticky.add().follow(topic)
    consumer = consumer_of(first)
    sticky.settle(partitions)
    sticky.until(lambda: len(first.read) == 10, "all is read")
    sticky.add().follow(topic)
    sticky.settle(partitions)
    (kept,) = tps(first.held)
    third = sticky.add().follow(topic)
    third.turn(0.1)
    # The second does not poll, and the group waits for it.
    sticky.until(lambda: first.side.holds_back, "the rebalance has begun", first, third)
    with pytest.raises(kafka.errors.RebalanceInProgressError):
        consumer.commit()
    assert consumer.poll(100) == {}
    failed: list[Any] = []
    consumer.commit_async(callback=lambda _, error: failed.append(error))
    sticky.until(lambda: failed, "the callback is called", first)
    assert isinstance(failed[0], kafka.errors.RebalanceInProgressError)
    consumer.pause(kept)
    assert consumer.paused() == {kept}
    consumer.resume(kept)
    sticky.until(lambda: not first.side.holds_back, "the second has polled")


def test_automatic_commits_and_the_end(sticky: Readers) -> None:
    topic, partitions = sticky.topic(1, 5)
    (partition,) = tps(partitions)
    asks = consumer_of(sticky.add())
    ends: list[tuple[int, Callable[[KafkaConsumer], None], int | None]] = [
        (5, lambda each: each.close(autocommit=False), None),
        (5, lambda each: each.__exit__(ValueError, ValueError(), None), None),
        (5, lambda each: each.__exit__(None, None, None), 5),
        (1, lambda each: each.unsubscribe(), 6),
    ]
    for count, leave, committed in ends:
        reader = sticky.add(auto_commit=True, auto_commit_interval=60.0).follow(topic)
        if committed == 6:
            sticky.fill(topic, 1, 1)
        deadline = time.monotonic() + TIMEOUT
        while len(reader.read) < count and time.monotonic() < deadline:
            reader.turn()
        leave(consumer_of(reader))
        # What unsubscribing commits is sent before the member leaves, and is not waited for.
        wait_until(lambda committed=committed: asks.committed(partition) == committed, f"{committed} is committed")  # type: ignore[misc]


def test_positions(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2, 5)
    reader = sticky.add().follow(topic)
    consumer = consumer_of(reader)
    one, two = tps(partitions)
    sticky.until(consumer.assignment, "it is assigned")
    assert consumer.position(one) in (0, 5), "it waits for the group's commit and the reset"
    sticky.until(lambda: len(reader.read) == 10, "all is read")
    assert (consumer.position(one), consumer.position(two, timeout_ms=0)) == (5, 5)
    assert consumer.highwater(one) == 5
    unowned = TopicPartition(topic, 7)
    with pytest.raises((AssertionError, kafka.errors.IllegalStateError)):
        consumer.position(unowned)
    with pytest.raises((AssertionError, ValueError)):
        consumer.seek(unowned, 0)
    with pytest.raises(KeyError):
        consumer.pause(unowned)
    with pytest.raises((AssertionError, ValueError)):
        consumer.seek(one, -1)
    with pytest.raises(TypeError):
        consumer.seek((topic, 0), 0)
    consumer.seek_to_beginning()
    assert [consumer.position(each) for each in (one, two)] == [0, 0]
    consumer.seek_to_end(two)
    assert [consumer.position(each) for each in (one, two)] == [0, 5]


def test_nothing_is_lost_by_a_pause_between_small_batches(sticky: Readers) -> None:
    """kafka-python up to 2.1.1 goes on behind what it throws away."""
    topic, partitions = sticky.topic(1, 300)
    (partition,) = tps(partitions)
    consumer = consumer_of(sticky.add().follow(topic))
    read: list[int] = []

    def poll() -> int:
        read.extend(each.offset for records in consumer.poll(50, max_records=10).values() for each in records)
        return len(read)

    wait_until(poll, "it reads")
    consumer.pause(partition)
    assert consumer.paused() == {partition}
    before = len(read)
    for _ in range(3):
        poll()
    assert len(read) == before
    consumer.resume(partition)
    assert consumer.paused() == set()
    wait_until(lambda: poll() >= 300, "all is read")
    assert read == list(range(300))


# Listeners.


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_what_a_listener_of_an_assignment_may_do(embedded: Kafka, strategy: str) -> None:
    with Readers(embedded, KafkaPythonReader, strategy) as readers:
        topic, partitions = readers.topic(5, 10)
        reader = readers.add()
        consumer = consumer_of(reader)
        sought, first, last, paused, plain = tps(partitions)
        consumer.commit({plain: offset_and_metadata(Position(4))})
        seen: list[Any] = []

        def assigned(_: Any) -> None:
            seen.append(consumer.assignment())
            seen.append([consumer.position(each) for each in (plain, sought)])
            consumer.seek(sought, 7)
            consumer.seek_to_beginning(first)
            consumer.seek_to_end(last)
            consumer.pause(paused)
            seen.append([consumer.position(each) for each in (sought, first, last)])
            seen.append(consumer.poll(1000))

        reader.during["assigned"] = assigned
        reader.follow(topic)
        readers.until(lambda: len(reader.read) == 3 + 10 + 6, "it reads from there")
        assert seen == [set(tps(partitions)), [4, 0], [7, 0, 10], {}]
        readers.for_a_while(0.2)
        assert len(reader.read) == 19
        assert min(offset for _, number, offset in reader.read if number == plain.partition) == 4
        consumer.resume(paused)
        readers.until(lambda: len(reader.read) == 29, "the paused one is read")


def test_what_a_listener_of_a_revocation_may_do(cooperative: Readers) -> None:
    topic, partitions = cooperative.topic(2, 10)
    first = cooperative.add().follow(topic)
    consumer = consumer_of(first)
    cooperative.settle(partitions)
    cooperative.until(lambda: len(first.read) == 20, "all is read")
    seen: list[Any] = []
    assert first.errors == []

    def revoked(given: Any) -> None:
        seen.append(consumer.assignment())
        offsets = {each: offset_and_metadata(Position(consumer.position(each) or 0)) for each in tps(given)}
        consumer.commit(offsets)
        seen.append(consumer.poll(100))

    first.during["revoked"] = revoked
    second = cooperative.add().follow(topic)
    cooperative.settle(partitions)
    assert first.errors == []
    assert seen[:2] == [set(tps(partitions)), {}]
    cooperative.fill(topic, 2, 1)
    cooperative.until(lambda: second.read, "the next owner goes on")
    assert [offset for *_, offset in second.read] == [10]


def test_errors_of_a_listener_are_the_clients(sticky: Readers, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            raise LookupError("no such cache")

    topic, partitions = sticky.topic(1)
    consumer = consumer_of(sticky.add())
    consumer.subscribe([topic], listener=Failing())
    raised: list[BaseException] = []

    def poll() -> set[Any]:
        try:
            consumer.poll(20)
        except kafka.errors.KafkaError as error:
            raised.append(error)
        return consumer.assignment()

    wait_until(poll, "it is assigned")
    poll()
    assert [type(error.__cause__) for error in raised] == [LookupError] * TELLS_OF_LOSSES
    assert "no such cache" in caplog.text
    assert consumer.assignment() == set(tps(partitions))


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_the_diff_listener_hears_of_what_really_came_or_went(embedded: Kafka, strategy: str) -> None:
    heard: list[tuple[str, int]] = []

    class Caches(RebalanceDiffListener):
        def on_partitions_gained(self, partitions: list[Any]) -> None:
            heard.append(("gained", len(partitions)))

        def on_partitions_given_up(self, partitions: list[Any]) -> None:
            heard.append(("given up", len(partitions)))

    with Readers(embedded, KafkaPythonReader, strategy) as readers:
        topic, partitions = readers.topic(4)
        first = readers.add()
        listener = Caches()
        consumer_of(first).subscribe([topic], listener=listener)
        readers.settle(partitions)
        second = readers.add().follow(topic)
        readers.settle(partitions)
        second.close()
        readers.until(lambda: first.held == partitions, "it has all again", first)
        assert heard == [("gained", 4), ("given up", 2), ("gained", 2)]
        assert listener.held == tps(partitions)


def coroutines_run_on_the_clients_loop(sticky: Readers) -> None:
    topic, partitions = sticky.topic(2)
    consumer = consumer_of(sticky.add())
    heard: list[Any] = []

    class Listener(kafka.AsyncConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            heard.append(("revoked", revoked))

        async def on_partitions_assigned(self, assigned: Any) -> None:
            await consumer._net.sleep(0.01)
            heard.append(("assigned", assigned, threading.current_thread() is not threading.main_thread()))

    consumer.subscribe([topic], listener=Listener())
    wait_until(lambda: (consumer.poll(20), consumer.assignment())[1], "it is assigned")
    assert heard == [("revoked", set()), ("assigned", set(tps(partitions)), True)]


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
    while more := iterate(consumer, 10_000):
        read += more
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
    assert reader.told("revoked") == ([partitions] if TELLS_OF_LOSSES else [])
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
    topic, partitions = sticky.topic(2)
    first = sticky.add(further={"group_instance_id": unique("instance")})
    consumer = consumer_of(first)
    before = consumer.group_metadata()
    assert (before.group_id, before.generation_id, before.member_id) == (sticky.group, -1, "")
    first.follow(topic)
    sticky.settle(partitions)
    stable = consumer.group_metadata()
    member_id, generation = first.side.latest
    assert stable[:4] == (sticky.group, generation, member_id, consumer.config["group_instance_id"])
    assert stable.state == "<stable>"
    second = sticky.add().follow(topic)
    second.turn(0.1)
    wait_until(lambda: first.side.is_due, "the rebalance has begun")
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


def lags_by_name(embedded: Kafka) -> None:
    with Readers(embedded, KafkaPythonReader, "lag(scope=group)") as readers:
        topic, partitions = readers.topic(3, 4)
        reader = readers.add().follow(topic)
        readers.settle(partitions)
        plan = consumer_of(reader).plan()
        assert plan is not None
        assert plan.lag_by_member == {reader.side.latest[0]: 12}


# kafka-python 2 has neither such listeners nor such methods.
if TELLS_OF_LOSSES:
    test_coroutines_run_on_the_clients_loop = coroutines_run_on_the_clients_loop
    test_lags_by_name = lags_by_name
if hasattr(kafka.KafkaConsumer, "group_metadata"):
    test_group_metadata_name_the_member_or_its_last_identity = group_metadata_name_the_member_or_its_last_identity
