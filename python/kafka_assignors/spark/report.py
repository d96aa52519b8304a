"""A report from the tables of a replay: Spark computes the sums, and a few rows reach the driver.

`recommendations` returns one row for each group; `report` returns the value that `kafka_assignors.report.page` draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_assignors.errors import OptionError, TableError
from kafka_assignors.report.model import (
    OBSERVED,
    Failure,
    GroupFigures,
    GroupReport,
    LagByMember,
    Ownership,
    Period,
    Quantiles,
    Recommendation,
    Report,
    StrategyTotals,
)
from kafka_assignors.report.recommend import KEEP, today
from kafka_assignors.spark.advice import ALL, RECOMMENDATIONS, by_group, group_figures, pattern, recommendations
from kafka_assignors.spark.schemas import checked
from kafka_assignors.spark.summary import load_ratios, three_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from kafka_assignors.report.recommend import Limits

__all__ = [
    "RECOMMENDATIONS",
    "check_options",
    "find_table",
    "recommendations",
    "replayed_assignments",
    "report",
]

_KEYS = ("cluster", "group_id")
# More does not fit a picture that people can read; so few rows cost a driver almost nothing.
_MOST_PARTITIONS = 4_000
_MOST_REBALANCES = 60
_FAILURES = 50
_MOST_GROUPS = 1_000
_PERIODS = 72
_MINUTE = 60_000
_STEPS = tuple(_MINUTE * each for each in (1, 5, 15, 30, 60, 180, 360, 720, 1440, 10_080, 43_200))


def check_options(top: int, joined: str | None) -> None:
    """Checks the options of `report`.

    Raises:
        OptionError: `top` is not a number from 0 to 1000, or `joined` is no regular expression.
    """
    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= 1_000:
        raise OptionError(f"top is {top!r}; give a number of groups, 0 to 1000")
    pattern(joined)


def find_table(spark: SparkSession, folders: Sequence[str], name: str) -> DataFrame | None:
    """The table of this name, in Parquet, from the first folder that has it; None if no folder has it.

    Raises:
        TableError: the table cannot be read.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for folder in folders:
        path = f"{folder.rstrip('/')}/{name}"
        try:
            return spark.read.parquet(path)
        except (PySparkException, Py4JJavaError) as error:
            # A broken file fails while Spark reads its footer, with an exception that PySpark does not translate.
            if not isinstance(error, PySparkException):
                said = str(error.java_exception.getMessage())
            elif error.getCondition() == "PATH_NOT_FOUND":
                continue
            else:
                said = str(error)
            first = said.splitlines()[0]
            raise TableError(f"{path} cannot be read as Parquet ({first}); give the folder of a table") from error
    return None


def replayed_assignments(
    events: DataFrame, counts: DataFrame, lags: DataFrame | None = None, observed: DataFrame | None = None
) -> Callable[[DataFrame, Sequence[str]], DataFrame | None]:
    """A function for `report` that replays the shown groups to make the table `assignments`."""
    from kafka_assignors.spark.replay import assignments

    def make(keys: DataFrame, strategies: Sequence[str]) -> DataFrame | None:
        import pyspark.sql.functions as f

        def of_them(table: DataFrame | None) -> DataFrame | None:
            return None if table is None else table.join(f.broadcast(keys), list(_KEYS), "left_semi")

        asked = [name for name in strategies if name not in (OBSERVED, ALL)]
        if not asked:
            return None
        of_events = of_them(events)
        assert of_events is not None
        return assignments(
            of_events, counts, lags=of_them(lags), observed=of_them(observed), strategies=asked, large=None
        )

    return make


