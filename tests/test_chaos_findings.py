"""The checks of the chaos run: each of its refusals, on lines that are written for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from support.chaos import Findings, consumed, events_of, judge_transactions
from support.trace import Trace


def findings(*lines: tuple[str, str, dict[str, Any]]) -> Findings:
    trace = Trace()
    for at, (member, kind, fields) in enumerate(lines):
        trace.record(f"{member}-sticky-1", {"event": kind, "at": at, **fields})
    return consumed(events_of(trace, "sticky"), "t")


def synced(member: str, generation: int, *partitions: int) -> tuple[str, str, dict[str, Any]]:
    return member, "synced", {"generation": generation, "partitions": [("t", number) for number in partitions]}


def read(member: str, partition: int, first: int, last: int, **fields: int) -> tuple[str, str, dict[str, Any]]:
    return member, "consumed", {"offsets": [("t", partition, first, last)], **fields}


def test_what_was_read_and_what_was_not() -> None:
    found = findings(synced("confluent", 1, 0, 1), read("confluent", 0, 0, 4), read("confluent", 0, 3, 5))
    assert found.missing({0: 6, 1: 2}) == {1: 2}
    assert found.missing({0: 7}) == {0: 1}
    assert (found.read, found.generations) == (8, 1)


def test_a_hole_is_missing() -> None:
    found = findings(synced("confluent", 1, 0), read("confluent", 0, 0, 1), read("confluent", 0, 3, 5))
    assert found.missing({0: 6}) == {0: 1}


def test_two_owners_in_one_generation() -> None:
    with pytest.raises(AssertionError, match=r"0 was given to .* in generation 3"):
        findings(synced("confluent", 3, 0), synced("java", 3, 0))


def test_two_readers_in_one_generation() -> None:
    with pytest.raises(AssertionError, match="read 0 in generation 3"):
        findings(synced("java", 3, 0), synced("kafka", 3, 1), read("java", 0, 0, 1), read("kafka", 0, 2, 2))


def test_a_zombie_reads_in_its_own_generation() -> None:
    lines = synced("confluent", 1, 0), synced("java", 2, 0), read("java", 0, 0, 9), read("confluent", 0, 0, 3)
    assert findings(*lines).read == 14


@pytest.mark.parametrize("ours", ["confluent", "kafka_python", "aiokafka"])
def test_ours_reads_nothing_that_is_not_its_own(ours: str) -> None:
    with pytest.raises(AssertionError, match="not its own"):
        findings(synced(ours, 1, 0), synced(ours, 2), read(ours, 0, 0, 1))
    # The records are from before the generation that began during the same call.
    findings(synced(ours, 1, 0), synced(ours, 2), read(ours, 0, 0, 1, began=1))


def test_a_share_that_shrinks_within_an_epoch() -> None:
    """The next lines may have records that were read before the share shrank, if they are of one call or batch."""
    shrunk = synced("kafka_python", 14, 0, 7), synced("kafka_python", 14, 0)
    lines = read("kafka_python", 7, 0, 1, began=14, more=1), read("kafka_python", 7, 2, 3, began=14)
    assert findings(*shrunk, *lines).read == 4
    with pytest.raises(AssertionError, match="kafka_python-sticky-1 read 7 in 14, not its own"):
        findings(*shrunk, *lines, read("kafka_python", 7, 4, 4, began=14))


def test_commits() -> None:
    found = Findings("t")
    found.judge_commits([(0, 2, 1), (1, 1, 2), (0, 2, 3), (0, 5, 4)], {0: 5, 1: 1})
    assert found.commits == 4
    with pytest.raises(AssertionError, match=r"partition 0 went from 5 \(at 7\) back to 4 \(at 9\)"):
        Findings("t").judge_commits([(0, 5, 7), (0, 4, 9)], {0: 5})
    with pytest.raises(AssertionError, match="written"):
        Findings("t").judge_commits([(0, 5, 1)], {0: 6})


def test_what_transactions_wrote() -> None:
    once = Counter({(0, 0): 1, (0, 1): 1, (1, 0): 1})
    judge_transactions(once, {0: 2, 1: 1})
    with pytest.raises(AssertionError, match=r"1 records were written twice: \[\(0, 1\)\]"):
        judge_transactions(once + Counter({(0, 1): 1}), {0: 2, 1: 1})
    with pytest.raises(AssertionError, match=r"1 records were not written: \[\(1, 1\)\]"):
        judge_transactions(once, {0: 2, 1: 2})
    with pytest.raises(AssertionError, match="never read"):
        judge_transactions(once, {0: 2, 1: 0})
