"""The course of a rebalance in the reports of every drop-in: its times, its causes, its retries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafka_assignors.member.rebalance_report import RebalanceReport
    from support.data_paths import Readers


def test_a_report_tells_when_why_and_for_how_long(eager: Readers) -> None:
    topic, partitions = eager.topic(4)
    before = time.time()
    ours: list[RebalanceReport] = []
    theirs: list[RebalanceReport] = []
    first = eager.add(on_rebalance=ours.append).follow(topic)
    eager.settle(partitions)
    alone = next(each for each in ours if each.gained)
    assert (alone.group_id, alone.causes[0], alone.retries) == (eager.group, "member-joined", 0)
    assert alone.began is not None
    assert alone.ended is not None
    # The times of the membership are whole milliseconds.
    assert before - 0.001 <= alone.began <= alone.ended <= time.time()
    assert alone.without_partitions == pytest.approx(alone.seconds, abs=1e-4)
    ours.clear()
    second = eager.add(on_rebalance=theirs.append).follow(topic)
    eager.settle(partitions)
    (led,) = [each for each in ours if each.lost]
    joined = next(each for each in theirs if each.gained)
    assert (led.leader, led.causes) == (True, ("member-joined",))
    assert (joined.leader, joined.causes) == (False, ("member-joined",))
    assert led.seconds is not None
    assert led.without_partitions is not None
    # The member reads on until the application's next turn. From then on it owns no partition until it gets its share.
    assert 0 < led.without_partitions <= led.seconds
    (kept,) = {*led.without_owner[topic].values()}
    assert led.without_owner[topic].keys() == set(led.kept[topic])
    assert kept == led.without_partitions
    assert joined.without_owner[topic].keys() == set(joined.gained[topic])
    assert joined.seconds is not None
    assert all(0 <= each <= joined.seconds for each in joined.without_owner[topic].values())
    ours.clear()
    second.close()
    eager.until(lambda: first.held == partitions, "the first has all", first)
    (left,) = ours
    assert left.causes == ("member-left",)


def test_a_cooperative_member_keeps_what_it_keeps(readers: Readers) -> None:
    topic, partitions = readers.topic(4)
    reports: list[RebalanceReport] = []
    readers.add(on_rebalance=reports.append).follow(topic)
    readers.settle(partitions)
    reports.clear()
    theirs: list[RebalanceReport] = []
    readers.add(on_rebalance=theirs.append).follow(topic)
    readers.settle(partitions)
    if not readers.is_cooperative:
        return
    readers.until(lambda: len(reports) >= 2, "the second rebalance is over")
    assert [each.causes for each in reports[:2]] == [("member-joined",), ("partitions-revoked",)]
    assert [each.without_partitions for each in reports[:2]] == [0.0, 0.0]
    assert [{*each.without_owner[topic].values()} for each in reports[:2]] == [{0.0}, {0.0}]
    gained = next(each for each in theirs if each.gained)
    assert min(gained.without_owner[topic].values()) >= 0.0
