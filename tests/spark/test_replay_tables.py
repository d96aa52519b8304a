"""The replay on Spark: tables in, tables out."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

import kafka_assignors.spark.replay as replay_module
from kafka_assignors import CustomAssignor, OptionError, WeightedAssignor, _core, sticky_within
from kafka_assignors.errors import TableError
from kafka_assignors.lag import partition_lag
from kafka_assignors.spark.replay import assignments, replay
from kafka_assignors.spark.schemas import TABLES, schema
from kafka_assignors.spark.strategies import STRATEGIES, kernel_options
from kafka_assignors.spark.summary import group_summary, strategy_summary
from kafka_assignors.spark.summary import three_digits as summary_digits
from support.histories import SCHEMA, History, batch, count, drawn, event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors import Group

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

GROUPS = {f"g{seed}": drawn(seed) for seed in range(40)}
KEYS = {"membership_events": "events", "topic_partitions": "counts", "lags": "lags", "observed_assignments": "observed"}


def table(spark: SparkSession, name: str, histories: dict[str, History], order: int | None = None) -> DataFrame:
    """A table of the histories of one cluster, in random order."""
    rows = [
        {"cluster": "c", "group_id": group_id, "rack": None, **row}
        for group_id, history in histories.items()
        for row in getattr(history, KEYS[name])
    ]
    if name == "topic_partitions":
        # The groups are in one cluster, each with topics of its own.
        rows = [{**row, "topic": f"{row['group_id']}-{row['topic']}"} for row in rows]
    elif name == "membership_events":
        rows = [{**row, "topics": row["topics"] and [f"{row['group_id']}-{t}" for t in row["topics"]]} for row in rows]
    elif "topic" in SCHEMA.field(KEYS[name]).type.value_type.names:
        rows = [{**row, "topic": f"{row['group_id']}-{row['topic']}"} for row in rows]
    if order is not None:
        random.Random(order).shuffle(rows)
    columns = [column.name for column in TABLES[name] if not rows or column.name in rows[0]]
    wanted = schema(name)
    wanted.fields = [field for field in wanted.fields if field.name in columns]
    wanted.names = [field.name for field in wanted.fields]
    return spark.createDataFrame([tuple(row[column] for column in columns) for row in rows], wanted)


def tables(spark: SparkSession, histories: dict[str, History], order: int | None = None) -> dict[str, Any]:
    names = {"events": "membership_events", "counts": "topic_partitions", "lags": "lags"}
    return {argument: table(spark, name, histories, order) for argument, name in names.items()}


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    for row in rows:
        row.pop("kernel_ns", None)
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row.values()])


def expected(histories: dict[str, History], strategies: Any = STRATEGIES) -> list[dict[str, Any]]:
    """The results of the core, without Spark."""
    renamed = {
        group_id: History(
            events=[{**e, "topics": e["topics"] and [f"{group_id}-{t}" for t in e["topics"]]} for e in history.events],
            counts=[{**each, "topic": f"{group_id}-{each['topic']}"} for each in history.counts],
            lags=[{**each, "topic": f"{group_id}-{each['topic']}"} for each in history.lags],
        )
        for group_id, history in histories.items()
    }
    rows = _core.Replay(kernel_options(strategies)).run(batch(renamed)).to_pylist()
    for row in rows:
        row.pop("kernel_ns")
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row.values()])


def test_rows_are_those_of_the_core_whatever_the_parallelism(spark: SparkSession) -> None:
    wanted = expected(GROUPS)
    assert len(wanted) > 1_000
    for order, tasks in enumerate((None, 1, 2, 7)):
        frames = tables(spark, GROUPS, order)
        frames["events"] = frames["events"].unionAll(frames["events"].limit(50)).repartition(tasks or 3)
        found = replay(**frames, tasks=tasks)
        assert found.schema.simpleString() == schema("rebalances").simpleString()
        if tasks is not None:
            assert found.rdd.getNumPartitions() == tasks
        assert collected(found) == wanted


def test_own_assignors_go_to_the_workers(spark: SparkSession) -> None:
    """The class is pickled by value, since a worker cannot import a class that a function has made."""

    class Last(CustomAssignor):
        name = "last"

        def plan(self, group: Group) -> Any:
            return sticky_within(group, capacity=3)

    def weigh(topics: Iterable[str]) -> Any:
        return {topic: [1.0 / (1 + number) for number in range(100)] for topic in topics}

    some = {group_id: GROUPS[group_id] for group_id in list(GROUPS)[:8]}
    strategies = [Last(), WeightedAssignor(weigh, tolerance=0)]
    found = collected(replay(**tables(spark, some), strategies=strategies, tasks=2))
    assert found == expected(some, strategies)
    assert all(row["error"] is None for row in found)


def test_groups_too_large_for_a_row_are_put_together_by_a_worker(spark: SparkSession) -> None:
    sizes = sorted(len(history.events) + len(history.lags) for history in GROUPS.values())
    frames = tables(spark, GROUPS, 5)
    halves = replay(**frames, large=sizes[len(sizes) // 2])
    assert "FlatMapGroupsInArrow" in halves._jdf.queryExecution().toString()
    assert collected(halves) == expected(GROUPS)
    assert collected(replay(**frames, large=1)) == expected(GROUPS)
    assert collected(replay(**frames, large=None)) == expected(GROUPS)
    shares = collected(assignments(**frames, strategies=["sticky"]))
    assert collected(assignments(**frames, strategies=["sticky"], large=1)) == shares
    assert len(shares) > 100


def test_a_history_beyond_arrows_reach_is_an_error_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Called as a Spark worker calls it. The limit is lowered, since a test cannot make two GiB."""
    monkeypatch.setattr(replay_module, "MOST_BYTES", 100)
    flat = pyarrow.RecordBatch.from_pylist(
        [
            {"cluster": "c", "group_id": "g", "events": each, "counts": None, "lags": None, "observed": None}
            for each in GROUPS["g1"].events
        ],
        pyarrow.schema([(f.name, f.type.value_type if pyarrow.types.is_list(f.type) else f.type) for f in SCHEMA]),
    )
    options = kernel_options(["sticky"])
    (rows,) = replay_module._by_group(replay_module._rebalances, options)(iter([flat]))
    assert [(row["group_id"], row["error"]) for row in rows.to_pylist()] == [
        ("g", "the group's history has more than 100 bytes; replay it in parts, by ts")
    ]
    assert list(replay_module._by_group(replay_module._assignments, options)(iter([flat]))) == []


