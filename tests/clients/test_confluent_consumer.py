"""Our consumer for confluent-kafka, on the embedded Kafka and on a real one."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from kafka_assignors import LagBasedAssignor, StickyAssignor
from kafka_assignors.clients.confluent import Consumer
from support.broker import Kafka, unique
from support.confluent_group import Crowd, Observed, fill, offsets, topic_of
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

STRATEGIES = ("sticky", "cooperative-sticky", "sticky-join", "cooperative-sticky-join", "lag", "range", "roundrobin")
BOTH_WAYS = ("sticky", "cooperative-sticky")


@pytest.fixture
def crowd(any_kafka: Kafka) -> Iterator[Crowd]:
    with Crowd(any_kafka, unique("confluent")) as crowd:
        yield crowd


def everything(topic: str, partitions: int, records: int, start: int = 0) -> list[tuple[str, int, int]]:
    return [(topic, number, offset) for number in range(partitions) for offset in range(start, start + records)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_by_name(crowd: Crowd, strategy: str) -> None:
    topic, partitions = topic_of(crowd, 6, 20)
    first, second = crowd.add(strategy).follow(topic), crowd.add(strategy)
    crowd.settle(partitions, first)
    crowd.until(lambda: len(first.read) == 120, "everything is read")
    second.follow(topic)
    crowd.settle(partitions)
    assert [len(each.held) for each in crowd.consumers] == [3, 3]
    plans = [plan for plan in (each.plan() for each in crowd.consumers) if plan is not None]
    assert plans
    for plan in plans:
        plan.verify()
    assert second.reports[-1].assignor == strategy
    assert not first.errors
    assert not second.errors
    crowd.leave(second)
    crowd.settle(partitions)
    # No record is read twice: partitions that the first member gets back start at the last owner's commit.
    fill(crowd.kafka, topic, 6, 1, start=20)
    crowd.until(lambda: len(first.read) == 126, "the new records are read")
    assert sorted(first.read) == everything(topic, 6, 21)


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_what_stays_is_neither_fetched_nor_delivered_again(crowd: Crowd, strategy: str) -> None:
    """KIP-54's first benefit, also in eager rebalances. librdkafka's statistics count the records that it fetches."""
    records = 2000
    topic, partitions = topic_of(crowd, 4, records)
    received: dict[int, int] = {}

    def note(statistics: str) -> None:
        for number, said in json.loads(statistics)["topics"].get(topic, {}).get("partitions", {}).items():
            received[int(number)] = said["rxmsgs"]

    # Each call returns few records, so that many are fetched and not yet delivered when partitions move.
    first = crowd.add(strategy, stats_cb=note, statistics_interval_ms=100).follow(topic)
    crowd.until(lambda: len(first.read) >= 100, "some are read")
    second = crowd.add(strategy).follow(topic)
    crowd.settle(partitions)
    kept = {number for _, number in first.held}
    assert len(kept) == 2
    at_move = len(first.read)
    crowd.until(lambda: len(first.read) + len(second.read) >= 4 * records, "all are read")
    mine = [(number, offset) for _, number, offset in first.read if number in kept]
    assert sorted(mine) == [(number, offset) for number in sorted(kept) for offset in range(records)]
    # The records are also in order, since a kept partition is read on from its position.
    for number in kept:
        assert [offset for each, offset in mine if each == number] == list(range(records))
    assert at_move < 4 * records
    assert sorted({*first.read, *second.read}) == everything(topic, 4, records)
    crowd.until(lambda: all(received.get(number, 0) >= records for number in kept), "the statistics say so")
    assert {number: received[number] for number in kept} == dict.fromkeys(kept, records)


def test_eager_callbacks_get_everything_and_the_report_the_difference(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 4)
    first = crowd.add().follow(topic)
    crowd.settle(partitions, first)
    second = crowd.add().follow(topic)
    crowd.settle(partitions)
    assert first.events[0] == ("on_assign", sorted(partitions))
    assert first.events[1] == ("on_revoke", sorted(partitions))
    assert first.events[2] == ("on_assign", sorted(first.held))
    report = first.reports[-1]
    lost = {(name, number) for name, numbers in report.lost.items() for number in numbers}
    assert lost == second.held
    assert not report.gained
    assert second.events == [("on_assign", sorted(second.held))]


def test_cooperative_callbacks_get_the_difference(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 4)
    first = crowd.add("cooperative-sticky").follow(topic)
    crowd.settle(partitions, first)
    second = crowd.add("cooperative-sticky").follow(topic)
    crowd.settle(partitions)
    assert ("on_revoke", sorted(second.held)) in first.events
    assert [each for kind, each in first.events if kind == "on_assign" and each] == [sorted(partitions)]
    assert [each for kind, each in second.events if kind == "on_assign" and each] == [sorted(second.held)]
    assert all(kind != "on_lost" for kind, _ in first.events + second.events)


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_a_static_member_restarts_without_a_rebalance(crowd: Crowd, strategy: str) -> None:
    topic, partitions = topic_of(crowd, 6, 10)
    stays = crowd.add(strategy, group_instance_id="a").follow(topic)
    crowd.settle(partitions, stays)
    restarts = crowd.add(strategy, group_instance_id="b").follow(topic)
    crowd.settle(partitions)
    crowd.until(lambda: len(stays.read) + len(restarts.read) >= 60, "all are read")
    held, told = restarts.held, len(stays.events)
    crowd.leave(restarts)
    again = crowd.add(strategy, group_instance_id="b").follow(topic)
    crowd.until(lambda: again.held == held, "it has its share again")
    fill(crowd.kafka, topic, 6, 1, start=10)
    crowd.until(lambda: len(again.read) == 3, "it reads on where it was")
    assert {offset for _, _, offset in again.read} == {10}
    assert len(stays.events) == told


def test_commits_in_all_forms(crowd: Crowd) -> None:
    told: list[tuple[Any, list[Any]]] = []
    topic, _ = topic_of(crowd, 2, 10)
    consumer = crowd.add(enable_auto_commit=False, on_commit=lambda error, done: told.append((error, done)))
    with pytest.raises(KafkaException) as nothing:
        consumer.commit(asynchronous=False)
    assert nothing.value.args[0].code() == KafkaError._NO_OFFSET
    consumer.follow(topic)
    crowd.until(lambda: len(consumer.read) == 20, "all are read")
    done = consumer.commit(asynchronous=False)
    assert done is not None
    assert [(each.topic, each.partition, each.offset, each.error) for each in done] == [
        (topic, 0, 10, None),
        (topic, 1, 10, None),
    ]
    assert offsets(consumer, topic, 2) == [10, 10]
    with pytest.raises(KafkaException) as nothing:
        consumer.commit(asynchronous=False)
    assert nothing.value.args[0].code() == KafkaError._NO_OFFSET
    told.clear()
    assert consumer.commit() is None
    crowd.until(lambda: told, "on_commit hears of nothing to commit")
    assert told[0][0].code() == KafkaError._NO_OFFSET
    assert consumer.commit(offsets=[TopicPartition(topic, 0, 4)]) is None
    crowd.until(lambda: len(told) == 2, "on_commit hears of an asynchronous commit")
    assert told[1][0] is None
    assert [(each.partition, each.offset) for each in told[1][1]] == [(0, 4)]
    done = consumer.commit(offsets=[TopicPartition(topic, 1, 3)], **{"async": False})
    assert done is not None
    assert [(each.partition, each.offset) for each in done] == [(1, 3)]
    assert offsets(consumer, topic, 2) == [4, 3]
    fill(crowd.kafka, topic, 2, 1, start=10)
    messages: list[Any] = []
    wait_until(lambda: messages or messages.extend(consumer.consume(1, 0.1)), "one more is read")  # type: ignore[func-returns-value]
    consumer.commit(message=messages[0], asynchronous=False)
    assert offsets(consumer, topic, 2)[messages[0].partition()] == 11
    for wrong in ({"message": 3}, {"offsets": 3}, {"offsets": [3]}):
        with pytest.raises(TypeError):
            consumer.commit(**wrong)
    with pytest.raises(ValueError, match="mutually exclusive"):
        consumer.commit(message=messages[0], offsets=[])
    assert consumer.commit(offsets=[TopicPartition(topic, 0, 5, "noted")], asynchronous=False)
    # confluent-kafka 2.16 reads beyond the end of the text, so that only the beginning is compared.
    (noted,) = consumer.committed([TopicPartition(topic, 0)], timeout=TIMEOUT)
    assert str(noted.metadata).startswith("noted")


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_no_commit_for_what_is_not_owned(crowd: Crowd, strategy: str) -> None:
    topic, partitions = topic_of(crowd, 2, 5)
    first = crowd.add(strategy, enable_auto_commit=False).follow(topic)
    crowd.settle(partitions, first)
    second = crowd.add(strategy, enable_auto_commit=False).follow(topic)
    crowd.settle(partitions)
    (mine,), (others,) = first.held, second.held
    crowd.until(lambda: len(first.read) >= 5, "read")
    done = first.commit(offsets=[TopicPartition(*mine, 2), TopicPartition(*others, 2)], asynchronous=False)
    assert done is not None
    by_partition = {(each.topic, each.partition): each.error for each in done}
    assert by_partition[mine] is None
    assert str(by_partition[others]) == str(KafkaError(KafkaError._ASSIGNMENT_LOST))
    assert sorted(done) == sorted(done, key=lambda each: each.partition)
    with pytest.raises(KafkaException) as refused:
        first.commit(offsets=[TopicPartition(*others, 2)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    assert offsets(first, topic, 2)[others[1]] < 0


def test_stored_offsets(crowd: Crowd) -> None:
    topic, _ = topic_of(crowd, 1, 10)
    consumer = crowd.add(enable_auto_offset_store=False, enable_auto_commit=False).follow(topic)
    crowd.until(lambda: len(consumer.read) == 10, "all are read")
    with pytest.raises(KafkaException):
        consumer.commit(asynchronous=False)
    consumer.store_offsets(offsets=[TopicPartition(topic, 0, 6)])
    consumer.commit(asynchronous=False)
    assert offsets(consumer, topic, 1) == [6]
    with pytest.raises(KafkaException) as refused:
        consumer.store_offsets(offsets=[TopicPartition("another", 0, 6)])
    assert refused.value.args[0].code() == KafkaError._STATE
    for wrong, kind in (({}, ValueError), ({"message": 1, "offsets": []}, ValueError), ({"message": 1}, TypeError)):
        with pytest.raises(kind):
            consumer.store_offsets(**wrong)
    automatic = crowd.add().follow(topic)
    with pytest.raises(KafkaException) as refused:
        automatic.store_offsets(offsets=[TopicPartition(topic, 0, 6)])
    assert refused.value.args[0].code() == KafkaError._INVALID_ARG


def test_positions_are_committed_on_an_interval_and_at_the_end(crowd: Crowd) -> None:
    topic, _ = topic_of(crowd, 2, 10)
    done: list[Any] = []
    consumer = crowd.add(auto_commit_interval_ms=200, on_commit=lambda error, each: done.append((error, each)))
    consumer.follow(topic)
    crowd.until(
        lambda: {(each.partition, each.offset) for _, told in done for each in told} >= {(0, 10), (1, 10)},
        "it has committed",
    )
    assert offsets(consumer, topic, 2) == [10, 10]
    assert all(error is None for error, _ in done)
    said = len(done)
    until = time.monotonic() + 0.6
    crowd.until(lambda: time.monotonic() > until, "time passes")
    assert len(done) == said, "what has not changed is not committed again"
    late = crowd.add(auto_commit_interval_ms=60_000)
    crowd.leave(consumer)
    late.follow(topic)
    crowd.until(lambda: late.held, "it has joined")
    fill(crowd.kafka, topic, 2, 1, start=10)
    crowd.until(lambda: len(late.read) == 2, "the new ones are read, and only these")
    crowd.leave(late)
    assert offsets(crowd.add(), topic, 2) == [11, 11]


def test_on_assign_chooses_where_to_begin(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 3, 10)

    def choose(consumer: Observed, given: list[TopicPartition]) -> None:
        for each in given:
            assert each.offset == -1001
            each.offset = {0: 7, 1: OFFSET_BEGINNING, 2: OFFSET_END}[each.partition]
        consumer.assign(given)

    consumer = crowd.add().follow(topic, on_assign=choose)
    crowd.until(lambda: len(consumer.read) == 13, "what was chosen is read")
    assert sorted(consumer.read) == [(topic, 0, each) for each in (7, 8, 9)] + [(topic, 1, each) for each in range(10)]
    assert consumer.held == partitions


def test_on_assign_begins_again_with_what_stays(crowd: Crowd) -> None:
    """An application that always rewinds gets all records again, also of partitions that it never lost."""
    topic, partitions = topic_of(crowd, 2, 5)

    def rewind(consumer: Observed, given: list[TopicPartition]) -> None:
        consumer.assign([TopicPartition(each.topic, each.partition, 0) for each in given])

    first = crowd.add().follow(topic, on_assign=rewind)
    crowd.until(lambda: len(first.read) == 10, "all are read")
    second = crowd.add().follow(topic)
    crowd.settle(partitions)
    ((_, stays),) = first.held
    crowd.until(lambda: len(first.read) == 15, "its own are read again")
    assert first.read[10:] == [(topic, stays, offset) for offset in range(5)]
    assert not second.errors


def test_pause_resume_and_seek(crowd: Crowd) -> None:
    topic, _ = topic_of(crowd, 2, 5)
    # `on_assign` pauses the partition before its start is known. No record of it is delivered until it is resumed.
    consumer = crowd.add().follow(topic, on_assign=lambda each, _: each.pause([TopicPartition(topic, 0)]))
    crowd.until(lambda: len(consumer.read) == 5, "the other partition is read")
    until = time.monotonic() + 0.5
    crowd.until(lambda: time.monotonic() > until, "time passes")
    assert {number for _, number, _ in consumer.read} == {1}
    consumer.resume([TopicPartition(topic, 0)])
    crowd.until(lambda: len(consumer.read) == 10, "and then the paused one")
    consumer.seek(TopicPartition(topic, 1, 3))
    crowd.until(lambda: len(consumer.read) == 12, "it is read from there again")
    assert consumer.read[10:] == [(topic, 1, 3), (topic, 1, 4)]
    assert [each.offset for each in consumer.position([TopicPartition(topic, 1)])] == [5]


def test_regular_expressions_follow_the_cluster(own_kafka: Kafka) -> None:
    prefix = unique("re")
    own_kafka.create_topic(f"{prefix}-a", 2)
    own_kafka.create_topic(f"other-{prefix}", 2)
    with Crowd(own_kafka, unique("confluent")) as crowd:
        consumer = crowd.add().follow(f"^{prefix}-.*", f"other-{prefix}")
        expected = {(f"{prefix}-a", 0), (f"{prefix}-a", 1), (f"other-{prefix}", 0), (f"other-{prefix}", 1)}
        crowd.settle(expected)
        own_kafka.create_topic(f"{prefix}-b", 1)
        crowd.settle(expected | {(f"{prefix}-b", 0)})
        everything = crowd.add().follow("^.*")
        # Kafka's internal topics are included if there are any: librdkafka does not distinguish them.
        crowd.until(
            lambda: {name for name, _ in everything.held | consumer.held} == everything.list_topics().topics.keys(),
            "the two have all topics of the cluster",
        )


def test_partitions_that_are_added_are_shared_out(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 2)
    first, second = crowd.add().follow(topic), crowd.add().follow(topic)
    crowd.settle(partitions)
    crowd.kafka.grow_topic(topic, 6)
    crowd.settle({(topic, number) for number in range(6)})
    assert {len(first.held), len(second.held)} == {3}


def test_an_error_in_a_callback_comes_out_of_poll(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 2, 5)

    def fail(consumer: Any, _: list[Any]) -> None:
        raise LookupError("as the application says")

    consumer = crowd.add().follow(topic, on_assign=fail, on_revoke=fail)
    with pytest.raises(LookupError, match="as the application says"):
        crowd.until(lambda: False, "never")
    # The assignment is valid in spite of the error in its callback.
    crowd.until(lambda: len(consumer.read) == 10, "all are read")
    assert consumer.held == partitions
    with pytest.raises(LookupError, match="as the application says"):
        crowd.leave(consumer)
    crowd.consumers.clear()
    assert consumer.events[-1] == ("on_revoke", sorted(partitions))
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def test_unsubscribing_and_subscribing_again(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 2, 5)
    another, others = topic_of(crowd, 1, 5)
    consumer = crowd.add().follow(topic)
    crowd.until(lambda: len(consumer.read) == 10, "all are read")
    consumer.unsubscribe()
    crowd.until(lambda: not consumer.held, "everything is given up")
    assert consumer.events[-1] == ("on_revoke", sorted(partitions))
    consumer.follow(another)
    crowd.until(lambda: consumer.held == others and len(consumer.read) == 15, "the other topic is read")
    consumer.follow(topic, another)
    crowd.settle(partitions | others)
    assert consumer.read[15:] == []


def test_the_end(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 2, 5)
    with crowd.add() as consumer:
        consumer.follow(topic)
        crowd.until(lambda: len(consumer.read) == 10, "all are read")
    crowd.consumers.clear()
    assert consumer.events[-1] == ("on_revoke", sorted(partitions))
    consumer.close()
    for use in (
        lambda: consumer.poll(0),
        lambda: consumer.consume(1, 0),
        lambda: consumer.subscribe([topic]),
        lambda: consumer.unsubscribe(),
        lambda: consumer.commit(),
        lambda: consumer.store_offsets(offsets=[]),
        lambda: consumer.assignment(),
        lambda: consumer.memberid(),
        lambda: consumer.consumer_group_metadata(),
        lambda: consumer.assign([]),
        lambda: consumer.incremental_assign([]),
        lambda: consumer.incremental_unassign([]),
        lambda: consumer.unassign(),
        lambda: consumer.pause([]),
        lambda: consumer.__enter__(),
    ):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            use()
    assert offsets(crowd.add(), topic, 2) == [5, 5]


def test_closing_what_was_neither_subscribed_nor_polled(any_kafka: Kafka) -> None:
    """`close` calls pending callbacks, which can no longer commit. In a separate process, since it may abort."""
    program = """