def report(
    rebalances: DataFrame,
    *,
    events: DataFrame | None = None,
    lags: DataFrame | None = None,
    assignments: DataFrame | Callable[[DataFrame, Sequence[str]], DataFrame | None] | None = None,
    joined: str | None = None,
    limits: Limits | None = None,
    top: int = 6,
    groups: Sequence[str] = (),
    pages: Mapping[str, str] | None = None,
    title: str = "Consumer groups under each assignment strategy",
) -> Report:
    """The report of a replay, from its tables.

    Spark reads `rebalances` about five times: persist it if reading is slow.

    Args:
        rebalances: the table of that name.
        events: `membership_events`, for the strategies that groups run, and for the instance ids of static members,
            which name them in timelines.
        lags: the table of that name, for the lags of members.
        assignments: the table of that name, for timelines. Or a function of the shown groups, a DataFrame with cluster
            and group_id, and of the strategies; it returns the table.
        joined: see `recommendations`.
        limits: see `recommendations`.
        top: how many groups are shown one by one: those that gain the most.
        groups: the ids of groups to show instead, whatever they gain.
        pages: further pages in the same folder: heading to address.
        title: of the page.

    Raises:
        TableError: a table lacks a column.
        OptionError: `top` is negative, `joined` is no regular expression, or the table lacks one of `groups`.
    """
    check_options(top, joined)
    import pyspark.sql.functions as f

    rows = checked(rebalances, "rebalances")
    advice = recommendations(rows, events=events, joined=joined, limits=limits).persist()
    try:
        # A row without a cluster or a group counts as a failure, and cannot be shown as a group.
        named = advice.where("cluster is not null and group_id is not null")
        wanted = named.where(f.col("group_id").isin(list(groups))) if groups else named
        ranked = wanted.orderBy(f.desc(f.coalesce("saved", f.lit(0))), *_KEYS)
        best = ranked.limit(_MOST_GROUPS if groups else top).collect()
        lacking = sorted(set(groups) - {row["group_id"] for row in best})
        if lacking:
            raise OptionError(f"the table rebalances has no group {lacking[0]!r}; give another one")
        tally = {
            row["strategy"] or "none": row["count"]
            for row in advice.groupBy("strategy").count().orderBy(f.desc("count"), "strategy").collect()
        }
        seen = f.col("today") == OBSERVED
        moves = advice.agg(
            f.sum(f.when(seen, f.col("moved_today"))),
            f.sum(f.when(seen, f.col("moved_recommended"))),
            f.count_if(seen),
            f.count_if(~seen),
            f.count_if(f.col("by_broker") & f.col("today").isNull()),
        ).first()
    finally:
        advice.unpersist()
    facts = rows.agg(
        f.count_distinct("cluster").alias("clusters"),
        f.count_distinct(f.struct(*_KEYS)).alias("groups"),
        f.min("ts").alias("since"),
        f.max("ts").alias("until"),
    ).first()
    assert facts is not None
    assert moves is not None
    strategies = _totals(rows, tally)
    failures, failed_groups = _failures(rows)
    period_ms, periods = _periods(rows, facts["since"], facts["until"])
    worst = _worst(rows, best, events, lags, assignments, joined)
    return Report(
        title=title,
        clusters=facts["clusters"],
        groups=facts["groups"],
        rebalances=max([each.rebalances for each in strategies], default=0),
        since=facts["since"],
        until=facts["until"],
        strategies=strategies,
        periods=periods,
        period_ms=period_ms,
        moved_today=moves[0] or 0,
        moved_recommended=moves[1] or 0,
        recommendations=tally,
        worst=worst,
        failures=failures,
        failed_groups=failed_groups,
        observed_groups=moves[2],
        notes=_notes(facts["groups"], moves[2], moves[3], moves[4], worst),
        pages=dict(pages or {}),
    )


def _notes(groups: int, observed: int, running: int, by_broker: int, worst: Sequence[GroupReport]) -> list[str]:
    """Notes: the meaning of "today" on the page, and missing tables."""
    notes = []
    if observed < groups:
        parts = [f"What was really assigned is in the tables for {observed:,} of {groups:,} groups"]
        if running:
            parts.append(f"for {running:,} the strategy in use is known and replayed, and stands for today")
        if by_broker:
            parts.append(f"{by_broker:,} are assigned by the broker (KIP-848)")
        if rest := groups - observed - running - by_broker:
            parts.append(f"for {rest:,} nothing stands for today")
        notes.append("; ".join(parts) + ".")
    if worst and not any(each.ownership for each in worst):
        notes.append("There is no timeline of ownership: the table of assignments was not given.")
    return notes


def _quantiles(value: Column, name: str) -> list[Column]:
    import pyspark.sql.functions as f

    # Spark keeps a count of every different value in memory for exact percentiles.
    points = f.percentile(three_digits(value), f.array(f.lit(0.5), f.lit(0.95)))
    return [points.alias(name), f.max(value).alias(f"{name}_max")]


