"""KIP-54's clean-up listener, as callbacks of our consumer for confluent-kafka."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import OptionError
from kafka_assignors.clients.confluent import Consumer, RebalanceDiffListener
from support.broker import unique
from support.raw_group import expel

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.embedded import EmbeddedKafka

Events = list[tuple[str, list[int]]]


class Recorder(RebalanceDiffListener):
    def __init__(self, **callbacks: Any) -> None:
        super().__init__(**callbacks)
        self.events: Events = []

    def on_partitions_gained(self, partitions: list[Any]) -> None:
        self.events.append(("gained", [each.partition for each in partitions]))

    def on_partitions_given_up(self, partitions: list[Any]) -> None:
        self.events.append(("given up", [each.partition for each in partitions]))

    def told(self) -> Events:
        events, self.events = self.events, []
        return events


def poll_until(condition: Callable[[], object], *consumers: Consumer) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        for consumer in consumers:
            consumer.poll(0.02)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_only_what_really_went_is_given_up(embedded_kafka: EmbeddedKafka, strategy: str) -> None:
    embedded_kafka.create_topic("t", 4)
    settings = {
        "bootstrap.servers": embedded_kafka.bootstrap_servers,
        "group.id": unique("g"),
        "partition.assignment.strategy": strategy,
        "heartbeat.interval.ms": 100,
    }
    ordinary: list[tuple[str, list[int]]] = []

    def note(name: str) -> Callable[[Any, list[Any]], None]:
        return lambda _, partitions: ordinary.append((name, sorted(each.partition for each in partitions)))

    names = ("on_assign", "on_revoke", "on_lost")
    first, second = Recorder(**{name: note(name) for name in names}), Recorder()
    a, b = Consumer(settings), Consumer(settings)
    a.subscribe(["t"], **first.callbacks)
    poll_until(lambda: first.held, a)
    assert first.told() == [("gained", [0, 1, 2, 3])]
    b.subscribe(["t"], **second.callbacks)
    poll_until(lambda: len(second.held) == 2 and len(first.held) == 2, a, b)
    kept = [each.partition for each in first.held]
    gone = sorted({0, 1, 2, 3} - set(kept))
    assert first.told() == [("given up", gone)]
    assert second.told() == [("gained", gone)]
    if strategy == "sticky":
        assert ordinary[:3] == [("on_assign", [0, 1, 2, 3]), ("on_revoke", [0, 1, 2, 3]), ("on_assign", kept)]
    b.close()
    second.close()
    assert second.told() == [("given up", gone)]
    poll_until(lambda: len(first.held) == 4, a)
    assert first.told() == [("gained", gone)]
    a.close()
    first.close()
    assert first.told() == [("given up", [0, 1, 2, 3])]


def test_what_is_lost_is_given_up_at_once(embedded_kafka: EmbeddedKafka) -> None:
    embedded_kafka.create_topic("t", 2)
    listener = Recorder()
    group = unique("g")
    settings = {
        "bootstrap.servers": embedded_kafka.bootstrap_servers,
        "group.id": group,
        "partition.assignment.strategy": "sticky",
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 6000,
    }
    with Consumer(settings) as consumer:
        consumer.subscribe(["t"], **listener.callbacks)
        poll_until(lambda: listener.held, consumer)
        assert listener.told() == [("gained", [0, 1])]
        expel(embedded_kafka, group)
        poll_until(lambda: len(listener.events) == 2, consumer)
        assert listener.told() == [("given up", [0, 1]), ("gained", [0, 1])]


def test_coroutines_are_refused() -> None:
    async def later(consumer: Any, partitions: Any) -> None: ...

    with pytest.raises(OptionError, match="Recorder has an asynchronous callback, which nobody would await"):
        Recorder(on_assign=later)
