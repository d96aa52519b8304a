"""The consumer's side of a rebalance without a broker: how each notice of the membership changes the data path."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, TopicPartition

from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.clients.confluent.data_path import Callbacks
from kafka_assignors.userdata import Assignment
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.clients.confluent.application_side import ConfluentSide

MEMBER = "member-1"


class Told:
    """A member that accepts every call and keeps its arguments."""

    is_lost = False
    is_in_doubt = False
    session_left = float("inf")

    def __init__(self) -> None:
        self.done_with: list[tuple[int, list[str]]] = []
        self.commits: list[Any] = []
        self.fetches: list[dict[str, list[int]]] = []

    def begin(self, ticket: int) -> bool:
        return ticket > 0

    def done(self, ticket: int, protocols: list[tuple[str, bytes]]) -> None:
        self.done_with.append((ticket, [name for name, _ in protocols]))

    def commit(self, offsets: Any, timeout: float, reply: Any) -> int:
        self.commits.append(offsets)
        return len(self.commits)

    def fetch(self, partitions: dict[str, list[int]], timeout: float) -> int:
        self.fetches.append(partitions)
        return len(self.fetches)


class Scene:
    """One consumer. The test plays its membership."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.engine: ConfluentSide = consumer._group
        self.member = Told()
        self.engine.member = self.engine.commits.member = self.member  # type: ignore[assignment]
        self.tickets = 0

    def tell(self, kind: str, generation: int, owned: list[int], **fields: Any) -> None:
        self.tickets += 1
        notice = {
            "action": "notify",
            "kind": kind,
            "ticket": self.tickets,
            "lost": False,
            "revoked": [],
            "added": [("t", owned)],
            "owned": [("t", owned)] if owned else [],
            "generation": generation,
            "member_id": MEMBER,
            "protocol": "sticky",
            "assignment": Assignment({"t": owned}, struct.pack(">i", generation)).encode(),
            "topics": ["t"],
            "began_ms": None,
            "joined_ms": None,
            "attempts": 1,
            "trigger": "group",
        }
        self.engine.mailbox.put(notice | fields)
        self.engine.attend_in_poll()

    def start(self, *partitions: int, offset: int = 0) -> None:
        """Delivers an answer with the committed offsets of these partitions."""
        offsets = [("t", number, offset, -1, None, 0) for number in partitions]
        answer = {"action": "offsets-fetched", "id": len(self.member.fetches), "error_code": 0, "offsets": offsets}
        self.engine.mailbox.put(answer)
        self.engine.attend_in_poll()

    @property
    def fetched(self) -> set[int]:
        """The partitions that librdkafka reads."""
        import confluent_kafka

        return {each.partition for each in confluent_kafka.Consumer.assignment(self.consumer)}


@pytest.fixture
def scene() -> Iterator[Scene]:
    # No broker listens at this address, and none is needed.
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, "socket.timeout.ms": 100}
    consumer = Consumer(settings | {"partition.assignment.strategy": "sticky"})
    scene = Scene(consumer)
    yield scene
    scene.engine.member = scene.engine.commits.member = None
    consumer.close()


def test_partitions_that_come_straight_back_stay(scene: Scene) -> None:
    scene.tell("assign", 1, [0, 1])
    assert scene.member.fetches == [{"t": [0, 1]}]
    assert scene.fetched == set()
    scene.start(0, 1, offset=5)
    assert scene.fetched == {0, 1}
    scene.tell("prepare", 1, [], revoked=[("t", [0, 1])])
    assert scene.member.done_with[-1] == (2, ["sticky"])
    assert scene.engine.holds_back
    assert scene.fetched == {0, 1}
    assert scene.consumer.assignment() == []
    scene.tell("assign", 2, [1, 2])
    assert not scene.engine.holds_back
    assert scene.fetched == {1}
    # Only the new partition needs a request for its commit.
    assert scene.member.fetches[1:] == [{"t": [2]}]
    scene.start(2)
    assert scene.fetched == {1, 2}


def test_partitions_that_others_may_have_had_start_anew(scene: Scene) -> None:
    scene.tell("assign", 1, [0, 1])
    scene.start(0, 1)
    scene.tell("prepare", 1, [], revoked=[("t", [0, 1])])
    # This member missed generation 2.
    scene.tell("assign", 3, [0, 1])
    assert scene.fetched == set()
    assert scene.member.fetches[1:] == [{"t": [0, 1]}]
    scene.start(0, 1, offset=9)
    assert scene.fetched == {0, 1}
    scene.tell("prepare", 3, [], revoked=[("t", [0, 1])])
    scene.tell("assign", 4, [0], member_id="member-2")
    assert scene.fetched == set()
    assert scene.member.fetches[2:] == [{"t": [0]}]