def _totals(rows: DataFrame, tally: Mapping[str, int]) -> list[StrategyTotals]:
    """Every strategy over the fleet: `observed` first, then by moves."""
    import pyspark.sql.functions as f

    key = f.struct(*_KEYS)
    sound = f.col("moved").isNotNull()
    found = (
        rows.where("strategy is not null")
        .groupBy("strategy")
        .agg(
            f.count_distinct(key).alias("groups"),
            (f.count_distinct(key) - f.count_distinct(f.when(sound, key))).alias("failed"),
            f.count_if(sound).alias("rebalances"),
            *(
                f.coalesce(f.sum(name), f.lit(0)).alias(name)
                for name in ("assigned", "moved", "moved_needed", "copartition_violations", "kernel_ns")
            ),
            f.coalesce(f.sum(f.col("partitions") - f.col("assigned")), f.lit(0)).alias("unassigned"),
            *_quantiles(f.col("max_count") - f.col("min_count"), "spread"),
            *_quantiles(f.col("balance_score"), "score"),
            *_quantiles(f.col("lag_skew"), "skew"),
            *load_ratios(),
        )
        .collect()
    )

    def quantiles(row: Any, name: str, nothing: float) -> Quantiles:
        if row[name] is None:
            return Quantiles(nothing, nothing, nothing)
        middle, high = row[name]
        return Quantiles(float(middle), float(high), float(row[f"{name}_max"]))

    totals = [
        StrategyTotals(
            row["strategy"],
            row["groups"],
            row["failed"],
            row["rebalances"],
            row["assigned"],
            row["unassigned"],
            row["moved"],
            row["moved_needed"],
            quantiles(row, "spread", 0.0),
            quantiles(row, "score", 0.0),
            quantiles(row, "skew", 1.0),
            row["copartition_violations"],
            row["kernel_ns"] / 1e9,
            tally.get(row["strategy"], 0),
            row["load_ratio_mean"],
            row["load_ratio_max"],
        )
        for row in found
    ]
    return sorted(totals, key=lambda each: (each.strategy != OBSERVED, each.moved, each.strategy))


def _failures(rows: DataFrame) -> tuple[list[Failure], int]:
    """The first error of each group; groups that could not be replayed at all come first."""
    import pyspark.sql.functions as f

    wrong = (
        rows.where(f.col("error").isNotNull())
        .withColumn("strategy", f.coalesce("strategy", f.lit(ALL)))
        .groupBy(*_KEYS, "strategy")
        .agg(f.min_by("error", f.struct("ts", "seq")).alias("error"), f.bool_or(f.col("seq").isNull()).alias("fatal"))
        .groupBy(*_KEYS, "error")
        .agg(f.sort_array(f.collect_set("strategy")).alias("strategies"), f.bool_or("fatal").alias("fatal"))
    )
    count = wrong.agg(f.count_distinct(f.struct(*_KEYS))).first()
    shown = wrong.orderBy(f.desc("fatal"), *_KEYS, "error").limit(_FAILURES).collect()
    failures = [
        Failure(row["cluster"] or "", row["group_id"] or "", ", ".join(row["strategies"]), row["error"])
        for row in shown
    ]
    return failures, 0 if count is None else count[0]


