"""Scripts of the same calls to confluent-kafka's consumer and to ours: records, stored offsets and commits."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from support.both_classes import BOTH_WAYS, logs, same
from support.confluent_group import fill
from support.threads import TIMEOUT, wait_until

if TYPE_CHECKING:
    from support.both_classes import Entry, Script
    from support.broker import Kafka

# Offsets that are stored.


@BOTH_WAYS
def test_offsets_that_are_stored(any_kafka: Kafka, strategy: str) -> None:
    """`commit` commits only offsets above the last commit. A close commits the last stored offset, also a lower one."""

    def play(script: Script) -> None:
        script.make("orders", 1, 10)
        part = script.consumer(strategy, enable_auto_offset_store=False, auto_commit_interval_ms=60_000)
        part.subscribe("orders")
        script.reads(part, 10)
        for offset in (8, 3, 3, 9, 2):
            part.called("store_offsets", offsets=[script.at("orders", 0, offset)])
            part.called("commit", asynchronous=False)
        part.called("commit", offsets=[script.at("orders", 0, 1)], asynchronous=False)
        part.called("commit", asynchronous=False)
        part.called("store_offsets", offsets=[script.at("orders", 0, 4)])
        script.close(part)
        part.note("committed", part.committed("orders", 0))

    log = same(any_kafka, play)
    assert log[-1] == ("", "committed", [4])
    refused = ("", "commit", ("KafkaException", "_NO_OFFSET"))
    assert log.count(refused) == 3


@BOTH_WAYS
@pytest.mark.parametrize("reads_on", [False, True])
def test_a_seek_backwards_before_the_end(any_kafka: Kafka, strategy: str, reads_on: bool) -> None:
    def play(script: Script) -> None:
        script.make("orders", 1, 10)
        part = script.consumer(strategy, auto_commit_interval_ms=60_000)
        part.subscribe("orders")
        script.reads(part, 10)
        part.called("seek", script.at("orders", 0, 2))
        if reads_on:
            script.reads(part, 13)
        script.close(part)
        part.note("committed", part.committed("orders", 0))

    assert same(any_kafka, play)[-1] == ("", "committed", [5 if reads_on else 10])


def test_what_the_group_has_committed_counts_as_committed(any_kafka: Kafka) -> None:
    def play(script: Script) -> None:
        script.make("orders", 1, 10)
        first = script.consumer(label="first")
        first.called("commit", offsets=[script.at("orders", 0, 8)], asynchronous=False)
        script.close(first)
        part = script.consumer(enable_auto_offset_store=False, enable_auto_commit=False)
        part.subscribe("orders")
        script.reads(part, 2)
        for offset in (3, 8, 9):
            part.called("store_offsets", offsets=[script.at("orders", 0, offset)])
            part.called("commit", asynchronous=False)

    same(any_kafka, play)


# A consumer without a subscription.


@pytest.mark.parametrize("stores", [True, False])
def test_automatic_commits_with_assign_only(any_kafka: Kafka, stores: bool) -> None:
    """Only the automatic commit may wake the waiting consumer: the first statistics come later than the test ends."""
    offset = 10 if stores else 6

    def play(script: Script) -> None:
        script.make("orders", 1, 10)
        part = script.consumer(
            auto_commit_interval_ms=300, statistics_interval_ms=600_000, enable_auto_offset_store=stores
        )
        part.called("assign", [script.at("orders", 0, 0)])
        script.reads(part, 10)
        if not stores:
            part.called("store_offsets", offsets=[script.at("orders", 0, 6)])
        done = (None, [("orders", 0, offset, None, None)])
        # One long call, which the next record ends.
        calling = threading.Thread(target=part.poll, args=(TIMEOUT,))
        calling.start()
        try:
            wait_until(lambda: done in part.told("on_commit"), "all is committed")
            part.note("committed", part.committed("orders", 0))
        finally:
            fill(script.kafka, script.topic("orders"), 1, 1, start=10)
            calling.join()
        script.without_commits()

    assert same(any_kafka, play)[-1] == ("", "committed", [offset])


def test_nothing_is_committed_with_assign_only_where_nothing_is_wanted(any_kafka: Kafka) -> None:
    def play(script: Script) -> None:
        script.make("orders", 1, 10)
        for settings in ({"enable_auto_commit": False}, {"auto_commit_interval_ms": 0}):
            part = script.consumer(**settings)
            part.called("assign", [script.at("orders", 0, 0)])
            script.reads(part, 10)
            script.after(0.5)
            part.note("committed", part.committed("orders", 0))
            part.called("unassign")
            script.close(part)

    assert [entry for entry in same(any_kafka, play) if entry[1] == "committed"] == [("", "committed", [-1001])] * 2


# The records that are read.


@BOTH_WAYS
def test_the_application_takes_a_part_of_its_share(any_kafka: Kafka, strategy: str) -> None:
    def play(script: Script) -> None:
        script.make("orders", 3, 2)
        part = script.consumer(strategy, auto_commit_interval_ms=60_000)

        def take(consumer: Any, partitions: list[Any]) -> None:
            method = consumer.assign if strategy == "range" else consumer.incremental_assign
            method([each for each in partitions if each.partition != 1])
            part.note("within", script.plain(consumer.assignment(), offsets=False))

        def give(consumer: Any, _: list[Any]) -> None:
            part.note("within", script.plain(consumer.assignment(), offsets=False))

        part.subscribe("orders", on_assign=take, on_revoke=give)
        script.reads(part, 4)
        part.called("assignment")
        part.called("commit", asynchronous=False)
        part.note("read", sorted(part.read))
        script.close(part)
        script.without_commits()

    log = same(any_kafka, play)
    assert ("", "within", [("orders", 0), ("orders", 2)]) in log


def test_a_manual_assign_in_an_eager_subscription(any_kafka: Kafka) -> None:
    def play(script: Script) -> None:
        script.make("orders", 3, 2)
        script.make("others", 2, 2)
        part = script.consumer("range", auto_commit_interval_ms=60_000)
        part.subscribe("orders")
        script.reads(part, 6)
        part.assigned_after(
            ("assign", [script.at("orders", 0)]),
            ("incremental_assign", [script.at("others", 0)]),
            ("incremental_unassign", [script.at("orders", 0)]),
            ("assign", [script.at("others", 1, 1)]),
        )
        script.reads(part, 7)
        part.note("read", part.read[6:])
        part.called("unassign")
        part.called("assignment")
        part.note("committed", part.committed("orders", 0, 1, 2))
        script.without_commits()

    log = same(any_kafka, play)
    assert ("", "read", [("others", 1, 1)]) in log
    assert log[-1] == ("", "committed", [2, 2, 2])


def test_a_manual_assign_in_a_cooperative_subscription_is_refused(any_kafka: Kafka) -> None:
    def play(script: Script) -> None:
        script.make("orders", 2, 2)
        script.make("others", 1, 2)
        part = script.consumer("cooperative-sticky", auto_commit_interval_ms=60_000)
        part.subscribe("orders")
        script.reads(part, 4)
        part.assigned_after(
            ("assign", [script.at("orders", 0)]),
            ("assign", []),
            ("incremental_assign", [script.at("others", 0)]),
            ("incremental_assign", [script.at("others", 0)]),
            ("incremental_unassign", [script.at("others", 0)]),
            ("incremental_unassign", [script.at("others", 0)]),
        )
        part.called("unassign")
        part.called("unsubscribe")
        script.until(lambda: part.told("on_revoke"), "everything is given up")
        script.after(0.2)
        part.called("assign", [script.at("others", 0)])
        part.called("assignment")
        script.without_commits()

    log = same(any_kafka, play)
    assert log.count(("", "assign", ("KafkaException", "_STATE"))) == 3
    assert log.count(("", "unassign", ("KafkaException", "_STATE"))) == 1


# The end of a partition.


@BOTH_WAYS
def test_the_end_is_told_again_after_a_rebalance(any_kafka: Kafka, strategy: str) -> None:
    """The end of each partition that is read after the rebalance is reported again, at least once."""

    def ends(log: list[Entry]) -> set[tuple[Any, ...]]:
        return {entry[2:] for entry in log if entry[:2] == ("first", "end")}

    def play(script: Script) -> None:
        script.make("orders", 2, 2)
        first = script.consumer(strategy, "first", enable_partition_eof=True)
        first.subscribe("orders")
        script.until(lambda: len(ends(script.log)) == 2, "both ends are told")
        second = script.consumer(strategy, "second")
        second.subscribe("orders")
        script.until(
            lambda: len(first.consumer.assignment()) == len(second.consumer.assignment()) == 1, "each has a partition"
        )
        del script.log[:]
        script.until(lambda: len(ends(script.log)) == 1, "the end of what stayed is told again")
        kept = ends(script.log)
        script.close(second)
        script.until(lambda: len(first.consumer.assignment()) == 2, "the first has both again")
        del script.log[:]
        script.until(lambda: len(ends(script.log)) == 2, "both ends are told again")
        assert kept < ends(script.log)
        script.after(0.7)
        script.log[:] = [("ends", len([entry for entry in script.log if entry[1] == "end"]))]

    found = logs(any_kafka, play)
    assert found["ours"] == found["theirs"] == [("ends", 2)]
