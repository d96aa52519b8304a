"""Faults between a consumer and its group, for each client: the scenarios that touch a data path.

Every test is in the table of docs/fault-scenarios.md, under the number in its name. The simulation in rust/core tests
the member alone with the same faults; these tests check the records and the errors of each client.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka, unique
from support.data_paths import DATA_PATHS, Readers
from support.raw_group import expel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.member.data_path import Partition
    from support.readers.reader import Reader

CLIENTS = ("confluent", "kafka-python", "aiokafka")


@pytest.fixture
def own() -> Iterator[EmbeddedKafka]:
    """An embedded Kafka for this test alone, so that the injected faults affect no other test."""
    with EmbeddedKafka() as kafka:
        yield kafka


# These tests mostly wait, so `make test` runs one strategy only.
@pytest.fixture(params=[pytest.param("sticky", marks=pytest.mark.needs("time")), "cooperative-sticky"])
def strategy(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=CLIENTS)
def group(request: pytest.FixtureRequest, own: EmbeddedKafka, strategy: str) -> Iterator[Readers]:
    with Readers(Kafka(own.bootstrap_servers, "embedded"), DATA_PATHS[request.param], strategy) as readers:
        yield readers


def times_read(*readers: Reader) -> Counter[tuple[str, int, int]]:
    return Counter(record for reader in readers for record in reader.read)


def once(topic: str, partitions: int, records: int) -> Counter[tuple[str, int, int]]:
    return Counter((topic, number, offset) for number in range(partitions) for offset in range(records))


def losses(reader: Reader) -> int:
    return sum(bool(partitions) for partitions in reader.calls_of("lost"))


def commit(group: Readers, partitions: set[Partition], offset: int) -> None:
    """Commits for the group before it has members."""
    settings = {"bootstrap.servers": group.kafka.bootstrap_servers, "group.id": group.group}
    consumer = confluent_kafka.Consumer(settings)
    consumer.commit(offsets=[TopicPartition(*each, offset) for each in partitions], asynchronous=False)
    consumer.close()


def test_02_the_coordinator_moves(group: Readers, own: EmbeddedKafka) -> None:
    """No partition is revoked and no record is read again. A commit that failed because of the move is repeated."""
    topic, partitions = group.topic(4, 10)
    reader = group.add().follow(topic)
    group.settle(partitions)
    group.until(lambda: len(reader.read) == 40, "all is read")
    for api in ("Heartbeat", "OffsetCommit"):
        own.inject_fault(api, error="NOT_COORDINATOR")
    assert reader.commit() == partitions
    group.fill(topic, 4, 10)
    group.until(lambda: len(reader.read) == 80, "the new ones are read")
    assert times_read(reader) == once(topic, 4, 20)
    assert (losses(reader), reader.errors) == (0, [])
    assert reader.committed(partitions) == dict.fromkeys(partitions, 10)


@pytest.mark.needs("time")
def test_08_the_connection_breaks_while_a_join_or_a_sync_waits(group: Readers, own: EmbeddedKafka) -> None:
    topic, partitions = group.topic(4, 10)
    first = group.add().follow(topic)
    group.settle(partitions)
    group.until(lambda: len(first.read) == 40, "all is read")
    own.inject_fault("JoinGroup", close="after", times=2)
    own.inject_fault("SyncGroup", close="before", times=2)
    first.commit()
    second = group.add().follow(topic)
    group.settle(partitions)
    group.fill(topic, 4, 10)
    group.until(lambda: len(first.read) + len(second.read) == 80, "the new ones are read")
    assert times_read(first, second) == once(topic, 4, 20)


def test_14_a_group_that_is_forbidden_is_told_once(group: Readers, own: EmbeddedKafka) -> None:
    topic, _ = group.topic(1)
    own.inject_fault("JoinGroup", error="GROUP_AUTHORIZATION_FAILED", times=100)
    reader = group.add().follow(topic)
    group.until(lambda: reader.errors, "the error comes out")
    assert "authoriz" in f"{reader.errors[0]!r} {reader.errors[0]}".lower()
    reader.close()


def test_18_an_expelled_member_starts_again_at_the_commits(group: Readers, own: EmbeddedKafka) -> None:
    """Other members may have read on meanwhile, so the member discards its positions. The loss is reported once."""
    topic, partitions = group.topic(2, 10)
    reader = group.add().follow(topic)
    group.until(lambda: len(reader.read) == 20, "all is read")
    assert reader.commit(dict.fromkeys(partitions, 6)) == partitions
    expel(own, group.group)
    group.until(lambda: len(reader.read) == 28, "what was not committed is read again")
    assert times_read(reader) - once(topic, 2, 10) == Counter((topic, n, at) for n in range(2) for at in range(6, 10))
    assert losses(reader) == 1


@pytest.mark.needs("time")
def test_19_brokers_that_are_away_for_longer_than_a_session(group: Readers, own: EmbeddedKafka) -> None:
    """Without answers to its heartbeats the member loses its partitions. Later it reads on from its commits."""
    topic, partitions = group.topic(2, 10)
    reader = group.add(session_timeout_ms=2000).follow(topic)
    group.until(lambda: len(reader.read) == 20, "all is read")
    assert reader.commit() == partitions
    for api in ("Heartbeat", "JoinGroup", "FindCoordinator"):
        own.inject_fault(api, delay=3, times=1)
    group.until(lambda: losses(reader), "the session is over")
    group.fill(topic, 2, 10)
    group.until(lambda: len(reader.read) == 40, "it is a member again")
    assert times_read(reader) == once(topic, 2, 20)


def test_25_a_topic_is_deleted(group: Readers, own: EmbeddedKafka) -> None:
    kept, stays = group.topic(2, 5)
    gone, _ = group.topic(2, 5)
    reader = group.add().follow(kept, gone)
    group.until(lambda: len(reader.read) == 20, "all is read")
    reader.commit()
    own.delete_topic(gone)
    group.until(lambda: reader.held == stays, "its partitions are given up")
    group.fill(kept, 2, 5)
    group.until(lambda: len(reader.read) == 30, "the other topic is read on")
    assert times_read(reader) == once(kept, 2, 10) + once(gone, 2, 5)


def test_27_a_rebalance_while_offsets_are_fetched(group: Readers, own: EmbeddedKafka) -> None:
    """The member uses the fetched offsets only of the partitions that it still owns."""
    topic, partitions = group.topic(4, 10)
    commit(group, partitions, 4)
    own.inject_fault("OffsetFetch", delay=1.0)
    first = group.add().follow(topic)
    second = group.add().follow(topic)
    group.settle(partitions, first, second)
    everything = {(topic, number, offset) for number in range(4) for offset in range(4, 10)}
    group.until(lambda: everything <= set(times_read(first, second)), "the rest is read", first, second)
    group.for_a_while(0.3, first, second)
    assert set(times_read(first, second)) == everything


def test_30_partitions_are_added(group: Readers, own: EmbeddedKafka) -> None:
    topic, _ = group.topic(2, 10)
    first, second = group.add().follow(topic), group.add().follow(topic)
    group.until(lambda: len(first.read) + len(second.read) >= 20, "all is read")
    first.commit()
    second.commit()
    own.grow_topic(topic, 4)
    group.settle({(topic, number) for number in range(4)})
    before = len(first.read) + len(second.read)
    group.fill(topic, 4, 10)
    group.until(lambda: len(first.read) + len(second.read) == before + 40, "the new ones are read")
    new = times_read(first, second) - once(topic, 2, 10)
    assert {record for record in new if record[1] < 2} >= {(topic, n, at) for n in range(2) for at in range(10, 20)}
    assert {record for record in new if record[1] >= 2} == {(topic, n, at) for n in (2, 3) for at in range(10)}


def test_32_a_static_member_restarts(group: Readers) -> None:
    """Within the session: the other member keeps its partitions, and the new process reads on from the commits."""
    topic, partitions = group.topic(4, 10)
    stays = group.add(instance=unique("stays")).follow(topic)
    name = unique("restarts")
    before = group.add(instance=name).follow(topic)
    group.settle(partitions)
    share, generation = set(before.held), stays.side.latest[1]
    # No offset is committed yet. So the member also reads the records that `stays` read before.
    group.until(
        lambda: {(topic, number) for _, number, offset in before.read if offset == 9} >= share, "its share is read"
    )
    assert before.commit() == share
    before.close()
    group.all.remove(before)
    after = group.add(instance=name).follow(topic)
    group.settle(partitions)
    assert (set(after.held), stays.side.latest[1]) == (share, generation)
    group.fill(topic, 4, 5)
    group.until(lambda: len(after.read) == 10, "it reads on")
    assert {offset for *_, offset in after.read} == set(range(10, 15))


def test_33_the_older_of_two_processes_with_one_instance_id_ends(group: Readers) -> None:
    """The older process gets an error and no further records, and its commit is refused."""
    topic, partitions = group.topic(2, 10)
    name = unique("twice")
    older = group.add(instance=name).follow(topic)
    group.until(lambda: len(older.read) == 20, "all is read")
    newer = group.add(instance=name).follow(topic)
    group.until(lambda: newer.held == partitions and older.errors, "the newer one has taken its place")
    read = len(older.read)
    assert older.commit(dict.fromkeys(partitions, 7)) == set()
    group.fill(topic, 2, 5)
    group.until(lambda: len(newer.read) >= 30, "the newer one reads everything")
    assert len(older.read) == read
    assert set(newer.committed(partitions).values()) == {-1}


@pytest.mark.parametrize(
    ("error", "made"), [("COORDINATOR_LOAD_IN_PROGRESS", True), ("OFFSET_METADATA_TOO_LARGE", False)]
)
def test_34_errors_of_a_commit(group: Readers, own: EmbeddedKafka, error: str, made: bool) -> None:
    """After a retriable error the commit is repeated. Any other error is raised as an error of the client."""
    topic, partitions = group.topic(2, 10)
    reader = group.add().follow(topic)
    group.until(lambda: len(reader.read) == 20, "all is read")
    own.inject_fault("OffsetCommit", error=error)
    done = reader.commit(dict.fromkeys(partitions, 5))
    # `AiokafkaReader` commits each partition by itself, so that only one of its commits is refused.
    assert (done == partitions) is made
    assert bool(reader.errors) is not made
    assert reader.committed(partitions) == {each: 5 if each in done else -1 for each in partitions}
    # The error does not prevent a later commit.
    assert reader.commit(dict.fromkeys(partitions, 8)) == partitions


def test_40_offsets_that_a_transaction_holds_are_waited_for(group: Readers, own: EmbeddedKafka) -> None:
    """The member waits for the committed offset, and does not start at the beginning meanwhile."""
    topic, partitions = group.topic(2, 10)
    commit(group, partitions, 6)
    own.inject_fault("OffsetFetch", error="UNSTABLE_OFFSET_COMMIT", times=3)
    reader = group.add().follow(topic)
    group.until(lambda: len(reader.read) >= 8, "it reads", reader)
    group.for_a_while(0.3, reader)
    assert times_read(reader) == Counter((topic, number, at) for number in range(2) for at in range(6, 10))
