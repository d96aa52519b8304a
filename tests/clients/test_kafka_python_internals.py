"""Releases of kafka-python without the attributes that our consumer uses, and instrumentation that replaces methods."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka
import pytest
from kafka import TopicPartition

from kafka_assignors.clients.kafka_python import _internals
from kafka_assignors.errors import StateError
from kafka_assignors.member import times
from support.broker import unique
from support.data_paths import Readers
from support.readers.on_kafka_python import KafkaPythonReader
from support.silence import silence_member
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from types import ModuleType

    from kafka_assignors.clients.kafka_python.data_path import KafkaPythonPath
    from support.broker import Kafka


@pytest.fixture
def sticky(embedded: Kafka) -> Iterator[Readers]:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        yield readers


def imported_again() -> ModuleType:
    """Our module, imported a second time, as on a release of the client without some attributes."""
    spec = importlib.util.spec_from_file_location("_internals_of_another_release", Path(_internals.__file__))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_iteration_without_the_clients_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(kafka.KafkaConsumer, "_message_generator_v2")
    another = imported_again()

    class Consumer(another.HookedConsumer):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self._closed = False
            self.records = [1, 2]

        def _next_records(self) -> Any:
            return iter([self.records.pop(0)] if self.records else [])

    consumer = Consumer()
    assert list(consumer) == [1, 2]
    assert "__next__" not in vars(_internals.HookedConsumer), (
        "here the client's is used, which instrumentation replaces"
    )


def test_positions_and_starts_by_public_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    partition, called = TopicPartition("t", 0), []

    class Hidden:
        """A consumer without the attribute that holds its table of partitions."""

    def position(_: Any, given: Any, timeout_ms: Any) -> int:
        called.append(("position", given, timeout_ms))
        return 7

    monkeypatch.setattr(kafka.KafkaConsumer, "position", position)
    monkeypatch.setattr(kafka.KafkaConsumer, "seek", lambda _, *given: called.append(("seek", *given)))
    assert _internals.position_of(Hidden(), partition) == (7, -1)
    _internals.start_at(Hidden(), partition, 5, 3)
    assert called == [("position", partition, 0), ("seek", partition, 5)]
    # Without the client's attributes these two calls do nothing.
    _internals.introduce(Hidden(), ["t"])
    _internals.show_subscription(Hidden(), {"t"})


def test_a_producer_without_its_metadata_leaves_the_choice_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hidden(_internals.HookedProducer):
        """A producer without the attribute that holds its metadata."""

        def __init__(self) -> None:
            """Makes no client."""

        def __del__(self) -> None:
            """The client's own method needs a client."""

    monkeypatch.setattr(kafka.KafkaProducer, "_partition", lambda *_: 3)
    assert Hidden()._partition("t", None, b"k", b"v", b"k", b"v") == 3


def test_a_coroutine_without_an_event_loop() -> None:
    done: list[int] = []

    async def ends(number: int) -> None:
        done.append(number)

    async def waits(_: int) -> None:
        await Pending()

    class Pending:
        def __await__(self) -> Generator[None, None, None]:
            yield

    _internals.run_coroutine(object(), ends, 1)
    assert done == [1]
    with pytest.raises(StateError, match=r"the listener's waits waits, and kafka-python .* has no event loop"):
        _internals.run_coroutine(object(), waits, 1)


def test_a_start_keeps_the_leader_epoch_of_its_commit(sticky: Readers) -> None:
    _, partitions = sticky.topic(1, 10)
    (partition,) = partitions
    consumer: Any = sticky.add().consumer  # type: ignore[attr-defined]
    consumer.assign([TopicPartition(*partition)])
    wait_until(lambda: consumer.poll(20), "it is read")
    _internals.start_at(consumer, TopicPartition(*partition), 4, 6)
    # From version 2.2 on `seek` accepts a leader epoch.
    offset, epoch = _internals.position_of(consumer, TopicPartition(*partition)) or (None, None)
    assert offset == 4
    assert epoch in ((6,) if hasattr(kafka, "AsyncConsumerRebalanceListener") else (6, -1))
    assert _internals.position_of(consumer, TopicPartition("elsewhere", 0)) is None


def test_a_reset_that_the_client_has_lost_is_asked_for_again(sticky: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition is revoked during its reset. The client then drops the resets of that broker's other partitions."""
    topic, partitions = sticky.topic(2, 5)
    reader = sticky.add()
    path: KafkaPythonPath = reader.side.path  # type: ignore[attr-defined]
    reader.follow(topic)
    sticky.settle(partitions)
    sticky.until(lambda: len(reader.read) == 10, "all is read")
    asked: list[Any] = []
    monkeypatch.setattr(kafka.KafkaConsumer, "seek_to_beginning", lambda _, *given: asked.append(given))
    path.look_after_resets()
    assert asked == [], "nothing is missing"
    one, two = (TopicPartition(*each) for each in sorted(partitions))
    known = _internals.position_of
    monkeypatch.setattr(_internals, "position_of", lambda consumer, each: None if each in (one, two) else (0, -1))
    second = sticky.add().follow(topic)
    sticky.until(lambda: len(reader.held) == len(second.held) == 1, "one has gone")
    sticky.until(lambda: asked, "the other's is asked for again", reader)
    assert set(asked) == {(TopicPartition(*each),) for each in reader.held}
    monkeypatch.setattr(_internals, "position_of", known)


def test_a_partition_without_a_commit_and_without_a_rule(sticky: Readers) -> None:
    topic, _ = sticky.topic(1, 5)
    reader = sticky.add(further={"auto_offset_reset": "none"}).follow(topic)
    sticky.until(lambda: reader.errors, "it is an error")
    assert type(reader.errors[0]).__name__ == "NoOffsetForPartitionError"


def test_those_who_replace_methods_of_the_client_see_calls(sticky: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry and Elastic replace methods of the client's class after our class was made from it."""
    topic, partitions = sticky.topic(1, 5)
    reader = sticky.add(further={"consumer_timeout_ms": 5000, "client_id": unique("client")}).follow(topic)
    consumer: Any = reader.consumer  # type: ignore[attr-defined]
    seen: dict[str, int] = {"__next__": 0, "poll": 0}

    def counting(name: str) -> Any:
        original = getattr(kafka.KafkaConsumer, name)

        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            seen[name] += 1
            return original(self, *args, **kwargs)

        return counted

    for name in seen:
        monkeypatch.setattr(kafka.KafkaConsumer, name, counting(name))
    records = [record for record, _ in zip(consumer, range(5), strict=False)]
    assert [each.offset for each in records] == list(range(5))
    assert seen["__next__"] >= 5
    assert seen["poll"] >= 1
    assert consumer.config["group_id"] == sticky.group
    assert partitions == {(topic, 0)}
    if hasattr(consumer._subscription, "subscription_type"):
        assert consumer._subscription.subscription == {topic}


def test_closing_has_a_limit_where_nobody_answers(sticky: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, partitions = sticky.topic(1)
    reader = sticky.add().follow(topic)
    sticky.settle(partitions)
    silence_member(reader.side.member, monkeypatch)
    # Without the limit of the call, `close` would take longer than pytest lets a test run.
    monkeypatch.setattr(times, "CLOSE", 10_000.0)
    reader.consumer.close(timeout_ms=300)  # type: ignore[attr-defined]
    assert reader.side.has_left
