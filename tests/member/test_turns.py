"""The turns of the clients in memory: what a turn may block, which records it holds back, when it calls listeners."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.member import times
from kafka_assignors.member.data_path import Position, by_topic
from kafka_assignors.member.turn import Arrivals, LoopReply
from kafka_assignors.net import ClientConfig, Connection
from support.data_paths import Readers
from support.fake_loop_client import FakeLoopConsumer
from support.readers.in_memory import LOG, FakeLoopReader, FakeReader, fake_config
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.member.data_path import ListenerEvent, Partition
    from support.broker import Kafka


def test_a_loop_goes_on_while_its_member_leaves(embedded: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """The member's last requests are held back until the loop has run: a blocked loop would never send them."""
    # The member waits for answers for longer than pytest lets a test run.
    monkeypatch.setattr(times, "CLOSE", 10_000.0)
    settings = {"bootstrap.servers": embedded.bootstrap_servers, "socket.timeout.ms": 300_000}
    with Readers(embedded, FakeLoopReader, "sticky") as readers:
        topic, partitions = readers.topic(2)
        reader = readers.add(client=ClientConfig.from_confluent(settings)).follow(topic)
        readers.settle(partitions)
        member = reader.side.member
        assert member is not None
        assert isinstance(reader, FakeLoopReader)
        consumer: FakeLoopConsumer = reader.consumer
        send, lock = Connection.send, threading.Lock()
        held: list[tuple[Connection, bytes]] = []
        goes_on: list[bool] = []

        def hold(connection: Connection, data: bytes) -> None:
            with lock:
                if goes_on or connection not in member._numbers:
                    send(connection, data)
                else:
                    held.append((connection, data))

        def release() -> None:
            with lock:
                goes_on.append(True)
                for connection, data in held:
                    send(connection, data)
            member._poller.wake()

        monkeypatch.setattr(Connection, "send", hold)

        async def stop() -> None:
            stopping = asyncio.create_task(consumer.stop())
            try:
                for _ in range(10):
                    await asyncio.sleep(0.01)
                assert not stopping.done()
            finally:
                release()
            await stopping

        reader.loop.run(stop())
        assert reader.calls_of("revoked") == [partitions]


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_no_record_of_what_goes_is_handed_out_while_a_listener_is_awaited(embedded: Kafka, strategy: str) -> None:
    """Other tasks read meanwhile. If one of them got a record after the commit, the next owner would read it, too."""
    with Readers(embedded, FakeLoopReader, strategy) as readers:
        topic, partitions = readers.topic(4, 100_000)
        first = readers.add(auto_commit=True)
        assert isinstance(first, FakeLoopReader)
        late: list[Any] = []
        given_up: list[set[Partition]] = []
        consumer: FakeLoopConsumer = first.consumer

        async def listen(event: ListenerEvent, given: Iterable[Partition]) -> None:
            if event == "revoked":
                given_up.append(set(given))
                for _ in range(50):
                    record = await consumer.getone(0.0)
                    if record is not None and record[:2] in set(given):
                        late.append(record)
            first.note(event, given)

        first.loop.call(consumer.subscribe, [topic], listen)
        readers.settle(partitions)
        readers.until(lambda: len(first.read) > 50, "records flow")
        second = readers.add(auto_commit=True).follow(topic)
        readers.settle(partitions)
        readers.until(lambda: second.read, "the second reads")
        assert given_up
        assert late == []
        # The next owner of each moved partition began at the offset after the last record that the first owner read.
        begun = {(name, number): offset for name, number, offset in reversed(second.read)}
        ended = {(name, number): offset for name, number, offset in first.read}
        assert all(offset == ended.get(partition, -1) + 1 for partition, offset in begun.items())


@pytest.mark.parametrize("kind", [FakeReader, FakeLoopReader])
@pytest.mark.parametrize("always", [False, True])
def test_a_listener_hears_of_every_eager_rebalance_if_its_client_wants_it(
    embedded: Kafka, kind: type[FakeReader], always: bool
) -> None:
    with Readers(embedded, kind, "sticky") as readers:
        topic, partitions = readers.topic(2)
        reader = readers.add(tells_every_rebalance=always).follow(topic)
        readers.settle(partitions)
        expected: list[tuple[ListenerEvent, set[Partition]]] = [("revoked", set())] if always else []
        assert reader.events == [*expected, ("assigned", partitions)]


