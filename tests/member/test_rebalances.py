"""The rebalances of every data path: the calls of a listener, the records that are read, the partitions that stay."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from support.features import release_has

if TYPE_CHECKING:
    from collections.abc import Collection

    from support.data_paths import Readers
    from support.readers.reader import Reader


def numbers(readers: Collection[Reader]) -> list[tuple[str, int, int]]:
    """All records that these readers have read, sorted."""
    return sorted(record for reader in readers for record in reader.read)


def test_every_record_is_read_once_while_members_come_and_go(readers: Readers) -> None:
    """No offset is committed: a member that lost a position would read the partition again from its beginning."""
    topic, partitions = readers.topic(4, 50)
    first = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(first.read) == 200, "all is read")
    assert numbers([first]) == [(topic, number, offset) for number in range(4) for offset in range(50)]
    second = readers.add().follow(topic)
    readers.settle(partitions)
    kept, moved = set(first.held), set(second.held)
    assert len(kept) == len(moved) == 2
    readers.fill(topic, 4, 10)
    # The partitions that moved have no committed offset, so they are read from the beginning.
    readers.until(lambda: len(first.read) == 220 and len(second.read) == 120, "all is read")
    assert {(name, number) for name, number, _ in second.read} == moved
    assert [offset for name, number, offset in first.read[200:] if (name, number) in kept] == [
        offset for _, _, offset in first.read[200:]
    ]
    assert min(offset for *_, offset in first.read[200:]) == 50
    second.commit()
    second.close()
    readers.until(lambda: first.held == partitions, "the first has all", first)
    readers.fill(topic, 4, 5)
    readers.until(lambda: len(first.read) == 240, "the new ones are read", first)
    readers.for_a_while(0.3, first)
    assert len(first.read) == 240
    assert len(set(first.read)) == 240


# kafka-python 2 does not call its listener at the end, and only logs the listener's errors.
@release_has("kafka-python 3", of="kafka-python")
def test_the_listener_hears_of_what_comes_and_goes_in_order(readers: Readers) -> None:
    topic, partitions = readers.topic(4)
    first = readers.add().follow(topic)
    readers.settle(partitions)
    assert [event for event in first.events if event[1]] == [("assigned", partitions)]
    second = readers.add().follow(topic)
    readers.settle(partitions)
    heard = [event for event in first.events[1:] if event[1]]
    if readers.is_cooperative:
        assert heard == [("revoked", set(second.held))]
        assert [event for event in second.events if event[1]] == [("assigned", set(second.held))]
    else:
        assert heard == [("revoked", partitions), ("assigned", set(first.held))]
    share = set(second.held)
    second.close()
    assert second.events[-1] == ("revoked", share)
    readers.until(lambda: first.held == partitions, "the first has all", first)
    gained = [event for event in first.events if event[1]][-1]
    assert gained == ("assigned", partitions - kept_by(first, share) if readers.is_cooperative else partitions)


def kept_by(reader: Reader, share: set[Any]) -> set[Any]:
    """The partitions of a reader, without those in `share`."""
    return reader.held - share


def test_a_pause_and_a_position_stay_with_a_partition_that_stays(readers: Readers) -> None:
    topic, partitions = readers.topic(2, 10)
    first = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(first.read) == 20, "all is read")
    for partition in partitions:
        first.pause(partition)
    second = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(second.read) == 10, "the second reads its own from the beginning")
    readers.fill(topic, 2, 5)
    readers.until(lambda: len(second.read) == 15, "the second goes on")
    readers.for_a_while(0.3)
    assert len(first.read) == 20, "paused"
    (stays,) = first.held
    first.resume(stays)
    readers.until(lambda: len(first.read) == 25, "the first goes on")
    assert [offset for *_, offset in first.read[20:]] == [10, 11, 12, 13, 14]
    moved = min(partitions - {stays})
    second.commit()
    second.close()
    readers.until(lambda: first.held == partitions, "the first has all", first)
    first.resume(moved)
    readers.fill(topic, 2, 1)
    readers.until(lambda: len(first.read) == 27, "both are read", first)


def test_a_seek_counts_before_the_start_is_known_and_after(readers: Readers) -> None:
    # Many partitions, since librdkafka lost a seek only while it looked up the start of the partition.
    topic, partitions = readers.topic(20, 10)
    reader = readers.add()
    reader.follow(topic)
    readers.until(lambda: reader.held == partitions, "all are assigned")
    for first in (7, 4):
        reader.read.clear()
        for partition in partitions:
            reader.seek(partition, first)
        readers.until(lambda: len(reader.read) >= 20 * (10 - first), "all are read to their ends")  # noqa: B023
        assert set(reader.read) == {(*each, offset) for each in partitions for offset in range(first, 10)}


@pytest.mark.parametrize("event", ["assigned", "revoked"])
# kafka-python 2 does not call its listener at the end, and only logs the listener's errors.
@release_has("kafka-python 3", of="kafka-python")
def test_a_listener_that_raises_holds_up_nobody(readers: Readers, event: Any) -> None:
    topic, partitions = readers.topic(4, 5)
    first = readers.add().follow(topic)

    def fail(_: object) -> None:
        raise LookupError("no such cache")

    first.during[event] = fail
    readers.until(lambda: first.held == partitions, "the first has all")
    second = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: first.errors, "the error is raised")
    assert {type(error) for error in first.errors} == {LookupError}
    assert second.errors == []
    raised = len(first.calls_of(event))
    first.during.clear()
    readers.until(lambda: len({each[:2] for each in first.read + second.read}) == 4, "all are read")
    readers.for_a_while(0.3)
    assert len(first.errors) == raised, "each once"


def test_unsubscribing_gives_up_everything_and_a_subscription_brings_it_back(readers: Readers) -> None:
    topic, partitions = readers.topic(2, 5)
    reader = readers.add().follow(topic)
    readers.settle(partitions)
    readers.until(lambda: len(reader.read) == 10, "all is read")
    reader.commit()
    reader.unsubscribe()
    readers.until(lambda: reader.calls_of("revoked"), "it is told")
    assert reader.calls_of("revoked") == [partitions]
    assert reader.held == set()
    readers.fill(topic, 2, 1)
    readers.for_a_while(0.3)
    assert len(reader.read) == 10
    reader.follow(topic)
    readers.until(lambda: len(reader.read) == 12, "it goes on at its commits")


def test_a_rebalance_does_not_wait_for_one_who_has_nothing_to_give_up(readers: Readers) -> None:
    """The second consumer subscribes and does not poll. It gets its share all the same."""
    topic, partitions = readers.topic(2, 1)
    first = readers.add().follow(topic)
    readers.settle(partitions)
    # Committed offsets that arrive later would make the first due before the second has joined. The second would then
    # not poll any more, and the group would wait for it.
    readers.until(lambda: len(first.read) == 2, "all is read")
    second = readers.add().follow(topic)
    if second.hears_of_all:
        # Such a listener is also called in the first rebalance, which waits for the call: polls let it happen. On a
        # loop the first takes its turns without polls, so that the rebalance may end in this wait.
        readers.until(lambda: first.side.is_due or len(first.held) == 1, "the group rebalances", second)
    readers.until(lambda: len(first.held) == 1, "the first has given one up", first)
    second.turn(0.5)
    readers.settle(partitions)


def test_the_share_of_one_who_is_away_waits_for_it(eager: Readers) -> None:
    """A program that is busy for more than two sessions stays a member: a thread of ours sends the heartbeats."""
    topic, partitions = eager.topic(2, 3)
    reader = eager.add(session_timeout_ms=6000).follow(topic)
    eager.settle(partitions)
    eager.until(lambda: len(reader.read) == 6, "all is read")
    before = reader.side.latest
    time.sleep(13.0)
    eager.fill(topic, 2, 1)
    eager.until(lambda: len(reader.read) == 8, "it goes on")
    assert reader.side.latest == before
    assert reader.calls_of("lost") == reader.calls_of("revoked") == []