def test_bad_groups_and_bad_events(spark: SparkSession) -> None:
    good = History(events=[event(1, "join", "a", ["t"])], counts=[count(0, "t", 2)])
    histories = {
        "good": good,
        "kind": History(events=[{**good.events[0], "kind": "fly"}], counts=good.counts),
        "null": History(events=[{**good.events[0], "seq": None}], counts=good.counts),
        "negative": History(events=good.events, counts=[count(0, "t", -5)]),
        "unknown topic": History(events=good.events),
        "twice": History(
            events=[*good.events, event(2, "join", "b", ["t"]), *(event(s, "leave", "b") for s in (3, 4))],
            counts=good.counts,
        ),
        "empty": History(events=[event(1, "snapshot", None)], counts=good.counts),
        "no events": History(counts=good.counts),
    }
    frames = tables(spark, histories)
    unnamed = frames["events"].where("group_id = 'good'").withColumn("group_id", frames["events"].instance_id)
    frames["events"] = frames["events"].unionAll(unnamed)
    for large in (None, 1):
        rows = replay(**frames, strategies=["sticky"], large=large).collect()
        errors = {(row.group_id, row.seq): row.error for row in rows}
        assert errors.pop((None, None)) == "group_id is null"
        assert errors == {
            ("good", 1): None,
            ("kind", None): "events[0].kind is \"fly\"; known are 'join', 'leave', 'subscribe' and 'snapshot'",
            ("null", None): "events[0].seq is null",
            ("negative", None): 'topic "negative-t" has -5 partitions; a partition count cannot be negative',
            ("unknown topic", 1): 'seq 1: topic "unknown topic-t" has no known partition count',
            ("twice", 1): None,
            ("twice", 2): None,
            ("twice", 3): None,
            ("twice", 4): 'seq 4: member "b" leaves but is not in the group',
        }