def _periods(rows: DataFrame, since: int | None, until: int | None) -> tuple[int, list[Period]]:
    """The moves over time, in periods for a picture."""
    import pyspark.sql.functions as f

    if since is None or until is None:
        return _STEPS[0], []
    step = next((each for each in _STEPS if (until - since) / each <= _PERIODS), None)
    if step is None:
        step = _STEPS[-1] * -(-(until - since) // (_PERIODS * _STEPS[-1]))
    found = (
        rows.where("moved is not null and strategy is not null")
        .groupBy(f.floor(f.col("ts") / step).alias("period"), "strategy")
        .agg(f.sum("moved").alias("moved"), f.count("*").alias("rebalances"))
        .collect()
    )
    moved: dict[int, dict[str, int]] = {}
    rebalances: dict[int, int] = {}
    for row in found:
        moved.setdefault(row["period"], {})[row["strategy"]] = row["moved"]
        rebalances[row["period"]] = max(rebalances.get(row["period"], 0), row["rebalances"])
    return step, [
        Period(period * step, rebalances.get(period, 0), dict(sorted(moved.get(period, {}).items())))
        for period in range(since // step, until // step + 1)
    ]


# ---- the groups that are shown ---------------------------------------------------------------------------------------


def _worst(
    rows: DataFrame,
    best: Sequence[Any],
    events: DataFrame | None,
    lags: DataFrame | None,
    assignments: DataFrame | Callable[[DataFrame, Sequence[str]], DataFrame | None] | None,
    joined: str | None,
) -> list[GroupReport]:
    if not best:
        return []
    spark = rows.sparkSession
    keys = spark.createDataFrame([(row["cluster"], row["group_id"]) for row in best], "cluster string, group_id string")

    def of_them(table: DataFrame) -> DataFrame:
        import pyspark.sql.functions as f

        return table.join(f.broadcast(keys), list(_KEYS), "left_semi")

    expression = pattern(joined)
    figures = {
        (row["cluster"], row["group_id"]): group_figures(row.asDict(recursive=True), expression)
        for row in by_group(of_them(rows), None if events is None else of_them(events)).collect()
    }
    small = {key: None for key, each in figures.items() if 0 < each.partitions <= _MOST_PARTITIONS}
    table = None if callable(assignments) else assignments
    if callable(assignments):
        wanted = spark.createDataFrame(list(small), "cluster string, group_id string") if small else None
        names = sorted({name for each in figures.values() for name in each.strategies})
        table = assignments(wanted, names) if wanted is not None else None
    instances = {} if events is None else _instances(of_them(checked(events, "membership_events")))
    advised = {
        (row["cluster"], row["group_id"]): Recommendation(row["strategy"], row["rule"], row["reason"]) for row in best
    }
    compared = {key: _compared(figures[key], advice) for key, advice in advised.items()}
    assigned = _Assignments(
        None if table is None else of_them(checked(table, "assignments")),
        of_them(rows).where("moved is not null"),
        {key: names for key, names in compared.items() if key in small},
    )
    last = {key: at for key in small if (at := assigned.last(key)) is not None}
    known = {} if lags is None else _lags_at(of_them(checked(lags, "lags")), last)
    found = []
    for row in best:
        key = row["cluster"], row["group_id"]
        named = instances.get(key, {})
        timelines = [line for name in compared[key] if (line := assigned.ownership(key, name, named)) is not None]
        lag = assigned.lag(key, list(figures[key].strategies), named, known.get(key, {}))
        found.append(GroupReport(figures[key], advised[key], row["saved"] or 0, timelines, lag))
    return found


def _compared(figures: GroupFigures, advice: Recommendation) -> list[str]:
    """The present strategy and the recommended one; if a group keeps its own, the one that moves least instead."""
    present = today(figures)
    other = advice.strategy
    if other in (None, KEEP, present):
        rest = [name for name, each in figures.strategies.items() if name != present and each.error is None]
        other = rest[0] if rest else None
    return [name for name in (present, other) if name is not None]


def _instances(events: DataFrame) -> dict[tuple[str, str], dict[str, str]]:
    """The instance ids of each group's static members, by member id."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    rows = events.where("instance_id is not null and instance_id != ''").select(*_KEYS, "member_id", "instance_id")
    for row in rows.distinct().collect():
        found.setdefault((row[0], row[1]), {})[row[2]] = row[3]
    return found


def _lags_at(lags: DataFrame, last: Mapping[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str], _Lags]:
    """The last known lag of each partition of these groups at the time of each: one row for a partition."""
    import pyspark.sql.functions as f

    if not last:
        return {}
    times = [(*key, at[0]) for key, at in last.items()]
    until = lags.sparkSession.createDataFrame(times, "cluster string, group_id string, until bigint")
    at_that_time = (
        lags.join(f.broadcast(until), list(_KEYS))
        .where("lag is not null and ts <= until")
        .groupBy(*_KEYS, "topic", "partition")
        .agg(f.max_by("lag", f.struct("ts", "lag")).alias("lag"))
    )
    found: dict[tuple[str, str], _Lags] = {}
    for row in at_that_time.collect():
        found.setdefault((row["cluster"], row["group_id"]), {})[row["topic"], row["partition"]] = row["lag"]
    return found


_Lags: TypeAlias = "dict[tuple[str, int], int]"
# ts, seq and generation of a rebalance; and a (member, topic, partitions) for each member and topic.
_Moments: TypeAlias = "dict[tuple[int, int, int], list[tuple[str, str, list[int]]]]"


class _Assignments:
    """The shown rows of `assignments` of a few groups.

    The driver gets the last rebalances of the compared strategies, and the last rebalance that all strategies have. So
    their number does not grow with the length of a history.
    """

    def __init__(
        self, table: DataFrame | None, rebalances: DataFrame, compared: Mapping[tuple[str, str], Sequence[str]]
    ) -> None:
        self._found: dict[tuple[tuple[str, str], str], _Moments] = {}
        self._moved: dict[tuple[tuple[str, str], str], dict[tuple[int, int, int], int]] = {}
        if table is None or not compared:
            return
        import pyspark.sql.functions as f

        spark, moment = table.sparkSession, ["ts", "seq", "generation"]
        pairs = [(*key, name) for key, names in compared.items() for name in names]
        shown = _last_of(rebalances, spark.createDataFrame(pairs, "cluster string, group_id string, strategy string"))
        of_small = spark.createDataFrame(list(compared), "cluster string, group_id string")
        common = _last_common(rebalances.join(f.broadcast(of_small), list(_KEYS), "left_semi"))
        for row in shown.collect():
            moved = self._moved.setdefault(((row["cluster"], row["group_id"]), row["strategy"]), {})
            moved[row["ts"], row["seq"], row["generation"]] = row["moved"]
        wanted = shown.select(*_KEYS, "strategy", *moment).unionByName(common).distinct()
        chosen = table.join(f.broadcast(wanted), [*_KEYS, "strategy", *moment], "left_semi")
        for row in chosen.select(*_KEYS, "strategy", *moment, "member_id", "topic", "partitions").collect():
            at = row["ts"], row["seq"], row["generation"]
            steps = self._found.setdefault(((row["cluster"], row["group_id"]), row["strategy"]), {})
            steps.setdefault(at, []).append((row["member_id"], row["topic"], row["partitions"]))

    def last(self, key: tuple[str, str]) -> tuple[int, int] | None:
        """ts and seq of the last rebalance that every strategy has."""
        moments = [{moment[:2] for moment in steps} for (of, _), steps in self._found.items() if of == key]
        return max(set.intersection(*moments), default=None) if moments else None

    def ownership(self, key: tuple[str, str], strategy: str, named: Mapping[str, str]) -> Ownership | None:
        """The timeline of a group's last rebalances; None if it is not in the table."""
        found = self._found.get((key, strategy))
        if not found:
            return None
        moments = sorted(self._moved.get((key, strategy), {}).items())[-_MOST_REBALANCES:]
        # A rebalance that assigned no partition has no rows.
        steps = [(moment, found.get(moment, [])) for moment, _ in moments]
        partitions = sorted({(topic, number) for _, step in steps for _, topic, numbers in step for number in numbers})
        places = {partition: place for place, partition in enumerate(partitions)}
        members: dict[str, int] = {}
        owners = []
        for _, step in steps:
            owner = [-1] * len(partitions)
            for member, topic, numbers in sorted(step, key=lambda row: row[:2]):
                place = members.setdefault(named.get(member, member), len(members))
                for number in numbers:
                    owner[places[topic, number]] = place
            owners.append(owner)
        times = [moment[0] for moment, _ in moments]
        return Ownership(strategy, times, list(members), partitions, owners, [moved for _, moved in moments])

    def lag(
        self,
        key: tuple[str, str],
        strategies: Sequence[str],
        named: Mapping[str, str],
        known: Mapping[tuple[str, int], int],
    ) -> LagByMember | None:
        """The lag of each member after the last rebalance that every strategy has; None if there is no lag."""
        last = self.last(key)
        if last is None or not any(known.values()):
            return None
        found = {}
        for name in strategies:
            if (key, name) not in self._found:
                continue
            steps = self._found[key, name]
            moment = max(moment for moment in steps if moment[:2] == last)
            totals: dict[str, int] = {}
            for member, topic, numbers in steps[moment]:
                own = named.get(member, member)
                totals[own] = totals.get(own, 0) + sum(known.get((topic, number), 0) for number in numbers)
            found[name] = dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
        return LagByMember(last[0], found)


def _last_of(rebalances: DataFrame, wanted: DataFrame) -> DataFrame:
    """The last rebalances of each of these groups and strategies."""
    import pyspark.sql.functions as f
    from pyspark.sql import Window

    latest = Window.partitionBy(*_KEYS, "strategy").orderBy(f.desc("ts"), f.desc("seq"), f.desc("generation"))
    of_them = rebalances.join(f.broadcast(wanted), [*_KEYS, "strategy"], "left_semi")
    numbered = of_them.withColumn("place", f.row_number().over(latest))
    return numbered.where(f.col("place") <= _MOST_REBALANCES).select(
        *_KEYS, "strategy", "ts", "seq", "generation", "moved"
    )


def _last_common(rebalances: DataFrame) -> DataFrame:
    """The rows of the last rebalance of each group that all its strategies have."""
    import pyspark.sql.functions as f

    at = rebalances.groupBy(*_KEYS, "ts", "seq").agg(
        f.collect_set("strategy").alias("of"), f.collect_list(f.struct("strategy", "generation")).alias("each")
    )
    all_of = rebalances.groupBy(*_KEYS).agg(f.count_distinct("strategy").alias("all"))
    common = at.join(all_of, list(_KEYS)).where(f.size("of") == f.col("all"))
    last = common.groupBy(*_KEYS).agg(f.max(f.struct("ts", "seq", "each")).alias("last"))
    rows = last.select(*_KEYS, "last.ts", "last.seq", f.explode("last.each").alias("of"))
    return rows.select(*_KEYS, "of.strategy", "ts", "seq", "of.generation")
