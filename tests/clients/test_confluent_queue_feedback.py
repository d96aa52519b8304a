"""The reports on librdkafka's queues that an adaptive partitioner receives."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from kafka_assignors import AdaptivePartitioner
from kafka_assignors.clients.confluent import partitioning
from kafka_assignors.clients.confluent.partitioning import Partitioning
from kafka_assignors.clients.confluent.queue_feedback import PERIOD, PERIOD_AT_BATCHES, QueueFeedback, TrackedBatch
from kafka_assignors.embedded import EmbeddedKafka
from support.logs import records_of_the_package
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC = "orders"


class Told(AdaptivePartitioner):
    def __init__(self) -> None:
        super().__init__()
        self.last: tuple[dict[int, int], set[int]] | None = None

    def update_load(self, topic: str, queue_lengths: Any, unavailable: Any = ()) -> None:
        assert topic == TOPIC
        super().update_load(topic, queue_lengths, unavailable)
        self.last = dict(queue_lengths), set(unavailable)


class Loaded:
    """The partitioner's side of a producer: four partitions, led by brokers 1 and 2. The test sets the clock."""

    def __init__(self, partitioner: Any, monkeypatch: pytest.MonkeyPatch, **config: object) -> None:
        self.partitioner = partitioner
        self.now = 1_000.0
        monkeypatch.setattr(partitioning, "monotonic", lambda: self.now)
        self.partitioning = Partitioning(partitioner, {"linger.ms": 1_000, **config})
        self.topic = self.partitioning.topics._put(TOPIC, {0: 1, 1: 2, 2: 1, 3: 2})
        self.topic.due = float("inf")

    @property
    def feedback(self) -> QueueFeedback:
        assert self.partitioning.feedback is not None
        return self.partitioning.feedback

    def to(self, number: int) -> TrackedBatch:
        batch = self.partitioning.follow(TOPIC, number, None, b"value")
        assert isinstance(batch, TrackedBatch)
        return batch

    def told(self) -> tuple[dict[int, int], set[int]]:
        self.feedback.feed(self.topic, self.now, 0.0)
        last: tuple[dict[int, int], set[int]] = self.partitioner.last
        return last


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    return Loaded(Told(), monkeypatch)


def test_a_batch_waits_until_its_last_record_is_reported(loaded: Loaded) -> None:
    first = loaded.to(2)
    assert loaded.to(2) is first
    assert loaded.told() == ({0: 0, 1: 0, 2: 1, 3: 0}, set())
    loaded.now += 1
    second = loaded.to(2)
    assert second is not first
    assert loaded.told()[0] == {0: 0, 1: 0, 2: 2, 3: 0}
    first(None, None)
    assert loaded.told()[0][2] == 2
    first(None, None)
    assert loaded.told()[0][2] == 1
    second(None, None)
    assert loaded.told()[0][2] == 0


def test_a_batch_that_takes_more_after_it_was_reported_waits_again(loaded: Loaded) -> None:
    batch = loaded.to(0)
    batch(None, None)
    assert loaded.told()[0][0] == 0
    assert loaded.to(0) is batch
    assert loaded.told()[0][0] == 1
    batch(None, None)
    assert loaded.told()[0][0] == 0


def test_a_refused_record_does_not_wait(loaded: Loaded) -> None:
    batch = loaded.to(0)
    loaded.partitioning.take_back(TOPIC, 0, batch, None, b"value")
    assert loaded.told()[0][0] == 0


def test_the_user_s_callback_comes_after_the_count(loaded: Loaded) -> None:
    called: list[tuple[object, object, int]] = []
    batch = loaded.to(0)
    report = loaded.feedback.callback(batch, lambda error, message: called.append((error, message, batch.pending)))
    assert report is not None
    report("error", "message")
    assert called == [("error", "message", 0)]
    assert loaded.feedback.callback(batch, None) is batch
    assert loaded.feedback.callback(None, None) is None


@pytest.mark.parametrize("only_errors", [False, True])
def test_default_callback_and_errors_only_are_kept(monkeypatch: pytest.MonkeyPatch, only_errors: bool) -> None:
    called: list[str] = []

    def note(name: str) -> Callable[[object, object], None]:
        return lambda error, message: called.append(f"{name} {error}")

    loaded = Loaded(Told(), monkeypatch, **{"on_delivery": note("default"), "delivery.report.only.error": only_errors})
    batch = loaded.to(0)
    for error in (None, "broken"):
        for known in (batch, None):
            for own in (None, note("own")):
                report = loaded.feedback.callback(known, own)
                assert report is not None
                report(error, None)
    broken = ["default broken", "own broken"] * 2
    assert called == (broken if only_errors else ["default None", "own None"] * 2 + broken)
    assert batch.pending == 1 - 4


