"""The lag table, compared with the rule in plain Python."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from kafka_assignors.errors import OptionError, TableError
from kafka_assignors.lag import partition_lag
from kafka_assignors.spark.app import app
from kafka_assignors.spark.lag import lags, offset_snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

COMMITS = "cluster string, group_id string, ts bigint, topic string, partition int, committed bigint, src_offset bigint"
OFFSETS = "cluster string, topic string, partition int, ts bigint, begin bigint, end bigint"
EVENTS = "cluster string, group_id string, seq bigint, ts bigint, kind string, member_id string, topics array<string>"

Key = tuple[str, str, int, str, int]


def drawn(seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Commits, offsets and events of a few groups, with simultaneous commits, tombstones and leaderless partitions."""
    chance = random.Random(seed)
    commits = [
        (
            f"c{chance.randrange(2)}",
            f"g{chance.randrange(3)}",
            chance.randrange(40),
            f"t{chance.randrange(2)}",
            chance.randrange(3),
            chance.choice([None, -1, *range(0, 120, 10)]),
            number,
        )
        for number in range(150)
    ]
    offsets = [
        (f"c{cluster}", f"t{topic}", partition, ts, chance.choice([None, 0, 20]), chance.choice([None, 50, 100]))
        for cluster in range(2)
        for topic in range(3)
        for partition in range(4)
        for ts in (0, 7, 13, 20, 39, 60)
    ]
    events = [("c0", "g9", 1, 10, "snapshot", "m", ["t2", "nowhere"]), ("c0", "g0", 2, 1, "snapshot", "m", ["t0"])]
    return commits, offsets, events


def by_hand(commits: list[Any], offsets: list[Any], events: list[Any], reset: str) -> dict[Key, tuple[Any, int]]:
    """The last commit and the lag of each partition of each group, looked up row by row."""
    since: dict[tuple[str, str, str], int] = {}
    named = [(*row[:2], row[3], row[2]) for row in commits]
    named += [(row[0], row[1], topic, row[3]) for row in events for topic in row[6]]
    for cluster, group, topic, ts in named:
        since[cluster, group, topic] = min(ts, since.get((cluster, group, topic), ts))
    found: dict[Key, tuple[Any, int]] = {}
    for cluster, topic, partition, ts, begin, end in offsets:
        for (of_cluster, group, of_topic), first in since.items():
            if (of_cluster, of_topic) == (cluster, topic) and ts >= first:
                mine = [
                    (row[2], row[6], row[5])
                    for row in commits
                    if (row[0], row[1], row[3], row[4]) == (cluster, group, topic, partition) and row[2] <= ts
                ]
                committed = max(mine, key=lambda each: each[:2])[2] if mine else None
                lag = partition_lag(begin, end, committed, reset)
                found[cluster, group, ts, topic, partition] = (committed, lag)
    return found


@pytest.mark.parametrize("reset", ["latest", "Earliest"])
def test_the_table_is_the_rule_looked_up(spark: SparkSession, reset: str) -> None:
    commits, offsets, events = drawn(11)
    tables = [
        spark.createDataFrame(random.Random(1).sample(rows, len(rows)), schema)
        for rows, schema in ((commits, COMMITS), (offsets, OFFSETS), (events, EVENTS))
    ]
    found = lags(offset_snapshots(*tables), reset).collect()
    rows = {(row.cluster, row.group_id, row.ts, row.topic, row.partition): (row.committed, row.lag) for row in found}
    assert rows == by_hand(commits, offsets, events, reset)
    assert len(found) == len(rows) > 200
    assert ("c0", "g9", 13, "t2", 0) in rows
    assert ("c0", "g9", 7, "t2", 0) not in rows
    # The comparison covers partitions with and without a commit.
    assert {committed is None for committed, _ in rows.values()} == {True, False}
    assert sum(lag > 0 for _, lag in rows.values()) > 50


def test_bad_input(spark: SparkSession) -> None:
    commits, offsets = spark.createDataFrame([], COMMITS), spark.createDataFrame([], OFFSETS)
    assert lags(offset_snapshots(commits, offsets)).collect() == []
    with pytest.raises(TableError, match="offsets: has no column end bigint"):
        offset_snapshots(commits, offsets.drop("end"))
    with pytest.raises(TableError, match="offset_commits: partition is bigint, not int"):
        offset_snapshots(commits.withColumn("partition", commits.partition.cast("bigint")), offsets)
    wrong: Any = None
    with pytest.raises(OptionError, match="reset is None; give the groups' auto_offset_reset"):
        lags(offset_snapshots(commits, offsets), wrong)


def test_the_command(spark: SparkSession, tmp_path: Path) -> None:
    commits, offsets, _ = drawn(12)
    spark.createDataFrame(commits, COMMITS).write.parquet(str(tmp_path / "commits"))
    spark.createDataFrame(offsets, OFFSETS).write.parquet(str(tmp_path / "offsets"))
    command = [
        "lag",
        "--commits",
        str(tmp_path / "commits"),
        "--offsets",
        str(tmp_path / "offsets"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    written = spark.read.parquet(str(tmp_path / "out" / "lags"))
    assert written.count() == len(by_hand(commits, offsets, [], "latest"))
    assert f"lags: {written.count():,} rows" in done.output
    again = CliRunner().invoke(app, command)
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