def test_what_has_no_figures_counts_in_no_total(spark: SparkSession) -> None:
    """A capture that began before the first partition counts. Each rebalance and strategy has at most one error."""
    events = [*(event(1, "join", f"m{number}", ["t"]) for number in range(10)), event(3, "leave", "m0")]
    late = {"late": History(events=events, counts=[count(250, "t", 18)])}
    late["never"] = History(events=events)
    rebalances = replay(**tables(spark, late), strategies=["sticky", "range"]).localCheckpoint()
    groups = group_summary(rebalances)
    found = {(row.group_id, row.strategy): row for row in groups.collect()}
    assert {key: (row.rebalances, row.errors, row.share_unassigned) for key, row in found.items()} == {
        ("late", "sticky"): (2, 1, 0),
        ("late", "range"): (2, 1, 0),
        ("never", "sticky"): (0, 2, 0),
        ("never", "range"): (0, 2, 0),
    }
    assert [found["late", "sticky"][name] for name in ("moved_total", "moved_max", "balance_score_p50")] == [2, 2, 8]
    assert found["never", "sticky"].moved_max is None
    assert not found["never", "sticky"].best
    assert not found["never", "range"].best
    totals = {row.strategy: (row.rebalances, row.errors) for row in strategy_summary(rebalances, groups).collect()}
    assert totals == {"sticky": (2, 3), "range": (2, 3)}


def test_a_group_of_100_000_partitions(spark: SparkSession) -> None:
    events = [event(1, "join", f"m{number:02}", ["t"]) for number in range(20)] + [event(2, "leave", "m07")]
    frames = tables(spark, {"g": History(events=events, counts=[count(0, "t", 100_000)])})
    frames["lags"] = spark.sql(
        "select 'c' cluster, 'g' group_id, 0L ts, 'g-t' topic, cast(id as int) partition, id % 1000 lag "
        "from range(100000)"
    )
    found = replay(**frames, strategies=["sticky", "lag"]).cache()
    rows = sorted(found.collect(), key=lambda row: (row.strategy, row.seq))
    figures = [(row.strategy, row.seq, row.assigned, row.moved_needed) for row in rows]
    assert figures[2:] == [("sticky", 1, 100_000, 0), ("sticky", 2, 100_000, 5_000)]
    assert figures[0] == ("lag", 1, 100_000, 0)
    assert all(row.mean_lag == 49_950_000 / row.members and row.error is None for row in rows)
    assert collected(replay(**frames, strategies=["sticky", "lag"], large=1_000)) == collected(found)


def test_offsets_in_place_of_lags(spark: SparkSession) -> None:
    offsets = [(0, 10, None), (5, 10, None), (0, 10, 4), (0, 10, -1), (None, 7, None), (3, None, 1), (0, 5, 9)]
    rows = [("c", "g", 0, "g-t", number, *each) for number, each in enumerate(offsets)]
    snapshots = spark.createDataFrame(rows, schema("offset_snapshots"))
    events = [event(1, "join", "a", ["t"])]
    frames = tables(spark, {"g": History(events=events, counts=[count(0, "t", len(offsets))])})
    for reset in ("latest", "earliest"):
        (row,) = replay(**{**frames, "lags": snapshots}, strategies=["lag"], reset=reset).collect()
        assert row.max_lag == sum(partition_lag(*each, reset) for each in offsets) > 0


def test_observed_assignments_are_a_strategy(spark: SparkSession) -> None:
    events = [event(1, "snapshot", "a", ["t"], generation=3)]
    observed = [{"generation": 3, "member_id": "a", "topic": "t", "partitions": [0, 1]}]
    histories = {"g": History(events=events, counts=[count(0, "t", 3)], observed=observed)}
    frames = tables(spark, histories)
    rows = replay(**frames, observed=table(spark, "observed_assignments", histories), strategies=["range"]).collect()
    assert [(row.strategy, row.generation, row.assigned) for row in rows] == [("range", 1, 3), ("observed", 3, 2)]


def test_assignments_are_those_of_the_figures(spark: SparkSession) -> None:
    frames = tables(spark, GROUPS)
    shares = assignments(**frames, strategies=["sticky", "range"])
    assert shares.schema.simpleString() == schema("assignments").simpleString()
    key = ["group_id", "strategy", "seq", "ts", "generation"]
    summed = {
        tuple(row[name] for name in key): row.assigned
        for row in shares.selectExpr(*key, "size(partitions) n")
        .groupBy(*key)
        .agg({"n": "sum"})
        .toDF(*key, "assigned")
        .collect()
    }
    figures = replay(**frames, strategies=["sticky", "range"]).where("assigned > 0").collect()
    assert {tuple(row[name] for name in key): row.assigned for row in figures} == summed