def test_statistics_tell_brokers_that_are_down_and_partitions_without_leader(loaded: Loaded) -> None:
    def statistics(state: str, leader: int) -> str:
        partitions = {str(number): {"partition": number, "leader": 1} for number in (-1, 0, 1, 2)}
        partitions["2"]["leader"] = partitions["-1"]["leader"] = leader
        brokers = {"a:1/1": {"nodeid": 1, "state": "UP"}, "b:1/2": {"nodeid": 2, "state": state}}
        brokers["b:1/bootstrap"] = {"nodeid": -1, "state": "DOWN"}
        return json.dumps({"brokers": brokers, "topics": {TOPIC: {"partitions": partitions}}})

    for state, leader, expected in [
        ("UP", 1, set()),
        ("INIT", 1, set()),
        ("DOWN", 1, {1, 3}),
        ("TRY_CONNECT", -1, {1, 2, 3}),
        ("UP", -1, {2}),
    ]:
        loaded.feedback.statistics(statistics(state, leader))
        assert loaded.told()[1] == expected


def test_librdkafkas_statistics_are_read_up_to_the_partitions_if_all_have_a_leader(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = json.loads
    texts: list[str] = []

    def known() -> bool:
        producer.poll(0.05)
        found = parse(texts[-1])["topics"].get(TOPIC, {}).get("partitions", {}) if texts else {}
        return len(found) == 5 and all(each["leader"] > 0 for name, each in found.items() if name != "-1")

    with EmbeddedKafka(topics={TOPIC: 4}) as kafka:
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "statistics.interval.ms": 50, "log_level": 0}
        producer = confluent_kafka.Producer(settings | {"stats_cb": texts.append})
        producer.produce(TOPIC, b"value")
        wait_until(known, "the statistics tell every partition's leader")
        assert producer.flush(TIMEOUT) == 0
    healthy = next(text for text in reversed(texts) if '"state":"UP"' in text)
    parsed: list[str] = []

    def note(text: str) -> Any:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr("json.loads", note)
    loaded.feedback.statistics(healthy)
    assert loaded.told()[1] == set()
    (head,) = parsed
    assert '"brokers"' in head
    assert '"partitions"' not in head
    # Now partition 2 has no leader.
    two = re.compile(r'("partition":2, "broker":-?\d+, "leader":)\d+')
    worse, changed = two.subn(r"\g<1>-1", healthy)
    assert changed == 1
    loaded.feedback.statistics(worse)
    assert loaded.told()[1] == {2}
    loaded.feedback.statistics(healthy)
    assert loaded.told()[1] == set()


def test_a_broker_that_takes_nothing_for_too_long_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Loaded(Told(), monkeypatch, **{"partitioner.availability.timeout.ms": 500})
    batch = loaded.to(1)
    loaded.now += 0.9
    assert loaded.told()[1] == set()  # the batch still lingers
    loaded.now += 0.2
    assert loaded.told()[1] == set()  # the linger is over, but the timeout is not
    loaded.now += 0.6
    assert loaded.told()[1] == {1, 3}
    batch(None, None)
    assert loaded.told()[1] == set()


def test_it_is_told_at_new_batches_and_otherwise_now_and_then(loaded: Loaded) -> None:
    def told() -> bool:
        loaded.partitioner.last = None
        loaded.partitioning.place(None, TOPIC, None, None, None, b"value")  # type: ignore[arg-type]
        return loaded.partitioner.last is not None

    assert told()
    assert not told()
    loaded.now += PERIOD - 0.001
    assert not told()
    loaded.now += 0.002
    assert told()
    loaded.now += PERIOD_AT_BATCHES + 0.001
    assert not told()
    loaded.topic.batches[:] = [None] * 4
    assert told()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"brokers": {"a": {}}, "topics": {}}', '{"brokers": 1, "topics": 2}']
)
def test_odd_statistics_are_let_go_by(loaded: Loaded, text: str, caplog: pytest.LogCaptureFixture) -> None:
    loaded.feedback.statistics(text)
    assert "statistics" in caplog.text
    assert loaded.told()[1] == set()


def test_a_partitioner_that_cannot_be_told_goes_on_without(loaded: Loaded, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    loaded.feedback._update = fail
    with caplog.at_level(logging.ERROR):
        loaded.told()
        loaded.told()
    assert len(records_of_the_package(caplog)) == 1
    assert loaded.to(0).pending == 1
