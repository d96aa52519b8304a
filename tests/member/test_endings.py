"""How a membership ends on every data path: expelled, closed in every state, forked, forgotten."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.member import times
from support.features import release_has
from support.raw_group import waiting_for_a_dead_member
from support.silence import silence_member
from support.threads import wait_until

if TYPE_CHECKING:
    from kafka_assignors.member.rebalance_report import RebalanceReport
    from support.data_paths import Readers
    from support.readers.reader import Reader


def threads(readers: Readers) -> list[str]:
    """The living threads of the group's members."""
    name = f"kafka-assignors-member-{readers.group}"
    return [each.name for each in threading.enumerate() if each.name == name]


def members_of(readers: Readers) -> int:
    return len(readers.kafka.describe_group(readers.group).assignment)


def test_nothing_is_handed_out_past_the_session(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The member's requests are lost while the data path still has records.

    `wait_until` pauses between two turns: the topic is not read to its end before the session expires.
    """
    topic, partitions = readers.topic(2, 20_000)
    reader = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(reader.read) > 10, "records flow")
    member = reader.side.member
    assert member is not None
    silence_member(member, monkeypatch)

    def is_told() -> bool:
        before, is_over = len(reader.read), member.session_left <= 0
        reader.turn()
        assert not is_over or len(reader.read) == before, "the turn began after the end of the session"
        return bool(reader.calls_of("lost"))

    wait_until(is_told, "it is told")
    assert reader.calls_of("lost") == [partitions]
    assert reader.held == set()
    monkeypatch.undo()
    reader.read.clear()
    readers.until(lambda: reader.held == partitions and reader.read, "it is back", within=30)
    # No offset was committed, so the member reads from the beginning again.
    assert reader.read[0][2] == 0


def test_one_that_does_not_poll_leaves_and_comes_back(readers: Readers) -> None:
    topic, partitions = readers.topic(2, 5)
    reports: list[RebalanceReport] = []
    first = readers.add(session_timeout_ms=6000, max_poll_interval_ms=6000, on_rebalance=reports.append).follow(topic)
    second = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len({*first.read, *second.read}) == 10, "all is read")
    away = set(first.held)
    before = len(second.calls_of("assigned"))
    readers.until(lambda: second.held == partitions, "the other has all", second, within=30)
    assert len(second.calls_of("assigned")) == before + 1, "the first left, and did not join again by itself"
    # The member joins again in the turn that calls the listener for the loss. Its own thread makes the report.
    reports.clear()
    readers.until(lambda: first.calls_of("lost"), "it is told", first)
    assert first.calls_of("lost") == [away]
    assert len(first.errors) == first.tells_of_idleness
    readers.settle(partitions)
    back = reports[0]
    assert (back.expelled, back.causes[-1]) == (True, "member-expelled")
    assert back.seconds is not None
    assert back.seconds > 0
    assert back.without_partitions == pytest.approx(back.seconds, abs=1e-4)


@pytest.mark.parametrize("state", ["new", "subscribed", "joining", "assigned", "paused", "lost", "unsubscribed"])
# kafka-python 2 does not call its listener at the end, and only logs the listener's errors.
@release_has("kafka-python 3", of="kafka-python")
def test_closing_in_every_state(eager: Readers, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    # Longer than pytest's limit for a test: a `close` that waits for its own limit does not end.
    monkeypatch.setattr(times, "CLOSE", 10_000.0)
    topic, partitions = eager.topic(2, 5)
    reader = eager.add()
    if state != "new":
        reader.follow(topic)
    if state in ("assigned", "paused", "joining", "lost", "unsubscribed"):
        eager.settle(partitions, reader)
    if state == "paused":
        for partition in partitions:
            reader.pause(partition)
    if state == "joining":
        # The other consumer joins. The test polls neither of the two.
        other = eager.add().follow(topic)
        time.sleep(0.6)
    if state == "lost":
        silence_member(reader.side.member, monkeypatch)
        eager.until(lambda: reader.calls_of("lost"), "it is told", reader, within=30)
        monkeypatch.setattr(times, "CLOSE", 1.0)
    if state == "unsubscribed":
        reader.unsubscribe()
    reader.close()
    reader.close()
    assert reader.side.has_left
    assert reader.held == set()
    held = state in ("assigned", "paused", "joining", "unsubscribed")
    # On a loop the member takes part in the rebalance without polls. A second call may revoke its new partitions.
    assert reader.calls_of("revoked")[:1] == ([partitions] if held else [])
    if state == "joining":
        eager.until(lambda: other.held == partitions, "the other has all", other)
    elif state != "lost":
        assert members_of(eager) == 0
        assert threads(eager) == []


def test_closing_while_the_group_waits_for_a_member_commits_what_was_read(readers: Readers) -> None:
    """The coordinator accepts commits with the last generation until all members have joined."""
    topic, partitions = readers.topic(2, 5)
    reader = readers.add(auto_commit=True, auto_commit_interval=60.0).follow(topic)
    readers.settle(partitions)
    assert isinstance(readers.strategy, str)
    with waiting_for_a_dead_member(readers.kafka, readers.group, topic, readers.strategy, readers.for_a_while):
        kept = set(reader.held)
        readers.fill(topic, 2, 3)
        readers.until(lambda: len(reader.read) == 10 + 3 * len(kept), "it reads on while it waits")
        reader.close()
        assert reader.calls_of("lost") == []
        committed = readers.add().committed(partitions)
    assert committed == {partition: 8 if partition in kept else 5 for partition in partitions}


@pytest.mark.parametrize("event", ["assigned", "revoked"])
def test_closing_within_the_listener(readers: Readers, event: Any) -> None:
    topic, partitions = readers.topic(2, 5)
    first = readers.add().follow(topic)
    first.during[event] = lambda _: first.close()
    other: Reader | None = None
    if event == "revoked":
        readers.settle(partitions)
        other = readers.add().follow(topic)
    readers.until(lambda: first.side.has_left, "it has left", *filter(None, [first, other]))
    assert first.held == set()
    if other is None:
        assert members_of(readers) == 0
    else:
        readers.until(lambda: other.held == partitions, "the other has all", other)


@pytest.mark.filterwarnings("ignore:Unclosed AIOKafkaConsumer:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in.*AIOKafkaConsumer:pytest.PytestUnraisableExceptionWarning")
def test_a_consumer_that_nobody_closes_ends_its_thread(readers: Readers) -> None:
    topic, partitions = readers.topic(2)
    reader = readers.add().follow(topic)
    readers.settle(partitions)
    assert len(threads(readers)) == 1
    readers.all.clear()
    gone = weakref.ref(reader)
    del reader
    wait_until(lambda: gc.collect() is not None and gone() is None, "it is collected")
    wait_until(lambda: not threads(readers), "its thread has ended")


def test_the_child_of_a_fork_has_no_member(readers: Readers) -> None:
    topic, partitions = readers.topic(2, 5)
    reader = readers.add().follow(topic)
    readers.settle(partitions)
    before = reader.side.latest
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(say, "w") as out:
            try:
                refused = [_refusal(reader, method) for method in ("subscribe", "commit")]
                out.write(" ".join(refused))
            except BaseException as error:
                out.write(repr(error))
        os._exit(0)
    os.close(say)
    with os.fdopen(said) as answer:
        assert answer.read() == "StateError StateError"
    assert os.waitpid(child, 0)[1] == 0
    readers.until(lambda: len(reader.read) == 10, "the parent goes on")
    assert reader.side.latest == before
    assert reader.calls_of("lost") == reader.calls_of("revoked") == []


def _refusal(reader: Reader, method: str) -> str:
    consumer: Any = reader.consumer  # type: ignore[attr-defined]
    try:
        getattr(consumer, method)(["t"])
    except Exception as error:
        return type(error).__name__
    return "nothing"
