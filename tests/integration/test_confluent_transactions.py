"""Exactly once between two memberships: the offsets name our member, and the broker fences an expelled member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from support.broker import Kafka, unique
from support.confluent_group import Crowd, Observed, generation_in, offsets, topic_of
from support.silence import member_of, silence, silence_all
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION_MS = 4000
BOTH_WAYS = ("sticky", "cooperative-sticky")


@pytest.fixture
def crowd(kafka_broker: Kafka) -> Iterator[Crowd]:
    with Crowd(kafka_broker, unique("confluent")) as crowd:
        yield crowd


class Transactions:
    """A producer that sends offsets, each in a transaction of its own."""

    def __init__(self, kafka: Kafka) -> None:
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": unique("tx"), "log_level": 0}
        self._producer = confluent_kafka.Producer(settings)
        self._producer.init_transactions(TIMEOUT)

    def send(self, consumer: Observed, position: TopicPartition) -> None:
        """Sends an offset with the consumer's current group metadata."""
        self._producer.begin_transaction()
        try:
            self._producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), TIMEOUT)
        except KafkaException:
            self._producer.abort_transaction(TIMEOUT)
            raise
        self._producer.commit_transaction(TIMEOUT)

    def is_taken(self, consumer: Observed, position: TopicPartition) -> bool:
        """Sends an offset. Returns False if the broker refuses it, since the generation in the metadata is over."""
        try:
            self.send(consumer, position)
        except KafkaException as refused:
            if refused.args[0].code() == KafkaError.ILLEGAL_GENERATION:
                return False
            raise
        return True

    def is_refused(self, consumer: Observed, topic: str) -> None:
        """Asserts that the broker refuses an offset, and that the transaction can be aborted."""
        with pytest.raises(KafkaException) as refused:
            self.send(consumer, TopicPartition(topic, 0, 3))
        error = refused.value.args[0]
        assert error.code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION)
        assert error.txn_requires_abort()


@pytest.mark.parametrize("strategy", BOTH_WAYS)
@pytest.mark.parametrize("state", ["expelled", "told", "late", "unsubscribed"])
def test_offsets_of_whoever_is_no_member_are_refused(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, strategy: str, state: str
) -> None:
    topic, _ = topic_of(crowd, 1, 10)
    times = {"session_timeout_ms": SESSION_MS} | ({"max_poll_interval_ms": SESSION_MS} if state == "late" else {})
    consumer = crowd.add(strategy, enable_auto_commit=False, socket_timeout_ms=2000, **times).follow(topic)
    crowd.until(lambda: len(consumer.read) == 10, "all are read")
    transactions = Transactions(crowd.kafka)
    transactions.send(consumer, TopicPartition(topic, 0, 10))
    member_id, named = consumer.memberid(), consumer.consumer_group_metadata()
    assert member_id is not None
    if state == "unsubscribed":
        consumer.unsubscribe()
        crowd.until(lambda: consumer.was_told("on_revoke"), "it has given its partition up")
    elif state != "late":
        silence(consumer, monkeypatch)
    other = crowd.add(strategy, enable_auto_commit=False).follow(topic)
    crowd.until(lambda: other.held, "the other one has it", of=[other])
    other.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    wait_until(lambda: state == "unsubscribed" or member_of(consumer).is_lost, "it knows")
    if state == "told":
        crowd.until(lambda: consumer.was_told("on_lost"), "it is told")
    assert member_of(consumer).identity[1] == -1
    metadata = consumer.consumer_group_metadata()
    assert member_id.encode() in metadata
    # A cooperative member that does not poll still joins new generations, until `max.poll.interval.ms` is over.
    assert metadata == named or (state, strategy) == ("late", "cooperative-sticky")
    transactions.is_refused(consumer, topic)
    assert offsets(other, topic, 1) == [7]
    if state in ("expelled", "told"):
        # With the consumer's new membership the broker accepts offsets again.
        monkeypatch.undo()
        crowd.until(lambda: len(consumer.held) + len(other.held) == 1 and len(member_of(consumer).identity[0]), "back")
        crowd.until(lambda: generation_in(consumer.consumer_group_metadata()) > generation_in(named), "a new one")


@pytest.mark.parametrize("strategy", BOTH_WAYS)
def test_a_member_that_rebalances_is_one(crowd: Crowd, strategy: str) -> None:
    topic, partitions = topic_of(crowd, 2, 10)
    first = crowd.add(strategy, enable_auto_commit=False).follow(topic)
    crowd.add(strategy, enable_auto_commit=False).follow(topic)
    crowd.settle(partitions)
    mine = next(iter(first.held))[1]
    transactions = Transactions(crowd.kafka)
    generation = generation_in(first.consumer_group_metadata())
    # Counts one partition only: the first member may also have read the partition that it gave up to the second.
    crowd.until(lambda: sum(at[1] == mine for at in first.read) == 10, "all are read", of=[first])
    # A third member joins. The second member is not polled for now, so that the rebalance lasts.
    third = crowd.add(strategy, enable_auto_commit=False).follow(topic)
    crowd.until(
        lambda: member_of(first)._core.state()[0] == "joining" or strategy == "cooperative-sticky",
        "the first one waits for the others",
        of=[first, third],
    )
    assert generation_in(first.consumer_group_metadata()) >= generation
    for offset in (4, 5):
        while not transactions.is_taken(first, TopicPartition(topic, mine, offset)):
            # The generation of a cooperative member may end at any time.
            assert strategy == "cooperative-sticky"
    crowd.until(lambda: sum(len(each.held) for each in crowd.consumers) == 2, "the rebalance is over")
    assert offsets(first, topic, 2)[mine] == 5


def test_whoever_was_never_a_member_names_nobody(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, partitions = topic_of(crowd, 1, 1)
    consumer = crowd.add(socket_timeout_ms=2000)
    plain = consumer.consumer_group_metadata()
    assert generation_in(plain) == -1
    silence_all(monkeypatch)
    consumer.follow(topic)
    with pytest.raises(KafkaException) as refused:
        consumer.consumer_group_metadata()
    assert refused.value.args[0].code() == KafkaError._STATE
    # Without a subscription our consumer is an ordinary one, to which partitions may be assigned by hand.
    consumer.unsubscribe()
    assert consumer.consumer_group_metadata() == plain
    consumer.follow(topic)
    with pytest.raises(KafkaException):
        consumer.consumer_group_metadata()
    monkeypatch.undo()
    crowd.settle(partitions)
    assert generation_in(consumer.consumer_group_metadata()) >= 0