def quantile(values: list[float], share: float) -> float:
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def test_summaries(spark: SparkSession) -> None:
    frames = tables(spark, GROUPS)
    bad = (
        frames["events"]
        .where("group_id = 'g3'")
        .selectExpr("'c' cluster", "'bad' group_id", "seq", "ts", "'x' kind", "member_id", "topics")
    )
    frames["events"] = frames["events"].unionByName(bad, allowMissingColumns=True)
    rebalances = replay(**frames).localCheckpoint()
    rows = [row.asDict() for row in rebalances.collect()]
    groups = group_summary(rebalances).localCheckpoint()
    assert groups.schema.simpleString() == schema("group_summary").simpleString()
    found = {(row.group_id, row.strategy): row for row in groups.collect()}
    assert set(found) == {(row["group_id"], row["strategy"]) for row in rows}
    for (group_id, strategy), summed in found.items():
        of = [row for row in rows if (row["group_id"], row["strategy"]) == (group_id, strategy)]
        check(summed, of)
    for group_id in GROUPS:
        candidates = {strategy: row for (id, strategy), row in found.items() if id == group_id}
        least = min(row.share_unassigned for row in candidates.values())
        best = min(
            (row for row in candidates.values() if row.share_unassigned == least),
            key=lambda r: (r.balance_score_total, r.moved_total, r.lag_skew_p95, r.strategy),
        )
        assert [strategy for strategy, row in candidates.items() if row.best] == [best.strategy]
    # Without the rule about unassigned partitions, a strategy that leaves some would have won.
    assert any(
        min(rows_of, key=lambda r: (r.balance_score_total, r.moved_total)).share_unassigned > 0
        for rows_of in ([row for (id, _), row in found.items() if id == group_id] for group_id in GROUPS)
    )
    assert not found["bad", None].best

    fleet = {row.strategy: row for row in strategy_summary(rebalances, groups).collect()}
    assert set(fleet) == {*STRATEGIES, None}
    for strategy, summed in fleet.items():
        check(summed, [row for row in rows if row["strategy"] == strategy], three_digits)
        assert summed.best_groups == sum(row.best for (_, of), row in found.items() if of == strategy)
        assert summed.groups == sum(of == strategy for _, of in found)
    assert (fleet[None].groups, fleet[None].errors, fleet[None].rebalances) == (1, 1, 0)
    by_skew = group_summary(rebalances, best_by=["lag_skew_max"])
    assert by_skew.where("best").count() == len(GROUPS)


def three_digits(value: float) -> float:
    if value < 1_000:
        return round(value, 2)
    unit: float = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.floor(value / unit + 0.5) * unit


def check(summed: Any, rows: list[dict[str, Any]], rounded: Any = lambda value: value) -> None:
    """Checks a summary's figures against its rows."""
    done = [row for row in rows if row["moved"] is not None]
    assert (summed.rebalances, summed.errors) == (len(done), sum(row["error"] is not None for row in rows))
    partitions = sum(row["partitions"] for row in done)
    assert summed.share_moved == pytest.approx(sum(row["moved"] for row in done) / partitions if partitions else 0)
    for name in ("moved", "moved_needed", "balance_score", "copartition_violations", "lag_skew"):
        exact = sorted(row[name] for row in done)
        values = [rounded(value) for value in exact]
        if name != "lag_skew":
            assert summed[f"{name}_total"] == sum(exact)
        if values:
            assert summed[f"{name}_p50"] == pytest.approx(quantile(values, 0.5))
            assert summed[f"{name}_p95"] == pytest.approx(quantile(values, 0.95))
        assert summed[f"{name}_max"] == (exact[-1] if exact else None)
    weighed = [row for row in done if row["worst_load"] is not None]
    ratios = [row["worst_load"] / row["load_bound"] if row["load_bound"] else 1 for row in weighed]
    assert summed.load_ratio_mean == (pytest.approx(sum(ratios) / len(ratios)) if ratios else None)
    assert summed.load_ratio_max == max(ratios, default=None)
    assert summed.unassigned_total == partitions - sum(row["assigned"] for row in done)
    assert summed.share_unassigned == pytest.approx(summed.unassigned_total / partitions if partitions else 0)


