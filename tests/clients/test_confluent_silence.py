"""A data path without answers is noticed and replaced. One without work is left alone."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition

from kafka_assignors.clients.confluent import stall_detector
from kafka_assignors.clients.confluent.own_client import OwnClient
from kafka_assignors.clients.confluent.stall_detector import StallDetector
from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka, unique
from support.confluent_group import SESSION_MS, Crowd, fill, offsets
from support.logs import records_of_the_package

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 45.0
ZERO, ONE = ("t", 0), ("t", 1)


# ---- when a data path is silent --------------------------------------------------------------------------------------


class Watched:
    """A consumer of two partitions with one leader. The test sets the clock: statistics come every three seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.asked: list[dict[tuple[str, int], int]] = []
        self.offsets = {ZERO: 5, ONE: 7}
        self.answered = 0.4
        self.waiting = 0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(StallDetector, "_ask", lambda _, behind: self.asked.append(dict(behind)))
        self.silence = StallDetector(OwnClient({}), 0, LIMIT, lambda: None)

    def look(self, *, times: int = 1, after: float = 3.0) -> None:
        for _ in range(times):
            self.now += after
            partition = {"broker": 0, "fetchq_cnt": self.waiting, "next_offset": 12}
            statistics = {
                "brokers": {"b": {"nodeid": 0, "rxidle": -1 if self.answered < 0 else int(self.answered * 1e6)}},
                "topics": {"t": {"partitions": {"0": partition, "1": partition}}},
            }
            self.silence.look(dict(self.offsets), json.dumps(statistics))
            if self.silence._asking is not None:
                self.silence._asking.join()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.mark.parametrize("answered", [LIMIT, 1e4, -1], ids=["as long", "longer", "no connection"])
def test_nothing_comes_and_the_leader_does_not_answer(watched: Watched, answered: float) -> None:
    watched.answered = answered
    watched.look(times=15)
    assert watched.asked == [], "not before the session is over"
    watched.look()
    assert watched.asked == [{ZERO: 5, ONE: 7}]
    watched.look(times=14)
    assert len(watched.asked) == 1, "asked again only after another session"
    watched.look()
    assert len(watched.asked) == 2


def test_a_leader_that_answers_has_no_records(watched: Watched) -> None:
    watched.look(times=100)
    assert watched.asked == []


def test_one_partition_stands_while_the_other_advances(watched: Watched) -> None:
    watched.answered = 1e4
    for _ in range(20):
        watched.offsets[ZERO] += 1
        watched.look()
    assert watched.asked == [{ONE: 7}]


def test_records_that_wait_to_be_polled(watched: Watched) -> None:
    """librdkafka does not fetch for a partition whose queue is full."""
    watched.answered, watched.waiting = 1e4, 3
    watched.look(times=100)
    assert watched.asked == []


def test_an_application_that_does_not_poll(watched: Watched) -> None:
    watched.answered = 1e4
    for _ in range(10):
        watched.look(after=10 * LIMIT)
    assert watched.asked == []


def test_statistics_that_are_rare(watched: Watched) -> None:
    watched.silence = StallDetector(OwnClient({}), 60_000, LIMIT, lambda: None)
    watched.answered = 1e4
    watched.look(times=2, after=60.0)
    assert watched.asked == [{ZERO: 5, ONE: 7}]


def test_what_is_paused_or_goes_begins_anew(watched: Watched) -> None:
    watched.answered = 1e4
    watched.look(times=10)
    kept, watched.offsets = watched.offsets, {}
    watched.look()
    watched.offsets = kept
    watched.look(times=15)
    assert watched.asked == []
    watched.look()
    assert len(watched.asked) == 1


def test_a_start_at_the_end_is_known_by_its_offset(watched: Watched) -> None:
    """A second start at the end would skip the records that were written meanwhile."""
    watched.answered = 1e4
    watched.offsets = {ZERO: -1, ONE: 7}
    watched.look(times=16)
    assert watched.silence.resolved == {ZERO: 12}
    assert watched.asked == [{ZERO: 12, ONE: 7}]