def test_work_of_the_client_is_done_in_its_turn(embedded: Kafka) -> None:
    with Readers(embedded, FakeReader, "sticky") as readers:
        topic, partitions = readers.topic(1)
        reader = readers.add().follow(topic)
        done: list[str] = []
        reader.side.run(lambda: done.append("first"))
        reader.side.run(lambda: done.append("second"))
        assert reader.side.is_due
        readers.settle(partitions)
        assert done == ["first", "second"]
        (partition,) = partitions
        reader.side.commits.send({partition: Position(3)}, context="mine")
        assert isinstance(reader, FakeReader)
        outcomes = reader.consumer.path.outcomes
        readers.until(lambda: outcomes, "the outcome is told")
        assert (outcomes[0].context, outcomes[0].error_code, dict(outcomes[0].asked)) == (
            "mine",
            0,
            {partition: Position(3)},
        )


def test_a_position_that_the_listener_chooses_is_the_start(embedded: Kafka) -> None:
    with Readers(embedded, FakeReader, "sticky") as readers:
        topic, partitions = readers.topic(3, 10)
        reader = readers.add()
        wanted, sought, _ = sorted(partitions)
        reader.during["assigned"] = lambda _: reader.side.choose({wanted: None, sought: Position(8)})
        reader.follow(topic)
        readers.until(lambda: len(reader.read) == 12, "the two are read")
        readers.for_a_while(0.3)
        assert sorted(reader.read) == [(*wanted, offset) for offset in range(10)] + [(*sought, 8), (*sought, 9)]
        assert reader.held == {wanted, sought}


def test_changes_between_rebalances(embedded: Kafka) -> None:
    with Readers(embedded, FakeReader, "sticky") as readers:
        topic, partitions = readers.topic(3, 5)
        reader = readers.add().follow(topic)
        readers.settle(partitions)
        one, two, three = sorted(partitions)
        readers.until(lambda: len(reader.read) == 15, "all is read")
        reader.side.reassign({one: None, two: Position(3)})
        readers.until(lambda: len(reader.read) == 17, "the second is read from there")
        assert reader.read[15:] == [(*two, 3), (*two, 4)]
        reader.side.reassign({three: Position(4)}, incremental=1)
        readers.until(lambda: len(reader.read) == 18, "the third is read from there")
        reader.side.reassign({one: None}, incremental=-1)
        assert reader.held == {two, three}


def test_an_answer_that_comes_when_nobody_waits_any_more() -> None:
    async def ask() -> tuple[Any, Any, bool]:
        late, arrivals = LoopReply(), Arrivals()
        nothing = await late.wait(0.01)
        late.set("late")
        late.set("again")
        answer = await late.wait(1.0)
        timed_out = await arrivals.wait(0.01)
        assert arrivals.ring()
        assert await arrivals.wait(1.0)
        closed.append(arrivals)
        return nothing, answer, timed_out

    closed: list[Arrivals] = []
    assert asyncio.run(ask()) == (None, "late", False)
    assert not closed[0].ring(), "the loop is closed"


def test_partitions_by_topic() -> None:
    assert by_topic([("b", 1), ("a", 2), ("b", 0)]) == {"a": [2], "b": [0, 1]}


def test_a_consumer_of_a_loop_that_is_closed_ends_its_thread(embedded: Kafka) -> None:
    async def subscribe() -> FakeLoopConsumer:
        consumer = FakeLoopConsumer(LOG, fake_config(embedded, "closed-loop", "sticky"))
        consumer.subscribe(["t"])
        await asyncio.sleep(0.2)
        return consumer

    consumer = asyncio.run(subscribe())
    member = consumer.side.member
    assert member is not None
    wait_until(lambda: not member.is_alive, "its thread has ended")