def test_what_leaves_more_unread_than_today_is_never_the_best(spark: SparkSession) -> None:
    def row(group_id: str, strategy: str, score: int, assigned: int) -> tuple[Any, ...]:
        return (
            "c",
            group_id,
            strategy,
            1,
            1,
            1,
            "members",
            2,
            100,
            assigned,
            1,
            1,
            score,
            0,
            0,
            0,
            0.0,
            1.0,
            None,
            None,
            0,
            1,
            None,
            None,
        )

    rows = [
        *(row(group, "sticky-join", 0, 2) for group in ("observed", "unknown", "unread today", "alone")),
        *(row(group, "sticky", 9, 100) for group in ("observed", "unknown", "unread today")),
        row("observed", "observed", 99, 100),
        row("unread today", "observed", 99, 2),
    ]
    found = group_summary(spark.createDataFrame(rows, schema("rebalances")))
    best = {each.group_id: (each.strategy, each.unassigned_total) for each in found.where("best").collect()}
    assert best == {
        "observed": ("sticky", 0),
        "unknown": ("sticky", 0),
        # As many unassigned partitions as today are allowed. Without figures of today, no comparison is possible.
        "unread today": ("sticky-join", 98),
        "alone": ("sticky-join", 98),
    }
    shares = {(each.group_id, each.strategy): each.share_unassigned for each in found.collect()}
    assert shares["observed", "sticky-join"] == 0.98


def test_percentiles_of_a_fleet_are_of_few_values(spark: SparkSession) -> None:
    """For a percentile, Spark keeps one entry in memory for each different value. Therefore values must be few."""
    values = spark.range(0, 3_000_000, 1, 4).selectExpr("id as whole", "id / 7 as part", "cast(null as bigint) as none")
    columns = [summary_digits(values[name]).alias(name) for name in ("whole", "part", "none")]
    counted = values.select(columns).selectExpr(
        "count(distinct whole)", "count(distinct part)", "count(none)", "max(whole)", "min(whole)"
    )
    (counts,) = counted.collect()
    assert 1_000 < counts[0] < 5_000
    assert counts[1] < 103_000
    assert tuple(counts)[2:] == (0, 3_000_000, 0)


def test_sums_that_a_bigint_cannot_hold_are_its_largest(spark: SparkSession) -> None:
    row: dict[str, Any] = dict.fromkeys(schema("rebalances").names, 1)
    row |= {"cluster": "c", "group_id": "g", "strategy": "range", "cause": "members", "error": None}
    row |= {"mean_lag": 1.0, "lag_skew": 1.0, "worst_load": 3.0, "load_bound": 2.0, "balance_score": 2**63 - 1}
    frame = spark.createDataFrame([tuple(row.values())] * 3, schema("rebalances"))
    (summed,) = group_summary(frame).collect()
    assert (summed.balance_score_total, summed.balance_score_max, summed.moved_total) == (2**63 - 1, 2**63 - 1, 3)
    assert (summed.load_ratio_mean, summed.load_ratio_max) == (1.5, 1.5)


def test_bad_arguments(spark: SparkSession) -> None:
    wrong: Any = 5
    frames = tables(spark, {"g": drawn(1)})
    with pytest.raises(OptionError, match="the strategy is 'best'"):
        replay(**frames, strategies=["best"])
    for name, value in (("tasks", 0), ("large", -1), ("tasks", True), ("large", "5")):
        with pytest.raises(OptionError, match=f"{name} is {value!r}; give a positive integer, or None"):
            replay(**{**frames, name: value})
    with pytest.raises(TableError, match="membership_events: has no column kind string; has no column topics array"):
        replay(**{**frames, "events": frames["events"].drop("kind", "topics")})
    with pytest.raises(TableError, match=r"lags: lag is string, not bigint. Select, rename or cast"):
        replay(**{**frames, "lags": frames["lags"].withColumn("lag", frames["lags"].topic)})
    with pytest.raises(OptionError, match="reset is 5"):
        replay(**{**frames, "lags": frames["lags"].withColumnRenamed("lag", "end")}, reset=wrong)
    with pytest.raises(OptionError, match=r"best_by is .'cluster'.; give some of rebalances"):
        group_summary(replay(**frames), best_by=["cluster"])
    with pytest.raises(TableError, match="rebalances: has no column"):
        group_summary(frames["events"])


def test_a_batch_is_cut_by_its_events() -> None:
    events = pyarrow.array(
        [[1] * size for size in (3, 0, 90_000, 50_000, 60_000, 300_000, 1)], pyarrow.list_(pyarrow.int8())
    )
    whole = pyarrow.record_batch([events], ["events"])

    def sizes(parts: Iterator[Any]) -> list[int]:
        return [part.num_rows for part in parts]

    assert sizes(replay_module._parts(whole, 1)) == [3, 1, 1, 1, 1]
    assert sizes(replay_module._parts(whole.slice(2, 3), 1)) == [1, 1, 1]
    assert sizes(replay_module._parts(whole.slice(0, 0), 1)) == []
