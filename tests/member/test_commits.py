"""Commits of every data path: which offsets are committed, when, and that a commit that is too late is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from support.data_paths import Readers

from support.silence import silence_member


def test_what_was_read_is_committed_and_the_next_owner_starts_there(readers: Readers) -> None:
    topic, partitions = readers.topic(2, 10)
    first = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(first.read) == 20, "all is read")
    assert first.commit() == partitions
    assert first.committed(partitions) == dict.fromkeys(partitions, 10)
    first.close()
    readers.fill(topic, 2, 3)
    second = readers.add().follow(topic)
    readers.until(lambda: len(second.read) == 6, "the new ones are read", second)
    assert {offset for *_, offset in second.read} == {10, 11, 12}


def test_offsets_are_committed_by_themselves(readers: Readers) -> None:
    """On the interval, when partitions are revoked, and at the end."""
    topic, partitions = readers.topic(2, 10)
    first = readers.add(auto_commit=True, auto_commit_interval=0.2).follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(first.read) == 20, "all is read")
    asks = readers.add()
    readers.until(lambda: asks.committed(partitions) == dict.fromkeys(partitions, 10), "the interval", first)
    second = readers.add(auto_commit=True, auto_commit_interval=60.0).follow(topic)
    readers.settle(partitions, first, second)
    readers.fill(topic, 2, 2)
    readers.until(lambda: len(first.read) == 22 and len(second.read) == 2, "the new ones are read", first, second)
    # Reads `held` before the close: after it a rebalance may change the partitions.
    (others,) = second.held
    second.close()
    assert asks.committed(partitions)[others] == 12
    readers.until(lambda: first.held == partitions, "the first has all", first)
    readers.fill(topic, 2, 1)
    readers.until(lambda: len(first.read) == 24, "the new ones are read", first)
    assert len(set(first.read)) == 24


def test_a_commit_of_what_another_member_owns_is_not_sent(readers: Readers) -> None:
    topic, partitions = readers.topic(2, 10)
    first, second = readers.add().follow(topic), readers.add().follow(topic)
    readers.settle(partitions)
    mine, others = min(first.held), min(second.held)
    assert first.commit({mine: 3, others: 4}) == {mine}
    assert first.committed(partitions) == {mine: 3, others: -1}


def test_the_commits_of_one_that_never_subscribed_name_no_member(readers: Readers) -> None:
    topic, partitions = readers.topic(2)
    member = readers.add().follow(topic)
    readers.settle(partitions)
    member.commit(dict.fromkeys(partitions, 0))
    member.close()
    asks = readers.add()
    assert asks.committed(partitions) == dict.fromkeys(partitions, 0)
    assert not asks.side.subscribed


def test_a_commit_after_the_membership_was_lost_is_refused(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, partitions = readers.topic(2, 10)
    first = readers.add(auto_commit=False).follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(first.read) == 20, "all is read")
    silence_member(first.side.member, monkeypatch)
    readers.until(lambda: first.calls_of("lost"), "it is told", within=30)
    assert first.commit(dict.fromkeys(partitions, 5)) == set()
    monkeypatch.undo()
    readers.until(lambda: first.held == partitions, "it is back", within=30)
    assert set(first.committed(partitions).values()) == {-1}
