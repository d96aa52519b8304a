"""The times and causes of the drop-ins' reports against the log and the clock of a real broker."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from support.data_paths import DATA_PATHS, Readers

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.member.rebalance_report import RebalanceReport
    from support.broker import ApacheKafka

# The broker uses the clock of this machine. Its log and the membership have times in whole milliseconds.
_ROUNDING_S = 0.003
_LINE = re.compile(r"^(\d\d:\d\d:\d\d\.\d{3}) .*?(Preparing to rebalance|Stabilized|Assignment received).*", re.M)


def seconds_of(text: str) -> float:
    """A time of day within the last 24 hours, in seconds since 1970."""
    now = datetime.now()
    at = datetime.combine(now.date(), time.fromisoformat(text))
    return (at if at <= now else at - timedelta(days=1)).timestamp()


class Told:
    """The broker's log of one group: when each generation was prepared, stabilized and assigned, and why."""

    def __init__(self, kafka: ApacheKafka, group: str) -> None:
        self.prepared: dict[int, tuple[float, str]] = {}
        self.stabilized: dict[int, float] = {}
        self.assigned: dict[int, float] = {}
        for line in _LINE.finditer(kafka.log_path.read_text(errors="replace")):
            if group not in line[0]:
                continue
            at = seconds_of(line[1])
            numbers = re.search(r"generation (-?\d+)", line[0])
            assert numbers is not None, line[0]
            generation = int(numbers[1])
            match line[2]:
                case "Preparing to rebalance":
                    # The line contains the generation that ends.
                    self.prepared.setdefault(generation + 1, (at, line[0]))
                case "Stabilized":
                    self.stabilized[generation] = at
                case _:
                    self.assigned[generation] = at


def check(report: RebalanceReport, told: Told, *, joins: bool) -> None:
    """Checks the report of a generation against the log. `joins`: whether the member was not in the group before."""
    assert report.generation is not None
    assert report.began is not None
    assert report.ended is not None
    assert report.without_partitions is not None
    (prepared, _), generation = told.prepared[report.generation], report.generation
    stabilized, assigned = told.stabilized[generation], told.assigned[generation]
    if joins:
        assert report.began <= prepared + _ROUNDING_S, "it began to join before the broker heard of it"
    else:
        assert prepared - _ROUNDING_S <= report.began <= stabilized + _ROUNDING_S
    assert assigned - _ROUNDING_S <= report.ended
    # No member owned a partition between the answers to JoinGroup and the assignment.
    assert report.without_partitions >= assigned - stabilized - _ROUNDING_S
    assert report.without_partitions <= report.ended - min(prepared, report.began) + _ROUNDING_S
    for topic, partitions in report.gained.items():
        for number in partitions:
            since = report.ended - report.without_owner[topic][number]
            assert stabilized - _ROUNDING_S <= since, "the answer to JoinGroup"
            assert not report.leader or since <= assigned + _ROUNDING_S, "it planned after the answer"
    for topic, partitions in report.kept.items():
        for number in partitions:
            since = report.ended - report.without_owner[topic][number]
            assert report.began - _ROUNDING_S <= since <= stabilized + _ROUNDING_S, "it was given up before JoinGroup"


def test_reports_agree_with_the_broker(start_kafka: Callable[..., ApacheKafka]) -> None:
    kafka = start_kafka(group_initial_rebalance_delay_ms=300)
    for name in ("confluent", "kafka-python", "aiokafka"):
        with Readers(kafka, DATA_PATHS[name], "sticky") as readers:
            topic, partitions = readers.topic(4)
            ours: list[RebalanceReport] = []
            theirs: list[RebalanceReport] = []
            first = readers.add(on_rebalance=ours.append).follow(topic)
            readers.settle(partitions)
            second = readers.add(on_rebalance=theirs.append).follow(topic)
            readers.settle(partitions)
            second.close()
            readers.until(lambda first=first, all_=partitions: first.held == all_, "the first has all", first)  # type: ignore[misc]
            told = Told(kafka, readers.group)
            founded, led, left = ours[0], next(each for each in ours if each.lost), ours[-1]
            joined = next(each for each in theirs if each.gained)
            check(founded, told, joins=True)
            assert founded.seconds is not None
            assert founded.seconds >= 0.3, "the broker waits so long for more members of a new group"
            check(led, told, joins=False)
            check(joined, told, joins=True)
            check(left, told, joins=False)
            assert (led.generation, led.causes) == (joined.generation, ("member-joined",))
            assert left.causes == ("member-left",)
            assert led.generation is not None
            assert left.generation is not None
            assert re.search(r"reason: .*(?i:adding new member)", told.prepared[led.generation][1])
            assert re.search(r"reason: .*(?i:leavegroup|removing member)", told.prepared[left.generation][1])