class Ends:
    """Answers with the ends of partitions."""

    def __init__(self, first: int, end: int) -> None:
        self.found = first, end

    def get_watermark_offsets(self, _: TopicPartition, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        return self.found


@pytest.mark.parametrize(
    ("ends", "offset", "expected"),
    [
        ((0, 6), 5, True),
        ((0, 5), 5, False),
        ((3, 3), -2, False),
        ((3, 4), -2, True),
        ((3, 4), -1, False),
        ((3, 4), -1001, True),
        ((3, 3), 1, False),
    ],
)
def test_whether_there_are_records_to_come(ends: tuple[int, int], offset: int, expected: bool) -> None:
    stand_in: Any = Ends(*ends)
    assert stall_detector._has_more(stand_in, ZERO, offset) is expected


# ---- on a Kafka ------------------------------------------------------------------------------------------------------


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


def is_silent(statistics: str) -> bool:
    """Whether a broker has not answered for a second, by librdkafka's statistics."""
    brokers = json.loads(statistics)["brokers"].values()
    return any(each["nodeid"] >= 0 and each["rxidle"] > 1e6 for each in brokers)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_reading_goes_on_after_the_data_path_fell_silent(
    kafka: EmbeddedKafka, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection stays open without answers to fetches. librdkafka would wait for five minutes."""
    caplog.set_level(logging.WARNING, logger="kafka_assignors")
    cluster = Kafka(kafka.bootstrap_servers, "embedded")
    topic = cluster.create_topic(unique("silent"), 3)
    fill(cluster, topic, 3, 10)
    statistics: list[str] = []
    with Crowd(cluster, unique("confluent")) as crowd:
        consumer = crowd.add(
            strategy,
            session_timeout_ms=SESSION_MS,
            socket_timeout_ms=300_000,
            statistics_interval_ms=200,
            stats_cb=statistics.append,
            fetch_wait_max_ms=100,
            auto_commit_interval_ms=100,
        ).follow(topic)
        crowd.until(lambda: len(consumer.read) == 30, "everything is read")
        consumer.pause([TopicPartition(topic, 2)])
        events = list(consumer.events)
        kafka.inject_fault("Fetch", delay=3600)
        # A fetch may already wait at the broker, and its answer would contain the first of the new records.
        crowd.until(lambda: statistics and is_silent(statistics[-1]), "no fetch is answered any more")
        fill(cluster, topic, 3, 10, start=10)
        crowd.until(lambda: len(consumer.read) == 50, "the two that are not paused are read on")
        assert [record.message.split(":")[0] for record in records_of_the_package(caplog)] == [f"group '{crowd.group}'"]
        assert "session.timeout.ms" in caplog.text
        consumer.resume([TopicPartition(topic, 2)])
        crowd.until(lambda: len(consumer.read) == 60, "and the third")
        assert sorted(consumer.read) == [(topic, number, offset) for number in range(3) for offset in range(20)]
        assert consumer.events == events, "the group has noticed nothing"
        told = len(statistics)
        crowd.until(lambda: len(statistics) > told, "the callbacks of the application go on")
        crowd.until(lambda: offsets(consumer, topic, 3) == [20, 20, 20], "what was read is committed")
    assert len(records_of_the_package(caplog)) == 1


def test_a_consumer_without_new_records_keeps_its_data_path(
    kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, logger="kafka_assignors")
    asked: list[Any] = []
    ask = StallDetector._ask

    def noted(self: StallDetector, behind: Any) -> None:
        asked.append(behind)
        ask(self, behind)

    monkeypatch.setattr(StallDetector, "_ask", noted)
    cluster = Kafka(kafka.bootstrap_servers, "embedded")
    topic = cluster.create_topic(unique("idle"), 2)
    fill(cluster, topic, 2, 5)
    with Crowd(cluster, unique("confluent")) as crowd:
        consumer = crowd.add("sticky", session_timeout_ms=SESSION_MS, statistics_interval_ms=200).follow(topic)
        crowd.until(lambda: len(consumer.read) == 10, "everything is read")
        late = time.monotonic() + 1.5 * SESSION_MS / 1000
        crowd.until(lambda: time.monotonic() > late, "a session and a half are over")
    assert asked == []
    assert records_of_the_package(caplog) == []
    assert not [each for each in threading.enumerate() if each.name == "kafka-assignors-silence"]