def test_what_was_given_up_and_then_lost_is_gone(scene: Scene) -> None:
    scene.tell("assign", 1, [0, 1])
    scene.start(0, 1)
    scene.tell("prepare", 1, [], revoked=[("t", [0, 1])])
    scene.tell("prepare", -1, [], lost=True)
    assert scene.fetched == set()
    scene.tell("assign", 2, [0])
    assert scene.member.fetches[1:] == [{"t": [0]}]


def test_starts_that_come_too_late_do_not_count(scene: Scene) -> None:
    scene.tell("assign", 1, [0, 1])
    scene.tell("prepare", 1, [], revoked=[("t", [0, 1])])
    scene.tell("assign", 2, [1])
    assert scene.member.fetches == [{"t": [0, 1]}, {"t": [1]}]
    answer = [("t", 0, 3, -1, None, 0), ("t", 1, 3, -1, None, 0)]
    scene.engine.mailbox.put({"action": "offsets-fetched", "id": 1, "error_code": 0, "offsets": answer})
    scene.engine.attend_in_poll()
    # The answer counts for neither partition. Partition 1 was revoked and assigned again: another member may have
    # committed since this answer.
    assert scene.fetched == set()
    scene.start(1, offset=5)
    assert scene.fetched == {1}


def test_starts_that_are_refused_are_asked_for_again(scene: Scene) -> None:
    scene.tell("assign", 1, [0, 1])
    answer = [("t", 0, 3, -1, None, 0), ("t", 1, -1, -1, None, 29)]
    scene.engine.mailbox.put({"action": "offsets-fetched", "id": 1, "error_code": 0, "offsets": answer})
    message = scene.engine.attend_in_poll()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == 29
    assert scene.fetched == {0}
    assert scene.member.fetches[1:] == [{"t": [1]}]


def test_a_notice_that_was_overtaken_does_nothing(scene: Scene) -> None:
    scene.tickets = -2
    scene.tell("assign", 1, [0])
    assert scene.member.done_with == []
    assert scene.member.fetches == []
    assert scene.consumer.assignment() == []


def test_every_callback_runs_and_the_group_goes_on_whatever_they_raise(scene: Scene) -> None:
    calls: list[str] = []

    def failing(name: str) -> Any:
        def fail(*_: Any) -> None:
            calls.append(name)
            raise KeyboardInterrupt(name) if name == "assign" else LookupError(name)

        return fail

    scene.engine._listener = Callbacks(failing("assign"), failing("revoke"), failing("lost"))
    with pytest.raises(KeyboardInterrupt):
        scene.tell("assign", 1, [0])
    assert scene.member.done_with == [(1, [])]
    for kind, lost in (("prepare", False), ("assign", False), ("prepare", True)):
        with pytest.raises((LookupError, KeyboardInterrupt)):
            scene.tell(kind, 1, [0] if kind == "assign" else [], revoked=[("t", [0])], lost=lost)
    assert calls == ["assign", "revoke", "assign", "lost"]
    assert [ticket for ticket, _ in scene.member.done_with] == [1, 2, 3, 4]


def test_seeking_a_partition_that_waits_for_its_start(scene: Scene) -> None:
    scene.tell("assign", 1, [0])
    scene.consumer.seek(TopicPartition("t", 0, 7))
    assert scene.fetched == {0}
    scene.start(0, offset=3)
    assert scene.fetched == {0}


def test_a_defect_of_the_membership_is_an_error_and_not_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("as never expected")

    monkeypatch.setattr("kafka_assignors.net.Poller.poll", fail)
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    consumer.subscribe(["t"])

    def ask(what: Any) -> None:
        wait_until(lambda: what() and False, "an error")

    for way in (lambda: consumer.poll(0.1), lambda: consumer.consume(1, 0.1)):
        with pytest.raises(KafkaException, match="the membership thread failed with ValueError: as never expected"):
            ask(way)
    with pytest.raises(KafkaException, match="Commit failed"):
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()


def test_an_unreachable_cluster_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_assignors.member.times.CLOSE", 0.5)
    with Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}) as consumer:
        consumer.subscribe(["t"])
        assert consumer.poll(0.5) is None
        assert consumer.consume(10, 0.2) == []
        assert consumer.memberid() is None
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)