import sys, time
from kafka_assignors.clients.confluent import Consumer
times = {"statistics.interval.ms": 50, "auto.commit.interval.ms": 50}
servers = {"bootstrap.servers": sys.argv[1], "log_level": 0}
consumers = [Consumer({**servers, **times, "group.id": f"{sys.argv[2]}-{number}"}) for number in range(8)]
for consumer in consumers:
    # Until its coordinator is known.
    consumer.list_topics(timeout=20)
    consumer.committed([], timeout=20)
time.sleep(1)
for consumer in consumers:
    consumer.close()
print("closed")
"""
    command = [sys.executable, "-P", "-c", program, any_kafka.bootstrap_servers, unique("idle")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT + 20, check=False)
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr


def test_closing_within_a_callback(crowd: Crowd) -> None:
    topic, _ = topic_of(crowd, 2)
    consumer = crowd.add().follow(topic, on_assign=lambda each, _: each.close())
    with pytest.raises(RuntimeError, match="Consumer closed"):
        crowd.until(lambda: False, "never")
    assert [kind for kind, _ in consumer.events] == ["on_assign", "on_revoke"]


def test_a_forgotten_consumer_leaves_no_thread(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 1)
    consumer = crowd.add().follow(topic)
    crowd.settle(partitions)
    name = f"kafka-assignors-member-{crowd.group}"
    assert name in [each.name for each in threading.enumerate()]
    crowd.consumers.clear()
    del consumer
    gc.collect()
    wait_until(lambda: name not in [each.name for each in threading.enumerate()], "the thread has ended")


def test_a_group_without_a_common_strategy_is_an_error(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 1)
    crowd.add("sticky").follow(topic)
    crowd.settle(partitions)
    other = crowd.add("roundrobin").follow(topic)
    with pytest.raises(KafkaException) as refused:
        crowd.until(lambda: False, "never")
    assert refused.value.args[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    with pytest.raises(KafkaException):
        other.poll(0)
    with pytest.raises(KafkaException):
        other.consume(1, 0)


def test_the_highest_common_strategy_wins_and_rolls_over(crowd: Crowd) -> None:
    """From `range` to `sticky`, one member after the other, as in a rolling upgrade."""
    topic, partitions = topic_of(crowd, 4)
    crowd.add("range").follow(topic)
    crowd.settle(partitions)
    both = crowd.add([StickyAssignor(), "range"]).follow(topic)
    crowd.settle(partitions)
    assert both.reports[-1].assignor == "range"
    crowd.leave(crowd.consumers[0])
    crowd.settle(partitions)
    assert both.reports[-1].assignor == "sticky"


def test_lag_as_an_object(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 3)
    lags = {topic: [100, 60, 40]}
    assignor = LagBasedAssignor(lambda topics, group: lags, scope="group", max_skew=None)
    first, second = crowd.add(assignor).follow(topic), crowd.add(assignor).follow(topic)
    crowd.settle(partitions)
    assert {frozenset(number for _, number in each.held) for each in (first, second)} == {
        frozenset({0}),
        frozenset({1, 2}),
    }


def test_partitions_that_the_application_assigns_itself(crowd: Crowd) -> None:
    """Without a subscription our consumer is an ordinary one, which can commit."""
    topic, _ = topic_of(crowd, 2, 5)
    consumer = crowd.add(auto_commit_interval_ms=100)
    consumer.assign([TopicPartition(topic, 0, 0)])
    crowd.until(lambda: len(consumer.read) == 5, "all are read")
    crowd.until(lambda: offsets(consumer, topic, 1) == [5], "it has committed by itself")
    consumer.incremental_assign([TopicPartition(topic, 1, 2)])
    crowd.until(lambda: len(consumer.read) == 8, "the other one as well")
    assert consumer.held == {(topic, 0), (topic, 1)}
    consumer.commit(asynchronous=False)
    assert offsets(consumer, topic, 2) == [5, 5]
    consumer.incremental_unassign([TopicPartition(topic, 0)])
    assert consumer.held == {(topic, 1)}
    consumer.unassign()
    assert not consumer.held
    assert consumer.memberid() is None


def test_members_by_name(crowd: Crowd) -> None:
    topic, partitions = topic_of(crowd, 1)
    consumer = crowd.add(client_id="by-name")
    assert consumer.memberid() is None
    consumer.follow(topic)
    crowd.settle(partitions)
    member_id = consumer.memberid()
    assert member_id is not None
    assert member_id.startswith("by-name-")
    assert member_id.encode() in consumer.consumer_group_metadata()
    assert crowd.kafka.describe_group(crowd.group).assignment == {member_id: {topic: [0]}}


def test_it_is_a_confluent_consumer() -> None:
    assert issubclass(Consumer, confluent_kafka.Consumer)
    assert Consumer.poll is confluent_kafka.Consumer.poll
    assert Consumer.consume is confluent_kafka.Consumer.consume
