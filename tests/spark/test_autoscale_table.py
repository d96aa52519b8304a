"""The table `autoscale` on Spark, against the same replays without it, and the page."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import OptionError
from kafka_assignors.assignors import by_name
from kafka_assignors.autoscale import Offsets, member_counts, parse_policy, replay, workload
from kafka_assignors.report.autoscale import autoscale_page
from kafka_assignors.spark.autoscale import autoscale, autoscale_report, check_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

OFFSETS = (
    "cluster string, group_id string, ts bigint, topic string, partition int, begin bigint, end bigint, "
    "committed bigint"
)
EVENTS = "cluster string, group_id string, seq bigint, ts bigint, kind string, member_id string, topics array<string>"
POLICIES = ("keda(lagThreshold=200, maxReplicaCount=6)", "fixed(replicas=2)")
STRATEGIES = ("range", "cooperative-sticky")


def drawn(group: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The offsets and the events of a group for 20 minutes."""
    chance = random.Random(group)
    partitions = chance.randint(1, 6)
    ends, commits = [chance.randint(0, 900) for _ in range(partitions)], [0] * partitions
    rows = []
    for at in range(6):
        ts = 240_000 * at
        for number in range(partitions):
            ends[number] += chance.choice([0, 0, 2_000, 9_000])
            commits[number] = min(ends[number], commits[number] + chance.randint(1, 3_000))
            rows.append(("c", f"g{group}", ts, "t", number, 0, ends[number], commits[number]))
    events = [("c", f"g{group}", 1, 0, "join", f"m{number}", ["t"]) for number in range(chance.randint(1, 3))]
    return rows, events


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    offsets, events = [], []
    for group in range(12):
        rows, happened = drawn(group)
        offsets += rows
        events += happened
    # A group with one snapshot only, from which no rate follows.
    offsets.append(("c", "once", 0, "t", 0, 0, 5, 1))
    random.Random(1).shuffle(offsets)
    return spark.createDataFrame(offsets, OFFSETS), spark.createDataFrame(events, EVENTS)


def test_the_rows_are_those_of_one_group_without_spark(tables: tuple[DataFrame, DataFrame]) -> None:
    offsets, events = tables
    found = autoscale(offsets, POLICIES, events=events, strategies=STRATEGIES, tasks=3).collect()
    (lacking,) = [row for row in found if row["policy"] is None]
    assert (lacking["group_id"], "rates need two at least" in lacking["error"]) == ("once", True)
    by_key = {(row["group_id"], row["policy"], row["strategy"], row["membership"]): row for row in found}
    assert len(by_key) == 12 * 2 * 2 * 2 + 1
    changed = 0
    for group in range(12):
        rows, happened = drawn(group)
        load = workload(
            f"g{group}",
            [Offsets(*row[2:]) for row in rows],
            members=member_counts((row[3], row[2], row[4], row[5]) for row in happened),
        )
        for policy in POLICIES:
            for strategy in STRATEGIES:
                for membership in ("dynamic", "static"):
                    wanted = replay(load, parse_policy(policy), by_name(strategy), static=membership == "static")
                    row = by_key[f"g{group}", policy, strategy, membership]
                    changed += wanted.scalings > 0
                    assert row["rate"] == load.rate
                    for name in ("rebalances", "unowned_s", "empty_s", "late", "member_hours", "moves", "most_lag"):
                        assert row[name] == getattr(wanted, name), name
                    assert [tuple(each) for each in row["replicas"]] == list(wanted.replicas)
                    assert [tuple(each) for each in row["lag"]] == list(wanted.lag)
    assert changed > 20


def test_the_page_has_the_sums_and_the_groups_asked_for(tables: tuple[DataFrame, DataFrame]) -> None:
    offsets, events = tables
    rows = autoscale(offsets, POLICIES, events=events, strategies=STRATEGIES, memberships=["dynamic"]).persist()
    try:
        page = autoscale_report(rows, top=2)
        assert len(page.groups) == 2
        assert page.notes == ["1 groups could not be replayed; the column error says why."]
        by_hand: dict[tuple[str, str], int] = {}
        for row in rows.where("policy is not null").collect():
            key = row["policy"], row["strategy"]
            by_hand[key] = by_hand.get(key, 0) + row["rebalances"]
        assert {(each.policy, each.strategy): each.rebalances for each in page.totals} == by_hand
        assert {each.groups for each in page.totals} == {12}
        asked = autoscale_report(rows, groups=["g3"])
        assert [each.group_id for each in asked.groups] == ["g3"]
        text = autoscale_page(asked)
        assert len(re.findall(r"<tr data-policy", text)) == len(page.totals) + 4
        assert text.count("<figure>") == 2
        with pytest.raises(OptionError, match="no figures of group 'nobody'"):
            autoscale_report(rows, groups=["nobody"])
    finally:
        rows.unpersist()


def test_wrong_options_end_before_spark_starts() -> None:
    for policies, strategies, memberships, said in (
        ([], "range", ["static"], "no policy is given"),
        (["keda()"], "range", ["static"], "lagThreshold is missing"),
        (POLICIES, "range,range", ["static"], "strategy 'range' is given twice"),
        (POLICIES, "range", ["both"], "membership is 'both'"),
    ):
        with pytest.raises(OptionError, match=re.escape(said)):
            check_options(policies, strategies, memberships, None, None)
    with pytest.raises(OptionError, match="rate is 0"):
        check_options(POLICIES, "range", ["static"], 0.0, None)
